//! Recipes: TOML files that say how the files of a source are read (docs/import.md).

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use encoding_rs::Encoding;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use toml::{Spanned, Value};

use super::dates::DateOrder;
use super::options::{
    ColumnMapping, Given, InputError, ReadOptions, RowFilter, TextEncoding, Word, known_field,
};
use super::row_kind::RowKind;
use super::table_cell::DecimalSign;
use crate::model::message::{Message, message};
use crate::model::value::text::ITEM_SEPARATOR;
use crate::model::value::{JsonType, ValueKind};

const WRONG_KIND: &str = "is no value of this field; write a text in quotation marks, or what the field has: a number, a \
                          date, true, false, or a list of texts";

/// A recipe as it is written.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Recipe {
    dataset: Option<RowKind>,
    #[serde(deserialize_with = "encoding")]
    encoding: TextEncoding,
    sheet: Option<OneOrMore>,
    header_rows: Option<usize>,
    #[serde(rename = "match")]
    matching: Vec<Spanned<Vec<String>>>,
    new: Option<bool>,
    update: Option<Spanned<Vec<String>>>,
    clear: Option<Spanned<Vec<String>>>,
    dates: Option<DateOrder>,
    decimal: Option<DecimalSign>,
    #[serde(deserialize_with = "list_separator")]
    list_separator: Option<String>,
    create_links: bool,
    empty: Vec<String>,
    ignore: Option<Ignored>,
    columns: Table<OneOrMore>,
    set: Table<Value>,
    values: Table<BTreeMap<String, Value>>,
    empty_in: Table<Vec<String>>,
    #[serde(rename = "where")]
    filters: Table<Filter>,
}

/// A table, with the positions of its keys.
type Table<T> = BTreeMap<Spanned<String>, T>;

#[derive(Deserialize)]
#[serde(untagged, expecting = "write true, or a list of column names")]
enum Ignored {
    All(bool),
    Columns(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write a text, or a list of texts")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "write a text, a list of texts, or a table [where.FIELD] of columns"
)]
enum Filter {
    /// The values of a column.
    OfRows(OneOrMore),
    /// Columns with the values that a row needs for a field.
    OfField(BTreeMap<String, OneOrMore>),
}

impl From<OneOrMore> for Vec<String> {
    fn from(texts: OneOrMore) -> Vec<String> {
        match texts {
            OneOrMore::One(text) => vec![text],
            OneOrMore::More(texts) => texts,
        }
    }
}

/// Reads a recipe. Returns its options, and the kind of rows that it is for.
pub fn read_recipe(path: &Path) -> Result<(ReadOptions, Option<RowKind>), InputError> {
    let text = fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))?;
    parse_recipe(&path.display().to_string(), &text)
}

/// Parses a recipe. `name` is its name in messages.
pub fn parse_recipe(name: &str, text: &str) -> Result<(ReadOptions, Option<RowKind>), InputError> {
    let place = Place { name, text };
    let recipe: Recipe = toml::from_str(text).map_err(|error| {
        let message = message!("{}", error.message().trim_end());
        place.error(error.span().unwrap_or_default(), message)
    })?;
    let kind = recipe.dataset;
    Ok((recipe.into_options(&place)?, kind))
}

/// The text of a recipe, and its name in messages.
struct Place<'t> {
    name: &'t str,
    text: &'t str,
}

