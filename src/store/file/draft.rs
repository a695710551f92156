//! Drafts: files that have no name until they are complete.
//!
//! On Linux a draft is an unnamed file, so a killed command leaves nothing behind. On other systems it has a temporary
//! name next to its target. On Linux it has one only between two system calls, while it replaces a file. Its process
//! holds a lock on it. If the process is killed then, the draft stays, and the next writer removes it: [`sweep`]
//! removes drafts without a lock.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tempfile::TempPath;

use super::metadata::{FileIdentity, copy_owner, refuse_irregular};
use crate::disk::{self, DiskEvent, folder_of};
use crate::store::{Result, StoreError};

const PREFIX: &str = ".medfeed-draft-";
const RANDOM_LEN: usize = 12;
/// The mode of drafts: only the owner may read them, because databases contain the secret that seals tokens.
const SECRET_MODE: u32 = 0o600;

const OPEN_FILES: &str = "/proc/self/fd";

/// The path for messages. A draft without a name is shown as its folder.
pub fn display_path(path: &Path) -> PathBuf {
    let is_draft = path.starts_with(OPEN_FILES);
    let opened = fs::read_link(path).ok().filter(|_| is_draft);
    let folder = opened.as_deref().and_then(Path::parent);
    folder.unwrap_or(path).to_owned()
}

/// A file without its final name. Dropping it removes it.
#[derive(Debug)]
pub struct Draft {
    /// The path that it gets.
    target: PathBuf,
    /// Locked while it is open (`flock(2)`). redb locks single bytes, which is another kind of lock.
    file: File,
    path: PathBuf,
    name: Option<TempPath>,
}

impl Draft {
    /// Creates an empty draft in the folder of its target. Only its owner may read it.
    pub fn create_for(target: &Path) -> io::Result<Draft> {
        Draft::without_name(target).map_or_else(|| Draft::with_name(target), Ok)
    }

    fn without_name(target: &Path) -> Option<Draft> {
        let file = open_unnamed(folder_of(target))?;
        let path = path_of(&file)?;
        // It may get a name next to its target, where a sweep finds it.
        let _ = file.try_lock();
        Some(Draft {
            target: target.to_owned(),
            file,
            path,
            name: None,
        })
    }

    fn with_name(target: &Path) -> io::Result<Draft> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = naming().make_in(folder_of(target), |path| {
            let file = File::from(rustix::fs::open(
                path,
                flags,
                Mode::from_raw_mode(SECRET_MODE),
            )?);
            match file.try_lock() {
                // A sweep removed it before it was locked.
                Err(TryLockError::WouldBlock) => Err(io::ErrorKind::AlreadyExists.into()),
                Ok(()) if file.metadata()?.nlink() == 0 => Err(io::ErrorKind::AlreadyExists.into()),
                // If files cannot be locked, sweeps remove none either.
                Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
            }
        })?;
        let (file, name) = made.into_parts();
        Ok(Draft {
            target: target.to_owned(),
            file,
            path: name.to_path_buf(),
            name: Some(name),
        })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// A path by which this process can open the file again.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path that it gets.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Renames the draft to its target, and replaces a file of that name. Syncs the content first, and the folder last.
    pub fn persist(self) -> io::Result<()> {
        let target = self.target.clone();
        let folder = folder_of(&target);
        let open_folder = File::open(folder)?;
        disk::sync(&self.file)?;
        self.persist_unsynced()?;
        disk::sync_open_folder(&open_folder, folder)
    }

    /// Like [`Draft::persist`], but not durable. Returns the file, which stays locked.
    pub fn persist_unsynced(self) -> io::Result<File> {
        let target = &self.target;
        let name = match self.name {
            Some(name) => name,
            // A link cannot replace a file; a rename can.
            None => {
                let linked = naming().make_in(folder_of(target), |path| link(&self.path, path))?;
                linked.into_temp_path()
            }
        };
        let from = name.to_path_buf();
        name.persist(target).map_err(|error| error.error)?;
        disk::report(DiskEvent::Name {
            from: Some(&from),
            to: target,
        });
        Ok(self.file)
    }
}

fn naming() -> tempfile::Builder<'static, 'static> {
    let mut naming = tempfile::Builder::new();
    naming.prefix(PREFIX).rand_bytes(RANDOM_LEN);
    naming
}

/// Creates an unnamed file, if the file system supports that.
#[cfg(target_os = "linux")]
fn open_unnamed(folder: &Path) -> Option<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::from_raw_mode(SECRET_MODE))
        .ok()
        .map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn open_unnamed(_folder: &Path) -> Option<File> {
    None
}

