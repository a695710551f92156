//! The record of key usage: the last use of each key, and the oldest entry of each feed that it has not fetched.
//!
//! Each server writes it to its own small file next to the database, `NAME.usage-RANDOM`. The file is locked while the
//! server runs, and replaced atomically every few seconds. A starting server merges and deletes the files of dead
//! servers; `medfeed key list` merges all files. If a file cannot be written, only a
//! warning is logged.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use http::Method;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::api::observe::{Answered, FeedUse};
use crate::api::{Code, SnapshotSource};
use crate::disk::folder_of;
use crate::model::{Dataset, KeyRecord, Timestamp, Witness, now};
use crate::serve::watching::background::BackgroundTask;
use crate::serve::watching::watcher::Watcher;
use crate::store::file::draft::Draft;
use crate::store::file::metadata::resolve;
use crate::store::{CommitPoint, Snapshot, StoredCommit};
use crate::view::View;

const WRITE_EVERY: Duration = Duration::from_secs(3);
/// The commits in which a restore is looked for.
const MAX_COMMITS: usize = 10_000;

/// The usage of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUse {
    /// The time of its last use.
    pub last_used_at: Option<Timestamp>,
    /// The last request of the key that was refused, also for a key that is not usable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<Refusal>,
    /// The last page of each feed.
    pub feeds: BTreeMap<Dataset, FeedSeen>,
}

/// A refused request. The later one is larger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Refusal {
    /// When it was refused.
    pub at: Timestamp,
    /// The error code.
    pub code: String,
}

/// The last page that a key fetched, in one feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedSeen {
    /// When it was fetched.
    pub at: Timestamp,
    /// The position of the sync token that it sent.
    pub position: u64,
    /// The state of the feed at that time. If a restore has removed it from the history, the lag counts from the restore.
    pub witness: Witness,
    /// The time of the oldest entry that it has not fetched; `None` if it has all of that state, and no later entry is
    /// noted.
    pub behind_since: Option<Timestamp>,
}

impl FeedSeen {
    /// The lag of a key in seconds: the age of the oldest entry that it has not fetched; 0 if it has all. `None` if the
    /// history of its token was replaced without a restore, or its license does not contain the dataset.
    pub fn lag_s(
        &self,
        dataset: Dataset,
        key: &KeyRecord,
        newest: &Snapshot,
        now: Timestamp,
    ) -> Option<u64> {
        let view = View::open(newest, newest.find_license(key.license)?, dataset).ok()?;
        let since = if self.find_in_history(newest) {
            let newest_seq = view.witness().ok()?.seq;
            let newest_at = view.commit_of(newest_seq).ok()?.time;
            // An entry that is not noted yet: its commit is new.
            let new = (newest_seq > self.witness.seq).then_some(newest_at);
            self.behind_since.or(new)
        } else {
            let restored_at = self.find_restore(newest)?;
            Some(self.behind_since.unwrap_or(restored_at))
        };
        Some(since.map_or(0, |since| {
            u64::try_from(now.unix_s() - since.unix_s()).unwrap_or(0)
        }))
    }

    /// Searches the history for the witness that a key has. Returns false if it is not there.
    fn find_in_history(&self, newest: &Snapshot) -> bool {
        let Witness { seq, lineage } = self.witness;
        newest.holds(seq, &lineage).unwrap_or(false)
    }

    /// The time of the first restore since the key asked.
    fn find_restore(&self, newest: &Snapshot) -> Option<Timestamp> {
        let before = newest.seq_before(self.at).ok()?;
        let mut newest_first = newest.list_commits(before, MAX_COMMITS).ok()?.into_iter();
        Some(newest_first.rfind(StoredCommit::is_restore)?.time)
    }

    /// The time of the first entry after the state that a key has, or of the restore that ended its token.
    fn find_behind_since(
        &self,
        dataset: Dataset,
        key: &KeyRecord,
        newest: &Snapshot,
    ) -> Option<Timestamp> {
        let view = View::open(newest, newest.find_license(key.license)?, dataset).ok()?;
        if !self.find_in_history(newest) {
            return self.find_restore(newest);
        }
        let entry = view
            .feed_after(self.witness.seq, 1)
            .ok()?
            .into_iter()
            .next()?;
        Some(view.commit_of(entry.seq).ok()?.time)
    }
}

