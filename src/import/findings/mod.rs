//! Faults of rows and warnings, one by one, and in [`groups`].

mod finding;
mod groups;

use std::collections::HashSet;
use std::fmt;

use indexmap::{IndexMap, IndexSet};

pub(crate) use self::finding::shortened;
pub use self::finding::{FilePosition, Finding, cut};
pub use self::groups::FindingGroup;
use self::groups::group_key;
use crate::model::{Joined, Message};

/// The faults that stop an import, or its warnings. All are counted, and the first [`Findings::MAX_KEPT`] are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    kept: Vec<Finding>,
    /// By what the findings of a group share.
    groups: IndexMap<Finding, FindingGroup>,
    total: usize,
    rows: HashSet<FilePosition>,
    is_of_file: bool,
}

impl Findings {
    /// The number of findings that are kept, and of rows that are known.
    pub const MAX_KEPT: usize = 10_000;

    /// Returns the groups of similar findings, in the order of files and lines.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &FindingGroup> {
        self.groups.values()
    }

    /// Returns the kept findings.
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    /// Returns the number of findings, including those that are not kept.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns true if there is no finding.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the rows with a finding: the first [`Findings::MAX_KEPT`], and one more if there are more.
    pub fn rows(&self) -> &HashSet<FilePosition> {
        &self.rows
    }

    /// Whether a finding is about a whole file. Then its rows are not known.
    pub fn is_of_file(&self) -> bool {
        self.is_of_file
    }

    /// Notes that a finding is about a whole file.
    pub(crate) fn mark_file(&mut self) {
        self.is_of_file = true;
    }

    fn add_row(&mut self, position: &FilePosition) {
        if self.rows.len() <= Findings::MAX_KEPT && !self.rows.contains(position) {
            self.rows.insert(position.clone());
        }
    }

    /// Removes the findings about some rows. If there are more findings than are kept, all stay.
    pub(crate) fn leave_out(&mut self, rows: &HashSet<FilePosition>) {
        if rows.is_empty() || self.total > self.kept.len() {
            return;
        }
        self.rows.retain(|row| !rows.contains(row));
        self.total = 0;
        self.groups.clear();
        let others = std::mem::take(&mut self.kept)
            .into_iter()
            .filter(|found| found.position().is_none_or(|row| !rows.contains(&row)));
        self.extend(others);
    }

    /// Adds the findings of another run over the same files.
    pub(crate) fn append(&mut self, other: Findings) {
        other.rows.iter().for_each(|row| self.add_row(row));
        self.is_of_file |= other.is_of_file;
        let total = self.total + other.total;
        self.extend(other.kept);
        self.total = total;
    }

    pub(crate) fn push(
        &mut self,
        position: &FilePosition,
        field: Option<&str>,
        value: Option<&str>,
        message: impl Into<Message>,
    ) {
        self.add_row(position);
        self.add(Finding::new(position, field, value, message.into()));
    }

    pub(crate) fn add(&mut self, found: Finding) {
        const MAX_GROUPS: usize = 1_000;
        self.total += 1;
        let key = group_key(&found);
        if self.groups.len() < MAX_GROUPS || self.groups.contains_key(&key) {
            self.groups
                .entry(key)
                .or_insert_with(|| FindingGroup::new(&found))
                .add(&found);
        }
        if self.kept.len() < Findings::MAX_KEPT {
            self.kept.push(found);
        }
    }

    /// Sorts the findings by file, in order of appearance, and by line. Several phases find some in the same file.
    pub(crate) fn sort(&mut self) {
        let groups = self.groups.values();
        let files: IndexSet<String> = groups.filter_map(|group| group.file.clone()).collect();
        let index = |file: &Option<String>| match file {
            Some(file) => files.get_index_of(file),
            None => Some(files.len()),
        };
        self.kept
            .sort_by_cached_key(|found| (index(&found.file), found.line, found.kind, found.id));
        self.groups.sort_by_cached_key(|_, group| {
            let line = group.lines.first().copied();
            let id = group.ids.first().copied();
            (index(&group.file), line, group.kind, id)
        });
    }
}

impl Extend<Finding> for Findings {
    fn extend<T: IntoIterator<Item = Finding>>(&mut self, found: T) {
        found.into_iter().for_each(|finding| self.add(finding));
    }
}

impl fmt::Display for Findings {
    /// Writes one fault per line, without a final line end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kept.iter().joined("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::groups::MAX_SHOWN_NAMES;
    use super::*;
    use crate::model::Id;
    use crate::model::message::Remedy;
    use crate::model::message::message;

    fn found(
        line: u64,
        field: Option<&str>,
        value: Option<&str>,
        message: impl Into<Message>,
    ) -> Finding {
        Finding {
            file: Some("c.csv".into()),
            line: Some(line),
            field: field.map(str::to_owned),
            value: value.map(str::to_owned),
            message: message.into(),
            ..Finding::default()
        }
    }

