//! Drafts of recipes: the columns of a file, each with its best field.

use crate::import::lint::may_be_name;
use crate::import::read::dates::{DateOrder, date_range};
use crate::import::read::options::column_letters;
use crate::import::read::sample::FileSample;
use crate::import::read::source::RowKind;
use crate::import::read::tabular::joined_header;
use crate::model::country::is_country;
use crate::model::field::FieldTable;
use crate::model::fold::{comparable, fold};
use crate::model::value::ValueKind;
use crate::model::value::json::push_json;

/// The names of columns in public lists, by field. Names are in the form of [`plain`].
#[rustfmt::skip]
const NAMES: &[(&str, &[&str])] = &[
    ("name", &[
        "journal name", "journal title", "journal", "title", "full title", "source title", "publication title", "publication name",
        "conference name", "conference title", "conference", "congress", "congress name", "event", "event name", "event title", "meeting",
        "meeting name", "meeting title", "summary", "zeitschrift", "titel", "full journal title", "original title", "original tittel", "titulo",
        "tytul", "revista", "kongress", "veranstaltung", "congreso",
    ]),
    ("abbv", &[
        "abbreviation", "abbreviated title", "abbr", "abbrev", "acronym", "short name", "short title", "jcr abbreviation", "med abbr",
        "medline ta", "nlm ta", "iso abbreviation", "iso abbr", "isoabbr", "title abbreviation", "medabbr",
    ]),
    ("issn_print", &["issn", "print issn", "pissn", "p issn", "issn print", "journal issn print version", "issn gedruckt"]),
    ("issn_online", &[
        "eissn", "e issn", "online issn", "issn online", "electronic issn", "issn electronic", "issn elektronisch", "journal eissn online version",
    ]),
    ("publisher", &["publisher name", "publishing house", "verlag", "editorial"]),
    ("url", &["website", "web site", "homepage", "journal url", "link", "web", "weblink", "web page", "event url", "conference website"]),
    ("impact_factor", &["jif", "impact factor", "journal impact factor", "if", "jcr impact factor"]),
    ("impact_factor_year", &["jcr year", "jif year"]),
    ("citescore", &["cite score"]),
    ("sjr", &["sjr score", "sjr index", "scimago journal rank"]),
    ("h_index", &["h index", "hindex"]),
    ("publishing_access", &[
        "oa status", "access", "access type", "publishing model", "business model", "oa model", "journal type", "open access model",
        "open access status", "access model", "model",
    ]),
    ("publishing_content_license", &["license", "licence", "journal license", "cc license", "license type"]),
    ("publishing_apc_usd", &[
        "apc", "apc usd", "apc amount usd", "list price usd", "article processing charge", "article processing charge usd", "price usd",
        "apc list price usd", "apc us", "usd",
    ]),
    ("publishing_embargo_months", &["embargo", "embargo period", "embargo months"]),
    ("year", &["edition", "edition year", "event year"]),
    ("start_date", &["start", "starts", "begin", "begins", "begin date", "start date", "date from", "from", "first day", "beginn"]),
    ("end_date", &["end", "ends", "end date", "date to", "to", "until", "last day", "ende"]),
    ("start_date+end_date", &["dates", "date", "event date", "event dates", "conference date", "conference dates", "meeting dates", "when", "datum"]),
    ("abstract_due_date", &["abstract deadline", "abstract submission deadline", "submission deadline", "abstracts due", "abstract due", "deadline"]),
    ("late_breaking_due_date", &["late breaking deadline", "late breaking abstract deadline", "late breaking", "lba deadline"]),
    ("country", &["host country", "nation", "land"]),
    ("city", &["town", "host city", "stadt", "ort"]),
    ("city+country", &["location", "place", "where", "city country"]),
    ("venue", &["venue name", "conference venue"]),
    ("therapy_areas", &["therapy area", "therapeutic area", "therapeutic areas", "specialty", "specialties", "speciality", "topic", "topics", "subject", "subjects"]),
    ("organizations", &["organization", "organizer", "organiser", "organizers", "society", "societies", "affiliated society", "host"]),
    ("type", &["kind"]),
];

