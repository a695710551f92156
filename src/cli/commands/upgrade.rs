//! `medfeed upgrade`.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::cli::shared::common::Common;
use crate::model::PerDataset;
use crate::store::StoreError;
use crate::store::upgrade::{SCHEMA, UpgradePlan, UpgradeReport, plan, upgrade};

/// Arguments of `medfeed upgrade`.
#[derive(Debug, Args)]
pub(in crate::cli) struct UpgradeArgs {
    /// Show what an upgrade would do, and what customers would notice; change nothing
    #[arg(long, conflicts_with = "if_needed")]
    dry_run: bool,
    /// Succeed silently if there is nothing to upgrade: no database, a current one, or a replica. For scripts that
    /// start a server
    #[arg(long)]
    if_needed: bool,
}

/// The result of the command, for `--json`.
#[derive(Serialize)]
struct UpgradeJson<'a> {
    upgraded: bool,
    #[serde(flatten)]
    plan: Option<&'a UpgradePlan>,
    #[serde(flatten)]
    done: Option<&'a UpgradeReport>,
}

pub(in crate::cli) fn run(common: &Common, args: &UpgradeArgs) -> anyhow::Result<ExitCode> {
    let db = common.db.display();
    let planned = match plan(&common.db) {
        // A replica loads its state again when it is served.
        Err(StoreError::NotFound { .. } | StoreError::OlderReplica { .. }) if args.if_needed => {
            return Ok(ExitCode::SUCCESS);
        }
        planned => planned?,
    };
    let Some(planned) = planned else {
        if args.if_needed {
            return Ok(ExitCode::SUCCESS);
        }
        let text = format!("{db} has format {SCHEMA}, the format of this medfeed; there is nothing to upgrade.");
        return common.output().result(&UpgradeJson { upgraded: false, plan: None, done: None }, text);
    };
    if args.dry_run {
        let text = format!("{db} would be upgraded {}", describe(&planned));
        return common.output().result(&UpgradeJson { upgraded: false, plan: Some(&planned), done: None }, text);
    }
    match upgrade(&common.db, common.wait)? {
        Some(done) => {
            let text = format!(
                "{db} is upgraded {}\nThe old file is kept as {}; remove it when you no longer need it to go back.",
                describe(&done.plan),
                done.kept.display()
            );
            common.output().result(&UpgradeJson { upgraded: true, plan: None, done: Some(&done) }, text)
        }
        None => {
            let text = format!("{db} was upgraded by another process meanwhile.");
            common.output().result(&UpgradeJson { upgraded: false, plan: None, done: None }, text)
        }
    }
}

/// The formats, the number of records, and what customers notice.
fn describe(plan: &UpgradePlan) -> String {
    let UpgradePlan { from, to, records: PerDataset { conferences, journals }, fields, .. } = plan;
    let formats = if from == to { format!("within format {to}") } else { format!("from format {from} to format {to}") };
    let noticed = if fields.is_empty() {
        "Customers notice nothing: licenses, keys and sync tokens stay, and no record changes.".to_owned()
    } else {
        format!(
            "Licenses, keys and sync tokens stay. Rows get the new fields {}: records with these fields appear once in the change \
             feed, with `updated_at` as before.",
            fields.join(", ")
        )
    };
    format!("{formats}: {conferences} conferences, {journals} journals.\n{noticed}")
}
