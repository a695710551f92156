//! Similar findings, each kind in one line.

use std::fmt;

use serde::Serialize;

use super::finding::Finding;
use crate::model::printable::Printable;
use crate::model::{Id, Joined, Message, Remedy, first_of};

/// The maximum number of lines, ids and values in a report.
const MAX_SHOWN: usize = 3;

/// The maximum number of unknown columns or fields in a report.
pub(super) const MAX_SHOWN_NAMES: usize = 12;

/// Faults or warnings of the same kind, in one file or in one kind of row in the database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FindingGroup {
    /// The name of the source, as in the command.
    pub file: Option<String>,
    /// The first lines with the fault.
    pub lines: Vec<u64>,
    /// For rows of the database, or with new ids: their kind, which is the stem of their file names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// For rows of the database, or with new ids: the first ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Id>,
    /// The field or column, or the first unknown names.
    pub fields: Vec<String>,
    /// The first wrong values.
    pub values: Vec<String>,
    /// The message of the first fault.
    pub message: Message,
    /// The number of faults.
    pub count: usize,
    /// The number of rows with a fault.
    #[serde(skip)]
    rows: usize,
    #[serde(skip)]
    last: (Option<u64>, Option<Id>),
    /// Whether the messages have different parts.
    #[serde(skip)]
    messages_differ: bool,
}

/// Returns a finding with only the properties that the findings of its group share.
pub(super) fn group_key(found: &Finding) -> Finding {
    let Message {
        code, remedy, text, ..
    } = &found.message;
    // Each value has its own remedy, or all fields share it.
    let is_of_value = *remedy == Remedy::OfValue;
    let is_of_field = *remedy != Remedy::OfAllFields;
    Finding {
        file: found.file.clone(),
        kind: found.kind,
        rule: found.rule,
        field: found.field.clone().filter(|_| is_of_field),
        value: found.value.clone().filter(|_| is_of_value),
        message: Message {
            code,
            text: if is_of_value {
                text.clone()
            } else {
                String::new()
            },
            ..Message::default()
        },
        ..Finding::default()
    }
}

impl FindingGroup {
    /// Returns an empty group for a finding, and for those with an equal key.
    pub(super) fn new(found: &Finding) -> FindingGroup {
        FindingGroup {
            file: found.file.clone(),
            kind: found.kind,
            message: found.message.clone(),
            ..FindingGroup::default()
        }
    }

    pub(super) fn add(&mut self, found: &Finding) {
        self.count += 1;
        let position = (found.line, found.id);
        if position != (None, None) && position != self.last {
            self.rows += 1;
            self.last = position;
            if self.rows <= MAX_SHOWN {
                self.lines.extend(found.line);
                self.ids.extend(found.id);
            }
        }
        self.messages_differ |= found.message != self.message;
        for (texts, text, max) in [
            (&mut self.fields, &found.field, MAX_SHOWN_NAMES),
            (&mut self.values, &found.value, MAX_SHOWN),
        ] {
            // One more than is shown.
            if texts.len() <= max && !text.as_ref().is_none_or(|text| texts.contains(text)) {
                texts.extend(text.clone());
            }
        }
    }
}

/// Lists the first texts between quotes, and appends `end`.
fn show(texts: &[String], max: usize, quote: &str, end: &str) -> String {
    if texts.is_empty() {
        return String::new();
    }
    let first = texts
        .iter()
        .take(max)
        .map(|text| format!("{quote}{}{quote}", Printable(text)));
    let more = if texts.len() > max { " and more" } else { "" };
    first.joined(", ") + more + end
}

impl fmt::Display for FindingGroup {
    /// Formats the group as one line: `file:2, 3, 4 and 8,190 more: field: value, value - message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}", Printable(file))?;
            if !self.lines.is_empty() {
                write!(f, ":{}", first_of(&self.lines, self.rows, MAX_SHOWN))?;
            }
            f.write_str(": ")?;
        }
        if let Some(kind) = self.kind {
            write!(f, "{kind} {}: ", first_of(&self.ids, self.rows, MAX_SHOWN))?;
        }
        f.write_str(&show(&self.fields, MAX_SHOWN_NAMES, "", ": "))?;
        f.write_str(&show(&self.values, MAX_SHOWN, "`", " - "))?;
        let others = if self.messages_differ {
            " (the others likewise)"
        } else {
            ""
        };
        write!(f, "{}{others}", Printable(&self.message.text))
    }
}
impl fmt::Display for Finding {
    /// Formats the finding as a group of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut group = FindingGroup::new(self);
        group.add(self);
        group.fmt(f)
    }
}
