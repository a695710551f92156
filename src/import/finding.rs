//! One bad row or warning.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::model::Id;
use crate::model::printable::Printable;

/// A line of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The source, as the caller named it.
    pub file: Arc<str>,
    /// The line on which the row begins, from 1.
    pub line: u64,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A bad row or a warning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The source, as the caller named it, where the finding is about one.
    pub file: Option<String>,
    /// The line on which the row begins, from 1, where the finding is about one.
    pub line: Option<u64>,
    /// The field or column, where the finding is about one.
    pub field: Option<String>,
    /// The offending value, where there is one to show; a long one is cut.
    pub value: Option<String>,
    /// The rule or what was seen, and what to do about it.
    pub message: String,
    /// The name of the rule, where it has one: findings of one rule belong together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// The kind of the row (the stem of its files), where the finding is about one in the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The row's id, where the finding is about one in the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
}

impl Finding {
    /// A finding at a row. What is long is cut.
    pub(super) fn new(position: &FilePosition, field: Option<&str>, value: Option<&str>, message: &str) -> Finding {
        Finding {
            file: Some(position.file.to_string()),
            line: Some(position.line),
            field: field.map(shortened),
            value: value.map(shortened),
            message: cut(message, MAX_MESSAGE_CHARS),
            ..Finding::default()
        }
    }

    /// A finding at a row of the database.
    pub(super) fn of_record(
        kind: &'static str,
        id: Id,
        field: Option<&str>,
        value: Option<&str>,
        message: &str,
    ) -> Finding {
        Finding {
            kind: Some(kind),
            id: Some(id),
            field: field.map(shortened),
            value: value.map(shortened),
            message: cut(message, MAX_MESSAGE_CHARS),
            ..Finding::default()
        }
    }

    /// The finding as one of a rule.
    pub(super) fn of_rule(self, rule: &'static str) -> Finding {
        Finding { rule: Some(rule), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", Printable(file))?,
            (Some(file), None) => write!(f, "{}: ", Printable(file))?,
            (None, _) => {}
        }
        if let (Some(kind), Some(id)) = (self.kind, self.id) {
            write!(f, "{kind} {id}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{}: ", Printable(field))?;
        }
        if let Some(value) = &self.value {
            write!(f, "`{}` - ", Printable(value))?;
        }
        write!(f, "{}", Printable(&self.message))
    }
}

/// A value, name or path, cut to a readable length.
pub(super) fn shortened(text: &str) -> String {
    cut(text, 200)
}

/// The longest message; it has room for all known names of a kind of row.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// The first characters of a text.
fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
