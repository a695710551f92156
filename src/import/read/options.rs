//! Options for reading files. They come from the command line and from a [recipe](super::recipe).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use encoding_rs::Encoding;

use super::cells::normalize;
pub use super::column_name::ColumnName;
use super::dates::DateOrder;
use super::row_kind::RowKind;
use super::table_cell::{DecimalSign, Notation};
use crate::disk::describe_at;
use crate::import::findings::Finding;
pub(in crate::import) use crate::import::lint::ISSN_COLUMNS;
use crate::model::country::{is_country, same_country};
use crate::model::field::Field;
use crate::model::fold::{fold, is_blank, nearest};
use crate::model::message::{Message, message};
use crate::model::value::ValueKind;

/// Returns the columns that a field of `--match` compares.
pub(in crate::import) fn columns_of(field: &str) -> Vec<&str> {
    if field == "issn" {
        ISSN_COLUMNS.to_vec()
    } else {
        vec![field]
    }
}

/// Returns the columns of the fields with these names.
pub(in crate::import) fn all_columns(fields: &[String]) -> Vec<String> {
    let columns = fields.iter().flat_map(|field| columns_of(field));
    columns.map(str::to_owned).collect()
}

/// Fields that a row changes together with the first one.
const COMPANIONS: [&[&str]; 4] = [
    &["start_date", "start_date_status", "end_date"],
    &["abstract_due_date", "abstract_due_date_status"],
    &["late_breaking_due_date", "late_breaking_due_date_status"],
    &["impact_factor", "impact_factor_year"],
];

/// Returns the columns of fields, and those that change together with them.
pub(in crate::import) fn columns_with_companions(fields: &[String]) -> Vec<String> {
    let mut columns = all_columns(fields);
    for column in columns.clone() {
        let group = COMPANIONS.into_iter().find(|group| group[0] == column);
        columns.extend(group.into_iter().flatten().map(|name| (*name).to_owned()));
        if column.ends_with("_weeks") {
            columns.push(column.replace("_min_", "_max_"));
            columns.push(column.replace("_max_", "_min_"));
        }
    }
    columns
}

/// Options for reading files.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The limits on the input.
    pub bounds: Bounds,
    /// The encoding of texts that are neither UTF-8 nor UTF-16.
    pub encoding: TextEncoding,
    /// The sheets of a workbook to read. By default, its name or the names of the sheets decide.
    pub sheets: Vec<String>,
    /// The number of rows of a header, whose texts are joined by a blank. By default it is 1. Without a header, columns
    /// are named by their letters.
    pub header_rows: Option<usize>,
    /// Whether a recipe says how the files are read.
    pub has_recipe: bool,
    /// Whether to ignore unknown columns and fields, with a warning.
    pub ignore_unknown: bool,
    /// Whether to read only the mapped columns, not those that have the name of a field.
    pub only_mapped: bool,
    /// The columns and fields that have other names in the files, or are ignored.
    pub columns: Vec<Given<ColumnMapping>>,
    /// Constants for fields without a value in a row, by field.
    pub constants: Vec<Given<(String, String)>>,
    /// The sets of fields that identify records in rows without ids. They are tried one after the other. Files that are
    /// read with them are lists of others.
    pub matching: Vec<Given<Vec<String>>>,
    /// Whether rows that match no record are left out.
    pub leaves_out_new: bool,
    /// The fields that known records take from a list of others.
    pub update: Option<Given<Vec<String>>>,
    /// The fields that empty cells of a list of others clear.
    pub clear: Option<Given<Vec<String>>>,
    /// The values that rows must have to be read, or to have a field.
    pub filters: Vec<Given<RowFilter>>,
    /// The words of the files for values. The first one that fits counts.
    pub words: Vec<Given<Word>>,
    /// The separator of list items. By default it is `; `.
    pub list_separator: Option<String>,
    /// Whether to create unknown organizations and tags that records link to by name.
    pub create_links: bool,
    /// The decimal sign of ambiguous numbers.
    pub decimal: Option<DecimalSign>,
    /// The order of day and month in ambiguous dates.
    pub dates: Option<DateOrder>,
    /// Whether records that the files do not contain are removed. Then no row that may be a record is skipped.
    pub replace: bool,
}

