//! Restoring a backup. Parts of the replaced database are carried over, such as revocations.
//!
//! The lock of the old file is held until after the rename. A writer that waits for this lock then opens the new file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use redb::{ReadTransaction, ReadableTable};
use serde::Serialize;

use crate::model::{DatabaseId, Dataset, Head, KeyHash, KeyRecord, License, Timestamp, now};
use crate::store::file::draft::Draft;
use crate::store::file::metadata::{FileIdentity, refuse_other_names, resolve};
use crate::store::file::notes::PublishedNote;
use crate::store::file::open::OpenOptions;
use crate::store::file::published::{put_empty_commit, refuse_fenced, remove_local_rows};
use crate::store::file::replace::LockedFile;
use crate::store::format::meta::{database_id, stored_digest};
use crate::store::format::rows::{
    CommitPoint, StoredCommit, last_commit, load_keys, load_rows, seal, seal_under, unseal_commit,
};
use crate::store::format::tables;
use crate::store::panics::guard;
use crate::store::read::history::RESTORED;
use crate::store::read::snapshot::Snapshot;
use crate::store::upgrade::upgrade_rows;
use crate::store::write_tx::WriteTx;
use crate::store::{Result, StoreError, Writer};

/// The differences between the replaced database and the backup.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RestoreDifferences {
    /// The time of the backup's last commit.
    pub restored_to: Option<String>,
    /// The time of the replaced database's last commit.
    pub replaced_from: Option<String>,
    /// The number of records per dataset, in the replaced database, if it can be read, and in the backup.
    pub records: BTreeMap<Dataset, (Option<u64>, u64)>,
    /// Licenses that differ, or are in only one of the two. Like keys, they are compared if the replaced database can
    /// be read.
    pub licenses: Vec<LicenseDifference>,
    /// The ids of keys that stop working.
    pub keys_that_stop: Vec<String>,
    /// The ids of keys that the replaced database does not know, and that are usable in the backup.
    pub keys_that_come_back: Vec<String>,
    /// The ids of keys that are usable in the backup, but stay revoked.
    pub keys_that_stay_revoked: Vec<String>,
    /// Why the replaced database could not be read. Its revocations are then lost.
    pub unreadable: Option<String>,
}

/// A license that differs between the replaced database and the backup.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "described above")]
pub struct LicenseDifference {
    pub license: String,
    pub change: &'static str,
}

/// A prepared restore.
#[derive(Debug)]
pub struct Restoration {
    new: Draft,
    differences: RestoreDifferences,
    /// The backup's last commit, with the time of the replaced database's if that is later.
    pub last_commit: CommitPoint,
    /// The file that is replaced, if there is one.
    replaced: Option<FileIdentity>,
    /// Its lock, held until after the rename. `None` if it cannot be read.
    lock: Option<LockedFile>,
}

/// The parts of the replaced database that are carried over.
#[derive(Default)]
struct CarriedOver {
    secret: Option<[u8; 32]>,
    /// The time of its last commit.
    committed: Timestamp,
    /// The seq of that commit; 0 if there is none, or it cannot be read.
    seq: u64,
    keys: BTreeMap<KeyHash, KeyRecord>,
    licenses: Vec<License>,
    /// Its id, if it is published, and its last commit, or the last published one if it cannot be read.
    origin: Option<(DatabaseId, Head)>,
}

