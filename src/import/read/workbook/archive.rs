//! The zip archive of a workbook. Limits apply to its directory and to the inflated bytes.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use super::fault::{damaged, unusable};
use super::part::{Packed, Part};

/// The maximum number of parts. Excel writes about ten, and one for each sheet, picture and chart.
const MAX_PARTS: u64 = 20_000;

/// The maximum size of the directory, which stays in memory.
const MAX_DIRECTORY_BYTES: u64 = 4 << 20;

/// The size of the end record without the comment.
const END_BYTES: usize = 22;

/// The maximum size of the archive's comment.
const MAX_COMMENT_BYTES: usize = u16::MAX as usize;

/// The value of a 32-bit field whose real value is in the zip64 extension.
const IN_ZIP64: u64 = u32::MAX as u64;

const END_MAGIC: &[u8] = b"PK\x05\x06";
const END64_LOCATOR_MAGIC: &[u8] = b"PK\x06\x07";
const END64_MAGIC: &[u8] = b"PK\x06\x06";
const ENTRY_MAGIC: &[u8] = b"PK\x01\x02";
const HEADER_MAGIC: &[u8] = b"PK\x03\x04";

pub(super) struct Archive {
    file: File,
    entries: Vec<ZipEntry>,
    /// The index of each part, by its comparable name.
    by_name: HashMap<String, usize>,
    max_bytes: u64,
    /// The number of bytes that may still be inflated.
    left: Cell<u64>,
}

/// A part in the directory.
struct ZipEntry {
    name: String,
    header_at: u64,
    is_encrypted: bool,
    method: u16,
    packed: Packed,
}

/// The position and size of the directory, and its number of entries.
struct Directory {
    at: u64,
    bytes: u64,
    count: u64,
}

impl Archive {
    /// Opens an archive. At most `max_bytes` may be inflated from all parts together.
    pub fn open(mut file: File, max_bytes: u64) -> io::Result<Archive> {
        let file_bytes = file.seek(SeekFrom::End(0))?;
        let directory = find_directory(&file, file_bytes)?;
        if directory.count > MAX_PARTS || directory.bytes > MAX_DIRECTORY_BYTES {
            return Err(damaged(format_args!("it has more than {MAX_PARTS} parts, which no workbook needs")));
        }
        file.seek(SeekFrom::Start(directory.at))?;
        let mut from = BufReader::new(&file).take(directory.bytes);
        let (mut entries, mut by_name) = (Vec::new(), HashMap::new());
        for _ in 0..directory.count {
            let entry = ZipEntry::read(&mut from).map_err(archive_error)?;
            if by_name.insert(comparable(&entry.name), entries.len()).is_some() {
                return Err(damaged(format_args!("it has the part `{:.100}` twice", entry.name)));
            }
            entries.push(entry);
        }
        drop(from);
        Ok(Archive { file, entries, by_name, max_bytes, left: Cell::new(max_bytes) })
    }

    /// Returns true if the archive contains the part.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(&comparable(name))
    }

    /// Opens a part. Its inflated bytes count against the limit of the file, and against `max_bytes`.
    pub fn part(&self, name: &str, max_bytes: u64) -> io::Result<Part<'_>> {
        self.open_part(name, max_bytes, Some(&self.left))
    }

    /// Opens a part that was read before, without counting its bytes again.
    pub fn reopen_part(&self, name: &str) -> io::Result<Part<'_>> {
        self.open_part(name, self.max_bytes, None)
    }

    fn open_part<'a>(&'a self, name: &str, max_bytes: u64, left: Option<&'a Cell<u64>>) -> io::Result<Part<'a>> {
        let at = self.by_name.get(&comparable(name));
        let Some(entry) = at.and_then(|at| self.entries.get(*at)) else {
            return Err(damaged(format_args!("its part `{name:.100}` is missing")));
        };
        if entry.is_encrypted {
            return Err(unusable("it has a password; save it without one"));
        }
        let mut file = &self.file;
        file.seek(SeekFrom::Start(entry.header_at))?;
        let mut header = [0; 30];
        file.read_exact(&mut header).map_err(archive_error)?;
        if !header.starts_with(HEADER_MAGIC) {
            return Err(archive_error(io::ErrorKind::InvalidData.into()));
        }
        file.seek(SeekFrom::Current(i64::from(u16_at(&header, 26)) + i64::from(u16_at(&header, 28))))?;
        Part::new(
            &self.file,
            &entry.name,
            entry.packed,
            entry.method,
            max_bytes,
            left.map(|left| (left, self.max_bytes)),
        )
    }
}

