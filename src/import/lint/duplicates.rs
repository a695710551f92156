//! Rows that are most likely one thing entered twice.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use super::edit_distance::{Budget, Letters};
use super::rule::{Hit, RowLocation};
use crate::model::fold::fold;

/// What may be the same in two rows.
#[derive(Clone, Debug)]
pub(in crate::import) struct MatchKey<'a> {
    /// The rule that two such rows break.
    pub rule: &'static str,
    /// The field to name.
    pub field: &'static str,
    /// Equal in duplicates.
    pub key: String,
    /// Whether the names must be alike in duplicates too.
    pub compares_names: bool,
    /// The value of the field; `None` is the row's name.
    pub value: Option<&'a str>,
    /// What is the matter, and what to do about it. `{}` stands for the other row.
    pub message: &'static str,
}

/// The names of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct RowNames<'a> {
    pub name: Cow<'a, str>,
    pub abbv: Option<&'a str>,
}

/// The names of a row, made comparable.
#[derive(Debug, PartialEq, Eq)]
struct ComparableNames {
    name: Letters,
    /// The words of the name, each comparable, with blanks between them.
    words: String,
    abbv: Option<String>,
}

impl ComparableNames {
    /// The names of a row with these.
    fn new(names: &RowNames<'_>) -> ComparableNames {
        let abbv = names.abbv.map(comparable).filter(|abbv| abbv.len() > 2);
        let words: Vec<String> = names.name.split([' ', '-']).map(comparable).filter(|word| word.len() > 2).collect();
        ComparableNames { name: Letters::of(comparable(&names.name)), words: words.join(" "), abbv }
    }

    /// Whether two rows have nearly one name, one abbreviation, or one's abbreviation for a name.
    fn is_like(&self, other: &ComparableNames, budget: &mut Budget) -> bool {
        let names = |of: &ComparableNames, abbv: &Option<String>| {
            abbv.as_ref().is_some_and(|abbv| of.words.split(' ').any(|word| word == abbv))
        };
        self.abbv.is_some() && self.abbv == other.abbv
            || names(self, &other.abbv)
            || names(other, &self.abbv)
            || are_alike(&self.name, &other.name, budget)
    }
}

/// A row that was looked at. Its match_keys share it: a large run has hundreds of thousands.
struct SeenRow {
    location: RowLocation,
    kind: &'static str,
    id: u64,
    name: Box<str>,
    abbv: Option<Box<str>>,
    /// Made when the row first meets another one of its trait: most never do.
    alike: OnceCell<Box<ComparableNames>>,
}

impl SeenRow {
    fn alike(&self) -> &ComparableNames {
        let names = || RowNames { name: Cow::Borrowed(&self.name), abbv: self.abbv.as_deref() };
        self.alike.get_or_init(|| Box::new(ComparableNames::new(&names())))
    }

    /// The row in a message about another one.
    fn describe(&self) -> String {
        format!("{} {} {}", self.kind.trim_end_matches('s'), self.id, self.location.describe())
    }
}

/// A trait of a row that was looked at.
struct KeyHolder {
    row: usize,
    field: &'static str,
    /// `None` is the row's name.
    value: Option<Box<str>>,
    compares_names: bool,
    /// Whether the run brings it in.
    is_new: bool,
    /// The next holder of the same trait.
    next: Option<usize>,
}

/// The holders of each trait so far.
#[derive(Default)]
pub(super) struct Duplicates {
    rows: Vec<SeenRow>,
    holders: Vec<KeyHolder>,
    /// The first holder of each trait, by the trait's hash.
    first: HashMap<u64, usize>,
    /// The hashes of the match_keys that the run brings in.
    new: Vec<u64>,
    pub budget: Budget,
}

/// A row to compare with those seen before.
pub(super) struct Compared<'a> {
    pub location: &'a RowLocation,
    /// Its kind, and its id.
    pub row: (&'static str, u64),
    pub names: RowNames<'a>,
    pub match_keys: Vec<MatchKey<'a>>,
    pub known: KnownKeys<'a>,
    /// Whether it is a row of the database that the run leaves alone.
    pub is_untouched: bool,
}

