//! Restoring a backup. Parts of the replaced database are carried over, such as revocations.
//!
//! The lock of the old file is held until after the rename. A writer that waits for this lock then opens the new file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::backends::FileBackend;
use redb::{ReadTransaction, ReadableTable};
use serde::Serialize;

use crate::model::time::now;
use crate::model::{DatabaseId, Dataset, KeyHash, KeyRecord, License, Timestamp};
use crate::store::StoreError;
use crate::store::file::copy::check_file;
use crate::store::file::draft::{self, Draft};
use crate::store::file::links::{refuse_irregular, refuse_other_names, resolve};
use crate::store::file::older::{OldFile, lock_as_writer};
use crate::store::file::open::{Writer, new_draft};
use crate::store::file::publish::{OriginIdentity, put_history_entry, refuse_fenced, remove_local_rows};
use crate::store::file::published_note::PublishedNote;
use crate::store::file::replace::{copy_owner, discard_damage_at_close, io_error, persist, refuse_other_owner};
use crate::store::format::codec::{StoredCommit, seal, seal_under, unseal_commit, unseal_under};
use crate::store::format::publish::database_id;
use crate::store::format::replica::find_mark;
use crate::store::format::rows::load_rows;
use crate::store::format::secret;
use crate::store::format::tables;
use crate::store::panics::guard;
use crate::store::read::history::RESTORED;
use crate::store::read::snapshot::{CommitPoint, Snapshot, last_commit};
use crate::store::upgrade::upgrade_copy;
use crate::store::write_tx::WriteTx;

/// The differences between the replaced database and the backup.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RestoreDifferences {
    /// The time of the backup's last commit.
    pub restored_to: Option<String>,
    /// The time of the replaced database's last commit.
    pub replaced_from: Option<String>,
    /// The number of records per dataset, in the replaced database and in the backup.
    pub records: BTreeMap<Dataset, (u64, u64)>,
    /// Licenses that differ, or are in only one of the two.
    pub licenses: Vec<LicenseDifference>,
    /// The ids of keys that stop working.
    pub keys_that_stop: Vec<String>,
    /// The ids of keys that are usable in the backup, but stay revoked.
    pub keys_that_stay_revoked: Vec<String>,
    /// Why the replaced database could not be read. Its revocations are then lost.
    pub unreadable: Option<String>,
}

/// A license that differs between the replaced database and the backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "described above")]
pub struct LicenseDifference {
    pub license: String,
    pub change: &'static str,
}

/// A prepared restore.
#[derive(Debug)]
pub struct Restoration {
    draft: Draft,
    target: PathBuf,
    differences: RestoreDifferences,
    /// The lock of the old file, held until after the rename.
    lock: OldFileLock,
}

#[derive(Debug)]
enum OldFileLock {
    None,
    Older(Box<OldFile>),
    Locked(Box<Writer>),
    Damaged(#[allow(dead_code, reason = "held for its lock")] Box<FileBackend>),
}

/// The parts of the replaced database that are carried over.
#[derive(Default)]
struct CarriedOver {
    secret: Option<[u8; 32]>,
    /// The time of its last commit.
    committed: Timestamp,
    /// The seq of that commit; 0 if there is none, or it cannot be read.
    seq: u64,
    keys: BTreeMap<[u8; 32], KeyRecord>,
    licenses: Vec<License>,
    /// Its identity, if it is published.
    origin: Option<OriginIdentity>,
}

impl Restoration {
    /// Copies and checks the backup, renews its lineages, carries revocations over, and adds a commit that describes
    /// the restore. Does not change the database yet.
    pub fn prepare(target: &Path, backup: &Path, wait: Duration) -> Result<Restoration, StoreError> {
        let target = &resolve(target);
        let found = std::fs::metadata(backup).map_err(|source| io_error(backup, source))?;
        if std::fs::metadata(target).is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino())) {
            let reason = "it is the database itself".to_owned();
            return Err(StoreError::BadTarget { path: backup.to_owned(), reason });
        }
        refuse_irregular(target)?;
        refuse_other_names(target)?;
        refuse_other_owner(target)?;
        draft::sweep(target);
        let draft = new_draft(target)?;
        let copied = File::open(backup).and_then(|mut from| std::io::copy(&mut from, &mut draft.file()));
        copied.map_err(|source| io_error(backup, source))?;
        let draft = match guard(|| check_file(draft.path())) {
            Ok(()) => draft,
            Err(StoreError::OlderFields { .. }) => {
                let upgraded = guard(|| upgraded_copy(&OldFile::lock(draft.path(), Duration::ZERO)?, target));
                upgraded.map_err(|error| with_backup_path(error, backup))?
            }
            Err(error) => return Err(with_backup_path(error, backup)),
        };

