//! A small file beside the database that says who writes, `NAME.writer`, for those who wait. It is a courtesy: the lock
//! is redb's, and whoever may write to the folder may write anything into this file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

use crate::model::printable::Printable;
use crate::model::time::now;

/// As much of a note is read, in bytes.
const MAX_BYTES: u64 = 200;

/// The command that this process runs, in the words of the command line.
static COMMAND: OnceLock<String> = OnceLock::new();

/// Says which command this process runs, such as `license set`, for those who wait while it writes. The first call counts.
pub fn name_command(command: String) {
    // It is the command of the whole process, which has one.
    let _ = COMMAND.set(command);
}

/// The note of a living writer; it goes with this value.
#[derive(Debug)]
pub(in crate::store) struct WriterNote(Option<PathBuf>);

impl WriterNote {
    fn path_of(database: &Path) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(".writer");
        PathBuf::from(name)
    }

    /// Says that this process writes. Where that is not possible nothing is said.
    pub fn leave(database: &Path) -> WriterNote {
        let path = WriterNote::path_of(database);
        let command = COMMAND.get().map(|command| format!("`medfeed {command}`, ")).unwrap_or_default();
        let text = format!("process {} ({command}since {})", std::process::id(), now());
        WriterNote(write_new(&path, &text).is_ok().then_some(path))
    }

    /// Who writes, as far as that is known: fit to be shown on a terminal.
    pub fn read(database: &Path) -> String {
        let read = read_plain(&WriterNote::path_of(database)).unwrap_or_default();
        match String::from_utf8_lossy(&read).trim() {
            "" => "another process".to_owned(),
            text => Printable(text).to_string(),
        }
    }
}

/// What a killed writer left is removed and not written to: it may be a link.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut content)?;
    Ok(content)
}

impl Drop for WriterNote {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Where it cannot be removed the next writer does.
            let _ = fs::remove_file(path);
        }
    }
}