/// The match_keys of a row that the database has already.
pub(super) enum KnownKeys<'a> {
    Nothing,
    /// These, with these names.
    Keys(RowNames<'a>, Vec<MatchKey<'a>>),
    All,
}

/// The most holders of a trait whose names are compared.
pub(super) const MAX_COMPARED: usize = 20;

/// A name without what two people write differently: case, diacritics, blanks and signs.
pub(in crate::import) fn comparable(name: &str) -> String {
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

/// Whether two names in their comparable form differ by a few letters only.
fn are_alike(one: &Letters, other: &Letters, budget: &mut Budget) -> bool {
    one.text == other.text || one.distance(other, one.length.max(other.length) / 10, budget).is_some()
}

impl MatchKey<'_> {
    /// The hash by which the index of names knows the trait.
    pub fn hash(&self, kind: &str) -> u64 {
        let mut hasher = blake3::Hasher::new();
        for part in [kind, self.rule, &self.key] {
            hasher.update(part.as_bytes()).update(&[0]);
        }
        let mut first = [0; 8];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_le_bytes(first)
    }
}

impl Duplicates {
    /// The hashes of the match_keys that the run brings in.
    pub fn new_hashes(&self) -> Vec<u64> {
        let mut hashes = self.new.clone();
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    /// Compares a row with those seen before.
    pub fn compare(&mut self, compared: Compared<'_>, found: &mut dyn FnMut(&RowLocation, Hit)) {
        let Compared { location, row: (kind, id), names, match_keys, known, is_untouched } = compared;
        self.rows.push(SeenRow {
            location: location.clone(),
            kind,
            id,
            name: names.name.as_ref().into(),
            abbv: names.abbv.map(Box::from),
            alike: OnceCell::new(),
        });
        let Duplicates { rows, holders, first, new, budget } = self;
        let (at, known_holders) = (rows.len() - 1, holders.len());
        let this = &rows[at];
        let has_names = |before: &RowNames<'_>| *before == names || ComparableNames::new(before) == *this.alike();
        let mut is_told = false;
        for one in match_keys {
            let is_new = match &known {
                KnownKeys::Nothing => true,
                KnownKeys::All => false,
                KnownKeys::Keys(names, match_keys) => {
                    let has = match_keys.iter().any(|old| old.rule == one.rule && old.key == one.key);
                    !has || one.compares_names && !has_names(names)
                }
            };
            let hash = one.hash(kind);
            if is_new {
                new.push(hash);
            }
            let next = |holder: &usize| holders[*holder].next;
            let others: Vec<usize> = std::iter::successors(first.get(&hash).copied(), next).collect();
            let mut is_twin = |other: &&KeyHolder| {
                (is_new || other.is_new)
                    && (!(one.compares_names && other.compares_names)
                        || this.alike().is_like(rows[other.row].alike(), budget))
            };
            if !is_told && let Some(other) = others.iter().map(|other| &holders[*other]).find(|other| is_twin(other)) {
                // What the run brings in is what can be corrected.
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
                let message = one.message.replace("{}", &twin);
                let value = Some(value.unwrap_or(&row.name).to_owned());
                found(&row.location, Hit { rule: one.rule, field: field.to_owned(), value, message });
                is_told = true;
            }
            if !is_untouched && others.len() < MAX_COMPARED && (one.compares_names || others.is_empty()) {
                let holder = holders.len();
                match others.last() {
                    Some(last) => holders[*last].next = Some(holder),
                    None => _ = first.insert(hash, holder),
                }
                let value = one.value.map(Box::from);
                holders.push(KeyHolder {
                    row: at,
                    field: one.field,
                    value,
                    compares_names: one.compares_names,
                    is_new,
                    next: None,
                });
            }
        }
        if holders.len() == known_holders {
            rows.pop();
        }
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
        ];
        for (one, other, expected) in cases {
            assert_eq!(of(one).is_like(&of(other), &mut Budget::default()), expected, "{one:?} {other:?}");
            assert_eq!(of(other).is_like(&of(one), &mut Budget::default()), expected, "{other:?} {one:?}");
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
        ];
        for (one, other, expected) in cases {
            let [first, second] = [one, other].map(|name| Letters::of(comparable(name)));
            assert_eq!(are_alike(&first, &second, &mut Budget::default()), expected, "{one:?} and {other:?}");
        }
    }
}
