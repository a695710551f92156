//! Texts in other encodings than UTF-8: UTF-16, which Windows programs call "Unicode", and the encoding of a recipe.

use std::io::{self, Cursor, Read};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

use crate::import::read::options::ReadOptions;

/// Returns a text as UTF-8 without its byte-order mark. `first` contains its first bytes. Text without a mark is unchanged,
/// unless the options have an encoding, and it is not UTF-8.
pub(in crate::import) fn as_utf8<'p>(
    first: &[u8],
    mut content: impl Read + 'p,
    options: &ReadOptions,
) -> io::Result<Box<dyn Read + 'p>> {
    let marked = Encoding::for_bom(first);
    if let Some((_, mark_len)) = marked {
        io::copy(&mut content.by_ref().take(mark_len as u64), &mut io::sink())?;
    }
    let is_other = options.encoding.is_some() || options.sample.is_some();
    if marked.map_or(!is_other, |(encoding, _)| encoding == UTF_8) {
        return Ok(Box::new(content));
    }
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes)?;
    let encoding = match (marked, &options.sample) {
        (Some((encoding, _)), _) => encoding,
        (None, _) if std::str::from_utf8(&bytes).is_ok() => return Ok(Box::new(Cursor::new(bytes))),
        (None, Some(sample)) => sample.encoding.get_or_init(|| guess_encoding(&bytes)),
        (None, None) => options.encoding.unwrap_or(UTF_8),
    };
    let (text, is_damaged) = encoding.decode_without_bom_handling(&bytes);
    if is_damaged {
        let line = 1 + text.chars().take_while(|letter| *letter != '\u{fffd}').filter(|letter| *letter == '\n').count();
        let message = format!(
            "line {line} contains damaged characters ({}); correct it, and save the file as UTF-8",
            encoding.name()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(Box::new(Cursor::new(text.into_owned().into_bytes())))
}

/// Returns the probable encoding of a text that is not UTF-8.
pub(in crate::import) fn guess_encoding(text: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(text, true);
    detector.guess(None, Utf8Detection::Deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_utf8() {
        let unit = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let marked = |bytes: &[u8]| [&[0xff, 0xfe][..], bytes].concat();
        let big: Vec<u8> = [0xfe, 0xff].into_iter().chain("aé".encode_utf16().flat_map(u16::to_be_bytes)).collect();
        type Case<'a> = (&'a [u8], Result<&'a [u8], &'a str>);
        let cases: [Case<'_>; 8] = [
            (b"", Ok(b"")),
            (b"a\xff", Ok(b"a\xff")),
            (b"\xef\xbb\xbfa", Ok(b"a")),
            (&marked(b""), Ok(b"")),
            (&marked(&unit("aé𝄞")), Ok("aé𝄞".as_bytes())),
            (&big, Ok("aé".as_bytes())),
            // Half a surrogate pair before a letter, and half a unit at the end.
            (&marked(&[b'a', 0, b'\n', 0, 0x34, 0xd8, b'a', 0]), Err("line 2 contains damaged characters")),
            (&marked(b"a\0b"), Err("line 1 contains damaged characters")),
        ];
        for (content, expected) in cases {
            let mut read = Vec::new();
            let outcome = as_utf8(&content[..content.len().min(4)], content, &ReadOptions::default())
                .and_then(|mut text| text.read_to_end(&mut read));
            match (outcome, expected) {
                (Ok(_), Ok(expected)) => assert_eq!(read, expected, "{content:?}"),
                (Err(error), Err(expected)) => assert!(error.to_string().starts_with(expected), "{content:?}: {error}"),
                (outcome, _) => panic!("{content:?}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn a_recipe_names_an_encoding() {
        let options = ReadOptions { encoding: Some(encoding_rs::WINDOWS_1252), ..ReadOptions::default() };
        // A text that is UTF-8 is read as UTF-8.
        for (stored, expected) in [(&b"Soci\xe9t\xe9"[..], "Société"), ("Société".as_bytes(), "Société"), (b"A", "A")]
        {
            let mut read = String::new();
            as_utf8(&stored[..1], stored, &options).unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, expected);
        }
    }
}
