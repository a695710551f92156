//! The files of a copy. New ones are readable by their owner only; existing ones keep their mode.
//!
//! Other users may have put a pipe, a device or a link to one into a shared folder. Such files are errors, and never
//! block.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::error::{PullError, Result};

use crate::disk::describe;

/// The mode of a new file: only its owner may see the licensed content.
const FILE_MODE: u32 = 0o600;

const FOLDER_MODE: u32 = 0o700;

const GROUP_BITS: u32 = 0o070;

/// How long a lock may be held elsewhere before it counts as another pull's. A pull that is ending holds it a moment
/// longer, and so does any program that this process starts, from its `fork` to its `exec`.
const LOCK_WAIT: Duration = Duration::from_secs(1);

const LOCK_RETRY_EVERY: Duration = Duration::from_millis(20);

/// The first bytes of an SQLite file.
const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Returns true if a file begins like an SQLite file.
pub fn is_sqlite(file: &mut File) -> bool {
    let mut begin = [0; SQLITE_MAGIC.len()];
    file.read_exact(&mut begin).is_ok() && begin == *SQLITE_MAGIC
}

/// Creates a folder and its missing parents.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(folder)
}

/// Creates an empty file if it is missing. An existing file keeps its mode.
pub fn make_file(path: &Path) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(FILE_MODE)
        .open(path)
        .map(|_| ())
}

/// Opens a regular file for reading.
pub fn open_file(path: &Path) -> io::Result<File> {
    regular(
        OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)?,
    )
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(not_regular())
    }
}

fn not_regular() -> io::Error {
    io::Error::other(
        "it is a link, a pipe or something else than a file; remove it, or give another place for the copy",
    )
}

/// Creates a file that will replace another one by rename. Removes an old file or link at the path of the draft. The
/// draft gets the mode of the replaced file. If it cannot get the same group, its group gets only the permissions of
/// others.
pub fn make_draft(draft: &Path, replaces: &Path) -> io::Result<File> {
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(FILE_MODE)
        .open(draft)?;
    if let Some(replaced) = fs::symlink_metadata(replaces)
        .ok()
        .filter(fs::Metadata::is_file)
    {
        let is_of_group = file.metadata()?.gid() == replaced.gid()
            || fchown(&file, None, Some(replaced.gid())).is_ok();
        let mode = replaced.mode() & 0o777;
        let mode = if is_of_group {
            mode
        } else {
            mode & !(GROUP_BITS & !(mode << 3))
        };
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(file)
}

/// Opens or creates a lock file, and takes the lock within [`LOCK_WAIT`]. Messages name the path of the `copy`.
pub fn lock(path: &Path, copy: &Path) -> Result<File> {
    let refused = |error: &io::Error| {
        PullError::Unusable(format!(
            "{}: {}; the copy needs a lock file there",
            path.display(),
            describe(error)
        ))
    };
    // Lock files are never removed. Otherwise two pulls could hold locks on two files of one path.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let options = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .custom_flags(flags)
        .clone();
    let file = match options.open(path) {
        Ok(file) => regular(file),
        // A link, or a pipe without a reader.
        Err(_) if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) => {
            Err(not_regular())
        }
        Err(error) => Err(error),
    };
    let file = file.map_err(|error| refused(&error))?;
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                thread::sleep(LOCK_RETRY_EVERY)
            }
            Err(TryLockError::WouldBlock) => {
                return Err(PullError::Unwritable(format!(
                    "another `medfeed pull` is using {}; wait until it ends, or stop it",
                    copy.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(refused(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn a_lock_that_cannot_be_made_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink(at("file"), at("link")).unwrap();
        for (name, reason) in [
            ("none/lock", "No such file or directory"),
            ("link", "it is a link, a pipe or something else than a file"),
            (&"x".repeat(300), "File name too long"),
        ] {
            let message = lock(&at(name), &at("copy")).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn drafts_get_the_group_of_the_file_that_they_replace() {
        let folder = tempfile::tempdir().unwrap();
        let (file, draft) = (folder.path().join("a"), folder.path().join("a.new"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let group = fs::metadata(&file).unwrap().gid() + 1;
        if chown(&file, None, Some(group)).is_err() {
            return eprintln!("skipped: only root can give a file to any group");
        }
        make_draft(&draft, &file).unwrap();
        let found = fs::metadata(&draft).unwrap();
        assert_eq!((found.gid(), found.mode() & 0o777), (group, 0o640));
    }
}
