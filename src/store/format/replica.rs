//! The row that makes a file a replica.

use redb::{ReadTransaction, ReadableTable};
use serde::{Deserialize, Serialize};

use crate::model::{DatabaseId, RowDigest};
use crate::store::StoreError;
use crate::store::format::codec::unseal;
use crate::store::format::rows::optional_table;
use crate::store::format::tables::{REPLICA, REPLICA_KEY};

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
