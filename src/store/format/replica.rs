//! What makes a file a replica, and up to where it has followed its origin.

use redb::{ReadTransaction, ReadableTable};
use serde::{Deserialize, Serialize};

use crate::model::{DatabaseId, RowDigest};
use crate::store::StoreError;
use crate::store::format::codec::unseal;
use crate::store::format::rows::optional_table;
use crate::store::format::tables::{REPLICA, REPLICA_KEY};

/// A replica's mark, the one row of table `replica`. It is written in the transaction of the rows that it tells of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaMark {
    /// Where it follows its origin.
    pub url: String,
    /// The origin's database.
    pub id: DatabaseId,
    /// The slot of the last entry that was applied.
    pub slot: u64,
    /// That entry's hash.
    pub hash: [u8; 32],
    /// The digest of the file's rows after it.
    pub digest: RowDigest,
}

/// The mark in a file; `None` if it is no replica.
pub(in crate::store) fn find_mark(transaction: &ReadTransaction) -> Result<Option<ReplicaMark>, StoreError> {
    let Some(replica) = optional_table(transaction.open_table(REPLICA))? else { return Ok(None) };
    replica.get(REPLICA_KEY)?.map(|mark| unseal("replica", mark.value())).transpose()
}
