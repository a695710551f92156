//! A new file, written next to the file that it replaces, and put in its place when it is complete.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, TableHandle, Value, WriteTransaction};

use crate::store::StoreError;
use crate::store::check::check;
use crate::store::file::draft::{self, Draft};
use crate::store::file::links::refuse_irregular;
use crate::store::file::metadata::{FileIdentity, copy_owner};
use crate::store::file::open::{OpenOptions, Writer};
use crate::store::format::outbox::read_all;
use crate::store::format::rows::optional_table;
use crate::store::format::secret;
use crate::store::format::tables::{self, CODED_TABLES, META, META_FIELDS, META_SCHEMA, META_SECRET, SCHEMA, on_table};
use crate::store::format::version::known_fields;

/// The treatment of local rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum LocalRows {
    /// Copies them, for a copy that replaces the file.
    Copy,
    /// Leaves them out, for a copy that is a separate database.
    Skip,
}

/// A draft and the path that it gets. Dropping it removes it.
#[derive(Debug)]
pub(in crate::store) struct NewFile {
    draft: Draft,
    target: PathBuf,
}

impl NewFile {
    /// Creates an empty file, and removes abandoned drafts. The caller follows links.
    pub fn create(target: &Path) -> Result<NewFile, StoreError> {
        draft::sweep(target);
        let draft = Draft::create_for(target).map_err(StoreError::io(super::links::folder_of(target)))?;
        Ok(NewFile { draft, target: target.to_owned() })
    }

    /// Creates an empty file like [`NewFile::create`]. Fails if it could not replace the file at `target`, so that the
    /// copy is not written in vain.
    pub fn replacing(target: &Path) -> Result<NewFile, StoreError> {
        refuse_irregular(target)?;
        if target.exists() {
            NewFile::create(target)?.copy_owner()?;
        }
        NewFile::create(target)
    }

    /// A path by which this process can open the file.
    pub fn path(&self) -> &Path {
        self.draft.path()
    }

    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The size in bytes.
    pub fn bytes(&self) -> Result<u64, StoreError> {
        self.draft.file().metadata().map(|found| found.len()).map_err(StoreError::io(&self.target))
    }

    /// Opens the file for writing. Creates a database without tables in an empty file.
    pub fn writer(&self) -> Result<Writer, StoreError> {
        let busy = || StoreError::Busy { path: self.target.clone(), holder: "another process".to_owned() };
        Writer::try_open(self.path())?.ok_or_else(busy)
    }

    /// Copies the bytes of another file.
    pub fn fill_from_file(&self, from: &Path) -> Result<(), StoreError> {
        let copied = fs::File::open(from).and_then(|mut from| io::copy(&mut from, &mut self.draft.file()));
        copied.map(drop).map_err(StoreError::io(from))
    }

    /// Writes an empty database.
    pub fn fill_empty(&self) -> Result<(), StoreError> {
        self.fill(write_empty)
    }

    /// Copies all rows of a transaction. So the copy has the smallest size, and nothing of the old file's free pages.
    pub fn fill_from(&self, from: &ReadTransaction, local: LocalRows) -> Result<(), StoreError> {
        self.fill(|to| {
            for code in 0..CODED_TABLES {
                on_table!(code, table => copy_table(from, to, table, local)?);
            }
            let outbox = optional_table(from.open_table(tables::OUTBOX))?.filter(|_| local == LocalRows::Copy);
            match outbox.map(|outbox| read_all(&outbox)).transpose() {
                Ok(None) => Ok(()),
                Ok(Some(())) => copy_table(from, to, tables::OUTBOX, local),
                // A damaged outbox is left out. The publisher then publishes a whole state, which needs no outbox.
                Err(error) if error.outbox_damage().is_some() => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    fn fill(&self, fill: impl FnOnce(&WriteTransaction) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let writer = self.writer()?;
        let transaction = writer.begin_raw()?;
        fill(&transaction)?;
        Ok(transaction.commit()?)
    }

    /// Fails unless the whole file is a sound database of this version.
    pub fn check(&self) -> Result<(), StoreError> {
        let mut writer = Writer::open_file(self.path(), OpenOptions::ANY_CURRENT)?;
        let report = check(&mut writer)?;
        writer.close()?;
        report.findings.into_iter().next().map_or(Ok(()), |found| Err(StoreError::damaged(found.table, found.detail)))
    }

    fn copy_owner(&self) -> Result<(), StoreError> {
        copy_owner(self.draft.file(), &self.target).map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => {
                let reason = "it belongs to another user; only its owner or root can replace it".to_owned();
                StoreError::BadTarget { path: self.target.clone(), reason }
            }
            _ => StoreError::io(&self.target)(source),
        })
    }

    /// Gives the file its name. Fails if another file has the name.
    pub fn persist_new(self) -> Result<(), StoreError> {
        self.draft.persist_noclobber(&self.target).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => StoreError::Replaced { path: self.target.clone() },
            _ => StoreError::io(&self.target)(source),
        })
    }

    /// Replaces the file `old`, whose lock the caller holds. The new file gets its owner and permissions. Fails if
    /// another file has come to this name.
    pub fn replace(self, old: FileIdentity) -> Result<(), StoreError> {
        self.copy_owner()?;
        old.check(&self.target)?;
        self.replace_any()
    }

    /// Gives the file its name, in place of any other.
    pub fn replace_any(self) -> Result<(), StoreError> {
        self.draft.persist(&self.target).map_err(|source| match source.kind() {
            // A file that is a mount point cannot lose its name.
            ErrorKind::ResourceBusy => {
                let reason = "it is mounted by itself, so no other file can take its name; mount the folder that \
                              contains it instead"
                    .to_owned();
                StoreError::BadTarget { path: self.target.clone(), reason }
            }
            _ => StoreError::io(&self.target)(source),
        })
    }
}

/// Writes the rows and tables of an empty database.
pub(in crate::store) fn write_empty(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random)?;
    let mut meta = transaction.open_table(META)?;
    meta.insert(META_SCHEMA, SCHEMA.to_le_bytes().as_slice())?;
    meta.insert(META_FIELDS, known_fields().as_bytes())?;
    meta.insert(META_SECRET, secret::encode(&random)?.as_slice())?;
    drop(meta);
    tables::create_tables(transaction)
}

fn copy_table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'static, K, V>,
    local: LocalRows,
) -> Result<(), StoreError> {
    let code = tables::code_of(table.name());
    let mut target = to.open_table(table)?;
    let mut cursor = target.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)?;
    for entry in from.open_table(table)?.iter()? {
        let (key, value) = entry?;
        let is_local = code.is_some_and(|code| tables::is_local(code, K::as_bytes(&key.value()).as_ref()));
        if !is_local || local == LocalRows::Copy {
            cursor.insert_before(key.value(), value.value())?;
        }
    }
    Ok(cursor.close()?)
}
