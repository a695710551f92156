//! A file that another one replaces. It is locked against writers and read, and none of its bytes change.

use std::fs::File;
use std::ops::Bound;
use std::path::Path;

use redb::StorageBackend;
use redb::backends::FileBackend;

use crate::store::StoreError;
use crate::store::file::open::{OpenOptions, ReadFile, retry};
use crate::store::file::open_error::io_error;
use crate::store::file::writer_note::WriterNote;

/// The bytes that a redb writer locks, far beyond the end of any file (redb's design document, "Lock bytes").
const REDB_WRITER_LOCK: [u64; 2] = [(1 << 62) + 1, 1 << 62];

/// Takes the writer's lock of a file without opening it as a database; `None` if a writer holds it.
fn lock_as_writer(path: &Path) -> Result<Option<FileBackend>, StoreError> {
    let file = File::options().read(true).write(true).open(path).map_err(|source| io_error(path, source))?;
    let Ok(backend) = FileBackend::new(file) else { return Ok(None) };
    let mut bytes = REDB_WRITER_LOCK.into_iter();
    let is_locked =
        bytes.all(|byte| matches!(backend.try_lock_range(Bound::Included(byte), Bound::Included(byte)), Ok(true)));
    Ok(is_locked.then_some(backend))
}

pub(in crate::store) struct LockedFile {
    // Dropped first, because the note belongs to the next writer as soon as the lock is free.
    _note: WriterNote,
    pub file: ReadFile,
    _lock: FileBackend,
}

impl std::fmt::Debug for LockedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockedFile").field("path", &self.file.path).finish_non_exhaustive()
    }
}

impl LockedFile {
    /// Repairs a file if necessary, and locks it. The caller follows links.
    pub fn lock(path: &Path, options: OpenOptions) -> Result<LockedFile, StoreError> {
        retry(path, options.wait, || {
            let file = ReadFile::open(path, options)?;
            // A writer may have written or replaced the file between opening and locking.
            let lock = lock_as_writer(path)?.filter(|_| file.stamp.identity.is_of(path));
            Ok(lock.map(|lock| LockedFile { _note: WriterNote::create(path), file, _lock: lock }))
        })
    }
}