    fn of(found: &[Finding]) -> Findings {
        let mut all = Findings::default();
        all.extend(found.iter().cloned());
        all
    }

    fn shown(faults: &[Finding]) -> Vec<String> {
        let mut all = of(faults);
        all.sort();
        all.groups().map(ToString::to_string).collect()
    }

    #[test]
    fn new_ids_are_listed_with_their_lines() {
        let assigned = |line, kind, id: u64, link| {
            let position = FilePosition::new("a.csv".into(), line);
            Finding::assigned(&position, kind, Id::try_from(id).unwrap(), link)
        };
        let found = [
            assigned(2, "journals", 7, None),
            assigned(3, "journals", 8, None),
            assigned(3, "organizations", 4, Some("ESMO")),
        ];
        let link = "a.csv:3: organizations 4: `ESMO` - is new, because a row links to it";
        let expected = "a.csv:2: journals 7: is new: the row matches no record";
        assert_eq!(found[0].to_string(), expected);
        assert_eq!(found[2].to_string(), link);
        assert_eq!(
            shown(&found),
            [
                "a.csv:2, 3: journals 7, 8: is new: the row matches no record",
                link
            ]
        );
    }

    #[test]
    fn faults_of_one_kind_are_one_line() {
        let date = |line, value| {
            found(
                line,
                Some("start_date"),
                Some(value),
                "write a date, such as 2026-03-15",
            )
        };
        let unknown = |line, name: &str, remedy: &str| {
            found(
                line,
                Some(name),
                None,
                message!("unknown column; {remedy}").with(Remedy::OfAllFields),
            )
        };
        let misspelt = |name: &str, near: &str| {
            let message = message!("unknown column; did you mean `{near}`?").with(Remedy::OfValue);
            found(1, Some(name), None, message)
        };
        let twice = |line: u64| {
            let message = message!(
                "appears twice; the first row with this id is at c.csv:{}",
                line - 1
            );
            found(line, Some("id"), Some(&line.to_string()), message)
        };
        let cases: [(Vec<Finding>, &[&str]); 6] = cases![
            vec![date(2, "x")], &["c.csv:2: start_date: `x` - write a date, such as 2026-03-15"];
            (2..8_195).map(|line| date(line, if line == 3 { "y" } else { "x" })).collect(),
                &["c.csv:2, 3, 4 and 8,190 more: start_date: `x`, `y` - write a date, such as 2026-03-15"];
            vec![unknown(1, "Foo", "known names are `id`"), unknown(1, "Bar", "known names are `id`")],
                &["c.csv:1: Foo, Bar: unknown column; known names are `id`"];
            vec![misspelt("nam", "name"), misspelt("ulr", "url"), misspelt("ulr", "url")],
                &["c.csv:1: nam: unknown column; did you mean `name`?", "c.csv:1: ulr: unknown column; did you mean `url`?"];
            vec![twice(3), twice(40)],
                &[
                    "c.csv:3, 40: id: `3`, `40` - appears twice; the first row with this id is at c.csv:2 (the others \
                 likewise)",
                ];
            vec![found(7, None, None, "b"), found(2, None, None, "a")], &["c.csv:2: a", "c.csv:7: b"];
        ];
        for (faults, expected) in cases {
            assert_eq!(shown(&faults), expected);
        }
    }

    #[test]
    fn three_rows_of_a_group_are_shown_and_more_are_counted() {
        let date = |line: u64| found(line, Some("city"), Some(&line.to_string()), "x");
        let cases = cases![
            1, "c.csv:1: city: `1` - x";
            3, "c.csv:1, 2, 3: city: `1`, `2`, `3` - x";
            4, "c.csv:1, 2, 3 and 1 more: city: `1`, `2`, `3` and more - x";
        ];
        for (count, expected) in cases {
            assert_eq!(
                shown(&(1..=count).map(date).collect::<Vec<_>>()),
                [expected]
            );
        }
        // Two faults of one row are one row, and a value is shown once.
        let twice = [date(1), date(1), date(2)];
        assert_eq!(shown(&twice), ["c.csv:1, 2: city: `1`, `2` - x"]);
        let message = Message {
            remedy: Remedy::OfAllFields,
            ..Message::default()
        };
        let name = |at: usize| found(1, Some(&format!("n{at}")), None, message.clone());
        for (count, is_more) in [(MAX_SHOWN_NAMES, false), (MAX_SHOWN_NAMES + 1, true)] {
            let shown = shown(&(0..count).map(name).collect::<Vec<_>>()).remove(0);
            assert_eq!(shown.contains("n11 and more: "), is_more, "{shown}");
            assert_eq!(shown.contains("n11: "), !is_more, "{shown}");
        }
    }

