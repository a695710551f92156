//! The batch that an import commits, and what the import may ask of the state that it edits.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::reference::ReferenceFields;
use crate::model::{
    Conference, Curated, Dataset, Id, Journal, License, Organization, PerDataset, RecordFields, ReferenceKind,
    References, Tag,
};
use crate::store::{NameEntry, StoreError, WordCount};

/// The rows that one commit writes, by id; `None` removes. It may hold rows equal to the stored ones: only differences are
/// written.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the four kinds of rows")]
pub struct Batch {
    pub organizations: BTreeMap<Id, Option<Organization>>,
    pub tags: BTreeMap<Id, Option<Tag>>,
    pub conferences: BTreeMap<Id, Option<Conference>>,
    pub journals: BTreeMap<Id, Option<Journal>>,
}

/// What an import reads of the state that it edits. The write transaction implements it, so that rows are validated against
/// the very state that they change.
pub trait Curation {
    /// All organizations and tags.
    fn references(&self) -> Result<&References, StoreError>;

    /// A record, if there is one of that id.
    fn find_record<F: RecordFields>(&self, id: Id) -> Result<Option<Curated<F>>, StoreError>;

    /// The ids of all records of a dataset.
    fn record_ids(&self, dataset: Dataset) -> Result<BTreeSet<Id>, StoreError>;

    /// The largest id that a record of a dataset has, or had while a license showed it.
    fn largest_id(&self, dataset: Dataset) -> Result<Option<Id>, StoreError> {
        Ok(self.record_ids(dataset)?.last().copied())
    }

    /// How many records a dataset holds.
    fn record_count(&self, dataset: Dataset) -> Result<usize, StoreError>;

    /// The records that link to an organization or tag.
    fn linked_records(&self, kind: ReferenceKind, id: Id) -> Result<Vec<(Dataset, Id)>, StoreError>;

    /// Calls `each` with every record of a dataset, in the order of their ids.
    fn for_each_record<F: RecordFields>(&self, each: &mut dyn FnMut(Curated<F>)) -> Result<(), StoreError>;

    /// All licenses, by name.
    fn licenses(&self) -> Vec<License>;

    /// The records that have one of the names, each with the name's hash; at most `most` of a name and dataset. `None`
    /// where no index of this version of the rules tells.
    fn records_named(&self, _version: u32, _names: &[u64], _most: usize) -> Result<Option<Vec<NameEntry>>, StoreError> {
        Ok(None)
    }

    /// The words of a vocabulary in all records. `None` where no index of this version of the rules tells.
    fn words(&self, _version: u32, _vocabulary: u8) -> Result<Option<Vec<WordCount>>, StoreError> {
        Ok(None)
    }
}

/// The names and words that records gain and lose.
#[derive(Clone, Debug, Default)]
pub struct NameChanges {
    /// The version of the rules that made them.
    pub version: u32,
    /// The entries that the index loses.
    pub removed: Vec<NameEntry>,
    /// The entries that it gains.
    pub added: Vec<NameEntry>,
    /// By vocabulary and word.
    pub words: BTreeMap<(u8, String), WordChange>,
}

/// The change of one word's count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordChange {
    /// How many more records have it.
    pub records: i64,
    /// A record that gains it.
    pub gained_by: Option<Id>,
    /// The records that lose it.
    pub lost_by: Vec<Id>,
}

/// Hears of each row that a batch adds, changes or removes, for showing it.
pub trait ChangeObserver {
    /// The version of the rules by which it keeps the index of names; `None` if it keeps none.
    fn names_version(&self) -> Option<u32> {
        None
    }

    /// The changes of the index of names that belong to the rows so far.
    fn take_names(&mut self) -> NameChanges {
        NameChanges::default()
    }

    /// An organization or tag differs from the stored one.
    fn reference<F: ReferenceFields>(&mut self, before: Option<&Curated<F>>, after: Option<&Curated<F>>);

    /// A record differs from the stored one, or what it links does. `references` are those after the batch.
    fn record<F: RecordFields>(
        &mut self,
        before: Option<&Curated<F>>,
        after: Option<&Curated<F>>,
        references: &References,
    );
}

/// Nobody looks.
impl ChangeObserver for () {
    fn reference<F: ReferenceFields>(&mut self, _before: Option<&Curated<F>>, _after: Option<&Curated<F>>) {}

    fn record<F: RecordFields>(
        &mut self,
        _before: Option<&Curated<F>>,
        _after: Option<&Curated<F>>,
        _references: &References,
    ) {
    }
}

/// The numbers of rows of one kind by what was done with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "named as in the import's summary")]
pub struct RowCounts {
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
    pub unchanged: u64,
}

/// What a commit does to one license's view of one dataset.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LicenseEffect {
    /// The license's name.
    pub license: String,
    /// The dataset.
    pub dataset: Dataset,
    /// Records that it now sees and did not see before.
    pub entering: u64,
    /// Records that it saw and sees, changed.
    pub changed: u64,
    /// Records that it saw and no longer sees.
    pub leaving: u64,
}

/// What a batch did.
#[derive(Clone, Debug, Default)]
pub struct BatchOutcome {
    /// Records. A record touched by a changed organization or tag counts as changed.
    pub datasets: PerDataset<RowCounts>,
    /// Organizations.
    pub organizations: RowCounts,
    /// Tags.
    pub tags: RowCounts,
    /// OnRecord license and dataset that it shows.
    pub licenses: Vec<LicenseEffect>,
}
