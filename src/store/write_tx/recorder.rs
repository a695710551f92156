//! Records the writes of a transaction: always in the digest of all rows, and up to a limit as encoded changes.

use crate::model::RowDigest;
use crate::store::format::changes::ChangeEncoder;
use crate::store::format::tables::is_local;

/// Records writes to the tables that replicas have too.
#[derive(Debug)]
pub(in crate::store) struct Recorder {
    digest: RowDigest,
    /// `None` if there were too many, or they are not recorded.
    changes: Option<ChangeEncoder>,
    max_bytes: usize,
}

impl Recorder {
    /// Starts with the digest of the stored rows. Beyond `max_bytes` of changes, only the digest is updated.
    pub fn new(digest: RowDigest, max_bytes: usize) -> Recorder {
        Recorder { digest, changes: Some(ChangeEncoder::default()), max_bytes }
    }

    /// Updates the digest only.
    pub fn digest_only(digest: RowDigest) -> Recorder {
        Recorder { digest, changes: None, max_bytes: 0 }
    }

    pub fn digest(&self) -> RowDigest {
        self.digest
    }

    /// Returns the encoded changes; `None` if there were too many, or they are not recorded.
    pub fn into_changes(self) -> Option<Vec<u8>> {
        self.changes.map(ChangeEncoder::finish)
    }

    /// Records that a row was inserted, or replaced `old`.
    pub(super) fn put(&mut self, table: u8, key: &[u8], value: &[u8], old: Option<&[u8]>) {
        if is_local(table, key) {
            return;
        }
        if let Some(old) = old {
            self.digest.subtract(table, key, old);
        }
        self.digest.add(table, key, value);
        self.record(|changes| changes.put(table, key, value));
    }

    pub(super) fn remove(&mut self, table: u8, key: &[u8], old: &[u8]) {
        if is_local(table, key) {
            return;
        }
        self.digest.subtract(table, key, old);
        self.record(|changes| changes.remove(table, key));
    }

    /// Subtracts one row of a removed range from the digest.
    pub(super) fn removed_in_range(&mut self, table: u8, key: &[u8], old: &[u8]) {
        if !is_local(table, key) {
            self.digest.subtract(table, key, old);
        }
    }

    /// Records the removal of a range. Each of its rows is also passed to [`Recorder::removed_in_range`].
    pub(super) fn remove_range(&mut self, table: u8, first: &[u8], last: &[u8]) {
        self.record(|changes| changes.remove_range(table, first, last));
    }

    pub(super) fn run_row(&mut self, table: u8, key: &[u8], value: &[u8]) {
        self.digest.add(table, key, value);
        self.record(|changes| changes.run_row(table, key, value));
    }

    pub(super) fn end_run(&mut self) {
        self.record(ChangeEncoder::end_run);
    }

    fn record(&mut self, note: impl FnOnce(&mut ChangeEncoder)) {
        if let Some(changes) = &mut self.changes {
            note(changes);
            if changes.len() > self.max_bytes {
                self.changes = None;
            }
        }
    }
}
