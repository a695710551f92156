//! XML of a workbook's parts, read piece by piece within bounds.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::fault::{damaged, damaged_part};
use super::part::Part;

/// The most bytes of one tag or piece of text, which is held in memory.
const MAX_PIECE_BYTES: usize = 1 << 20;

/// The most elements within one another. Sheets have less than ten.
const MAX_DEPTH: usize = 100;

/// The XML of a part.
pub(super) struct Xml<'a> {
    reader: Reader<EventLimit<BufReader<Part<'a>>>>,
    buffer: Vec<u8>,
    name: &'a str,
    depth: usize,
}

/// A piece of XML. Elements are compared by their local names, since their prefix and namespace vary.
pub(super) enum XmlEvent<'b> {
    Start(StartTag<'b>),
    /// The end of an element, empty ones included.
    End,
    Text(Cow<'b, str>),
    /// A comment or processing instruction.
    Other,
    EndOfPart,
}

impl<'a> Xml<'a> {
    /// Reads a part.
    pub fn new(part: Part<'a>) -> Xml<'a> {
        let name = part.name();
        let mut reader = Reader::from_reader(EventLimit { from: BufReader::with_capacity(1 << 16, part), used: 0 });
        reader.config_mut().expand_empty_elements = true;
        Xml { reader, buffer: Vec::new(), name, depth: 0 }
    }

    /// The number of open elements: 1 from the start of the root on.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The next piece.
    ///
    /// # Errors
    /// When the part is damaged or exceeds a bound.
    pub fn next(&mut self) -> io::Result<XmlEvent<'_>> {
        self.buffer.clear();
        self.reader.get_mut().used = 0;
        let event = self.reader.read_event_into(&mut self.buffer).map_err(|error| no_xml(self.name, error))?;
        Ok(match event {
            Event::Start(tag) => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(damaged_part(self.name, format_args!("more than {MAX_DEPTH} elements are nested")));
                }
                XmlEvent::Start(StartTag { tag, part: self.name })
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                XmlEvent::End
            }
            Event::Text(text) => XmlEvent::Text(text.xml10_content()),
            Event::CData(text) => XmlEvent::Text(text.xml10_content()),
            Event::GeneralRef(entity) => {
                let letter = match &*entity {
                    "amp" => Some('&'),
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "quot" => Some('"'),
                    "apos" => Some('\''),
                    _ => entity.resolve_char_ref().map_err(|error| no_xml(self.name, error))?,
                };
                let Some(letter) = letter else {
                    return Err(damaged_part(self.name, "it has an unknown entity"));
                };
                XmlEvent::Text(String::from(letter).into())
            }
            Event::DocType(_) => {
                return Err(damaged_part(self.name, "it declares a document type (DOCTYPE), which no workbook has"));
            }
            Event::Eof if self.depth > 0 => return Err(damaged_part(self.name, "it ends within an element")),
            Event::Eof => XmlEvent::EndOfPart,
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) | Event::Empty(_) => XmlEvent::Other,
        })
    }

    /// Appends the text of the current element to `out`, up to `max_bytes`. The texts of elements within it are skipped.
    ///
    /// # Errors
    /// When the part is damaged or exceeds a bound.
    pub fn text(&mut self, out: &mut String, max_bytes: usize) -> io::Result<()> {
        let depth = self.depth;
        while self.depth >= depth {
            let is_within = self.depth > depth;
            match self.next()? {
                XmlEvent::Text(text) if !is_within => {
                    let room = max_bytes.saturating_sub(out.len());
                    out.push_str(&text[..text.floor_char_boundary(room)]);
                }
                XmlEvent::EndOfPart => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads up to the end of the current element.
    ///
    /// # Errors
    /// When the part is damaged or exceeds a bound.
    pub fn skip(&mut self) -> io::Result<()> {
        self.text(&mut String::new(), 0)
    }

    /// Reads the start of the root, which must have this name.
    ///
    /// # Errors
    /// When it has another one, or the part is damaged or exceeds a bound.
    pub fn root(&mut self, expected: &str) -> io::Result<()> {
        let name = self.name;
        loop {
            match self.next()? {
                XmlEvent::Start(tag) if tag.is(expected) => return Ok(()),
                XmlEvent::Start(_) | XmlEvent::EndOfPart => {
                    return Err(damaged(format_args!("its part `{name:.100}` holds no {expected}")));
                }
                _ => {}
            }
        }
    }
}

/// The error of XML that cannot be read.
fn no_xml(part: &str, error: quick_xml::Error) -> io::Error {
    match error {
        quick_xml::Error::Io(error) => match error.get_ref() {
            Some(inner) if inner.is::<EventTooLong>() => damaged_part(part, inner),
            _ => io::Error::new(error.kind(), error.to_string()),
        },
        quick_xml::Error::Encoding(_) => damaged_part(part, "it is not UTF-8"),
        error => damaged_part(part, format_args!("{:.200}", error.to_string())),
    }
}

/// The start of an element.
pub(super) struct StartTag<'b> {
    tag: BytesStart<'b>,
    part: &'b str,
}

impl StartTag<'_> {
    /// Whether the element has this local name.
    pub fn is(&self, name: &str) -> bool {
        self.tag.local_name().as_ref() == name
    }

    /// Calls `take` with each attribute. A prefix is left out of its name up to the colon, as in `:id` of `r:id`.
    ///
    /// # Errors
    /// When an attribute is damaged.
    pub fn attributes(&self, mut take: impl FnMut(&str, Cow<'_, str>)) -> io::Result<()> {
        for attribute in self.tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| no_xml(self.part, error.into()))?;
            let key = attribute.key.as_ref();
            if !key.starts_with("xmlns") {
                let value = attribute.normalized_value(XmlVersion::Implicit1_0);
                let name = key.find(':').map_or(key, |colon| &key[colon..]);
                take(name, value.map_err(|error| no_xml(self.part, error))?);
            }
        }
        Ok(())
    }
}

/// Fails with [`EventTooLong`] after too many bytes since `used` was reset.
struct EventLimit<R> {
    from: R,
    used: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("a tag or text in it is longer than {MAX_PIECE_BYTES} bytes")]
struct EventTooLong;

impl<R: BufRead> Read for EventLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.from.read(buffer)
    }
}

impl<R: BufRead> BufRead for EventLimit<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used > MAX_PIECE_BYTES { Err(io::Error::other(EventTooLong)) } else { self.from.fill_buf() }
    }

    fn consume(&mut self, amount: usize) {
        self.used = self.used.saturating_add(amount);
        self.from.consume(amount);
    }
}
