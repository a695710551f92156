//! The rows in `meta` of a published database.

use redb::ReadableTable;

use crate::model::{DatabaseId, Head, RowDigest};
use crate::store::StoreError;
use crate::store::format::codec::unseal;
use crate::store::format::tables::{META_DATABASE, META_PUBLISH, META_RESTORED};

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
