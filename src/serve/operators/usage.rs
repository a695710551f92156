//! The record of key usage: when each key was last used, and how far its last token was behind the feed.
//!
//! Each server writes it to a small file of its own beside the database, `NAME.usage-RANDOM`, locked while the server lives
//! and replaced atomically every few seconds. A starting server merges and deletes those of dead ones; `medfeed key list`
//! merges all. A publisher lays what replicas report beside them in the same way. It is a convenience: if it cannot be written, only a warning is logged.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::observe::Answered;
use crate::model::time::now;
use crate::model::{Dataset, Timestamp};
use crate::serve::following::background::BackgroundTasks;
use crate::store::file::draft::Draft;
use crate::store::file::links::folder_of;

/// The time between two writes of the file, if something changed.
const WRITE_EVERY: Duration = Duration::from_secs(3);

/// The use of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUse {
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
    /// Its last token for each feed.
    pub feeds: BTreeMap<Dataset, FeedSeen>,
}

/// The last sync token that a key sent to a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedSeen {
    /// The time at which it was sent.
    pub at: Timestamp,
    /// Its position.
    pub position: u64,
    /// The seconds by which the feed's newest entry was later.
    pub behind_s: u64,
}

impl KeyUse {
    fn merge(&mut self, other: &KeyUse) {
        self.last_used_at = self.last_used_at.max(other.last_used_at);
        for (dataset, seen) in &other.feeds {
            let newest = self.feeds.entry(*dataset).or_insert(*seen);
            if seen.at > newest.at {
                *newest = *seen;
            }
        }
    }
}

/// The use of keys, by their ids.
pub type Uses = HashMap<String, KeyUse>;

/// Reads the usage recorded by all servers of a database, dead ones included.
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