impl Restoration {
    /// Copies and checks the backup, renews its lineages, carries revocations over, and adds a commit that describes
    /// the restore, with the user's note. Does not change the database yet.
    pub fn prepare(
        target: &Path,
        backup: &Path,
        wait: Duration,
        note: Option<String>,
    ) -> Result<Restoration> {
        let target = &resolve(target);
        if FileIdentity::of_path(backup)
            .map_err(StoreError::io(backup))?
            .is_of(target)
        {
            let reason = "it is the database itself".to_owned();
            return Err(StoreError::BadTarget {
                path: backup.to_owned(),
                reason,
            });
        }
        let new = Draft::replacing(target)?;
        refuse_other_names(target)?;
        let copied = File::open(backup).and_then(|mut from| io::copy(&mut from, &mut new.file()));
        copied.map_err(StoreError::io(backup))?;
        let restored =
            guard(|| check_copy(&new)).map_err(|error| with_backup_path(error, backup))?;

        let mut differences = RestoreDifferences::default();
        let writer = new.writer()?;
        let backup_id = database_id(&writer.begin_read()?.open_table(tables::META)?)?;
        let replaced = FileIdentity::of_path(target).ok();
        let (lock, kept) = Restoration::lock_old(target, backup_id, wait, &mut differences)?;
        compare(&writer.begin_read()?, restored, &kept, &mut differences)?;
        let what = describe(restored, &kept, differences.unreadable.is_some());
        carry_over(&writer, &kept, &what, note)?;
        Ok(Restoration {
            new,
            differences,
            last_commit: CommitPoint {
                time: restored.time.max(kept.committed),
                ..restored
            },
            replaced: lock
                .as_ref()
                .map(|lock| lock.file.stamp.identity)
                .or(replaced),
            lock,
        })
    }

    /// Locks the old file, and reads the parts that are carried over. If it cannot be read, only the identity in the
    /// publisher's note is carried over. `backup` is the id of the backup, if it has one.
    fn lock_old(
        target: &Path,
        backup: Option<DatabaseId>,
        wait: Duration,
        differences: &mut RestoreDifferences,
    ) -> Result<(Option<LockedFile>, CarriedOver)> {
        let options = OpenOptions {
            wait,
            older: true,
            replica: false,
        };
        let opened = guard(|| LockedFile::lock(target, options));
        let mut note = PublishedNote::read(target)?;
        if !target.exists() {
            // Without a file, the note may be left from another database. Then the backup can have another id.
            note = note.filter(|note| backup.is_none_or(|id| id == note.id));
        }
        refuse_fenced(target, note.as_ref())?;
        let (lock, read) = match opened {
            Ok(lock) => {
                let read = guard(|| read_kept(&lock.file.begin_read()?, differences));
                (Some(lock), read)
            }
            Err(error) => (None, Err(error)),
        };
        let kept = read.or_else(|error| match error {
            StoreError::NotFound { .. } => Ok(None),
            StoreError::NotADatabase { .. }
            | StoreError::Damaged { .. }
            | StoreError::UnknownRow { .. }
            | StoreError::Engine(_) => {
                differences.unreadable = Some(reason_of(error));
                Ok(None)
            }
            error => Err(error),
        })?;
        let origin = note.map(|note| (note.id, note.head()));
        Ok((
            lock,
            kept.unwrap_or_else(|| CarriedOver {
                origin,
                ..CarriedOver::default()
            }),
        ))
    }

    /// The differences between the replaced database and the backup.
    pub fn differences(&self) -> &RestoreDifferences {
        &self.differences
    }

    /// Replaces the database. After an error, it is unchanged. A file that has come to this name since was not
    /// compared, so it is not replaced.
    pub fn finish(self) -> Result<()> {
        let Restoration {
            new,
            replaced,
            lock,
            ..
        } = self;
        match replaced {
            Some(old) => new.replace(old)?,
            None => new.persist_new()?,
        }
        drop(lock);
        Ok(())
    }
}

/// Checks a copy of a backup, and upgrades its rows. Returns the backup's last commit.
fn check_copy(copy: &Draft) -> Result<CommitPoint> {
    let is_older = match copy.check() {
        Err(StoreError::OlderFields { .. }) => true,
        checked => checked.map(|_| false)?,
    };
    // The upgrade adds a commit.
    let restored = Snapshot::read_commit(&copy.writer()?.begin_read()?)?;
    if is_older {
        upgrade_rows(copy)?;
        copy.check()?;
    }
    Ok(restored)
}

