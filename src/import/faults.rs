//! The bad rows of an import.

use std::fmt;

pub use crate::import::findings::{FilePosition, Finding};
use crate::import::findings::{FindingGroup, FindingGroups};
pub(in crate::import) use crate::import::findings::{shortened, sort_by_file};
use crate::model::Fault;
use crate::model::fold::nearest;
use crate::model::message::{Message, Remedy, message};

/// The faults that stop an import. All are counted, and the first [`BadRows::MAX_KEPT`] are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadRows {
    kept: Vec<Finding>,
    keeps_all: bool,
    groups: FindingGroups,
    total: usize,
}

impl BadRows {
    /// The number of faults that are kept by default.
    pub const MAX_KEPT: usize = 1_000;

    /// Keeps all faults from now on.
    pub(in crate::import) fn keep_all(&mut self) {
        self.keeps_all = true;
    }

    /// Returns the groups of similar faults, in the order of files and lines.
    pub fn groups(&self) -> &[FindingGroup] {
        self.groups.groups()
    }

    /// Returns the kept faults in the order in which they were found.
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    /// Returns the number of faults, including those that are not kept.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns true if there is no fault.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(in crate::import) fn push(
        &mut self,
        position: &FilePosition,
        field: Option<&str>,
        value: Option<&str>,
        message: impl Into<Message>,
    ) {
        self.total += 1;
        let found = Finding::new(position, field, value, message.into());
        self.groups.add(&found);
        if self.keeps_all || self.kept.len() < BadRows::MAX_KEPT {
            self.kept.push(found);
        }
    }

    /// Sorts the faults by file, in order of appearance, and by line. Both phases find faults in the same file.
    pub(in crate::import) fn sort(&mut self) {
        sort_by_file(&mut self.kept, |row| &row.file, |row| row.line);
        self.groups.sort();
    }
}

impl fmt::Display for BadRows {
    /// Writes one fault per line, without a final line end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, row) in self.kept.iter().enumerate() {
            write!(f, "{}{row}", if index > 0 { "\n" } else { "" })?;
        }
        let more = self.total - self.kept.len();
        if more > 0 {
            write!(f, "\nand {more} more")?;
        }
        Ok(())
    }
}

/// The unknown names of a file. The first [`UnknownNames::MAX`] are kept.
#[derive(Debug, Default)]
pub(in crate::import) struct UnknownNames {
    /// Whether they are ignored, with a warning.
    are_ignored: bool,
    /// Each name, and the most similar known one. A search for each row would be slow.
    names: Vec<(String, Option<String>)>,
}

impl UnknownNames {
    const MAX: usize = 1_000;

    /// Creates a list without names.
    pub fn new(are_ignored: bool) -> UnknownNames {
        UnknownNames { are_ignored, names: Vec::new() }
    }

    /// Adds a name. Returns the most similar known one.
    fn add(&mut self, path: &str, name: &str, known: &[&str]) -> Option<String> {
        if let Some((_, near)) = self.names.iter().find(|(other, _)| other == path) {
            return near.clone();
        }
        if self.names.len() == UnknownNames::MAX {
            return None;
        }
        let near = nearest(name, known.iter().copied()).map(str::to_owned);
        self.names.push((path.to_owned(), near.clone()));
        near
    }

    /// Returns the warning about ignored names, if there are some. `what` is the kind of the names.
    pub fn ignored(&self, what: &str) -> Option<Message> {
        const MAX_SHOWN: usize = 20;
        if !self.are_ignored || self.names.is_empty() {
            return None;
        }
        let quoted: Vec<String> =
            self.names.iter().take(MAX_SHOWN).map(|(name, _)| format!("`{}`", shortened(name))).collect();
        let more = if self.names.len() > MAX_SHOWN { " and more" } else { "" };
        let (plural, are) = if self.names.len() == 1 { ("", "is") } else { ("s", "are") };
        Some(message!("the unknown {what}{plural} {}{more} {are} ignored", quoted.join(", ")))
    }
}

/// Collects the faults of one row.
pub(in crate::import) struct RowFaults<'a> {
    position: &'a FilePosition,
    bad: &'a mut BadRows,
    /// The unknown names of the file, and its warnings, while it is read.
    of_file: Option<(&'a mut UnknownNames, &'a mut Vec<Finding>)>,
    /// The number of faults of the run before this row.
    before: usize,
}