/// Reads a file. One that is missing or incomplete counts as empty.
fn read(path: &Path) -> Uses {
    let text = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// How the names of the files of a database begin.
pub(in crate::serve) fn prefix(database: &Path) -> String {
    format!("{}.usage-", database.file_name().unwrap_or_default().to_string_lossy())
}

/// The files of a database.
pub(in crate::serve) fn find_files(database: &Path) -> Vec<PathBuf> {
    let prefix = prefix(database);
    let Ok(entries) = std::fs::read_dir(folder_of(database)) else { return Vec::new() };
    let named = entries.filter_map(Result::ok).filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    // Opening a pipe may block for ever.
    let files = named.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.map(|entry| entry.path()).collect()
}

/// Whether a living server holds the lock of its file.
fn is_held(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Replaces a file, readable by its owner only: that of another file, if one is given. The new one is locked before it takes the
/// name, so that the present one is always locked, while the returned file is open.
pub(in crate::serve) fn write_file(path: &Path, uses: &Uses, owned_like: Option<&Path>) -> io::Result<File> {
    let draft = Draft::create_for(path)?;
    if let Some(other) = owned_like {
        draft.copy_owner_from(other)?;
    }
    draft.file().try_lock().map_err(io::Error::from)?;
    draft.file().write_all(&serde_json::to_vec(uses)?)?;
    draft.persist_unsynced(path)
}

/// When the server of a file started, which the file's name tells.
fn started_at(database: &Path, path: &Path) -> Option<Timestamp> {
    let name = path.file_name()?.to_str()?;
    let id: uuid::Uuid = name.strip_prefix(&prefix(database))?.parse().ok()?;
    let (seconds, _) = id.get_timestamp()?.to_unix();
    Some(Timestamp::from_unix_s(i64::try_from(seconds).ok()?))
}

/// The record of a running server.
#[derive(Debug)]
pub struct Usage {
    database: PathBuf,
    path: PathBuf,
    noted: Mutex<Noted>,
    /// Locked while the file is written, which the disk may block: answers never lock it.
    files: Mutex<Files>,
}

/// What answers note. It is locked briefly only.
#[derive(Debug, Default)]
struct Noted {
    uses: Uses,
    /// Whether it has unwritten changes.
    dirty: bool,
}

#[derive(Debug, Default)]
struct Files {
    /// The present file, open to keep it locked.
    present: Option<File>,
    /// Files of dead servers, locked until their content is in the present file.
    merged: Vec<(PathBuf, File)>,
    failing: bool,
}

impl Usage {
    /// Merges the files of dead servers.
    pub fn open(database: &Path) -> Usage {
        let (mut noted, mut files) = (Noted::default(), Files::default());
        for path in find_files(database) {
            let Ok(file) = File::open(&path) else { continue };
            match file.try_lock() {
                Ok(()) => {
                    merge_into(&mut noted.uses, &read(&path));
                    noted.dirty = true;
                    files.merged.push((path, file));
                }
                // The file of a living server.
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
            }
        }
        let name = format!("{}{}", prefix(database), uuid::Uuid::now_v7().simple());
        // Written soon even if nobody asks: the other servers are to know of this one.
        noted.dirty = true;
        let path = folder_of(database).join(name);
        Usage { database: database.to_owned(), path, noted: Mutex::new(noted), files: Mutex::new(files) }
    }

    /// The usage known to all servers, this one's latest included.
    pub fn all(&self) -> Uses {
        let mut all = read_all(&self.database);
        merge_into(&mut all, &self.noted().uses);
        all
    }

    /// When the living servers of the database started, this one among them, the oldest first.
    pub fn servers(&self) -> Vec<Timestamp> {
        let others = find_files(&self.database).into_iter().filter(|path| *path != self.path && is_held(path));
        let mut started: Vec<Timestamp> =
            others.chain([self.path.clone()]).filter_map(|path| started_at(&self.database, &path)).collect();
        started.sort();
        started
    }

    /// Notes an answered request.
    pub fn answered(&self, answered: &Answered<'_>) {
        let Some(key) = answered.key else { return };
        let at = now();
        let mut noted = self.noted();
        noted.dirty = true;
        let used = match noted.uses.get_mut(&key.id) {
            Some(used) => used,
            None => noted.uses.entry(key.id.clone()).or_default(),
        };
        used.last_used_at = Some(at);
        if let Some(feed) = answered.feed {
            let seen = FeedSeen { at, position: feed.position, behind_s: feed.behind_s };
            used.feeds.insert(feed.dataset, seen);
        }
    }

    /// Starts the thread that writes the file every few seconds, and once more when the returned handle is dropped.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(self: &Arc<Self>) -> io::Result<BackgroundTasks> {
        let usage = Arc::clone(self);
        BackgroundTasks::spawn("usage", move |stopped| {
            loop {
                let stopping = stopped.recv_timeout(WRITE_EVERY) != Err(RecvTimeoutError::Timeout);
                usage.write(|uses| write_file(&usage.path, uses, None));
                if stopping {
                    return;
                }
            }
        })
    }

    /// Writes the record by `replace`, if it changed since the last time.
    fn write(&self, replace: impl FnOnce(&Uses) -> io::Result<File>) {
        let uses = {
            let mut noted = self.noted();
            if !std::mem::take(&mut noted.dirty) {
                return;
            }
            noted.uses.clone()
        };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        match replace(&uses) {
            Ok(file) => {
                files.present = Some(file);
                files.failing = false;
                for (path, _) in files.merged.drain(..) {
                    // If it stays, the next server merges it again.
                    let _ = std::fs::remove_file(path);
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut files.failing, true) {
                    tracing::warn!(%error, "the use of keys cannot be recorded beside the database");
                }
                self.noted().dirty = true;
            }
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use http::Method;

    use super::*;
    use crate::model::KeyRecord;

    fn answered(key: &KeyRecord) -> Answered<'_> {
        Answered {
            request_id: "1",
            method: &Method::GET,
            route: "/v1/conferences",
            status: 200,
            problem: None,
            key: Some(key),
            address: [127, 0, 0, 1].into(),
            bytes: 0,
            duration: Duration::ZERO,
            feed: None,
        }
    }

    #[test]
    fn a_write_that_waits_for_the_disk_keeps_no_answer_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Arc::new(Usage::open(&folder.path().join("feed.redb")));
        let key = |id: &str| KeyRecord {
            id: id.to_owned(),
            label: None,
            license: crate::model::LicenseId(1),
            license_name: "all".to_owned(),
            created_at: now(),
            expires_at: None,
            revoked_at: None,
            replaced_by: None,
            allowed_ips: Vec::new(),
        };
        let keys = [key("before"), key("meanwhile")];
        usage.answered(&answered(&keys[0]));
        let ((begun, wait_begun), (disk, wait_disk), (noted, wait_noted)) = (channel(), channel::<()>(), channel());
        std::thread::scope(|scope| {
            let writer = Arc::clone(&usage);
            scope.spawn(move || {
                writer.write(|uses| {
                    begun.send(uses.len()).unwrap();
                    // The disk works again when the test lets it.
                    let _ = wait_disk.recv();
                    write_file(&writer.path, uses, None)
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
        usage.write(|uses| write_file(&usage.path, uses, None));
        assert_eq!(read(&usage.path).len(), 2, "what was noted meanwhile is written next");
    }
}