/// The path of an open file in `/proc`. Without `/proc`, as in a bare container, unnamed files cannot be linked.
fn path_of(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    let path = PathBuf::from(format!("{OPEN_FILES}/{}", file.as_raw_fd()));
    let own = FileIdentity::of_file(file).ok()?;
    own.is_of(&path).then_some(path)
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    Ok(rustix::fs::linkat(
        CWD,
        from,
        CWD,
        to,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}

/// Removes the drafts in a file's folder that no process has locked.
pub fn sweep(target: &Path) {
    let Ok(entries) = fs::read_dir(folder_of(target)) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if is_draft_name(&entry.file_name()) && check_abandoned(&path).unwrap_or(false) {
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_draft_name(name: &OsStr) -> bool {
    let random = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    random.is_some_and(|random| {
        random.len() == RANDOM_LEN && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn check_abandoned(path: &Path) -> io::Result<bool> {
    // Ignore other files of such a name: follow no link, and wait for no pipe.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    Ok(file.metadata()?.is_file() && file.try_lock().is_ok())
}

impl Draft {
    /// Creates an empty file, and removes abandoned drafts. The caller follows links.
    pub fn create(target: &Path) -> Result<Draft> {
        sweep(target);
        Draft::create_for(target).map_err(StoreError::io(folder_of(target)))
    }

    /// Creates an empty file like [`Draft::create`]. Fails if it could not replace the file at `target`, so that the
    /// copy is not written in vain.
    pub fn replacing(target: &Path) -> Result<Draft> {
        refuse_irregular(target)?;
        if target.exists() {
            Draft::create(target)?.copy_owner()?;
        }
        Draft::create(target)
    }

    /// The size in bytes.
    pub fn bytes(&self) -> Result<u64> {
        self.file
            .metadata()
            .map(|found| found.len())
            .map_err(StoreError::io(&self.target))
    }

    fn copy_owner(&self) -> Result<()> {
        copy_owner(&self.file, &self.target).map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => {
                let reason = "this user may not give the new file its owner and group; run the command as its owner, who must be a \
                              member of its group, or as root"
                    .to_owned();
                StoreError::BadTarget { path: self.target.clone(), reason }
            }
            _ => StoreError::io(&self.target)(source),
        })
    }

    /// Gives the file its name, like [`Draft::persist`]. Fails if another file has the name.
    pub fn persist_new(self) -> Result<()> {
        let path = self.target.clone();
        self.take_free_name().map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => StoreError::Replaced { path },
            _ => StoreError::io(&path)(source),
        })
    }

    fn take_free_name(self) -> io::Result<()> {
        let folder = folder_of(&self.target);
        let open_folder = File::open(folder)?;
        disk::sync(&self.file)?;
        match self.name {
            Some(name) => name
                .persist_noclobber(&self.target)
                .map_err(|error| error.error)?,
            None => link(&self.path, &self.target)?,
        }
        disk::report(DiskEvent::Name {
            from: None,
            to: &self.target,
        });
        disk::sync_open_folder(&open_folder, folder)
    }

    /// Replaces the file `old`, whose lock the caller holds. The new file gets its owner and permissions. Fails if
    /// another file has come to this name.
    pub fn replace(self, old: FileIdentity) -> Result<()> {
        self.copy_owner()?;
        old.check(&self.target)?;
        self.replace_any()
    }

    /// Gives the file its name, in place of any other.
    pub fn replace_any(self) -> Result<()> {
        let path = self.target.clone();
        self.persist().map_err(|source| match source.kind() {
            // A file that is a mount point cannot lose its name.
            ErrorKind::ResourceBusy => {
                let reason = "it is mounted by itself, so no other file can take its name; mount the folder that \
                              contains it instead"
                    .to_owned();
                StoreError::BadTarget { path, reason }
            }
            _ => StoreError::io(&path)(source),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    type Make = fn(&Path) -> io::Result<Draft>;

    const KINDS: [(&str, Make); 2] = [
        ("as the system has it", Draft::create_for),
        ("named", Draft::with_name),
    ];

    #[test]
    fn drafts_get_their_names_when_they_are_persisted() {
        for (kind, make) in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("target");
            for (content, is_new) in [("first", true), ("second", false), ("third", false)] {
                let draft = make(&target).unwrap();
                draft.file().write_all(content.as_bytes()).unwrap();
                assert_eq!(fs::read_to_string(draft.path()).unwrap(), content, "{kind}");
                assert_eq!(
                    draft.file().metadata().unwrap().permissions().mode() & 0o777,
                    0o600,
                    "{kind}"
                );
                if is_new {
                    draft.persist_new().unwrap()
                } else {
                    draft.persist().unwrap()
                }
                assert_eq!(fs::read_to_string(&target).unwrap(), content, "{kind}");
                assert_eq!(names(folder.path()), ["target"], "{kind}");
            }
            let refused = make(&target).unwrap().persist_new().unwrap_err();
            assert!(matches!(refused, StoreError::Replaced { .. }), "{kind}");
            drop(make(&target).unwrap());
            assert_eq!(fs::read_to_string(&target).unwrap(), "third", "{kind}");
            assert_eq!(names(folder.path()), ["target"], "{kind}");
        }
    }

    #[test]
    fn only_unlocked_drafts_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let living = Draft::with_name(&at("target")).unwrap();
        let dead = Draft::with_name(&at("target")).unwrap();
        dead.name.unwrap().keep().unwrap();
        // Killed between its link and its rename, or just before the link.
        let linked = Draft::create_for(&at("target")).unwrap();
        let linked_path = at(".medfeed-draft-abcdefghijk0");
        link(linked.path(), &linked_path).unwrap();
        sweep(&at("target"));
        assert!(linked_path.exists(), "its process lives");
        // The end of a process releases its locks.
        drop((dead.file, linked));
        fs::write(at("dear"), "to somebody").unwrap();
        symlink("dear", at(".medfeed-draft-abcdefghijkl")).unwrap();
        fs::create_dir(at(".medfeed-draft-abcdefghijkm")).unwrap();
        let others = words![
            "medfeed.redb" ".medfeed-draft-" ".medfeed-draft-short" ".medfeed-draft-with-a-hyphen"
        ];
        for name in others {
            fs::write(at(name), "").unwrap();
        }
        let before = names(folder.path());
        sweep(&at("target"));
        let mut expected = before.clone();
        expected.retain(|name| at(name) != dead.path && at(name) != linked_path);
        assert_eq!(names(folder.path()), expected);
        assert_eq!(before.len() - 2, expected.len());
        drop(living);
        assert_eq!(names(folder.path()).len(), expected.len() - 1);
    }
}
