//! `medfeed log`: who changed what, commit by commit.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::common::Common;
use crate::model::printable::Printable;

/// Arguments of `medfeed log`.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// How many commits to show, the newest first
    #[arg(long, value_name = "N", default_value = "20")]
    limit: usize,
}

#[derive(Debug, Serialize)]
struct CommitJson {
    seq: u64,
    time: String,
    who: String,
    what: String,
}

pub(super) fn run(common: &Common, args: &LogArgs) -> anyhow::Result<ExitCode> {
    #[derive(Serialize)]
    struct Commits {
        commits: Vec<CommitJson>,
    }
    let follower = common.open_follower()?;
    let commits: Vec<CommitJson> = follower
        .newest()
        .list_commits(0, args.limit)?
        .into_iter()
        .map(|commit| CommitJson { seq: commit.seq, time: commit.time.to_string(), who: commit.who, what: commit.what })
        .collect();
    let lines = commits.iter().map(|CommitJson { seq, time, who, what }| {
        format!("{time}  seq {seq}  {}  {}\n", Printable(who), Printable(what))
    });
    let text: String = lines.collect();
    let text = if text.is_empty() { "There are no commits yet.".to_owned() } else { text };
    common.output().result(&Commits { commits }, text)
}
