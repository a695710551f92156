//! One part of a workbook, inflated and counted while it is read.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Take};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::fault::{damaged, damaged_part};
use crate::import::bounds::TooLarge;

/// How many times its stored size a large part may have. Real sheets stay far below; bombs reach a thousand.
const MAX_RATIO: u64 = 250;

/// Parts up to this size may have any ratio.
const SMALL_BYTES: u64 = 16 << 20;

/// The sizes and the checksum of a part, as the directory states them.
#[derive(Clone, Copy)]
pub(super) struct Packed {
    pub packed_bytes: u64,
    pub inflated_bytes: u64,
    pub crc: u32,
}

/// A part being inflated. Its size and checksum are checked at its end.
pub(super) struct Part<'a> {
    name: &'a str,
    content: PartContent<'a>,
    packed: Packed,
    crc: Crc,
    read: u64,
    max_bytes: u64,
    /// The bytes that the whole file may still inflate to, and its bound.
    left: Option<(&'a Cell<u64>, u64)>,
}

enum PartContent<'a> {
    Stored(Take<&'a File>),
    Deflated(DeflateDecoder<BufReader<Take<&'a File>>>),
}

impl<'a> Part<'a> {
    /// The part whose content begins at the position of the file.
    ///
    /// # Errors
    /// When the method of compression is not supported.
    pub fn new(
        file: &'a File,
        name: &'a str,
        packed: Packed,
        method: u16,
        max_bytes: u64,
        left: Option<(&'a Cell<u64>, u64)>,
    ) -> io::Result<Part<'a>> {
        let from = file.take(packed.packed_bytes);
        let content = match method {
            0 => PartContent::Stored(from),
            8 => PartContent::Deflated(DeflateDecoder::new(BufReader::with_capacity(1 << 16, from))),
            _ => return Err(damaged_part(name, format_args!("its compression method {method} is unknown"))),
        };
        Ok(Part { name, content, packed, crc: Crc::new(), read: 0, max_bytes, left })
    }

    /// The name in the archive.
    pub fn name(&self) -> &'a str {
        self.name
    }

    fn count(&mut self, bytes: &[u8]) -> io::Result<()> {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.crc.update(bytes);
        self.read += count;
        if let Some((left, max_bytes)) = self.left {
            left.set(left.get().checked_sub(count).ok_or_else(|| io::Error::other(TooLarge { max_bytes }))?);
        }
        let is_bomb = self.read > SMALL_BYTES && self.read / MAX_RATIO > self.packed.packed_bytes;
        if is_bomb || self.read > self.max_bytes {
            return Err(damaged(format_args!("its part `{:.100}` is implausibly large", self.name)));
        }
        Ok(())
    }
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        let read = match &mut self.content {
            PartContent::Stored(from) => from.read(buffer),
            PartContent::Deflated(from) => from.read(buffer),
        };
        let read = read.map_err(|error| match error.kind() {
            InvalidData | InvalidInput | UnexpectedEof => damaged_part(self.name, "it cannot be inflated"),
            _ => error,
        })?;
        self.count(&buffer[..read])?;
        if read == 0 && !buffer.is_empty() {
            if self.read != self.packed.inflated_bytes {
                return Err(damaged_part(self.name, "its size is another one than the directory says"));
            }
            if self.crc.sum() != self.packed.crc {
                return Err(damaged_part(self.name, "its checksum is wrong"));
            }
        }
        Ok(read)
    }
}
