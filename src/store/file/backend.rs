//! The database in a file. Tests of power losses observe what it writes and syncs.

use std::fs::File;
use std::io;
use std::ops::Bound;

use redb::backends::FileBackend;
use redb::{BackendError, Builder, Database, DatabaseError, StorageBackend};

use crate::disk::{DiskEvent, DiskObserver, observer};

/// Opens a database in a file, or creates it in an empty one.
pub(super) fn open_database(builder: &Builder, file: File) -> Result<Database, DatabaseError> {
    let Some(observer) = observer() else { return builder.create_file(file) };
    observer(DiskEvent::Open { file: &file });
    let backend = FileBackend::new(file.try_clone()?)?;
    builder.create_with_backend(ObservedFile { backend, file, observer })
}

struct ObservedFile {
    backend: FileBackend,
    file: File,
    observer: DiskObserver,
}

impl std::fmt::Debug for ObservedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObservedFile").field("file", &self.file).finish_non_exhaustive()
    }
}

impl StorageBackend for ObservedFile {
    fn len(&self) -> io::Result<u64> {
        self.backend.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.backend.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.backend.set_len(len)?;
        (self.observer)(DiskEvent::SetLen { file: &self.file, len });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.backend.sync_data()?;
        (self.observer)(DiskEvent::Sync { file: &self.file });
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.backend.write(offset, data)?;
        (self.observer)(DiskEvent::Write { file: &self.file, at: offset, bytes: data });
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.backend.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.backend.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.backend.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.backend.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.backend.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.backend.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.backend.query_lock_range(start, end)
    }
}
