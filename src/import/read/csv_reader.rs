//! CSV rows, with their lines and a limit on their length.

use std::io::{self, BufRead, BufReader, Read};

use csv::ByteRecord;

use crate::import::read::bounds::Bounds;
use crate::model::Message;

/// Reads a table row by row. Unlike the reader of the csv crate, it reports wrong quoting: after an unclosed quote, the
/// crate reads the rest of the file as one cell.
pub(in crate::import) struct CsvReader<R> {
    from: BufReader<R>,
    separator: u8,
    bounds: Bounds,
    /// The line of the next byte, from 1.
    line: u64,
    record: ByteRecord,
    /// Whether the rest of the table is not read.
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    CellStart,
    Plain,
    Quoted,
    QuoteInQuoted,
}

/// The first line of a row, from 1, and its cells, or the reason why it is rejected.
pub(in crate::import) type NextRow<'a> = (u64, Result<&'a ByteRecord, Message>);

impl<R: Read> CsvReader<R> {
    /// Creates a reader. `line` is the number of the first line.
    pub fn new(content: R, bounds: Bounds, separator: u8, line: u64) -> CsvReader<R> {
        let from = BufReader::with_capacity(1 << 16, content);
        CsvReader { from, separator, bounds, line, record: ByteRecord::new(), is_over: false }
    }

    /// Reads the next row, including the header. Blank lines are skipped. After a row that is too long, nothing is read.
    pub fn next(&mut self) -> io::Result<Option<NextRow<'_>>> {
        self.record.clear();
        let (mut first_line, mut row_bytes, mut cell) = (None, 0, Vec::new());
        let (mut state, mut fault): (_, Option<Message>) = (QuoteState::CellStart, None);
        let mut is_complete = self.is_over;
        while !is_complete {
            let buffer = self.from.fill_buf()?;
            is_complete = buffer.is_empty();
            let mut used = 0;
            while used < buffer.len() {
                // A sign with a meaning, or the bytes before it.
                let rest = &buffer[used..];
                let is_sign = |byte: &u8| matches!(byte, b'"' | b'\r' | b'\n') || *byte == self.separator;
                let piece = &rest[..rest.iter().position(is_sign).unwrap_or(rest.len()).max(1)];
                used += piece.len();
                let line = self.line;
                self.line += u64::from(piece[0] == b'\n');
                if matches!(piece[0], b'\r' | b'\n') && state != QuoteState::Quoted {
                    is_complete = first_line.is_some();
                    if is_complete {
                        break;
                    }
                    continue;
                }
                first_line.get_or_insert(line);
                row_bytes += piece.len();
                if row_bytes > self.bounds.line_bytes {
                    fault = Some(self.bounds.table_row_fault(state == QuoteState::Quoted));
                    (self.is_over, is_complete) = (true, true);
                    break;
                }
                state = match (state, piece[0]) {
                    (QuoteState::CellStart, b'"') => QuoteState::Quoted,
                    (QuoteState::Quoted, b'"') => QuoteState::QuoteInQuoted,
                    (_, byte) if byte == self.separator && state != QuoteState::Quoted => {
                        self.record.push_field(&cell);
                        cell.clear();
                        QuoteState::CellStart
                    }
                    (QuoteState::QuoteInQuoted, byte) if byte != b'"' => {
                        let message = "has text after a closing quote; within a quoted cell, double every quote";
                        fault.get_or_insert(message.into());
                        QuoteState::Plain
                    }
                    (QuoteState::CellStart | QuoteState::Plain, _) => {
                        cell.extend_from_slice(piece);
                        QuoteState::Plain
                    }
                    (QuoteState::Quoted | QuoteState::QuoteInQuoted, _) => {
                        cell.extend_from_slice(piece);
                        QuoteState::Quoted
                    }
                };
            }
            self.from.consume(used);
        }
        let Some(line) = first_line else { return Ok(None) };
        self.record.push_field(&cell);
        if state == QuoteState::Quoted {
            fault.get_or_insert(
                "opens a quote that is never closed; close it, or double it within a quoted cell".into(),
            );
        }
        Ok(Some((line, fault.map_or(Ok(&self.record), Err))))
    }
}

#[cfg(test)]
mod tests {
    use csv::ReaderBuilder;

    use super::*;

    /// The line of a row, and its cells or its fault.
    type ReadRow = (u64, Result<Vec<Vec<u8>>, Message>);

    fn rows(content: &[u8], max_bytes: usize) -> Vec<ReadRow> {
        let mut table = CsvReader::new(content, Bounds { line_bytes: max_bytes, ..Bounds::default() }, b',', 1);
        let mut rows = Vec::new();
        while let Some((line, row)) = table.next().unwrap() {
            rows.push((line, row.map(|row| row.iter().map(<[u8]>::to_vec).collect())));
        }
        rows
    }

    #[test]
    fn rows_end_where_the_reader_ends_them() {
        let mut bits: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut faulty = 0;
        for round in 0..20_000 {
            let mut content = Vec::new();
            for _ in 0..=round % 24 {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                content.push(b"a,\"\"\r\n\nb"[usize::try_from(bits >> 61).unwrap()]);
            }
            let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(content.as_slice());
            let mut expected = Vec::new();
            let (mut record, mut at) = (ByteRecord::new(), 0);
            while reader.read_byte_record(&mut record).unwrap() {
                let blank = content[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                let line = 1 + content[..at + blank].iter().filter(|byte| **byte == b'\n').count();
                let cells: Vec<Vec<u8>> = record.iter().map(<[u8]>::to_vec).collect();
                expected.push((u64::try_from(line).unwrap(), cells));
                at = usize::try_from(reader.position().byte()).unwrap();
            }
            let read = rows(&content, usize::MAX);
            assert_eq!(read.len(), expected.len(), "{:?}", String::from_utf8_lossy(&content));
            for ((line, row), (expected_line, cells)) in read.into_iter().zip(expected) {
                assert_eq!(line, expected_line, "{:?}", String::from_utf8_lossy(&content));
                match row {
                    Ok(row) => assert_eq!(row, cells, "{:?}", String::from_utf8_lossy(&content)),
                    Err(_) => faulty += 1,
                }
            }
        }
        assert!(faulty > 1_000, "{faulty} rows had a fault");
    }

    #[test]
    fn a_long_row_ends_the_table() {
        let bounds = Bounds { line_bytes: 3, ..Bounds::default() };
        let long = |in_quotes| Err(bounds.table_row_fault(in_quotes));
        let cells = |cells: &[&str]| Ok(cells.iter().map(|cell| cell.as_bytes().to_vec()).collect());
        let cases: [(&str, Vec<ReadRow>); 6] = [
            ("a,b\nc,d\n", vec![(1, cells(&["a", "b"])), (2, cells(&["c", "d"]))]),
            ("a,b\r\n\r\nc,dd\n", vec![(1, cells(&["a", "b"])), (3, long(false))]),
            ("a\n\"b\nc\nd\ne\n", vec![(1, cells(&["a"])), (2, long(true))]),
            ("\"a\"\n\"b\"x\n", vec![(1, cells(&["a"])), (2, long(false))]),
            ("abcd", vec![(1, long(false))]),
            ("abc", vec![(1, cells(&["abc"]))]),
        ];
        for (content, expected) in cases {
            assert_eq!(rows(content.as_bytes(), 3), expected, "{content:?}");
        }
    }
}
