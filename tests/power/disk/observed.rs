//! A database file whose writes an observer sees. The tests of the store include this file, too.

use std::fs::File;
use std::io;
use std::ops::Bound;

use redb::backends::FileBackend;
use redb::{BackendError, Builder, Database, DatabaseError, StorageBackend};

use super::{DiskEvent, DiskObserver, observer};

/// Opens a database in a file, or creates it in an empty one. The thread's observer sees what is written.
pub fn open_observed(builder: &Builder, file: File) -> Result<Database, DatabaseError> {
    let Some(observer) = observer() else {
        return builder.create_file(file);
    };
    observer(DiskEvent::Open { file: &file });
    let backend = FileBackend::new(file.try_clone()?)?;
    builder.create_with_backend(ObservedFile {
        backend,
        file,
        observer,
    })
}

/// A database file. The observer sees what is written and synced.
struct ObservedFile {
    backend: FileBackend,
    file: File,
    observer: DiskObserver,
}

/// Methods that only pass the call on.
macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        fn $method(&self, $($argument: $type),*) -> $result {
            self.backend.$method($($argument),*)
        }
    )*};
}

impl StorageBackend for ObservedFile {
    forward! {
        len() -> io::Result<u64>;
        read(offset: u64, out: &mut [u8]) -> io::Result<()>;
        close() -> io::Result<()>;
        try_lock_range(start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError>;
        try_lock_shared_range(start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError>;
        lock_range(start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError>;
        lock_shared_range(start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError>;
        unlock_range(start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError>;
        query_lock_range(start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError>;
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.backend.set_len(len)?;
        (self.observer)(DiskEvent::SetLen {
            file: &self.file,
            len,
        });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.backend.sync_data()?;
        (self.observer)(DiskEvent::Sync { file: &self.file });
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.backend.write(offset, data)?;
        (self.observer)(DiskEvent::Write {
            file: &self.file,
            at: offset,
            bytes: data,
        });
        Ok(())
    }
}

impl std::fmt::Debug for ObservedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ObservedFile")
    }
}