/// The encoding of texts that are neither UTF-8 nor UTF-16.
#[derive(Clone, Copy, Debug, Default)]
pub enum TextEncoding {
    /// Such texts are refused.
    #[default]
    Refused,
    /// The encoding that a recipe names.
    Named(&'static Encoding),
    /// The most probable encoding.
    Guessed,
}

/// An option with a value, and its origin: `--map 'a=b'`, or the line of a recipe.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names explain the fields")]
pub struct Given<T> {
    pub value: T,
    pub origin: String,
}

/// The fields that a column contains. Several fields share its cells. An ignored column has none.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names explain the fields")]
pub struct ColumnMapping {
    pub column: ColumnName,
    pub fields: Vec<String>,
}

impl ColumnMapping {
    /// Creates the mapping of the column with this name.
    pub fn new(column: &str, fields: Vec<String>) -> ColumnMapping {
        ColumnMapping {
            column: column.into(),
            fields,
        }
    }
}

/// Rows without one of these values in a column are left out, or do not have a field.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names explain the fields")]
pub struct RowFilter {
    pub field: Option<String>,
    pub column: ColumnName,
    pub values: Vec<String>,
}

impl RowFilter {
    /// Returns true if a text is one of the values. Spellings of a country are equal.
    pub(in crate::import) fn accepts(&self, text: &str) -> bool {
        let text = text.trim_matches(is_blank);
        let mut values = self.values.iter();
        values.any(|value| is_same(value, text) || is_country(value) && same_country(value, text))
    }
}

/// A word of the files, and its meaning.
#[derive(Clone, Debug)]
pub struct Word {
    /// The field; `None` for all.
    pub field: Option<String>,
    /// The text in the files.
    pub text: String,
    /// The value; if empty, the text counts as empty.
    pub value: String,
}

impl Word {
    /// Creates a word that counts as empty in all fields.
    pub fn empty(text: String) -> Word {
        Word {
            field: None,
            text,
            value: String::new(),
        }
    }

    /// Returns true if a text is this word. A text that counts as empty is compared exactly.
    pub(in crate::import) fn is(&self, text: &str) -> bool {
        if self.value.is_empty() {
            self.text.trim() == text.trim()
        } else {
            is_same(&self.text, text)
        }
    }
}

/// The effects of options on the files so far.
#[derive(Clone, Debug, Default)]
pub struct OptionEffects {
    /// The indexes of the used column mappings.
    pub(in crate::import) used_columns: BTreeSet<usize>,
    /// The number of cells and rows with each effect.
    pub(in crate::import) counts: BTreeMap<OptionEffect, u64>,
    /// Whether a file has columns or members.
    pub(in crate::import) has_columns: bool,
    /// The number of rows of the current file so far.
    pub(in crate::import) rows_read: u64,
    /// The last lines of the headers, by file.
    pub(in crate::import) header_lines: BTreeMap<String, u64>,
}

/// An effect of an option on a cell or a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::import) enum OptionEffect {
    /// A cell of this column counts as empty, since it has this text.
    Emptied(String, String),
    /// A cell of this field is left empty by the filter of the field.
    Unmet(String),
    /// A row is left out by a filter.
    LeftOut,
}

/// The error of an option, a recipe or a file that cannot be used. The first member is the file of a recipe or rows.
#[derive(Debug, thiserror::Error)]
#[error("{1}")]
pub struct InputError(pub Option<PathBuf>, pub String);

impl InputError {
    pub(in crate::import) fn unreadable(path: &Path, error: &io::Error) -> InputError {
        let message = format!("cannot read {}", describe_at(path, error));
        InputError(Some(path.into()), message)
    }
}

/// The kinds of rows that are records.
const RECORDS: [RowKind; 2] = [RowKind::Conferences, RowKind::Journals];

/// Returns the fields of all kinds of rows.
fn all_fields() -> impl Iterator<Item = &'static Field> {
    let kinds = RECORDS.into_iter();
    let kinds = kinds.chain([RowKind::Organizations, RowKind::Tags]);
    kinds.flat_map(|kind| &kind.table().fields)
}

/// Returns the field of this name in the first kind of rows that has one.
pub(super) fn field_named(name: &str) -> Option<&'static Field> {
    all_fields().find(|field| field.column == name)
}

