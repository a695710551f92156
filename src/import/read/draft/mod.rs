//! Drafts of recipes: the columns of a file, each with its best field.
//!
//! The steps:
//! 1. `sample` has the first rows.
//! 2. `header` finds the header and the columns.
//! 3. `assign` gives each column the fields that its header (`names`) and its cells (`content`, `currency`) allow.
//! 4. `notation` finds out how the file writes numbers, dates, lists and gaps.
//! 5. `DraftText` writes the recipe.

mod assign;
mod content;
mod header;
pub(in crate::import) mod names;
mod notation;

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::import::findings::{Findings, cut};
use crate::import::read::options::{ISSN_COLUMNS, InputError, ReadOptions};
use crate::import::read::sample::FileSample;
use crate::import::read::source::{RowKind, Source, SourceContent};
use crate::import::read::table_cell::Container;
use crate::import::read::table_row::is_issn;
use crate::import::read::workbook::Workbook;
use crate::model::flat;
use crate::model::fold::comparable;
use crate::model::printable::Printable;
use assign::{Assigned, PRICE};
use content::DraftColumn;
use header::{columns, find_header};
use names::year_of;
use notation::{Reading, date_order, decimal_sign, empty_in_field, empty_texts, list_separator};

/// Drafts a recipe for a file. If no sheet of a workbook is chosen, it is for the one with most columns that are read.
/// Returns `None` if no row is found, with the faults of reading.
pub fn draft_recipe(
    source: &Source,
    kind: RowKind,
    sheet: Option<&str>,
) -> Result<(Option<Draft>, Findings), InputError> {
    let sheets = match sheet {
        Some(sheet) => vec![sheet.to_owned()],
        None => sheets_of(source)
            .map_err(|error| InputError::unreadable(Path::new(&*source.name), &error))?,
    };
    // The only sheet needs no name.
    let choices = match sheets.len() > 1 || sheet.is_some() {
        true => sheets.chunks(1).collect(),
        false => vec![&[][..]],
    };
    let mut drafts = Vec::new();
    let mut bad = Findings::default();
    for chosen in choices {
        let sample = FileSample::read(source, kind, chosen)?;
        drafts.extend(Draft::new(&sample, &sheets, chosen.first()));
        bad.append(sample.bad);
    }
    // In reverse, since `max_by_key` returns the last maximum.
    let drafts = drafts.into_iter().rev();
    let best = drafts.max_by_key(|draft| (draft.has_name, draft.mapped_count));
    Ok((best, bad))
}

/// Returns the names of the sheets of a workbook that are visible; none for another file.
fn sheets_of(source: &Source) -> io::Result<Vec<String>> {
    let options = ReadOptions::default();
    match source.open(&options)? {
        SourceContent::Text { .. } => Ok(Vec::new()),
        SourceContent::Workbook(file) => {
            Ok(Workbook::open(file, &options.bounds)?.visible_sheets())
        }
    }
}

/// A recipe for a file, drafted from its first rows.
#[derive(Debug)]
pub struct Draft {
    /// The recipe as TOML, without the comments at its head.
    pub recipe: String,
    /// Whether a column is read as the name.
    pub has_name: bool,
    /// The number of columns that are read.
    mapped_count: usize,
}

impl Draft {
    /// Drafts a recipe for a sheet, or for the only table of a file. Returns `None` if the file has no row.
    fn new(sample: &FileSample, sheets: &[String], sheet: Option<&String>) -> Option<Draft> {
        let rows = &*sample.rows;
        let header = match sample.notation.container {
            _ if rows.is_empty() => return None,
            Container::Json => 0..1,
            _ => find_header(sample.kind, rows),
        };
        let columns = columns(&rows[header.clone()], &rows[header.end..]);
        let has = |name: String| {
            columns
                .iter()
                .any(|column| comparable(&column.name) == comparable(&name))
        };
        let is_export = flat::columns(sample.kind.table(), false)
            .into_iter()
            .all(has);
        let assigned = Assigned::new(sample.kind, columns, !header.is_empty(), &sample.notation);
        let mut text = DraftText {
            sample,
            is_export,
            empty: empty_texts(&assigned.columns),
            assigned: &assigned,
            toml: format!("dataset = \"{}\"\n", sample.kind),
        };
        if let Some(encoding) = sample.encoding {
            let name = encoding.name();
            text.push(format!(
                "encoding = \"{name}\"    # a guess: check the accented letters"
            ));
        }
        if let Some(sheet) = sheet {
            text.push_sheet(sheet, sheets);
        }
        match header.len() {
            0 => text.push(
                "header_rows = 0    # the first row looks like those below; if it has the names of the columns, write 1",
            ),
            1 => {}
            rows => text.push(format!("header_rows = {rows}")),
        }
        text.push_all();
        let mapped = assigned
            .columns
            .iter()
            .filter(|column| !column.fields.is_empty());
        Some(Draft {
            recipe: text.toml,
            has_name: assigned.column_of("name").is_some(),
            mapped_count: mapped.count(),
        })
    }
}