impl KeyUse {
    fn merge(&mut self, other: &KeyUse) {
        self.last_used_at = self.last_used_at.max(other.last_used_at);
        self.last_refusal = self.last_refusal.take().max(other.last_refusal.clone());
        for (dataset, seen) in &other.feeds {
            let newest = self.feeds.entry(*dataset).or_insert(*seen);
            // Times are whole seconds: of two tokens in one second, the later one is usually of the later state, or of
            // the larger position. If both notes have the same token, the one with `behind_since` is later.
            let order =
                |seen: &FeedSeen| (seen.at, seen.witness.seq, seen.position, seen.behind_since);
            if order(seen) > order(newest) {
                *newest = *seen;
            }
        }
    }
}

/// The usage of keys, by key id.
pub type Uses = HashMap<String, KeyUse>;

/// Reads the usage recorded by all servers of a database, including dead ones.
pub fn read_all(database: &Path) -> Uses {
    let mut all = Uses::new();
    for path in find_files(database) {
        merge_into(&mut all, &read(&path));
    }
    all
}

fn merge_into(all: &mut Uses, more: &Uses) {
    for (key, used) in more {
        all.entry(key.clone()).or_default().merge(used);
    }
}

/// Reads a file. A missing or incomplete file counts as empty.
fn read(path: &Path) -> Uses {
    let text = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// The common prefix of the usage files of a database.
fn prefix(database: &Path) -> String {
    format!(
        "{}.usage-",
        database.file_name().unwrap_or_default().to_string_lossy()
    )
}

fn find_files(database: &Path) -> Vec<PathBuf> {
    let prefix = prefix(database);
    let Ok(entries) = std::fs::read_dir(folder_of(database)) else {
        return Vec::new();
    };
    let named = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let id = name.strip_prefix(&prefix);
        id.is_some_and(|id| uuid::Uuid::try_parse(id).is_ok())
    });
    // Only regular files: opening a pipe may block forever.
    let files = named.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.map(|entry| entry.path()).collect()
}

/// Replaces a file that only the current user can read. Like every draft, the new file is locked before the rename. It
/// stays locked while the returned handle is open.
fn write_file(path: &Path, uses: &Uses) -> io::Result<File> {
    let draft = Draft::create_for(path)?;
    draft.file().write_all(&serde_json::to_vec(uses)?)?;
    draft.persist_unsynced()
}

/// The record of a running server.
pub struct Usage {
    /// The path as given. Its links may be changed while the server runs, so they are followed for each access.
    database: PathBuf,
    /// The end of the file's name.
    id: String,
    recorded: Mutex<RecordedUses>,
    /// Locked while the file is written, which may block. Responses never lock it.
    files: Mutex<UsageFiles>,
}

/// The usage in memory. It is locked only briefly.
#[derive(Default)]
struct RecordedUses {
    uses: Uses,
    dirty: bool,
    /// The last state whose entries are noted.
    noted: Option<CommitPoint>,
}

#[derive(Default)]
struct UsageFiles {
    /// This server's file, open to keep it locked.
    own: Option<File>,
    /// Files of dead servers, locked until their content is in the own file.
    merged: Vec<(PathBuf, File)>,
    failing: bool,
}

impl Usage {
    /// Opens the record, and merges the files of dead servers.
    pub fn open(database: &Path) -> Usage {
        let mut recorded = RecordedUses::default();
        let mut files = UsageFiles::default();
        for path in find_files(&resolve(database)) {
            let Ok(file) = File::open(&path) else {
                continue;
            };
            match file.try_lock() {
                Ok(()) => {
                    merge_into(&mut recorded.uses, &read(&path));
                    recorded.dirty = true;
                    files.merged.push((path, file));
                }
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
            }
        }
        let id = uuid::Uuid::now_v7().simple().to_string();
        Usage {
            database: database.to_owned(),
            id,
            recorded: Mutex::new(recorded),
            files: Mutex::new(files),
        }
    }

    /// The file of this server.
    fn path(&self) -> PathBuf {
        let database = resolve(&self.database);
        folder_of(&database).join(format!("{}{}", prefix(&database), self.id))
    }

    /// The usage recorded by all servers, including the unwritten usage of this one.
    pub fn all(&self) -> Uses {
        let mut all = read_all(&resolve(&self.database));
        merge_into(&mut all, &self.recorded.lock().uses);
        all
    }

