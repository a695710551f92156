//! Shared strings of a workbook, and the escapes in its texts.

use std::borrow::Cow;
use std::io;

use super::archive::Archive;
use super::fault::unusable;
use super::xml::{Xml, XmlEvent};

/// The maximum number of UTF-16 units in an Excel cell.
pub(super) const MAX_CELL_UNITS: usize = 32_767;

/// The maximum size of a cell's text in memory. A text that is cut here exceeds [`MAX_CELL_UNITS`].
const MAX_CELL_BYTES: usize = 1 << 17;

/// The maximum size of a cell's text with its escapes.
const MAX_ESCAPED_BYTES: usize = 1 << 18;

/// The maximum size of all shared strings, which stay in memory.
const MAX_SHARED_BYTES: usize = 64 << 20;

/// The maximum number of shared strings.
const MAX_SHARED: usize = 4_000_000;

/// The size of a piece of memory for shared strings.
const PIECE_BYTES: usize = 1 << 20;

/// The strings that cells of all sheets share.
///
/// They lie in pieces of [`PIECE_BYTES`], each string in one of them. A single growing buffer would be copied when it
/// grows, and then need twice the memory.
#[derive(Default)]
pub(super) struct SharedStrings {
    pieces: Vec<String>,
    /// The end offset of each string. Piece `n` begins at `n * PIECE_BYTES`.
    ends: Vec<u32>,
    /// The size of all strings.
    bytes: usize,
}

impl SharedStrings {
    /// Reads the part with this name. Its declared counts are ignored.
    pub fn read(archive: &Archive, name: &str) -> io::Result<SharedStrings> {
        let mut xml = Xml::new(archive.part(name, u64::MAX)?);
        let mut shared = SharedStrings::default();
        xml.root("sst")?;
        let mut item = RichText::default();
        loop {
            match xml.next()? {
                XmlEvent::Start(tag) if tag.is("si") => {
                    item.read(&mut xml)?;
                    shared.push(&item.text)?;
                }
                XmlEvent::Start(_) => xml.skip()?,
                XmlEvent::EndOfPart => return Ok(shared),
                _ => {}
            }
        }
    }

    fn push(&mut self, text: &str) -> io::Result<()> {
        self.bytes += text.len();
        if self.bytes > MAX_SHARED_BYTES || self.ends.len() >= MAX_SHARED {
            return Err(unusable(format!(
                "its cells hold more than {MAX_SHARED} texts or {MAX_SHARED_BYTES} bytes of text; split it, or save it as CSV \
                 in UTF-8"
            )));
        }
        if self.pieces.last().is_none_or(|piece| piece.len() + text.len() > PIECE_BYTES) {
            self.pieces.push(String::with_capacity(PIECE_BYTES));
        }
        let full_pieces = self.pieces.len() - 1;
        let piece = &mut self.pieces[full_pieces];
        piece.push_str(text);
        self.ends.push(u32::try_from(full_pieces * PIECE_BYTES + piece.len()).map_err(io::Error::other)?);
        Ok(())
    }

    /// Returns the string with this index.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = usize::try_from(*self.ends.get(index)?).ok()?;
        let end_before = index.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        let end_before = usize::try_from(end_before).ok()?;
        // The piece may be full. It is never empty, except at the very start.
        let piece = end.saturating_sub(1) / PIECE_BYTES;
        let start = piece * PIECE_BYTES;
        self.pieces.get(piece)?.get(end_before.saturating_sub(start)..end - start)
    }
}

/// Returns true if the text is longer than an Excel cell may be.
pub(super) fn is_too_long(text: &str) -> bool {
    text.len() > MAX_CELL_UNITS && text.encode_utf16().count() > MAX_CELL_UNITS
}

/// A text with runs, which may have different formats.
#[derive(Default)]
pub(super) struct RichText {
    pub text: String,
    run: String,
}

