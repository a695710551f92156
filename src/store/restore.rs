//! Restoring a backup, and upgrading a file. A restore carries over parts of the replaced database, such as revocations.
//!
//! The lock of the old file is held until after the rename. A writer that waits for this lock then opens the new file.
//!
//! An upgrade copies a file whose rows lack fields of this program, and renders the rows again in one more commit. The
//! copy is checked, and replaces the file by rename. The old file gets a second name.
//!
//! The first change of the format after a release adds a step to [`upgrade_rows`], for rows of the older format.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::{ReadTransaction, ReadableTable};
use serde::Serialize;

use super::file::draft::Draft;
use super::file::metadata::{FileIdentity, refuse_other_names, resolve};
use super::file::notes::{PublishedNote, with_ending};
use super::file::open::{OpenOptions, ReadFile, refuse_replica};
use super::file::published::{put_empty_commit, refuse_fenced, remove_local_rows};
use super::file::replace::LockedFile;
use super::format::meta::{database_id, known_fields, stored_digest};
use super::format::rows::{
    CommitPoint, StoredCommit, last_commit, load_keys, load_rows, seal, seal_under, unseal_commit,
};
pub use super::format::tables::SCHEMA;
use super::format::tables::{
    COMMITS, KEYS, LICENSES, META, META_DATABASE, META_FIELDS, META_PUBLISH, META_RESTORED,
    META_SECRET, OUTBOX, REPLICA,
};
use super::panics::guard;
use super::read::snapshot::{RESTORED, Snapshot};
use super::write_tx::WriteTx;
use super::{Result, StoreError, Writer};
use crate::disk::{self, DiskEvent};
use crate::model::{DatabaseId, Head, KeyHash, KeyRecord, License, PerDataset, Timestamp, now};

/// The differences between the replaced database and the backup.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RestoreDifferences {
    /// The time of the backup's last commit.
    pub restored_to: Option<String>,
    /// The time of the replaced database's last commit.
    pub replaced_from: Option<String>,
    /// The number of records, in the replaced database, if it can be read, and in the backup.
    pub records: PerDataset<(Option<u64>, u64)>,
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
pub struct LicenseDifference {
    /// The name of the license.
    pub license: String,
    /// Its fate, in words.
    pub change: &'static str,
}

/// A prepared restore.
#[derive(Debug)]
pub struct Restoration {
    new: Draft,
    /// The differences between the replaced database and the backup.
    pub differences: RestoreDifferences,
    /// The backup's last commit, with the time of the replaced database's if that is later.
    pub last_commit: CommitPoint,
    /// The file that is replaced, if there is one.
    replaced: Option<FileIdentity>,
    /// Its lock, held until after the rename. `None` if it cannot be read.
    lock: Option<LockedFile>,
}

/// The replaced database, with the parts that are carried over.
#[derive(Default)]
struct ReplacedDatabase {
    secret: Option<[u8; 32]>,
    /// Its last commit; of seq 0 if there is none, or it cannot be read.
    commit: CommitPoint,
    records: PerDataset<u64>,
    keys: BTreeMap<KeyHash, KeyRecord>,
    licenses: Vec<License>,
    /// Its id, if it is published, and its last commit, or the last published one if it cannot be read.
    origin: Option<(DatabaseId, Head)>,
    /// Why it cannot be read.
    unreadable: Option<String>,
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

