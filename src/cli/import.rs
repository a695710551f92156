//! `medfeed import`: one run is one commit, all or nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::process::ExitCode;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::change::{Changes, ChangesJson};
use super::common::Common;
use super::output::{counted, note};
use super::read_args::ReadArgs;
use crate::import::{self, Finding, FindingGroup, Options, Refusal, Source, group};
use crate::model::Dataset;
use crate::model::printable::Printable;
use crate::store::write::batch::{Counts, LicenseEffect, Outcome};

/// Arguments of `medfeed import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    #[command(flatten)]
    read: ReadArgs,
    /// Remove the records of the given datasets that the files do not hold
    #[arg(long)]
    replace: bool,
    /// Allow removing up to this many records of a dataset, where that is more than ten and more than a tenth of it
    #[arg(long, value_name = "N")]
    allow_removals: Option<u64>,
    /// Only show what would happen
    #[arg(long)]
    dry_run: bool,
    /// Refuse the run, nothing changed, if there is a warning
    #[arg(long)]
    strict: bool,
}

#[derive(Serialize)]
struct Imported {
    committed: bool,
    datasets: BTreeMap<Dataset, Counts>,
    organizations: Counts,
    tags: Counts,
    licenses: Vec<LicenseEffect>,
    warnings: Vec<Finding>,
    /// Of a dry run.
    #[serde(flatten)]
    changes: Option<ChangesJson>,
}

#[derive(Serialize)]
struct Refused<'a> {
    committed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    errors: &'a [Finding],
    groups: &'a [FindingGroup],
    error_count: usize,
}

pub(super) fn run(common: &Common, args: ImportArgs) -> anyhow::Result<ExitCode> {
    let progress = Progress::new(common);
    let sources = args.read.find_sources()?;
    progress.begin(&sources);
    let rows = args.read.read(&sources, &mut |bytes| progress.bar.inc(bytes))?;

    progress.step("waiting for the writer's lock");
    let writer = common.open_or_create_writer()?;
    progress.step("checking the rows");
    let mut edit = writer.begin()?;
    let options = Options { replace: args.replace, allow_removals: args.allow_removals, ..Options::default() };
    let merged = match import::merge(rows, &edit, &options) {
        Ok(merged) => merged,
        Err(refusal) => {
            progress.end();
            return refuse(common, refusal, args.read.all_faults);
        }
    };
    if args.strict && !merged.warnings.is_empty() {
        progress.end();
        return refuse_warnings(common, &merged.warnings, args.read.all_faults);
    }
    let names: Vec<&str> = sources.iter().map(|source| source.name().as_ref()).collect();
    let what = format!("import {}{}", names.join(" "), if args.replace { " --replace" } else { "" });
    progress.step("writing");
    let mut changes = args.dry_run.then(|| Changes::of(&edit));
    let outcome = match &mut changes {
        Some(changes) => edit.apply_before(merged.batch, changes)?,
        None => edit.apply(merged.batch)?,
    };
    if !args.dry_run {
        common.commit(edit, what)?;
    }
    progress.end();

    tell_warnings(common, &merged.warnings, args.read.all_faults);
    let text = describe(&outcome, changes.as_ref());
    let imported = Imported {
        committed: !args.dry_run,
        datasets: Dataset::ALL.into_iter().map(|dataset| (dataset, outcome.datasets[dataset.index()])).collect(),
        organizations: outcome.organizations,
        tags: outcome.tags,
        licenses: outcome.licenses,
        warnings: merged.warnings,
        changes: changes.map(Changes::into_json),
    };
    common.output().result(&imported, text)
}

