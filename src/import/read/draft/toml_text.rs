//! The text of a drafted recipe.

use super::Draft;
use super::content::{DraftColumn, kind_of_cells};
use super::names::year_of;
use super::notation::Reading;
use crate::import::findings::cut;
use crate::import::read::options::ISSN_COLUMNS;
use crate::import::read::row_kind::RowKind;
use crate::model::fold::comparable;
use crate::model::printable::Printable;
use crate::model::value::json::push_json;

/// The maximum length of a cell in a comment.
const MAX_CELL_CHARS: usize = 40;

/// The lines of a recipe.
#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    fn push(&mut self, line: impl Into<String>) {
        self.0.push(line.into());
    }

    /// Adds a line with a comment, which may be empty.
    fn push_with(&mut self, line: String, comment: &str) {
        let sign = if comment.is_empty() { "" } else { "    # " };
        self.push(format!("{line}{sign}{comment}"));
    }

    /// Adds a list with a comment for each text.
    fn push_list(&mut self, key: &str, texts: impl Iterator<Item = (String, String)>) {
        self.push(format!("{key} = ["));
        for (text, comment) in texts {
            self.push_with(format!("    {},", quoted(&text)), &comment);
        }
        self.push("]");
    }

    /// Adds an option, or asks for it in a comment.
    fn push_reading(&mut self, key: &str, reading: &Reading, choice: &str) {
        match reading {
            Reading::NotNeeded => {}
            Reading::One(value) => self.push(format!("{key} = {}", quoted(value))),
            Reading::Open(count, text) => self.push(format!(
                "# {key} =     # write {choice}: {}, such as `{}`, may mean both",
                cells(*count),
                shown(text)
            )),
        }
    }
}

impl Draft {
    /// Returns the recipe as TOML, without the comments at its head.
    pub fn to_toml(&self) -> String {
        let mut lines = Lines::default();
        lines.push(format!("dataset = \"{}\"", self.kind));
        if let Some(name) = self.encoding {
            let comment = "a guess: check the accented letters";
            lines.push_with(format!("encoding = \"{name}\""), comment);
        }
        self.write_table(&mut lines);
        self.write_match(&mut lines);
        lines.push_reading("decimal", &self.decimal, "\"comma\" or \"point\"");
        lines.push_reading("dates", &self.dates, "\"dmy\" or \"mdy\"");
        let choice = "\",\" if they are several items";
        lines.push_reading("list_separator", &self.separator, choice);
        if !self.empty.is_empty() {
            lines.push(format!("empty = [{}]", quoted_list(&self.empty)));
        }
        self.write_ignored(&mut lines);
        if self.has("organizations") {
            let comment = "creates unknown organizations";
            lines.push_with("create_links = true".to_owned(), comment);
        }
        lines.push("\n[columns]");
        for column in &self.assigned.columns {
            let name = quoted(&column.name);
            match (&*column.fields, quoted_list(&column.fields)) {
                ([], _) => {}
                ([_], field) => lines.push(format!("{name} = {field}")),
                (_, fields) => lines.push(format!("{name} = [{fields}]")),
            }
        }
        self.write_constants(&mut lines);
        if !self.empty_in.is_empty() {
            lines.push("\n[empty_in]");
        }
        for (field, texts) in &self.empty_in {
            let texts = texts.iter();
            lines.push_list(
                field,
                texts.map(|(text, count)| (text.clone(), cells(*count))),
            );
        }
        for (field, column, values) in &self.assigned.conditions {
            let name = quoted(&self.assigned.columns[*column].name);
            lines.push(format!(
                "\n[where.{field}]\n{name} = [{}]",
                quoted_list(values)
            ));
        }
        lines.0.join("\n") + "\n"
    }

    fn has(&self, field: &str) -> bool {
        self.assigned.column_of(field).is_some()
    }

    /// Writes the sheet and the number of header rows.
    fn write_table(&self, lines: &mut Lines) {
        if let Some(sheet) = &self.sheet {
            let others = quoted_list(&self.other_sheets);
            let comment = match &*others {
                "" => others,
                _ => format!("a list of names reads several; others: {others}"),
            };
            lines.push_with(format!("sheet = {}", quoted(sheet)), &comment);
        }
        let comment = match self.header_rows {
            0 => {
                "the first row looks like those below; if it has the names of the columns, write 1"
            }
            _ => "",
        };
        if self.header_rows != 1 {
            lines.push_with(format!("header_rows = {}", self.header_rows), comment);
        }
    }

