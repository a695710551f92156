//! CSV rows with line numbers and a length limit.

use std::collections::VecDeque;
use std::io::{self, Read};

use csv::{ByteRecord, ReaderBuilder};

use crate::import::read::bounds::Bounds;

/// Reads a table row by row.
///
/// The csv crate accepts any quoting: after an unclosed quote it reads the rest of the file as one cell. So a
/// [`QuoteChecker`] in front of it checks the quoting and the length of each row. It also counts lines: for a
/// row after blank lines, the crate reports the number of the first blank line.
pub(in crate::import) struct CsvReader<R> {
    reader: csv::Reader<QuoteChecker<R>>,
    record: ByteRecord,
}

/// The reason why a row is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum TableFault {
    TextAfterQuote,
    OpenQuote,
    /// Reading stops at this row.
    TooLong {
        in_quotes: bool,
    },
}

impl TableFault {
    pub fn message(self, bounds: &Bounds) -> String {
        match self {
            TableFault::TextAfterQuote => {
                "has text after a closing quote; within a quoted cell, double every quote".to_owned()
            }
            TableFault::OpenQuote => {
                "opens a quote that is never closed; close it, or double it within a quoted cell".to_owned()
            }
            TableFault::TooLong { in_quotes } => bounds.table_row_fault(in_quotes),
        }
    }
}

/// The first line of a row, from 1, and the row.
pub(in crate::import) type NextRow<'a> = (u64, Result<&'a ByteRecord, TableFault>);

impl<R: Read> CsvReader<R> {
    /// Creates a reader. `max_bytes` limits each row. `line` is the number of the first line.
    pub fn new(content: R, max_bytes: usize, separator: u8, line: u64) -> CsvReader<R> {
        let checker = QuoteChecker {
            from: content,
            max_bytes,
            separator,
            line,
            row: None,
            finished: VecDeque::new(),
            is_over: false,
        };
        let mut builder = ReaderBuilder::new();
        let reader = builder
            .has_headers(false)
            .flexible(true)
            .delimiter(separator)
            .buffer_capacity(1 << 16)
            .from_reader(checker);
        CsvReader { reader, record: ByteRecord::new() }
    }

    /// Reads the next row, including the header. Blank lines are skipped.
    pub fn next(&mut self) -> io::Result<Option<NextRow<'_>>> {
        let is_read = self.reader.read_byte_record(&mut self.record).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        })?;
        // The checker sees the end of a row before the csv crate returns it.
        let Some((line, fault)) = self.reader.get_mut().finished.pop_front().filter(|_| is_read) else {
            return Ok(None);
        };
        Ok(Some((line, fault.map_or(Ok(&self.record), Err))))
    }

    /// The number of the last line that was read.
    pub fn line(&self) -> u64 {
        self.reader.get_ref().line
    }
}

/// Checks the bytes of a table before the csv crate reads them. Rows end by the rules of the crate. If a row exceeds
/// the length limit, the checker ends the content there.
struct QuoteChecker<R> {
    from: R,
    max_bytes: usize,
    separator: u8,
    /// The line of the next byte.
    line: u64,
    row: Option<OpenRow>,
    /// The line and fault of each row that is complete but not yet returned.
    finished: VecDeque<(u64, Option<TableFault>)>,
    is_over: bool,
}

/// The current row.
struct OpenRow {
    line: u64,
    bytes: usize,
    state: QuoteState,
    fault: Option<TableFault>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    CellStart,
    Plain,
    Quoted,
    QuoteInQuoted,
}

impl<R: Read> Read for QuoteChecker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over || buffer.is_empty() {
            return Ok(0);
        }
        let read = self.from.read(buffer)?;
        if read == 0 {
            self.finish();
            return Ok(0);
        }
        for (at, byte) in buffer[..read].iter().enumerate() {
            if !self.check(*byte) {
                return Ok(at);
            }
        }
        Ok(read)
    }
}

impl<R> QuoteChecker<R> {
    /// Checks a byte. Returns false if the row would exceed the length limit.
    fn check(&mut self, byte: u8) -> bool {
        let line = self.line;
        self.line += u64::from(byte == b'\n');
        let is_line_end = matches!(byte, b'\r' | b'\n');
        if self.row.is_none() && is_line_end {
            return true;
        }
        let row = self.row.get_or_insert(OpenRow { line, bytes: 0, state: QuoteState::CellStart, fault: None });
        if is_line_end && row.state != QuoteState::Quoted {
            self.finished.push_back((row.line, row.fault));
            self.row = None;
            return true;
        }
        if row.bytes == self.max_bytes {
            let fault = TableFault::TooLong { in_quotes: row.state == QuoteState::Quoted };
            self.finished.push_back((row.line, Some(fault)));
            self.row = None;
            self.is_over = true;
            return false;
        }
        row.bytes += 1;
        let is_separator = byte == self.separator;
        row.state = match (row.state, byte) {
            (QuoteState::CellStart | QuoteState::QuoteInQuoted, b'"') => QuoteState::Quoted,
            (QuoteState::Quoted, b'"') => QuoteState::QuoteInQuoted,
            (QuoteState::Quoted, _) => QuoteState::Quoted,
            _ if is_separator => QuoteState::CellStart,
            (QuoteState::QuoteInQuoted, _) => {
                row.fault = row.fault.or(Some(TableFault::TextAfterQuote));
                QuoteState::Plain
            }
            (QuoteState::CellStart | QuoteState::Plain, _) => QuoteState::Plain,
        };
        true
    }

    /// Ends the last row.
    fn finish(&mut self) {
        self.is_over = true;
        if let Some(row) = self.row.take() {
            let open = (row.state == QuoteState::Quoted).then_some(TableFault::OpenQuote);
            self.finished.push_back((row.line, row.fault.or(open)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of a row, and its cells or its fault.
    type ReadRow = (u64, Result<Vec<Vec<u8>>, TableFault>);

    fn rows(content: &[u8], max_bytes: usize) -> Vec<ReadRow> {
        let mut table = CsvReader::new(content, max_bytes, b',', 1);
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
        let long = |in_quotes| Err(TableFault::TooLong { in_quotes });
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
        // The same holds for a reader that returns single bytes.
        struct SingleBytes<'a>(&'a [u8]);
        impl Read for SingleBytes<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let room = buffer.len().min(1);
                self.0.read(&mut buffer[..room])
            }
        }
        let mut table = CsvReader::new(SingleBytes(b"a\nbcde\nf"), 3, b',', 1);
        assert!(matches!(table.next(), Ok(Some((1, Ok(_))))));
        assert!(matches!(table.next(), Ok(Some((2, Err(TableFault::TooLong { .. }))))));
        assert!(matches!(table.next(), Ok(None)));
    }
}