/// The text of a draft so far.
struct DraftText<'d> {
    sample: &'d FileSample,
    /// Whether the file has the columns of an export. Then its ids are those of the database.
    is_export: bool,
    assigned: &'d Assigned,
    /// The texts that count as empty in all fields.
    empty: Vec<&'static str>,
    toml: String,
}

impl<'d> DraftText<'d> {
    /// Adds a line.
    fn push(&mut self, line: impl AsRef<str>) {
        self.toml += line.as_ref();
        self.toml += "\n";
    }

    /// Adds a list with a comment for each text.
    fn push_list(&mut self, key: &str, texts: Vec<(&str, String)>) {
        self.push(format!("{key} = ["));
        for (text, comment) in texts {
            self.push(format!("    {},    # {comment}", quoted(text)));
        }
        self.push("]");
    }

    /// Adds an option, or asks for it in a comment.
    fn push_reading(&mut self, key: &str, reading: Reading, choice: &str) {
        match reading {
            Reading::NotNeeded => {}
            Reading::One(value) => self.push(format!("{key} = {}", quoted(value))),
            Reading::Open(count, text) => {
                let cells = cells(count);
                let text = shown(&text);
                let line = format!(
                    "# {key} =     # write {choice}: {cells}, such as `{text}`, may mean both"
                );
                self.push(line);
            }
        }
    }

    fn push_sheet(&mut self, sheet: &str, sheets: &[String]) {
        let others: Vec<&String> = sheets.iter().filter(|other| *other != sheet).collect();
        let comment = match &*others {
            [] => String::new(),
            _ => format!(
                "    # a list of names reads several; others: {}",
                quoted_list(&others)
            ),
        };
        self.push(format!("sheet = {}{comment}", quoted(sheet)));
    }

    /// Adds all that the columns decide.
    fn push_all(&mut self) {
        let columns = &*self.assigned.columns;
        self.push_match();
        let decimal = decimal_sign(columns, &self.sample.notation);
        self.push_reading("decimal", decimal, "\"comma\" or \"point\"");
        self.push_reading("dates", date_order(columns), "\"dmy\" or \"mdy\"");
        let choice = "\",\" if they are several items";
        self.push_reading("list_separator", list_separator(columns), choice);
        if !self.empty.is_empty() {
            self.push(format!("empty = [{}]", quoted_list(&self.empty)));
        }
        self.push_ignored();
        if self.has("organizations") {
            self.push("create_links = true    # creates unknown organizations");
        }
        self.push("\n[columns]");
        for column in columns {
            let name = quoted(&column.name);
            let fields = quoted_list(&column.fields);
            match column.fields.len() {
                0 => {}
                1 => self.push(format!("{name} = {fields}")),
                _ => self.push(format!("{name} = [{fields}]")),
            }
        }
        self.push_constants();
        self.push_gaps();
        if let Some((column, values)) = &self.assigned.condition {
            let name = quoted(&columns[*column].name);
            let values = quoted_list(values);
            self.push(format!("\n[where.{PRICE}]\n{name} = [{values}]"));
        }
    }

    fn has(&self, field: &str) -> bool {
        self.assigned.column_of(field).is_some()
    }

