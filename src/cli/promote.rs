//! `medfeed promote`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;

use super::common::Common;
use super::follow::open_log;
use super::output::confirm;
use crate::bucket::BucketUrl;
use crate::replicate::follower::standing::Limits;
use crate::replicate::follower::{Replica, Standing};
use crate::replicate::who::who;
use crate::store::StoreError;
use crate::store::replication::ReplicaWriter;

/// Arguments of `medfeed promote`.
#[derive(Debug, Args)]
pub(super) struct PromoteArgs {
    /// The bucket that the replica follows
    url: BucketUrl,
    /// The file of the key that the bucket's objects are sealed with
    #[arg(long, env = "MEDFEED_SEAL_KEY", value_name = "FILE")]
    seal_key: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(common: &Common, args: &PromoteArgs) -> anyhow::Result<ExitCode> {
    #[derive(Serialize)]
    struct Report {
        promoted: bool,
        slot: u64,
        seq_before: u64,
        seq: u64,
    }
    // Nothing is loaded for it: whoever takes over must have followed.
    drop(ReplicaWriter::open(&common.db).map_err(|error| match error {
        StoreError::Busy { path, holder } => {
            anyhow!("{} is in use by {holder}; stop all servers of it, then promote it", path.display())
        }
        error => error.into(),
    })?);
    let question = format!(
        "{} takes its origin's place for everybody who follows {}: nobody can publish there from the old file any more. What \
         was committed there and is not published stays in that file alone. Go on?",
        common.db.display(),
        args.url
    );
    confirm(&question, args.yes, "promoted")?;
    let log = open_log(&args.url, args.seal_key.as_ref())?;
    let standing = Arc::new(Standing::new(Limits { staleness: Duration::MAX, silence: None }));
    let go_on = &|| true;
    let promoted = Replica::start(log, &common.db, standing, go_on)?.promote(&who(), go_on)?;
    let (slot, seq_before, seq) = (promoted.slot, promoted.before.seq, promoted.head.seq);
    let text = format!(
        "{}: promoted after seq {seq_before}; its seqs go on after {seq}. Next: `medfeed publish {}` here, and callers to a \
         server of this file.",
        common.db.display(),
        args.url
    );
    common.output().result(&Report { promoted: true, slot, seq_before, seq }, text)
}
