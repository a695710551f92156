//! Recipes: TOML files that say how the files of a source are read (docs/import.md).

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use encoding_rs::Encoding;
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::import::read::cells::DecimalSign;
use crate::import::read::dates::DateOrder;
use crate::import::read::options::{
    ColumnMapping, FieldFilter, Given, InputError, ReadOptions, TextEncoding, Word, fields_named,
    unknown_field,
};
use crate::import::read::row_kind::RowKind;
use crate::model::message::{Message, message};
use crate::model::value::text::ITEM_SEPARATOR;
use crate::model::value::{JsonType, ValueKind};

/// The maximum number of rows of a header.
const MAX_HEADER_ROWS: usize = 10;

const WRONG_KIND: &str = "is no value of this field; write a text in quotation marks, or what the field has: a number, a \
                          date, true, false, or a list of texts";

/// A recipe as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    dataset: Option<RowKind>,
    encoding: Option<Spanned<String>>,
    sheet: Option<OneOrMore>,
    header_rows: Option<Spanned<usize>>,
    #[serde(rename = "match", default)]
    matching: Vec<Spanned<Vec<String>>>,
    new: Option<bool>,
    update: Option<Spanned<Vec<String>>>,
    clear: Option<Spanned<Vec<String>>>,
    dates: Option<DateOrder>,
    decimal: Option<DecimalSign>,
    list_separator: Option<Spanned<String>>,
    #[serde(default)]
    create_links: bool,
    #[serde(default)]
    empty: Vec<String>,
    ignore: Option<Ignored>,
    #[serde(default)]
    columns: Table<OneOrMore>,
    #[serde(default)]
    set: Table<Value>,
    #[serde(default)]
    values: Table<BTreeMap<String, Value>>,
    #[serde(default)]
    empty_in: Table<Vec<String>>,
    #[serde(rename = "where", default)]
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
    let origin = |span: Range<usize>| {
        let line = 1 + text[..span.start.min(text.len())].matches('\n').count();
        format!("{name}:{line}")
    };
    let invalid = |span, message: Message| {
        InputError(Some(name.into()), format!("{}: {message}", origin(span)))
    };
    let recipe: Recipe = toml::from_str(text).map_err(|error| {
        invalid(
            error.span().unwrap_or_default(),
            message!("{}", error.message().trim_end()),
        )
    })?;
    if let Some(rows) = recipe
        .header_rows
        .as_ref()
        .filter(|rows| *rows.as_ref() > MAX_HEADER_ROWS)
    {
        return Err(invalid(
            rows.span(),
            message!("a header has at most {MAX_HEADER_ROWS} rows"),
        ));
    }
    if let Some(separator) = recipe
        .list_separator
        .as_ref()
        .filter(|separator| separator.as_ref().is_empty())
    {
        return Err(invalid(
            separator.span(),
            "a separator has at least one character".into(),
        ));
    }
    let encoding = match &recipe.encoding {
        None => TextEncoding::Refused,
        Some(label) => TextEncoding::Named(
            Encoding::for_label(label.as_ref().as_bytes()).ok_or_else(|| {
                invalid(
                    label.span(),
                    "is no known encoding; write one such as \"windows-1252\"".into(),
                )
            })?,
        ),
    };
    let mut options = ReadOptions {
        has_recipe: true,
        encoding,
        sheets: recipe.sheet.map(Vec::from).unwrap_or_default(),
        header_rows: recipe.header_rows.map(Spanned::into_inner),
        dates: recipe.dates,
        decimal: recipe.decimal,
        list_separator: recipe.list_separator.map(Spanned::into_inner),
        create_links: recipe.create_links,
        ..ReadOptions::default()
    };
    let mut ignored = Vec::new();
    match recipe.ignore {
        Some(Ignored::All(all)) => (options.ignore_unknown, options.only_mapped) = (all, all),
        Some(Ignored::Columns(names)) => ignored = names,
        None => {}
    }
    for set in recipe.matching {
        options.matching.push(Given {
            origin: origin(set.span()),
            value: set.into_inner(),
        });
    }
    options.leaves_out_new = recipe.new == Some(false);
    for (fields, option) in [
        (recipe.update, &mut options.update),
        (recipe.clear, &mut options.clear),
    ] {
        *option = fields.map(|fields| Given {
            origin: origin(fields.span()),
            value: fields.into_inner(),
        });
    }
    for (column, fields) in recipe.columns {
        let value = ColumnMapping {
            column: column.as_ref().as_str().into(),
            fields: fields.into(),
        };
        options.columns.push(Given {
            origin: origin(column.span()),
            value,
        });
    }
    for column in ignored {
        let value = ColumnMapping {
            column: column.as_str().into(),
            fields: Vec::new(),
        };
        options.columns.push(Given {
            origin: name.to_owned(),
            value,
        });
    }
    for (field, constant) in recipe.set {
        let text =
            csv_text(field.as_ref(), &constant).map_err(|fault| invalid(field.span(), fault))?;
        options.constants.push(Given {
            origin: origin(field.span()),
            value: (field.into_inner(), text),
        });
    }
    let mut add_word = |field: Option<&Spanned<String>>, text, value| {
        let origin = field.map_or(name.to_owned(), |field| origin(field.span()));
        options.words.push(Given {
            origin,
            value: Word {
                field: field.map(|field| field.as_ref().clone()),
                text,
                value,
            },
        });
    };
    recipe
        .empty
        .into_iter()
        .for_each(|text| add_word(None, text, String::new()));
    for (field, texts) in recipe.empty_in {
        texts
            .into_iter()
            .for_each(|text| add_word(Some(&field), text, String::new()));
    }
    for (field, words) in recipe.values {
        for (text, value) in words {
            let value =
                csv_text(field.as_ref(), &value).map_err(|fault| invalid(field.span(), fault))?;
            add_word(Some(&field), text, value);
        }
    }
    for (name, filter) in recipe.filters {
        let origin = origin(name.span());
        match filter {
            Filter::OfRows(values) => options.filters.push(Given {
                value: (name.as_ref().as_str().into(), values.into()),
                origin,
            }),
            Filter::OfField(columns) => {
                let filters = columns.into_iter().map(|(column, values)| Given {
                    value: FieldFilter {
                        field: name.as_ref().clone(),
                        column: column.as_str().into(),
                        values: values.into(),
                    },
                    origin: origin.clone(),
                });
                options.field_filters.extend(filters);
            }
        }
    }
    Ok((options, recipe.dataset))
}

