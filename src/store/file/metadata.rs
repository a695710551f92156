//! Links, identity, owner and group of files.
//!
//! Links are followed before a file is opened or replaced: replacing the link itself would make a second database,
//! while the first is still in use.
//!
//! The users of a database must be able to use the files that replace it, and those next to it.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::disk::folder_of;
use crate::model::now;
use crate::store::{Result, StoreError};

/// A file's device and inode, which a rename does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity(u64, u64);

impl FileIdentity {
    pub fn of_path(path: &Path) -> io::Result<FileIdentity> {
        std::fs::metadata(path).map(|found| FileIdentity(found.dev(), found.ino()))
    }

    pub fn of_file(file: &File) -> io::Result<FileIdentity> {
        file.metadata()
            .map(|found| FileIdentity(found.dev(), found.ino()))
    }

    /// Whether the path leads to this file.
    pub fn is_of(self, path: &Path) -> bool {
        FileIdentity::of_path(path).is_ok_and(|now| now == self)
    }

    /// Fails if another file has replaced this one at its path.
    pub fn check(self, path: &Path) -> Result<()> {
        if self.is_of(path) {
            Ok(())
        } else {
            Err(StoreError::Replaced {
                path: path.to_owned(),
            })
        }
    }
}

/// A file's identity, length and time of the last change, which every write moves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    pub identity: FileIdentity,
    pub len: u64,
    /// Seconds and nanoseconds.
    changed_at: (i64, i64),
}

impl FileStamp {
    pub fn of_path(path: &Path) -> io::Result<FileStamp> {
        let found = std::fs::metadata(path)?;
        let identity = FileIdentity(found.dev(), found.ino());
        Ok(FileStamp {
            identity,
            len: found.len(),
            changed_at: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// Whether another write could still get the same time, by the coarse clock of file systems. A time that a clock
    /// set back has left in the future is not recent, so it causes no work at each poll.
    pub fn is_recent(&self) -> bool {
        self.changed_at.0.abs_diff(now().unix_s()) <= 1
    }
}

/// Gives a file the owner, group and permissions of another. Fails with [`io::ErrorKind::PermissionDenied`] unless this
/// process is run by root or that owner.
pub fn copy_owner(file: &File, other: &Path) -> io::Result<()> {
    let own = file.metadata()?;
    let found = std::fs::metadata(other)?;
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

/// The number of links that Linux follows on the way to a file.
const MAX_LINKS: usize = 40;

/// The file that a path leads to, with all links followed. If it cannot be resolved, the path as far as it can be.
pub fn resolve(path: &Path) -> PathBuf {
    if let Ok(found) = fs::canonicalize(path) {
        return found;
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        path = folder_of(&path).join(target);
    }
    match (fs::canonicalize(folder_of(&path)), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// Fails if a path leads to something else than a regular file. Opening a pipe would wait, and a device cannot be
/// replaced by a file.
pub fn refuse_irregular(path: &Path) -> Result<()> {
    let reason = match fs::metadata(path) {
        Ok(found) if found.is_dir() => "it is a folder",
        Ok(found) if !found.is_file() => "it is not a regular file",
        _ => return Ok(()),
    };
    Err(StoreError::BadTarget {
        path: path.to_owned(),
        reason: reason.to_owned(),
    })
}

/// Fails if a file has several names: the other names would keep the old file.
pub fn refuse_other_names(path: &Path) -> Result<()> {
    let names = fs::metadata(path).map_or(1, |found| found.nlink());
    if names < 2 {
        return Ok(());
    }
    Err(StoreError::BadTarget {
        path: path.to_owned(),
        reason: format!(
            "it has {names} names (hard links); only this one would lead to the new file, and the others to the old \
             one. Remove the others (`find -samefile` lists them), or copy the file and rename the copy to this name"
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "").unwrap();
        for (target, link) in [
            ("real/file", "link"),
            ("link", "link of a link"),
            ("real", "folder"),
            ("real/new", "dangling"),
            ("dangling", "dangling twice"),
            ("nowhere/new", "without folder"),
            ("circle", "circle"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let cases = outcomes![
            "real/file" "real/../real/./file" "link" "link of a link" "folder/file" => "real/file";
            "real/other" "folder/other" => "real/other";
            "dangling" "dangling twice" => "real/new";
            "without folder" => "nowhere/new";
            "missing/file" => "missing/file";
            "circle" => "circle";
        ];
        for (path, expected) in cases {
            assert_eq!(resolve(&root.join(path)), root.join(expected), "{path}");
        }
    }
}
