//! The publisher's lock: `NAME.publisher` beside the database, locked while a publisher of that file lives.
//!
//! It also holds a random name, by which a publisher knows entries again that an earlier one put from this very file. A copy of
//! the database has none, or another.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::PublishError;
use crate::model::time::now;
use crate::store::file::links::resolve;

/// How long the random name is, in bytes.
const NAME_BYTES: usize = 8;
/// The most that is read of the file, in bytes.
const MAX_BYTES: u64 = 1000;

/// The lock of a database's publisher. It is free again when this is dropped, or the process ends.
#[derive(Debug)]
pub struct PublisherLock {
    _file: File,
    /// The random name.
    pub name: String,
}

impl PublisherLock {
    /// Takes the lock of a database, links followed.
    ///
    /// # Errors
    /// [`PublishError::Locked`], and what the file system says.
    pub fn take(database: &Path) -> Result<PublisherLock, PublishError> {
        let path = path_of(&resolve(database));
        let failed = |source: io::Error| PublishError::Io { path: path.clone(), source };
        // Nothing else of that name is followed or waited for.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let mut file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = read_text(&mut file).unwrap_or_default();
                let holder = text.lines().nth(1).filter(|holder| !holder.is_empty());
                let holder = holder.unwrap_or("another process").to_owned();
                return Err(PublishError::Locked { path: database.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let name = hold(&mut file).map_err(failed)?;
        Ok(PublisherLock { _file: file, name })
    }
}

/// Reads the name, or makes one, and writes who holds the lock.
fn hold(file: &mut File) -> io::Result<String> {
    let text = read_text(file)?;
    let is_name = |name: &&str| name.len() == 2 * NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = match text.lines().next().filter(is_name) {
        Some(name) => name.to_owned(),
        None => {
            let mut random = [0; NAME_BYTES];
            getrandom::fill(&mut random).map_err(io::Error::other)?;
            data_encoding::HEXLOWER.encode(&random)
        }
    };
    let text = format!("{name}\nprocess {} (since {})\n", std::process::id(), now());
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())?;
    file.set_len(u64::try_from(text.len()).unwrap_or_default())?;
    file.sync_all()?;
    Ok(name)
}

fn read_text(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    Read::take(file, MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn path_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".publisher");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_by_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("feed.redb");
        let first = PublisherLock::take(&database).unwrap();
        let told = PublisherLock::take(&database).unwrap_err().to_string();
        assert!(told.contains(&format!("by process {} (since ", std::process::id())), "{told}");
        let name = first.name.clone();
        drop(first);
        assert_eq!(PublisherLock::take(&database).unwrap().name, name);
        std::fs::write(path_of(&database), "").unwrap();
        assert_ne!(PublisherLock::take(&database).unwrap().name, name);
    }
}
