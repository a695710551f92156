//! The writer's note: a small file beside the database, `NAME.writer`, that tells waiting commands who is writing.
//!
//! A command that is not to wait long, such as the revocation of a key, locks the note while it waits. A long import looks
//! whether the note is locked, and gives way.
//!
//! The note is only a courtesy. The lock is redb's, and every user who may write to the folder may write to this file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

use crate::model::printable::Printable;
use crate::model::time::now;

/// The number of bytes read of a note.
const MAX_BYTES: u64 = 200;

/// The command that this process runs.
static COMMAND: OnceLock<String> = OnceLock::new();

/// Names the command that this process runs, such as `license set`, in its notes. The first call counts.
pub fn name_command(command: String) {
    // A process runs one command.
    let _ = COMMAND.set(command);
}

/// The note of a living writer. Dropping it removes the file.
#[derive(Debug)]
pub(in crate::store) struct WriterNote(Option<(PathBuf, File)>);

/// A lock on another writer's note, by which a command asks it to give way.
#[derive(Debug)]
pub(in crate::store) struct YieldRequest(#[allow(dead_code, reason = "it holds the lock")] File);

impl WriterNote {
    fn path_of(database: &Path) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(".writer");
        PathBuf::from(name)
    }

    /// Writes the note of this process, if that is possible.
    pub fn create(database: &Path) -> WriterNote {
        let path = WriterNote::path_of(database);
        let command = COMMAND.get().map(|command| format!("`medfeed {command}`, ")).unwrap_or_default();
        let text = format!("process {} ({command}since {})", std::process::id(), now());
        WriterNote(write_new(&path, &text).ok().map(|file| (path, file)))
    }

    /// Whether another command asks this writer to give way.
    pub fn is_yield_requested(&self) -> bool {
        let Some((_, file)) = &self.0 else { return false };
        match file.try_lock() {
            Ok(()) => {
                // The lock ends with the process at the latest.
                let _ = file.unlock();
                false
            }
            Err(error) => matches!(error, TryLockError::WouldBlock),
        }
    }

    /// Asks the present writer to give way, until the result is dropped. `None` where it left no note.
    pub fn request_yield(database: &Path) -> Option<YieldRequest> {
        let file = open_plain(&WriterNote::path_of(database)).ok()?;
        file.try_lock_shared().is_ok().then_some(YieldRequest(file))
    }

    /// Who is writing, as far as known, in a form that is safe to print on a terminal.
    pub fn read(database: &Path) -> String {
        let read = read_plain(&WriterNote::path_of(database)).unwrap_or_default();
        match String::from_utf8_lossy(&read).trim() {
            "" => "another process".to_owned(),
            text => Printable(text).to_string(),
        }
    }
}

/// Writes a new file. A killed writer's note is removed first and not overwritten, since it may be a link.
fn write_new(path: &Path, text: &str) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    if let Err(error) = file.write_all(text.as_bytes()) {
        // On a full disk. Nothing would remove a note that nobody holds.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(file)
}

fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open_plain(path)?.take(MAX_BYTES).read_to_end(&mut content)?;
    Ok(content)
}

impl Drop for WriterNote {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.0 {
            // If it cannot be removed, the next writer does it.
            let _ = fs::remove_file(path);
        }
    }
}

/// The user of this process, as `name (uid N)`; under `sudo` also the user who called it.
pub(in crate::store) fn current_user() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let name = variable("USER").or_else(|| variable("LOGNAME")).map(|name| format!("{name} ")).unwrap_or_default();
    let by = variable("SUDO_USER").map(|user| format!(", sudo by {user}")).unwrap_or_default();
    let shown: String = format!("{name}(uid {}{by})", rustix::process::getuid().as_raw()).chars().take(120).collect();
    shown.replace(char::is_control, "?")
}
