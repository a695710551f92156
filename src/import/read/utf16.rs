//! UTF-16 decoding. Windows programs call this encoding "Unicode".

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

/// Replaces an invalid UTF-16 unit. No valid UTF-8 contains this byte, so later readers find the damage.
pub(in crate::import) const DAMAGED: u8 = 0xff;

/// The number of bytes decoded at once.
const CHUNK_BYTES: usize = 1 << 14;

/// A text as UTF-8 without its byte-order mark. Text without a UTF-16 mark is unchanged.
pub(in crate::import) enum AsUtf8<R> {
    Plain(R),
    Utf16(Utf16<R>),
}

/// Decodes UTF-16.
pub(in crate::import) struct Utf16<R> {
    from: R,
    decoder: Decoder,
    input: Vec<u8>,
    has_ended: bool,
    /// The decoded bytes. Those from `next` on are not yet returned.
    output: Vec<u8>,
    next: usize,
}

/// Converts `content` to UTF-8. `first` contains its first bytes.
pub(in crate::import) fn as_utf8<R: Read>(first: &[u8], mut content: R) -> io::Result<AsUtf8<R>> {
    let Some((encoding, mark_len)) = Encoding::for_bom(first) else { return Ok(AsUtf8::Plain(content)) };
    let mut mark = [0; 3];
    content.read_exact(&mut mark[..mark_len])?;
    if encoding == UTF_8 {
        return Ok(AsUtf8::Plain(content));
    }
    let decoder = encoding.new_decoder_without_bom_handling();
    let (input, output) = (Vec::with_capacity(CHUNK_BYTES), Vec::new());
    Ok(AsUtf8::Utf16(Utf16 { from: content, decoder, input, has_ended: false, output, next: 0 }))
}

impl<R: Read> Utf16<R> {
    /// Decodes the next piece.
    fn fill(&mut self) -> io::Result<()> {
        self.output.clear();
        self.next = 0;
        self.input.clear();
        self.from.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.input)?;
        self.has_ended = self.input.is_empty();
        let mut from = 0;
        let mut piece = [0; CHUNK_BYTES];
        loop {
            let input = &self.input[from..];
            let (result, read, written) =
                self.decoder.decode_to_utf8_without_replacement(input, &mut piece, self.has_ended);
            from += read;
            self.output.extend_from_slice(&piece[..written]);
            match result {
                DecoderResult::InputEmpty => return Ok(()),
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => self.output.push(DAMAGED),
            }
        }
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.next == self.output.len() && !self.has_ended {
            self.fill()?;
        }
        let read = (&self.output[self.next..]).read(buffer)?;
        self.next += read;
        Ok(read)
    }
}

impl<R: Read> Read for AsUtf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            AsUtf8::Plain(from) => from.read(buffer),
            AsUtf8::Utf16(from) => from.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_utf8_and_damage_stays() {
        let unit = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let marked = |bytes: &[u8]| [&[0xff, 0xfe][..], bytes].concat();
        let big: Vec<u8> = [0xfe, 0xff].into_iter().chain("aé".encode_utf16().flat_map(u16::to_be_bytes)).collect();
        let long = "é𝄞".repeat(CHUNK_BYTES);
        let cases: [(&[u8], &[u8]); 8] = [
            (b"", b""),
            (b"a\xff", b"a\xff"),
            (b"\xef\xbb\xbfa", b"a"),
            (&marked(&unit("aé𝄞")), "aé𝄞".as_bytes()),
            (&big, "aé".as_bytes()),
            (&marked(&unit(&long)), long.as_bytes()),
            // Half a surrogate pair before a letter, and half a unit at the end.
            (&marked(&[0x34, 0xd8, b'a', 0]), b"\xffa"),
            (&marked(&[b'a', 0, b'b']), b"a\xff"),
        ];
        for (content, expected) in cases {
            let mut read = Vec::new();
            let first = &content[..content.len().min(4)];
            as_utf8(first, content).unwrap().read_to_end(&mut read).unwrap();
            assert!(read == expected, "{:?}: {:?}", &content[..content.len().min(40)], &read[..read.len().min(40)]);
        }
    }
}