/// Renews the lineages of the backup, carries over parts of the replaced database, and adds the commit of the restore.
fn carry_over(writer: &Writer, kept: &CarriedOver, what: &str, note: Option<String>) -> Result<()> {
    let tx = WriteTx::new(writer.begin_raw()?);
    renew_lineages(&tx)?;
    keep_revocations(&tx, kept)?;
    remove_local_rows(&tx)?;
    let Some((id, head)) = &kept.origin else {
        // Without a copy of its commits elsewhere, a database may go back to the time of the backup.
        put_empty_commit(&tx, None, Timestamp::EPOCH, what, note)?;
        return tx.commit();
    };
    let mut meta = tx.open(tables::META)?;
    meta.insert(tables::META_DATABASE, id.0.as_slice())?;
    meta.insert(tables::META_RESTORED, seal(head)?.as_slice())?;
    drop(meta);
    put_empty_commit(&tx, Some(head.seq), kept.committed, what, note)?;
    tx.commit()?;
    writer.mark_published().map(drop)
}

/// Names the backup in an error, instead of the draft.
fn with_backup_path(error: StoreError, backup: &Path) -> StoreError {
    let path = backup.to_owned();
    match error {
        StoreError::NewerSchema { found, known, .. } => {
            StoreError::NewerSchema { path, found, known }
        }
        StoreError::NewerFields { unknown, .. } => StoreError::NewerFields { path, unknown },
        StoreError::OlderSchema { found, known, .. } => {
            StoreError::OlderSchema { path, found, known }
        }
        error => StoreError::BadBackup {
            path,
            reason: reason_of(error),
        },
    }
}

/// Returns why a file cannot be read, without advice.
fn reason_of(error: StoreError) -> String {
    match error {
        StoreError::Damaged { table, detail } => format!("table `{table}`: {detail}"),
        StoreError::NotADatabase { reason, .. } => reason,
        other => other.to_string(),
    }
}

fn read_kept(
    transaction: &ReadTransaction,
    differences: &mut RestoreDifferences,
) -> Result<Option<CarriedOver>> {
    let snapshot = Snapshot::open(transaction)?;
    let commit = snapshot.commit();
    differences.replaced_from = (commit.seq > 0).then(|| commit.time.to_string());
    for dataset in Dataset::ALL {
        differences
            .records
            .insert(dataset, (Some(snapshot.totals().records[dataset]), 0));
    }
    let keys = load_keys(&transaction.open_table(tables::KEYS)?)?
        .into_iter()
        .collect();
    let licenses = load_rows("licenses", &transaction.open_table(tables::LICENSES)?)?;
    let meta = transaction.open_table(tables::META)?;
    let id = stored_digest(&meta)?.and(database_id(&meta)?);
    let origin = id.map(|id| (id, commit.head()));
    let secret = Some(*snapshot.secret());
    Ok(Some(CarriedOver {
        secret,
        committed: commit.time,
        seq: commit.seq,
        keys,
        licenses,
        origin,
    }))
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
        seq => format!(
            "{from}; the replaced database was of {}, seq {seq}",
            kept.committed
        ),
    }
}

/// Adds the differences between the replaced database and the backup. `commit` is the backup's last one.
fn compare(
    transaction: &ReadTransaction,
    commit: CommitPoint,
    kept: &CarriedOver,
    differences: &mut RestoreDifferences,
) -> Result<()> {
    let snapshot = Snapshot::open(transaction)?;
    differences.restored_to = (commit.seq > 0).then(|| commit.time.to_string());
    for dataset in Dataset::ALL {
        let replaced = differences.unreadable.is_none().then_some(0);
        differences
            .records
            .entry(dataset)
            .or_insert((replaced, 0))
            .1 = snapshot.totals().records[dataset];
    }
    if differences.unreadable.is_none() {
        compare_licenses(&snapshot, kept, differences);
        compare_keys(&snapshot, commit, kept, differences);
    }
    Ok(())
}