        let mut differences = RestoreDifferences::default();
        let writer = Writer::open_draft(draft.path())?;
        let backup_id = database_id(&writer.begin_read()?.open_table(tables::META)?)?;
        let (lock, kept) = Restoration::lock_old(target, backup_id, wait, &mut differences)?;
        let restored = compare(&writer.begin_read()?, &kept, &mut differences)?;
        let what = describe(restored, &kept, differences.unreadable.is_some());
        let tx = WriteTx::new(writer.begin_raw()?);
        renew_lineages(&tx)?;
        keep_revocations(&tx, &kept)?;
        remove_local_rows(&tx)?;
        match &kept.origin {
            Some(origin) => origin.put(&tx, kept.committed, &what)?,
            None => drop(put_history_entry(&tx, &what)?),
        }
        tx.commit()?;
        if kept.origin.is_some() {
            writer.mark_published()?;
        }
        Ok(Restoration { draft, target: target.to_owned(), differences, lock })
    }

    /// Locks the old file, and reads the parts that are carried over. `backup` is the id of the backup, if it has one.
    fn lock_old(
        target: &Path,
        backup: Option<DatabaseId>,
        wait: Duration,
        differences: &mut RestoreDifferences,
    ) -> Result<(OldFileLock, CarriedOver), StoreError> {
        if !target.exists() {
            // Without a file, the note may be left from another database. Then the backup can have another id.
            let note = PublishedNote::read(target)?.filter(|note| backup.is_none_or(|id| id == note.id));
            refuse_fenced(target, note.as_ref())?;
            let origin = note.as_ref().map(OriginIdentity::of_note);
            return Ok((OldFileLock::None, CarriedOver { origin, ..CarriedOver::default() }));
        }
        match guard(|| Writer::open(target, wait)) {
            Ok(writer) => {
                let note = read_note(target)?;
                let read = guard(|| read_kept(&writer.begin_read()?, differences));
                let kept = Restoration::kept_or_unreadable(read, note.as_ref(), differences);
                Ok((OldFileLock::Locked(Box::new(writer)), kept))
            }
            Err(StoreError::OlderFields { .. }) => {
                let old = OldFile::lock(target, wait)?;
                let note = read_note(target)?;
                if let Ok(Some(mark)) = guard(|| find_mark(&old.begin_read()?)) {
                    return Err(StoreError::OlderReplica { path: target.to_owned(), url: mark.url });
                }
                let read = guard(|| {
                    let upgraded = upgraded_copy(&old, target)?;
                    read_kept(&Writer::open_draft(upgraded.path())?.begin_read()?, differences)
                });
                let kept = Restoration::kept_or_unreadable(read, note.as_ref(), differences);
                Ok((OldFileLock::Older(Box::new(old)), kept))
            }
            Err(error @ (StoreError::NotADatabase { .. } | StoreError::Damaged { .. } | StoreError::Engine(_))) => {
                differences.unreadable = Some(error.to_string());
                let busy = || StoreError::Busy { path: target.to_owned(), holder: "another process".to_owned() };
                let lock = lock_as_writer(target)?.ok_or_else(busy)?;
                let origin = read_note(target)?.as_ref().map(OriginIdentity::of_note);
                Ok((OldFileLock::Damaged(Box::new(lock)), CarriedOver { origin, ..CarriedOver::default() }))
            }
            Err(error) => Err(error),
        }
    }

    /// If reading failed, only the identity in the publisher's note is carried over.
    fn kept_or_unreadable(
        read: Result<CarriedOver, StoreError>,
        note: Option<&PublishedNote>,
        differences: &mut RestoreDifferences,
    ) -> CarriedOver {
        read.unwrap_or_else(|error| {
            differences.unreadable = Some(error.to_string());
            CarriedOver { origin: note.map(OriginIdentity::of_note), ..CarriedOver::default() }
        })
    }

    /// The differences between the replaced database and the backup.
    pub fn differences(&self) -> &RestoreDifferences {
        &self.differences
    }

    /// Replaces the database. After an error, it is unchanged.
    pub fn finish(self) -> Result<(), StoreError> {
        let Restoration { draft, target, lock, .. } = self;
        // Another file may have come to this name since. It was not compared, so it is not replaced.
        match &lock {
            OldFileLock::None => {
                return draft.persist_noclobber(&target).map_err(|source| match source.kind() {
                    ErrorKind::AlreadyExists => StoreError::Replaced { path: target.clone() },
                    _ => io_error(&target, source),
                });
            }
            OldFileLock::Older(old) => old.check_not_replaced()?,
            OldFileLock::Locked(writer) => writer.check_not_replaced()?,
            OldFileLock::Damaged(_) => {}
        }
        copy_owner(&target, &draft)?;
        persist(draft, &target)?;
        drop(lock);
        discard_damage_at_close();
        Ok(())
    }
}

