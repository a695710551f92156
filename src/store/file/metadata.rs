//! Identity, owner and group of files.
//!
//! The users of a database must be able to use the files that replace it, and those next to it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

use crate::model::time::now;
use crate::store::StoreError;

/// A file's device and inode, which a rename does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct FileIdentity(u64, u64);

impl FileIdentity {
    pub fn of_path(path: &Path) -> io::Result<FileIdentity> {
        std::fs::metadata(path).map(|found| FileIdentity(found.dev(), found.ino()))
    }

    pub fn of_file(file: &File) -> io::Result<FileIdentity> {
        file.metadata().map(|found| FileIdentity(found.dev(), found.ino()))
    }

    /// Whether the path leads to this file.
    pub fn is_of(self, path: &Path) -> bool {
        FileIdentity::of_path(path).is_ok_and(|now| now == self)
    }

    /// Fails if another file has replaced this one at its path.
    pub fn check(self, path: &Path) -> Result<(), StoreError> {
        if self.is_of(path) { Ok(()) } else { Err(StoreError::Replaced { path: path.to_owned() }) }
    }
}

/// A file's identity, length and time of the last change, which every write moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct FileStamp {
    pub identity: FileIdentity,
    pub len: u64,
    /// Seconds and nanoseconds.
    changed_at: (i64, i64),
}

impl FileStamp {
    pub fn of_path(path: &Path) -> io::Result<FileStamp> {
        let found = std::fs::metadata(path)?;
        let identity = FileIdentity(found.dev(), found.ino());
        Ok(FileStamp { identity, len: found.len(), changed_at: (found.ctime(), found.ctime_nsec()) })
    }

    /// Whether another write could still get the same time, by the coarse clock of file systems. A time that a clock set
    /// back has left in the future is not recent, so it causes no work at each poll.
    pub fn is_recent(&self) -> bool {
        self.changed_at.0.abs_diff(now().unix_s()) <= 1
    }
}

/// Gives a file the owner, group and permissions of another. Fails with [`io::ErrorKind::PermissionDenied`] unless this
/// process is run by root or that owner.
pub(super) fn copy_owner(file: &File, other: &Path) -> io::Result<()> {
    let (own, found) = (file.metadata()?, std::fs::metadata(other)?);
    if (own.uid(), own.gid()) != (found.uid(), found.gid()) {
        fchown(file, Some(found.uid()), Some(found.gid()))?;
    }
    file.set_permissions(found.permissions())
}

/// Gives a file the group and permissions of another, and the owner if this user may do that.
pub fn copy_access(file: &File, other: &Path) -> io::Result<()> {
    match copy_owner(file, other) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let found = std::fs::metadata(other)?;
            fchown(file, None, Some(found.gid()))?;
            file.set_permissions(found.permissions())
        }
        copied => copied,
    }
}
