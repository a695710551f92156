//! The text of a drafted recipe.

use std::fmt::Display;

use crate::import::findings::cut;
use crate::import::read::draft::Draft;
use crate::import::read::draft::content::{DraftColumn, kind_of_cells};
use crate::import::read::draft::names::year_of;
use crate::import::read::draft::notation::Reading;
use crate::import::read::options::ISSN_COLUMNS;
use crate::import::read::row_kind::RowKind;
use crate::model::fold::comparable;
use crate::model::printable::Printable;
use crate::model::value::json::push_json;

/// The maximum length of a cell in a comment.
const MAX_CELL_CHARS: usize = 40;

impl Draft {
    /// Returns the recipe as TOML, without the comments at its head.
    pub fn to_toml(&self) -> String {
        let mut lines = vec![format!("dataset = \"{}\"", self.kind)];
        lines.extend(
            self.encoding.map(|name| {
                format!("encoding = \"{name}\"    # a guess: check the accented letters")
            }),
        );
        self.write_sheet(&mut lines);
        match self.header_rows {
            0 => lines.push(
                "header_rows = 0    # the first row looks like those below; if it has the names of the columns, write 1"
                    .to_owned(),
            ),
            1 => {}
            rows => lines.push(format!("header_rows = {rows}")),
        }
        self.write_match(&mut lines);
        self.write_notation(&mut lines);
        self.write_ignored(&mut lines);
        if self.has("organizations") {
            lines.push("create_links = true    # creates unknown organizations".to_owned());
        }
        self.write_columns(&mut lines);
        self.write_constants(&mut lines);
        self.write_empty_in(&mut lines);
        self.write_conditions(&mut lines);
        lines.join("\n") + "\n"
    }

    fn has(&self, field: &str) -> bool {
        self.assigned.column_of(field).is_some()
    }

    fn write_sheet(&self, lines: &mut Vec<String>) {
        let Some(sheet) = &self.sheet else { return };
        let others: Vec<String> = self.other_sheets.iter().map(|name| quoted(name)).collect();
        let remark = if others.is_empty() {
            String::new()
        } else {
            format!(
                "    # a list of names reads several; others: {}",
                others.join(", ")
            )
        };
        lines.push(format!("sheet = {}{remark}", quoted(sheet)));
    }

    fn write_match(&self, lines: &mut Vec<String>) {
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
        lines.push(matching.to_owned());
        if !matching.starts_with("match") {
            return;
        }
        lines.push(format!(
            "# new = false    # leaves out rows that match none of the stored {}",
            self.kind
        ));
        let columns = self.assigned.columns.iter();
        let mut fields: Vec<&str> = columns.flat_map(|column| &column.fields).copied().collect();
        fields.retain(|field| *field != "name" && !ISSN_COLUMNS.contains(field));
        if self.metric_year().is_some() {
            fields.push("impact_factor_year");
        }
        fields.dedup();
        if !fields.is_empty() {
            lines.push(format!(
                "# update = [{}]    # stored {} take only these fields",
                quoted_list(&fields),
                self.kind
            ));
        }
    }

    fn write_notation(&self, lines: &mut Vec<String>) {
        let sign = |sign| format!("{sign:?}").to_lowercase();
        let decimal = match &self.decimal {
            Reading::One(found) => Reading::One(sign(found)),
            Reading::Open(count, text) => Reading::Open(*count, text.clone()),
            Reading::NotNeeded => Reading::NotNeeded,
        };
        write_reading(lines, "decimal", &decimal, "\"comma\" or \"point\"");
        write_reading(lines, "dates", &self.dates, "\"dmy\" or \"mdy\"");
        let separator = match &self.separator {
            Reading::One("\n") => Reading::One("\\n"),
            Reading::One(sign) => Reading::One(*sign),
            Reading::Open(count, text) => Reading::Open(*count, text.clone()),
            Reading::NotNeeded => Reading::NotNeeded,
        };
        write_reading(
            lines,
            "list_separator",
            &separator,
            "\",\" if they are several items",
        );
        if !self.empty.is_empty() {
            lines.push(format!("empty = [{}]", quoted_list(&self.empty)));
        }
    }

    fn write_ignored(&self, lines: &mut Vec<String>) {
        let is_used = |at: usize| {
            let mut conditions = self.assigned.conditions.iter();
            conditions.any(|(_, column, _)| *column == at)
        };
        let columns = self.assigned.columns.iter().enumerate();
        let ignored: Vec<&DraftColumn> = columns
            .filter(|(at, column)| column.fields.is_empty() && !is_used(*at))
            .map(|(_, column)| column)
            .filter(|column| !(self.is_export && comparable(&column.name) == "id"))
            .collect();
        if ignored.is_empty() {
            return;
        }
        lines.push("ignore = [".to_owned());
        for column in ignored {
            lines.push(format!(
                "    {},    # {}",
                quoted(&column.name),
                described(column)
            ));
        }
        lines.push("]".to_owned());
    }

    fn write_columns(&self, lines: &mut Vec<String>) {
        lines.push("\n[columns]".to_owned());
        for column in &self.assigned.columns {
            match &*column.fields {
                [] => {}
                [only] => lines.push(format!("{} = {}", quoted(&column.name), quoted(only))),
                several => lines.push(format!(
                    "{} = [{}]",
                    quoted(&column.name),
                    quoted_list(several)
                )),
            }
        }
    }

    fn write_constants(&self, lines: &mut Vec<String>) {
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
                column.is_some_and(|column| column.is_full)
            };
            let missing = statuses.into_iter().filter(|name| !is_full(name));
            constants.extend(missing.map(|name| format!("{name} = \"check\"")));
        }
        constants.extend(
            self.metric_year()
                .map(|year| format!("impact_factor_year = {year}")),
        );
        if !constants.is_empty() {
            lines.push(format!("\n[set]\n{}", constants.join("\n")));
        }
    }

    /// Returns the year in the header of the impact factor, if no column has it.
    fn metric_year(&self) -> Option<u16> {
        let metric = self.assigned.column_of("impact_factor")?;
        year_of(&metric.header).filter(|_| !self.has("impact_factor_year"))
    }

    fn write_empty_in(&self, lines: &mut Vec<String>) {
        if self.empty_in.is_empty() {
            return;
        }
        lines.push("\n[empty_in]".to_owned());
        for (field, texts) in &self.empty_in {
            lines.push(format!("{field} = ["));
            for (text, count) in texts {
                lines.push(format!("    {},    # {}", quoted(text), cells(*count)));
            }
            lines.push("]".to_owned());
        }
    }

    fn write_conditions(&self, lines: &mut Vec<String>) {
        for (field, column, values) in &self.assigned.conditions {
            let name = quoted(&self.assigned.columns[*column].name);
            lines.push(format!(
                "\n[where.{field}]\n{name} = [{}]",
                quoted_list(values)
            ));
        }
    }
}

/// Writes an option, or asks for it in a comment.
fn write_reading<T: Display>(
    lines: &mut Vec<String>,
    key: &str,
    reading: &Reading<T>,
    choice: &str,
) {
    match reading {
        Reading::NotNeeded => {}
        Reading::One(value) => lines.push(format!("{key} = \"{value}\"")),
        Reading::Open(count, text) => lines.push(format!(
            "# {key} =     # write {choice}: {}, such as `{}`, may mean both",
            cells(*count),
            shown(text)
        )),
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