/// Returns the known field of this name.
pub(super) fn known_field(name: &str) -> Result<&'static Field, Message> {
    let names = all_fields().map(|field| &*field.column);
    field_named(name).ok_or_else(|| match nearest(name, names) {
        Some(near) => message!("there is no field `{name}`; did you mean `{near}`?"),
        None => message!(
            "there is no field `{name}`; `medfeed template KIND` prints those of a kind of rows"
        ),
    })
}

impl<T> Given<T> {
    /// Returns the error of an option that cannot be used.
    fn error(&self, message: impl fmt::Display) -> InputError {
        InputError(None, format!("{}: {message}", self.origin))
    }

    /// Adds the origin to a fault of the value.
    fn check(&self, checked: Result<(), Message>) -> Result<(), InputError> {
        checked.map_err(|fault| self.error(fault))
    }
}

impl ReadOptions {
    /// Checks that the options are consistent and name known fields.
    pub fn check(&self) -> Result<(), InputError> {
        for (at, given) in self.columns.iter().enumerate() {
            given.check(check_mapping(&given.value, &self.columns[..at]))?;
        }
        for given in &self.constants {
            let (name, value) = &given.value;
            given.check(self.check_value(name, value))?;
        }
        for given in &self.words {
            let word = &given.value;
            let mut names = word.field.iter();
            given.check(names.try_for_each(|name| self.check_value(name, &word.value)))?;
        }
        for given in &self.filters {
            given.check(check_names(given.value.field.as_slice()))?;
        }
        for given in &self.matching {
            given.check(check_match(&given.value))?;
        }
        for given in self.update.iter().chain(&self.clear) {
            given.check(check_names(&all_columns(&given.value)))?;
        }
        let (Some(update), Some(clear)) = (&self.update, &self.clear) else {
            return Ok(());
        };
        let taken = columns_with_companions(&update.value);
        let mut cleared = all_columns(&clear.value).into_iter();
        match cleared.find(|name| !taken.contains(name)) {
            Some(name) => Err(clear.error(message!(
                "`{name}` is cleared only if `update` names it; add it there"
            ))),
            None => Ok(()),
        }
    }

    /// Checks that a constant is a value of its field, or counts as empty.
    fn check_value(&self, name: &str, value: &str) -> Result<(), Message> {
        let field = known_field(name)?;
        let notation = self.notation().of_field(field);
        let text = self.meaning_of(&field.column, value).unwrap_or_default();
        let is_any = text.is_empty() || field.kind == ValueKind::Text || field.kind.is_list();
        if is_any
            || normalize(field.kind, text, &notation).is_ok_and(|text| (field.rank_of)(&text) > 0)
        {
            return Ok(());
        }
        let words = field.kind.words();
        let values = if words.is_empty() {
            "`2026-03-15` for a date, `2026` for a year, `4.2` for a number, or `true`".to_owned()
        } else {
            format!("one of `{}`", words.join("`, `"))
        };
        Err(message!(
            "`{value}` is not a value of {name}; write {values}"
        ))
    }

    /// Checks that `new`, `update` and `clear` apply to the files: to organizations and tags, which are found by their
    /// names, and to files that are read with `match`.
    pub fn check_list(
        &self,
        mut kinds: impl Iterator<Item = Option<RowKind>>,
    ) -> Result<(), InputError> {
        let are_named =
            kinds.all(|kind| matches!(kind, Some(RowKind::Organizations | RowKind::Tags)));
        let is_used = self.leaves_out_new || self.update.is_some() || self.clear.is_some();
        if !is_used || !self.matching.is_empty() || are_named {
            return Ok(());
        }
        let message = "`new`, `update` and `clear` apply to lists of others; add `match` to the recipe, such as \
                       `match = [[\"issn\"], [\"name\"]]`";
        Err(InputError(None, message.to_owned()))
    }

    /// Returns how a file writes its numbers and dates, as far as the options say.
    pub(in crate::import) fn notation(&self) -> Notation {
        Notation {
            is_loose: self.has_recipe || !self.matching.is_empty(),
            decimal: self.decimal,
            dates: self.dates,
            ..Notation::default()
        }
    }

    /// Returns the sets of fields that identify rows without ids. `stem` is the kind of rows.
    pub(in crate::import) fn match_sets(&self, stem: &str) -> Vec<Vec<String>> {
        match stem {
            // Their names are unique.
            "organizations" => vec![vec!["name".into()]],
            "tags" => vec![vec!["type".into(), "name".into()]],
            _ => {
                let mut sets: Vec<_> = self.matching.iter().map(|set| set.value.clone()).collect();
                sets.retain(|set| *set != ["type", "name"]);
                sets
            }
        }
    }

