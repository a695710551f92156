//! `medfeed lint`: finds likely mistakes in files or in the database. It changes nothing.

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::cli::commands::import::{merge_unlocked, refuse};
use crate::cli::shared::common::Common;
use crate::cli::shared::output::{counted, list_findings};
use crate::cli::shared::read_args::{ReadArgs, read_rows};
use crate::import::MergeOptions;
use crate::import::lint::lint_database;

/// Arguments of `medfeed lint`.
#[derive(Debug, Args)]
#[command(mut_arg("paths", |paths| paths.required(false)))]
pub(in crate::cli) struct LintArgs {
    #[command(flatten)]
    read: ReadArgs,
}

pub(in crate::cli) fn run(common: &Common, args: &LintArgs) -> anyhow::Result<ExitCode> {
    let findings = if args.read.is_empty() {
        lint_database(common.open_follower()?.newest())?
    } else {
        let (sources, options) = args.read.sources_and_options()?;
        let rows = read_rows(&sources, &options)?;
        // The files are merged with the database as in an import, but nothing is written. Removals do not matter here.
        let options = MergeOptions { lints_all: true, allow_removals: Some(u64::MAX), ..MergeOptions::default() };
        match merge_unlocked(common, rows, &options)?.1 {
            Ok(merged) => merged.warnings,
            Err(refusal) => return refuse(common, refusal, args.read.all_faults),
        }
    };
    let ok = findings.is_empty();
    let mut lines = list_findings(&findings, args.read.all_faults, stdout().is_terminal());
    lines.push(if ok {
        "No findings.".to_owned()
    } else {
        counted(u64::try_from(findings.len()).unwrap_or(u64::MAX), "finding")
    });
    common.output().result(&json!({ "ok": ok, "findings": findings }), lines.join("\n"))?;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
