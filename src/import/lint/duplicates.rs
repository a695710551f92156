//! Rows that probably describe the same thing.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::edit_distance::CountedText;
use super::rule::RowLocation;
use crate::import::report::faults::Finding;
use crate::model::Message;
use crate::model::fold::fold;

/// A value that should differ between rows. Rows with equal match keys are probable duplicates.
#[derive(Clone, Debug)]
pub(in crate::import) struct MatchKey<'a> {
    /// The rule that duplicates break.
    pub rule: &'static str,
    /// The field to report.
    pub field: &'static str,
    /// The value, normalized for comparison.
    pub key: String,
    /// Whether duplicates must also have similar names.
    pub needs_similar_names: bool,
    /// The value of the field, or `None` for the row's name.
    pub value: Option<&'a str>,
    /// Returns the problem and its remedy, for a description of the other row.
    pub message: fn(&str) -> Message,
}

/// The name and the abbreviation of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct RowNames<'a> {
    pub name: Cow<'a, str>,
    pub abbv: Option<&'a str>,
}

/// The names of a row, normalized for comparison.
#[derive(Debug, PartialEq, Eq)]
struct ComparableNames {
    name: CountedText,
    /// The comparable words of the name, separated by blanks.
    words: String,
    abbv: Option<String>,
}

impl ComparableNames {
    fn new(names: &RowNames<'_>) -> ComparableNames {
        let abbv = names.abbv.map(comparable).filter(|abbv| abbv.len() > 2);
        let words: Vec<String> = names.name.split([' ', '-']).map(comparable).filter(|word| word.len() > 2).collect();
        ComparableNames { name: CountedText::of(comparable(&names.name)), words: words.join(" "), abbv }
    }

    /// Returns true if the names are similar, the abbreviations are equal, or one name contains the other abbreviation.
    fn is_similar(&self, other: &ComparableNames) -> bool {
        let names = |of: &ComparableNames, abbv: &Option<String>| {
            abbv.as_ref().is_some_and(|abbv| of.words.split(' ').any(|word| word == abbv))
        };
        self.abbv.is_some() && self.abbv == other.abbv
            || names(self, &other.abbv)
            || names(other, &self.abbv)
            || are_similar(&self.name, &other.name)
    }
}

/// A row that was compared. Its keys share it, since a large import has hundreds of thousands of rows.
#[derive(Debug)]
struct SeenRow {
    location: RowLocation,
    kind: &'static str,
    id: u64,
    name: Box<str>,
    abbv: Option<Box<str>>,
    /// Computed when another row has the same key, which is rare.
    comparable_names: OnceCell<Box<ComparableNames>>,
}

impl SeenRow {
    fn comparable_names(&self) -> &ComparableNames {
        let names = || RowNames { name: Cow::Borrowed(&self.name), abbv: self.abbv.as_deref() };
        self.comparable_names.get_or_init(|| Box::new(ComparableNames::new(&names())))
    }

    /// Describes the row in a message about another row.
    fn describe(&self) -> String {
        format!("{} {} {}", self.kind.trim_end_matches('s'), self.id, self.location.describe())
    }
}

/// A row that has a certain match key.
#[derive(Debug)]
struct KeyHolder {
    row: usize,
    field: &'static str,
    /// `None` for the row's name.
    value: Option<Box<str>>,
    needs_similar_names: bool,
    /// Whether the import adds this key to the row.
    is_new: bool,
}

/// The match keys seen so far, and their rows.
#[derive(Debug, Default)]
pub(super) struct Duplicates {
    rows: Vec<SeenRow>,
    /// The rows with a key, by the key's hash.
    holders: HashMap<u64, Vec<KeyHolder>>,
    /// The kinds of rows to which the import adds a key. Only rows of one kind are compared.
    pub kinds_with_new: BTreeSet<&'static str>,
}

/// The match keys that the stored version of a row has.
pub(super) enum KnownKeys<'a> {
    Nothing,
    /// These keys, with these names.
    Keys(RowNames<'a>, Vec<MatchKey<'a>>),
    All,
}

/// The maximum number of rows per key whose names are compared.
const MAX_COMPARED: usize = 20;

/// Returns a name without case, diacritics, blanks and punctuation.
pub(super) fn comparable(name: &str) -> String {
    let folded = if name.is_ascii() { Cow::Borrowed(name) } else { Cow::Owned(fold(name)) };
    let mut letters = String::with_capacity(folded.len());
    for letter in folded.chars() {
        match letter {
            '&' => letters.push_str("and"),
            letter if letter.is_alphanumeric() => letters.push(letter.to_ascii_lowercase()),
            _ => {}
        }
    }
    letters
}

/// Returns true if two comparable names differ in a few letters at most.
fn are_similar(one: &CountedText, other: &CountedText) -> bool {
    one.text == other.text || one.distance(other, one.length.max(other.length) / 10).is_some()
}

impl MatchKey<'_> {
    /// A hash of the key among rows of this kind. It takes less memory than the key.
    fn hash_among(&self, kind: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (kind, self.rule, &self.key).hash(&mut hasher);
        hasher.finish()
    }
}

