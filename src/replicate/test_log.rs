//! A log with made-up content in a folder, for tests. Slot N ends with seq 10 N.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use super::entry::{self, EntryHeader};
use super::frame::Hash;
use super::heartbeat::Heartbeat;
use super::layout;
use super::protocol::LastEntry;
use super::publisher::{PublishError, PublishSettings, Publisher};
use super::state::{Manifest, PartRef, encode_part};
use crate::bucket::Bucket;
use crate::model::{CommitInfo, DatabaseId, Head, RowDigest, Scope, Timestamp, now};
use crate::store::Writer;
use crate::store::replication::SCHEMA;
use crate::store::restore::Restoration;
use crate::store::write::licensing::KeySettings;

pub const ID: DatabaseId = DatabaseId([3; 16]);
pub const OTHER_ID: DatabaseId = DatabaseId([4; 16]);

pub struct TestLog {
    pub folder: tempfile::TempDir,
    pub id: DatabaseId,
}

/// The time in heartbeats and entries.
pub fn time() -> Timestamp {
    Timestamp::from_unix_s(1_800_000_000)
}

pub fn head(slot: u64) -> Head {
    Head {
        seq: slot * 10,
        lineage: [u8::try_from(slot).unwrap(); 16],
    }
}

pub fn open(folder: &std::path::Path) -> Bucket {
    Bucket::open_with(
        &format!("file://{}", folder.display()).parse().unwrap(),
        None,
        &[],
    )
    .unwrap()
}

impl TestLog {
    pub fn new(id: DatabaseId) -> TestLog {
        TestLog {
            folder: tempfile::tempdir().unwrap(),
            id,
        }
    }

    /// A log whose first entry is a state with a manifest, followed by commits up to slot `last`, with a heartbeat.
    /// Returns the hash of each slot from 1.
    pub fn up_to(last: u64) -> (TestLog, Vec<Hash>) {
        let log = TestLog::new(ID);
        let mut hashes = vec![log.put_state(1, Hash::default())];
        log.put_manifest(1, hashes[0], Vec::new());
        for slot in 2..=last {
            hashes.push(log.put(slot, hashes[hashes.len() - 1], "origin"));
        }
        log.put_alive(last, hashes[hashes.len() - 1], last * 10);
        (log, hashes)
    }

    pub fn bucket(&self) -> Bucket {
        open(self.folder.path())
    }

    fn header(&self, slot: u64, parent: Hash, who: &str) -> EntryHeader {
        let Head { seq, lineage } = head(slot);
        EntryHeader {
            id: self.id,
            slot,
            parent,
            schema: SCHEMA,
            who: who.to_owned(),
            at: time(),
            commits: Vec::new(),
            seq,
            lineage,
            digest: RowDigest([slot; 4]),
        }
    }

    fn put_entry(&self, header: &EntryHeader, changes: &[&[u8]]) -> Hash {
        let (bytes, hash) = entry::encode(header, changes).unwrap();
        self.bucket()
            .put(&layout::log(header.slot), &bytes)
            .unwrap();
        hash
    }

    /// Puts an entry with one commit. `who` distinguishes entries of one slot.
    pub fn put(&self, slot: u64, parent: Hash, who: &str) -> Hash {
        let (base, Head { seq, lineage }) = (head(slot - 1), head(slot));
        let digest = RowDigest([slot; 4]);
        let commit = CommitInfo {
            first_seq: base.seq + 1,
            last_seq: seq,
            lineage,
            time: time(),
            base,
            digest,
            bytes: 3,
        };
        self.put_entry(
            &EntryHeader {
                commits: vec![commit],
                ..self.header(slot, parent, who)
            },
            &[b"abc"],
        )
    }

    /// Puts an entry that is a whole state.
    pub fn put_state(&self, slot: u64, parent: Hash) -> Hash {
        self.put_entry(&self.header(slot, parent, "origin"), &[])
    }

    pub fn put_manifest(&self, slot: u64, entry_hash: Hash, parts: Vec<PartRef>) {
        let Head { seq, lineage } = head(slot);
        let (id, digest) = (self.id, RowDigest([slot; 4]));
        let manifest = Manifest {
            id,
            slot,
            entry_hash,
            schema: SCHEMA,
            seq,
            lineage,
            digest,
            at: time(),
            parts,
        };
        self.bucket()
            .put(&layout::state(slot), &manifest.encode().unwrap())
            .unwrap();
    }

