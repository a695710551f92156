//! Options of the commands that read a bucket: `serve --from`, `backup --from` and `check --from`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::json;

use crate::bucket::{Bucket, BucketUrl, SealKey};
use crate::cli::shared::arguments::parse_duration;
use crate::cli::shared::common::{Common, require_folder};
use crate::cli::shared::output::counted;
use crate::model::Timestamp;
use crate::model::time::parse_time;
use crate::replicate::replica::audit::audit;
use crate::replicate::replica::{LogReader, Replica, ReplicaStatus, StateLoader};
use crate::serve::watching::background::BackgroundTask;
use crate::serve::watching::replica_thread::ReplicaThread;
use crate::serve::watching::watcher::Watcher;
use crate::store::file::replace::{BackupReport, check_target};

/// Options of a replica.
#[derive(Debug, Args)]
#[command(next_help_heading = "Replica")]
pub(in crate::cli) struct FollowArgs {
    /// Serve a replica of the database that `medfeed publish` publishes into this bucket: s3://BUCKET/PREFIX, gs://,
    /// az:// or file:///FOLDER. --db is the replica's file, created if it does not exist
    #[arg(long, env = "MEDFEED_FROM", value_name = "URL")]
    from: Option<BucketUrl>,
    /// How often to look for new commits in the bucket
    #[arg(long, env = "MEDFEED_POLL", value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    poll: Duration,
    /// The file with the seal key, which encrypts the bucket
    #[arg(long, env = "MEDFEED_SEAL_KEY", value_name = "FILE")]
    seal_key: Option<PathBuf>,
}

/// A reader of the log in a bucket.
pub(in crate::cli) fn open_log(url: &BucketUrl, seal_key: Option<&PathBuf>) -> anyhow::Result<LogReader> {
    let seal = seal_key.map(|file| SealKey::load(file)).transpose().map_err(|error| anyhow!(error))?;
    Ok(LogReader::new(Bucket::open(url, seal)?))
}

impl FollowArgs {
    /// Opens or loads the replica; `None` without `--from`.
    pub fn open(&self, common: &Common, staleness: Duration) -> anyhow::Result<Option<Replica>> {
        let Some(url) = &self.from else { return Ok(None) };
        require_folder(&common.resolved_db())?;
        let log = open_log(url, self.seal_key.as_ref())?;
        if self.seal_key.is_none() {
            tracing::warn!(
                "the bucket is not sealed: anyone who can read it sees all records, and anyone who can write to it can create API keys; run publisher and replicas with --seal-key FILE"
            );
        }
        let status = ReplicaStatus::new(staleness);
        Ok(Some(Replica::start(log, &common.db, Arc::new(status), &|| true)?))
    }

    /// Starts to follow the bucket.
    pub fn start(
        &self,
        replica: Replica,
        watcher: &Arc<Watcher>,
    ) -> std::io::Result<(Arc<ReplicaThread>, BackgroundTask)> {
        ReplicaThread::start(replica, self.poll, Arc::clone(watcher))
    }
}

/// Options of a backup that is taken from a bucket.
#[derive(Debug, Args)]
pub(in crate::cli) struct BackupFromArgs {
    /// Back up the database that `medfeed publish` published into this bucket, instead of --db: s3://BUCKET/PREFIX,
    /// gs://, az:// or file:///FOLDER
    #[arg(long, value_name = "URL")]
    from: Option<BucketUrl>,
    /// Back up the database as it was at this time, instead of the newest state: 2026-12-31T18:00:00Z, or a date (its
    /// beginning, UTC)
    #[arg(long, value_name = "TIME", requires = "from", value_parser = parse_moment)]
    at: Option<Timestamp>,
    /// The file with the seal key, which encrypts the bucket
    #[arg(long, env = "MEDFEED_SEAL_KEY", value_name = "FILE")]
    seal_key: Option<PathBuf>,
}

fn parse_moment(text: &str) -> Result<Timestamp, String> {
    parse_time(text).map_err(|_| "write a date with a time, such as 2026-12-31T18:00:00Z, or a date".to_owned())
}

impl BackupFromArgs {
    /// Writes a backup from the bucket; `None` without `--from`.
    pub fn backup(&self, common: &Common, file: &Path) -> anyhow::Result<Option<BackupReport>> {
        let Some(url) = &self.from else { return Ok(None) };
        require_folder(file)?;
        check_target(&common.resolved_db(), file)?;
        let log = open_log(url, self.seal_key.as_ref())?;
        let load = StateLoader { until: self.at, must_confirm: true, ..StateLoader::new(&log, file, &|| true) };
        let loaded = load.newest().map_err(|error| match load.reached.get() {
            Some(reached) => {
                anyhow!("{error}. The newest state that can be had is that of {reached}: add --at {reached}")
            }
            None => error.into(),
        })?;
        Ok(Some(loaded.draft.write_backup(file)?))
    }
}

/// Options of a check of a bucket.
#[derive(Debug, Args)]
pub(in crate::cli) struct CheckFromArgs {
    /// Check the bucket of `medfeed publish`, instead of --db: the chain of entries, every hash, and whether the oldest
    /// state plus all entries gives each later state and a sound database
    #[arg(long, value_name = "URL")]
    from: Option<BucketUrl>,
    /// The file with the seal key, which encrypts the bucket
    #[arg(long, env = "MEDFEED_SEAL_KEY", value_name = "FILE")]
    seal_key: Option<PathBuf>,
}

impl CheckFromArgs {
    /// Checks the bucket; `None` without `--from`.
    pub fn check(&self, common: &Common) -> anyhow::Result<Option<ExitCode>> {
        let Some(url) = &self.from else { return Ok(None) };
        let log = open_log(url, self.seal_key.as_ref())?;
        let folder = tempfile::tempdir().context("cannot create a temporary folder for the database")?;
        let audit = audit(&log, &folder.path().join("checked.redb"))?;
        // The first and last slots of the gaps before whole states.
        let given_up = audit.given_up.iter().map(|slots| [*slots.start(), *slots.end()]);
        let checked = json!({
            "ok": true,
            "states": audit.states.len(),
            "entries": audit.entries,
            "slot": audit.slot,
            "seq": audit.seq,
            "given_up": given_up.collect::<Vec<_>>(),
        });
        let mut text = format!(
            "{url} is sound: {}, {} up to slot {}; the log ends at seq {}, as of {}.",
            counted(u64::try_from(audit.states.len()).unwrap_or(u64::MAX), "state"),
            counted(audit.entries, "entry"),
            audit.slot,
            audit.seq,
            audit.result.last_commit_at.as_deref().unwrap_or("the beginning"),
        );
        for slots in &audit.given_up {
            let (first, last) = (slots.start(), slots.end());
            text.push_str(&format!(
                "\nSlots {first} to {last} are missing, and a whole state at slot {} follows them: no time between them can be restored.",
                last + 1
            ));
        }
        common.output().result(&checked, text).map(Some)
    }
}