impl Place<'_> {
    /// Returns the line of a position.
    fn origin(&self, span: Range<usize>) -> String {
        let before = &self.text[..span.start.min(self.text.len())];
        format!("{}:{}", self.name, 1 + before.matches('\n').count())
    }

    /// Returns the error of a value at a position.
    fn error(&self, span: Range<usize>, message: Message) -> InputError {
        let message = format!("{}: {message}", self.origin(span));
        InputError(Some(self.name.into()), message)
    }

    /// Returns an option that is given at a position.
    fn given<K, T>(&self, at: &Spanned<K>, value: T) -> Given<T> {
        let origin = self.origin(at.span());
        Given { value, origin }
    }

    /// Returns a list of names that is given at its position.
    fn names(&self, names: &Spanned<Vec<String>>) -> Given<Vec<String>> {
        self.given(names, names.as_ref().clone())
    }

    /// Returns the mappings of columns. Ignored columns come last.
    fn columns(
        &self,
        columns: Table<OneOrMore>,
        ignored: Vec<String>,
    ) -> Vec<Given<ColumnMapping>> {
        let columns = columns.into_iter();
        let columns = columns.map(|(name, fields)| {
            self.given(&name, ColumnMapping::new(name.as_ref(), fields.into()))
        });
        let ignored = ignored.into_iter().map(|name| Given {
            value: ColumnMapping::new(&name, Vec::new()),
            origin: self.name.to_owned(),
        });
        columns.chain(ignored).collect()
    }

    /// Returns the values that rows must have.
    fn filters(&self, filters: Table<Filter>) -> Vec<Given<RowFilter>> {
        let mut found = Vec::new();
        for (key, filter) in filters {
            let name = key.as_ref().clone();
            let (field, columns) = match filter {
                Filter::OfRows(values) => (None, BTreeMap::from([(name, values)])),
                Filter::OfField(columns) => (Some(name), columns),
            };
            found.extend(columns.into_iter().map(|(column, values)| {
                let filter = RowFilter {
                    field: field.clone(),
                    column: column.as_str().into(),
                    values: values.into(),
                };
                self.given(&key, filter)
            }));
        }
        found
    }

    /// Returns a word for a value of a field.
    fn word(
        &self,
        field: &Spanned<String>,
        text: String,
        value: &Value,
    ) -> Result<Given<Word>, InputError> {
        let word = Word {
            field: Some(field.as_ref().clone()),
            text,
            value: self.csv_text(field, value)?,
        };
        Ok(self.given(field, word))
    }

    /// Returns a constant of a field in CSV form.
    fn csv_text(&self, field: &Spanned<String>, value: &Value) -> Result<String, InputError> {
        csv_text(field.as_ref(), value).map_err(|fault| self.error(field.span(), fault))
    }
}

impl Recipe {
    fn into_options(self, place: &Place<'_>) -> Result<ReadOptions, InputError> {
        let (reads_only_mapped, ignored) = match self.ignore {
            Some(Ignored::All(reads_only_mapped)) => (reads_only_mapped, Vec::new()),
            Some(Ignored::Columns(names)) => (false, names),
            None => (false, Vec::new()),
        };
        let mut options = ReadOptions {
            has_recipe: true,
            encoding: self.encoding,
            sheets: self.sheet.map(Vec::from).unwrap_or_default(),
            header_rows: self.header_rows,
            matching: self.matching.iter().map(|set| place.names(set)).collect(),
            dates: self.dates,
            decimal: self.decimal,
            list_separator: self.list_separator,
            create_links: self.create_links,
            leaves_out_new: self.new == Some(false),
            update: self.update.map(|names| place.names(&names)),
            clear: self.clear.map(|names| place.names(&names)),
            ignore_unknown: reads_only_mapped,
            only_mapped: reads_only_mapped,
            columns: place.columns(self.columns, ignored),
            filters: place.filters(self.filters),
            // Those of all fields come first.
            words: (self.empty.into_iter())
                .map(|text| Given {
                    value: Word::empty(text),
                    origin: place.name.to_owned(),
                })
                .collect(),
            ..ReadOptions::default()
        };
        for (field, constant) in self.set {
            let text = place.csv_text(&field, &constant)?;
            let constant = place.given(&field, (field.as_ref().clone(), text));
            options.constants.push(constant);
        }
        let none = Value::from("");
        for (field, texts) in self.empty_in {
            for text in texts {
                options.words.push(place.word(&field, text, &none)?);
            }
        }
        for (field, meanings) in self.values {
            for (text, value) in meanings {
                options.words.push(place.word(&field, text, &value)?);
            }
        }
        Ok(options)
    }
}

fn list_separator<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let separator = String::deserialize(from)?;
    if separator.is_empty() {
        return Err(D::Error::custom("a separator has at least one character"));
    }
    Ok(Some(separator))
}

fn encoding<'de, D: Deserializer<'de>>(from: D) -> Result<TextEncoding, D::Error> {
    let label = String::deserialize(from)?;
    let encoding = Encoding::for_label(label.as_bytes()).map(TextEncoding::Named);
    encoding
        .ok_or_else(|| D::Error::custom("is no known encoding; write one such as \"windows-1252\""))
}

