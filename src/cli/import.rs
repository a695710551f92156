//! `medfeed import`: one run is one commit, all or nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::common::Common;
use super::output::{counted, note};
use crate::import::{self, Bounds, Finding, Format, Options, Refusal, RowKind, Source};
use crate::model::Dataset;
use crate::model::printable::Printable;
use crate::store::write::batch::{Counts, LicenseEffect, Outcome};

/// Arguments of `medfeed import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Files, or folders with files, named conferences, journals, organizations or tags, ending .jsonl or .csv, each
    /// also with .gz; `-` reads standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What standard input holds: conferences, journals, organizations or tags
    #[arg(long, value_name = "KIND")]
    dataset: Option<RowKind>,
    /// The format of standard input: jsonl or csv
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Remove the records of the given datasets that the files do not hold
    #[arg(long)]
    replace: bool,
    /// Allow removing up to this many records of a dataset, where that is more than ten and more than a tenth of it
    #[arg(long, value_name = "N")]
    allow_removals: Option<u64>,
    /// Only show what would happen
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    bounds: BoundsArgs,
}

/// Bounds beyond which a file is refused.
#[derive(Debug, Args)]
#[command(next_help_heading = "Bounds, which no usual file meets")]
struct BoundsArgs {
    /// The longest line of JSON, or row of CSV, in bytes
    #[arg(long, env = "MEDFEED_MAX_LINE_BYTES", value_name = "N", default_value_t = Bounds::default().line_bytes,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    max_line_bytes: usize,
    /// The longest name of a field or column, in bytes
    #[arg(long, env = "MEDFEED_MAX_NAME_BYTES", value_name = "N", default_value_t = Bounds::default().name_bytes,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    max_name_bytes: usize,
    /// The most columns of a CSV file, and members of a JSON object
    #[arg(long, env = "MEDFEED_MAX_COLUMNS", value_name = "N", default_value_t = Bounds::default().columns,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    max_columns: usize,
    /// The most rows of a CSV file, and lines of a JSON file
    #[arg(long, env = "MEDFEED_MAX_ROWS", value_name = "N", default_value_t = Bounds::default().rows,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    max_rows: usize,
    /// The largest file, in bytes after decompressing it
    #[arg(long, env = "MEDFEED_MAX_FILE_BYTES", value_name = "N", default_value_t = Bounds::default().file_bytes,
          value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    max_file_bytes: u64,
}

impl BoundsArgs {
    fn bounds(&self) -> Bounds {
        Bounds {
            line_bytes: self.max_line_bytes,
            name_bytes: self.max_name_bytes,
            columns: self.max_columns,
            rows: self.max_rows,
            file_bytes: self.max_file_bytes,
        }
    }
}

#[derive(Serialize)]
struct Imported {
    committed: bool,
    datasets: BTreeMap<Dataset, Counts>,
    organizations: Counts,
    tags: Counts,
    licenses: Vec<LicenseEffect>,
    warnings: Vec<Finding>,
}

#[derive(Serialize)]
struct Refused<'a> {
    committed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    errors: &'a [Finding],
    error_count: usize,
}

pub(super) fn run(common: &Common, args: ImportArgs) -> anyhow::Result<ExitCode> {
    let progress = Progress::new(common);
    let sources = find_sources(&args)?;
    progress.begin(&sources);
    let rows = import::read_sources(&sources, &args.bounds.bounds(), &mut |bytes| progress.bar.inc(bytes))?;

    progress.step("waiting for the writer's lock");
    let writer = common.open_or_create_writer()?;
    progress.step("checking the rows");
    let mut edit = writer.begin()?;
    let options = Options { replace: args.replace, allow_removals: args.allow_removals };
    let merged = match import::merge(rows, &edit, &options) {
        Ok(merged) => merged,
        Err(refusal) => {
            progress.end();
            return refuse(common, refusal);
        }
    };
    let names: Vec<&str> = sources.iter().map(|source| source.name().as_ref()).collect();
    let what = format!("import {}{}", names.join(" "), if args.replace { " --replace" } else { "" });
    progress.step("writing");
    let outcome = edit.apply(merged.batch)?;
    if !args.dry_run {
        common.commit(edit, what)?;
    }
    progress.end();

    for warning in &merged.warnings {
        common.output().warning(warning);
    }
    let text = describe(&outcome, args.dry_run);
    let imported = Imported {
        committed: !args.dry_run,
        datasets: Dataset::ALL.into_iter().map(|dataset| (dataset, outcome.datasets[dataset.index()])).collect(),
        organizations: outcome.organizations,
        tags: outcome.tags,
        licenses: outcome.licenses,
        warnings: merged.warnings,
    };
    common.output().result(&imported, text)
}

fn find_sources(args: &ImportArgs) -> anyhow::Result<Vec<Source>> {
    let standard_input = match (args.dataset, args.format) {
        (Some(kind), Some(format)) => Some((kind, format)),
        (None, None) => None,
        _ => bail!(
            "--dataset and --format go together, and say what standard input (`-`) holds; a file's name says it itself"
        ),
    };
    Ok(Source::find(&args.paths, standard_input)?)
}

fn refuse(common: &Common, refusal: Refusal) -> anyhow::Result<ExitCode> {
    let refused = match &refusal {
        Refusal::BadRows(bad) => {
            Refused { committed: false, error: None, errors: bad.kept(), error_count: bad.total() }
        }
        Refusal::TooManyRemovals(removals) => {
            Refused { committed: false, error: Some(removals.to_string()), errors: &[], error_count: 0 }
        }
        Refusal::Store(_) => return Err(refusal.into()),
    };
    if common.json {
        common.output().result(&refused, "")?;
        return Ok(ExitCode::FAILURE);
    }
    match &refusal {
        Refusal::BadRows(bad) => {
            note(&bad.to_string());
            let count = u64::try_from(bad.total()).unwrap_or(u64::MAX);
            note(&format!(
                "error: {}; nothing was changed. Correct them and run the import again.",
                counted(count, "fault")
            ));
        }
        other => note(&format!("error: {other}; nothing was changed")),
    }
    Ok(ExitCode::FAILURE)
}

fn describe(outcome: &Outcome, dry_run: bool) -> String {
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
    for effect in &outcome.licenses {
        let LicenseEffect { license, dataset, entering, changed, leaving } = effect;
        if entering + changed + leaving > 0 {
            let _ = writeln!(
                text,
                "license `{}`, {dataset}: {entering} enter, {changed} change, {leaving} leave",
                Printable(license)
            );
        }
    }
    let all = outcome.datasets.into_iter().chain([outcome.organizations, outcome.tags]);
    let nothing_new = all.fold(0, |sum, counts| sum + counts.added + counts.changed + counts.removed) == 0;
    text.push_str(match (nothing_new, dry_run) {
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
