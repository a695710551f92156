//! CSV: a table with a header (RFC 4180), as exports and spreadsheet programs write it, with any usual separator.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::Range;

use csv::ByteRecord;

use super::columns::ColumnMeaning;
use super::draft::names::known_name;
use super::options::{Bounds, ReadOptions};
use super::row_kind::RowKind;
use super::row_sink::{RowSink, TableRow};
use super::source::guess_encoding;
use super::table_cell::TableCell;
use crate::model::Message;
use crate::model::message::message;

/// The number of bytes used to detect the separator.
const BEGINNING_BYTES: u64 = 1 << 16;

/// The number of lines used to detect the separator.
const BEGINNING_LINES: usize = 24;

/// The remedy for text that is neither UTF-8 nor UTF-16.
const REMEDY: &str = "save the file again: in Excel as `CSV UTF-8`, in LibreOffice with the character set \
     `Unicode (UTF-8)`, or as .xlsx";

const MARKDOWN: &str = "it is a table in Markdown, which is not read; paste it into a spreadsheet, and save that as .xlsx";

const STRAY_QUOTES: &str = "a quoted cell contains quotes that are not doubled, or has text after its quotes; this is \
                            read as its text";

/// A table in a text. A quote closes a cell only before a separator or a line end; other quotes are text. Unlike the
/// reader of the csv crate, it reports an unclosed quote: the crate reads the rest of the file as one cell.
pub(in crate::import) struct CsvTable<'c> {
    from: BufReader<Box<dyn Read + 'c>>,
    /// The separator of cells.
    pub separator: u8,
    /// The probable encoding of a text that is not UTF-8.
    encoding: Option<&'static str>,
    bounds: Bounds,
    /// The line of the next byte, from 1.
    line: u64,
    /// Whether the last byte was a carriage return, which has ended the line.
    follows_return: bool,
    row: CsvRow,
    /// Whether the rest of the table is not read.
    is_over: bool,
}

/// A row, so far.
#[derive(Default)]
struct CsvRow {
    cells: ByteRecord,
    /// Whether a quoted cell has a quote that neither closes it nor is doubled.
    has_stray_quotes: bool,
    /// The reason why the row is rejected.
    fault: Option<Message>,
    /// The lines of the row, from 1. They begin at 0 if there is no row.
    lines: Range<u64>,
    /// The length of the row so far.
    bytes: usize,
    /// The cell so far.
    cell: Vec<u8>,
    state: QuoteState,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum QuoteState {
    #[default]
    CellStart,
    Plain,
    Quoted,
    QuoteInQuoted,
    /// After text that follows a quote in a quoted cell. The first such quote is at this index of the cell.
    AfterStray(usize),
}

impl<'c> CsvTable<'c> {
    /// Detects the separator. `kind` is that of the rows.
    pub fn open(
        mut content: impl Read + 'c,
        kind: RowKind,
        options: &ReadOptions,
    ) -> io::Result<CsvTable<'c>> {
        let mut beginning = Vec::new();
        content
            .by_ref()
            .take(BEGINNING_BYTES)
            .read_to_end(&mut beginning)?;
        let separator = find_separator(&beginning, kind, options);
        // The last character may be incomplete.
        let damaged = str::from_utf8(&beginning).err();
        let is_utf8 = damaged.is_none_or(|error| error.error_len().is_none());
        let encoding = (!is_utf8).then(|| guess_encoding(&beginning).name());
        let text = Cursor::new(beginning).chain(content);
        Ok(CsvTable {
            encoding,
            ..CsvTable::new(text, options.bounds, separator)
        })
    }