fn compare_licenses(snapshot: &Snapshot, kept: &CarriedOver, differences: &mut RestoreDifferences) {
    let mut add = |license: &License, change| {
        differences.licenses.push(LicenseDifference {
            license: license.name.clone(),
            change,
        });
    };
    for license in &kept.licenses {
        let change = match snapshot.find_license_named(&license.name) {
            None => "is not in the backup",
            Some(other) if other.id != license.id => {
                "is another license of the same name in the backup"
            }
            Some(other) if other.scope != license.scope => "has another scope in the backup",
            Some(other) if other.rate_limit != license.rate_limit => {
                "has another rate limit in the backup"
            }
            Some(_) => continue,
        };
        add(license, change);
    }
    for license in snapshot.list_licenses() {
        if kept.licenses.iter().all(|old| old.name != license.name) {
            add(license, "comes back with the backup");
        }
    }
}

/// Compares which keys work in the replaced database, and in the backup, whose last commit is `restored_to`.
fn compare_keys(
    snapshot: &Snapshot,
    restored_to: CommitPoint,
    kept: &CarriedOver,
    differences: &mut RestoreDifferences,
) {
    let at = now();
    let is_restored = |key: &KeyRecord| key.status_after(at, restored_to.time).is_usable();
    for (hash, key) in &kept.keys {
        let works = key.status_after(at, kept.committed).is_usable();
        let restored_works = snapshot.find_key(hash).is_some_and(|key| is_restored(key));
        if works && !restored_works {
            differences.keys_that_stop.push(key.id.clone());
        } else if !works && restored_works && key.revoked_at.is_some() {
            differences.keys_that_stay_revoked.push(key.id.clone());
        }
    }
    let ids: BTreeSet<&str> = kept.keys.values().map(|key| key.id.as_str()).collect();
    let restored = snapshot.list_keys().into_iter();
    let unknown = restored.filter(|key| !ids.contains(key.id.as_str()) && is_restored(key));
    differences
        .keys_that_come_back
        .extend(unknown.map(|key| key.id.clone()));
}

/// Gives all commits new lineages, so that the sync tokens of the replaced history get 410.
fn renew_lineages(tx: &WriteTx) -> Result<()> {
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

/// Keys that are revoked in either database stay revoked, also after a later restore of a backup that has them. The
/// replaced secret is kept, so that its tokens get 410.
fn keep_revocations(tx: &WriteTx, kept: &CarriedOver) -> Result<()> {
    if let Some(secret) = &kept.secret {
        tx.open(tables::META)?.insert(
            tables::META_SECRET,
            seal_under(tables::META_SECRET.as_bytes(), secret)?.as_slice(),
        )?;
    }
    let restored_to = last_commit(&*tx.open(tables::COMMITS)?)?.time;
    let judged_at = now().max(kept.committed);
    let mut keys = tx.open(tables::KEYS)?;
    let restored = load_keys(&*keys)?.into_iter().collect::<BTreeMap<_, _>>();
    for (hash, old) in kept
        .keys
        .iter()
        .filter(|(hash, _)| !restored.contains_key(hash))
    {
        // The key stops working, so an overlap ends, too.
        if let Some(at) = old.revoked_at {
            let gone = KeyRecord {
                revoked_at: Some(at.min(restored_to)),
                ..old.clone()
            };
            keys.insert(hash.0, seal_under(&hash.0, &gone)?.as_slice())?;
        }
    }
    for (hash, mut key) in restored {
        let Some(old) = kept.keys.get(&hash) else {
            continue;
        };
        // A key that is revoked now is revoked from the restored state on, even if the clock is later set back.
        let revoked_at = old.revoked_at.map(|at| {
            if at <= judged_at {
                at.min(restored_to)
            } else {
                at
            }
        });
        let earliest = [key.revoked_at, revoked_at].into_iter().flatten().min();
        if earliest != key.revoked_at {
            key.revoked_at = earliest;
            key.replaced_by = old.replaced_by.clone();
            keys.insert(hash.0, seal_under(&hash.0, &key)?.as_slice())?;
        }
    }
    Ok(())
}
