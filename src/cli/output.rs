//! What commands print: text for people, one JSON object for scripts.

use std::fmt::{Display, Write as _};
use std::io::{IsTerminal, Write, stderr, stdin, stdout};

use serde::Serialize;

use crate::model::printable::{Printable, steers};

/// Where a command's result goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Output {
        Output { json }
    }

    /// The result, in the form that was asked for.
    pub fn result(self, json: &impl Serialize, text: impl Display) {
        if self.json {
            print_json(&serde_json::to_string(json).unwrap_or_default());
        } else {
            print_line(&text.to_string());
        }
    }

    /// Why nothing was done.
    pub fn error(self, message: &str) {
        if self.json {
            let object = serde_json::json!({ "error": message.trim_end() });
            print_json(&object.to_string());
        } else {
            note(&format!("error: {}", Printable(message.trim_end())));
        }
    }

    /// Something to know besides the result. Scripts find it in the result.
    pub fn warning(self, message: impl Display) {
        if !self.json {
            note(&format!("warning: {}", Printable(&message.to_string())));
        }
    }
}

/// Prints a text on standard output. A reader that went away is no failure.
pub(super) fn print_line(text: &str) {
    let mut out = stdout().lock();
    let _ = writeln!(out, "{}", harmless(text.trim_end_matches('\n'))).and_then(|()| out.flush());
}

/// Prints JSON on standard output. Within strings, where alone they can stand, characters that would steer a terminal
/// are written as escapes, which are the same JSON.
fn print_json(json: &str) {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        match u16::try_from(u32::from(letter)) {
            // Writing to a string cannot fail.
            Ok(unit) if steers(letter) => {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
            _ => escaped.push(letter),
        }
    }
    let mut out = stdout().lock();
    let _ = writeln!(out, "{escaped}").and_then(|()| out.flush());
}

/// Prints a text on standard error.
pub(super) fn note(text: &str) {
    let _ = writeln!(stderr().lock(), "{}", harmless(text));
}

/// A text of lines of which none can steer the terminal, wherever its pieces came from. What must not begin a line of
/// its own is made [`Printable`] before it comes here.
fn harmless(text: &str) -> String {
    text.split('\n').map(|line| Printable(line).to_string()).collect::<Vec<_>>().join("\n")
}

/// Asks on a terminal; without one, or with `--yes`, the answer is yes.
pub(super) fn confirm(question: &str, yes: bool) -> bool {
    if yes || !stdin().is_terminal() {
        return true;
    }
    let _ = write!(stderr().lock(), "{} [y/N] ", Printable(question));
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// A count with its noun: `1 record`, `2 records`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_nothing_steers() {
        let cases = [("a\n  b\n", "a\n  b\n"), ("a\r\x1b[2J\nb\u{9b}", "a\\r\\u{1b}[2J\nb\\u{9b}"), ("", "")];
        for (text, expected) in cases {
            assert_eq!(harmless(text), expected, "{text:?}");
        }
    }
}
