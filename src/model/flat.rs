//! Rows as cells of a table: the CSV of exports and imports (contract, "GET /exports/{dataset}").

use std::borrow::Cow;
use std::io::{self, Write};

use super::curated::{Curated, Fields};
use super::field::FieldTable;
use super::time::Timestamp;
use super::value::LinkTexts;
use super::value::json::is_line_end;
pub use super::value::text::looks_like_formula;

/// The first bytes of a CSV file: the byte-order mark of UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Writes a line of CSV (RFC 4180). Cells are quoted if a reader may split them: at its own separator, or at a line
/// end.
pub fn write_row(
    out: &mut (impl Write + ?Sized),
    cells: impl IntoIterator<Item = impl AsRef<str>>,
) -> io::Result<()> {
    for (at, cell) in cells.into_iter().enumerate() {
        let cell = cell.as_ref();
        let before = if at > 0 { "," } else { "" };
        if cell.contains(|letter| {
            matches!(letter, '"' | ',' | ';' | '\t' | '\r' | '\n') || is_line_end(letter)
        }) {
            write!(out, "{before}\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            write!(out, "{before}{cell}")?;
        }
    }
    out.write_all(b"\r\n")
}

/// Writes the beginning of a CSV file: a byte-order mark, and the header.
pub fn write_header(
    out: &mut (impl Write + ?Sized),
    table: &FieldTable,
    are_records: bool,
) -> io::Result<()> {
    out.write_all(BYTE_ORDER_MARK)?;
    write_row(out, columns(table, are_records))
}

/// Returns the header of a CSV file: `id`, the fields, and `updated_at` for records.
pub fn columns(table: &FieldTable, are_records: bool) -> Vec<String> {
    let fields = table.fields.iter().map(|field| field.column.as_str());
    ["id"]
        .into_iter()
        .chain(fields)
        .chain(are_records.then_some("updated_at"))
        .map(str::to_owned)
        .collect()
}

/// Returns the cells of a row, in the order of its columns. `updated_at` is that of a record.
pub fn cells<'a, F: Fields>(
    row: &'a Curated<F>,
    updated_at: Option<Timestamp>,
    links: &'a dyn LinkTexts,
) -> Vec<Cow<'a, str>> {
    let values = row.fields().values();
    let mut cells = Vec::with_capacity(values.len() + 2);
    cells.push(Cow::Owned(row.id().to_string()));
    cells.extend(values.into_iter().map(|value| value.to_csv(links)));
    cells.extend(updated_at.map(|time| Cow::Owned(time.to_string())));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_a_reader_may_split_are_quoted() {
        let cases = [
            ("Congress", "Congress"),
            ("", ""),
            ("a b|c'", "a b|c'"),
            ("Congress;=1+1;x", "\"Congress;=1+1;x\""),
            ("a,b", "\"a,b\""),
            ("a\tb", "\"a\tb\""),
            ("a\nb", "\"a\nb\""),
            ("a\rb", "\"a\rb\""),
            ("a\u{85}b", "\"a\u{85}b\""),
            ("a\u{2028}b", "\"a\u{2028}b\""),
            ("\u{2029}", "\"\u{2029}\""),
            ("a\"b", "\"a\"\"b\""),
        ];
        for (cell, expected) in cases {
            let mut line = Vec::new();
            write_row(&mut line, ["1", cell, "x"]).unwrap();
            let found = String::from_utf8(line).unwrap();
            assert_eq!(found, format!("1,{expected},x\r\n"), "{cell:?}");
        }
    }
}
