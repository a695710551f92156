//! The notes next to the database. The writer's note `NAME.writer` names the process that writes. The publisher's note
//! `NAME.published` says which commits are published.
//!
//! Only messages depend on the writer's note, because any user who may write to the folder can change it.

use std::env;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use data_encoding::HEXLOWER;
use rustix::fs::{Mode, OFlags};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::draft::Draft;
use super::metadata::{FileIdentity, copy_access, resolve};
use crate::disk::{if_found, user_name};
use crate::model::{DatabaseId, Head, Printable, Timestamp, now};
use crate::store::{Result, StoreError};

/// The maximum number of bytes read from a writer's note.
const MAX_WRITER_BYTES: u64 = 200;
/// The maximum number of bytes read from a publisher's note.
const MAX_PUBLISHED_BYTES: u64 = 64 << 10;

/// The path of a file next to the database.
pub fn with_ending(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

pub(in crate::store) fn published_note_path(database: &Path) -> PathBuf {
    with_ending(database, ".published")
}

/// Reads a note. Follows no link, and does not wait for a pipe of that name.
fn read_note(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    file.take(max_bytes).read_to_end(&mut content)?;
    Ok(content)
}

static COMMAND: OnceLock<String> = OnceLock::new();

/// Sets the command that this process names in its notes, such as `license set`. Only the first call has an effect.
pub fn name_command(command: String) {
    let _ = COMMAND.set(command);
}

/// Describes this process, for those who wait for it.
pub fn describe_process() -> String {
    let command = COMMAND
        .get()
        .map(|command| format!("`medfeed {command}`, "))
        .unwrap_or_default();
    format!("process {} ({command}since {})", std::process::id(), now())
}

/// The note of a running writer. Dropping it removes the file.
#[derive(Debug)]
pub(in crate::store) struct WriterNote(Option<(PathBuf, File)>);

impl WriterNote {
    /// Writes the note of this process, if that is possible.
    pub fn create(database: &Path) -> WriterNote {
        let path = with_ending(database, ".writer");
        let file = write_new(&path, &describe_process()).ok();
        // If this fails, only this user's commands can name the writer.
        let _ = file.as_ref().map(|file| share(file, database));
        WriterNote(file.map(|file| (path, file)))
    }

    /// The process that writes, as far as known. Safe to print on a terminal.
    pub fn read(database: &Path) -> String {
        let read =
            read_note(&with_ending(database, ".writer"), MAX_WRITER_BYTES).unwrap_or_default();
        match String::from_utf8_lossy(&read).trim() {
            "" => "another process".to_owned(),
            text => Printable(text).to_string(),
        }
    }
}

/// Writes a new file. Removes the note of a killed writer instead of overwriting it, because it may be a link.
fn write_new(path: &Path, text: &str) -> io::Result<File> {
    if_found(fs::remove_file(path))?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
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

impl Drop for WriterNote {
    fn drop(&mut self) {
        let Some((path, file)) = &self.0 else { return };
        // A command that has replaced the file holds only the old file's lock. The new file may have a writer already.
        if FileIdentity::of_file(file).is_ok_and(|own| own.is_of(path)) {
            // If this fails, the next writer removes it.
            let _ = fs::remove_file(path);
        }
    }
}

/// The user of this process, as `name (uid N)`, or `uid N` without a name; with `sudo`, also the user who ran it.
pub(in crate::store) fn current_user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let by = variable("SUDO_USER")
        .map(|user| format!(", sudo by {user}"))
        .unwrap_or_default();
    let shown = match user_name(uid).or_else(user_variable) {
        Some(name) => format!("{name} (uid {uid}{by})"),
        None => format!("uid {uid}{by}"),
    };
    let shown: String = shown.chars().take(120).collect();
    shown.replace(char::is_control, "?")
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The name of the user in the environment.
pub fn user_variable() -> Option<String> {
    variable("USER").or_else(|| variable("LOGNAME"))
}

/// The last entry in the bucket that the publisher knows of: its slot and hash, the database, and the last commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "described above")]
pub struct PublishedNote {
    /// The URL of the bucket.
    pub url: String,
    #[serde(serialize_with = "id_hex", deserialize_with = "id_of_hex")]
    pub id: DatabaseId,
    pub slot: u64,
    /// The last seq of the entry's last commit. `lineage` is of the same commit.
    pub seq: u64,
    #[serde(serialize_with = "hex", deserialize_with = "of_hex")]
    pub lineage: [u8; 16],
    #[serde(serialize_with = "hex", deserialize_with = "of_hex")]
    pub hash: [u8; 32],
    /// The publisher that took over, if any. Nothing may be written here then.
    pub fenced: Option<String>,
    /// When this publisher first noticed that.
    #[serde(default)]
    pub fenced_at: Option<Timestamp>,
}

fn hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&HEXLOWER.encode(bytes))
}

