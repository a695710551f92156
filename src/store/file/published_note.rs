//! The publisher's note `NAME.published`, next to the database: commands read from it which commits are published.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use rustix::fs::{Mode, OFlags};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::time::now;
use crate::model::{DatabaseId, Head, Timestamp};
use crate::store::StoreError;
use crate::store::file::draft::Draft;
use crate::store::file::metadata::copy_access;
use crate::store::file::metadata::resolve;

/// The maximum size of a note.
const MAX_BYTES: u64 = 64 << 10;

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
    let bytes = HEXLOWER.decode(text.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| D::Error::custom(format!("`{text}` is not {N} bytes in hexadecimal digits")))
}

fn id_hex<S: Serializer>(id: &DatabaseId, serializer: S) -> Result<S::Ok, S::Error> {
    hex(&id.0, serializer)
}

fn id_of_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DatabaseId, D::Error> {
    of_hex(deserializer).map(DatabaseId)
}

impl PublishedNote {
    /// The last published commit.
    pub fn head(&self) -> Head {
        Head { seq: self.seq, lineage: self.lineage }
    }

    /// Reads the note of a database; `None` without one. Follows links.
    pub fn read(database: &Path) -> Result<Option<PublishedNote>, StoreError> {
        let path = note_path(&resolve(database));
        let content = match read_limited(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        let read = serde_json::from_slice(&content);
        read.map(Some).map_err(|error| StoreError::BadNote { path, reason: error.to_string() })
    }

    /// The time since another publisher was noticed, by this machine's clock. Zero if the clock was set back.
    pub fn fenced_for(&self) -> Duration {
        let since_s = self.fenced_at.map_or(0, |at| now().unix_s().saturating_sub(at.unix_s()));
        Duration::from_secs(u64::try_from(since_s).unwrap_or_default())
    }

    /// Replaces the note of a database in one step, and makes it durable. Follows links.
    pub fn write(&self, database: &Path) -> Result<(), StoreError> {
        let database = resolve(database);
        let path = note_path(&database);
        let write = || {
            let draft = Draft::create_for(&path)?;
            // Users who can write to the database must be able to read the note. The publisher need not be its owner.
            match copy_access(draft.file(), &database) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let text = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
            draft.file().write_all(&text)?;
            draft.file().write_all(b"\n")?;
            draft.persist(&path)
        };
        write().map_err(|source| StoreError::Io { path: path.clone(), source })
    }
}

pub(in crate::store) fn note_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".published");
    PathBuf::from(name)
}

fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    // Don't wait for a pipe of that name.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let mut content = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut content)?;
    Ok(content)
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
        let fenced = PublishedNote { fenced: Some("host b, since noon".to_owned()), slot: 43, ..note() };
        for note in [note(), fenced] {
            note.write(&database).unwrap();
            assert_eq!(PublishedNote::read(&database).unwrap(), Some(note));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the note alone is left");
    }

    #[test]
    fn an_invalid_note_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("medfeed.redb");
        let sound = serde_json::to_string(&note()).unwrap();
        let cases = [
            (String::new(), "EOF while parsing"),
            ("[]".to_owned(), "invalid"),
            (sound.replace("abab", "ab"), "is not 16 bytes in hexadecimal digits"),
            (sound.replace("\"slot\":42", "\"slot\":-1"), "invalid value"),
        ];
        for (text, expected) in cases {
            std::fs::write(folder.path().join("medfeed.redb.published"), &text).unwrap();
            let message = PublishedNote::read(&database).unwrap_err().to_string();
            assert!(
                message.contains(expected) && message.contains("medfeed.redb.published cannot be parsed"),
                "{message}"
            );
        }
    }
}
