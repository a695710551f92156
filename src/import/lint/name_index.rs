//! The index of names and words in the database, which imports use to find rows to compare with.

use std::collections::BTreeSet;

use super::areas::AREAS;
use super::countries::COUNTRIES;
use super::lintable::Lintable;
use crate::model::reference::ReferenceFields;
use crate::model::{ConferenceFields, Curated, JournalFields, RecordFields, References};
use crate::store::write::batch::{ChangeObserver, NameChanges};
use crate::store::{Snapshot, StoreError};

/// The version of the index. Raise it when the same record gets other entries. Then older indexes are rebuilt.
pub(in crate::import) const VERSION: u32 = 1;

/// Collects the index entries that a batch adds and removes.
#[derive(Debug)]
pub struct Indexer {
    changes: NameChanges,
}

impl Default for Indexer {
    fn default() -> Indexer {
        Indexer { changes: NameChanges { version: VERSION, ..NameChanges::default() } }
    }
}

impl Indexer {
    fn change<F: RecordFields + Lintable>(&mut self, before: Option<&Curated<F>>, after: Option<&Curated<F>>) {
        let Some(id) = after.or(before).map(Curated::id) else { return };
        let hashes = |row: Option<&Curated<F>>| -> BTreeSet<u64> {
            let match_keys = row.map(|row| row.fields().match_keys()).unwrap_or_default();
            match_keys.iter().map(|one| one.hash(F::STEM)).collect()
        };
        let (old, new) = (hashes(before), hashes(after));
        let NameChanges { removed, added, words, .. } = &mut self.changes;
        removed.extend(old.difference(&new).map(|hash| (*hash, F::DATASET, id)));
        added.extend(new.difference(&old).map(|hash| (*hash, F::DATASET, id)));
        for vocabulary in [&AREAS, &COUNTRIES] {
            let words_of = |row: Option<&Curated<F>>| -> BTreeSet<String> {
                let words = row.map(|row| row.fields().words_of(vocabulary)).unwrap_or_default();
                words.into_iter().map(str::to_owned).collect()
            };
            let (old, new) = (words_of(before), words_of(after));
            for word in old.difference(&new) {
                let change = words.entry((vocabulary.code, word.clone())).or_default();
                change.records -= 1;
                change.lost_by.push(id);
            }
            for word in new.difference(&old) {
                let change = words.entry((vocabulary.code, word.clone())).or_default();
                change.records += 1;
                change.gained_by.get_or_insert(id);
            }
        }
    }
}

impl ChangeObserver for Indexer {
    fn names_version(&self) -> Option<u32> {
        Some(VERSION)
    }

    fn take_names(&mut self) -> NameChanges {
        std::mem::take(self).changes
    }

    fn reference<F: ReferenceFields>(&mut self, _before: Option<&Curated<F>>, _after: Option<&Curated<F>>) {}

    fn record<F: RecordFields>(&mut self, before: Option<&Curated<F>>, after: Option<&Curated<F>>, _: &References) {
        /// Casts the row to a type that implements `Lintable`.
        fn as_lintable<F: RecordFields, L: RecordFields>(row: Option<&Curated<F>>) -> Option<&Curated<L>> {
            row.and_then(|row| (row as &dyn std::any::Any).downcast_ref())
        }
        self.change::<ConferenceFields>(as_lintable(before), as_lintable(after));
        self.change::<JournalFields>(as_lintable(before), as_lintable(after));
    }
}

/// Returns true if the database has an index of this version.
pub fn has_names(snapshot: &Snapshot) -> Result<bool, StoreError> {
    snapshot.has_names(VERSION)
}

/// Returns the index entries of all records.
pub fn all_names(snapshot: &Snapshot) -> Result<NameChanges, StoreError> {
    let mut indexer = Indexer::default();
    snapshot.for_each_record::<ConferenceFields, StoreError>(|record, _, _| {
        indexer.change(None, Some(&record));
        Ok(())
    })?;
    snapshot.for_each_record::<JournalFields, StoreError>(|record, _, _| {
        indexer.change(None, Some(&record));
        Ok(())
    })?;
    Ok(indexer.take_names())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Id;

    #[test]
    fn names_change_with_their_version() {
        // If these values change, raise `VERSION`. Otherwise imports compare with entries of earlier versions.
        let conference = ConferenceFields {
            name: Some("Société: Congress & Expo".to_owned()),
            abbv: Some("SCE".to_owned()),
            year: Some(2026),
            start_date: "2026-05-01".parse().ok(),
            city: Some("Łódź".to_owned()),
            country: Some("Poland".to_owned()),
            therapy_areas: vec!["Oncology".to_owned()],
            ..ConferenceFields::default()
        };
        let journal = JournalFields {
            name: Some("The Lancet".to_owned()),
            issn_print: Some("0140-6736".to_owned()),
            ..JournalFields::default()
        };
        let hashes = |match_keys: Vec<super::super::duplicates::MatchKey<'_>>, kind: &str| -> Vec<String> {
            match_keys.iter().map(|one| format!("{} {} {:016x}", one.rule, one.key, one.hash(kind))).collect()
        };
        let conferences = hashes(conference.match_keys(), "conferences");
        let journals = hashes(journal.match_keys(), "journals");
        let expected = [
            "same_name_and_year societecongressandexpo 2026  09761d7f07b92669",
            "same_meeting 2026-05-01 lodz bb637c0d5b5536d6",
            "issn_twice 01406736 ec0c91291b7d5dac",
            "same_name thelancet  2800aed884f7984d",
        ];
        assert_eq!((VERSION, [conferences, journals].concat()), (1, expected.map(str::to_owned).to_vec()));
        let mut indexer = Indexer::default();
        let id = Id::try_from(1).unwrap();
        indexer.change(None, Curated::new(id, journal).ok().as_ref());
        assert_eq!(indexer.take_names().added.len(), 2);
    }
}