        let writer = new.writer()?;
        let backup_id = database_id(&writer.begin_read()?.open_table(META)?)?;
        let replaced = FileIdentity::of_path(target).ok();
        let (lock, old) = Restoration::lock_old(target, backup_id, wait)?;
        let differences = compare(&Snapshot::open(&writer.begin_read()?)?, restored, &old);
        carry_over(&writer, &old, &describe(restored, &old), note)?;
        Ok(Restoration {
            new,
            differences,
            last_commit: CommitPoint {
                time: restored.time.max(old.commit.time),
                ..restored
            },
            replaced: lock
                .as_ref()
                .map(|lock| lock.file.stamp.identity)
                .or(replaced),
            lock,
        })
    }

    /// Locks and reads the old file. If it cannot be read, only the identity in the publisher's note is carried over.
    /// `backup` is the id of the backup, if it has one.
    fn lock_old(
        target: &Path,
        backup: Option<DatabaseId>,
        wait: Duration,
    ) -> Result<(Option<LockedFile>, ReplacedDatabase)> {
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
                let read = guard(|| read_old(&lock.file.begin_read()?));
                (Some(lock), read)
            }
            Err(error) => (None, Err(error)),
        };
        let old = read.or_else(|error| {
            let unreadable = match error {
                StoreError::NotFound { .. } => None,
                StoreError::NotADatabase { .. }
                | StoreError::Damaged { .. }
                | StoreError::UnknownRow { .. }
                | StoreError::Engine(_) => Some(reason_of(error)),
                error => return Err(error),
            };
            Ok(ReplacedDatabase {
                origin: note.map(|note| (note.id, note.head())),
                unreadable,
                ..ReplacedDatabase::default()
            })
        })?;
        Ok((lock, old))
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
fn carry_over(
    writer: &Writer,
    old: &ReplacedDatabase,
    what: &str,
    note: Option<String>,
) -> Result<()> {
    let tx = WriteTx::new(writer.begin_raw()?);
    renew_lineages(&tx)?;
    keep_revocations(&tx, old)?;
    remove_local_rows(&tx)?;
    let Some((id, head)) = &old.origin else {
        // Without a copy of its commits elsewhere, a database may go back to the time of the backup.
        put_empty_commit(&tx, None, Timestamp::EPOCH, what, note)?;
        return tx.commit();
    };
    let mut meta = tx.open(META)?;
    meta.insert(META_DATABASE, id.0.as_slice())?;
    meta.insert(META_RESTORED, seal(head)?.as_slice())?;
    drop(meta);
    put_empty_commit(&tx, Some(head.seq), old.commit.time, what, note)?;
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

fn read_old(transaction: &ReadTransaction) -> Result<ReplacedDatabase> {
    let snapshot = Snapshot::open(transaction)?;
    let commit = snapshot.commit();
    let keys = load_keys(&transaction.open_table(KEYS)?)?;
    let meta = transaction.open_table(META)?;
    let id = stored_digest(&meta)?.and(database_id(&meta)?);
    Ok(ReplacedDatabase {
        secret: Some(*snapshot.secret()),
        commit,
        records: snapshot.totals().records,
        keys: keys.into_iter().collect(),
        licenses: load_rows("licenses", &transaction.open_table(LICENSES)?)?,
        origin: id.map(|id| (id, commit.head())),
        unreadable: None,
    })
}

/// The description of a restore for the history. It names both commits, because the replaced history is lost.
fn describe(restored: CommitPoint, old: &ReplacedDatabase) -> String {
    let from = match restored.seq {
        0 => format!("{RESTORED} without commits"),
        seq => format!("{RESTORED} of {}, seq {seq}", restored.time),
    };
    match old.commit {
        _ if old.unreadable.is_some() => {
            format!("{from}; the replaced database could not be read")
        }
        CommitPoint { seq: 0, .. } => from,
        CommitPoint { seq, time, .. } => {
            format!("{from}; the replaced database was of {time}, seq {seq}")
        }
    }
}

/// Returns the differences between the replaced database and the backup, whose last commit is `restored`.
fn compare(
    snapshot: &Snapshot,
    restored: CommitPoint,
    old: &ReplacedDatabase,
) -> RestoreDifferences {
    let is_readable = old.unreadable.is_none();
    let restored_records = snapshot.totals().records;
    let mut differences = RestoreDifferences {
        restored_to: restored.time_text(),
        replaced_from: old.commit.time_text(),
        records: PerDataset::of(|dataset| {
            let replaced = is_readable.then_some(old.records[dataset]);
            (replaced, restored_records[dataset])
        }),
        unreadable: old.unreadable.clone(),
        ..RestoreDifferences::default()
    };
    if is_readable {
        differences.licenses = compare_licenses(snapshot, old);
        compare_keys(snapshot, restored, old, &mut differences);
    }
    differences
}

fn compare_licenses(snapshot: &Snapshot, old: &ReplacedDatabase) -> Vec<LicenseDifference> {
    let changed = old.licenses.iter().filter_map(|license| {
        let change = match snapshot.find_license_named(&license.name) {
            None => "is not in the backup",
            Some(other) if other.id != license.id => {
                "is another license of the same name in the backup"
            }
            Some(other) if other.scope != license.scope => "has another scope in the backup",
            Some(other) if other.rate_limit != license.rate_limit => {
                "has another rate limit in the backup"
            }
            Some(_) => return None,
        };
        Some((&license.name, change))
    });
    let restored = snapshot.list_licenses().into_iter();
    let back = restored
        .map(|license| (&license.name, "comes back with the backup"))
        .filter(|(name, _)| old.licenses.iter().all(|old| old.name != **name));
    changed
        .chain(back)
        .map(|(name, change)| LicenseDifference {
            license: name.clone(),
            change,
        })
        .collect()
}

/// Compares which keys work in the replaced database, and in the backup, whose last commit is `restored`.
fn compare_keys(
    snapshot: &Snapshot,
    restored: CommitPoint,
    old: &ReplacedDatabase,
    differences: &mut RestoreDifferences,
) {
    let at = now();
    let is_restored = |key: &KeyRecord| key.status_after(at, restored.time).is_usable();
    for (hash, key) in &old.keys {
        let works = key.status_after(at, old.commit.time).is_usable();
        let restored_works = snapshot.find_key(hash).is_some_and(|key| is_restored(key));
        if works && !restored_works {
            differences.keys_that_stop.push(key.id.clone());
        } else if !works && restored_works && key.revoked_at.is_some() {
            differences.keys_that_stay_revoked.push(key.id.clone());
        }
    }
    let ids: BTreeSet<&str> = old.keys.values().map(|key| key.id.as_str()).collect();
    let keys = snapshot.list_keys().into_iter();
    let unknown = keys.filter(|key| !ids.contains(key.id.as_str()) && is_restored(key));
    differences
        .keys_that_come_back
        .extend(unknown.map(|key| key.id.clone()));
}

/// Gives all commits new lineages, so that the sync tokens of the replaced history get 410.
fn renew_lineages(tx: &WriteTx) -> Result<()> {
    let mut commits = tx.open(COMMITS)?;
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
fn keep_revocations(tx: &WriteTx, old: &ReplacedDatabase) -> Result<()> {
    if let Some(secret) = &old.secret {
        tx.open(META)?.insert(
            META_SECRET,
            seal_under(META_SECRET.as_bytes(), secret)?.as_slice(),
        )?;
    }
    let restored_to = last_commit(&*tx.open(COMMITS)?)?.time;
    let judged_at = now().max(old.commit.time);
    let mut keys = tx.open(KEYS)?;
    let restored: BTreeMap<_, _> = load_keys(&*keys)?.into_iter().collect();
    for (hash, old) in &old.keys {
        let Some(at) = old.revoked_at else {
            continue;
        };
        let mut key = old.clone();
        match restored.get(hash) {
            // The key stops working, so an overlap ends, too.
            None => key.revoked_at = Some(at.min(restored_to)),
            Some(restored) => {
                // A key that is revoked now is revoked from the restored state on, even if the clock is later set back.
                let revoked_at = if at <= judged_at {
                    at.min(restored_to)
                } else {
                    at
                };
                if restored.revoked_at.is_some_and(|at| at <= revoked_at) {
                    continue;
                }
                key = KeyRecord {
                    revoked_at: Some(revoked_at),
                    replaced_by: key.replaced_by,
                    ..restored.clone()
                };
            }
        }
        keys.insert(hash.0, seal_under(&hash.0, &key)?.as_slice())?;
    }
    Ok(())
}

/// The upgrade that a file needs: the formats, and the records and size of the file.
#[derive(Debug, Serialize)]
pub struct UpgradePlan {
    /// The format of the file.
    pub from: u32,
    /// The format of this program.
    pub to: u32,
    /// The records of each dataset.
    pub records: PerDataset<u64>,
    /// The fields that rows gain, such as `conferences.acronym`.
    pub fields: Vec<String>,
    /// The size of the file.
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
pub fn plan_upgrade(path: &Path) -> Result<Option<UpgradePlan>> {
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
pub(crate) fn upgrade_rows(copy: &Draft) -> Result<()> {
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
    (1..)
        .map(name)
        .find(|kept| kept.symlink_metadata().is_err() || is_same_file(path, kept))
        .unwrap_or_else(|| name(1))
}

fn is_same_file(path: &Path, kept: &Path) -> bool {
    !kept.is_symlink() && FileIdentity::of_path(path).is_ok_and(|found| found.is_of(kept))
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