    #[test]
    fn a_group_has_one_file_rule_field_and_code() {
        let blanks = |count: u32, name: &str| message!("has {count} blanks, write `{name}`");
        let one = found(2, Some("city"), Some("v"), blanks(3, "a"));
        let cases = cases![
            Finding { line: Some(3), ..one.clone() }, 1;
            Finding { value: Some("w".into()), ..one.clone() }, 1;
            Finding { message: blanks(14, "b"), ..one.clone() }, 1;
            Finding { file: Some("d.csv".into()), ..one.clone() }, 2;
            Finding { file: None, kind: Some("journals"), ..one.clone() }, 2;
            Finding { rule: Some("blanks"), ..one.clone() }, 2;
            Finding { field: Some("venue".into()), ..one.clone() }, 2;
            Finding { message: message!("has {} blanks; write `{}`", 3, "a"), ..one.clone() }, 2;
        ];
        for (other, expected) in cases {
            assert_eq!(
                of(&[one.clone(), other.clone()]).groups().len(),
                expected,
                "{other:?}"
            );
        }
        // Each misspelling has a remedy of its own.
        let word = |remedy: Remedy, value: &str, meant: &str| Finding {
            value: Some(value.to_owned()),
            message: message!("is another spelling of `{meant}`").with(remedy),
            ..one.clone()
        };
        for (remedy, expected) in [(Remedy::OfValue, 3), (Remedy::OfField, 1)] {
            let word = |value: &str, meant: &str| word(remedy, value, meant);
            let found = [
                word("a", "A"),
                word("b", "B"),
                word("b", "A"),
                word("a", "A"),
            ];
            assert_eq!(of(&found).groups().len(), expected, "{remedy:?}");
        }
        // Rows of the database are grouped by their kind.
        let stored = |kind, id| Finding {
            file: None,
            line: None,
            kind: Some(kind),
            id: Id::try_from(id).ok(),
            ..one.clone()
        };
        let shown = shown(&[
            stored("journals", 2),
            stored("conferences", 1),
            stored("journals", 3),
        ]);
        let expected = ["conferences 1: city: `v` - ", "journals 2, 3: city: `v` - "];
        assert!(
            shown
                .iter()
                .zip(expected)
                .all(|(shown, expected)| shown.starts_with(expected)),
            "{shown:?}"
        );
    }

    fn bad_row(field: Option<&str>, value: Option<&str>, message: &'static str) -> Finding {
        let mut bad = Findings::default();
        let position = FilePosition::new("conferences.csv".into(), 12);
        bad.push(&position, field, value, message);
        bad.kept()[0].clone()
    }

    #[test]
    fn bad_rows_are_printed_with_file_line_field_and_value() {
        let cases = cases![
            Some("start_date"), Some("2026-13-01"), "start_date: `2026-13-01` - write a date";
            Some("start_date"), None, "start_date: write a date";
            None, None, "write a date";
            Some("name"), Some("a\x1b[31m\nb"), "name: `a\\u{1b}[31m\\nb` - write a date";
        ];
        for (field, value, expected) in cases {
            let row = bad_row(field, value, "write a date");
            assert_eq!(row.to_string(), format!("conferences.csv:12: {expected}"));
        }
    }

    #[test]
    fn bad_rows_are_written_as_json() {
        let cases = cases![
            bad_row(Some("year"), Some("26"), "write a year"),
                r#"{"file":"conferences.csv","line":12,"field":"year","value":"26","message":"write a year"}"#;
            bad_row(None, None, "x"), r#"{"file":"conferences.csv","line":12,"field":null,"value":null,"message":"x"}"#;
        ];
        for (row, expected) in cases {
            assert_eq!(serde_json::to_string(&row).unwrap(), expected);
        }
    }

    #[test]
    fn all_findings_are_counted_and_the_first_are_kept() {
        let mut bad = Findings::default();
        for line in 1..=12_345 {
            let position = FilePosition::new("tags.csv".into(), line);
            bad.push(&position, None, None, "xxx");
        }
        assert_eq!((bad.kept().len(), bad.total()), (10_000, 12_345));
        assert_eq!(bad.groups().next().unwrap().count, 12_345);
        assert!(
            bad.to_string()
                .ends_with("tags.csv:9999: xxx\ntags.csv:10000: xxx")
        );
    }

    #[test]
    fn long_values_are_cut() {
        let row = bad_row(None, Some(&"é".repeat(5_000)), "x");
        assert_eq!(row.value.unwrap().chars().count(), 201);
    }

    #[test]
    fn only_longer_texts_are_cut() {
        let cases = [
            ("", 3, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("äöü", 3, "äöü"),
            ("äöüß", 3, "äöü…"),
            ("a", 0, "…"),
        ];
        for (text, most, expected) in cases {
            assert_eq!(cut(text, most), expected, "{text}");
        }
    }
}
