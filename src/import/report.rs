//! Bad rows and warnings: where, what, and what to write instead.

use std::fmt;

pub(super) use super::finding::shortened;
pub use super::finding::{FilePosition, Finding};
use super::groups::{FindingGroup, FindingGroups};
use crate::model::Fault;

/// The faults for which a run is refused. All are counted, and the first [`BadRows::MAX_KEPT`] are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadRows {
    kept: Vec<Finding>,
    /// How many more than usual are kept.
    kept_more: usize,
    groups: FindingGroups,
    total: usize,
}

impl BadRows {
    /// How many are kept.
    pub const MAX_KEPT: usize = 1_000;

    /// Keeps all that memory should hold.
    pub(super) fn keep_all(&mut self) {
        self.kept_more = 1_000_000;
    }

    /// The faults by their kinds, in the order of the files and lines.
    pub fn groups(&self) -> &[FindingGroup] {
        self.groups.groups()
    }

    /// Those that are kept, in the order in which they were found.
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    /// How many there are, those that are not kept included.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Adds one.
    pub(super) fn push(
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

    /// Sorts them by file, in order of appearance, and line: the two phases find faults of the same file at different times.
    pub(super) fn sort(&mut self) {
        let files: Vec<Option<String>> = self.kept.iter().map(|row| row.file.clone()).collect();
        self.kept.sort_by_cached_key(|row| (files.iter().position(|file| *file == row.file), row.line));
        self.groups.sort();
    }
}

impl fmt::Display for BadRows {
    /// One per line, the last line without its end.
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

/// Takes the faults of one row.
pub(super) struct RowFaults<'a> {
    position: &'a FilePosition,
    bad: &'a mut BadRows,
    /// How many faults the run had before this row.
    before: usize,
}

impl<'a> RowFaults<'a> {
    pub fn new(position: &'a FilePosition, bad: &'a mut BadRows) -> RowFaults<'a> {
        RowFaults { position, before: bad.total(), bad }
    }

    /// Reports a fault of the row as a whole.
    pub fn push_row(&mut self, value: Option<&str>, message: impl AsRef<str>) {
        self.bad.push(self.position, None, value, message);
    }

    /// Reports a fault of a field that has no value to show.
    pub fn push(&mut self, field: &dyn fmt::Display, message: impl AsRef<str>) {
        self.bad.push(self.position, Some(&field.to_string()), None, message);
    }

    /// Reports a fault of a field's value.
    pub fn push_value(&mut self, field: &dyn fmt::Display, value: &str, message: impl AsRef<str>) {
        self.bad.push(self.position, Some(&field.to_string()), Some(value), message);
    }

    /// Reports broken rules of a row, or of an object within the field `parent`.
    pub fn push_faults(&mut self, parent: Option<&dyn fmt::Display>, faults: &[Fault]) {
        for fault in faults {
            let field = parent.map_or(fault.field.to_owned(), |parent| format!("{parent}.{}", fault.field));
            self.bad.push(self.position, Some(&field), fault.value.as_deref(), &fault.message);
        }
    }

    /// Whether a suggestion may be searched among so many known names. The budget shrinks with every fault, so that a
    /// file that is wrong throughout does not cost a search per row.
    pub fn may_search(&self, known: usize) -> bool {
        const MAX_COMPARISONS: usize = 100_000;
        (self.bad.total() + 1).saturating_mul(known) <= MAX_COMPARISONS
    }

    /// How many faults the run has up to here.
    pub fn total(&self) -> usize {
        self.bad.total()
    }

    /// Whether the row has a fault.
    pub fn found(&self) -> bool {
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
