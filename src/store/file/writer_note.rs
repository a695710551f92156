//! The writer's note `NAME.writer`, next to the database: it names the process that writes.
//!
//! Only messages depend on the note, because any user who may write to the folder can change it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

use crate::disk::user_name;
use crate::model::printable::Printable;
use crate::model::time::now;
use crate::store::file::metadata::{FileIdentity, copy_access};

/// The maximum number of bytes read from a note.
const MAX_BYTES: u64 = 200;

static COMMAND: OnceLock<String> = OnceLock::new();

/// Sets the command that this process names in its notes, such as `license set`. Only the first call has an effect.
pub fn name_command(command: String) {
    let _ = COMMAND.set(command);
}

/// The note of a running writer. Dropping it removes the file.
#[derive(Debug)]
pub(in crate::store) struct WriterNote(Option<(PathBuf, File)>);

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
        let file = write_new(&path, &text).ok();
        // If this fails, only this user's commands can name the writer.
        let _ = file.as_ref().map(|file| share(file, database));
        WriterNote(file.map(|file| (path, file)))
    }

    /// The process that writes, as far as known. Safe to print on a terminal.
    pub fn read(database: &Path) -> String {
        let read = read_regular(&WriterNote::path_of(database)).unwrap_or_default();
        match String::from_utf8_lossy(&read).trim() {
            "" => "another process".to_owned(),
            text => Printable(text).to_string(),
        }
    }
}

/// Writes a new file. Removes the note of a killed writer instead of overwriting it, because it may be a link.
fn write_new(path: &Path, text: &str) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    if let Err(error) = file.write_all(text.as_bytes()) {
        // The disk is full. Remove the note here, because no `WriterNote` will.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(file)
}

/// Lets all users read a note who may write to the database.
fn share(file: &File, database: &Path) -> io::Result<()> {
    copy_access(file, database)?;
    let readers = (file.metadata()?.mode() & 0o022) << 1;
    file.set_permissions(Permissions::from_mode(0o600 | readers))
}

fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
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
        let Some((path, file)) = &self.0 else { return };
        // A command that has replaced the file holds only the old file's lock. The new file may have a writer already.
        if FileIdentity::of_path(path).ok() == FileIdentity::of_file(file).ok() {
            // If this fails, the next writer removes it.
            let _ = fs::remove_file(path);
        }
    }
}

/// The user of this process, as `name (uid N)`, or `uid N` without a name; with `sudo`, also the user who ran it.
pub(in crate::store) fn current_user() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let uid = rustix::process::getuid().as_raw();
    let by = variable("SUDO_USER").map(|user| format!(", sudo by {user}")).unwrap_or_default();
    let shown = match user_name(uid).or_else(|| variable("USER")).or_else(|| variable("LOGNAME")) {
        Some(name) => format!("{name} (uid {uid}{by})"),
        None => format!("uid {uid}{by}"),
    };
    let shown: String = shown.chars().take(120).collect();
    shown.replace(char::is_control, "?")
}
