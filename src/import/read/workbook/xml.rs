//! A streaming XML reader with limits.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::fault::{damaged, damaged_part};
use super::part::Part;

/// The maximum size of a tag or a text, which must fit into memory.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// The maximum nesting depth. Sheets need less than ten.
const MAX_DEPTH: usize = 100;

/// The XML of a part.
pub(super) struct Xml<'a> {
    reader: Reader<EventLimit<BufReader<Part<'a>>>>,
    buffer: Vec<u8>,
    name: &'a str,
    depth: usize,
}

/// An XML event. Compare elements by local name, since programs use different prefixes.
pub(super) enum XmlEvent<'b> {
    Start(StartTag<'b>),
    /// The end of an element, even of an empty one.
    End,
    Text(Cow<'b, str>),
    /// A comment or a processing instruction.
    Other,
    EndOfPart,
}

impl<'a> Xml<'a> {
    /// Creates a reader of a part.
    pub fn new(part: Part<'a>) -> Xml<'a> {
        let name = part.name();
        let mut reader = Reader::from_reader(EventLimit { from: BufReader::with_capacity(1 << 16, part), used: 0 });
        reader.config_mut().expand_empty_elements = true;
        Xml { reader, buffer: Vec::new(), name, depth: 0 }
    }

    /// Returns the number of open elements, including the root.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the next event.
    pub fn next(&mut self) -> io::Result<XmlEvent<'_>> {
        self.buffer.clear();
        self.reader.get_mut().used = 0;
        let event = self.reader.read_event_into(&mut self.buffer).map_err(|error| xml_error(self.name, error))?;
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
                    _ => entity.resolve_char_ref().map_err(|error| xml_error(self.name, error))?,
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

    /// Appends the text of the current element to `out`, up to `max_bytes`. Child elements are skipped.
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

    /// Skips to the end of the current element.
    pub fn skip(&mut self) -> io::Result<()> {
        self.text(&mut String::new(), 0)
    }

    /// Reads the start tag of the root element, which must have this name.
    pub fn root(&mut self, expected: &str) -> io::Result<()> {
        let name = self.name;
        loop {
            match self.next()? {
                XmlEvent::Start(tag) if tag.is(expected) => return Ok(()),
                XmlEvent::Start(_) | XmlEvent::EndOfPart => {
                    return Err(damaged(format_args!("its part `{name:.100}` contains no {expected}")));
                }
                _ => {}
            }
        }
    }
}

/// Converts an XML error.
fn xml_error(part: &str, error: quick_xml::Error) -> io::Error {
    match error {
        quick_xml::Error::Io(error) => match error.get_ref() {
            Some(inner) if inner.is::<EventTooLong>() => damaged_part(part, inner),
            _ => io::Error::new(error.kind(), error.to_string()),
        },
        quick_xml::Error::Encoding(_) => damaged_part(part, "it is not UTF-8"),
        error => damaged_part(part, format_args!("{:.200}", error.to_string())),
    }
}

/// The start tag of an element.
pub(super) struct StartTag<'b> {
    tag: BytesStart<'b>,
    part: &'b str,
}

impl StartTag<'_> {
    /// Returns true if the element has this local name.
    pub fn is(&self, name: &str) -> bool {
        self.tag.local_name().as_ref() == name
    }

    /// Calls `take` with each attribute. Its name starts at the colon if it has a prefix: `:id` for `r:id`.
    pub fn attributes(&self, mut take: impl FnMut(&str, Cow<'_, str>)) -> io::Result<()> {
        for attribute in self.tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| xml_error(self.part, error.into()))?;
            let key = attribute.key.as_ref();
            if !key.starts_with("xmlns") {
                let value = attribute.normalized_value(XmlVersion::Implicit1_0);
                let name = key.find(':').map_or(key, |colon| &key[colon..]);
                take(name, value.map_err(|error| xml_error(self.part, error))?);
            }
        }
        Ok(())
    }
}

/// Fails with [`EventTooLong`] if an event is too long. `used` is the size of the event so far.
struct EventLimit<R> {
    from: R,
    used: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("a tag or text in it is longer than {MAX_EVENT_BYTES} bytes")]
struct EventTooLong;

impl<R: BufRead> Read for EventLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.from.read(buffer)
    }
}

impl<R: BufRead> BufRead for EventLimit<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used > MAX_EVENT_BYTES { Err(io::Error::other(EventTooLong)) } else { self.from.fill_buf() }
    }

    fn consume(&mut self, amount: usize) {
        self.used = self.used.saturating_add(amount);
        self.from.consume(amount);
    }
}
