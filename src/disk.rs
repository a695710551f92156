//! Durable writes, bounded reads, and errors as text. Tests of power losses set an observer, which receives each write,
//! sync, rename and removal of its thread, in order.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
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

/// Sets the observer of this thread's files. Files that are already open keep their observer.
pub fn observe(observer: Option<DiskObserver>) {
    OBSERVER.set(observer);
}

/// The observer of this thread's files.
pub fn observer() -> Option<DiskObserver> {
    OBSERVER.with_borrow(Clone::clone)
}

/// Calls the observer with an action.
pub fn report(event: DiskEvent<'_>) {
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
    report(DiskEvent::Sync { file });
    Ok(())
}

/// Makes the names in a folder durable.
///
/// # Errors
///
/// The error of the operating system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    sync_open_folder(&File::open(folder)?, folder)
}

/// Makes the names in a folder durable that was opened before: the user may lack the permission to open it.
///
/// # Errors
///
/// The error of the operating system.
pub fn sync_open_folder(file: &File, folder: &Path) -> io::Result<()> {
    file.sync_all()?;
    report(DiskEvent::SyncFolder { folder });
    Ok(())
}

/// A reader that fails after a number of bytes.
pub struct Bounded<R, E> {
    inner: R,
    most: u64,
    /// The number of bytes that were read.
    pub received: u64,
    too_long: E,
}

impl<R: Read, E: Fn() -> io::Error> Bounded<R, E> {
    /// Limits a reader to `most` bytes. `too_long` returns the error of a longer one.
    pub fn new(inner: R, most: u64, too_long: E) -> Bounded<R, E> {
        Bounded {
            inner,
            most,
            received: 0,
            too_long,
        }
    }
}

impl<R: Read, E: Fn() -> io::Error> Read for Bounded<R, E> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.received += count as u64;
        if self.received > self.most {
            Err((self.too_long)())
        } else {
            Ok(count)
        }
    }
}

/// The folder of a path; `.` for a bare file name.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Returns `None` for a file that does not exist.
pub fn if_found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// The text before the number in an error of the operating system.
const OS_ERROR: &str = " (os error ";

/// An error of the operating system as text, without its number.
pub fn describe(error: &io::Error) -> String {
    // tempfile adds the path of its file at the end.
    let text = error.to_string();
    let described = text.split(OS_ERROR).next();
    described.unwrap_or_default().to_owned()
}

/// An error at a path as text: the path, the error, and what to do.
pub fn describe_at(path: &Path, error: &io::Error) -> String {
    let owner = Some(path)
        .filter(|_| error.kind() == ErrorKind::PermissionDenied)
        .and_then(describe_owner);
    let owner = owner.map(|owner| format!("; {owner}")).unwrap_or_default();
    format!(
        "{}: {}{owner}{}",
        path.display(),
        describe(error),
        remedy(error)
    )
}

/// The advice for an error of the operating system, with a semicolon before it. Empty for all other errors.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if !error.to_string().contains(OS_ERROR) => "",
        ErrorKind::NotFound => "; check the path and its spelling",
        ErrorKind::PermissionDenied => {
            "; run the command as a user with access, or change the permissions"
        }
        ErrorKind::IsADirectory => "; name a file",
        ErrorKind::NotADirectory => {
            "; a part of the path is a file, not a folder; name another path"
        }
        ErrorKind::AlreadyExists => "; choose another name",
        ErrorKind::ReadOnlyFilesystem => "; the file system is read-only; choose another path",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "; free some room on the disk, or raise the limits of this user"
        }
        _ => "",
    }
}

/// The owner of a path, or of the nearest folder above it that can be seen.
fn describe_owner(path: &Path) -> Option<String> {
    let above = path.ancestors().filter(|path| !path.as_os_str().is_empty());
    let (path, found) = above
        .map(|path| (path, path.metadata()))
        .find_map(|(path, found)| Some((path, found.ok()?)))?;
    let owner = user_name(found.uid()).unwrap_or_else(|| format!("user {}", found.uid()));
    Some(format!(
        "{} belongs to {owner} (mode {:03o})",
        path.display(),
        found.mode() & 0o777
    ))
}

/// A user's name from `/etc/passwd`.
pub fn user_name(uid: u32) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_a_remedy_and_no_number() {
        let system = io::Error::from_raw_os_error;
        let cases = [
            (
                system(2),
                "x: No such file or directory; check the path and its spelling",
            ),
            (system(21), "x: Is a directory; name a file"),
            (system(5), "x: Input/output error"),
            (
                system(27),
                "x: File too large; free some room on the disk, or raise the limits of this user",
            ),
            (
                tempfile::tempdir_in("/nowhere at all").unwrap_err(),
                "x: No such file or directory; check the path and its spelling",
            ),
            (io::Error::other("no gzip (os error 2)"), "x: no gzip"),
            (
                io::Error::new(ErrorKind::NotFound, "no such sheet"),
                "x: no such sheet",
            ),
        ];
        for (error, expected) in cases {
            assert_eq!(describe_at(Path::new("x"), &error), expected);
        }
        let told = describe_at(Path::new("/nowhere at all/x"), &system(13));
        assert!(
            told.starts_with("/nowhere at all/x: Permission denied; / belongs to root (mode "),
            "{told}"
        );
        assert!(
            told.ends_with("; run the command as a user with access, or change the permissions"),
            "{told}"
        );
    }
}