fn of_hex<'de, D: Deserializer<'de>, const N: usize>(deserializer: D) -> Result<[u8; N], D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = HEXLOWER
        .decode(text.as_bytes())
        .ok()
        .and_then(|bytes| bytes.try_into().ok());
    bytes
        .ok_or_else(|| D::Error::custom(format!("`{text}` is not {N} bytes in hexadecimal digits")))
}

fn id_hex<S: Serializer>(id: &DatabaseId, serializer: S) -> Result<S::Ok, S::Error> {
    hex(&id.0, serializer)
}

fn id_of_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DatabaseId, D::Error> {
    of_hex(deserializer).map(DatabaseId)
}

impl PublishedNote {
    /// A note of a publisher whose database nobody took over.
    pub fn new(
        url: String,
        id: DatabaseId,
        slot: u64,
        hash: [u8; 32],
        Head { seq, lineage }: Head,
    ) -> PublishedNote {
        PublishedNote {
            url,
            id,
            slot,
            seq,
            lineage,
            hash,
            fenced: None,
            fenced_at: None,
        }
    }

    /// The last published commit.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            lineage: self.lineage,
        }
    }

    /// Reads the note of a database; `None` without one. Follows links.
    pub fn read(database: &Path) -> Result<Option<PublishedNote>> {
        let path = published_note_path(&resolve(database));
        let content = match if_found(read_note(&path, MAX_PUBLISHED_BYTES)) {
            Ok(Some(content)) => content,
            Ok(None) => return Ok(None),
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        serde_json::from_slice(&content).map_err(|error| StoreError::BadNote {
            path,
            reason: error.to_string(),
        })
    }

    /// The time since another publisher was noticed, by this machine's clock. Zero if the clock was set back.
    pub fn fenced_for(&self) -> Duration {
        let since_s = self
            .fenced_at
            .map_or(0, |at| now().unix_s().saturating_sub(at.unix_s()));
        Duration::from_secs(u64::try_from(since_s).unwrap_or_default())
    }

    /// Replaces the note of a database in one step, and makes it durable. Follows links.
    pub fn write(&self, database: &Path) -> Result<()> {
        let database = resolve(database);
        let path = published_note_path(&database);
        let write = || {
            let draft = Draft::create_for(&path)?;
            // Users who can write to the database must be able to read the note. The publisher need not be its owner.
            if_found(copy_access(draft.file(), &database))?;
            serde_json::to_writer_pretty(draft.file(), self)?;
            draft.file().write_all(b"\n")?;
            draft.persist()
        };
        write().map_err(|source: io::Error| StoreError::Io {
            path: path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> PublishedNote {
        PublishedNote {
            url: "s3://bucket/feed".to_owned(),
            id: DatabaseId([1; 16]),
            slot: 42,
            seq: u64::MAX,
            lineage: [0xab; 16],
            hash: [2; 32],
            fenced: None,
            fenced_at: None,
        }
    }

    #[test]
    fn a_note_round_trips() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("medfeed.redb");
        assert_eq!(PublishedNote::read(&database).unwrap(), None);
        let fenced = PublishedNote {
            fenced: Some("host b, since noon".to_owned()),
            slot: 43,
            ..note()
        };
        for note in [note(), fenced] {
            note.write(&database).unwrap();
            assert_eq!(PublishedNote::read(&database).unwrap(), Some(note));
        }
        let count = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(count, 1, "the note alone is left");
    }

    #[test]
    fn an_invalid_note_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("medfeed.redb");
        let sound = serde_json::to_string(&note()).unwrap();
        let cases = cases![
            String::new(), "EOF while parsing";
            "[]".to_owned(), "invalid";
            sound.replace("abab", "ab"), "is not 16 bytes in hexadecimal digits";
            sound.replace("\"slot\":42", "\"slot\":-1"), "invalid value";
        ];
        for (text, expected) in cases {
            std::fs::write(folder.path().join("medfeed.redb.published"), &text).unwrap();
            let message = PublishedNote::read(&database).unwrap_err().to_string();
            assert!(
                message.contains(expected)
                    && message.contains("medfeed.redb.published cannot be parsed"),
                "{message}"
            );
        }
    }
}