    /// Returns the mapping of a column, and its index: of its comparable header, which is the `number`th with this
    /// text, from 1, and of its index. An option that names one of several columns has precedence.
    pub(in crate::import) fn find_column(
        &self,
        header: &str,
        number: usize,
        index: Option<usize>,
    ) -> Option<(usize, &[String])> {
        let columns = self.columns.iter().map(|given| &given.value).enumerate();
        columns
            .filter(|(_, given)| given.column.matches(header, number, index))
            .min_by_key(|(_, given)| !given.column.is_specific())
            .map(|(at, found)| (at, &*found.fields))
    }

    /// Returns the text that a value of the files means for a field: after its words are replaced, and `None` if it
    /// counts as empty.
    pub(in crate::import) fn meaning_of<'t>(
        &'t self,
        column: &str,
        text: &'t str,
    ) -> Option<&'t str> {
        let word = self.words_of(column).find(|word| word.is(text));
        word.map_or(Some(text), |word| {
            (!word.value.is_empty()).then_some(&word.value)
        })
    }

    /// Returns the words that may stand for a value of a field.
    pub(in crate::import) fn words_of<'o>(
        &'o self,
        column: &str,
    ) -> impl Iterator<Item = &'o Word> {
        self.words
            .iter()
            .map(|given| &given.value)
            .filter(move |word| word.field.as_ref().is_none_or(|field| field == column))
    }
}

impl OptionEffects {
    /// Checks that each mapping was used, after all files are read. An unused one probably has a typo.
    pub(in crate::import) fn check_used(&self, options: &ReadOptions) -> Result<(), InputError> {
        // A file without rows has a warning of its own.
        if !self.has_columns {
            return Ok(());
        }
        let mut columns = options.columns.iter().enumerate();
        let unused = columns
            .find(|(at, given)| !given.value.fields.is_empty() && !self.used_columns.contains(at));
        let Some((_, given)) = unused else {
            return Ok(());
        };
        Err(given.error(format_args!(
            "no file has a column or field `{}`, or other mappings name it more exactly; write the name as it is in the file",
            given.value.column
        )))
    }

    /// Counts a cell or a row.
    pub(in crate::import) fn count(&mut self, effect: OptionEffect) {
        *self.counts.entry(effect).or_default() += 1;
    }

    /// Returns notes about the effects of the options.
    pub(in crate::import) fn notes(&self) -> impl Iterator<Item = Finding> {
        self.counts.iter().map(|(effect, count)| {
            let (ending, is, counts) = match count {
                1 => ("", "is", "counts"),
                _ => ("s", "are", "count"),
            };
            let (field, message) = match effect {
                OptionEffect::Emptied(column, text) => (
                    Some(&**column),
                    message!("{count} cell{ending} with `{text}` {counts} as empty"),
                ),
                OptionEffect::Unmet(field) => (
                    Some(&**field),
                    message!(
                        "{count} cell{ending} {is} left empty, without the values under [where.{field}]"
                    ),
                ),
                OptionEffect::LeftOut => (
                    None,
                    message!("{count} row{ending} {is} left out, without the values under [where]"),
                ),
            };
            Finding::about(field, None, message)
        })
    }
}

/// Checks the mapping of a column. `before` has those above it.
fn check_mapping(mapping: &ColumnMapping, before: &[Given<ColumnMapping>]) -> Result<(), Message> {
    let ColumnMapping { column, fields } = mapping;
    let mut names = fields.clone();
    names.retain(|name| !["id", "deleted"].contains(&name.as_str()));
    check_names(&names)?;
    let mut before = before.iter();
    let twice = before.find(|other| other.value.column == *column && other.value.fields != *fields);
    if let Some(Given { value, origin }) = twice {
        return Err(message!(
            "`{column}` is already mapped to `{}` by {origin}; map each name once",
            value.fields.join("`, `")
        ));
    }
    check_parts(fields)
}

/// Checks that fields have known names.
fn check_names(names: &[String]) -> Result<(), Message> {
    let mut names = names.iter();
    names.try_for_each(|name| known_field(name).map(drop))
}

