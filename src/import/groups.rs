//! Faults or warnings of one kind, told once: where they are, what stands there, and the remedy.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::finding::Finding;
use crate::model::Id;
use crate::model::printable::Printable;

/// How many places, fields and values of a group are told.
const TOLD: usize = 3;

/// How many names of unknown columns or fields are told.
const TOLD_NAMES: usize = 12;

/// Faults or warnings of one file, or of one kind of row in the database, with one remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingGroup {
    /// The source, as the caller named it.
    pub file: Option<String>,
    /// The first lines with such a fault.
    pub lines: Vec<u64>,
    /// The kind of the rows (the stem of their files), where they are in the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The first of their ids there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Id>,
    /// The field or column; for unknown ones their first names.
    pub fields: Vec<String>,
    /// The first offending values, where there are some.
    pub values: Vec<String>,
    /// The rule or what was seen in the first of them, and what to do about it.
    pub message: String,
    /// How many faults there are.
    pub count: usize,
    /// How many rows have one.
    #[serde(skip)]
    rows: usize,
    #[serde(skip)]
    last: (Option<u64>, Option<Id>),
    /// Whether each of them tells something else in the same words.
    #[serde(skip)]
    is_varied: bool,
    #[serde(skip)]
    has_more_fields: bool,
    #[serde(skip)]
    has_more_values: bool,
}

/// The faults of a run by kind. The first [`FindingGroups::MAX`] kinds are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FindingGroups {
    groups: Vec<FindingGroup>,
    by_kind: HashMap<String, usize>,
}

impl FindingGroups {
    /// The most kinds that are kept.
    pub const MAX: usize = 1_000;

    pub fn groups(&self) -> &[FindingGroup] {
        &self.groups
    }

    /// Adds a fault to its group.
    pub fn add(&mut self, found: &Finding) {
        let kind = kind_of(found);
        if let Some(at) = self.by_kind.get(&kind) {
            self.groups[*at].add(found);
        } else if self.groups.len() < FindingGroups::MAX {
            self.by_kind.insert(kind, self.groups.len());
            self.groups.push(FindingGroup::new(found));
        }
    }

    /// Sorts them by file, in order of appearance, and first line.
    pub fn sort(&mut self) {
        let files: Vec<Option<String>> = self.groups.iter().map(|group| group.file.clone()).collect();
        self.groups.sort_by_cached_key(|group| {
            (files.iter().position(|file| *file == group.file), group.lines.first().copied())
        });
        self.by_kind.clear();
    }
}

/// Findings by their kinds, in the order in which the first of each was found.
pub fn group(findings: &[Finding]) -> Vec<FindingGroup> {
    let mut groups = FindingGroups::default();
    findings.iter().for_each(|finding| groups.add(finding));
    groups.groups
}

/// Whether the fault is a name that nobody knows and that resembles none: then the remedy is the same for all of them.
fn is_unknown_name(found: &Finding) -> bool {
    found.message.starts_with("unknown ") && !found.message.contains("did you mean")
}

/// What faults of one kind have in common: the file, the field, and the message but for numbers and what it quotes.
fn kind_of(found: &Finding) -> String {
    let mut kind = found.file.clone().unwrap_or_default();
    kind.push_str(found.kind.unwrap_or_default());
    kind.push('\0');
    kind.push_str(found.rule.unwrap_or_default());
    kind.push('\0');
    if !is_unknown_name(found) {
        kind.push_str(found.field.as_deref().unwrap_or_default());
    }
    kind.push('\0');
    // Each of these has a remedy of its own.
    let is_own = found.rule.is_some_and(|rule| rule.ends_with("_spelling") || rule == "area_list");
    if is_own || found.message.contains("did you mean") {
        kind.push_str(found.value.as_deref().filter(|_| is_own).unwrap_or_default());
        kind.push_str(&found.message);
        return kind;
    }
    let mut is_quoted = false;
    for letter in found.message.chars() {
        match letter {
            '`' => is_quoted = !is_quoted,
            _ if is_quoted => continue,
            '0'..='9' => {
                if !kind.ends_with('0') {
                    kind.push('0');
                }
                continue;
            }
            _ => {}
        }
        kind.push(letter);
    }
    kind
}

impl FindingGroup {
    fn new(found: &Finding) -> FindingGroup {
        let mut group = FindingGroup {
            file: found.file.clone(),
            lines: Vec::new(),
            kind: found.kind,
            ids: Vec::new(),
            fields: Vec::new(),
            values: Vec::new(),
            message: found.message.clone(),
            count: 0,
            rows: 0,
            last: (None, None),
            is_varied: false,
            has_more_fields: false,
            has_more_values: false,
        };
        group.add(found);
        group
    }

