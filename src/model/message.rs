//! Messages about wrong values.

use std::fmt::{self, Write as _};
use std::ops::Deref;

use serde::{Serialize, Serializer};

/// A message about a wrong value. It names the fault and the remedy, and has no full stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Message {
    /// The kind of the message: its text before its parts are filled in.
    pub code: &'static str,
    /// The text, with its parts.
    pub text: String,
    /// The messages of the same code with which it can be reported.
    pub remedy: Remedy,
    /// The right value, if there is exactly one. An empty text is null.
    pub right: Option<String>,
}

/// The values that share a remedy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// All values of a field.
    #[default]
    OfField,
    /// Only equal values with equal messages.
    OfValue,
    /// All fields with this code.
    OfAllFields,
}

/// Creates a [`Message`] like `format!`. The format string is its code.
macro_rules! message {
    ($code:literal $($parts:tt)*) => {
        $crate::model::message::Message {
            code: $code,
            text: format!($code $($parts)*),
            ..$crate::model::message::Message::default()
        }
    };
}
pub(crate) use message;

/// Displays a number with commas between its thousands.
#[derive(Clone, Copy)]
pub struct Count(pub u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.char_indices() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// Joins the texts of an iterator's items.
pub trait Joined: Iterator<Item: fmt::Display> + Sized {
    /// Returns the texts of all items, with a separator between them.
    fn joined(self, separator: &str) -> String {
        let texts: Vec<String> = self.map(|item| item.to_string()).collect();
        texts.join(separator)
    }
}

impl<I: Iterator<Item: fmt::Display>> Joined for I {}

/// Joins the first `max` of `count` items with commas, and counts the others: `a, b, c and 1,005 more`.
pub fn first_of(
    items: impl IntoIterator<Item = impl fmt::Display>,
    count: usize,
    max: usize,
) -> String {
    let first = items.into_iter().take(max).joined(", ");
    match count.saturating_sub(max) {
        0 => first,
        more => format!("{first} and {} more", Count(more as u64)),
    }
}

impl Message {
    /// Sets the values that share the remedy.
    pub fn with(self, remedy: Remedy) -> Message {
        Message { remedy, ..self }
    }

    /// Sets the right value. An empty text is null.
    pub fn corrected_by(self, right: String) -> Message {
        Message {
            right: Some(right),
            ..self
        }
    }
}

impl From<&'static str> for Message {
    fn from(text: &'static str) -> Message {
        Message {
            code: text,
            text: text.to_owned(),
            ..Message::default()
        }
    }
}

impl Deref for Message {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_texts_are_named_and_the_others_counted() {
        for (count, expected) in [
            (0, ""),
            (1, "1"),
            (3, "1, 2, 3"),
            (4, "1, 2, 3 and 1 more"),
            (1_002, "1, 2, 3 and 999 more"),
            (1_003, "1, 2, 3 and 1,000 more"),
            (1_234_570, "1, 2, 3 and 1,234,567 more"),
        ] {
            assert_eq!(first_of(1..=count, count, 3), expected);
        }
    }
}
