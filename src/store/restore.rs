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
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::{ReadTransaction, ReadableTable};
use serde::Serialize;

use crate::disk::{self, DiskEvent};
use crate::model::{
    DatabaseId, Dataset, Head, KeyHash, KeyRecord, License, PerDataset, Timestamp, now,
};
use crate::store::file::draft::Draft;
use crate::store::file::metadata::{FileIdentity, refuse_other_names, resolve};
use crate::store::file::notes::{PublishedNote, with_ending};
use crate::store::file::open::{OpenOptions, ReadFile, refuse_replica};
use crate::store::file::published::{put_empty_commit, refuse_fenced, remove_local_rows};
use crate::store::file::replace::LockedFile;
use crate::store::format::meta::{database_id, known_fields, stored_digest};
use crate::store::format::rows::{
    CommitPoint, StoredCommit, last_commit, load_keys, load_rows, seal, seal_under, unseal_commit,
};
pub use crate::store::format::tables::SCHEMA;
use crate::store::format::tables::{
    self, COMMITS, META, META_FIELDS, META_PUBLISH, OUTBOX, REPLICA,
};
use crate::store::panics::guard;
use crate::store::read::snapshot::{RESTORED, Snapshot};
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
