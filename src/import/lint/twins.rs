//! Rows that are most likely one thing entered twice.

use std::collections::HashMap;

use super::nearness::{Budget, Letters};
use super::rule::{Hit, Place};
use crate::model::fold::fold;

/// What may be the same in two rows.
#[derive(Clone, Debug)]
pub(in crate::import) struct Trait {
    /// The rule that two such rows break.
    pub rule: &'static str,
    /// The field to name.
    pub field: &'static str,
    /// Equal in twins.
    pub key: String,
    /// If given, the names must be alike in twins too.
    pub alike: Option<Alike>,
    /// What to show of it.
    pub value: String,
    /// What is the matter, and what to do about it. `{}` stands for the other row.
    pub message: &'static str,
}

/// The names of a row, made comparable once: each meets those of many rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Alike {
    name: Letters,
    /// The words of the name, each comparable, with blanks between them.
    words: String,
    abbv: Option<String>,
}

impl Alike {
    /// The names of a row with these.
    pub fn new(name: &str, abbv: Option<&str>) -> Alike {
        let abbv = abbv.map(comparable).filter(|abbv| abbv.len() > 2);
        let words: Vec<String> = name.split([' ', '-']).map(comparable).filter(|word| word.len() > 2).collect();
        Alike { name: Letters::of(comparable(name)), words: words.join(" "), abbv }
    }

    /// Whether two rows have nearly one name, one abbreviation, or one's abbreviation for a name.
    fn is_like(&self, other: &Alike, budget: &mut Budget) -> bool {
        let names = |of: &Alike, abbv: &Option<String>| {
            abbv.as_ref().is_some_and(|abbv| of.words.split(' ').any(|word| word == abbv))
        };
        self.abbv.is_some() && self.abbv == other.abbv
            || names(self, &other.abbv)
            || names(other, &self.abbv)
            || are_alike(&self.name, &other.name, budget)
    }
}

/// A row that has a trait.
struct Bearer {
    place: Place,
    row: (&'static str, u64),
    field: &'static str,
    value: String,
    alike: Option<Alike>,
    /// Whether the run brings it in.
    is_new: bool,
}

/// The bearers of each trait so far, by the kind of row, the rule and the key.
#[derive(Default)]
pub(super) struct Twins {
    seen: HashMap<(&'static str, &'static str, String), Vec<Bearer>>,
    /// The hashes of the traits that the run brings in.
    new: Vec<u64>,
    pub budget: Budget,
}

/// The most bearers of a trait whose names are compared.
pub(super) const MAX_COMPARED: usize = 20;

/// A name without what two people write differently: case, diacritics, blanks and signs.
pub(in crate::import) fn comparable(name: &str) -> String {
    let letters = fold(name).replace('&', "and");
    letters.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

/// Whether two names in their comparable form differ by a few letters only.
fn are_alike(one: &Letters, other: &Letters, budget: &mut Budget) -> bool {
    one.text == other.text || one.distance(other, one.length.max(other.length) / 10, budget).is_some()
}

impl Trait {
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

impl Twins {
    /// The hashes of the traits that the run brings in.
    pub fn new_hashes(&self) -> Vec<u64> {
        let mut hashes = self.new.clone();
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    /// Compares a row with those seen before. `before` are the traits that the database knows of it; `stays` says that it
    /// is a row of the database that the run leaves alone.
    pub fn look(
        &mut self,
        place: &Place,
        row: (&'static str, u64),
        traits: Vec<Trait>,
        before: &[Trait],
        stays: bool,
        found: &mut dyn FnMut(&Place, Hit),
    ) {
        let mut is_told = false;
        for this in traits {
            let was_there = |old: &Trait| (old.rule, &old.key, &old.alike) == (this.rule, &this.key, &this.alike);
            let is_new = !stays && !before.iter().any(was_there);
            if is_new {
                self.new.push(this.hash(row.0));
            }
            let key = (row.0, this.rule, this.key.clone());
            let budget = &mut self.budget;
            let others = self.seen.get(&key).map(Vec::as_slice).unwrap_or_default();
            let is_twin = |other: &&Bearer| {
                (is_new || other.is_new)
                    && match (&this.alike, &other.alike) {
                        (Some(one), Some(other)) => one.is_like(other, budget),
                        _ => true,
                    }
            };
            if !is_told && let Some(other) = others.iter().take(MAX_COMPARED).find(is_twin) {
                let in_words = |place: &Place, (kind, id): (&str, u64)| {
                    format!("{} {id} {}", kind.trim_end_matches('s'), place.in_words())
                };
                // What the run brings in is what can be corrected.
                let (at, field, value, twin) = if is_new {
                    let twin = match row == other.row {
                        true => "the same row".to_owned(),
                        false => in_words(&other.place, other.row),
                    };
                    (place, this.field, &this.value, twin)
                } else {
                    (&other.place, other.field, &other.value, in_words(place, row))
                };
                let message = this.message.replace("{}", &twin);
                found(at, Hit { rule: this.rule, field: field.to_owned(), value: Some(value.clone()), message });
                is_told = true;
            }
            if !stays && others.len() < MAX_COMPARED && (this.alike.is_some() || others.is_empty()) {
                let bearer = Bearer {
                    place: place.clone(),
                    row,
                    field: this.field,
                    value: this.value,
                    alike: this.alike,
                    is_new,
                };
                self.seen.entry(key).or_default().push(bearer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_stands_for_a_name() {
        let of = |(name, abbv): (&str, &str)| Alike::new(name, Some(abbv));
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
