//! Backup and compaction, and the lock of a file that another one replaces. Both write a complete file and rename it.
//!
//! Compaction locks the old file until after the rename. A writer that waits for this lock then opens the new file.
//!
//! # Replacing a file
//!
//! Nothing is ever copied over an existing file. A new file is written next to the old one and then renamed
//! (`Draft` in `store/file/draft.rs`). `compact`, `restore` and `upgrade` lock the old file, but do not open it for
//! writing (`LockedFile`). So none of its bytes change.
//!
//! - **`backup`** copies row by row from a read transaction, checks the whole copy, and renames it. It replaces no
//!   file with the local rows of a replica or of a published database, because a backup never has them.
//! - **`compact`** does the same, under the lock of the old file.
//! - **`restore`** copies the backup, checks it, and gives every commit a new lineage. So every older token gets 410.
//!   It takes revocations and the secret of tokens from the replaced database, adds a commit that names both
//!   histories, and renames. A server that finds a file of another history logs a warning with the text of that
//!   commit.
//! - **`upgrade`** (`store/restore.rs`) writes a copy in today's format, checks it, gives the old file a second name,
//!   and renames the copy. A file stores which fields the JSON of its records has (`store/format/meta.rs`). If this
//!   program has more fields, the upgrade ends with a commit that writes the records again. So the fields reach every
//!   copy by its feed. `restore` does the same with an older backup. A file of another format is refused.
//!
//! A file with several hard links is not replaced, because the names would then lead to different files. A new file
//! gets the owner of the old one. So only that owner or root can replace it. The folder is opened before the rename,
//! because a user who may not read it cannot sync it.
//!
//! All of these write *drafts* (`store/file/draft.rs`): files without a name, which disappear when the program is
//! killed. Linux can link such a file only to a free name. So to replace a file, the draft is linked next to it and
//! then renamed. On systems without such files, a draft has a name from the start. It is locked while its process
//! lives, and the next writer deletes drafts without a lock.
//!
//! A new file is filled with an empty database, or with the rows of another, before it is used.

use std::fs::{File, TryLockError};
use std::ops::Bound;
use std::path::Path;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redb::backends::FileBackend;
use redb::{
    Key, ReadTransaction, ReadableTable, StorageBackend, TableDefinition, Value, WriteTransaction,
};
use serde::Serialize;

use super::draft::Draft;
use super::metadata::{FileIdentity, refuse_irregular, refuse_other_names, resolve};
use super::notes::WriterNote;
use super::open::{OpenOptions, ReadFile, Reader, Writer, io_error, retry};
use crate::disk::folder_of;
use crate::model::PerDataset;
use crate::store::check::check;
use crate::store::error::opaque_debug;
use crate::store::format::meta::known_fields;
use crate::store::format::rows::seal_under;
use crate::store::format::tables::{
    CODED_TABLES, META, META_FIELDS, META_LOCAL, META_PUBLISH, META_SCHEMA, META_SECRET, SCHEMA,
    on_table,
};
use crate::store::read::snapshot::Snapshot;
use crate::store::{Result, StoreError};

/// The numbers of records in a backup, the time of its last commit, and its size in bytes.
#[derive(Debug, Serialize)]
pub struct BackupReport {
    /// The records of each dataset.
    pub records: PerDataset<u64>,
    /// The time of the last commit; `None` without commits.
    pub last_commit_at: Option<String>,
    /// The size of the backup.
    pub bytes: u64,
}

/// Writes a backup while others read and write. Fails if the copy is damaged, before it gets its name.
pub fn backup(reader: &Reader, target: &Path) -> Result<BackupReport> {
    write_backup(&reader.file.path, &reader.file.begin_read()?, target)
}

/// Writes a backup of one read transaction.
pub(crate) fn write_backup(
    file: &Path,
    transaction: &ReadTransaction,
    target: &Path,
) -> Result<BackupReport> {
    let target = &resolve(target);
    check_target(file, target)?;
    let new = Draft::create(target)?;
    let snapshot = Snapshot::open(transaction)?;
    new.fill_from(transaction, &META_LOCAL)?;
    new.check()?;
    let report = BackupReport {
        records: snapshot.totals().records,
        last_commit_at: snapshot.commit().time_text(),
        bytes: new.bytes()?,
    };
    new.replace_any()?;
    Ok(report)
}