    fn push_match(&mut self) {
        let kind = self.sample.kind;
        let has_issn = ISSN_COLUMNS.iter().any(|field| self.has(field));
        let sets = match kind {
            _ if self.is_export => {
                return self.push(
                    "# The file has the columns of an export, so its ids are those of the database.",
                );
            }
            RowKind::Organizations | RowKind::Tags => {
                return self.push("# Rows without ids are found by their names.");
            }
            RowKind::Journals if has_issn => r#"[["issn"], ["name"]]"#,
            RowKind::Journals => r#"[["name"]]"#,
            RowKind::Conferences if self.has("start_date") => {
                r#"[["name", "start_date"], ["name", "year"]]"#
            }
            RowKind::Conferences => r#"[["name", "year"]]"#,
        };
        self.push(format!("match = {sets}"));
        self.push(format!(
            "# new = false    # leaves out rows that match none of the stored {kind}"
        ));
        let columns = self.assigned.columns.iter();
        let mut fields: Vec<&str> = columns.flat_map(|column| &column.fields).copied().collect();
        fields.retain(|field| *field != "name" && !is_issn(field));
        fields.extend(self.metric_year().map(|_| "impact_factor_year"));
        fields.dedup();
        if !fields.is_empty() {
            let fields = quoted_list(&fields);
            self.push(format!(
                "# update = [{fields}]    # stored {kind} take only these fields"
            ));
        }
    }

    fn push_ignored(&mut self) {
        let condition = self.assigned.condition.as_ref();
        let columns = self.assigned.columns.iter().enumerate();
        let columns = columns.filter(|(at, column)| {
            let is_used = condition.is_some_and(|(used, _)| used == at)
                || self.is_export && comparable(&column.name) == "id";
            column.fields.is_empty() && !is_used
        });
        let ignored: Vec<_> = columns
            .map(|(_, column)| (&*column.name, why_ignored(column)))
            .collect();
        if !ignored.is_empty() {
            self.push_list("ignore", ignored);
        }
    }

    /// Adds the texts that count as empty in the fields of single columns.
    fn push_gaps(&mut self) {
        let before = self.toml.len();
        for column in &self.assigned.columns {
            let gaps = empty_in_field(column, &self.empty, &self.sample.notation);
            let gaps = gaps.into_iter().map(|(text, count)| (text, cells(count)));
            let gaps: Vec<_> = gaps.collect();
            if let Some(field) = column.fields.first().filter(|_| !gaps.is_empty()) {
                self.push_list(field, gaps);
            }
        }
        if self.toml.len() > before {
            self.toml.insert_str(before, "\n[empty_in]\n");
        }
    }

    fn push_constants(&mut self) {
        let mut constants: Vec<String> = Vec::new();
        if self.sample.kind == RowKind::Conferences {
            // A status is required in each row. Those of the file have precedence.
            let dates = ["start_date", "abstract_due_date", "late_breaking_due_date"];
            constants.extend(dates.map(|date| format!("{date}_status = \"check\"")));
        }
        match self.metric_year() {
            Some(year) => constants.push(format!("impact_factor_year = {year}")),
            None if self.has("impact_factor") && !self.has("impact_factor_year") => constants.push(
                "# impact_factor_year =    # write the year of these factors, which the file does not say".to_owned(),
            ),
            None => {}
        }
        if self.sample.kind == RowKind::Tags && !self.has("type") {
            constants.push("# type = \"\"    # write the type of these tags".to_owned());
        }
        if !constants.is_empty() {
            self.push(format!("\n[set]\n{}", constants.join("\n")));
        }
    }

    /// Returns the year in the header of the impact factor, if no column has it.
    fn metric_year(&self) -> Option<u16> {
        let metric = self.assigned.column_of("impact_factor")?;
        year_of(&metric.header).filter(|_| !self.has("impact_factor_year"))
    }
}

/// Returns the comment of an ignored column.
fn why_ignored(column: &DraftColumn) -> String {
    let Some(example) = column.texts().next() else {
        return "empty".to_owned();
    };
    let reason = match &column.reason {
        Some(reason) => format!("; {reason}"),
        None if comparable(&column.header) == "id" => {
            "; map it to `id` only if these are the ids of the database".to_owned()
        }
        None => String::new(),
    };
    format!(
        "{}, such as `{}`{reason}",
        cells(column.cells.len()),
        shown(example)
    )
}

/// Returns the beginning of a cell for a comment.
fn shown(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    cut(&Printable(text).to_string(), MAX_CHARS)
}

fn cells(count: usize) -> String {
    match count {
        1 => "1 cell".to_owned(),
        _ => format!("{count} cells"),
    }
}

fn quoted_list<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    texts.join(", ")
}

/// Returns a text as a TOML string (TOML 1.0, basic strings).
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
