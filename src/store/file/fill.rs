//! Filling a new file with a database that is not in use yet: an empty one, or the rows of another.

use std::fs::{File, TryLockError};
use std::ops::Bound;
use std::path::Path;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, Value, WriteTransaction};

use crate::store::check::check;
use crate::store::file::draft::Draft;
use crate::store::file::metadata::{folder_of, resolve};
use crate::store::file::open::{OpenOptions, ReadFile, Writer, retry};
use crate::store::format::meta::known_fields;
use crate::store::format::rows::seal_under;
use crate::store::format::tables::{
    CODED_TABLES, META, META_FIELDS, META_LOCAL, META_SCHEMA, META_SECRET, SCHEMA, on_table,
};
use crate::store::{Result, StoreError};

impl Draft {
    /// Opens the file for writing. Creates a database without tables in an empty file.
    pub fn writer(&self) -> Result<Writer> {
        let busy = || StoreError::Busy {
            path: self.target().to_owned(),
            holder: "another process".to_owned(),
        };
        Writer::try_open(self.path())?.ok_or_else(busy)
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