    /// Records an answered request.
    pub fn answered(&self, answered: &Answered<'_>) {
        let Some(key) = answered.sent_key else {
            return;
        };
        // A missing record is no refusal.
        let refusal = answered
            .problem
            .filter(|_| matches!(answered.status, 400..=403 | 405..=499));
        // A request from a refused address does not count as use of its key.
        let is_use = answered.key.is_some() && refusal != Some(Code::IpNotAllowed);
        if refusal.is_none() && !is_use {
            return;
        }
        let at = now();
        let mut recorded = self.recorded.lock();
        recorded.dirty = true;
        let used = recorded.uses.entry(key.id.clone()).or_default();
        if let Some(code) = refusal {
            let code = code.as_str().to_owned();
            used.last_refusal = Some(Refusal { at, code });
        }
        if is_use {
            used.last_used_at = Some(at);
        }
        // A response to HEAD has no entries.
        if let Some(feed) = answered.feed.filter(|_| *answered.method != Method::HEAD) {
            let FeedUse {
                dataset,
                position,
                witness,
                behind_since,
            } = feed;
            used.feeds.insert(
                dataset,
                FeedSeen {
                    at,
                    position,
                    witness,
                    behind_since,
                },
            );
        }
    }

    /// Notes the first new entry of each key that had all, once for each snapshot.
    fn note_entries(&self, newest: &Snapshot) {
        if self.recorded.lock().noted.replace(newest.commit()) == Some(newest.commit()) {
            return;
        }
        for key in newest.list_keys() {
            let feeds = self
                .recorded
                .lock()
                .uses
                .get(&key.id)
                .map(|used| used.feeds.clone())
                .unwrap_or_default();
            for (dataset, seen) in feeds
                .into_iter()
                .filter(|(_, seen)| seen.behind_since.is_none())
            {
                // It reads the disk, so nothing is locked meanwhile.
                let behind_since = seen.find_behind_since(dataset, key, newest);
                let recorded = &mut *self.recorded.lock();
                let noted = recorded
                    .uses
                    .get_mut(&key.id)
                    .and_then(|used| used.feeds.get_mut(&dataset));
                if let Some(noted) = noted.filter(|noted| **noted == seen && behind_since.is_some())
                {
                    noted.behind_since = behind_since;
                    recorded.dirty = true;
                }
            }
        }
    }

    /// Starts the thread that writes the file every few seconds, and once more when the returned handle is dropped.
    pub fn start(self: &Arc<Self>, watcher: &Arc<Watcher>) -> io::Result<BackgroundTask> {
        let usage = Arc::clone(self);
        let watcher = Arc::clone(watcher);
        BackgroundTask::spawn("usage", move |stopped| {
            loop {
                let stopping = stopped.recv_timeout(WRITE_EVERY) != Err(RecvTimeoutError::Timeout);
                usage.note_entries(&watcher.newest());
                usage.write(|uses| write_file(&usage.path(), uses));
                if stopping {
                    return;
                }
            }
        })
    }

