//! Makes files and folders durable. Tests of power losses set an observer. It receives each write, sync and name of its
//! thread, in order. Without an observer, only the operation happens.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A completed action. `file` is open, and its inode identifies it.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DiskEvent<'a> {
    /// A file is opened for writing, before it is locked.
    Open {
        file: &'a File,
    },
    Write {
        file: &'a File,
        at: u64,
        bytes: &'a [u8],
    },
    SetLen {
        file: &'a File,
        len: u64,
    },
    Sync {
        file: &'a File,
    },
    /// A file or folder has the name `to` now, and no longer the name `from`.
    Name {
        from: Option<&'a Path>,
        to: &'a Path,
    },
    /// A file or an empty folder was removed.
    Remove {
        path: &'a Path,
    },
    SyncFolder {
        folder: &'a Path,
    },
}

/// Called with each action.
pub type DiskObserver = Arc<dyn Fn(DiskEvent<'_>) + Send + Sync>;

thread_local! {
    static OBSERVER: RefCell<Option<DiskObserver>> = const { RefCell::new(None) };
}

/// Sets the observer of this thread's files. Those that are open keep theirs.
pub fn observe(observer: Option<DiskObserver>) {
    OBSERVER.set(observer);
}

/// The observer of this thread's files.
pub fn observer() -> Option<DiskObserver> {
    OBSERVER.with_borrow(Clone::clone)
}

/// Calls the observer with an action.
pub fn tell(event: DiskEvent<'_>) {
    if let Some(observer) = observer() {
        observer(event);
    }
}

/// Makes a file's content and length durable.
///
/// # Errors
///
/// The error of the operating system.
pub fn sync(file: &File) -> io::Result<()> {
    file.sync_all()?;
    tell(DiskEvent::Sync { file });
    Ok(())
}

/// Makes the names in a folder durable.
///
/// # Errors
///
/// The error of the operating system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    OpenFolder::open(folder)?.sync()
}

/// A folder that can be synced. It is opened before a file in it is replaced: the user may lack the permission to open it.
#[derive(Debug)]
pub struct OpenFolder<'p> {
    file: File,
    path: &'p Path,
}

impl OpenFolder<'_> {
    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    pub fn open(path: &Path) -> io::Result<OpenFolder<'_>> {
        File::open(path).map(|file| OpenFolder { file, path })
    }

    /// Makes the names in the folder durable.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()?;
        tell(DiskEvent::SyncFolder { folder: self.path });
        Ok(())
    }
}

/// Calls the observer with a new name.
pub fn named(from: Option<&Path>, to: &Path) {
    tell(DiskEvent::Name { from, to });
}
