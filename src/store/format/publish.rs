//! What `meta` says of a published database.

use redb::ReadableTable;
use serde::{Deserialize, Serialize};

use crate::model::{DatabaseId, Head, RowDigest};
use crate::store::StoreError;
use crate::store::format::codec::unseal;
use crate::store::format::tables::{META_DATABASE, META_PUBLISH, META_RESTORED};

/// The digest of all rows, which a published database keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct StoredDigest {
    /// The commit after which it was taken. If that is not the last one, a program that knows no digests wrote since.
    pub head: Head,
    /// The digest.
    pub digest: RowDigest,
}

/// The id of the database; `None` if it was never published.
pub(in crate::store) fn database_id(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<DatabaseId>, StoreError> {
    let Some(stored) = meta.get(META_DATABASE)? else { return Ok(None) };
    let bytes = stored.value().try_into();
    bytes.map(|id| Some(DatabaseId(id))).map_err(|_| StoreError::damaged("meta", "the database's id is cut short"))
}

/// The digest that a published database keeps; `None` for one that is not published.
pub(in crate::store) fn stored_digest(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<StoredDigest>, StoreError> {
    meta.get(META_PUBLISH)?.map(|kept| unseal("meta", kept.value())).transpose()
}

/// The last commit of what a restore replaced by this database.
pub(in crate::store) fn restored_over(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<Head>, StoreError> {
    meta.get(META_RESTORED)?.map(|head| unseal("meta", head.value())).transpose()
}