/// Checks a set of fields that identifies records.
fn check_match(names: &[String]) -> Result<(), Message> {
    if *names == ["type", "name"] {
        return Ok(());
    }
    for name in names {
        let column = columns_of(name)[0];
        let field = known_field(column)?;
        let mut records = RECORDS.into_iter();
        if records.all(|kind| kind.table().index_of(column).is_none()) {
            return Err(message!(
                "conferences and journals have no field `{name}`; choose one of theirs (tags are found by `type` and `name`)"
            ));
        }
        if let ValueKind::Links(_) = field.kind {
            return Err(message!(
                "links to {name} do not identify a record; choose other fields, such as `name,year`"
            ));
        }
    }
    Ok(())
}

/// Checks that several fields can share a cell: that they are texts, or dates and a year.
fn check_parts(fields: &[String]) -> Result<(), Message> {
    use ValueKind::{Date, Text, Year};
    let fields = fields.iter().map(|name| field_named(name));
    let kinds: Vec<_> = fields.map(|field| field.map(|field| field.kind)).collect();
    let can_share = match *kinds {
        [] | [_] | [Some(Date), Some(Date | Year)] | [Some(Date), Some(Date), Some(Year)] => true,
        _ => kinds.iter().all(|kind| *kind == Some(Text)),
    };
    if can_share {
        return Ok(());
    }
    Err("a cell can be split into texts, or into dates and a year, such as `start_date`, `end_date`, `year`".into())
}

/// Returns true if two texts are equal apart from case, accents and blanks around them.
pub(in crate::import) fn is_same(one: &str, other: &str) -> bool {
    one == other || fold(one.trim()) == fold(other.trim())
}

/// The limits on the input of an import. They bound the memory and time that a broken or huge file can cost. All
/// programs use the defaults; tests use smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum size of a JSON line or a CSV row.
    pub line_bytes: usize,
    /// The maximum number of columns of a table.
    pub columns: usize,
    /// The maximum number of CSV rows or JSON lines in a file, including blank ones.
    pub rows: usize,
    /// The maximum decompressed size of a file.
    pub file_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            line_bytes: 4 << 20,
            columns: 1_000,
            rows: 2_000_000,
            file_bytes: 1 << 30,
        }
    }
}

impl Bounds {
    pub(in crate::import) fn line_fault(&self) -> Message {
        message!(
            "the line is longer than {} bytes; correct it",
            self.line_bytes
        )
    }

    /// The message for a CSV row that is too long. Reading stops at this row.
    pub(in crate::import) fn table_row_fault(&self, in_quotes: bool) -> Message {
        let remedy = if in_quotes {
            "close the quote that it opens"
        } else {
            "correct it"
        };
        message!(
            "the row is longer than {} bytes, and the rest of the table is not read; {remedy}",
            self.line_bytes
        )
    }

    pub(in crate::import) fn columns_fault(&self) -> Message {
        message!(
            "has more than {} columns; remove those that are not fields",
            self.columns
        )
    }

    pub(in crate::import) fn rows_fault(&self, what: &str) -> Message {
        message!("the file has more than {} {what}; split it", self.rows)
    }
}

#[cfg(test)]
pub(in crate::import) mod samples {
    use crate::import::read::options::{ColumnMapping, Given, ReadOptions};

