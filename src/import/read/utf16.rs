//! UTF-16, which Windows programs call "Unicode".

use std::io::{self, Cursor, Read};

use encoding_rs::{Encoding, UTF_8};

/// Returns a text as UTF-8 without its byte-order mark. `first` contains its first bytes. Text without a mark is
/// unchanged.
pub(in crate::import) fn as_utf8<'p>(first: &[u8], mut content: impl Read + 'p) -> io::Result<Box<dyn Read + 'p>> {
    let Some((encoding, mark_len)) = Encoding::for_bom(first) else { return Ok(Box::new(content)) };
    io::copy(&mut content.by_ref().take(mark_len as u64), &mut io::sink())?;
    if encoding == UTF_8 {
        return Ok(Box::new(content));
    }
    let mut units = Vec::new();
    content.read_to_end(&mut units)?;
    let (text, is_damaged) = encoding.decode_without_bom_handling(&units);
    if is_damaged {
        let line = 1 + text.chars().take_while(|letter| *letter != '\u{fffd}').filter(|letter| *letter == '\n').count();
        let message =
            format!("line {line} contains damaged characters (UTF-16); correct it, and save the file as UTF-8");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(Box::new(Cursor::new(text.into_owned().into_bytes())))
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
            let outcome =
                as_utf8(&content[..content.len().min(4)], content).and_then(|mut text| text.read_to_end(&mut read));
            match (outcome, expected) {
                (Ok(_), Ok(expected)) => assert_eq!(read, expected, "{content:?}"),
                (Err(error), Err(expected)) => assert!(error.to_string().starts_with(expected), "{content:?}: {error}"),
                (outcome, _) => panic!("{content:?}: {outcome:?}"),
            }
        }
    }
}