    fn add(&mut self, found: &Finding) {
        self.count += 1;
        let place = (found.line, found.id);
        if place != (None, None) && place != self.last {
            self.rows += 1;
            self.last = place;
            if self.rows <= TOLD {
                self.lines.extend(found.line);
                self.ids.extend(found.id);
            }
        }
        self.is_varied |= found.message != self.message;
        if let Some(field) = &found.field
            && !self.fields.contains(field)
        {
            if self.fields.len() < TOLD_NAMES {
                self.fields.push(field.clone());
            } else {
                self.has_more_fields = true;
            }
        }
        if let Some(value) = &found.value
            && !self.values.contains(value)
        {
            if self.values.len() < TOLD {
                self.values.push(value.clone());
            } else {
                self.has_more_values = true;
            }
        }
    }
}

/// Items joined by commas, with what is left out at the end.
fn joined(items: impl Iterator<Item = String>, more: &str) -> String {
    let mut text = items.collect::<Vec<_>>().join(", ");
    text.push_str(more);
    text
}

impl fmt::Display for FindingGroup {
    /// One line: `file:2, 3, 4 and 8,190 more: field: value, value - message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = match self.rows.saturating_sub(TOLD) {
            0 => String::new(),
            more => format!(" and {} more", grouped(more)),
        };
        if let Some(file) = &self.file {
            write!(f, "{}", Printable(file))?;
            if !self.lines.is_empty() {
                write!(f, ":{}", joined(self.lines.iter().map(u64::to_string), &more))?;
            }
            f.write_str(": ")?;
        }
        if let Some(kind) = self.kind {
            write!(f, "{kind} {}: ", joined(self.ids.iter().map(Id::to_string), &more))?;
        }
        let mut message = self.message.clone();
        if !self.fields.is_empty() {
            let more = if self.has_more_fields { " and more" } else { "" };
            write!(f, "{}: ", joined(self.fields.iter().map(|field| Printable(field).to_string()), more))?;
            if self.fields.len() > 1
                && let Some((before, rest)) = self.message.split_once(" `")
                && let Some((_, after)) = rest.split_once('`')
            {
                message = format!("{before}{after}");
            }
        }
        if !self.values.is_empty() {
            let more = if self.has_more_values { " and more" } else { "" };
            write!(f, "{} - ", joined(self.values.iter().map(|value| format!("`{}`", Printable(value))), more))?;
        }
        write!(f, "{}", Printable(&message))?;
        if self.is_varied && self.fields.len() <= 1 {
            f.write_str(" (the others likewise)")?;
        }
        Ok(())
    }
}

/// A count with a comma between each three digits.
pub fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: u64, field: Option<&str>, value: Option<&str>, message: &str) -> Finding {
        Finding {
            file: Some("c.csv".into()),
            line: Some(line),
            field: field.map(str::to_owned),
            value: value.map(str::to_owned),
            message: message.to_owned(),
            ..Finding::default()
        }
    }

    fn shown(faults: &[Finding]) -> Vec<String> {
        let mut groups = FindingGroups::default();
        for fault in faults {
            groups.add(fault);
        }
        groups.sort();
        groups.groups().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn faults_of_one_kind_are_one_line() {
        let date = |line, value| found(line, Some("start_date"), Some(value), "write a date, such as 2026-03-15");
        let unknown = |line, name: &str, remedy: &str| {
            found(line, Some(name), None, &format!("unknown column `{name}`; {remedy}"))
        };
        let twice = |line: u64| {
            let message = format!("stands twice; the first row of this id is at c.csv:{}", line - 1);
            found(line, Some("id"), Some(&line.to_string()), &message)
        };
        let cases: [(Vec<Finding>, &[&str]); 6] = [
            (vec![date(2, "x")], &["c.csv:2: start_date: `x` - write a date, such as 2026-03-15"]),
            (
                (2..8_195).map(|line| date(line, if line == 3 { "y" } else { "x" })).collect(),
                &["c.csv:2, 3, 4 and 8,190 more: start_date: `x`, `y` - write a date, such as 2026-03-15"],
            ),
            (
                vec![unknown(1, "Foo", "known are `id`"), unknown(1, "Bar", "known are `id`")],
                &["c.csv:1: Foo, Bar: unknown column; known are `id`"],
            ),
            (
                vec![unknown(1, "nam", "did you mean `name`?"), unknown(1, "ulr", "did you mean `url`?")],
                &[
                    "c.csv:1: nam: unknown column `nam`; did you mean `name`?",
                    "c.csv:1: ulr: unknown column `ulr`; did you mean `url`?",
                ],
            ),
            (
                vec![twice(3), twice(40)],
                &[
                    "c.csv:3, 40: id: `3`, `40` - stands twice; the first row of this id is at c.csv:2 (the others likewise)",
                ],
            ),
            (vec![found(7, None, None, "b"), found(2, None, None, "a")], &["c.csv:2: a", "c.csv:7: b"]),
        ];
        for (faults, expected) in cases {
            assert_eq!(shown(&faults), expected);
        }
    }

    #[test]
    fn counts_are_grouped() {
        for (count, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (8_190, "8,190"), (1_234_567, "1,234,567")]
        {
            assert_eq!(grouped(count), expected);
        }
    }
}