    /// Returns options with mappings such as `Website=url`, and with match sets such as `name,year`.
    pub(in crate::import) fn sample_options(columns: &[&str], matching: &[&str]) -> ReadOptions {
        let mapping = |text: &&str| {
            let (from, to) = text.rsplit_once('=').unwrap();
            let fields = to.split('+').filter(|field| !field.is_empty());
            let fields = fields.map(str::to_owned).collect();
            Given {
                value: ColumnMapping {
                    column: from.into(),
                    fields,
                },
                origin: format!("--map '{text}'"),
            }
        };
        let set = |names: &&str| Given {
            value: names.split(',').map(str::to_owned).collect(),
            origin: format!("--match {names}"),
        };
        ReadOptions {
            columns: columns.iter().map(mapping).collect(),
            matching: matching.iter().map(set).collect(),
            ..ReadOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::sample_options;
    use super::*;

    #[test]
    fn column_mappings_and_match_fields_are_checked() {
        let cases: [(&[&str], &[&str], &str); 15] = cases![
            &["Website=url", "Kind=type", "No=id", "Gone=deleted"], &["name"; 8], "";
            &["Website=link"], &[], "there is no field `link`";
            // A field that only the second kind of records has.
            &["Rank=sjr"], &["issn_print"], "";
            &[], &["issn", "name,year"], "";
            &["ISSN=issn"], &["issn"], "there is no field `issn`";
            &[], &["name,organizations"], "links to organizations do not identify a record";
            &[], &["tags"], "--match tags: links to tags do not identify a record";
            &[], &["name", "category"], "conferences and journals have no field `category`";
            &["Web Site=url", "web-site=url"], &[], "";
            &["Web Site=url", "Title=name", "web-site=name"], &[], "`web-site` is already mapped to `url`";
            &["Title=name", "Name=name"], &[], "";
            &["Formats=formats.oral"], &[], "there is no field `formats.oral`";
            &["Place=city+country", "When=start_date+end_date+year", "When#2=start_date+year"], &[], "";
            &["ISSN=issn_print+issn_online"], &[], "";
            &["Place=city+organizations"], &[], "a cell can be split into texts, or into dates and a year";
        ];
        for (columns, matching, expected) in cases {
            let message = sample_options(columns, matching).check().err();
            let message = message.map(|error| error.to_string()).unwrap_or_default();
            assert!(
                message.contains(expected) && message.is_empty() == expected.is_empty(),
                "{columns:?}: {message}"
            );
        }
    }

    #[test]
    fn each_mapping_must_be_used() {
        let fields = |found: Option<(usize, &[String])>| match found {
            Some((_, [])) => "ignored".to_owned(),
            Some((_, fields)) => fields.join("+"),
            None => String::new(),
        };
        let two = sample_options(
            &["Website=url", "Title#2=name", "Title=", "=E=", "=F="],
            &[],
        );
        assert_eq!(fields(two.find_column("website", 1, Some(0))), "url");
        assert_eq!(fields(two.find_column("title", 1, Some(0))), "ignored");
        assert_eq!(fields(two.find_column("website", 1, Some(4))), "ignored");
        assert_eq!(fields(two.find_column("url", 1, None)), "");
        assert_eq!(fields(two.find_column("title", 2, Some(1))), "name");
        let mut effects = OptionEffects {
            used_columns: [0].into(),
            ..OptionEffects::default()
        };
        assert!(effects.check_used(&two).is_ok(), "no file has columns");
        effects.has_columns = true;
        let error = effects.check_used(&two).unwrap_err().to_string();
        assert!(error.contains("Title#2=name"), "{error}");
        effects.used_columns.insert(1);
        assert!(effects.check_used(&two).is_ok());
    }

    #[test]
    fn texts_count_as_empty_or_as_other_words() {
        let word = |field: Option<&str>, text: &str, value: &str| Given {
            value: Word {
                field: field.map(str::to_owned),
                text: text.to_owned(),
                value: value.to_owned(),
            },
            origin: String::new(),
        };
        let words = vec![
            word(None, "N/A", ""),
            word(Some("issn_print"), "0", ""),
            word(Some("publishing_access"), "Green", "hybrid"),
        ];
        let options = ReadOptions {
            words,
            ..ReadOptions::default()
        };
        let cases = [
            ("sjr", " N/A ", None),
            ("sjr", "n/a", Some("n/a")),
            ("publishing_access", " GREEN", Some("hybrid")),
            ("sjr", "0", Some("0")),
            ("issn_print", "0", None),
            ("publishing_access", "Green", Some("hybrid")),
            ("publishing_access", "", Some("")),
            ("name", "Green", Some("Green")),
        ];
        for (column, text, expected) in cases {
            let meaning_of = options.meaning_of(column, text);
            assert_eq!(meaning_of, expected, "{column} {text:?}");
        }
        let mut effects = OptionEffects::default();
        for (column, text) in [("sjr", "N/A"), ("issn_print", "0")] {
            effects.count(OptionEffect::Emptied(column.to_owned(), text.to_owned()));
        }
        let notes: Vec<String> = effects
            .notes()
            .map(|note| format!("{:?}: {}", note.field, note.message))
            .collect();
        assert_eq!(
            notes,
            [
                "Some(\"issn_print\"): 1 cell with `0` counts as empty",
                "Some(\"sjr\"): 1 cell with `N/A` counts as empty"
            ]
        );
    }
}