/// Returns a constant of a field in CSV form. The error is a value of another kind than the field's.
fn csv_text(field: &str, value: &Value) -> Result<String, Message> {
    let kind = known_field(field)?.kind;
    let is_text = kind.is_list() || kind.json_type() == JsonType::Text;
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if kind.is_list() => {
            let texts: Option<Vec<_>> = items.iter().map(Value::as_str).collect();
            texts.ok_or(WRONG_KIND)?.join(ITEM_SEPARATOR)
        }
        Value::Datetime(date) if kind == ValueKind::Date => date.to_string(),
        _ if is_text => return Err(WRONG_KIND.into()),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        _ => return Err(WRONG_KIND.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
dataset = "journals"
sheet = "List"
header_rows = 2
match = [["issn"], ["name", "publisher"]]
dates = "dmy"
decimal = "comma"
list_separator = "|"
create_links = true
empty = ["N/A", "-"]
ignore = ["JIF Quartile", "=H"]

[columns]
"Journal name" = "name"
"ISSN / eISSN" = ["issn_print", "issn_online"]

[set]
impact_factor_year = 2024
publisher = "House"
organizations = ["A", "B"]

[values.publishing_access]
"Gold" = "open"
"Unclear" = ""

[empty_in]
issn_print = ["0"]

[where]
"Currency" = "USD"
"Type" = ["Journal", "Book"]
"#;

    #[test]
    fn a_recipe_sets_all_options() {
        let (options, kind) = parse_recipe("r.toml", WHOLE).unwrap();
        assert!(options.check().is_ok());
        assert_eq!(kind, Some(RowKind::Journals));
        assert_eq!(options.sheets.clone(), vec!["List".to_owned()]);
        assert_eq!(options.header_rows, Some(2));
        assert_eq!(options.dates, Some(DateOrder::Dmy));
        assert_eq!(options.decimal, Some(DecimalSign::Comma));
        assert_eq!(options.list_separator.as_deref(), Some("|"));
        assert!(options.create_links);
        let columns: Vec<String> = (options.columns.iter())
            .map(|given| {
                format!(
                    "{} {}={}",
                    given.origin,
                    given.value.column,
                    given.value.fields.join("+")
                )
            })
            .collect();
        let expected = words![
            "r.toml:15 ISSN / eISSN=issn_print+issn_online" "r.toml:14 Journal name=name"
            "r.toml JIF Quartile=" "r.toml =H="
        ];
        assert_eq!(columns, expected);
        let constants: Vec<String> = (options.constants.iter())
            .map(|given| format!("{} {}={}", given.origin, given.value.0, given.value.1))
            .collect();
        let expected = [
            "r.toml:18 impact_factor_year=2024",
            "r.toml:20 organizations=A; B",
            "r.toml:19 publisher=House",
        ];
        assert_eq!(constants, expected);
        let match_sets = options.match_sets("journals");
        assert_eq!(match_sets, [vec!["issn"], vec!["name", "publisher"]]);
        assert_eq!(options.filters.len(), 2);
        assert_eq!(options.words.len(), 5);
        assert!(!options.ignore_unknown);
        assert!(
            parse_recipe("r.toml", "ignore = true")
                .unwrap()
                .0
                .ignore_unknown
        );
    }

    #[test]
    fn constants_of_their_kind_are_taken() {
        let recipe = r#"
            match = [["type", "name"]]
            decimal = "comma"
            empty = ["n/a"]
            [set]
            year = "2026"
            start_date = 2026-03-15
            end_date = "16 mars 2026"
            sjr = 4
            citescore = "2,5"
            impact_factor = 4.5
            h_index = "7"
            formats_oral = true
            formats_poster = "yes"
            publishing_access = "Open Access"
            publishing_apc_usd = "USD 3000"
            venue = "n/a"
            tags = ["Type: Name"]
            organizations = "A; B"
            [values.impact_factor_year]
            "last" = 2025
        "#;
        let (options, _) = parse_recipe("r.toml", recipe).unwrap();
        options.check().unwrap();
        assert_eq!(options.constants.len(), 14);
        // Tags are found so anyway, and conferences are not.
        assert!(options.match_sets("conferences").is_empty());
        assert_eq!(options.match_sets("tags"), [["type", "name"]]);
    }

    #[test]
    fn faults_name_their_line() {
        let cases = cases![
            "dataset = 5", "r.toml:1: ";
            "\ndataset = \"books\"", "r.toml:2: ";
            "dates = \"ymd\"", "r.toml:1: unknown variant `ymd`";
            "dates = dmy", "r.toml:1: ";
            "colums = {}", "r.toml:1: unknown field `colums`";
            "encoding = \"ansi-1252\"", "r.toml:1: is no known encoding";
            "ignore = 5", "r.toml:1: write true, or a list of column names";
            "[columns]\nA = 5", "r.toml:2: write a text, or a list of texts";
            "[columns]\nA = \"x\"\nA = \"y\"", "r.toml:3: duplicate key";
            "list_separator = \"\"", "r.toml:1: a separator has at least one character";
            "[set]\nname = {a = 1}", "r.toml:2: is no value of this field";
            "[set]\nvenue = 12", "r.toml:2: is no value of this field";
            "[set]\nname = [\"A\", \"B\"]", "r.toml:2: is no value";
            "[set]\npublisher = true", "r.toml:2: is no value";
            "[set]\n\nabbv = 2026-03-15", "r.toml:3: is no value";
            "[set]\ntags = [7]", "r.toml:2: is no value";
            "[set]\ntherapy_areas = 7", "r.toml:2: is no value";
            "[set]\nyear = [2026]", "r.toml:2: is no value";
            "[set]\nyear = 1799", "r.toml:2: `1799` is not a value of year; write `2026-03-15`";
            "[set]\nsjr = \"high\"", "r.toml:2: `high` is not a value of sjr";
            "[set]\nh_index = -1", "r.toml:2: `-1` is not a value";
            "[set]\nh_index = 2.5", "r.toml:2: `2.5` is not a value";
            "[set]\nend_date = \"soon\"", "r.toml:2: `soon` is not a value of end_date";
            "[set]\nend_date = 5", "r.toml:2: is no value";
            "[set]\nformats_oral = \"maybe\"", "r.toml:2: `maybe` is not a value";
            "[values.citescore]\n\"-\" = \"x\"", "r.toml:1: `x` is not a value of citescore";
            "match = [[\"nane\"]]", "r.toml:1: there is no field `nane`; did you mean `name`?";
            "[columns]\nA = \"contry\"", "r.toml:2: there is no field `contry`; did you mean `country`?";
            "match = [[\"type\", \"category\"]]", "r.toml:1: conferences and journals have no field `type`";
            "\n[set]\nnam = \"x\"", "r.toml:3: there is no field `nam`";
            "[where.nam]\nA = \"x\"", "r.toml:1: there is no field `nam`";
            "[where.sjr.A]\nB = \"x\"", "r.toml:1: write a text, a list of texts, or a table [where.FIELD] of columns";
            "[columns]\nA = [\"city\", \"sjr\"]", "r.toml:2: a cell can be split into texts";
            "match = [[\"issn\"],\n[\"tags\"]]", "r.toml:2: links to tags do not identify a record";
            "[values.publishing_access]\nx = \"opn\"",
                "r.toml:1: `opn` is not a value of publishing_access; write one of";
            "[set]\nstart_date_status = \"sure\"", "r.toml:2: `sure` is not a value of start_date_status";
            "[values.publishing_access]\nx = {}", "r.toml:1: is no value of this field";
            "[values.nam]\nx = \"y\"", "r.toml:1: there is no field `nam`";
            "[empty_in]\nnam = [\"y\"]", "r.toml:2: there is no field `nam`";
        ];
        for (text, expected) in cases {
            let checked = parse_recipe("r.toml", text).map_err(|error| error.to_string());
            let message = checked
                .and_then(|(options, _)| options.check().map_err(|error| error.to_string()))
                .err();
            assert!(
                message
                    .as_ref()
                    .is_some_and(|message| message.starts_with(expected)),
                "{text}: {message:?}"
            );
        }
    }
}
