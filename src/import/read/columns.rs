//! The columns of a table: their names, and the fields that they contain.

use std::collections::HashMap;
use std::fmt;

use crate::import::read::options::{Given, MappedColumn, ReadOptions, columns_of};
use crate::import::read::tabular::TableCell;
use crate::import::report::faults::{RowFaults, shortened};
use crate::import::rows::ADDED_TO_RECORDS;
use crate::model::field::{Field, FieldTable};
use crate::model::fold::{comparable, is_blank};
use crate::model::message::{Message, message};
use crate::model::value::ValueKind;

/// The name of a column in an option: its header, `header#2` for the second column with this header, or `=D` for the
/// column D. In JSON, it is a key, or several that are joined by dots.
#[derive(Clone, Debug)]
pub struct ColumnName {
    text: String,
    comparable: String,
    /// The header and its number, from 1, in `header#2`.
    numbered: Option<(String, usize)>,
    /// The index in `=D`.
    index: Option<usize>,
}

impl From<&str> for ColumnName {
    fn from(text: &str) -> ColumnName {
        let numbered = text.rsplit_once('#').and_then(|(header, number)| {
            Some((comparable(header), number.trim().parse().ok().filter(|number| *number > 0)?))
        });
        let index = text.trim().strip_prefix('=').and_then(index_of_letters);
        ColumnName { text: text.to_owned(), comparable: comparable(text), numbered, index }
    }
}

impl fmt::Display for ColumnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for ColumnName {
    fn eq(&self, other: &ColumnName) -> bool {
        self.comparable == other.comparable
    }
}

impl ColumnName {
    /// Returns true if the name means a column, by its comparable header, the number of the columns with this header so
    /// far, and its index.
    pub(in crate::import) fn matches(&self, header: &str, number: usize, index: Option<usize>) -> bool {
        self.comparable == header && !header.is_empty()
            || self.numbered.as_ref().is_some_and(|(name, wanted)| name == header && *wanted == number)
            || self.index.is_some() && self.index == index
    }

    /// Returns true if the name means one column, even if there are several with its header.
    pub(in crate::import) fn is_specific(&self) -> bool {
        self.numbered.is_some() || self.index.is_some()
    }
}

/// The meaning of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) enum ColumnMeaning {
    Id,
    /// Whether to remove the row.
    Deleted,
    /// The fields with these indexes in their table. Several share a cell.
    Fields(Vec<usize>),
    /// An accepted column without a meaning, or one that is already reported.
    Ignored,
    /// A column without a name. Its cells must be empty.
    Unnamed,
}

impl ColumnMeaning {
    /// Returns the meaning of a header; `None` for an unknown one. `number` counts the columns with this header so far,
    /// from 1. Case, blanks, `_`, `-` and `.` are ignored.
    pub fn find(
        table: &FieldTable,
        options: &ReadOptions,
        header: &str,
        number: usize,
        index: Option<usize>,
    ) -> Option<ColumnMeaning> {
        // No column name is that long.
        let header = if header.len() <= 256 { comparable(header) } else { return None };
        let own = |name: &str| {
            let is = |column: &str| comparable(column) == name;
            match () {
                () if is("id") => Some(ColumnMeaning::Id),
                () if is("deleted") => Some(ColumnMeaning::Deleted),
                () if is(ADDED_TO_RECORDS) => Some(ColumnMeaning::Ignored),
                () => Some(ColumnMeaning::Fields(vec![table.fields.iter().position(|field| is(&field.column))?])),
            }
        };
        match options.find_column(&header, number, index) {
            Some(MappedColumn::Ignored) => Some(ColumnMeaning::Ignored),
            Some(MappedColumn::Fields([name])) => own(&comparable(name)).or_else(|| own(&header)),
            Some(MappedColumn::Fields(names)) => field_indexes(table, names).map(ColumnMeaning::Fields),
            None => own(&header),
        }
    }
}

/// Returns the indexes of the fields with these names, if the table has all.
pub(in crate::import) fn field_indexes(table: &FieldTable, names: &[String]) -> Option<Vec<usize>> {
    names.iter().map(|name| table.fields.iter().position(|field| field.column == *name)).collect()
}

/// Returns true if the columns identify rows: one is the id, or a column of a match set.
pub(in crate::import) fn identify_rows<'m>(
    table: &FieldTable,
    sets: &[Vec<&str>],
    mut columns: impl Iterator<Item = &'m ColumnMeaning>,
) -> bool {
    let identifies =
        |field: &Field| sets.iter().flatten().any(|name| columns_of(name).contains(&field.column.as_str()));
    columns.any(|column| match column {
        ColumnMeaning::Id => true,
        ColumnMeaning::Fields(fields) => fields.iter().any(|at| identifies(&table.fields[*at])),
        _ => false,
    })
}