/// Returns a header in lower case, without accents, punctuation and years, and the year in it.
fn plain(header: &str) -> (String, Option<u16>) {
    let folded = fold(header);
    let words = folded
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let year_of = |word: &str| {
        word.parse::<u16>()
            .ok()
            .filter(|year| word.len() == 4 && (1900..=2100).contains(year))
    };
    let year = words.clone().find_map(year_of);
    let mut words: Vec<&str> = words.filter(|word| year_of(word).is_none()).collect();
    // The number in `Society 2`.
    words.pop_if(|last| last.len() < 3 && last.bytes().all(|byte| byte.is_ascii_digit()));
    (words.join(" "), year)
}

/// Returns the names of the best fields for a header, if the table has them.
pub(in crate::import) fn best_fields<'t>(
    table: &'t FieldTable,
    header: &str,
) -> Option<Vec<&'t str>> {
    let has = |name: &str| table.fields.iter().any(|field| field.column == name);
    let (header, _) = plain(header);
    // Also a metric with its year, such as `SJR 2024`.
    let squeezed = header.replace(' ', "");
    if let Some(field) = table
        .fields
        .iter()
        .find(|field| field.column.replace('_', "") == squeezed)
    {
        return Some(vec![&field.column]);
    }
    let names = NAMES
        .iter()
        .filter(|(_, names)| names.contains(&header.as_str()));
    names
        .map(|(fields, _)| fields.split('+').collect::<Vec<_>>())
        .find(|fields| fields.iter().all(|field| has(field)))
}

/// A column of a draft.
struct DraftColumn {
    /// The header, or `=D` if there is none.
    name: String,
    /// The names of the fields; empty if the column is ignored.
    fields: Vec<&'static str>,
    /// The texts that are not blank.
    samples: Vec<String>,
    /// Whether no row of the sample is blank.
    is_full: bool,
}

impl DraftColumn {
    /// Returns true if the column has a text that usually marks an empty cell, but may be a value here.
    fn may_mean(&self, text: &str) -> bool {
        self.samples.iter().any(|sample| sample == text)
            && self.fields.iter().any(|field| may_be_name(field, text))
    }
}