    fn new(content: impl Read + 'c, bounds: Bounds, separator: u8) -> CsvTable<'c> {
        CsvTable {
            from: BufReader::with_capacity(1 << 16, Box::new(content)),
            separator,
            encoding: None,
            bounds,
            line: 1,
            follows_return: false,
            row: CsvRow::default(),
            is_over: false,
        }
    }

    /// Reads all rows.
    pub fn read(mut self, table: &mut dyn RowSink) -> io::Result<()> {
        // It is UTF-16 without a byte-order mark. Column names never contain NUL.
        if self.from.fill_buf()?.iter().take(2).any(|byte| *byte == 0) {
            let message = "begins with NUL bytes, so it is not CSV in UTF-8; save the file as `CSV UTF-8` or .xlsx";
            table.add_fault(1, message.into());
            return Ok(());
        }
        let has_bars = self.separator == b'|';
        let encoding = self.encoding;
        while let Some(row) = self.next()? {
            let lines = row.lines.clone();
            if let Some(fault) = row.fault.take() {
                table.add_fault(lines.start, fault);
                continue;
            }
            let cells = row.cells.iter().map(|bytes| cell(bytes, encoding));
            let mut cells: Vec<TableCell> = cells.collect();
            cells.iter_mut().for_each(show_formula);
            if has_bars && is_ruler(&cells) {
                return Err(io::Error::other(MARKDOWN));
            }
            let row = TableRow {
                lines,
                cells: &cells,
                merged: Vec::new(),
                warning: row.has_stray_quotes.then_some(STRAY_QUOTES),
            };
            if table.add_row(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Reads the next row, including the header. Blank lines are skipped. After a row that is too long, nothing is
    /// read.
    fn next(&mut self) -> io::Result<Option<&mut CsvRow>> {
        let mut cells = std::mem::take(&mut self.row.cells);
        cells.clear();
        self.row = CsvRow {
            cells,
            ..CsvRow::default()
        };
        let row = &mut self.row;
        let mut is_complete = self.is_over;
        while !is_complete {
            let buffer = self.from.fill_buf()?;
            is_complete = buffer.is_empty();
            let mut used = 0;
            while used < buffer.len() && !is_complete {
                // A sign with a meaning, or the bytes before it.
                let rest = &buffer[used..];
                let is_sign =
                    |byte: &u8| matches!(byte, b'"' | b'\r' | b'\n') || *byte == self.separator;
                let piece = &rest[..rest.iter().position(is_sign).unwrap_or(rest.len()).max(1)];
                used += piece.len();
                let line = self.line;
                self.line +=
                    u64::from(piece[0] == b'\r' || piece[0] == b'\n' && !self.follows_return);
                self.follows_return = piece[0] == b'\r';
                let is_quoted = row.state == QuoteState::Quoted;
                if matches!(piece[0], b'\r' | b'\n') && !is_quoted {
                    is_complete = row.lines.start > 0;
                    continue;
                }
                if row.lines.start == 0 {
                    row.lines.start = line;
                }
                row.bytes += piece.len();
                if row.bytes > self.bounds.line_bytes {
                    row.fault = Some(self.bounds.table_row_fault(is_quoted));
                    self.is_over = true;
                    is_complete = true;
                } else {
                    row.take(piece, self.separator);
                }
            }
            self.from.consume(used);
        }
        row.finish(self.line);
        Ok((row.lines.start > 0).then_some(row))
    }
}

/// Returns a cell. `encoding` is the probable encoding of a file that is neither UTF-8 nor UTF-16.
fn cell(bytes: &[u8], encoding: Option<&str>) -> TableCell {
    let fault = match (std::str::from_utf8(bytes), encoding) {
        (Ok(text), _) => return TableCell::text(text),
        (Err(_), Some(encoding)) => message!("is not UTF-8, but probably {encoding}; {REMEDY}"),
        (Err(_), None) => message!("is not UTF-8; {REMEDY}"),
    };
    TableCell {
        fault: Some(fault),
        ..TableCell::text(String::from_utf8_lossy(bytes))
    }
}

/// Returns the separator of a table: that of the line with the most known columns. Perhaps no column is known, because the
/// header is in another language. Then it is the most frequent one in the first line.
fn find_separator(beginning: &[u8], kind: RowKind, options: &ReadOptions) -> u8 {
    let is_known = |cell: &&str| {
        let name = cell.trim().trim_matches('"');
        ColumnMeaning::find(kind.table(), options, name, 1, None).is_some()
            || known_name(kind, name).is_some()
    };
    let lines = beginning.split(|byte| matches!(byte, b'\n' | b'\r'));
    let lines = lines.map(|line| String::from_utf8_lossy(&line[..line.len().min(1 << 14)]));
    let lines: Vec<Cow<'_, str>> = lines.take(2 * BEGINNING_LINES).collect();
    // In reverse, since `max_by_key` returns the last maximum.
    let best = ['|', '\t', ';', ','].into_iter().max_by_key(|separator| {
        let known = lines
            .iter()
            .map(|line| line.split(*separator).filter(is_known).count());
        (known.max(), lines[0].matches(*separator).count())
    });
    let best = best.and_then(|separator| u8::try_from(separator).ok());
    best.unwrap_or(b',')
}

impl CsvRow {
    /// Adds a sign with a meaning, or a text.
    fn take(&mut self, piece: &[u8], separator: u8) {
        self.state = match (self.state, piece[0]) {
            (QuoteState::CellStart, b'"') => QuoteState::Quoted,
            (QuoteState::Quoted, b'"') => QuoteState::QuoteInQuoted,
            (state, byte) if byte == separator && state != QuoteState::Quoted => {
                self.end_cell();
                QuoteState::CellStart
            }
            (QuoteState::QuoteInQuoted, byte) if byte != b'"' => {
                // Probably a quote was not closed in a line above.
                if self.cell.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
                    let message =
                        "has text after a closing quote; within a quoted cell, double every quote";
                    self.fault.get_or_insert(message.into());
                }
                self.has_stray_quotes = true;
                let first = self.cell.len();
                self.cell.push(b'"');
                self.cell.extend_from_slice(piece);
                QuoteState::AfterStray(first)
            }
            (state, _) => {
                self.cell.extend_from_slice(piece);
                match state {
                    QuoteState::AfterStray(_) => state,
                    QuoteState::CellStart | QuoteState::Plain => QuoteState::Plain,
                    QuoteState::Quoted | QuoteState::QuoteInQuoted => QuoteState::Quoted,
                }
            }
        };
    }

    /// Ends a cell. If its last sign is a quote, this closes it, and the others are text: `"National "North""`.
    /// Otherwise the first one closed it, as spreadsheet programs read `"25.18"%`.
    fn end_cell(&mut self) {
        if let QuoteState::AfterStray(first) = self.state
            && self.cell.pop_if(|last| *last == b'"').is_none()
        {
            self.cell.remove(first);
        }
        self.cells.push_field(&self.cell);
        self.cell.clear();
    }

    /// Ends the row before the line `end`.
    fn finish(&mut self, end: u64) {
        self.lines.end = end;
        self.end_cell();
        if self.state == QuoteState::Quoted {
            let message =
                "opens a quote that is never closed; close it, or double it within a quoted cell";
            self.fault.get_or_insert(message.into());
        }
    }
}

/// Returns true for the line below the header of a table in Markdown, such as `|:---|---:|`.
fn is_ruler(cells: &[TableCell]) -> bool {
    let mut texts = cells.iter().map(|cell| cell.text.trim());
    let mut words = texts.clone().map(|text| text.trim_matches([':', '-']));
    words.all(str::is_empty) && texts.any(|text| text.contains("--"))
}

/// Replaces a formula by what it shows: `="0028-4793"`, or a link.
fn show_formula(cell: &mut TableCell) {
    let Some(formula) = cell.text.strip_prefix('=') else {
        return;
    };
    let parts: Vec<&str> = formula.split('"').collect();
    let is_link = |name: &str| name.trim().eq_ignore_ascii_case("HYPERLINK(");
    let (text, link) = match *parts {
        ["", text, ""] => (text, None),
        [name, link, ")"] if is_link(name) => (link, Some(link)),
        [name, link, "," | ";" | ", " | "; ", text, ")"] if is_link(name) => (text, Some(link)),
        _ => return,
    };
    cell.link = link.map(str::to_owned);
    cell.text = text.to_owned();
}

#[cfg(test)]
mod tests {
    use csv::ReaderBuilder;

    use super::*;
    use crate::import::findings::Findings;
    use crate::import::read::options::OptionEffects;
    use crate::import::read::options::samples::sample_options;
    use crate::import::read::table_cell::Notation;
    use crate::import::read::tabular::TableReader;
    use crate::import::row_faults::UnknownNames;
    use crate::import::rows::{FileRows, ImportRow};
    use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields};

    /// Returns the rows in a short form, and then the faults.
    fn read<F: Fields>(content: &[u8]) -> String {
        read_within::<F>(content, Bounds::default())
    }

    fn read_within<F: Fields>(content: &[u8], bounds: Bounds) -> String {
        read_as::<F>(
            content,
            &ReadOptions {
                bounds,
                ..ReadOptions::default()
            },
        )
    }

    fn read_as<F: Fields>(content: &[u8], options: &ReadOptions) -> String {
        let (mut rows, mut bad) = (Vec::<ImportRow<F>>::new(), Findings::default());
        let file = "f".into();
        let (unknown, mut warnings) = (
            UnknownNames::new(options.ignore_unknown),
            Findings::default(),
        );
        let mut effects = OptionEffects::default();
        let mut read = FileRows {
            file: &file,
            options,
            rows: &mut rows,
            bad: &mut bad,
            unknown,
            warnings: &mut warnings,
            effects: &mut effects,
        };
        let csv = CsvTable::open(content, F::STEM.parse().unwrap(), options).unwrap();
        let mut table = TableReader::new(
            &mut read,
            Notation {
                has_semicolons: csv.separator == b';',
                ..options.notation()
            },
        );
        csv.read(&mut table).unwrap();
        table.finish();
        let mut shown = String::new();
        for ImportRow {
            position,
            id,
            edit,
            is_bad,
            ..
        } in &rows
        {
            let edit = match edit.is_removal {
                true => "removed".to_owned(),
                false => edit.statement.to_string(),
            };
            let id = id.map_or("?".to_owned(), |id| id.to_string());
            let line = format!(
                "{}:{id}{} {edit}",
                position.line,
                if *is_bad { "!" } else { "" }
            );
            shown += &format!("{}\n", line.trim_end());
        }
        shown + &bad.to_string()
    }

    #[test]
    fn rows_are_read_with_their_lines() {
        let cases = cases![
            "", "";
            "id,name\n", "";
            "id\n5\n\n6", "2:5\n4:6\n";
            "id,name\r\n1,A\r\n2,\r\n", "2:1 name=\"A\"\n3:2 name=null\n";
            "id,name\r1,\"A\rB\"\r\r2,\r", "2:1 name=\"A\\rB\"\n5:2 name=null\n";
            "\n\nname,id\n\nA,1\n", "5:1 name=\"A\"\n";
            "id,name,url\r\n1,\"A\r\nB\",x\r\n\r\n2,\"\n\",\n3,a,b",
                concat!("2:1 name=\"A\\r\\nB\" url=\"x\"\n", "5:2 name=\"\\n\" url=null\n", "7:3 name=\"a\" url=\"b\"\n");
            "id,type\n1,\"a \"\"b\"\", c\"\n2,5\" x\n", "2:1 type=\"a \\\"b\\\", c\"\n3:2 type=\"5\\\" x\"\n";
            "id;name;;\n1;A;;\n;;;\n", "2:1 name=\"A\"\n";
            "ID\tName\n1\tA,B\n", "2:1 name=\"A,B\"\n";
            "id|name\n1|A\n", "2:1 name=\"A\"\n";
            "sep=;\r\nid;name\r\n1;A\r\n", "3:1 name=\"A\"\n";
            "Our list;\n;\nid;name\n1;A\n", "4:1 name=\"A\"\n";
            "id,deleted,name\n1,TRUE,A\n2,,B\n3,no,C\n", "2:1 removed\n3:2 name=\"B\"\n4:3 name=\"C\"\n";
            "id,name\n1,'=x\n2,''=x\n3,'x\n", "2:1 name=\"=x\"\n3:2 name=\"'=x\"\n4:3 name=\"'x\"\n";
            "id,name\n1,O'Hara's \"B\"\n2,\"'\"\"'\"\n", "2:1 name=\"O'Hara's \\\"B\\\"\"\n3:2 name=\"'\\\"'\"\n";
            "url,ID,NAME\r\nx,1,A\r\n\r\n\r\n", "2:1 name=\"A\" url=\"x\"\n";
            "id,Name\n1,A\n\n,\n \n", "2:1 name=\"A\"\n";
            "sep=\t\r\nid\tname\r\n1\tA\r\n", "3:1 name=\"A\"\n";
            "\"sep=|\"\nid|name\n1|A\n", "3:1 name=\"A\"\n";
            "id,name\n9007199254740991,A\n", "2:9007199254740991 name=\"A\"\n";
            "Removed in 2026\nid,deleted\n1,TRUE\n", "3:1 removed\n";
            "A title,\nid,updated_at\n1,x\n", "3:1\n";
        ];
        for (content, expected) in cases {
            let found = read::<OrganizationFields>(content.as_bytes());
            assert_eq!(found, expected, "{content:?}");
        }
    }

    #[test]
    fn nested_fields_are_columns() {
        assert_eq!(
            read::<ConferenceFields>(
                b"id,formats_e_poster,updated_at,tags\n7,TRUE,x,A: b: c; D: e\n"
            ),
            "2:7 tags=[] formats.e_poster=true Tags([Label(\"A: b: c\"), Label(\"D: e\")])\n"
        );
    }

    #[test]
    fn faults_of_csv_rows_are_reported_with_file_and_line() {
        let cases = cases![
            "id,nmae\n1,A\n", "2:1!\nf:1: nmae: unknown column; did you mean `name`?";
            "id,name,name\n1,A,B\n",
                "f:2: `B` - the columns B (`name`) and C (`name`) have one header, and differ here; ignore one of";
            // Names that begin with a column's name, or are the beginning of one.
            "id,nam\n1,A\n", "f:1: nam: unknown column; did you mean `name`?";
            "id,names\n1,A\n", "f:1: names: unknown column; did you mean `name`?";
            "id,n\n1,A\n", "f:1: n: unknown column";
            "id,Name,NAME\n1,A,A\n2,B,\n3,,C\n", "2:1 name=\"A\"\n3:2 name=\"B\"\n4:3 name=\"C\"\n";
            "id,delete\n1,TRUE\n", "f:1: delete: unknown column";
            "id,id\n1,2\n", "f:2: `2` - the columns A (`id`) and B (`id`) have one header, and differ here";
            "id,,name\n1,x,A\n",
                "f:2: `x` - has a value in column B, which has no name; name it, clear the cell, or read it with --map '=B=FIELD'";
            "id,name\n1,A,x\n", "f:2: has 3 cells, but the header has 2";
            "name\nA\n", "2:? name=\"A\"\n";
            "abbv\nA\n", "f:1: id: there is no column `id`, and none of the columns that identify";
            "id,R\u{e9}union,d\u{e9}but\n",
                "f:1: is not UTF-8, but probably windows-1252; save the file again: in Excel as";
            "id;Titel;Ort\n1;A;B\n", "f:1: Titel: unknown column";
            "id;Titel;Ort\n1;A;B\n", "f:1: Ort: unknown column";
            "Nummer;Titel;Ort\n1;A;B\n", "f:1: Ort: unknown column";
            "id,name\n0901,A\n",
                "f:2: id: `0901` - an id is a whole number from 1 to 9007199254740991, without zeros before it";
            "i\0d\0", "f:1: begins with NUL bytes";
            "idd,name\n1,A\n", "f:1: idd: unknown column; did you mean `id`? Then rename it, or add --map 'idd=id'";
            "id,name\n1\n", "f:2: has one cell, but the header has 2; if it is a note, leave an empty line above it";
            "id,name\n1,A,B\n2,C\n", "3:2 name=\"C\"\nf:2: has 3 cells, but the header has 2";
            "id,name\n,A\n", "2:? name=\"A\"";
            "id,name\n0,B\n-1,C\n5.0,D\n9007199254740992,E\n", "f:5: id: `9007199254740992` - an id is";
            "id,name\n1,\"A\n2,B\n3,C\n", "f:2: opens a quote that is never closed";
            "id,name\n1,\"A\n2,\"B\"\n", "f:2: has text after a closing quote";
            "\"id,name\n1,A\n", "f:1: opens a quote that is never closed";
        ];
        for (content, expected) in cases {
            let bytes = content.chars();
            let bytes: Vec<u8> = bytes.map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
            let shown = read::<OrganizationFields>(&bytes);
            assert!(shown.contains(expected), "{content:?}: {shown}");
        }
        let shown =
            read::<ConferenceFields>(b"id,city,year,formats_oral\n1,\xff,26,maybe\n2,x,2026,\n");
        assert_eq!(
            shown,
            "2:1!\n3:2 year=2026 city=\"x\" formats.oral=null\n\
         f:2: city: `\u{fffd}` - is not UTF-8, but probably windows-1252; save the file again: in Excel as \
         `CSV UTF-8`, in LibreOffice \
         with the character set `Unicode (UTF-8)`, or as .xlsx\n\
         f:2: year: `26` - write a year from 1900 to 2100\n\
         f:2: formats_oral: `maybe` - write TRUE or FALSE"
        );
    }

    #[test]
    fn points_that_may_group_digits_are_refused_where_groups_are_likely() {
        let cases = cases![
            "id;sjr\n1;3.000\n", "f:2: sjr: `3.000` - may be 3000 or 3,";
            "id;sjr\n1;3,5\n", "2:1 sjr=3.5\n";
            "id,sjr\n1,3.125\n", "2:1 sjr=3.125\n";
            // Without `;` and `--decimal comma`, a comma groups digits.
            "id,sjr\n1,3.125\n2,\"1,250.5\"\n", "2:1 sjr=3.125\n3:2 sjr=1250.5\n";
            "id,sjr\n1,3.125\n2,\"1.250,5\"\n", "f:3: sjr: `1.250,5` - has a decimal comma";
            "id\tsjr\n1\t1.250.000\n", "f:2: sjr: `1.250.000` - groups digits by points";
            "id,publishing_apc_usd\n1,2.500\n", "f:2: publishing_apc_usd: `2.500` - may be 2500 or 2.5,";
            "id,publishing_apc_usd\n1,2.50\n", "2:1 publishing.apc_usd=2.5\n";
        ];
        for (content, expected) in cases {
            let shown = read::<JournalFields>(content.as_bytes());
            // Rows are expected without faults.
            let is_right = if expected.ends_with('\n') {
                shown == expected
            } else {
                shown.contains(expected)
            };
            assert!(is_right, "{content:?}: {shown}");
        }
    }

    #[test]
    fn a_header_is_sought_below_twenty_rows() {
        for (above, expected) in cases![
            20, "22:1 name=\"A\"\n";
            21, "f:1: id: there is no column `id`, and none of the columns that identify rows without ids (`name`)";
        ] {
            let content = format!("{}id,name\n1,A\n", "title,of the list\n".repeat(above));
            let shown = read::<OrganizationFields>(content.as_bytes());
            assert!(shown.contains(expected), "{above}: {shown}");
        }
    }

    #[test]
    fn names_are_mapped_before_the_header_is_sought() {
        let columns = ["Nummer=id", "Titel=name", "Weg=deleted"];
        let (mapped, matched) = (
            sample_options(&columns, &[]),
            sample_options(&columns, &["name"]),
        );
        let cases = cases![
            &mapped, "Nummer;Titel\n1;A\n", "2:1 name=\"A\"\n";
            &mapped, "Unsere Liste\n\nNummer;Titel;Weg\n1;A;\n2;B;ja\n", "4:1 name=\"A\"\n5:2 removed\n";
            &mapped, "id,Nummer\n1,2\n", "the columns `id` and `Nummer` are both read as `id`";
            &matched, "Titel\nA\n", "2:? name=\"A\"\n";
            &matched, "Nummer,Titel\n,A\n", "2:? name=\"A\"";
            &matched, "url\nx\n", "no column `id`, and none of the columns that identify rows without ids (`name`)";
        ];
        for (options, content, expected) in cases {
            let shown = read_as::<OrganizationFields>(content.as_bytes(), options);
            assert!(shown.contains(expected), "{content:?}: {shown}");
        }
    }

    #[test]
    fn rows_and_columns_beyond_a_bound_are_refused() {
        let lines = Bounds {
            line_bytes: 8,
            ..Bounds::default()
        };
        let rows = Bounds {
            rows: 2,
            ..Bounds::default()
        };
        let columns = Bounds {
            columns: 2,
            ..Bounds::default()
        };
        let unread = "the row is longer than 8 bytes, and the rest of the table is not read;";
        let cases = cases![
            lines, "id,name\n1,123456\n", "2:1 name=\"123456\"\n".to_owned();
            lines, "id,name\n1,2\n1,1234567\n2,x\n", format!("2:1 name=\"2\"\nf:3: {unread} correct it");
            lines, &format!("id,name\n\n1,\"A{}", "\n2,B".repeat(100_000)),
                format!("f:3: {unread} close the quote that it opens");
            lines, "id,name12\n1,x\n", format!("f:1: {unread} correct it");
            rows, "id\n1\n2\n\n", "2:1\n3:2\n".to_owned();
            rows, "id\n1\n2\n3\n4\n", "2:1\n3:2\nf:4: the file has more than 2 rows; split it".to_owned();
            columns, "id,name,abbv\n1,A,B\n",
                "f:1: has more than 2 columns; remove those that are not fields".to_owned();
        ];
        for (bounds, content, expected) in cases {
            let found = read_within::<OrganizationFields>(content.as_bytes(), bounds);
            assert_eq!(found, expected, "{content:.60}");
        }
    }

    #[test]
    fn many_columns_take_no_square_of_their_number() {
        let bounds = Bounds {
            columns: usize::MAX,
            ..Bounds::default()
        };
        let header: String = (0..200_000).map(|at| format!(",nam{at}")).collect();
        let shown = read_within::<OrganizationFields>(format!("id{header}\n").as_bytes(), bounds);
        let looked_up = shown.matches("did you mean `name`").count();
        assert!(
            (1..=1_000).contains(&looked_up) && shown.lines().count() == Findings::MAX_KEPT,
            "{looked_up} looked up"
        );
    }

    /// The line of a row, and its cells and whether they have stray quotes, or its fault.
    type ReadRow = (u64, Result<(Vec<Vec<u8>>, bool), Message>);

    fn rows(content: &[u8], max_bytes: usize) -> Vec<ReadRow> {
        let mut table = CsvTable::new(
            content,
            Bounds {
                line_bytes: max_bytes,
                ..Bounds::default()
            },
            b',',
        );
        let mut rows = Vec::new();
        while let Some(row) = table.next().unwrap() {
            let cells = row.cells.iter().map(<[u8]>::to_vec).collect();
            let read = (cells, row.has_stray_quotes);
            rows.push((row.lines.start, row.fault.take().map_or(Ok(read), Err)));
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
            let mut reader = ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(content.as_slice());
            let mut expected = Vec::new();
            let (mut record, mut at) = (ByteRecord::new(), 0);
            while reader.read_byte_record(&mut record).unwrap() {
                let blank = content[at..]
                    .iter()
                    .take_while(|byte| matches!(byte, b'\r' | b'\n'))
                    .count();
                let above = &content[..at + blank];
                let pairs = above.windows(2).filter(|pair| *pair == b"\r\n").count();
                let line = 1 + above
                    .iter()
                    .filter(|byte| matches!(byte, b'\r' | b'\n'))
                    .count()
                    - pairs;
                let cells: Vec<Vec<u8>> = record.iter().map(<[u8]>::to_vec).collect();
                expected.push((u64::try_from(line).unwrap(), cells));
                at = usize::try_from(reader.position().byte()).unwrap();
            }
            let read = rows(&content, usize::MAX);
            assert_eq!(
                read.len(),
                expected.len(),
                "{:?}",
                String::from_utf8_lossy(&content)
            );
            for ((line, row), (expected_line, cells)) in read.into_iter().zip(expected) {
                assert_eq!(
                    line,
                    expected_line,
                    "{:?}",
                    String::from_utf8_lossy(&content)
                );
                match row {
                    Ok((row, false)) => {
                        assert_eq!(row, cells, "{:?}", String::from_utf8_lossy(&content))
                    }
                    // Stray quotes change the text of cells, but not their number.
                    Ok((row, true)) => {
                        assert_eq!(
                            row.len(),
                            cells.len(),
                            "{:?}",
                            String::from_utf8_lossy(&content)
                        );
                        stray += 1;
                    }
                    Err(_) => faulty += 1,
                }
            }
        }
        assert!(
            faulty > 1_000 && stray > 1_000,
            "{faulty} rows had a fault, {stray} had stray quotes"
        );
    }

    #[test]
    fn a_long_row_ends_the_table() {
        let bounds = Bounds {
            line_bytes: 3,
            ..Bounds::default()
        };
        let long = |in_quotes| Err(bounds.table_row_fault(in_quotes));
        let cells = |cells: &[&str]| {
            Ok((
                cells.iter().map(|cell| cell.as_bytes().to_vec()).collect(),
                false,
            ))
        };
        let cases: [(&str, Vec<ReadRow>); 6] = cases![
            "a,b\nc,d\n", vec![(1, cells(&["a", "b"])), (2, cells(&["c", "d"]))];
            "a,b\r\n\r\nc,dd\n", vec![(1, cells(&["a", "b"])), (3, long(false))];
            "a\n\"b\nc\nd\ne\n", vec![(1, cells(&["a"])), (2, long(true))];
            "\"a\"\n\"b\"x\n", vec![(1, cells(&["a"])), (2, long(false))];
            "abcd", vec![(1, long(false))];
            "abc", vec![(1, cells(&["abc"]))];
        ];
        for (content, expected) in cases {
            assert_eq!(rows(content.as_bytes(), 3), expected, "{content:?}");
        }
    }

    #[test]
    fn quotes_within_a_cell_are_text() {
        let cases = cases![
            r#""25.18"%,x"#, "25.18%|x";
            r#"x,"25.18"%"#, "x|25.18%";
            r#""25.18"%,"#, "25.18%|";
            r#""National University "North"",x"#, "National University \"North\"|x";
            r#""National University "North"""#, "National University \"North\"";
            r#"""North" University",x"#, "\"North\" University|x";
            r#""a "b, c" d",x"#, "a b| c\" d\"|x";
            r#""A, "B", C"#, "A, \"B| C";
            r#""a ""b"" "c" d""#, "a \"b\" \"c\" d";
            r#""a" ,x"#, "a |x";
            r#""a"b"c,x"#, "ab\"c|x";
        ];
        for (line, expected) in cases {
            for end in ["", "\n", "\r\n", "\n1,2\n"] {
                let (_, row) = &rows(format!("{line}{end}").as_bytes(), usize::MAX)[0];
                let (cells, has_stray_quotes) = row.as_ref().unwrap();
                let cells = cells.iter();
                let cells: Vec<_> = cells.map(|cell| String::from_utf8_lossy(cell)).collect();
                assert_eq!(cells.join("|").as_str(), expected, "{line}");
                assert_eq!(has_stray_quotes, &true, "{line}");
            }
        }
        for line in [r#"a "b" c,"d ""e""","#, r#"5" x,"a""#] {
            assert!(
                matches!(rows(line.as_bytes(), usize::MAX)[..], [(1, Ok((_, false)))]),
                "{line}"
            );
        }
        // The quote of the first line was not closed.
        for table in ["\"A\n2,\"B\"\n", "\"A\r2,\"B\"\n", "\"A,\n2,B\n\"3\"\",C\""] {
            let (line, row) = &rows(table.as_bytes(), usize::MAX)[0];
            assert!(
                *line == 1 && row.as_ref().is_err_and(|fault| fault.contains("quote")),
                "{table:?}: {row:?}"
            );
        }
    }

    #[test]
    fn cells_lose_what_is_around_their_values() {
        let cases = [
            ("=\"0028-4793\"", "0028-4793", ""),
            (
                "=HYPERLINK(\"https://a.example\",\"Heart A\")",
                "Heart A",
                "https://a.example",
            ),
            (
                "=hyperlink(\"https://a.example\"; \"Heart A\")",
                "Heart A",
                "https://a.example",
            ),
            (
                "=HYPERLINK(\"https://a.example\")",
                "https://a.example",
                "https://a.example",
            ),
            (
                "=HYPERLINK(A1,\"Heart A\")",
                "=HYPERLINK(A1,\"Heart A\")",
                "",
            ),
            ("=A1&\"x\"", "=A1&\"x\"", ""),
        ];
        for (text, expected, link) in cases {
            let mut cell = TableCell::text(text);
            show_formula(&mut cell);
            let found = (&*cell.text, cell.link.as_deref().unwrap_or_default());
            assert_eq!(found, (expected, link), "{text}");
        }
    }

    #[test]
    fn rulers_are_known() {
        for (line, expected) in [
            ("|---|:---:|", true),
            ("| :--- | --: |", true),
            ("| - | - |", false),
            ("|---| A |", false),
        ] {
            let cells = line.split('|').map(TableCell::text);
            assert_eq!(is_ruler(&cells.collect::<Vec<_>>()), expected, "{line}");
        }
        let options = ReadOptions::default();
        let content = &b"| id | name |\n| --- | --- |\n| 1 | A |\n"[..];
        let table = CsvTable::open(content, RowKind::Organizations, &options).unwrap();
        let (file, mut rows) = ("f".into(), Vec::<ImportRow<OrganizationFields>>::new());
        let mut read = FileRows {
            file: &file,
            options: &options,
            rows: &mut rows,
            bad: &mut Findings::default(),
            unknown: UnknownNames::default(),
            warnings: &mut Findings::default(),
            effects: &mut OptionEffects::default(),
        };
        let mut reader = TableReader::new(&mut read, options.notation());
        let refused = table.read(&mut reader).unwrap_err();
        assert_eq!(refused.to_string(), MARKDOWN);
    }
}