    /// Writes the record with `replace` if it has changed.
    fn write(&self, replace: impl FnOnce(&Uses) -> io::Result<File>) {
        let uses = {
            let mut recorded = self.recorded.lock();
            if !std::mem::take(&mut recorded.dirty) {
                return;
            }
            recorded.uses.clone()
        };
        let mut files = self.files.lock();
        match replace(&uses) {
            Ok(file) => {
                files.own = Some(file);
                files.failing = false;
                for (path, _) in files.merged.drain(..) {
                    // If this fails, the next server merges it again.
                    let _ = std::fs::remove_file(path);
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut files.failing, true) {
                    tracing::warn!(%error, "the usage of keys cannot be written next to the database, so `medfeed key list` does not know it; make the folder writable");
                }
                self.recorded.lock().dirty = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn answered(key: &KeyRecord) -> Answered<'_> {
        Answered {
            request_id: "1",
            method: &Method::GET,
            route: "/v1/conferences",
            status: 200,
            problem: None,
            key: Some(key),
            sent_key: Some(key),
            address: [127, 0, 0, 1].into(),
            bytes: 0,
            duration: Duration::ZERO,
            feed: None,
        }
    }

    fn key(id: &str) -> KeyRecord {
        KeyRecord {
            id: id.to_owned(),
            label: None,
            license: crate::model::LicenseId(1),
            license_name: "all".to_owned(),
            created_at: now(),
            expires_at: None,
            revoked_at: None,
            replaced_by: None,
            allowed_ips: Vec::new(),
        }
    }

    #[test]
    fn uses_whose_write_failed_are_written_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Usage::open(&folder.path().join("feed.redb"));
        usage.answered(&answered(&key("one")));
        for _ in 0..2 {
            usage.write(|_| Err(io::ErrorKind::StorageFull.into()));
        }
        assert!(read(&usage.path()).is_empty());
        // No further request follows.
        usage.write(|uses| write_file(&usage.path(), uses));
        assert_eq!(read(&usage.path()).into_keys().collect::<Vec<_>>(), ["one"]);
        usage.write(|_| panic!("nothing is left to write"));
    }

    #[test]
    fn a_write_that_waits_for_the_disk_keeps_no_answer_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Arc::new(Usage::open(&folder.path().join("feed.redb")));
        let keys = [key("before"), key("meanwhile")];
        usage.answered(&answered(&keys[0]));
        let ((begun, wait_begun), (disk, wait_disk), (noted, wait_noted)) =
            (channel(), channel::<()>(), channel());
        std::thread::scope(|scope| {
            let writer = Arc::clone(&usage);
            scope.spawn(move || {
                writer.write(|uses| {
                    begun.send(uses.len()).unwrap();
                    // Blocks until the test drops the sender.
                    let _ = wait_disk.recv();
                    write_file(&writer.path(), uses)
                });
            });
            assert_eq!(wait_begun.recv(), Ok(1), "one key to write");
            let (usage, meanwhile) = (&usage, &keys[1]);
            scope.spawn(move || {
                usage.answered(&answered(meanwhile));
                noted.send(()).unwrap();
            });
            let answered = wait_noted.recv_timeout(Duration::from_secs(20));
            drop(disk);
            assert_eq!(answered, Ok(()), "an answer waited for the disk");
        });
        usage.write(|uses| write_file(&usage.path(), uses));
        let count = read(&usage.path()).len();
        assert_eq!(count, 2, "what was noted meanwhile is written next");
    }

    #[test]
    fn the_latest_use_counts_whatever_the_order() {
        let at = |seconds| Timestamp::from_unix_s(1_800_000_000 + seconds);
        let seen_in = |seq, at: Timestamp, position, behind_s: i64| FeedSeen {
            at,
            position,
            witness: Witness {
                seq,
                lineage: [1; 16],
            },
            behind_since: (behind_s > 0).then(|| at.plus_s(-behind_s)),
        };
        let seen = |at, position, behind_s| seen_in(9, at, position, behind_s);
        let of = |used: Option<i64>, feeds: &[(Dataset, FeedSeen)]| KeyUse {
            last_used_at: used.map(at),
            last_refusal: None,
            feeds: feeds.iter().copied().collect(),
        };
        let (conferences, journals) = (Dataset::Conferences, Dataset::Journals);
        // A later token may be of an earlier position: a caller that started again.
        let one = of(
            Some(50),
            &[
                (conferences, seen(at(50), 7, 3)),
                (journals, seen(at(9), 9, 0)),
            ],
        );
        let other = of(
            Some(40),
            &[
                (conferences, seen(at(40), 8, 0)),
                (journals, seen(at(10), 2, 60)),
            ],
        );
        let both = of(
            Some(50),
            &[
                (conferences, seen(at(50), 7, 3)),
                (journals, seen(at(10), 2, 60)),
            ],
        );
        let alone = of(Some(60), &[(journals, seen(at(3), 1, 1))]);
        let cases = cases![
            &one, &other, &both;
            &other, &one, &both;
            &one, &KeyUse::default(), &one;
            &KeyUse::default(), &one, &one;
            &both, &both, &both;
            // The same token was sent again in the same second, to another server that had a later state.
            &of(None, &[(journals, seen(at(9), 9, 5))]), &of(None, &[(journals, seen_in(12, at(9), 9, 0))]),
                &of(None, &[(journals, seen_in(12, at(9), 9, 0))]);
            // An entry after the same token was noted later.
            &of(None, &[(journals, seen(at(9), 9, 0))]), &of(None, &[(journals, seen(at(9), 9, 5))]),
                &of(None, &[(journals, seen(at(9), 9, 5))]);
            &of(None, &[(conferences, seen(at(40), 8, 0))]), &alone,
                &of(Some(60), &[(conferences, seen(at(40), 8, 0)), (journals, seen(at(3), 1, 1))]);
        ];
        for (first, second, expected) in cases {
            let mut merged = first.clone();
            merged.merge(second);
            assert_eq!(merged, *expected, "{first:?} and {second:?}");
        }
        let mut all = Uses::from([
            ("a".to_owned(), one.clone()),
            ("b".to_owned(), alone.clone()),
        ]);
        merge_into(
            &mut all,
            &Uses::from([
                ("a".to_owned(), other.clone()),
                ("c".to_owned(), other.clone()),
            ]),
        );
        assert_eq!(
            all,
            Uses::from([
                ("a".to_owned(), both),
                ("b".to_owned(), alone),
                ("c".to_owned(), other)
            ])
        );
    }