impl FileSample {
    /// Returns a recipe for the file, as TOML. Returns `None` if the file has no row.
    pub fn draft_recipe(&self, file: &str, sheet: Option<&str>) -> Option<String> {
        let kind = self.kind;
        let table = kind.table();
        let (columns, header_rows) = self.columns(table)?;
        let names = |field: &str| columns.iter().any(|column| column.fields.contains(&field));
        let mut lines = vec![format!(
            "# A recipe for {}. Check each line; docs/recipes.md explains them.",
            file.escape_debug()
        )];
        lines.push(format!("dataset = \"{kind}\""));
        let encoding = self.encoding.map(|encoding| encoding.name());
        lines.extend(
            encoding.map(|name| {
                format!("encoding = \"{name}\"    # a guess: check the accented letters")
            }),
        );
        lines.extend(sheet.map(|sheet| format!("sheet = {}", quoted(sheet))));
        lines.extend((header_rows > 1).then(|| format!("header_rows = {header_rows}")));
        let matching = match kind {
            RowKind::Journals if names("issn_print") || names("issn_online") => {
                "match = [[\"issn\"], [\"name\"]]"
            }
            RowKind::Journals => "match = [[\"name\"]]",
            RowKind::Conferences if names("start_date") => "match = [[\"name\", \"start_date\"]]",
            RowKind::Conferences => "match = [[\"name\", \"year\"]]",
            RowKind::Organizations | RowKind::Tags => {
                "# Rows without ids are found by their names."
            }
        };
        lines.push(matching.to_owned());
        let empty = empty_texts(&columns);
        lines.extend((!empty.is_empty()).then(|| format!("empty = [{}]", empty.join(", "))));
        let (mapped, ignored): (Vec<_>, Vec<_>) =
            columns.iter().partition(|column| !column.fields.is_empty());
        if !ignored.is_empty() {
            lines.push("ignore = [".to_owned());
            for DraftColumn { name, .. } in ignored {
                let remark = if comparable(name) == "id" {
                    "    # map it to `id` if these are the database's ids"
                } else {
                    ""
                };
                lines.push(format!("    {},{remark}", quoted(name)));
            }
            lines.push("]".to_owned());
        }
        lines.extend(names("organizations").then(|| "create_links = true".to_owned()));
        lines.push("\n[columns]".to_owned());
        for DraftColumn { name, fields, .. } in mapped {
            let fields: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
            lines.push(match &*fields {
                [only] => format!("{} = {only}", quoted(name)),
                several => format!("{} = [{}]", quoted(name), several.join(", ")),
            });
        }
        let mut constants = Vec::new();
        if kind == RowKind::Conferences {
            let statuses = [
                "start_date_status",
                "abstract_due_date_status",
                "late_breaking_due_date_status",
            ];
            // They are required in each row.
            let is_full = |name: &str| {
                columns
                    .iter()
                    .any(|column| column.fields == [name] && column.is_full)
            };
            let missing = statuses.into_iter().filter(|name| !is_full(name));
            constants.extend(missing.map(|name| format!("{name} = \"check\"")));
        }
        let metric = columns
            .iter()
            .find(|column| column.fields.contains(&"impact_factor"));
        let year = metric
            .and_then(|column| plain(&column.name).1)
            .filter(|_| !names("impact_factor_year"));
        constants.extend(year.map(|year| format!("impact_factor_year = {year}")));
        lines.extend((!constants.is_empty()).then(|| format!("\n[set]\n{}", constants.join("\n"))));
        Some(lines.join("\n") + "\n")
    }

    /// Returns the columns of the file with their best fields, and the number of rows of its header.
    fn columns(&self, table: &'static FieldTable) -> Option<(Vec<DraftColumn>, usize)> {
        let (mut columns, header_rows) = table_columns(&self.rows, table)?;
        let has_year = columns
            .iter()
            .any(|column| best_fields(table, &column.name).is_some_and(|best| best == ["year"]));
        let mut used: Vec<&str> = Vec::new();
        for column in &mut columns {
            let fields = best_fields(table, &column.name).unwrap_or_default();
            let kind_of = |name: &&str| {
                table
                    .fields
                    .iter()
                    .find(|field| field.column == **name)
                    .map(|field| field.kind)
            };
            let is_number = |name: &&str| {
                kind_of(name).is_some_and(|kind| kind == ValueKind::Number || kind.is_whole())
            };
            let has_digit = |text: &String| text.bytes().any(|byte| byte.is_ascii_digit());
            // `APC` may contain `Yes`.
            if fields.iter().any(is_number) && !column.samples.iter().any(has_digit) {
                continue;
            }
            let fields = refined(fields, &column.samples, has_year);
            let is_list = fields
                .first()
                .and_then(kind_of)
                .is_some_and(ValueKind::is_list);
            if is_list || !fields.iter().any(|field| used.contains(field)) {
                used.extend(&fields);
                column.fields = fields;
            }
        }
        Some((columns, header_rows))
    }
}

