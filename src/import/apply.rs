//! Phase 3: a batch becomes part of a write transaction.

use super::lint::name_index::Indexer;
use crate::store::write::batch::{Batch, BatchOutcome};
use crate::store::{Edit, StoreError};

/// Applies a batch, and keeps the index of names.
///
/// # Errors
/// When the database cannot be read or written, and [`StoreError::YieldRequested`] where the edit gives way. The edit must be dropped
/// then.
pub fn apply(edit: &mut Edit<'_>, batch: &Batch) -> Result<BatchOutcome, StoreError> {
    edit.apply_observed(batch, &mut Indexer::default())
}
