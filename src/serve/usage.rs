//! Who is behind: when each key was last used, and how far behind the head its last token was.
//!
//! Each server keeps this in a small file of its own beside the database, `NAME.usage-RANDOM`, locked while the server
//! lives and replaced atomically every few seconds. A starting server takes in and deletes those of dead ones; `medfeed
//! key list` merges all. It is a convenience: where it cannot be written, a warning says so and nothing else happens.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::follow::Following;
use crate::api::observe::Answered;
use crate::model::time::now;
use crate::model::{Dataset, Timestamp};
use crate::store::draft::Draft;

/// How often the file is replaced while something changes.
const WRITE_EVERY: Duration = Duration::from_secs(3);

/// What is known of a key's use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUse {
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
    /// Where it stands in each feed.
    pub feeds: BTreeMap<Dataset, FeedSeen>,
}

/// The last sync token that a key sent to a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedSeen {
    /// When it was sent.
    pub at: Timestamp,
    /// Its position.
    pub position: u64,
    /// By how many seconds the feed's newest entry was later.
    pub behind_s: u64,
}

impl KeyUse {
    fn merge(&mut self, other: &KeyUse) {
        self.last_used_at = self.last_used_at.max(other.last_used_at);
        for (dataset, seen) in &other.feeds {
            let place = self.feeds.entry(*dataset).or_insert(*seen);
            if seen.at > place.at {
                *place = *seen;
            }
        }
    }
}

/// The use of keys, by their ids.
pub type Uses = HashMap<String, KeyUse>;

/// All that is known beside a database, of living and dead servers.
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

/// A file that is gone, or was never whole, tells nothing.
fn read(path: &Path) -> Uses {
    let text = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn prefix(database: &Path) -> String {
    format!("{}.usage-", database.file_name().unwrap_or_default().to_string_lossy())
}

fn folder(database: &Path) -> &Path {
    match database.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn find_files(database: &Path) -> Vec<PathBuf> {
    let prefix = prefix(database);
    let Ok(entries) = std::fs::read_dir(folder(database)) else { return Vec::new() };
    let named = entries.filter_map(Result::ok).filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    named.map(|entry| entry.path()).collect()
}

/// The record that a running server keeps.
#[derive(Debug)]
pub struct Usage {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    uses: Uses,
    dirty: bool,
    /// The file in place, open for its lock.
    file: Option<File>,
    /// What dead servers left, locked until it is part of the file in place.
    taken_in: Vec<(PathBuf, File)>,
    failing: bool,
}

impl Usage {
    /// Takes in what dead servers left beside the database.
    pub fn open(database: &Path) -> Usage {
        let mut state = State::default();
        for path in find_files(database) {
            let Ok(file) = File::open(&path) else { continue };
            match file.try_lock() {
                Ok(()) => {
                    merge_into(&mut state.uses, &read(&path));
                    state.dirty = true;
                    state.taken_in.push((path, file));
                }
                // A living server's own.
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
            }
        }
        let name = format!("{}{}", prefix(database), uuid::Uuid::now_v7().simple());
        Usage { path: folder(database).join(name), state: Mutex::new(state) }
    }

    /// Takes an answered request down.
    pub fn answered(&self, answered: &Answered<'_>) {
        let Some(key) = answered.key else { return };
        let at = now();
        let mut state = self.lock();
        state.dirty = true;
        let used = match state.uses.get_mut(&key.id) {
            Some(used) => used,
            None => state.uses.entry(key.id.clone()).or_default(),
        };
        used.last_used_at = Some(at);
        if let Some(feed) = answered.feed {
            let seen = FeedSeen { at, position: feed.position, behind_s: feed.behind_s };
            used.feeds.insert(feed.dataset, seen);
        }
    }

    /// Writes the file every few seconds in a thread of its own, and once more when the returned handle is dropped.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(self: &Arc<Self>) -> io::Result<Following> {
        let (stop, stopped) = channel::<()>();
        let usage = Arc::clone(self);
        let thread = std::thread::Builder::new().name("usage".to_owned()).spawn(move || {
            loop {
                let stopping = stopped.recv_timeout(WRITE_EVERY) != Err(RecvTimeoutError::Timeout);
                usage.write();
                if stopping {
                    return;
                }
            }
        })?;
        Ok(Following::of(stop, thread))
    }

    fn write(&self) {
        let mut state = self.lock();
        if !std::mem::take(&mut state.dirty) {
            return;
        }
        match self.replace_file(&state.uses) {
            Ok(file) => {
                state.file = Some(file);
                state.failing = false;
                for (path, _) in state.taken_in.drain(..) {
                    // Should it stay, the next server takes it in once more.
                    let _ = std::fs::remove_file(path);
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut state.failing, true) {
                    tracing::warn!(%error, "the use of keys cannot be recorded beside the database");
                }
                state.dirty = true;
            }
        }
    }

    /// A new file is locked before it takes the name, so that the one in place is always locked.
    fn replace_file(&self, uses: &Uses) -> io::Result<File> {
        let draft = Draft::beside(&self.path)?;
        draft.file().try_lock().map_err(io::Error::from)?;
        draft.file().write_all(&serde_json::to_vec(uses)?)?;
        draft.take_name_unsynced(&self.path)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
