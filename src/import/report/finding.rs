//! A bad row or a warning.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::model::message::{Remedy, message};
use crate::model::printable::Printable;
use crate::model::{Id, Message};

/// A line of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The name of the source, as in the command.
    pub file: Arc<str>,
    /// The first line of the row, from 1.
    pub line: u64,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A bad row or a warning. Fields that do not apply are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the source, as in the command.
    pub file: Option<String>,
    /// The first line of the row, from 1.
    pub line: Option<u64>,
    /// The field or column.
    pub field: Option<String>,
    /// The wrong value, shortened.
    pub value: Option<String>,
    /// The problem, and how to correct it.
    pub message: Message,
    /// For a correction: the right value. `Some(None)` is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Option<String>>,
    /// The name of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// For a row of the database: its kind, which is the stem of its file names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// For a row of the database: its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
}

impl Finding {
    /// Creates a finding about a row of a file. Long texts are shortened.
    pub(in crate::import) fn new(
        position: &FilePosition,
        field: Option<&str>,
        value: Option<&str>,
        message: Message,
    ) -> Finding {
        let (file, line) = (Some(position.file.to_string()), Some(position.line));
        Finding { file, line, ..Finding::about(field, value, message) }
    }

    /// Creates a finding about a corrected value. Long texts are shortened.
    pub(in crate::import) fn fixed(position: &FilePosition, field: &str, value: &str, to: Option<String>) -> Finding {
        let message = match &to {
            // Each value has its own correction.
            Some(to) => message!("is corrected to `{to}`").with(Remedy::OfValue),
            None => "is left empty".into(),
        };
        Finding { to: Some(to), ..Finding::new(position, Some(field), Some(value), message) }
    }

    /// Creates a finding without a location. Long texts are shortened.
    pub(in crate::import) fn about(field: Option<&str>, value: Option<&str>, message: Message) -> Finding {
        let message = Message { text: cut(&message.text, MAX_MESSAGE_CHARS), ..message };
        Finding { field: field.map(shortened), value: value.map(shortened), message, ..Finding::default() }
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
        write!(f, "{}", Printable(&self.message.text))
    }
}

/// Sorts by file, in order of appearance, and then by `key`. Items without a file come last.
pub(in crate::import) fn sort_by_file<T, K: Ord>(
    items: &mut [T],
    file: impl Fn(&T) -> &Option<String>,
    key: impl Fn(&T) -> K,
) {
    let mut files: Vec<String> = Vec::new();
    for file in items.iter().filter_map(|item| file(item).as_ref()) {
        if !files.contains(file) {
            files.push(file.clone());
        }
    }
    let index = |file: &String| files.iter().position(|other| other == file);
    items.sort_by_cached_key(|item| (file(item).as_ref().and_then(index).unwrap_or(files.len()), key(item)));
}

/// Shortens a value, name or path to a readable length.
pub(in crate::import) fn shortened(text: &str) -> String {
    cut(text, 200)
}

/// The maximum length of a message. All known names of a kind of row fit into it.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// Returns the first `max_chars` characters, and an ellipsis if there are more.
fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