/// Fails if a backup must not replace the target: it is the database itself, or no backup. The database need not exist.
pub fn check_target(database: &Path, target: &Path) -> Result<()> {
    let Ok(found) = FileIdentity::of_path(target) else {
        return Ok(());
    };
    let refused = |reason: &str| {
        Err(StoreError::BadTarget {
            path: target.to_owned(),
            reason: reason.to_owned(),
        })
    };
    if found.is_of(database) {
        return refused("it is the database itself");
    }
    refuse_irregular(target)?;
    // Backups of older releases may be replaced too. No backup has local rows.
    let is_backup = match ReadFile::open(
        target,
        OpenOptions {
            older: true,
            ..OpenOptions::default()
        },
    ) {
        Ok(file) => file
            .begin_read()?
            .open_table(META)?
            .get(META_PUBLISH)?
            .is_none(),
        Err(error) => matches!(error, StoreError::OlderSchema { .. }),
    };
    if is_backup {
        Ok(())
    } else {
        refused("it exists and is no backup; choose another name, or remove it")
    }
}

/// The sizes of a file before and after its compaction, in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CompactReport {
    /// Of the old file.
    pub bytes_before: u64,
    /// Of the new file.
    pub bytes_after: u64,
}

/// Rewrites the file at its smallest size. Below one megabyte it may grow, but only by holes, which take no room on the
/// disk. The history does not change, so sync tokens stay valid.
pub fn compact(path: &Path, wait: Duration) -> Result<CompactReport> {
    let path = &resolve(path);
    if !path.exists() {
        return Err(StoreError::NotFound {
            path: path.to_owned(),
        });
    }
    let new = Draft::replacing(path)?;
    let old = LockedFile::lock(
        path,
        OpenOptions {
            wait,
            ..OpenOptions::default()
        },
    )?;
    refuse_other_names(path)?;
    let bytes_before = old.file.stamp.len;
    new.fill_from(&old.file.begin_read()?, &[])?;
    new.check()?;
    let bytes_after = new.bytes()?;
    new.replace(old.file.stamp.identity)?;
    Ok(CompactReport {
        bytes_before,
        bytes_after,
    })
}

/// The bytes that a redb writer locks, far beyond the end of any file (redb's design document, "Lock bytes").
const REDB_WRITER_LOCK: [u64; 2] = [(1 << 62) + 1, 1 << 62];

/// Takes the writer's lock of a file without opening it as a database; `None` if a writer holds it.
fn lock_as_writer(path: &Path) -> Result<Option<FileBackend>> {
    let file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(io_error(path))?;
    let Ok(backend) = FileBackend::new(file) else {
        return Ok(None);
    };
    let mut bytes = REDB_WRITER_LOCK.into_iter();
    let is_locked = bytes.all(|byte| {
        matches!(
            backend.try_lock_range(Bound::Included(byte), Bound::Included(byte)),
            Ok(true)
        )
    });
    Ok(is_locked.then_some(backend))
}

pub(crate) struct LockedFile {
    // Dropped first, because the note belongs to the next writer as soon as the lock is free.
    _note: WriterNote,
    pub file: ReadFile,
    _lock: FileBackend,
}

impl LockedFile {
    /// Repairs a file if necessary, and locks it. The caller follows links.
    pub fn lock(path: &Path, options: OpenOptions) -> Result<LockedFile> {
        retry(path, options.wait, || {
            let file = ReadFile::open(path, options)?;
            // A writer may have written or replaced the file between opening and locking.
            let lock = lock_as_writer(path)?.filter(|_| file.stamp.identity.is_of(path));
            Ok(lock.map(|lock| LockedFile {
                _note: WriterNote::create(path),
                file,
                _lock: lock,
            }))
        })
    }
}

opaque_debug!(LockedFile);

impl Draft {
    /// Opens the file for writing. Creates a database without tables in an empty file.
    pub fn writer(&self) -> Result<Writer> {
        Writer::try_open(self.path())?.ok_or_else(|| StoreError::Busy {
            path: self.target().to_owned(),
            holder: "another process".to_owned(),
        })
    }

