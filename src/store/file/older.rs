//! A file that is read to be upgraded. It is locked against writers, and none of its bytes change.

use std::fs::File;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redb::backends::FileBackend;
use redb::{ReadOnlyDatabase, ReadTransaction, ReadableDatabase, StorageBackend};

use crate::store::StoreError;
use crate::store::file::metadata::FileIdentity;
use crate::store::file::open::{RETRY_EVERY, open_and_repair, version_of};
use crate::store::file::open_error::io_error;
use crate::store::file::writer_note::WriterNote;
use crate::store::format::version::Version;

/// The bytes that a redb writer locks, far beyond the end of any file (redb's design document, "Lock bytes").
const REDB_WRITER_LOCK: [u64; 2] = [(1 << 62) + 1, 1 << 62];

/// Takes the writer's lock of a file without opening it as a database; `None` if a writer holds it.
pub(in crate::store) fn lock_as_writer(path: &Path) -> Result<Option<FileBackend>, StoreError> {
    let file = File::options().read(true).write(true).open(path).map_err(|source| io_error(path, source))?;
    let Ok(backend) = FileBackend::new(file) else { return Ok(None) };
    for byte in REDB_WRITER_LOCK {
        match backend.try_lock_range(Bound::Included(byte), Bound::Included(byte)) {
            Ok(true) => {}
            _ => return Ok(None),
        }
    }
    Ok(Some(backend))
}

/// A callback that runs after each copied or rendered record.
pub(in crate::store) type OnRecord<'a> = &'a mut dyn FnMut() -> Result<(), StoreError>;

pub(in crate::store) struct OldFile {
    path: PathBuf,
    database: ReadOnlyDatabase,
    identity: FileIdentity,
    version: Version,
    _lock: FileBackend,
}

impl std::fmt::Debug for OldFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OldFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl OldFile {
    /// Repairs a file if necessary, and locks it. Waits up to `wait` for a writer. The caller follows links.
    pub fn lock(path: &Path, wait: Duration) -> Result<OldFile, StoreError> {
        let deadline = Instant::now() + wait;
        loop {
            let (database, stamp) = open_and_repair(path)?;
            let version = version_of(path, &database)?;
            match lock_as_writer(path)? {
                // A writer may have written or replaced the file between opening and locking.
                Some(lock) if FileIdentity::of_path(path).is_ok_and(|now| now == stamp.identity) => {
                    return Ok(OldFile {
                        path: path.to_owned(),
                        database,
                        identity: stamp.identity,
                        version,
                        _lock: lock,
                    });
                }
                _ if Instant::now() >= deadline => {
                    return Err(StoreError::Busy { path: path.to_owned(), holder: WriterNote::read(path) });
                }
                _ => std::thread::sleep(RETRY_EVERY),
            }
        }
    }

    pub fn version(&self) -> &Version {
        &self.version
    }

    pub fn begin_read(&self) -> Result<ReadTransaction, StoreError> {
        Ok(self.database.begin_read()?)
    }

    /// Fails if another file has replaced this one at its path.
    pub fn check_not_replaced(&self) -> Result<(), StoreError> {
        if FileIdentity::of_path(&self.path).is_ok_and(|now| now == self.identity) {
            Ok(())
        } else {
            Err(StoreError::Replaced { path: self.path.clone() })
        }
    }
}

/// Makes a database one of an older program, whose conferences had no venue.
#[cfg(test)]
pub(in crate::store) fn make_older(path: &Path) {
    use crate::store::format::tables::{META, META_FIELDS};

    let writer = crate::store::file::open::Writer::open_any(path, Duration::ZERO).unwrap();
    let tx = writer.begin_raw().unwrap();
    let fields = crate::store::format::version::known_fields().replacen("conferences.venue\n", "", 1);
    tx.open_table(META).unwrap().insert(META_FIELDS, fields.as_bytes()).unwrap();
    tx.commit().unwrap();
}