/// Returns the columns of a table, and the number of rows of its header. The header is the first row with two known
/// names, else the row with most texts. It has a second row if the cell below a name is blank.
fn table_columns(rows: &[Vec<String>], table: &FieldTable) -> Option<(Vec<DraftColumn>, usize)> {
    let is_known = |name: &&String| best_fields(table, name).is_some();
    let has_two = |at: &usize| rows[*at].iter().filter(is_known).count() > 1;
    let filled = |at: &usize| {
        rows[*at]
            .iter()
            .filter(|name| !name.trim().is_empty())
            .count()
    };
    let at = (0..rows.len())
        .find(has_two)
        .or_else(|| (0..rows.len()).rev().max_by_key(filled))?;
    let is_name = |text: &String| best_fields(table, text).is_some_and(|fields| fields == ["name"]);
    let below = rows[at]
        .iter()
        .position(is_name)
        .and_then(|name| Some(rows.get(at + 1)?.get(name)?.trim().is_empty()));
    let header_rows = if below == Some(true) { 2 } else { 1 };
    let header = joined_header(rows[at..at + header_rows].iter().map(Vec::as_slice));
    let mut columns: Vec<DraftColumn> = Vec::new();
    let texts_at = |column: usize| {
        rows[at + header_rows..]
            .iter()
            .map(move |row| row.get(column).map_or("", String::as_str))
    };
    for (index, name) in header.iter().enumerate() {
        let samples: Vec<String> = texts_at(index)
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect();
        let same =
            |other: &usize| !name.is_empty() && comparable(&header[*other]) == comparable(name);
        let equal: Vec<usize> = (0..index).filter(same).collect();
        let name = match equal.first() {
            // Equal columns of one name are one.
            Some(first) if texts_at(*first).eq(texts_at(index)) => continue,
            Some(_) => format!("{name}#{}", equal.len() + 1),
            None if name.is_empty() && samples.is_empty() => continue,
            None if name.is_empty() => format!("={}", column_letters(index)),
            None => name.clone(),
        };
        columns.push(DraftColumn {
            name,
            fields: Vec::new(),
            is_full: samples.len() == texts_at(index).len(),
            samples,
        });
    }
    Some((columns, header_rows))
}

/// Returns the fields that the texts of a column contain: two ISSNs, a range of dates, or a city with its country.
fn refined(fields: Vec<&'static str>, samples: &[String], has_year: bool) -> Vec<&'static str> {
    let most = |is: &dyn Fn(&str) -> bool| {
        samples.iter().filter(|text| is(text)).count() * 2 > samples.len()
    };
    let any = |is: &dyn Fn(&str) -> bool| samples.iter().any(|text| is(text));
    let is_place = |text: &str| {
        text.rsplit_once(',')
            .is_some_and(|(_, country)| is_country(country.trim()))
    };
    let is_range = |text: &str| {
        let range = date_range(text, Some(DateOrder::Dmy)).ok().flatten();
        range.is_some_and(|(start, end)| start != end)
    };
    let has_two = |text: &str| {
        text.trim()
            .chars()
            .filter(|sign| sign.is_alphanumeric())
            .count()
            == 16
    };
    let mut fields = match &*fields {
        ["issn_print"] if any(&has_two) => vec!["issn_print", "issn_online"],
        ["city"] if most(&is_place) => vec!["city", "country"],
        ["city", "country"] if !most(&is_place) => vec!["city"],
        ["start_date"] if any(&is_range) => vec!["start_date", "end_date"],
        ["start_date", "end_date"] if !any(&is_range) => vec!["start_date"],
        _ => fields,
    };
    if fields.first() == Some(&"start_date") && !has_year {
        fields.push("year");
    }
    fields
}

/// Returns the quoted texts that usually mark an empty cell, without those that may be values of a column.
fn empty_texts(columns: &[DraftColumn]) -> Vec<String> {
    const TEXTS: [&str; 12] = [
        "N/A", "n/a", "NA", "#N/A", "-", "–", "—", "*", "**", "NULL", "null", "None",
    ];
    let used = columns.iter().filter(|column| !column.fields.is_empty());
    let samples: Vec<&String> = used.flat_map(|column| &column.samples).collect();
    TEXTS
        .into_iter()
        .filter(|text| samples.iter().any(|sample| sample == text))
        .filter(|text| !columns.iter().any(|column| column.may_mean(text)))
        .map(quoted)
        .collect()
}

/// Returns a text as a TOML string (TOML 1.0, basic strings).
fn quoted(text: &str) -> String {
    let mut json = Vec::new();
    push_json(&mut json, text);
    String::from_utf8_lossy(&json).into_owned()
}
