//! CSV rows, with their lines and a limit on their length.

use std::io::{self, BufRead, BufReader, Read};

use csv::ByteRecord;

use crate::import::read::bounds::Bounds;
use crate::model::Message;

/// Reads a table row by row. A quote closes a cell only before a separator or a line end; other quotes are text. Unlike
/// the reader of the csv crate, it reports an unclosed quote: the crate reads the rest of the file as one cell.
pub(in crate::import) struct CsvReader<R> {
    from: BufReader<R>,
    separator: u8,
    bounds: Bounds,
    /// The line of the next byte, from 1.
    line: u64,
    record: ByteRecord,
    /// Whether a quoted cell of the last row has a quote that neither closes it nor is doubled.
    pub has_stray_quotes: bool,
    /// Whether the rest of the table is not read.
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    CellStart,
    Plain,
    Quoted,
    QuoteInQuoted,
    /// After text that follows a quote in a quoted cell. The first such quote is at this index of the cell.
    AfterStray(usize),
}

/// The first line of a row, from 1, and its cells, or the reason why it is rejected.
pub(in crate::import) type NextRow<'a> = (u64, Result<&'a ByteRecord, Message>);

impl<R: Read> CsvReader<R> {
    /// Creates a reader. `line` is the number of the first line.
    pub fn new(content: R, bounds: Bounds, separator: u8, line: u64) -> CsvReader<R> {
        let from = BufReader::with_capacity(1 << 16, content);
        CsvReader { from, separator, bounds, line, record: ByteRecord::new(), has_stray_quotes: false, is_over: false }
    }

    /// Reads the next row, including the header. Blank lines are skipped. After a row that is too long, nothing is read.
    pub fn next(&mut self) -> io::Result<Option<NextRow<'_>>> {
        self.record.clear();
        self.has_stray_quotes = false;
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
                        push_cell(&mut self.record, &mut cell, state);
                        QuoteState::CellStart
                    }
                    (QuoteState::QuoteInQuoted, byte) if byte != b'"' => {
                        // Probably a quote was not closed in a line above.
                        if cell.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
                            let message = "has text after a closing quote; within a quoted cell, double every quote";
                            fault.get_or_insert(message.into());
                        }
                        self.has_stray_quotes = true;
                        cell.push(b'"');
                        cell.extend_from_slice(piece);
                        QuoteState::AfterStray(cell.len() - piece.len() - 1)
                    }
                    (QuoteState::AfterStray(_), _) => {
                        cell.extend_from_slice(piece);
                        state
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
        push_cell(&mut self.record, &mut cell, state);
        if state == QuoteState::Quoted {
            fault.get_or_insert(
                "opens a quote that is never closed; close it, or double it within a quoted cell".into(),
            );
        }
        Ok(Some((line, fault.map_or(Ok(&self.record), Err))))
    }
}

/// Ends a cell. If its last sign is a quote, this closes it, and the others are text: `"National "North""`. Otherwise the
/// first one closed it, as spreadsheet programs read `"25.18"%`.
fn push_cell(record: &mut ByteRecord, cell: &mut Vec<u8>, state: QuoteState) {
    if let QuoteState::AfterStray(first) = state
        && cell.pop_if(|last| *last == b'"').is_none()
    {
        cell.remove(first);
    }
    record.push_field(cell);
    cell.clear();
}

#[cfg(test)]
mod tests {
    use csv::ReaderBuilder;

    use super::*;

    /// The line of a row, and its cells and whether they have stray quotes, or its fault.
    type ReadRow = (u64, Result<(Vec<Vec<u8>>, bool), Message>);

    fn rows(content: &[u8], max_bytes: usize) -> Vec<ReadRow> {
        let mut table = CsvReader::new(content, Bounds { line_bytes: max_bytes, ..Bounds::default() }, b',', 1);
        let mut rows = Vec::new();
        while let Some((line, row)) = table.next().unwrap() {
            let row = row.map(|row| row.iter().map(<[u8]>::to_vec).collect());
            rows.push((line, row.map(|row| (row, table.has_stray_quotes))));
        }
        rows
    }

    #[test]
    fn rows_end_where_the_reader_ends_them() {
        let mut bits: u64 = 0x9E37_79B9_7F4A_7C15;
        let (mut faulty, mut stray) = (0, 0);
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
                    Ok((row, false)) => assert_eq!(row, cells, "{:?}", String::from_utf8_lossy(&content)),
                    // Stray quotes change the text of cells, but not their number.
                    Ok((row, true)) => {
                        assert_eq!(row.len(), cells.len(), "{:?}", String::from_utf8_lossy(&content));
                        stray += 1;
                    }
                    Err(_) => faulty += 1,
                }
            }
        }
        assert!(faulty > 1_000 && stray > 1_000, "{faulty} rows had a fault, {stray} had stray quotes");
    }

    #[test]
    fn a_long_row_ends_the_table() {
        let bounds = Bounds { line_bytes: 3, ..Bounds::default() };
        let long = |in_quotes| Err(bounds.table_row_fault(in_quotes));
        let cells = |cells: &[&str]| Ok((cells.iter().map(|cell| cell.as_bytes().to_vec()).collect(), false));
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

    #[test]
    fn quotes_within_a_cell_are_text() {
        let cases = [
            (r#""25.18"%,x"#, "25.18%|x"),
            (r#"x,"25.18"%"#, "x|25.18%"),
            (r#""25.18"%,"#, "25.18%|"),
            (r#""National University "North"",x"#, "National University \"North\"|x"),
            (r#""National University "North"""#, "National University \"North\""),
            (r#"""North" University",x"#, "\"North\" University|x"),
            (r#""a "b, c" d",x"#, "a b| c\" d\"|x"),
            (r#""A, "B", C"#, "A, \"B| C"),
            (r#""a ""b"" "c" d""#, "a \"b\" \"c\" d"),
            (r#""a" ,x"#, "a |x"),
            (r#""a"b"c,x"#, "ab\"c|x"),
        ];
        for (line, expected) in cases {
            for end in ["", "\n", "\r\n", "\n1,2\n"] {
                let (_, row) = &rows(format!("{line}{end}").as_bytes(), usize::MAX)[0];
                let (cells, has_stray_quotes) = row.as_ref().unwrap();
                let cells: Vec<_> = cells.iter().map(|cell| String::from_utf8_lossy(cell)).collect();
                assert_eq!((cells.join("|").as_str(), has_stray_quotes), (expected, &true), "{line}");
            }
        }
        for line in [r#"a "b" c,"d ""e""","#, r#"5" x,"a""#] {
            assert!(matches!(rows(line.as_bytes(), usize::MAX)[..], [(1, Ok((_, false)))]), "{line}");
        }
        // The quote of the first line was not closed.
        for table in ["\"A\n2,\"B\"\n", "\"A\r2,\"B\"\n", "\"A,\n2,B\n\"3\"\",C\""] {
            let (line, row) = &rows(table.as_bytes(), usize::MAX)[0];
            assert!(*line == 1 && row.as_ref().is_err_and(|fault| fault.contains("quote")), "{table:?}: {row:?}");
        }
    }
}
