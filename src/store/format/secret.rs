//! The secret that seals tokens and cursors: a sealed row of `meta`. With a damaged secret, every token of a client would
//! look forged.

use redb::ReadableTable;

use crate::store::StoreError;
use crate::store::format::codec::{seal_under, unseal_under};
use crate::store::format::tables::META_SECRET;

/// The row of a secret.
pub fn encode(secret: &[u8; 32]) -> Result<Vec<u8>, StoreError> {
    seal_under(META_SECRET.as_bytes(), secret)
}

/// Reads the secret.
///
/// # Errors
///
/// [`StoreError::Damaged`] if it is missing or damaged.
pub fn read(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<[u8; 32], StoreError> {
    let missing = || StoreError::damaged("meta", "the token secret is missing");
    unseal_under("meta", META_SECRET.as_bytes(), meta.get(META_SECRET)?.ok_or_else(missing)?.value())
}