    fn write_match(&self, lines: &mut Lines) {
        let matching = match self.kind {
            _ if self.is_export => {
                "# The file has the columns of an export, so its ids are those of the database."
            }
            RowKind::Organizations | RowKind::Tags => {
                "# Rows without ids are found by their names."
            }
            RowKind::Journals if ISSN_COLUMNS.iter().any(|field| self.has(field)) => {
                "match = [[\"issn\"], [\"name\"]]"
            }
            RowKind::Journals => "match = [[\"name\"]]",
            RowKind::Conferences if self.has("start_date") => {
                "match = [[\"name\", \"start_date\"], [\"name\", \"year\"]]"
            }
            RowKind::Conferences => "match = [[\"name\", \"year\"]]",
        };
        lines.push(matching);
        if !matching.starts_with("match") {
            return;
        }
        let kind = self.kind;
        lines.push(format!(
            "# new = false    # leaves out rows that match none of the stored {kind}"
        ));
        let columns = self.assigned.columns.iter();
        let mut fields: Vec<&str> = columns.flat_map(|column| &column.fields).copied().collect();
        fields.retain(|field| *field != "name" && !ISSN_COLUMNS.contains(field));
        fields.extend(self.metric_year().map(|_| "impact_factor_year"));
        fields.dedup();
        if !fields.is_empty() {
            lines.push(format!(
                "# update = [{}]    # stored {kind} take only these fields",
                quoted_list(&fields)
            ));
        }
    }

    fn write_ignored(&self, lines: &mut Lines) {
        let is_used = |at: usize| {
            let mut conditions = self.assigned.conditions.iter();
            conditions.any(|(_, column, _)| *column == at)
        };
        let columns = self.assigned.columns.iter().enumerate();
        let ignored = columns.filter(|(at, column)| {
            let is_id = self.is_export && comparable(&column.name) == "id";
            column.fields.is_empty() && !is_used(*at) && !is_id
        });
        let mut ignored = ignored
            .map(|(_, column)| (column.name.clone(), described(column)))
            .peekable();
        if ignored.peek().is_some() {
            lines.push_list("ignore", ignored);
        }
    }

    fn write_constants(&self, lines: &mut Lines) {
        let mut constants = Vec::new();
        if self.kind == RowKind::Conferences {
            let statuses = [
                "start_date_status",
                "abstract_due_date_status",
                "late_breaking_due_date_status",
            ];
            // They are required in each row.
            let is_full = |name: &str| {
                let column = self.assigned.column_of(name);
                let mut empty = self.empty_in.iter();
                column.is_some_and(|column| column.is_full)
                    && self.empty.is_empty()
                    && !empty.any(|(field, _)| *field == name)
            };
            let missing = statuses.into_iter().filter(|name| !is_full(name));
            constants.extend(missing.map(|name| format!("{name} = \"check\"")));
        }
        match self.metric_year() {
            Some(year) => constants.push(format!("impact_factor_year = {year}")),
            None if self.has("impact_factor") && !self.has("impact_factor_year") => constants.push(
                "# impact_factor_year =    # write the year of these factors, which the file does not say".to_owned(),
            ),
            None => {}
        }
        if self.kind == RowKind::Tags && !self.has("type") {
            constants.push("# type = \"\"    # write the type of these tags".to_owned());
        }
        if !constants.is_empty() {
            lines.push(format!("\n[set]\n{}", constants.join("\n")));
        }
    }

    /// Returns the year in the header of the impact factor, if no column has it.
    fn metric_year(&self) -> Option<u16> {
        let metric = self.assigned.column_of("impact_factor")?;
        year_of(&metric.header).filter(|_| !self.has("impact_factor_year"))
    }
}

/// Describes the cells of an ignored column.
fn described(column: &DraftColumn) -> String {
    let Some(example) = column.texts().next() else {
        return "empty".to_owned();
    };
    let what = kind_of_cells(column);
    let count = column.cells.len();
    let what = match (count, what.strip_suffix("es"), what.strip_suffix('s')) {
        (1, Some(address), _) if what.ends_with("sses") => address,
        (1, Some(_), _) if what == "countries" => "country",
        (1, _, Some(one)) => one,
        _ => what,
    };
    let reason = match &column.reason {
        Some(reason) => format!("; {reason}"),
        None if comparable(&column.header) == "id" => {
            "; map it to `id` only if these are the ids of the database".to_owned()
        }
        None => String::new(),
    };
    format!("{count} {what}, such as `{}`{reason}", shown(example))
}

fn shown(text: &str) -> String {
    cut(&Printable(text).to_string(), MAX_CELL_CHARS)
}

fn cells(count: usize) -> String {
    if count == 1 {
        "1 cell".to_owned()
    } else {
        format!("{count} cells")
    }
}

fn quoted_list<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    texts.join(", ")
}

/// Returns a text as a TOML string (TOML 1.0, basic strings).
fn quoted(text: &str) -> String {
    let mut json = Vec::new();
    push_json(&mut json, text);
    String::from_utf8_lossy(&json).into_owned()
}