    /// Puts a part; returns the reference to it.
    pub fn put_part(&self, slot: u64, random: &str, index: usize) -> PartRef {
        let (bytes, part) = encode_part(layout::part(slot, random, index), b"rows").unwrap();
        self.bucket().put(&part.name, &bytes).unwrap();
        part
    }

    pub fn put_alive(&self, slot: u64, hash: Hash, seq: u64) {
        let alive = Heartbeat {
            id: self.id,
            slot,
            hash,
            seq,
            at: time(),
            who: "origin".to_owned(),
        };
        self.bucket()
            .put(layout::ALIVE, &alive.encode().unwrap())
            .unwrap();
    }

    /// Puts copies of all objects, except reports, into another log.
    pub fn copy_to(&self, other: &TestLog) {
        let (from, to) = (self.bucket(), other.bucket());
        let folders = [layout::LOG, layout::STATES, layout::PARTS];
        let listed = folders
            .into_iter()
            .flat_map(|folder| from.list(folder, None).unwrap());
        for name in listed
            .map(|object| object.name)
            .chain([layout::ALIVE.to_owned()])
        {
            to.put(&name, &from.get(&name).unwrap().unwrap().bytes)
                .unwrap();
        }
    }

    pub fn remove(&self, name: &str) {
        self.bucket().delete(name).unwrap();
    }

    /// Sets when the store says that an object was written.
    pub fn date(&self, name: &str, at: Timestamp) {
        let then = UNIX_EPOCH + Duration::from_secs(u64::try_from(at.unix_s()).unwrap());
        File::options()
            .write(true)
            .open(self.folder.path().join(name))
            .unwrap()
            .set_modified(then)
            .unwrap();
    }

    /// Removes all objects. The folder stays.
    pub fn empty(&self) {
        for found in fs::read_dir(self.folder.path())
            .unwrap()
            .map(Result::unwrap)
        {
            if found.path().is_dir() {
                fs::remove_dir_all(found.path()).unwrap();
            } else {
                fs::remove_file(found.path()).unwrap();
            }
        }
    }
}

/// A database with one license, in a folder.
pub struct TestOrigin {
    pub folder: tempfile::TempDir,
}

impl TestOrigin {
    pub fn new() -> TestOrigin {
        let origin = TestOrigin {
            folder: tempfile::tempdir().unwrap(),
        };
        let writer = Writer::open_or_create(&origin.path(), Duration::ZERO).unwrap();
        let mut edit = writer.begin().unwrap();
        edit.set_license("all", Scope::nothing(), None).unwrap();
        edit.commit().unwrap();
        origin
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn path(&self) -> PathBuf {
        self.at("origin.redb")
    }

    /// A copy of the database, without the files next to it.
    pub fn copy(&self) -> TestOrigin {
        let copy = TestOrigin {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::copy(self.path(), copy.path()).unwrap();
        copy
    }

    pub fn commit(&self) {
        self.commit_at(now());
    }

    pub fn commit_at(&self, at: Timestamp) {
        let writer = Writer::open(&self.path(), Duration::ZERO).unwrap();
        let mut edit = writer.begin_at(at).unwrap();
        edit.create_key("all", KeySettings::default()).unwrap();
        edit.commit().unwrap();
    }

    pub fn restore(&self, backup: &TestOrigin) {
        Restoration::prepare(&self.path(), &backup.path(), Duration::ZERO, None)
            .unwrap()
            .finish()
            .unwrap();
    }

    pub fn start(
        &self,
        log: &TestLog,
        settings: PublishSettings,
    ) -> Result<Publisher, PublishError> {
        let bucket = Arc::new(log.bucket());
        Publisher::start(&self.path(), bucket, settings, Arc::default())
    }

    /// Publishes, and returns the end of the log and the number of new entries.
    pub fn publish_counted(
        &self,
        log: &TestLog,
        settings: PublishSettings,
    ) -> Result<(LastEntry, u64), PublishError> {
        let progress = self.start(log, settings)?.run(|| ())?;
        Ok((progress.log_end.unwrap().1, progress.entries))
    }

    pub fn publish(
        &self,
        log: &TestLog,
        settings: PublishSettings,
    ) -> Result<LastEntry, PublishError> {
        self.publish_counted(log, settings).map(|(end, _)| end)
    }

    /// Publishes a further commit; returns its slot.
    pub fn next(&self, log: &TestLog) -> u64 {
        self.commit();
        self.publish(log, once()).unwrap().slot
    }
}

pub fn once() -> PublishSettings {
    PublishSettings::once(Duration::ZERO, false)
}

pub fn states_every(state_every: Duration) -> PublishSettings {
    PublishSettings {
        state_every,
        ..once()
    }
}
