//! A part of a workbook. It is inflated and counted while it is read.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Take};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::fault::{damaged, damaged_part};
use crate::import::read::bounds::TooLarge;

/// The maximum compression ratio of a large part. Real sheets stay far below, zip bombs reach 1,000.
const MAX_RATIO: u64 = 250;

/// Parts up to this size may have any ratio.
const SMALL_BYTES: u64 = 16 << 20;

/// The sizes and the checksum of a part in the directory.
#[derive(Clone, Copy)]
pub(super) struct Packed {
    pub packed_bytes: u64,
    pub inflated_bytes: u64,
    pub crc: u32,
}

/// A part that is being read. Its size and checksum are checked at the end.
pub(super) struct Part<'a> {
    name: &'a str,
    content: PartContent<'a>,
    packed: Packed,
    crc: Crc,
    read: u64,
    max_bytes: u64,
    /// The number of bytes that the file may still inflate to, and its limit.
    left: Option<(&'a Cell<u64>, u64)>,
}

enum PartContent<'a> {
    Stored(Take<&'a File>),
    Deflated(DeflateDecoder<BufReader<Take<&'a File>>>),
}

impl<'a> Part<'a> {
    /// Opens the part at the current position of the file. Fails for an unknown compression method.
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

    /// Returns the name in the archive.
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
                return Err(damaged_part(self.name, "its size differs from the directory"));
            }
            if self.crc.sum() != self.packed.crc {
                return Err(damaged_part(self.name, "its checksum is wrong"));
            }
        }
        Ok(read)
    }
}
