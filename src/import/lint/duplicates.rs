//! Rows that probably describe the same thing.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};

use super::identity::{Identity, MatchKey};
use super::lintable::{Compared, Lintable};
use super::rule::RowLocation;
use crate::import::findings::Finding;
use crate::model::Id;
use crate::model::message::Message;

/// A row that has a certain match key.
#[derive(Debug)]
struct KeyHolder {
    location: RowLocation,
    id: u64,
    field: &'static str,
    value: Box<str>,
    /// For a key with another condition.
    identity: Option<Box<Identity>>,
    /// Whether the import brings this key to the row.
    is_brought: bool,
}

impl KeyHolder {
    /// Whether a condition holds for this row and another one.
    fn meets(&self, condition: fn(&Identity, &Identity) -> bool, other: &Identity) -> bool {
        self.identity
            .as_ref()
            .is_none_or(|own| condition(other, own))
    }

    /// The finding about the key of this row.
    fn finding(&self, rule: &'static str, message: Message) -> Finding {
        self.location
            .finding(rule, self.field, Some(&self.value), message)
    }
}

/// The match keys seen so far, and their rows.
#[derive(Debug, Default)]
pub(super) struct Duplicates {
    /// The rows with a key, by their kind, the rule and the key.
    holders: HashMap<(&'static str, &'static str, String), Vec<KeyHolder>>,
    /// The kinds of rows to which the import brings a key.
    pub brought: BTreeSet<&'static str>,
}

/// The maximum number of rows per key whose identities are compared.
const MAX_COMPARED: usize = 20;

/// Describes a row in a message about another row.
fn describe(kind: &str, id: u64, location: &RowLocation) -> String {
    format!(
        "{} {id} {}",
        kind.trim_end_matches('s'),
        location.describe()
    )
}

impl Duplicates {
    /// Compares a row with earlier rows. `before` is the version whose keys are known. `is_imported` says that the row
    /// is in the import. Returns the finding about a duplicate.
    pub fn compare<F: Lintable>(
        &mut self,
        location: &RowLocation,
        id: Id,
        row: &Compared<'_>,
        before: Option<&Compared<'_>>,
        is_imported: bool,
    ) -> Option<Finding> {
        let id = id.get();
        let is_unchanged = before == Some(row);
        let own_identity = OnceCell::new();
        let identity = || own_identity.get_or_init(|| F::identity(row));
        let known = before
            .filter(|_| !is_unchanged)
            .map(F::match_keys)
            .unwrap_or_default();
        let mut found = None;
        for MatchKey {
            rule,
            field,
            value,
            key,
            also,
            message,
        } in F::match_keys(row)
        {
            let is_known = || {
                let had_key = |known: &MatchKey| known.rule == rule && known.key == key;
                let had_identity = |before| F::identity(before) == *identity();
                known.iter().any(had_key) && (also.is_none() || before.is_some_and(had_identity))
            };
            let is_brought = is_imported && !is_unchanged && !is_known();
            if is_brought {
                self.brought.insert(F::STEM);
            }
            let key = (F::STEM, rule, key);
            let others = self.holders.get(&key).map_or(&[][..], Vec::as_slice);
            let is_duplicate = |other: &&KeyHolder| {
                (is_brought || other.is_brought)
                    && also.is_none_or(|condition| other.meets(condition, identity()))
            };
            if found.is_none()
                && let Some(other) = others.iter().find(is_duplicate)
            {
                // Report the row to which the import brings the key, since the curator can correct it.
                found = Some(if is_brought {
                    let twin = describe(F::STEM, other.id, &other.location);
                    location.finding(rule, field, Some(&value), message(&twin))
                } else {
                    let twin = describe(F::STEM, id, location);
                    other.finding(rule, message(&twin))
                });
            }
            let max = if also.is_some() { MAX_COMPARED } else { 1 };
            if is_imported && others.len() < max {
                let holder = KeyHolder {
                    location: location.clone(),
                    id,
                    field,
                    value: value.into(),
                    identity: also.map(|_| Box::new(F::identity(row))),
                    is_brought,
                };
                // Most keys have one row, so the list begins with room for one.
                let others = self.holders.entry(key);
                others.or_insert_with(|| Vec::with_capacity(1)).push(holder);
            }
        }
        found
    }
}