    /// Copies all rows of a transaction but those of `meta` with some keys. So the copy has the smallest size, and
    /// nothing of the old file's free pages. The outbox is left out: if it had unpublished commits, the publisher finds
    /// a gap, and publishes a whole state.
    pub fn fill_from(&self, from: &ReadTransaction, without: &[&str]) -> Result<()> {
        self.fill(|to| {
            for code in 0..CODED_TABLES {
                on_table!(code, table => copy_table(from, to, table)?);
            }
            let mut meta = to.open_table(META)?;
            without
                .iter()
                .try_for_each(|key| meta.remove(key).map(drop))?;
            Ok(())
        })
    }

    fn fill(&self, fill: impl FnOnce(&WriteTransaction) -> Result<()>) -> Result<()> {
        let writer = self.writer()?;
        let transaction = writer.begin_raw()?;
        fill(&transaction)?;
        Ok(transaction.commit()?)
    }

    /// Fails unless the whole file is a sound database of this version.
    pub fn check(&self) -> Result<()> {
        let mut writer = Writer::open_file(self.path(), OpenOptions::ANY_CURRENT)?;
        let report = check(&mut writer)?;
        writer.close()?;
        report.findings.into_iter().next().map_or(Ok(()), |found| {
            Err(StoreError::damaged(found.table, found.detail))
        })
    }
}

impl Writer {
    /// Opens a database for writing, or creates it. A new one gets its name with its first commit, even an empty one.
    /// So a refused or killed command leaves no file. The target of a dangling link is created.
    pub fn open_or_create(path: &Path, wait: Duration) -> Result<Writer> {
        let deadline = Instant::now() + wait;
        let path = &resolve(path);
        let folder = folder_of(path);
        let creating = File::open(folder).map_err(StoreError::io(folder))?;
        let created_meanwhile = retry(path, wait, || {
            Ok(match creating.try_lock() {
                _ if path.exists() => Some(true),
                Ok(()) => Some(false),
                Err(TryLockError::WouldBlock) => None,
                // If folders cannot be locked, the first process creates the database, and the others fail.
                Err(TryLockError::Error(_)) => Some(false),
            })
        })?;
        if created_meanwhile {
            drop(creating);
            return Writer::open(path, deadline.saturating_duration_since(Instant::now()));
        }
        let file = Draft::create(path)?;
        file.fill(write_empty)?;
        let mut writer = Writer::open_file(file.path(), OpenOptions::ANY_CURRENT)?;
        path.clone_into(&mut writer.path);
        writer.unnamed = Mutex::new(Some((file, creating)));
        Ok(writer)
    }
}

impl Writer {
    /// Opens a copy of the last commit, or of an empty database if there is none, for changes that are only shown. The
    /// copy is in the folder for temporary files, and disappears with the writer. It needs neither the lock nor the
    /// right to write.
    pub fn of_copy(path: &Path) -> Result<Writer> {
        let copy = Draft::create(&std::env::temp_dir().join("medfeed.redb"))?;
        if path.exists() {
            let file = ReadFile::open(path, OpenOptions::default())?;
            copy.fill_from(&file.begin_read()?, &META_LOCAL)?;
        } else {
            copy.fill(write_empty)?;
        }
        copy.writer()
    }
}

/// Creates all tables that have codes.
pub fn create_tables(transaction: &WriteTransaction) -> Result<()> {
    for code in 0..CODED_TABLES {
        on_table!(code, table => transaction.open_table(table).map(drop)).transpose()?;
    }
    Ok(())
}

/// Writes the rows and tables of an empty database.
fn write_empty(transaction: &WriteTransaction) -> Result<()> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random)?;
    let mut meta = transaction.open_table(META)?;
    meta.insert(META_SCHEMA, SCHEMA.to_le_bytes().as_slice())?;
    meta.insert(META_FIELDS, known_fields().as_bytes())?;
    meta.insert(
        META_SECRET,
        seal_under(META_SECRET.as_bytes(), &random)?.as_slice(),
    )?;
    drop(meta);
    create_tables(transaction)
}

fn copy_table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'static, K, V>,
) -> Result<()> {
    let mut target = to.open_table(table)?;
    let mut cursor = target.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)?;
    for entry in from.open_table(table)?.iter()? {
        let (key, value) = entry?;
        cursor.insert_before(key.value(), value.value())?;
    }
    Ok(cursor.close()?)
}