impl Duplicates {
    /// Compares a row with earlier rows. `row` is its kind and id. `is_untouched` says that it is a stored row that is
    /// not in the import. Returns the finding about a duplicate.
    pub fn compare(
        &mut self,
        location: &RowLocation,
        row: (&'static str, u64),
        names: RowNames<'_>,
        match_keys: Vec<MatchKey<'_>>,
        known: &KnownKeys<'_>,
        is_untouched: bool,
    ) -> Option<Finding> {
        let (kind, id) = row;
        self.rows.push(SeenRow {
            location: location.clone(),
            kind,
            id,
            name: names.name.as_ref().into(),
            abbv: names.abbv.map(Box::from),
            comparable_names: OnceCell::new(),
        });
        let Duplicates { rows, holders, kinds_with_new } = self;
        let (at, mut holds_key) = (rows.len() - 1, false);
        let this = &rows[at];
        let has_names =
            |before: &RowNames<'_>| *before == names || ComparableNames::new(before) == *this.comparable_names();
        let mut found = None;
        for one in match_keys {
            let is_new = match known {
                KnownKeys::Nothing => true,
                KnownKeys::All => false,
                KnownKeys::Keys(names, match_keys) => {
                    let has = match_keys.iter().any(|old| old.rule == one.rule && old.key == one.key);
                    !has || one.needs_similar_names && !has_names(names)
                }
            };
            let hash = one.hash_among(kind);
            if is_new {
                kinds_with_new.insert(kind);
            }
            let others = holders.get(&hash).map_or(&[][..], Vec::as_slice);
            let mut is_duplicate = |other: &&KeyHolder| {
                (is_new || other.is_new)
                    && (!(one.needs_similar_names && other.needs_similar_names)
                        || this.comparable_names().is_similar(rows[other.row].comparable_names()))
            };
            if found.is_none()
                && let Some(other) = others.iter().find(&mut is_duplicate)
            {
                // Report the imported row, since the curator can correct it.
                let (row, field, value, twin) = if is_new {
                    let twin = if (kind, id) == (rows[other.row].kind, rows[other.row].id) {
                        "the same row".to_owned()
                    } else {
                        rows[other.row].describe()
                    };
                    (this, one.field, one.value, twin)
                } else {
                    (&rows[other.row], other.field, other.value.as_deref(), this.describe())
                };
                let message = (one.message)(&twin);
                let value = value.unwrap_or(&row.name);
                found = Some(row.location.finding(one.rule, field, Some(value), message));
            }
            if !is_untouched && others.len() < MAX_COMPARED && (one.needs_similar_names || others.is_empty()) {
                let value = one.value.map(Box::from);
                let MatchKey { field, needs_similar_names, .. } = one;
                let holder = KeyHolder { row: at, field, value, needs_similar_names, is_new };
                holders.entry(hash).or_default().push(holder);
                holds_key = true;
            }
        }
        if !holds_key {
            rows.pop();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_stands_for_a_name() {
        let of = |(name, abbv): (&'static str, &'static str)| {
            ComparableNames::new(&RowNames { name: name.into(), abbv: Some(abbv) })
        };
        let long = ("European Society for Medical Oncology Congress", "ESMO");
        let cases = [
            (long, ("ESMO Congress 2026", ""), true),
            (long, ("Madrid Congress", "ESMO"), true),
            (long, ("European Breast Cancer Conference", "EBCC"), false),
            (long, ("ESMOS Congress", ""), false),
            (("A and B", "A"), ("C for A", ""), false),
            (("Annual Meeting", "ASH"), ("Hematology Days", "ash"), true),
            (("Annual Meeting", "AS"), ("Hematology Days", "AS"), false),
            (("Annual Meeting", "ASH"), ("The ASH Days", ""), true),
            (("Annual Meeting", "ASH"), ("ASH-Days", "X"), true),
            (("Annual Meeting", ""), ("Hematology Days", ""), false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(of(one).is_similar(&of(other)), expected, "{one:?} {other:?}");
            assert_eq!(of(other).is_similar(&of(one)), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn names_that_differ_by_a_slip_are_alike() {
        let cases = [
            ("European Society of Cardiology Congress", "Europaen Society of Cardiology Congress", true),
            ("European Society of Cardiology Congress", "EUROPEAN SOCIETY OF CARDIOLOGY - CONGRESS", true),
            ("Heart & Lung Congress", "Heart and Lung Congress", true),
            ("ASCO Annual Meeting 2026", "ASCO Annual Meeting 2025", false),
            ("ESMO Breast Cancer", "ESMO Lung Cancer", false),
            ("Asia Pacific Forum 1", "Asia Pacific Forum 2", false),
            ("", "A", false),
            // One letter in ten may differ, counted by the longer name.
            ("abcdefghijklmnopqrst", "abcdefghijklmnopqrxx", true),
            ("abcdefghijklmnopqrst", "abcdefghijklmnopqxxx", false),
            ("abcdefghijklmnopqrst", "abcdefghijklmnopqrx", true),
            ("abcdefghijklmnopqrs", "abcdefghijklmnopqxx", false),
            ("abcdefghij", "abcdefghix", true),
            ("abcdefghi", "abcdefghx", false),
            ("Patients' Day", "Patients’ Day", true),
        ];
        for (one, other, expected) in cases {
            let [first, second] = [one, other].map(|name| CountedText::of(comparable(name)));
            assert_eq!(are_similar(&first, &second), expected, "{one:?} and {other:?}");
        }
    }
}