impl<'a> RowFaults<'a> {
    pub fn new(position: &'a FilePosition, bad: &'a mut BadRows) -> RowFaults<'a> {
        RowFaults { position, before: bad.total(), bad, of_file: None }
    }

    /// Adds the unknown names and the warnings of the file.
    pub fn of_file(self, unknown: &'a mut UnknownNames, warnings: &'a mut Vec<Finding>) -> RowFaults<'a> {
        RowFaults { of_file: Some((unknown, warnings)), ..self }
    }

    /// Adds a warning about a value that was changed while reading. It does not make the row bad.
    pub fn warn_value(&mut self, field: &dyn fmt::Display, value: &str, message: impl Into<Message>) {
        if let Some((_, warnings)) = &mut self.of_file {
            warnings.push(Finding::new(self.position, Some(&field.to_string()), Some(value), message.into()));
        }
    }

    /// Reports a fault of the whole row.
    pub fn push_row(&mut self, value: Option<&str>, message: impl Into<Message>) {
        self.bad.push(self.position, None, value, message);
    }

    /// Reports a fault of a field without a value.
    pub fn push(&mut self, field: &dyn fmt::Display, message: impl Into<Message>) {
        self.bad.push(self.position, Some(&field.to_string()), None, message);
    }

    /// Reports a fault of a field's value.
    pub fn push_value(&mut self, field: &dyn fmt::Display, value: &str, message: impl Into<Message>) {
        self.bad.push(self.position, Some(&field.to_string()), Some(value), message);
    }

    /// Reports or ignores a name that is none of the known ones. `what` is its kind. `parent` contains the names of the
    /// objects around it, each with a dot.
    pub fn push_unknown(&mut self, what: &str, parent: &str, name: &str, known: &[&str]) {
        let path = shortened(&format!("{parent}{name}"));
        let mut near = None;
        if let Some((names, _)) = &mut self.of_file {
            near = names.add(&path, name, known);
            if names.are_ignored {
                return;
            }
        }
        let name = shortened(name);
        // `--map` applies to names at the top level only.
        let message = match near {
            Some(near) if parent.is_empty() => {
                message!("unknown {what} `{name}`; did you mean `{near}`? Then rename it, or add --map '{name}={near}'")
                    .with(Remedy::OfValue)
            }
            Some(near) => message!("unknown {what} `{name}`; did you mean `{near}`?").with(Remedy::OfValue),
            None => {
                let mut remedy = format!("known names are `{}`", known.join("`, `"));
                if parent.is_empty() {
                    remedy += "; use --map 'NAME=FIELD' if a field has another name, or --ignore-unknown \
                               to ignore the rest";
                }
                let for_all = Remedy::OfAllFields(format!("unknown {what}; {remedy}"));
                message!("unknown {what} `{name}`; {remedy}").with(for_all)
            }
        };
        self.push(&path, message);
    }

    /// Reports broken rules of a row, or of an object in the field `parent`.
    pub fn push_faults(&mut self, parent: Option<&dyn fmt::Display>, faults: Vec<Fault>) {
        for fault in faults {
            let field = parent.map_or(fault.field.to_owned(), |parent| format!("{parent}.{}", fault.field));
            self.bad.push(self.position, Some(&field), fault.value.as_deref(), fault.message);
        }
    }

    /// Returns true if a search among `known` names is affordable. Every fault shrinks the budget, so a file with a
    /// fault in every row stays fast.
    pub fn may_search(&self, known: usize) -> bool {
        const MAX_COMPARISONS: usize = 100_000;
        (self.bad.total() + 1).saturating_mul(known) <= MAX_COMPARISONS
    }

    /// The number of faults of the run so far.
    pub fn total(&self) -> usize {
        self.bad.total()
    }

    /// Returns true if this row has a fault.
    pub fn has_fault(&self) -> bool {
        self.bad.total() > self.before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad_row(field: Option<&str>, value: Option<&str>, message: &'static str) -> Finding {
        let mut bad = BadRows::default();
        bad.push(&FilePosition { file: "conferences.csv".into(), line: 12 }, field, value, message);
        bad.kept()[0].clone()
    }

    #[test]
    fn bad_rows_read_well() {
        let cases = [
            (Some("start_date"), Some("2026-13-01"), "start_date: `2026-13-01` - write a date"),
            (Some("start_date"), None, "start_date: write a date"),
            (None, None, "write a date"),
            (Some("name"), Some("a\x1b[31m\nb"), "name: `a\\u{1b}[31m\\nb` - write a date"),
        ];
        for (field, value, expected) in cases {
            let row = bad_row(field, value, "write a date");
            assert_eq!(row.to_string(), format!("conferences.csv:12: {expected}"));
        }
    }

    #[test]
    fn bad_rows_are_written_as_json() {
        let cases = [
            (
                bad_row(Some("year"), Some("26"), "write a year"),
                r#"{"file":"conferences.csv","line":12,"field":"year","value":"26","message":"write a year"}"#,
            ),
            (
                bad_row(None, None, "x"),
                r#"{"file":"conferences.csv","line":12,"field":null,"value":null,"message":"x"}"#,
            ),
        ];
        for (row, expected) in cases {
            assert_eq!(serde_json::to_string(&row).unwrap(), expected);
        }
    }

    #[test]
    fn all_are_counted_and_a_thousand_kept() {
        let mut bad = BadRows::default();
        for line in 1..=1_234 {
            bad.push(&FilePosition { file: "tags.csv".into(), line }, None, None, "xxx");
        }
        assert_eq!((bad.kept().len(), bad.total()), (1_000, 1_234));
        assert!(bad.to_string().ends_with("tags.csv:1000: xxx\nand 234 more"));
    }

    #[test]
    fn long_values_are_cut() {
        let row = bad_row(None, Some(&"é".repeat(5_000)), "x");
        assert_eq!(row.value.unwrap().chars().count(), 201);
    }
}