/// Reads the publisher's note of the replaced database. Fails if another publisher took over.
fn read_note(target: &Path) -> Result<Option<PublishedNote>, StoreError> {
    let note = PublishedNote::read(target)?;
    refuse_fenced(target, note.as_ref())?;
    Ok(note)
}

/// Copies an older file into the format of this program.
fn upgraded_copy(old: &OldFile, target: &Path) -> Result<Draft, StoreError> {
    upgrade_copy(&old.begin_read()?, old.version(), target, &mut || Ok(()))
}

/// Names the backup in an error, instead of the draft.
fn with_backup_path(error: StoreError, backup: &Path) -> StoreError {
    let reason = match error {
        StoreError::Damaged { table, detail } => format!("table `{table}`: {detail}"),
        StoreError::NotADatabase { reason, .. } => reason,
        StoreError::NewerSchema { found, known, .. } => {
            return StoreError::NewerSchema { path: backup.to_owned(), found, known };
        }
        StoreError::NewerFields { unknown, .. } => {
            return StoreError::NewerFields { path: backup.to_owned(), unknown };
        }
        StoreError::OlderSchema { found, known, .. } => {
            return StoreError::OlderSchema { path: backup.to_owned(), found, known };
        }
        other => other.to_string(),
    };
    StoreError::BadBackup { path: backup.to_owned(), reason }
}

fn read_kept(transaction: &ReadTransaction, differences: &mut RestoreDifferences) -> Result<CarriedOver, StoreError> {
    let snapshot = Snapshot::open(transaction)?;
    let commit = snapshot.commit();
    differences.replaced_from = (commit.seq > 0).then(|| commit.time.to_string());
    for dataset in Dataset::ALL {
        differences.records.insert(dataset, (snapshot.dataset_state(dataset).records, 0));
    }
    let mut keys = BTreeMap::new();
    for entry in transaction.open_table(tables::KEYS)?.iter()? {
        let (hash, bytes) = entry?;
        let hash = hash.value();
        keys.insert(hash, unseal_under("keys", &hash, bytes.value())?);
    }
    let licenses = load_rows("licenses", &transaction.open_table(tables::LICENSES)?)?;
    let origin = OriginIdentity::read(transaction, commit.head())?;
    let secret = Some(*snapshot.secret());
    Ok(CarriedOver { secret, committed: commit.time, seq: commit.seq, keys, licenses, origin })
}

/// The description of a restore for the history. It names both commits, because the replaced history is lost.
fn describe(restored: CommitPoint, kept: &CarriedOver, is_unreadable: bool) -> String {
    let from = match restored.seq {
        0 => format!("{RESTORED} without commits"),
        seq => format!("{RESTORED} of {}, seq {seq}", restored.time),
    };
    match kept.seq {
        _ if is_unreadable => format!("{from}; the replaced database could not be read"),
        0 => from,
        seq => format!("{from}; the replaced database was of {}, seq {seq}", kept.committed),
    }
}

