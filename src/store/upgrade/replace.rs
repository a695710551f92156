//! Upgrading the file of a database.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::upgrade_copy;
use crate::disk;
use crate::model::PerDataset;
use crate::store::StoreError;
use crate::store::file::draft::{self, Draft};
use crate::store::file::links::{refuse_other_names, resolve};
use crate::store::file::older::OldFile;
use crate::store::file::open::{open_and_repair, version_of};
use crate::store::file::replace::{copy_owner, refuse_other_owner, rename_error};
use crate::store::file::writer_note::WriterNote;
use crate::store::format::replica::find_mark;
use crate::store::format::tables::{COMMITS, SCHEMA};
use crate::store::format::version::{FieldDifference, Version};
use crate::store::panics::guard;
use crate::store::read::snapshot::last_commit;
use redb::{ReadTransaction, ReadableDatabase};

/// The maximum number of names tried for the old file.
const MAX_KEPT: u32 = 1_000;

/// The upgrade that a file needs: the formats, and the records and size of the file.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "described above")]
pub struct UpgradePlan {
    pub from: u32,
    pub to: u32,
    pub records: PerDataset<u64>,
    /// The fields that rows gain, such as `conferences.acronym`.
    pub fields: Vec<String>,
    pub bytes: u64,
}

/// A finished upgrade.
#[derive(Clone, Debug, Serialize)]
pub struct UpgradeReport {
    /// The upgrade that the file needed.
    #[serde(flatten)]
    pub plan: UpgradePlan,
    /// The path of the old file.
    pub kept: PathBuf,
    /// The size of the new file, in bytes.
    pub bytes_after: u64,
}

/// Plans the upgrade of a file without changing it. `None` if the file needs none. Fails for replicas.
pub fn plan(path: &Path) -> Result<Option<UpgradePlan>, StoreError> {
    let path = &resolve(path);
    guard(|| {
        let (database, _) = open_and_repair(path)?;
        let version = version_of(path, &database)?;
        plan_of(path, &version, &database.begin_read()?)
    })
}

fn plan_of(path: &Path, version: &Version, from: &ReadTransaction) -> Result<Option<UpgradePlan>, StoreError> {
    if version.is_current() {
        return Ok(None);
    }
    version.check_format(path)?;
    if let Some(mark) = find_mark(from)? {
        return Err(StoreError::OlderReplica { path: path.to_owned(), url: mark.url });
    }
    let fields = match version.field_difference() {
        FieldDifference::Added(added) => added,
        FieldDifference::None | FieldDifference::Unknown(_) => Vec::new(),
    };
    let records = last_commit(&from.open_table(COMMITS)?)?.map(|(_, commit)| commit.records).unwrap_or_default();
    Ok(Some(UpgradePlan { from: version.schema, to: SCHEMA, records, fields, bytes: size(path)? }))
}

/// Upgrades a file. Calls `each` after each record. `None` if the file needs no upgrade.
pub fn upgrade(
    path: &Path,
    wait: Duration,
    each: &mut dyn FnMut() -> Result<(), StoreError>,
) -> Result<Option<UpgradeReport>, StoreError> {
    let path = &resolve(path);
    if plan(path)?.is_none() {
        return Ok(None);
    }
    guard(|| {
        let old = OldFile::lock(path, wait)?;
        let _note = WriterNote::create(path);
        let from = old.begin_read()?;
        // Another process may have upgraded it in the meantime.
        let Some(plan) = plan_of(path, old.version(), &from)? else { return Ok(None) };
        draft::sweep(path);
        let kept = find_free_name(path, plan.from)?;
        if !is_same_file(path, &kept) {
            refuse_other_names(path)?;
        }
        refuse_other_owner(path)?;
        let draft = upgrade_copy(&from, old.version(), path, each)?;
        copy_owner(path, &draft)?;
        let bytes_after = draft.file().metadata().map_err(|source| io_error(path, source))?.len();
        old.check_not_replaced()?;
        keep_old_file(path, &kept)?;
        draft.persist(path).map_err(|source| rename_error(path, source))?;
        Ok(Some(UpgradeReport { plan, kept, bytes_after }))
    })
}

/// Finds a name for the old file: `medfeed.redb.format-4`, or with a number if an earlier upgrade left that file. A
/// killed upgrade may have linked the file to this name already.
fn find_free_name(path: &Path, schema: u32) -> Result<PathBuf, StoreError> {
    let name = |number: u32| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".format-{schema}"));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        path.with_file_name(name)
    };
    let is_free = |kept: &PathBuf| kept.symlink_metadata().is_err() || is_same_file(path, kept);
    (1..MAX_KEPT).map(name).find(is_free).ok_or_else(|| StoreError::BadTarget {
        path: name(1),
        reason:
            "it and hundreds of others of its kind are left from earlier upgrades; remove those that you do not need"
                .to_owned(),
    })
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.symlink_metadata().map(|found| (found.dev(), found.ino())).ok();
    id(one).is_some() && id(one) == id(other)
}

fn keep_old_file(path: &Path, kept: &Path) -> Result<(), StoreError> {
    match fs::hard_link(path, kept) {
        Ok(()) => {
            disk::named(None, kept);
            Ok(())
        }
        Err(_) if is_same_file(path, kept) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let reason = "it was made by another process meanwhile; run the command again".to_owned();
            Err(StoreError::BadTarget { path: kept.to_owned(), reason })
        }
        // Some file systems have no hard links. Copy the file instead.
        Err(_) => copy_file(path, kept).map_err(|source| io_error(kept, source)),
    }
}

fn copy_file(path: &Path, kept: &Path) -> io::Result<()> {
    let draft = Draft::create_for(kept)?;
    io::copy(&mut fs::File::open(path)?, &mut draft.file())?;
    draft.copy_owner_from(path)?;
    draft.persist_noclobber(kept)
}

fn size(path: &Path) -> Result<u64, StoreError> {
    fs::metadata(path).map(|found| found.len()).map_err(|source| io_error(path, source))
}

fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), source }
}
