//! Phase 3: adds a batch to a write transaction.

use super::lint::name_index::Indexer;
use crate::store::write::batch::{Batch, BatchOutcome};
use crate::store::{Edit, StoreError};

/// Applies a batch, and updates the index of names. After an error the caller must drop the edit.
pub fn apply(edit: &mut Edit<'_>, batch: &Batch) -> Result<BatchOutcome, StoreError> {
    edit.apply_observed(batch, &mut Indexer::default())
}
