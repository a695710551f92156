//! The publisher's lock: the file `NAME.publisher` next to the database, locked while a publisher of that file runs.
//!
//! The file also holds a random name, and entries carry it. So a publisher recognizes entries of an earlier publisher
//! of the same file. A copy of the database has no such file, or one with another name. [`PublisherLock::who`] has the
//! user and the machine too.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::publish_error::{PublishError, Result};
use crate::disk::if_found;
use crate::replicate::layout;
use crate::store::file::metadata::{copy_access, resolve};
use crate::store::file::notes::{describe_process, user_variable, with_ending};

const ENDING: &str = ".publisher";
const MAX_BYTES: u64 = 1000;

/// The lock of a database's publisher. Dropping it, or the end of the process, releases the lock.
#[derive(Debug)]
pub struct PublisherLock {
    _file: File,
    /// User, machine and the random name, without spaces in them. Entries carry this name.
    pub who: String,
}

impl PublisherLock {
    /// Takes the lock of a database. Symbolic links in `database` are followed.
    pub fn take(database: &Path) -> Result<PublisherLock> {
        let resolved = resolve(database);
        let path = with_ending(&resolved, ENDING);
        let failed = |source: io::Error| PublishError::Io {
            path: path.clone(),
            source,
        };
        // A symbolic link or a named pipe of this name is an error.
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(opened.map_err(|error| failed(error.into()))?);
        // Users who can write to the database must be able to take the lock, also after a command by root.
        if file.metadata().map_err(failed)?.len() == 0 {
            if_found(copy_access(&file, &resolved)).map_err(failed)?;
        }
        match file.try_lock() {
            Ok(()) => {
                let name = hold(&mut file).map_err(failed)?;
                let who = format!("{} {name}", user_at_host());
                Ok(PublisherLock { _file: file, who })
            }
            Err(TryLockError::WouldBlock) => {
                let text = read_text(&mut file).unwrap_or_default();
                let holder = text.lines().nth(1).filter(|holder| !holder.is_empty());
                Err(PublishError::Locked {
                    path: database.to_owned(),
                    holder: holder.unwrap_or("another process").to_owned(),
                })
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Reads the random name, or creates one, and writes the process that holds the lock.
fn hold(file: &mut File) -> io::Result<String> {
    let text = read_text(file)?;
    let name = match text.lines().next().filter(|name| layout::is_random(name)) {
        Some(name) => name.to_owned(),
        None => layout::new_random().map_err(io::Error::other)?,
    };
    let text = format!("{name}\n{}\n", describe_process());
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_all()?;
    Ok(name)
}

fn read_text(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    io::read_to_string(file.take(MAX_BYTES))
}

/// Returns the user and machine of a publisher's name, for messages.
pub fn user_part(who: &str) -> &str {
    who.split_once(' ').map_or(who, |(who, _)| who)
}

/// Whether two names in entries are of the same publisher's file. Its random name comes last; users and machines are
/// renamed.
pub fn is_same_publisher(who: &str, other: &str) -> bool {
    who.rsplit(' ').next() == other.rsplit(' ').next()
}

/// Returns `user@machine`, without spaces, at most 121 characters.
fn user_at_host() -> String {
    let user = user_variable();
    let user = user.unwrap_or_else(|| format!("uid{}", rustix::process::getuid().as_raw()));
    // Not from /proc/sys, which hardened units hide: replicas on all machines would then have one name.
    let system = rustix::system::uname();
    format!(
        "{}@{}",
        one_word(&user),
        one_word(&system.nodename().to_string_lossy())
    )
}

fn one_word(text: &str) -> String {
    let text: String = text.trim().chars().take(60).collect();
    text.replace(|c: char| c.is_whitespace() || c.is_control(), "?")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn the_lock_is_exclusive_and_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("feed.redb");
        let first = PublisherLock::take(&database).unwrap();
        let message = PublisherLock::take(&database).unwrap_err().to_string();
        assert!(
            message.contains(&format!("by process {} (since ", std::process::id())),
            "{message}"
        );
        let name = first.who.clone();
        drop(first);
        assert_eq!(PublisherLock::take(&database).unwrap().who, name);
        std::fs::write(with_ending(&database, ENDING), "").unwrap();
        assert_ne!(PublisherLock::take(&database).unwrap().who, name);
    }

    #[test]
    fn a_new_lock_gets_owner_and_permissions_of_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("feed.redb");
        std::fs::write(&database, "").unwrap();
        // Only root may give a file to another user.
        let owner = if rustix::process::getuid().is_root() {
            12_345
        } else {
            rustix::process::getuid().as_raw()
        };
        std::os::unix::fs::chown(&database, Some(owner), None).unwrap();
        std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o660)).unwrap();
        for _ in 0..2 {
            drop(PublisherLock::take(&database).unwrap());
            let lock = std::fs::metadata(with_ending(&database, ENDING)).unwrap();
            assert_eq!((lock.uid(), lock.mode() & 0o777), (owner, 0o660));
        }
    }

    #[test]
    fn a_database_has_one_lock_however_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let [database, link] = ["feed.redb", "link.redb"].map(|name| folder.path().join(name));
        std::fs::write(&database, "").unwrap();
        std::os::unix::fs::symlink("feed.redb", &link).unwrap();
        for (first, second) in [(&database, &link), (&link, &database)] {
            let _held = PublisherLock::take(first).unwrap();
            let refused = PublisherLock::take(second).map(|lock| lock.who);
            assert!(
                matches!(refused, Err(PublishError::Locked { .. })),
                "{}: {refused:?}",
                second.display()
            );
        }
        assert!(!with_ending(&link, ENDING).exists());
    }
}