pub(super) fn refuse(common: &Common, refusal: Refusal, all_faults: bool) -> anyhow::Result<ExitCode> {
    let refused = match &refusal {
        Refusal::BadRows(bad) => Refused {
            committed: false,
            error: None,
            errors: bad.kept(),
            groups: bad.groups(),
            error_count: bad.total(),
        },
        Refusal::TooManyRemovals(removals) => {
            Refused { committed: false, error: Some(removals.to_string()), errors: &[], groups: &[], error_count: 0 }
        }
        Refusal::Store(_) => return Err(refusal.into()),
    };
    if common.json {
        common.output().result(&refused, "")?;
        return Ok(ExitCode::FAILURE);
    }
    match &refusal {
        Refusal::BadRows(bad) => {
            let count = counted(u64::try_from(bad.total()).unwrap_or(u64::MAX), "fault");
            if all_faults {
                note(&bad.to_string());
            } else {
                bad.groups().iter().for_each(|group| note(&group.to_string()));
            }
            let told = if all_faults || bad.groups().len() == bad.total() { "" } else { " --all-faults lists each." };
            note(&format!("error: {count}; nothing was changed. Correct them and run the import again.{told}"));
        }
        other => note(&format!("error: {other}; nothing was changed")),
    }
    Ok(ExitCode::FAILURE)
}

/// Tells warnings: those of one kind in one line, or each.
fn tell_warnings(common: &Common, warnings: &[Finding], all: bool) {
    if all {
        warnings.iter().for_each(|warning| common.output().warning(warning));
    } else {
        group(warnings).iter().for_each(|group| common.output().warning(group));
    }
}

/// Refuses a run for what is warned of.
fn refuse_warnings(common: &Common, warnings: &[Finding], all: bool) -> anyhow::Result<ExitCode> {
    if common.json {
        let error = "--strict: the run has warnings; nothing was changed".to_owned();
        let groups = &group(warnings);
        let refused =
            Refused { committed: false, error: Some(error), errors: warnings, groups, error_count: warnings.len() };
        common.output().result(&refused, "")?;
        return Ok(ExitCode::FAILURE);
    }
    tell_warnings(common, warnings, all);
    let count = counted(u64::try_from(warnings.len()).unwrap_or(u64::MAX), "warning");
    note(&format!(
        "error: {count}, and --strict refuses those; nothing was changed. Correct them, or leave --strict out"
    ));
    Ok(ExitCode::FAILURE)
}

/// What a run did, or of a dry run would do.
fn describe(outcome: &Outcome, changes: Option<&Changes>) -> String {
    let mut text = String::new();
    let rows = Dataset::ALL
        .into_iter()
        .map(|dataset| (dataset.as_str(), outcome.datasets[dataset.index()]))
        .chain([("organizations", outcome.organizations), ("tags", outcome.tags)]);
    for (name, counts) in rows.filter(|(_, counts)| *counts != Counts::default()) {
        let Counts { added, changed, removed, unchanged } = counts;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:<14} {added:>6} added {changed:>6} changed {removed:>6} removed {unchanged:>6} unchanged"
        );
    }
    text.extend(changes.map(Changes::describe_rows));
    for effect in &outcome.licenses {
        let LicenseEffect { license, dataset, entering, changed, leaving } = effect;
        if entering + changed + leaving > 0 {
            let _ = writeln!(
                text,
                "license `{}`, {dataset}: {entering} enter, {changed} change, {leaving} leave",
                Printable(license)
            );
            text.extend(changes.map(|changes| changes.describe_license(license, *dataset)));
        }
    }
    let all = outcome.datasets.into_iter().chain([outcome.organizations, outcome.tags]);
    let nothing_new = all.fold(0, |sum, counts| sum + counts.added + counts.changed + counts.removed) == 0;
    text.push_str(match (nothing_new, changes.is_some()) {
        (true, _) => "Nothing is new; nothing was changed.",
        (false, true) => "Dry run: nothing was changed.",
        (false, false) => "Committed.",
    });
    text
}

/// A progress bar, on terminals only.
struct Progress {
    bar: ProgressBar,
}

impl Progress {
    fn new(common: &Common) -> Progress {
        let shown = !common.json && stderr().is_terminal();
        Progress { bar: if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() } }
    }

    fn begin(&self, sources: &[Source]) {
        let total: Option<u64> = sources.iter().map(Source::size_bytes).sum();
        if let Some(total) = total {
            self.bar.set_length(total);
            if let Ok(style) = ProgressStyle::with_template("reading {wide_bar} {bytes}/{total_bytes} {eta}") {
                self.bar.set_style(style);
            }
        }
    }

    fn step(&self, message: &'static str) {
        self.bar.set_style(ProgressStyle::default_spinner());
        self.bar.set_message(message);
        self.bar.enable_steady_tick(std::time::Duration::from_millis(100));
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
