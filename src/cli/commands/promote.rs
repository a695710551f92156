//! `medfeed promote`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use serde_json::json;

use crate::bucket::BucketUrl;
use crate::cli::common::{Common, SealArgs, warn_of_pause};
use crate::cli::output::confirm;
use crate::model::ShellWord;
use crate::replicate::publisher::lock::PublisherLock;
use crate::replicate::publisher::{PublishSettings, Publisher};
use crate::replicate::replica::promote::Promoted;
use crate::replicate::replica::{LogReader, Replica, ReplicaStatus};
use crate::store::StoreError;
use crate::store::replication::ReplicaWriter;

/// Arguments of `medfeed promote`.
#[derive(Debug, Args)]
pub struct PromoteArgs {
    /// The bucket that the replica follows
    url: BucketUrl,
    #[command(flatten)]
    seal: SealArgs,
    /// Promote this file as it is, even if the bucket lost entries or the end of its log is unknown. The log starts
    /// over with the whole state of this file
    #[arg(long)]
    start_over: bool,
}

pub fn run(common: &Common, args: &PromoteArgs) -> Result<ExitCode> {
    // Only a file that has followed the bucket can take over, so nothing is loaded.
    let since = open_replica(common, &args.url)?.head()?.seq;
    let db = common.db.display();
    let url = &args.url;
    let question = if args.start_over {
        format!(
            "{db} becomes the origin as it is, and the log at {url} starts over with its whole state. Commits that only the log \
             has are lost. Continue?"
        )
    } else {
        format!(
            "{db} becomes the origin of all replicas that follow {url}. The old origin can no longer publish there. Its commits \
             that are not published remain only in its file. Continue?"
        )
    };
    warn_of_pause(common.open_reader()?.newest().commit());
    confirm(&question, common.yes, "promoted")?;
    let log = args.seal.open_log(&args.url)?;
    let promoted = match args.start_over {
        true => start_over(common, url, &log)?,
        false => take_over(common, log, since)?,
    };
    let slot = promoted.slot;
    let seq_before = promoted.before.seq;
    let seq = promoted.head.seq;
    let text = format!(
        "{db} is promoted. It has everything up to seq {seq_before}, and continues after seq {seq}. Next: stop the servers of the \
         old origin's file, which otherwise continue to answer; run `medfeed publish {}` here; and send callers to a server of \
         this file.",
        ShellWord(&url.to_string())
    );
    common.result(
        &json!({ "promoted": true, "slot": slot, "seq_before": seq_before, "seq": seq }),
        text,
    )
}

fn open_replica(common: &Common, url: &BucketUrl) -> Result<ReplicaWriter> {
    ReplicaWriter::open(&common.db).map_err(|error| match error {
        StoreError::Busy { path, holder } => {
            anyhow!("{} is in use by {holder}; stop all servers of this file, then promote it", path.display())
        }
        StoreError::NotFound { path } => anyhow!(
            "there is no replica at {}; name its file with --db. Without a replica, run `medfeed backup FILE --from {}`, then \
             publish that file",
            path.display(),
            ShellWord(&url.to_string())
        ),
        error => error.into(),
    })
}

fn take_over(common: &Common, log: LogReader, since: u64) -> Result<Promoted> {
    let status = Arc::new(ReplicaStatus::new(Duration::MAX));
    let keep_going = &|| true;
    // The lock's name identifies an entry of an earlier run that was killed.
    let lock = PublisherLock::take(&common.db)?;
    let promoted = Replica::start(log, &common.db, status, keep_going)
        .and_then(|replica| replica.promote(since, &lock.who, keep_going));
    promoted.map_err(|error| match error.is_of_log() {
        true => anyhow!("{error}. To continue without the commits that this replica does not have, add --start-over"),
        false => error.into(),
    })
}

/// Makes the file an origin, then publishes its whole state.
fn start_over(common: &Common, url: &BucketUrl, log: &LogReader) -> Result<Promoted> {
    let promoted = Replica::start_over(&common.db, log)?;
    let settings = PublishSettings::once(common.wait, true);
    let published = Publisher::start(
        &common.db,
        Arc::clone(&log.bucket),
        settings,
        Arc::default(),
    )
    .and_then(|mut publisher| publisher.run(|| ()));
    let progress = published.map_err(|error| {
        anyhow!(
            "{error}. {} is an origin now, but not published yet; run `medfeed publish {} --start-over`",
            common.db.display(),
            ShellWord(&url.to_string())
        )
    })?;
    Ok(Promoted {
        slot: progress.log_end.map_or(0, |(_, end)| end.slot),
        ..promoted
    })
}
