//! What commands print: text for people, one JSON object for scripts.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr, stdin, stdout};

use serde::Serialize;

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
            print_line(&serde_json::to_string(json).unwrap_or_default());
        } else {
            print_line(&text.to_string());
        }
    }

    /// Why nothing was done.
    pub fn error(self, message: &str) {
        if self.json {
            let object = serde_json::json!({ "error": message.trim_end() });
            print_line(&object.to_string());
        } else {
            note(&format!("error: {message}"));
        }
    }

    /// Something to know besides the result. Scripts find it in the result.
    pub fn warning(self, message: impl Display) {
        if !self.json {
            note(&format!("warning: {message}"));
        }
    }
}

/// Prints a line on standard output. A reader that went away is no failure.
pub(super) fn print_line(line: &str) {
    let mut out = stdout().lock();
    let _ = writeln!(out, "{}", line.trim_end_matches('\n')).and_then(|()| out.flush());
}

/// Prints a line on standard error.
pub(super) fn note(line: &str) {
    let _ = writeln!(stderr().lock(), "{line}");
}

/// Asks on a terminal; without one, or with `--yes`, the answer is yes.
pub(super) fn confirm(question: &str, yes: bool) -> bool {
    if yes || !stdin().is_terminal() {
        return true;
    }
    let _ = write!(stderr().lock(), "{question} [y/N] ");
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// A count with its noun: `1 record`, `2 records`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