/// The columns of a table.
pub(in crate::import) struct Columns<'o> {
    /// The meaning of each column.
    pub meanings: Vec<ColumnMeaning>,
    /// The headers.
    names: Vec<String>,
    /// The meanings with a value, and the indexes of the columns that have it.
    pub sources: Vec<(ColumnMeaning, Vec<usize>)>,
    /// The indexes of columns, and the values that a row must have to be read.
    pub filters: Vec<(usize, &'o [String])>,
    /// The constants, by the index of the field.
    pub constants: Vec<(usize, &'o Given<(String, String)>)>,
}

impl<'o> Columns<'o> {
    /// Reads a header, and reports its faults. Returns `None` if it is unusable. `sets` are the match sets.
    pub fn read(
        header: &[TableCell<'_>],
        table: &'static FieldTable,
        options: &'o ReadOptions,
        sets: &[Vec<&str>],
        faults: &mut RowFaults<'_>,
    ) -> Option<Columns<'o>> {
        let width = header.iter().rposition(|cell| !cell.is_blank()).map_or(0, |last| last + 1);
        let header = &header[..width];
        if header.len() > options.bounds.columns {
            faults.push_row(None, options.bounds.columns_fault());
            return None;
        }
        if let Some(fault) = header.iter().find_map(|cell| cell.fault.as_ref()) {
            faults.push_row(None, fault.clone());
            return None;
        }
        let known: Vec<&str> = std::iter::once("id").chain(table.fields.iter().map(|field| &*field.column)).collect();
        let mut columns = Columns {
            meanings: Vec::with_capacity(header.len()),
            names: header.iter().map(|cell| cell.text.trim_matches(is_blank).to_owned()).collect(),
            sources: Vec::new(),
            filters: Vec::new(),
            constants: Vec::new(),
        };
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for (at, name) in columns.names.iter().enumerate() {
            let number = numbers.entry(comparable(name)).or_default();
            *number += 1;
            let meaning = ColumnMeaning::find(table, options, name, *number, Some(at));
            if meaning.is_none() && !name.is_empty() {
                faults.push_unknown("column", "", name, &known);
            }
            let unknown = if name.is_empty() && !options.ignore_unknown {
                ColumnMeaning::Unnamed
            } else {
                ColumnMeaning::Ignored
            };
            columns.meanings.push(meaning.unwrap_or(unknown));
        }
        columns.find_sources(table, faults);
        columns.find_filters(options, faults);
        columns.find_constants(table, options, faults);
        if identify_rows(table, sets, columns.meanings.iter()) {
            return Some(columns);
        }
        faults.push(&"id", missing_id(sets));
        None
    }

    /// Collects the columns of each meaning. Several columns may have one only if they are joined to a list, or have
    /// equal headers.
    fn find_sources(&mut self, table: &FieldTable, faults: &mut RowFaults<'_>) {
        let is_joined = |meaning: &ColumnMeaning| {
            let ColumnMeaning::Fields(fields) = meaning else { return false };
            fields.iter().all(|at| matches!(table.fields[*at].kind, ValueKind::Texts | ValueKind::Links(_)))
        };
        for (at, meaning) in self.meanings.iter().enumerate() {
            if matches!(meaning, ColumnMeaning::Ignored | ColumnMeaning::Unnamed) {
                continue;
            }
            let overlaps = |other: &ColumnMeaning| match (meaning, other) {
                (ColumnMeaning::Fields(these), ColumnMeaning::Fields(others)) => {
                    these.iter().any(|at| others.contains(at))
                }
                _ => meaning == other,
            };
            let Some((other, columns)) = self.sources.iter_mut().find(|(other, _)| overlaps(other)) else {
                self.sources.push((meaning.clone(), vec![at]));
                continue;
            };
            let (first, name) = (&self.names[columns[0]], &self.names[at]);
            if other == meaning && (is_joined(meaning) || comparable(first) == comparable(name)) {
                columns.push(at);
                continue;
            }
            let field = match meaning {
                ColumnMeaning::Fields(fields) => table.fields[fields[0]].column.as_str(),
                _ => "id",
            };
            faults.push(
                &shortened(name),
                message!(
                    "the columns `{}` and `{}` are both read as `{field}`; map or ignore one of them",
                    shortened(first),
                    shortened(name)
                ),
            );
        }
    }

    fn find_filters(&mut self, options: &'o ReadOptions, faults: &mut RowFaults<'_>) {
        for Given { value: (column, values), origin } in &options.filters {
            let mut numbers: HashMap<String, usize> = HashMap::new();
            let found = self.names.iter().enumerate().position(|(at, name)| {
                let number = numbers.entry(comparable(name)).or_default();
                *number += 1;
                column.matches(&comparable(name), *number, Some(at))
            });
            match found {
                Some(at) => self.filters.push((at, values)),
                None => faults.push(&column, message!("{origin}: the file has no column `{column}`; write its header")),
            }
        }
    }

    fn find_constants(&mut self, table: &FieldTable, options: &'o ReadOptions, faults: &mut RowFaults<'_>) {
        for given in &options.constants {
            let (field, origin) = (&given.value.0, &given.origin);
            let Some(index) = table.fields.iter().position(|known| known.column == *field) else { continue };
            let has = |(meaning, _): &&(ColumnMeaning, _)| matches!(meaning, ColumnMeaning::Fields(fields) if fields.contains(&index));
            match self.sources.iter().find(has) {
                Some((_, columns)) => {
                    let column = shortened(&self.names[columns[0]]);
                    faults.push(field, message!("{origin}: the column `{column}` has its values; ignore the column, or leave out the constant"));
                }
                None => self.constants.push((index, given)),
            }
        }
    }

    /// Returns true if a row has a number as its id.
    pub fn has_id(&self, cells: &[TableCell<'_>]) -> bool {
        let at = self.meanings.iter().position(|meaning| *meaning == ColumnMeaning::Id);
        at.and_then(|at| cells.get(at)).is_some_and(|cell| cell.text.trim().parse::<u64>().is_ok())
    }

    /// Returns the header of a column for messages.
    pub fn name(&self, at: usize) -> String {
        format!("{} (`{}`)", column_letters(at), shortened(&self.names[at]))
    }
}

/// Returns the message for a header whose columns identify no rows.
pub(in crate::import) fn missing_id(sets: &[Vec<&str>]) -> Message {
    if sets.is_empty() {
        return "the column `id` is missing; the first row must name the columns, including `id`; a file without ids needs \
                --match, or a recipe"
            .into();
    }
    let names: Vec<&str> = sets.iter().flatten().copied().collect();
    message!(
        "there is no column `id`, and none of the columns that identify rows without ids (`{}`)",
        names.join("`, `")
    )
}

/// Returns the spreadsheet name of the column with this index: `A` for 0.
pub(in crate::import) fn column_letters(at: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(at % 26).unwrap_or(0));
    let before = if at < 26 { String::new() } else { column_letters(at / 26 - 1) };
    format!("{before}{letter}")
}

/// Returns the index of the column with this spreadsheet name: 0 for `A`.
fn index_of_letters(letters: &str) -> Option<usize> {
    let is_name = (1..=3).contains(&letters.len()) && letters.bytes().all(|byte| byte.is_ascii_alphabetic());
    let value = |letter: u8| usize::from(letter.to_ascii_uppercase() - b'A' + 1);
    is_name.then(|| letters.bytes().fold(0, |sum, letter| sum * 26 + value(letter)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields};

    #[test]
    fn columns_have_the_letters_of_spreadsheets() {
        for (at, expected) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA")] {
            assert_eq!(column_letters(at), expected);
            assert_eq!(index_of_letters(expected), Some(at));
        }
        assert_eq!((index_of_letters("d"), index_of_letters(""), index_of_letters("A1")), (Some(3), None, None));
    }

    #[test]
    fn column_names_match_headers() {
        let cases = [
            ("Journal name", "journalname", 1, Some(0), true),
            ("Publisher", "publisher", 2, Some(4), true),
            ("Publisher#2", "publisher", 2, Some(4), true),
            ("Publisher#2", "publisher", 1, Some(2), false),
            // A header that has the sign itself.
            ("Society #1", "society#1", 1, Some(2), true),
            ("=D", "", 1, Some(3), true),
            ("=D", "d", 1, Some(2), false),
            ("venue.name", "venuename", 1, None, true),
            ("", "", 1, Some(0), false),
        ];
        for (name, header, number, index, expected) in cases {
            assert_eq!(ColumnName::from(name).matches(header, number, index), expected, "{name} {header} {number}");
        }
    }

    #[test]
    fn no_two_columns_look_the_same() {
        fn check<F: Fields>() {
            let mut names: Vec<String> = F::table().fields.iter().map(|field| comparable(&field.column)).collect();
            names.extend(["id", "deleted", "updatedat"].map(str::to_owned));
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count);
        }
        check::<ConferenceFields>();
        check::<JournalFields>();
        check::<OrganizationFields>();
        check::<TagFields>();
    }
}
