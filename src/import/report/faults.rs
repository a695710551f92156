//! The bad rows of an import.

use std::fmt;

pub(in crate::import) use crate::import::report::finding::shortened;
pub use crate::import::report::finding::{FilePosition, Finding};
use crate::import::report::groups::{FindingGroup, FindingGroups};
use crate::model::Fault;

/// The faults that stop an import. All are counted, and the first [`BadRows::MAX_KEPT`] are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadRows {
    kept: Vec<Finding>,
    /// The number of faults to keep beyond `MAX_KEPT`.
    kept_more: usize,
    groups: FindingGroups,
    total: usize,
}

impl BadRows {
    /// The default number of faults to keep.
    pub const MAX_KEPT: usize = 1_000;

    /// Raises the number of faults to keep to the most that memory should hold.
    pub(in crate::import) fn keep_all(&mut self) {
        self.kept_more = 1_000_000;
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
        message: impl AsRef<str>,
    ) {
        self.total += 1;
        let found = Finding::new(position, field, value, message.as_ref());
        self.groups.add(&found);
        if self.kept.len() < BadRows::MAX_KEPT + self.kept_more {
            self.kept.push(found);
        }
    }

    /// Sorts the faults by file, in order of appearance, and by line. Both phases find faults in the same file.
    pub(in crate::import) fn sort(&mut self) {
        let files: Vec<Option<String>> = self.kept.iter().map(|row| row.file.clone()).collect();
        self.kept.sort_by_cached_key(|row| (files.iter().position(|file| *file == row.file), row.line));
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

/// Collects the faults of one row.
pub(in crate::import) struct RowFaults<'a> {
    position: &'a FilePosition,
    bad: &'a mut BadRows,
    /// The number of faults of the run before this row.
    before: usize,
}

impl<'a> RowFaults<'a> {
    pub fn new(position: &'a FilePosition, bad: &'a mut BadRows) -> RowFaults<'a> {
        RowFaults { position, before: bad.total(), bad }
    }

    /// Reports a fault of the whole row.
    pub fn push_row(&mut self, value: Option<&str>, message: impl AsRef<str>) {
        self.bad.push(self.position, None, value, message);
    }

    /// Reports a fault of a field without a value.
    pub fn push(&mut self, field: &dyn fmt::Display, message: impl AsRef<str>) {
        self.bad.push(self.position, Some(&field.to_string()), None, message);
    }

    /// Reports a fault of a field's value.
    pub fn push_value(&mut self, field: &dyn fmt::Display, value: &str, message: impl AsRef<str>) {
        self.bad.push(self.position, Some(&field.to_string()), Some(value), message);
    }

    /// Reports broken rules of a row, or of an object in the field `parent`.
    pub fn push_faults(&mut self, parent: Option<&dyn fmt::Display>, faults: &[Fault]) {
        for fault in faults {
            let field = parent.map_or(fault.field.to_owned(), |parent| format!("{parent}.{}", fault.field));
            self.bad.push(self.position, Some(&field), fault.value.as_deref(), &fault.message);
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

    fn bad_row(field: Option<&str>, value: Option<&str>, message: &str) -> Finding {
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
            bad.push(&FilePosition { file: "tags.csv".into(), line }, None, None, "x".repeat(3));
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
