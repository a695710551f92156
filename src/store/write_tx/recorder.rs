//! What the tx takes down: the digest of all rows, moved by each, and the changes as bytes while they are few.

use crate::model::RowDigest;
use crate::store::format::changes::ChangeEncoder;
use crate::store::format::tables::is_local;

/// Takes down what is written to the tables that replicas have too.
#[derive(Debug)]
pub(in crate::store) struct Recorder {
    digest: RowDigest,
    /// `None` once there are too many.
    changes: Option<ChangeEncoder>,
    max_bytes: usize,
}

impl Recorder {
    /// Begins with the digest of the rows that are there; takes down up to `max_bytes` of changes, beyond which they are given
    /// up and the digest alone is moved.
    pub fn new(digest: RowDigest, max_bytes: usize) -> Recorder {
        Recorder { digest, changes: Some(ChangeEncoder::default()), max_bytes }
    }

    /// Moves the digest and takes down nothing else.
    pub fn of_digest(digest: RowDigest) -> Recorder {
        Recorder { digest, changes: None, max_bytes: 0 }
    }

    /// The digest of the rows that are there now.
    pub fn digest(&self) -> RowDigest {
        self.digest
    }

    /// The encoded changes; `None` if they were given up, or not asked for.
    pub fn into_changes(self) -> Option<Vec<u8>> {
        self.changes.map(ChangeEncoder::finish)
    }

    /// A row was inserted, or took another's place.
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

    /// A row was removed.
    pub(super) fn remove(&mut self, table: u8, key: &[u8], old: &[u8]) {
        if is_local(table, key) {
            return;
        }
        self.digest.subtract(table, key, old);
        self.record(|changes| changes.remove(table, key));
    }

    /// A row is removed by the removal of a range.
    pub(super) fn removed_in_range(&mut self, table: u8, key: &[u8], old: &[u8]) {
        if !is_local(table, key) {
            self.digest.subtract(table, key, old);
        }
    }

    /// All rows between two keys were removed.
    pub(super) fn remove_range(&mut self, table: u8, first: &[u8], last: &[u8]) {
        self.record(|changes| changes.remove_range(table, first, last));
    }

    /// A row was appended to a run.
    pub(super) fn run_row(&mut self, table: u8, key: &[u8], value: &[u8]) {
        self.digest.add(table, key, value);
        self.record(|changes| changes.run_row(table, key, value));
    }

    /// A run ended.
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
