//! One fault of a row, or one warning, and where it is.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::model::{Id, Message, Remedy, message};

/// A line of a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilePosition {
    /// The name of the source, as in the command.
    pub file: Arc<str>,
    /// The first line of the row, from 1.
    pub line: u64,
    /// The number of the row in its file. Several JSON objects may share a line.
    pub number: u64,
}

impl FilePosition {
    /// Returns the position of the only row in a line.
    pub(crate) fn new(file: Arc<str>, line: u64) -> FilePosition {
        FilePosition {
            file,
            line,
            number: 0,
        }
    }
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A bad row or a warning. Fields that do not apply are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Finding {
    /// The name of the source, as in the command.
    pub file: Option<String>,
    /// The first line of the row, from 1.
    pub line: Option<u64>,
    /// The number of the row in its file. Several JSON objects may share a line.
    #[serde(skip)]
    pub number: u64,
    /// The field or column.
    pub field: Option<String>,
    /// The wrong value, shortened.
    pub value: Option<String>,
    /// The problem, and how to correct it.
    pub message: Message,
    /// For a correction: the right value. Null empties the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
    /// The name of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// For a row of the database, or with a new id: its kind, which is the stem of its file names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// For a row of the database, or with a new id: its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
}

impl Finding {
    /// Creates a finding about a row of a file. Long texts are shortened.
    pub(crate) fn new(
        position: &FilePosition,
        field: Option<&str>,
        value: Option<&str>,
        message: Message,
    ) -> Finding {
        let file = Some(position.file.to_string());
        let line = Some(position.line);
        Finding {
            file,
            line,
            number: position.number,
            ..Finding::about(field, value, message)
        }
    }

    /// Returns the row that it is about, if it is about one.
    pub(crate) fn position(&self) -> Option<FilePosition> {
        Some(FilePosition {
            file: self.file.as_deref()?.into(),
            line: self.line?,
            number: self.number,
        })
    }

    /// Creates a finding about a corrected value, which an empty text empties. Long texts are shortened.
    pub(crate) fn fixed(position: &FilePosition, field: &str, value: &str, to: String) -> Finding {
        let message = match &*to {
            "" => "is left empty".into(),
            // Each value has its own correction.
            to => message!("is corrected to `{to}`").with(Remedy::OfValue),
        };
        let to = Some(to).filter(|to| !to.is_empty());
        Finding {
            to: Some(to.into()),
            ..Finding::new(position, Some(field), Some(value), message)
        }
    }

    /// Creates a finding about the new id of a row, or of the organization or tag that a link names.
    pub(crate) fn assigned(
        position: &FilePosition,
        kind: &'static str,
        id: Id,
        link: Option<&str>,
    ) -> Finding {
        let reason = if link.is_some() {
            "is new, because a row links to it"
        } else {
            "is new: the row matches no record"
        };
        Finding {
            kind: Some(kind),
            id: Some(id),
            ..Finding::new(position, None, link, reason.into())
        }
    }

    /// Creates a finding without a location. Long texts are shortened.
    pub(crate) fn about(field: Option<&str>, value: Option<&str>, message: Message) -> Finding {
        let message = Message {
            text: cut(&message.text, MAX_MESSAGE_CHARS),
            ..message
        };
        Finding {
            field: field.map(shortened),
            value: value.map(shortened),
            message,
            ..Finding::default()
        }
    }
}

/// Shortens a value, name or path to a readable length.
pub(crate) fn shortened(text: &str) -> String {
    cut(text, 200)
}

/// The maximum length of a message. All known names of a kind of row fit into it.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// Returns the first `max_chars` characters, and an ellipsis if there are more.
pub fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
