//! Rows that probably describe the same thing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::identity::MatchKey;
use super::lintable::Lintable;
use super::rule::RowLocation;
use crate::import::findings::Finding;
use crate::model::Id;

/// A row of the import that has a certain match key.
#[derive(Debug)]
struct KeyHolder {
    id: Id,
    /// Whether the import brings the key to the row.
    is_brought: bool,
}

/// Returns the location and the fields of a row that was checked before.
pub type FindRow<'a, F> = dyn Fn(Id) -> Option<(RowLocation, F)> + 'a;

/// A row to compare with the rows before it.
pub struct ComparedRow<'a, F> {
    pub location: RowLocation,
    pub id: Id,
    pub fields: &'a F,
    /// The version whose values are not reported again.
    pub before: Option<&'a F>,
    pub is_imported: bool,
}

impl<'a, F: Lintable> ComparedRow<'a, F> {
    /// Returns a stored row that is not in the import.
    pub fn stored(id: Id, fields: &'a F) -> ComparedRow<'a, F> {
        ComparedRow {
            location: RowLocation::Database(F::STEM, id),
            id,
            fields,
            before: None,
            is_imported: false,
        }
    }
}

/// The match keys seen so far, and their rows.
#[derive(Debug, Default)]
pub struct Duplicates {
    /// The rows with each key. The first is at the key, the others are at the numbers after it.
    holders: HashMap<u64, KeyHolder>,
    /// The marks of the values that the import brings to each kind of row.
    pub brought: BTreeMap<&'static str, BTreeSet<String>>,
}

/// The maximum number of rows per key whose identities are compared.
const MAX_COMPARED: u64 = 20;

/// Describes a row in a message about another row.
fn describe<F: Lintable>(id: Id, location: &RowLocation) -> String {
    let kind = F::STEM.trim_end_matches('s');
    format!("{kind} {id} {}", location.describe())
}

impl Duplicates {
    /// Compares a row with earlier rows of the import. Returns the finding about a duplicate.
    pub fn compare<F: Lintable>(
        &mut self,
        row: &ComparedRow<'_, F>,
        find: &FindRow<'_, F>,
    ) -> Option<Finding> {
        let is_unchanged = row.before == Some(row.fields);
        let before = row.before.filter(|_| !is_unchanged);
        let known = before.map(F::match_keys).unwrap_or_default();
        let mut found = None;
        for own in row.fields.match_keys() {
            let is_known = known.iter().any(|known| known.key == own.key)
                && own
                    .identity
                    .is_none_or(|of| before.map(of) == Some(of(row.fields)));
            let is_brought = row.is_imported && !is_unchanged && !is_known;
            let mut count = 0;
            while let Some(other) = self.holders.get(&own.key.wrapping_add(count)) {
                count += 1;
                if found.is_none() && (is_brought || other.is_brought) {
                    found = report(row, &own, is_brought, other.id, find);
                }
            }
            if is_brought {
                self.bring::<F>(row.fields.mark(own.rule));
            }
            let max = own.identity.map_or(1, |_| MAX_COMPARED);
            if row.is_imported && count < max {
                let id = row.id;
                self.holders
                    .insert(own.key.wrapping_add(count), KeyHolder { id, is_brought });
            }
        }
        found
    }

    /// Notes that the import brings a value to rows with this mark.
    pub fn bring<F: Lintable>(&mut self, mark: String) {
        self.brought.entry(F::STEM).or_default().insert(mark);
    }
}

/// Reports that two rows with the same key are duplicates, if they are. The finding is about the row to which the import
/// brings the key, since the curator can correct it.
fn report<F: Lintable>(
    row: &ComparedRow<'_, F>,
    own: &MatchKey<'_, F>,
    is_brought: bool,
    other: Id,
    find: &FindRow<'_, F>,
) -> Option<Finding> {
    let (location, fields) = find(other)?;
    own.identity
        .is_none_or(|of| of(row.fields).is_similar(&of(&fields)))
        .then_some(())?;
    if is_brought {
        let message = (own.message)(&describe::<F>(other, &location));
        let value = Some(&*own.value);
        return Some(row.location.finding(own.rule, own.field, value, message));
    }
    let mut theirs = fields.match_keys().into_iter();
    let theirs = theirs.find(|theirs| theirs.key == own.key)?;
    let message = (own.message)(&describe::<F>(row.id, &row.location));
    Some(location.finding(own.rule, theirs.field, Some(&theirs.value), message))
}
