//! The traits of a copy and of its observers.

use super::digest::ContentDigest;
use super::entry::FeedPage;
use super::error::PullError;
use super::export::Export;
use crate::model::Dataset;

/// The position of a copy in the feed of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The sync token of the last applied page or load.
    pub token: String,
    /// The number of records in the copy.
    pub records: u64,
    /// The Unix time, in seconds, when the copy last equaled the service's content; 0 for never.
    pub verified_at: i64,
}

/// A copy of the datasets of one license. Each method is one transaction of token and rows: after an error or a crash,
/// it has either taken effect or changed nothing.
pub trait PullTarget {
    /// The position of the copy; `None` if the export must be loaded.
    fn position(&mut self, dataset: Dataset) -> Result<Option<Position>, PullError>;

    /// The number of records that the copy holds of the service's dataset, also if the export must be loaded; `None` if
    /// it was never loaded.
    fn records(&mut self, dataset: Dataset) -> Result<Option<u64>, PullError>;

    /// Applies a page and saves its token.
    fn apply(&mut self, dataset: Dataset, page: &FeedPage, events: &dyn Events) -> Result<(), PullError>;

    /// Makes the copy equal to an export and saves its token. Readers see the old content until then. Writes only
    /// records that differ. With `rewrite_all`, writes all of them, and so repairs the tables derived from them.
    fn load(
        &mut self,
        dataset: Dataset,
        export: &mut Export<'_>,
        rewrite_all: bool,
        events: &dyn Events,
    ) -> Result<(), PullError>;

    /// Removes the records of a dataset together with its position, and returns their number. Each one is reported as a
    /// tombstone.
    fn clear(&mut self, dataset: Dataset, events: &dyn Events) -> Result<u64, PullError>;

    /// The digest of the copy's records.
    fn digest(&mut self, dataset: Dataset) -> Result<ContentDigest, PullError>;

    /// Compares all derived tables and files with the records. Returns a description of the first fault.
    fn find_fault(&mut self, dataset: Dataset) -> Result<Option<String>, PullError>;

    /// Saves the time at which the copy equaled the service's content: now.
    fn set_verified(&mut self, dataset: Dataset) -> Result<(), PullError>;

    /// Fails if the copy's path was removed or now leads to another file.
    fn check_location(&self) -> Result<(), PullError>;
}

/// Observes a pull.
pub trait Events {
    /// Whether [`change`](Self::change) does anything with an entry.
    fn takes_changes(&self) -> bool {
        true
    }

    /// Receives a changed entry of a page or an export that has come whole, before the entry is saved: at least once, and
    /// twice after a crash. After an error, it is not saved.
    fn change(&self, dataset: Dataset, json: &str) -> Result<(), PullError>;

    /// Receives the number of records read from an export of `of` records.
    fn progress(&self, dataset: Dataset, records: u64, of: u64);

    /// Receives a message for the user.
    fn note(&self, text: &str);
}