/// Adds the differences between the replaced database and the backup. Returns the backup's last commit.
fn compare(
    transaction: &ReadTransaction,
    kept: &CarriedOver,
    differences: &mut RestoreDifferences,
) -> Result<CommitPoint, StoreError> {
    let snapshot = Snapshot::open(transaction)?;
    let at = now();
    let commit = snapshot.commit();
    differences.restored_to = (commit.seq > 0).then(|| commit.time.to_string());
    for dataset in Dataset::ALL {
        differences.records.entry(dataset).or_default().1 = snapshot.dataset_state(dataset).records;
    }
    for license in &kept.licenses {
        let change = match snapshot.find_license_named(&license.name) {
            None => "is not in the backup",
            Some(other) if other.id != license.id => "is another license of the same name in the backup",
            Some(other) if other.scope != license.scope => "has another scope in the backup",
            Some(other) if other.rate_limit != license.rate_limit => "has another rate limit in the backup",
            Some(_) => continue,
        };
        differences.licenses.push(LicenseDifference { license: license.name.clone(), change });
    }
    let names: BTreeSet<&str> = kept.licenses.iter().map(|license| license.name.as_str()).collect();
    for license in snapshot.list_licenses().into_iter().filter(|license| !names.contains(license.name.as_str())) {
        let change = "comes back with the backup";
        differences.licenses.push(LicenseDifference { license: license.name.clone(), change });
    }
    for (hash, key) in &kept.keys {
        let restored = snapshot.find_key(&KeyHash(*hash));
        let works = key.status_after(at, kept.committed).is_usable();
        let restored_works = restored.is_some_and(|restored| restored.status_after(at, commit.time).is_usable());
        match restored {
            Some(_) if works && !restored_works => differences.keys_that_stop.push(key.id.clone()),
            None if works => differences.keys_that_stop.push(key.id.clone()),
            Some(_) if !works && restored_works && key.revoked_at.is_some() => {
                differences.keys_that_stay_revoked.push(key.id.clone());
            }
            _ => {}
        }
    }
    Ok(commit)
}

/// Gives all commits new lineages, so that the sync tokens of the replaced history get 410.
fn renew_lineages(tx: &WriteTx) -> Result<(), StoreError> {
    let mut commits = tx.open(tables::COMMITS)?;
    let mut renewed: Vec<(u64, StoredCommit)> = Vec::new();
    for entry in commits.iter()? {
        let (seq, bytes) = entry?;
        let mut row = unseal_commit(seq.value(), bytes.value())?;
        getrandom::fill(&mut row.lineage)?;
        renewed.push((seq.value(), row));
    }
    for (seq, row) in renewed {
        commits.insert(seq, seal(&row)?.as_slice())?;
    }
    Ok(())
}

/// Keys that are revoked in either database stay revoked. The replaced secret is kept, so that its tokens get 410.
fn keep_revocations(tx: &WriteTx, kept: &CarriedOver) -> Result<(), StoreError> {
    if let Some(secret) = &kept.secret {
        tx.open(tables::META)?.insert(tables::META_SECRET, secret::encode(secret).as_slice())?;
    }
    let restored_to = last_commit(&*tx.open(tables::COMMITS)?)?.map_or(Timestamp::EPOCH, |(point, _)| point.time);
    let judged_at = now().max(kept.committed);
    let mut keys = tx.open(tables::KEYS)?;
    let mut changed: Vec<([u8; 32], KeyRecord)> = Vec::new();
    for entry in keys.iter()? {
        let (hash, bytes) = entry?;
        let mut key: KeyRecord = unseal_under("keys", &hash.value(), bytes.value())?;
        let Some(old) = kept.keys.get(&hash.value()) else { continue };
        // A key that is revoked now is revoked from the restored state on, even if the clock is later set back.
        let revoked_at = old.revoked_at.map(|at| if at <= judged_at { at.min(restored_to) } else { at });
        let earliest = [key.revoked_at, revoked_at].into_iter().flatten().min();
        if earliest != key.revoked_at {
            key.revoked_at = earliest;
            key.replaced_by = old.replaced_by.clone();
            changed.push((hash.value(), key));
        }
    }
    for (hash, key) in changed {
        keys.insert(hash, seal_under(&hash, &key)?.as_slice())?;
    }
    Ok(())
}
