//! Upgrades. A file whose rows lack fields of this program is copied, and one more commit renders the rows again. The
//! copy is checked, and replaces the file by rename. The old file gets a second name.
//!
//! The first change of the format after a release adds a step to [`upgrade_rows`], for rows of the older format.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::disk::{self, DiskEvent};
use crate::model::PerDataset;
use crate::store::file::draft::Draft;
use crate::store::file::metadata::{refuse_other_names, resolve};
use crate::store::file::notes::with_ending;
use crate::store::file::open::{OpenOptions, ReadFile, refuse_replica};
use crate::store::file::replace::LockedFile;
use crate::store::format::meta::known_fields;
use crate::store::format::rows::last_commit;
pub use crate::store::format::tables::SCHEMA;
use crate::store::format::tables::{COMMITS, META, META_FIELDS, META_PUBLISH, OUTBOX, REPLICA};
use crate::store::panics::guard;
use crate::store::write_tx::WriteTx;
use crate::store::{Result, StoreError};

/// The upgrade that a file needs: the formats, and the records and size of the file.
#[derive(Debug, Serialize)]
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
#[derive(Debug, Serialize)]
pub struct UpgradeReport {
    /// The upgrade that the file needed.
    #[serde(flatten)]
    pub plan: UpgradePlan,
    /// The path of the old file.
    pub kept: PathBuf,
    /// The size of the new file, in bytes.
    pub bytes_after: u64,
}

/// Plans the upgrade of a file without changing it. `None` if the file needs none. Fails for older replicas.
pub fn plan(path: &Path) -> Result<Option<UpgradePlan>> {
    guard(|| plan_of(&ReadFile::open(&resolve(path), OpenOptions::ANY)?))
}

fn plan_of(file: &ReadFile) -> Result<Option<UpgradePlan>> {
    let version = &file.version;
    if version.is_current() {
        return Ok(None);
    }
    let transaction = file.begin_read()?;
    refuse_replica(&file.path, version, &transaction)?;
    let records = last_commit(&transaction.open_table(COMMITS)?)?.records;
    Ok(Some(UpgradePlan {
        from: version.schema,
        to: SCHEMA,
        records,
        fields: version.missing_fields(),
        bytes: file.stamp.len,
    }))
}

/// Upgrades a file. `None` if the file needs no upgrade.
pub fn upgrade(path: &Path, wait: Duration) -> Result<Option<UpgradeReport>> {
    let path = &resolve(path);
    guard(|| {
        let old = LockedFile::lock(
            path,
            OpenOptions {
                wait,
                ..OpenOptions::ANY
            },
        )?;
        // Another process may have upgraded it in the meantime.
        let Some(plan) = plan_of(&old.file)? else {
            return Ok(None);
        };
        let kept = find_free_name(path, plan.from);
        if !is_same_file(path, &kept) {
            refuse_other_names(path)?;
        }
        let new = Draft::replacing(path)?;
        new.fill_from(&old.file.begin_read()?, &[])?;
        upgrade_rows(&new)?;
        new.check()?;
        let bytes_after = new.bytes()?;
        old.file.stamp.identity.check(path)?;
        keep_old_file(path, &kept)?;
        new.replace(old.file.stamp.identity)?;
        Ok(Some(UpgradeReport {
            plan,
            kept,
            bytes_after,
        }))
    })
}

/// Upgrades the rows of an older copy. Commits keep their seqs. One commit is added, by which records get the new
/// fields. If the file is published, it stays so, but with an empty outbox: a whole state is published next.
pub(in crate::store) fn upgrade_rows(copy: &Draft) -> Result<()> {
    let version = ReadFile::open(copy.path(), OpenOptions::ANY)?.version;
    let writer = copy.writer()?;
    let tx = WriteTx::new(writer.begin_raw()?);
    tx.open(META)?
        .insert(META_FIELDS, known_fields().as_bytes())?;
    let is_published = tx.open(META)?.remove(META_PUBLISH)?.is_some();
    tx.drop_table(OUTBOX)?;
    tx.drop_table(REPLICA)?;
    tx.commit()?;
    let mut edit = writer.begin()?;
    edit.rerender_all()?;
    edit.describe(match version.missing_fields().as_slice() {
        [] => "upgraded: the fields of records are in another order".to_owned(),
        added => format!("upgraded: rows gained {}", added.join(", ")),
    });
    edit.commit()?;
    if is_published {
        writer.mark_published()?;
    }
    Ok(())
}

/// Finds a name for the old file: `medfeed.redb.format-5`, or with a number if an earlier upgrade left that file. A
/// killed upgrade may have linked the file to this name already.
fn find_free_name(path: &Path, schema: u32) -> PathBuf {
    let name = |number: u32| match number {
        1 => with_ending(path, &format!(".format-{schema}")),
        _ => with_ending(path, &format!(".format-{schema}-{number}")),
    };
    let is_free = |kept: &PathBuf| kept.symlink_metadata().is_err() || is_same_file(path, kept);
    (1..).map(name).find(is_free).unwrap_or_else(|| name(1))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| {
        path.symlink_metadata()
            .map(|found| (found.dev(), found.ino()))
            .ok()
    };
    id(one).is_some() && id(one) == id(other)
}

fn keep_old_file(path: &Path, kept: &Path) -> Result<()> {
    match fs::hard_link(path, kept) {
        Ok(()) => disk::report(DiskEvent::Name {
            from: None,
            to: kept,
        }),
        Err(_) if is_same_file(path, kept) => {}
        Err(error) => return Err(StoreError::io(kept)(error)),
    }
    Ok(())
}