/// Normalizes the name of a part: names are case-insensitive, and some programs write other separators.
fn comparable(name: &str) -> String {
    name.replace('\\', "/").trim_start_matches('/').to_ascii_lowercase()
}

impl ZipEntry {
    fn read(from: &mut impl Read) -> io::Result<ZipEntry> {
        let mut fixed = [0; 46];
        from.read_exact(&mut fixed)?;
        if !fixed.starts_with(ENTRY_MAGIC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut name = vec![0; usize::from(u16_at(&fixed, 28))];
        from.read_exact(&mut name)?;
        let mut extra = vec![0; usize::from(u16_at(&fixed, 30))];
        from.read_exact(&mut extra)?;
        io::copy(&mut from.take(u64::from(u16_at(&fixed, 32))), &mut io::sink())?;
        let mut long = zip64_fields(&extra);
        let mut field = |at: usize| match u64::from(u32_at(&fixed, at)) {
            IN_ZIP64 => long.next().ok_or(io::Error::from(io::ErrorKind::InvalidData)),
            value => Ok(value),
        };
        // The extension contains the fields in this order.
        let (inflated_bytes, packed_bytes, header_at) = (field(24)?, field(20)?, field(42)?);
        Ok(ZipEntry {
            name: String::from_utf8_lossy(&name).into_owned(),
            header_at,
            is_encrypted: u16_at(&fixed, 8) & 1 == 1,
            method: u16_at(&fixed, 10),
            packed: Packed { packed_bytes, inflated_bytes, crc: u32_at(&fixed, 16) },
        })
    }
}

/// Returns the numbers in the zip64 extension.
fn zip64_fields(extra: &[u8]) -> impl Iterator<Item = u64> {
    let (mut rest, mut found): (_, &[u8]) = (extra, &[]);
    while let [kind_0, kind_1, len_0, len_1, content @ ..] = rest {
        let Some((content, after)) = content.split_at_checked(u16::from_le_bytes([*len_0, *len_1]).into()) else {
            break;
        };
        if [*kind_0, *kind_1] == [1, 0] {
            found = content;
            break;
        }
        rest = after;
    }
    found.chunks_exact(8).map(|number| u64_at(number, 0))
}

/// Finds the directory by the record at the end of the file.
fn find_directory(mut file: &File, file_bytes: u64) -> io::Result<Directory> {
    let tail_bytes = file_bytes.min((END_BYTES + MAX_COMMENT_BYTES) as u64);
    let tail_at = file_bytes - tail_bytes;
    file.seek(SeekFrom::Start(tail_at))?;
    let mut tail = Vec::new();
    file.take(tail_bytes).read_to_end(&mut tail)?;
    let end_at = (0..=tail.len().saturating_sub(END_BYTES)).rev().find(|at| tail[*at..].starts_with(END_MAGIC));
    let Some((end_at, end)) = end_at.and_then(|at| Some((at, tail.get(at..at + END_BYTES)?))) else {
        return Err(damaged("it is damaged or incomplete: the end of the zip archive is missing"));
    };
    let mut directory =
        Directory { at: u32_at(end, 16).into(), bytes: u32_at(end, 12).into(), count: u16_at(end, 10).into() };
    if [directory.at, directory.bytes].contains(&IN_ZIP64) || directory.count == u64::from(u16::MAX) {
        let locator = end_at.checked_sub(20).and_then(|at| tail.get(at..end_at));
        if let Some(locator) = locator.filter(|locator| locator.starts_with(END64_LOCATOR_MAGIC)) {
            file.seek(SeekFrom::Start(u64_at(locator, 8)))?;
            let mut end = [0; 56];
            file.read_exact(&mut end).map_err(archive_error)?;
            if !end.starts_with(END64_MAGIC) {
                return Err(archive_error(io::ErrorKind::InvalidData.into()));
            }
            directory = Directory { at: u64_at(&end, 48), bytes: u64_at(&end, 40), count: u64_at(&end, 32) };
        }
    }
    if directory.at.checked_add(directory.bytes).is_none_or(|end| end > file_bytes) {
        return Err(archive_error(io::ErrorKind::InvalidData.into()));
    }
    Ok(directory)
}

/// Converts an error of reading the directory.
fn archive_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput => {
            damaged("it is damaged or incomplete: the directory of the zip archive cannot be read")
        }
        _ => error,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
