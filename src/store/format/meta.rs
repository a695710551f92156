//! Single rows: the version of the file, the id and digest of a published database, the mark of a replica, and the
//! secret of tokens.
//!
//! The version is the format, and the fields in the JSON of the rows. A release that adds a field keeps the number of
//! the format. But the JSON in `log` lacks the field. So a file stores the names of its fields, and `medfeed upgrade`
//! renders the JSON again.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use redb::{ReadTransaction, ReadableTable};
use serde::{Deserialize, Serialize};

use super::rows::{optional_table, unseal, unseal_under};
use super::tables::{
    META_DATABASE, META_FIELDS, META_PUBLISH, META_RESTORED, META_SCHEMA, META_SECRET, REPLICA,
    REPLICA_KEY, SCHEMA,
};
use crate::model::{
    ConferenceFields, DatabaseId, Fields, Head, JournalFields, OrganizationFields, RowDigest,
    TagFields,
};
use crate::store::{Result, StoreError};

/// The table `meta`.
pub trait MetaRows: ReadableTable<&'static str, &'static [u8]> {}
impl<T: ReadableTable<&'static str, &'static [u8]>> MetaRows for T {}

/// The id of the database; `None` if it was never published.
pub fn database_id(meta: &impl MetaRows) -> Result<Option<DatabaseId>> {
    let Some(stored) = meta.get(META_DATABASE)? else {
        return Ok(None);
    };
    match stored.value().try_into() {
        Ok(id) => Ok(Some(DatabaseId(id))),
        Err(_) => Err(StoreError::damaged(
            "meta",
            "the database's id is cut short",
        )),
    }
}

/// The stored digest of all rows; `None` if the database is not published.
pub fn stored_digest(meta: &impl MetaRows) -> Result<Option<RowDigest>> {
    meta.get(META_PUBLISH)?
        .map(|kept| unseal("meta", kept.value()))
        .transpose()
}

/// The last commit of the database that a restore replaced by this one.
pub fn restored_over(meta: &impl MetaRows) -> Result<Option<Head>> {
    meta.get(META_RESTORED)?
        .map(|head| unseal("meta", head.value()))
        .transpose()
}

/// A replica's mark: the one row of `replica`. It is written in the same transaction as the rows that it describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(
    missing_docs,
    reason = "the id of the origin, and the hash of the entry"
)]
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
pub fn find_mark(transaction: &ReadTransaction) -> Result<Option<ReplicaMark>> {
    let Some(replica) = optional_table(transaction.open_table(REPLICA))? else {
        return Ok(None);
    };
    replica
        .get(REPLICA_KEY)?
        .map(|mark| unseal("replica", mark.value()))
        .transpose()
}

/// Reads the secret that seals tokens and cursors. With a damaged one, every token of a client would look forged.
///
/// # Errors
///
/// [`StoreError::Damaged`] if it is missing or damaged.
pub fn read_secret(meta: &impl MetaRows) -> Result<[u8; 32]> {
    let missing = || StoreError::damaged("meta", "the token secret is missing");
    unseal_under(
        "meta",
        META_SECRET.as_bytes(),
        meta.get(META_SECRET)?.ok_or_else(missing)?.value(),
    )
}

/// The fields of this program in the order of the JSON, one per line, such as `conferences.formats.oral`.
pub fn known_fields() -> &'static str {
    static KNOWN: LazyLock<String> = LazyLock::new(|| {
        fn lines<F: Fields>() -> String {
            F::table()
                .fields
                .iter()
                .map(|field| format!("{}.{}\n", F::STEM, field.name))
                .collect()
        }
        [
            lines::<ConferenceFields>(),
            lines::<JournalFields>(),
            lines::<OrganizationFields>(),
            lines::<TagFields>(),
        ]
        .concat()
    });
    &KNOWN
}

/// The version of a file: its format, and the names of the fields in the JSON of its rows.
#[derive(Debug)]
pub struct Version {
    /// The number of the format.
    pub schema: u32,
    /// The names of the fields.
    pub fields: Vec<u8>,
}

impl Version {
    /// Reads the version from `meta`; `None` if there is none.
    pub fn read(meta: &impl MetaRows) -> Result<Option<Version>> {
        let Some(schema) = meta.get(META_SCHEMA)? else {
            return Ok(None);
        };
        let Ok(schema) = schema.value().try_into() else {
            return Ok(None);
        };
        let fields = meta
            .get(META_FIELDS)?
            .map(|fields| fields.value().to_vec())
            .unwrap_or_default();
        Ok(Some(Version {
            schema: u32::from_le_bytes(schema),
            fields,
        }))
    }

    /// Whether this program writes the same version.
    pub fn is_current(&self) -> bool {
        self.schema == SCHEMA && self.fields == known_fields().as_bytes()
    }

    /// The fields that rows of this program have and the file lacks, such as `conferences.acronym`.
    pub fn missing_fields(&self) -> Vec<String> {
        only_in(known_fields(), &String::from_utf8_lossy(&self.fields))
    }

    /// Fails unless this program reads the file. `older` accepts a file that it upgrades.
    pub fn check(&self, path: &Path, older: bool) -> Result<()> {
        let path = path.to_owned();
        let found = self.schema;
        let known = SCHEMA;
        match found.cmp(&known) {
            Ordering::Less => return Err(StoreError::OlderSchema { path, found, known }),
            Ordering::Greater => return Err(StoreError::NewerSchema { path, found, known }),
            Ordering::Equal => {}
        }
        let unknown = only_in(&String::from_utf8_lossy(&self.fields), known_fields());
        if !unknown.is_empty() {
            return Err(StoreError::NewerFields { path, unknown });
        }
        if older || self.is_current() {
            return Ok(());
        }
        Err(StoreError::OlderFields {
            path,
            missing: self.missing_fields(),
        })
    }
}

/// The lines that only the first text has, sorted.
fn only_in(text: &str, other: &str) -> Vec<String> {
    let lines: BTreeSet<&str> = text.lines().collect();
    let others = other.lines().collect();
    lines.difference(&others).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_and_newer_fields_are_distinguished() {
        let all = known_fields();
        let without = all.replacen("conferences.venue\n", "", 1);
        let moved = format!("{without}conferences.venue\n");
        // The fields of the file, whether it is current, and the errors without and with `older`.
        let cases = [
            (all.to_owned(), true, "", ""),
            (without.clone(), false, "have no conferences.venue;", ""),
            (moved, false, "in another order; run `medfeed upgrade`", ""),
            (format!("{all}tags.x\n"), false, "tags.x", "tags.x"),
            (format!("{without}tags.x\n"), false, "tags.x", "tags.x"),
        ];
        for (stored, is_current, error, error_of_older) in cases {
            let version = Version {
                schema: SCHEMA,
                fields: stored.into_bytes(),
            };
            assert_eq!(version.is_current(), is_current, "{version:?}");
            for (older, expected) in [(false, error), (true, error_of_older)] {
                let checked = version.check(Path::new("feed.redb"), older);
                let message = checked.map_or_else(|error| error.to_string(), |()| String::new());
                let found = message.is_empty();
                assert_eq!(found, expected.is_empty(), "{older}: {message}");
                assert!(message.contains(expected), "{older}: {message}");
            }
        }
    }
}
