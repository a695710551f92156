//! Recognizes SQLite files.

use std::fs::File;
use std::io::Read;

/// The first bytes of every SQLite file (<https://sqlite.org/fileformat.html>).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Whether a file begins as SQLite's do.
pub fn is_sqlite(file: &mut File) -> bool {
    let mut begin = [0; MAGIC.len()];
    file.read_exact(&mut begin).is_ok() && begin == *MAGIC
}
