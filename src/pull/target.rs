//! What a copy can do, and who hears of what happens to it.

use super::digest::ContentDigest;
use super::entry::FeedPage;
use super::error::PullError;
use super::export::Export;
use crate::model::Dataset;

/// Where a copy of a dataset stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The sync token: the copy is the license's view at it, or on its way there by whole pages.
    pub token: String,
    /// How many records the copy holds.
    pub records: u64,
    /// When the copy was last found equal to the service's content, in seconds since 1970; 0 for never.
    pub verified_at: i64,
}

/// A copy of the datasets of one license. Each change is one transaction: after a crash at any moment the copy is as it was
/// before or after it, token and rows together.
pub trait PullTarget {
    /// Where the copy of a dataset stands; `None` when there is none that could be gone on with.
    ///
    /// # Errors
    /// When the copy cannot be read.
    fn position(&mut self, dataset: Dataset) -> Result<Option<Position>, PullError>;

    /// Applies a page and saves its token.
    ///
    /// # Errors
    /// When the copy cannot be written; it is unchanged then.
    fn apply(&mut self, dataset: Dataset, page: &FeedPage, events: &dyn Events) -> Result<(), PullError>;

    /// Makes the copy equal to an export and saves its token. Readers see the old content until the new one is whole. Only
    /// records that differ are written, or all of them when `anew` says that what is derived from them is not to be trusted.
    ///
    /// # Errors
    /// When the export does not come whole, or the copy cannot be written; it is unchanged then.
    fn load(
        &mut self,
        dataset: Dataset,
        export: &mut Export<'_>,
        anew: bool,
        events: &dyn Events,
    ) -> Result<(), PullError>;

    /// What the copy's records come to.
    ///
    /// # Errors
    /// When the copy cannot be read.
    fn digest(&mut self, dataset: Dataset) -> Result<ContentDigest, PullError>;

    /// Compares everything that is derived from the records with them; tells the first fault.
    ///
    /// # Errors
    /// When the copy cannot be read.
    fn find_fault(&mut self, dataset: Dataset) -> Result<Option<String>, PullError>;

    /// Notes that the copy was found equal to the service's content.
    ///
    /// # Errors
    /// When the copy cannot be written.
    fn set_verified(&mut self, dataset: Dataset) -> Result<(), PullError>;

    /// Whether the copy still is what its path leads to; somebody may have removed it meanwhile.
    ///
    /// # Errors
    /// When it is not.
    fn check_location(&self) -> Result<(), PullError>;
}

/// Who hears of what happens.
pub trait Events {
    /// An entry changes the copy; told before it is saved, so that after a crash it may be told twice, but never not at all.
    ///
    /// # Errors
    /// When it cannot be passed on; then it is not saved either.
    fn change(&self, dataset: Dataset, json: &str) -> Result<(), PullError>;

    /// So many records of an export have come.
    fn progress(&self, dataset: Dataset, records: u64, of: u64);

    /// Something that a person should know.
    fn note(&self, text: &str);
}
