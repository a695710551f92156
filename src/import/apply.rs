//! Phase 3: a batch becomes part of a write transaction.

use super::lint::names::Indexer;
use crate::store::write::batch::{Batch, Outcome};
use crate::store::{Edit, StoreError};

/// Applies a batch, and keeps the index of names.
///
/// # Errors
/// When the database cannot be read or written, and [`StoreError::Wanted`] where the edit gives way. The edit must be dropped
/// then.
pub fn apply(edit: &mut Edit<'_>, batch: &Batch) -> Result<Outcome, StoreError> {
    edit.apply_before(batch, &mut Indexer::default())
}