/// Returns a constant of a field in CSV form. The error is a value of another kind than the field's.
fn csv_text(field: &str, value: &Value) -> Result<String, Message> {
    let found = fields_named(field).next();
    let kind = found.ok_or_else(|| unknown_field(field))?.kind;
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
        assert_eq!(
            (kind, options.sheets.clone(), options.header_rows),
            (Some(RowKind::Journals), vec!["List".to_owned()], Some(2))
        );
        assert_eq!(
            (options.dates, options.decimal),
            (Some(DateOrder::Dmy), Some(DecimalSign::Comma))
        );
        assert_eq!(
            (options.list_separator.as_deref(), options.create_links),
            (Some("|"), true)
        );
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
        let expected = [
            "r.toml:15 ISSN / eISSN=issn_print+issn_online",
            "r.toml:14 Journal name=name",
            "r.toml JIF Quartile=",
            "r.toml =H=",
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
        assert_eq!(
            options.match_sets("journals"),
            [vec!["issn"], vec!["name", "publisher"]]
        );
        assert_eq!(
            (
                options.filters.len(),
                options.words.len(),
                options.ignore_unknown
            ),
            (2, 5, false)
        );
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
        let cases = [
            ("dataset = 5", "r.toml:1: "),
            ("\ndataset = \"books\"", "r.toml:2: "),
            ("dates = \"ymd\"", "r.toml:1: unknown variant `ymd`"),
            ("dates = dmy", "r.toml:1: "),
            ("colums = {}", "r.toml:1: unknown field `colums`"),
            ("encoding = \"ansi-1252\"", "r.toml:1: is no known encoding"),
            ("header_rows = 11", "r.toml:1: a header has at most 10 rows"),
            (
                "ignore = 5",
                "r.toml:1: write true, or a list of column names",
            ),
            (
                "[columns]\nA = 5",
                "r.toml:2: write a text, or a list of texts",
            ),
            ("[columns]\nA = \"x\"\nA = \"y\"", "r.toml:3: duplicate key"),
            (
                "list_separator = \"\"",
                "r.toml:1: a separator has at least one character",
            ),
            (
                "[set]\nname = {a = 1}",
                "r.toml:2: is no value of this field",
            ),
            ("[set]\nvenue = 12", "r.toml:2: is no value of this field"),
            ("[set]\nname = [\"A\", \"B\"]", "r.toml:2: is no value"),
            ("[set]\npublisher = true", "r.toml:2: is no value"),
            ("[set]\n\nabbv = 2026-03-15", "r.toml:3: is no value"),
            ("[set]\ntags = [7]", "r.toml:2: is no value"),
            ("[set]\ntherapy_areas = 7", "r.toml:2: is no value"),
            ("[set]\nyear = [2026]", "r.toml:2: is no value"),
            (
                "[set]\nyear = 1799",
                "r.toml:2: `1799` is not a value of year; write `2026-03-15`",
            ),
            (
                "[set]\nsjr = \"high\"",
                "r.toml:2: `high` is not a value of sjr",
            ),
            ("[set]\nh_index = -1", "r.toml:2: `-1` is not a value"),
            ("[set]\nh_index = 2.5", "r.toml:2: `2.5` is not a value"),
            (
                "[set]\nend_date = \"soon\"",
                "r.toml:2: `soon` is not a value of end_date",
            ),
            ("[set]\nend_date = 5", "r.toml:2: is no value"),
            (
                "[set]\nformats_oral = \"maybe\"",
                "r.toml:2: `maybe` is not a value",
            ),
            (
                "[values.citescore]\n\"-\" = \"x\"",
                "r.toml:1: `x` is not a value of citescore",
            ),
            (
                "match = [[\"nane\"]]",
                "r.toml:1: there is no field `nane`; did you mean `name`?",
            ),
            (
                "[columns]\nA = \"contry\"",
                "r.toml:2: there is no field `contry`; did you mean `country`?",
            ),
            (
                "match = [[\"type\", \"category\"]]",
                "r.toml:1: conferences and journals have no field `type`",
            ),
            ("\n[set]\nnam = \"x\"", "r.toml:3: there is no field `nam`"),
            (
                "[where.nam]\nA = \"x\"",
                "r.toml:1: there is no field `nam`",
            ),
            (
                "[where.sjr.A]\nB = \"x\"",
                "r.toml:1: write a text, a list of texts, or a table [where.FIELD] of columns",
            ),
            (
                "[columns]\nA = [\"city\", \"sjr\"]",
                "r.toml:2: a cell can be split into texts",
            ),
            (
                "match = [[\"issn\"],\n[\"tags\"]]",
                "r.toml:2: links to tags do not identify a record",
            ),
            (
                "[values.publishing_access]\nx = \"opn\"",
                "r.toml:1: `opn` is not a value of publishing_access; write one of",
            ),
            (
                "[set]\nstart_date_status = \"sure\"",
                "r.toml:2: `sure` is not a value of start_date_status",
            ),
            (
                "[values.publishing_access]\nx = {}",
                "r.toml:1: is no value of this field",
            ),
            (
                "[values.nam]\nx = \"y\"",
                "r.toml:1: there is no field `nam`",
            ),
            (
                "[empty_in]\nnam = [\"y\"]",
                "r.toml:2: there is no field `nam`",
            ),
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