impl RichText {
    /// Reads the text of the current element and its runs. Phonetic runs are skipped.
    pub fn read(&mut self, xml: &mut Xml<'_>) -> io::Result<()> {
        self.text.clear();
        let depth = xml.depth();
        while xml.depth() >= depth {
            let at = xml.depth();
            match xml.next()? {
                XmlEvent::Start(tag) if tag.is("t") => {
                    let mut keeps_blanks = false;
                    tag.attributes(|name, value| keeps_blanks |= name == ":space" && value == "preserve")?;
                    self.run.clear();
                    xml.text(&mut self.run, MAX_ESCAPED_BYTES)?;
                    let run = if keeps_blanks { &self.run } else { self.run.trim_matches([' ', '\t', '\r', '\n']) };
                    push_unescaped(&mut self.text, run);
                }
                XmlEvent::Start(tag) if at == depth && tag.is("r") => {}
                XmlEvent::Start(_) => xml.skip()?,
                XmlEvent::EndOfPart => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the text of the current element, without child elements.
    pub fn read_plain(&mut self, xml: &mut Xml<'_>) -> io::Result<()> {
        self.text.clear();
        self.run.clear();
        xml.text(&mut self.run, MAX_ESCAPED_BYTES)?;
        push_unescaped(&mut self.text, &self.run);
        Ok(())
    }
}

/// Appends a text with escapes such as `_x000D_` replaced, up to [`MAX_CELL_BYTES`].
fn push_unescaped(out: &mut String, text: &str) {
    let text = unescaped(text);
    let room = MAX_CELL_BYTES.saturating_sub(out.len());
    out.push_str(&text[..text.floor_char_boundary(room)]);
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains("_x") {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("_x") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let letter = match unit(rest) {
            Some(high @ 0xd800..0xdc00) => match rest.get(7..).and_then(unit) {
                Some(low) => char::decode_utf16([high, low]).next().and_then(Result::ok).map(|letter| (letter, 14)),
                None => None,
            },
            Some(unit) => char::from_u32(unit.into()).map(|letter| (letter, 7)),
            None => None,
        };
        let (letter, bytes) = letter.unwrap_or(('_', 1));
        out.push(letter);
        rest = &rest[bytes..];
    }
    out.push_str(rest);
    out.into()
}

/// Parses an escape at the start of the text. Returns its UTF-16 unit.
fn unit(text: &str) -> Option<u16> {
    let digits =
        text.strip_prefix("_x")?.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    text[6..].starts_with('_').then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_replaced() {
        let cases = [
            ("a_x000D_b", "a\rb"),
            ("_x005F_x000D_", "_x000D_"),
            ("_xD83D__xDE00_", "😀"),
            ("_xD83D_", "_xD83D_"),
            ("_xD83D__x0041_", "_xD83D_A"),
            ("_x00e9_", "é"),
            ("_x00g9_ _x00 _x é_x", "_x00g9_ _x00 _x é_x"),
            ("_x+041_", "_x+041_"),
        ];
        for (text, expected) in cases {
            assert_eq!(unescaped(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_are_found_by_index() {
        let mut shared = SharedStrings::default();
        for text in ["a", "", "é"] {
            shared.push(text).unwrap();
        }
        assert_eq!([0, 1, 2, 3].map(|index| shared.get(index)), [Some("a"), Some(""), Some("é"), None]);
    }

    #[test]
    fn texts_are_found_in_every_piece() {
        let texts: Vec<String> = [PIECE_BYTES - 1, 1, 0, 1, PIECE_BYTES - 2, 0, 2, 0, PIECE_BYTES - 2, 0]
            .into_iter()
            .zip('a'..)
            .map(|(bytes, letter)| letter.to_string().repeat(bytes))
            .collect();
        for first in 0..texts.len() {
            let mut shared = SharedStrings::default();
            for text in &texts[first..] {
                shared.push(text).unwrap();
            }
            for (index, text) in texts[first..].iter().enumerate() {
                assert!(shared.get(index) == Some(text), "from {first}, text {index} of {} bytes", text.len());
            }
        }
    }

    #[test]
    fn more_texts_than_fit_in_memory_are_refused() {
        let text = "x".repeat(MAX_CELL_BYTES);
        let mut shared = SharedStrings::default();
        for _ in 0..MAX_SHARED_BYTES / MAX_CELL_BYTES {
            shared.push(&text).unwrap();
        }
        assert!(shared.push("x").is_err());
    }

    #[test]
    fn long_texts_are_cut_where_they_are_refused() {
        for letter in ["x", "é", "日", "😀"] {
            let mut cut = String::new();
            push_unescaped(&mut cut, &letter.repeat(200_000));
            assert!(is_too_long(&cut) && cut.len() <= MAX_CELL_BYTES, "{letter}");
            assert_eq!(is_too_long(&letter.repeat(20_000)), letter == "😀");
        }
    }
}