    #[test]
    fn the_files_of_a_database_are_those_that_begin_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| uuid::Uuid::now_v7().simple().to_string());
        let own = format!("feed.redb.usage-{one}");
        let foreign = format!("a-feed.redb.usage-{one}");
        // Another file of an operator is never removed.
        for name in [
            &own,
            &foreign,
            "feed.redb.usage-2026-11.txt",
            "feed.redb.usage-",
            "feed.redb.usage",
            "feed.redb",
        ] {
            std::fs::write(folder.path().join(name), "{}").unwrap();
        }
        std::fs::create_dir(folder.path().join(format!("feed.redb.usage-{other}"))).unwrap();
        let expected = [folder.path().join(own)];
        assert_eq!(find_files(&folder.path().join("feed.redb")), expected);
        assert!(find_files(&folder.path().join("none.redb")).is_empty());
    }

    #[test]
    fn of_two_records_the_later_one_counts() {
        let witness = Witness {
            seq: 9,
            lineage: [1; 16],
        };
        let seen = |at, position| FeedSeen {
            at: Timestamp::from_unix_s(at),
            position,
            witness,
            behind_since: None,
        };
        let used = |at: Option<i64>, feeds: &[(Dataset, FeedSeen)]| KeyUse {
            last_used_at: at.map(Timestamp::from_unix_s),
            last_refusal: None,
            feeds: feeds.iter().copied().collect(),
        };
        let (one, two) = (Dataset::Conferences, Dataset::Journals);
        let cases = cases![
            used(None, &[]), used(Some(1), &[]), used(Some(1), &[]);
            used(Some(2), &[]), used(Some(1), &[]), used(Some(2), &[]);
            used(Some(2), &[]), used(None, &[]), used(Some(2), &[]);
            // A later record may have a lower position: a client that loads again.
            used(None, &[(one, seen(5, 9))]), used(None, &[(one, seen(6, 3))]), used(None, &[(one, seen(6, 3))]);
            used(None, &[(one, seen(6, 3))]), used(None, &[(one, seen(5, 9))]), used(None, &[(one, seen(6, 3))]);
            used(None, &[(one, seen(5, 1))]), used(None, &[(one, seen(5, 2))]), used(None, &[(one, seen(5, 2))]);
            used(None, &[(one, seen(5, 2))]), used(None, &[(one, seen(5, 1))]), used(None, &[(one, seen(5, 2))]);
            used(Some(9), &[(one, seen(9, 1))]), used(Some(3), &[(two, seen(3, 2))]),
                used(Some(9), &[(one, seen(9, 1)), (two, seen(3, 2))]);
        ];
        for (mut before, other, expected) in cases {
            before.merge(&other);
            assert_eq!(before, expected);
        }
        let mut all = Uses::from([("a".to_owned(), used(Some(1), &[]))]);
        merge_into(
            &mut all,
            &Uses::from([
                ("b".to_owned(), used(Some(2), &[])),
                ("a".to_owned(), used(Some(3), &[])),
            ]),
        );
        assert_eq!(
            all,
            Uses::from([
                ("a".to_owned(), used(Some(3), &[])),
                ("b".to_owned(), used(Some(2), &[]))
            ])
        );
    }
}
