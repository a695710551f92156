//! Cell styles. Only their number formats are read.

use std::collections::HashMap;
use std::io;

use super::archive::Archive;
use super::fault::damaged;
use super::format::{NumberFormat, built_in};
use super::xml::{Xml, XmlEvent};

/// The maximum inflated size of the part.
const MAX_PART_BYTES: u64 = 64 << 20;

/// The maximum number of styles. Excel allows 65,490.
const MAX_STYLES: usize = 100_000;

/// The maximum size of all number formats. Excel allows 250 formats of 255 characters.
const MAX_FORMAT_BYTES: usize = 1 << 19;

#[derive(Default)]
pub(super) struct Styles {
    formats: Vec<NumberFormat>,
    /// The index of each style's format.
    by_style: Vec<usize>,
}

impl Styles {
    /// Reads the part with this name.
    pub fn read(archive: &Archive, name: &str) -> io::Result<Styles> {
        let mut xml = Xml::new(archive.part(name, MAX_PART_BYTES)?);
        xml.root("styleSheet")?;
        let mut custom: HashMap<u32, Option<NumberFormat>> = HashMap::new();
        let mut ids: Vec<u32> = Vec::new();
        let mut list = List::Other;
        let mut format_bytes = 0;
        loop {
            let depth = xml.depth();
            match xml.next()? {
                XmlEvent::Start(tag) if depth == 1 => {
                    list = match () {
                        () if tag.is("numFmts") => List::Formats,
                        () if tag.is("cellXfs") => List::Styles,
                        () => List::Other,
                    };
                }
                XmlEvent::Start(tag) if depth == 2 && list == List::Formats && tag.is("numFmt") => {
                    let (mut id, mut format) = (None, None);
                    tag.attributes(|name, value| match name {
                        "numFmtId" => id = value.parse().ok(),
                        "formatCode" => {
                            format = NumberFormat::read(&value);
                            format_bytes += value.len();
                        }
                        _ => {}
                    })?;
                    format_bytes += 16;
                    custom.extend(id.map(|id| (id, format)));
                }
                XmlEvent::Start(tag) if depth == 2 && list == List::Styles && tag.is("xf") => {
                    let mut id = 0;
                    tag.attributes(|name, value| {
                        if name == "numFmtId" {
                            id = value.parse().unwrap_or(0);
                        }
                    })?;
                    ids.push(id);
                }
                XmlEvent::EndOfPart => break,
                _ => {}
            }
            if ids.len() > MAX_STYLES || format_bytes > MAX_FORMAT_BYTES {
                return Err(damaged(format_args!(
                    "it has more than {MAX_STYLES} styles or {MAX_FORMAT_BYTES} bytes of number formats"
                )));
            }
        }
        Ok(Styles::new(&ids, &custom))
    }

    /// Creates the styles with these format ids.
    pub fn new(ids: &[u32], custom: &HashMap<u32, Option<NumberFormat>>) -> Styles {
        let mut styles = Styles::default();
        let mut known = HashMap::new();
        for id in ids {
            let at = *known.entry(*id).or_insert_with(|| {
                let format = match custom.get(id) {
                    Some(format) => format.clone(),
                    None => NumberFormat::read(built_in(*id)),
                };
                styles.formats.push(format.unwrap_or_default());
                styles.formats.len() - 1
            });
            styles.by_style.push(at);
        }
        styles
    }

    /// Returns the number format of a style. `None` means the general format.
    pub fn format(&self, style: usize) -> Option<&NumberFormat> {
        self.by_style.get(style).and_then(|at| self.formats.get(*at))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Formats,
    Styles,
    Other,
}
