//! Backup and compaction. Both write a complete file and rename it; they never copy over an existing one.
//!
//! Compaction locks the old file until after the rename. A writer that waits for this lock then opens the new file.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use redb::{ReadTransaction, ReadableDatabase, ReadableTable};
use serde::Serialize;

use crate::model::Dataset;
use crate::store::StoreError;
use crate::store::file::copy::{LocalRows, copy_checked};
use crate::store::file::draft::{self, Draft};
use crate::store::file::links::{refuse_irregular, refuse_other_names, resolve};
use crate::store::file::open::{Follower, Writer, new_draft, open_and_repair};
use crate::store::format::replica::has_mark;
use crate::store::format::tables::{META, META_PUBLISH};
use crate::store::panics;
use crate::store::read::snapshot::Snapshot;

/// The numbers of records in a backup, the time of its last commit, and its size in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "described above")]
pub struct BackupReport {
    pub records: BTreeMap<Dataset, u64>,
    pub last_commit_at: Option<String>,
    pub bytes: u64,
}

/// Writes a backup while others read and write. Fails if the copy is damaged, before it gets its name.
pub fn backup(follower: &Follower, target: &Path) -> Result<BackupReport, StoreError> {
    write_backup(follower.path(), &follower.begin_read()?, target)
}

/// Writes a backup of one read transaction.
pub(in crate::store) fn write_backup(
    file: &Path,
    transaction: &ReadTransaction,
    target: &Path,
) -> Result<BackupReport, StoreError> {
    let target = &resolve(target);
    check_target(file, target)?;
    draft::sweep(target);
    let draft = new_draft(target)?;
    let snapshot = Snapshot::open(transaction)?;
    copy_checked(transaction, draft.path(), LocalRows::Skip)?;
    let commit = snapshot.commit();
    let report = BackupReport {
        records: Dataset::ALL.into_iter().map(|of| (of, snapshot.dataset_state(of).records)).collect(),
        last_commit_at: (commit.seq > 0).then(|| commit.time.to_string()),
        bytes: size(draft.path())?,
    };
    persist(draft, target)?;
    Ok(report)
}

/// Fails if a backup must not replace the target: it is the database itself, or no backup. The database need not exist.
pub fn check_target(database: &Path, target: &Path) -> Result<(), StoreError> {
    let Ok(found) = std::fs::metadata(target) else { return Ok(()) };
    let own = std::fs::metadata(database).ok();
    let refused = |reason: &str| Err(StoreError::BadTarget { path: target.to_owned(), reason: reason.to_owned() });
    if own.is_some_and(|own| (found.dev(), found.ino()) == (own.dev(), own.ino())) {
        return refused("it is the database itself");
    }
    refuse_irregular(target)?;
    match Follower::open(target) {
        // Backups of older releases may be replaced too.
        Ok(_) | Err(StoreError::OlderSchema { .. } | StoreError::OlderFields { .. }) => {}
        Err(_) => return refused("it exists and is no backup; choose another name, or remove it"),
    }
    // Backups hold no local rows.
    let (file, _) = open_and_repair(target)?;
    let transaction = file.begin_read()?;
    if has_mark(&transaction)? {
        return refused("it is a replica and no backup; choose another name, or remove it");
    }
    if transaction.open_table(META)?.get(META_PUBLISH)?.is_some() {
        return refused("it is a published database and no backup; choose another name, or remove it");
    }
    Ok(())
}

/// The sizes of a file before and after its compaction, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "two sizes")]
pub struct CompactReport {
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// Rewrites the file at its smallest size. The history does not change, so sync tokens stay valid.
pub fn compact(path: &Path, wait: Duration) -> Result<CompactReport, StoreError> {
    let path = &resolve(path);
    refuse_other_owner(path)?;
    let writer = Writer::open(path, wait)?;
    refuse_other_names(path)?;
    let bytes_before = size(path)?;
    let draft = new_draft(path)?;
    copy_checked(&writer.begin_read()?, draft.path(), LocalRows::Copy)?;
    let bytes_after = size(draft.path())?;
    copy_owner(path, &draft)?;
    writer.check_not_replaced()?;
    persist(draft, path)?;
    drop(writer);
    discard_damage_at_close();
    Ok(CompactReport { bytes_before, bytes_after })
}

/// Discards the damage that was found when the replaced file was closed.
pub(in crate::store) fn discard_damage_at_close() {
    let _ = panics::take_damage_at_close();
}

pub(in crate::store) fn persist(draft: Draft, target: &Path) -> Result<(), StoreError> {
    draft.persist(target).map_err(|source| rename_error(target, source))
}

/// An error of giving a name to another file. A file that is a mount point cannot lose its name.
pub(in crate::store) fn rename_error(target: &Path, source: std::io::Error) -> StoreError {
    if source.kind() != ErrorKind::ResourceBusy {
        return io_error(target, source);
    }
    let reason =
        "it is mounted by itself, so no other file can take its name; mount the folder that contains it instead"
            .to_owned();
    StoreError::BadTarget { path: target.to_owned(), reason }
}

pub(in crate::store) fn copy_owner(old: &Path, draft: &Draft) -> Result<(), StoreError> {
    draft.copy_owner_from(old).map_err(|source| match source.kind() {
        ErrorKind::PermissionDenied => {
            let reason = "it belongs to another user; only its owner or root can replace it".to_owned();
            StoreError::BadTarget { path: old.to_owned(), reason }
        }
        _ => io_error(old, source),
    })
}

/// Fails if a new file cannot get the owner of the one that it replaces. The copy is then not written in vain.
pub(in crate::store) fn refuse_other_owner(path: &Path) -> Result<(), StoreError> {
    if path.exists() { copy_owner(path, &new_draft(path)?) } else { Ok(()) }
}

fn size(path: &Path) -> Result<u64, StoreError> {
    std::fs::metadata(path).map(|found| found.len()).map_err(|source| io_error(path, source))
}

pub(in crate::store) fn io_error(path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), source }
}
