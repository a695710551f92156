//! Single rows: the id and digest of a published database, the mark of a replica, and the secret of tokens.

use redb::{ReadTransaction, ReadableTable};
use serde::{Deserialize, Serialize};

use crate::model::{DatabaseId, Head, RowDigest};
use crate::store::StoreError;
use crate::store::format::codec::{seal_under, unseal, unseal_under};
use crate::store::format::rows::optional_table;
use crate::store::format::tables::{META_DATABASE, META_PUBLISH, META_RESTORED, META_SECRET, REPLICA, REPLICA_KEY};

/// The id of the database; `None` if it was never published.
pub(in crate::store) fn database_id(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<DatabaseId>, StoreError> {
    let Some(stored) = meta.get(META_DATABASE)? else { return Ok(None) };
    let bytes = stored.value().try_into();
    bytes.map(|id| Some(DatabaseId(id))).map_err(|_| StoreError::damaged("meta", "the database's id is cut short"))
}

/// The stored digest of all rows; `None` if the database is not published.
pub(in crate::store) fn stored_digest(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<RowDigest>, StoreError> {
    meta.get(META_PUBLISH)?.map(|kept| unseal("meta", kept.value())).transpose()
}

/// The last commit of the database that a restore replaced by this one.
pub(in crate::store) fn restored_over(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<Head>, StoreError> {
    meta.get(META_RESTORED)?.map(|head| unseal("meta", head.value())).transpose()
}

/// A replica's mark: the one row of `replica`. It is written in the same transaction as the rows that it describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the id of the origin, and the hash of the entry")]
pub struct ReplicaMark {
    /// The URL of the bucket that the replica follows.
    pub url: String,
    pub id: DatabaseId,
    /// The slot of the last applied entry.
    pub slot: u64,
    pub hash: [u8; 32],
    /// The digest of all rows after that entry.
    pub digest: RowDigest,
}

/// The mark of a file; `None` if it is not a replica.
pub(in crate::store) fn find_mark(transaction: &ReadTransaction) -> Result<Option<ReplicaMark>, StoreError> {
    let Some(replica) = optional_table(transaction.open_table(REPLICA))? else { return Ok(None) };
    replica.get(REPLICA_KEY)?.map(|mark| unseal("replica", mark.value())).transpose()
}

/// The row of a secret.
pub(in crate::store) fn encode_secret(secret: &[u8; 32]) -> Result<Vec<u8>, StoreError> {
    seal_under(META_SECRET.as_bytes(), secret)
}

/// Reads the secret that seals tokens and cursors. With a damaged one, every token of a client would look forged.
///
/// # Errors
///
/// [`StoreError::Damaged`] if it is missing or damaged.
pub(in crate::store) fn read_secret(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<[u8; 32], StoreError> {
    let missing = || StoreError::damaged("meta", "the token secret is missing");
    unseal_under("meta", META_SECRET.as_bytes(), meta.get(META_SECRET)?.ok_or_else(missing)?.value())
}
