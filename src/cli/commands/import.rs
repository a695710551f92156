//! `medfeed import`: one run is one commit, all or nothing. And `medfeed lint`, which finds likely mistakes in files or
//! in the database, and changes nothing.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::{IsTerminal, Write as _, stderr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use strum::VariantNames;

use crate::cli::arguments::{one_of, parse_note};
use crate::cli::change::Changes;
use crate::cli::common::{AccessChange, Common, require_folder};
use crate::cli::output::{
    can_ask, can_draw, confirm, counted, list_findings, note, print_error, print_json,
};
use crate::import::lint::lint_database;
use crate::import::{
    self, BadRows, ColumnMapping, DateOrder, DecimalSign, FileFormat, FilledFields, Finding,
    Findings, Given, ImportRows, InputError, ListCounts, MergeOptions, Merged, ReadOptions,
    Refusal, RowKind, Source, SourceOptions, SourceRows, Word, read_recipe,
};
use crate::model::Head;
use crate::model::message::message;
use crate::model::printable::Printable;
use crate::store::write::edit::{BatchOutcome, LicenseEffect};
use crate::store::{RowCounts, Writer};

/// The files to read, and how.
#[derive(Debug, Args)]
pub(in crate::cli) struct ReadArgs {
    /// Files to read, or folders with such files. Without --dataset, a file or a sheet of a workbook is named
    /// conferences, journals, organizations or tags. Formats: .jsonl, .json, .csv (each also with .gz) and .xlsx. `-`
    /// reads standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Read the files as this TOML file says. `medfeed template KIND --from FILE` drafts one. The other options of
    /// this command have precedence
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
    /// The content of files with other names, or of standard input: conferences, journals, organizations or tags
    #[arg(long, value_name = "KIND", value_parser = one_of::<RowKind>(RowKind::VARIANTS))]
    dataset: Option<RowKind>,
    /// The format of the files, if neither their names nor their content show it: jsonl, json, csv or xlsx
    #[arg(long, value_name = "FORMAT", value_parser = one_of::<FileFormat>(FileFormat::VARIANTS))]
    format: Option<FileFormat>,
    /// The sheet of a workbook to read
    #[arg(long, value_name = "NAME")]
    sheet: Option<String>,
    /// Read the column or field NAME as FIELD, such as 'Website=url'; repeatable. `NAME#2` is the second column of this
    /// name, and `=D` the column D
    #[arg(long = "map", value_name = "NAME=FIELD", value_parser = |text: &str| assignment(text.rsplit_once('=')))]
    columns: Vec<(String, String)>,
    /// A value for a field of rows that have none, such as impact_factor_year=2024; repeatable
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = |text: &str| assignment(text.split_once('=')))]
    constants: Vec<(String, String)>,
    /// Read cells with exactly this text as empty, such as N/A; repeatable
    #[arg(long, value_name = "TEXT")]
    empty: Vec<String>,
    /// Match rows without ids to records by these fields, such as name,year; rows without a match get new ids. If
    /// repeated, the fields are tried one after the other. Empty cells of such files keep stored values
    #[arg(long = "match", value_name = "FIELD")]
    matching: Vec<String>,
    /// Create the unknown organizations and tags that records link to
    #[arg(long)]
    create_links: bool,
    /// The order of day and month in dates such as 3/4/2026: dmy or mdy
    #[arg(long, value_name = "ORDER", value_parser = one_of::<DateOrder>(DateOrder::VARIANTS))]
    dates: Option<DateOrder>,
    /// The decimal separator, where 3.000 or 3,000 may be 3 or 3000: point or comma
    #[arg(long, value_name = "SIGN", value_parser = one_of::<DecimalSign>(DecimalSign::VARIANTS))]
    decimal: Option<DecimalSign>,
    /// Skip unknown columns and fields, with a warning that names them
    #[arg(long)]
    ignore_unknown: bool,
    /// List each fault and warning, up to 10,000, instead of one line for each kind
    #[arg(long)]
    pub all_faults: bool,
}

/// Parses the number of bad rows that may be left out.
fn parse_allowed_faults(text: &str) -> Result<usize, String> {
    let most = BadRows::MAX_ALLOWED;
    let count = text.parse().ok().filter(|count| *count <= most);
    count.ok_or_else(|| format!("write a number of rows from 0 to {most}"))
}

/// Takes the name and the value of NAME=VALUE. `--map` splits at the last `=`, because names of columns contain it
/// (`=D`). `--set` splits at the first, because values do.
fn assignment(parts: Option<(&str, &str)>) -> Result<(String, String), &'static str> {
    let (name, value) = parts.unwrap_or_default();
    if name.trim().is_empty() || value.trim().is_empty() {
        return Err("write a name, `=` and a value, such as 'Website=url'");
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl ReadArgs {
    /// Finds the files at the paths, and returns the options for reading them.
    pub fn sources_and_options(&self) -> anyhow::Result<(Vec<Source>, ReadOptions)> {
        let (mut options, of_recipe) = match &self.recipe {
            Some(path) => read_recipe(path)?,
            None => (ReadOptions::default(), None),
        };
        for (name, field) in &self.columns {
            let value = ColumnMapping {
                column: name.as_str().into(),
                fields: vec![field.clone()],
            };
            options
                .columns
                .retain(|given| given.value.column != value.column);
            options.columns.push(Given {
                value,
                origin: format!("--map '{name}={field}'"),
            });
        }
        for (field, value) in &self.constants {
            options.constants.retain(|given| given.value.0 != *field);
            let origin = format!("--set '{field}={value}'");
            options.constants.push(Given {
                value: (field.clone(), value.clone()),
                origin,
            });
        }
        if !self.matching.is_empty() {
            let set = |names: &String| Given {
                value: names
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .collect(),
                origin: format!("--match {names}"),
            };
            options.matching = self.matching.iter().map(set).collect();
        }
        let empty = self.empty.iter().map(|text| Given {
            value: Word {
                field: None,
                text: text.clone(),
                value: String::new(),
            },
            origin: format!("--empty '{text}'"),
        });
        options.words.splice(0..0, empty);
        if let Some(sheet) = &self.sheet {
            options.sheets = vec![sheet.clone()];
        }
        options.dates = self.dates.or(options.dates);
        options.decimal = self.decimal.or(options.decimal);
        options.create_links |= self.create_links;
        options.ignore_unknown |= self.ignore_unknown;
        options.check()?;
        let kind = self.dataset.or(of_recipe);
        let sources = Source::find(
            &self.paths,
            SourceOptions {
                kind,
                format: self.format,
            },
        )?;
        let kinds = sources.iter().map(|source| source.kind);
        options.check_list(kinds)?;
        Ok((sources, options))
    }
}

/// Arguments of `medfeed import`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArgs {
    #[command(flatten)]
    read: ReadArgs,
    /// Create the database if there is none
    #[arg(long)]
    create: bool,
    /// Remove the records of the imported datasets that the files do not contain
    #[arg(long)]
    replace: bool,
    /// Allow removing up to N records of a dataset. Without it, an import removes at most ten records or a tenth of
    /// the dataset, whichever is more
    #[arg(long, value_name = "N")]
    allow_removals: Option<u64>,
    /// Import the other rows if at most N rows are bad, and list the bad ones
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, conflicts_with = "replace",
        value_parser = parse_allowed_faults)]
    allow_faults: usize,
    /// Write the bad rows to a new file, as they are in their source, each with its fault. Corrected there, they are
    /// imported by the same recipe
    #[arg(long, value_name = "FILE", conflicts_with = "replace")]
    faults: Option<PathBuf>,
    /// Correct values whose right value follows from them, such as `Heart &amp; Lung`, and list the corrections. Similar
    /// words are only asked about
    #[arg(long)]
    fix: bool,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Refuse the import if there is a warning, also with --yes
    #[arg(long)]
    strict: bool,
    /// Store a note for `medfeed log`, such as the source of the list: one line of at most 500 characters
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    note: Option<String>,
}

pub(in crate::cli) fn run(common: &Common, args: &ImportArgs) -> anyhow::Result<ExitCode> {
    common.require_db(args.create, args.dry_run)?;
    if !args.dry_run {
        common.confirm_clock()?;
    }
    let is_shown = !common.json && can_draw();
    let bar = if is_shown {
        ProgressBar::new_spinner()
    } else {
        ProgressBar::hidden()
    };
    let (sources, mut reading) = args.read.sources_and_options()?;
    let ImportArgs {
        replace,
        allow_removals,
        fix,
        ..
    } = *args;
    reading.replace = replace;
    let options = MergeOptions {
        replace,
        allow_removals,
        fix,
        allow_faults: args.allow_faults,
        lints_all: false,
    };
    args.check_faults_file(&sources)?;
    show_step(&bar, "reading the files");
    let rows = import::read_sources(&sources, &reading)?;
    let mut accepted: Option<Findings> = None;
    let (merged, outcome, changes) = loop {
        show_step(&bar, "checking the rows");
        let (head, merged) = merge_unlocked(common, rows.clone(), &options)?;
        let mut merged = match merged {
            Ok(merged) => merged,
            Err(refusal) => {
                bar.finish_and_clear();
                if let Refusal::BadRows(bad) = &refusal {
                    args.write_faults(common, &sources, &reading, (&rows, bad))?;
                }
                return refuse(common, refusal, &args.read, args.allow_faults);
            }
        };
        if args.strict && !merged.warnings.is_empty() {
            bar.finish_and_clear();
            let warnings = &merged.warnings;
            print_warnings(common, warnings, args.read.all_faults);
            let count = counted(warnings.total(), "warning");
            let error = format!(
                "{count}; nothing was changed, because --strict refuses warnings. Make the corrections, or leave out --strict"
            );
            return refuse_with(common, &error, warnings);
        }
        let is_accepted = merged.warnings.is_empty() || accepted.as_ref() == Some(&merged.warnings);
        if args.asks(common) && !is_accepted {
            bar.finish_and_clear();
            print_warnings(common, &merged.warnings, args.read.all_faults);
            let count = counted(merged.warnings.total(), "warning");
            confirm(
                &format!("The import has {count}. Commit nevertheless?"),
                false,
                "imported",
            )?;
            accepted = Some(merged.warnings.clone());
        }
        show_step(&bar, "waiting for the writer's lock");
        let writer = common.open_to_change(args.create, args.dry_run)?;
        let mut edit = writer.begin()?;
        if edit.base_commit().head() != head {
            // Another command has committed, or has replaced the file.
            show_step(&bar, "checking the rows again");
            merged = match import::merge(rows.clone(), &edit.base()?, &options) {
                Ok(again) if again.warnings == merged.warnings => again,
                // The lock is released before the import is refused, or asks again.
                _ => continue,
            };
        }
        show_step(&bar, "writing");
        let outcome = edit.apply(&merged.batch)?;
        let changes = args
            .dry_run
            .then(|| Changes::of(&edit.base()?, &edit, &merged.batch))
            .transpose()?;
        if !args.dry_run {
            edit.set_note(args.note.clone());
            common.commit(edit, args.describe(&sources))?;
        }
        break (merged, outcome, changes);
    };
    bar.finish_and_clear();

    if accepted.is_none() {
        print_warnings(common, &merged.warnings, args.read.all_faults);
    }
    if !common.json {
        merged
            .notes
            .iter()
            .for_each(|found| note(&format!("note: {found}")));
    }
    args.write_faults(common, &sources, &reading, (&rows, &merged.bad))?;
    let mut text = args.describe_findings(&merged);
    text.push_str(&describe_counts(&outcome, &merged));
    text.push_str(&describe(
        &outcome,
        changes.as_ref(),
        merged.warnings.total(),
    ));
    let json = args.result_json(&outcome, &merged, changes);
    let done = common.result(&json, text)?;
    if args.dry_run {
        Ok(done)
    } else {
        common.await_publication(AccessChange::None)
    }
}

impl ImportArgs {
    /// Whether the import asks before it commits with warnings.
    fn asks(&self, common: &Common) -> bool {
        !common.yes && !self.dry_run && !common.json && can_ask() && stderr().is_terminal()
    }

    /// Checks that the file of `--faults` can be written later: it is new, and the sources can be read again.
    fn check_faults_file(&self, sources: &[Source]) -> Result<(), InputError> {
        let Some(path) = &self.faults else {
            return Ok(());
        };
        let refused = |problem: &str| {
            let message = format!("--faults {}: {problem}", path.display());
            Err(InputError(None, message))
        };
        if path.symlink_metadata().is_ok() {
            return refused("the file exists; name a new one");
        }
        if sources.iter().any(|source| source.path.is_none()) {
            return refused("standard input cannot be read a second time; import a file");
        }
        Ok(())
    }

    /// Writes the bad rows to the file of `--faults`, if there are some.
    fn write_faults(
        &self,
        common: &Common,
        sources: &[Source],
        reading: &ReadOptions,
        (rows, bad): (&ImportRows, &Findings),
    ) -> anyhow::Result<()> {
        let Some(path) = self.faults.as_ref().filter(|_| !bad.is_empty()) else {
            return Ok(());
        };
        let found = SourceRows::read(sources, reading, rows, bad)?;
        if found.left_out > 0 {
            let count = counted(found.left_out, "bad row");
            let path = path.display();
            common.warning(&format!(
                "{count} of other columns or formats are not in {path}; import one file at a time"
            ));
        }
        let text = found.text()?;
        if text.is_empty() {
            return Ok(());
        }
        let failed = || format!("cannot write {}", path.display());
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .with_context(failed)?;
        file.write_all(&text).with_context(failed)
    }

    /// Describes the bad rows that are left out, the corrections and the new ids.
    fn describe_findings(&self, merged: &Merged) -> String {
        let mut text = String::new();
        if !merged.bad.is_empty() {
            let lines = list_findings(&merged.bad, self.read.all_faults).join("\n");
            let count = counted(merged.bad.rows().count(), "bad row");
            text.push_str(&format!("{lines}\n{count} left out\n"));
        }
        let mut assigned = Findings::default();
        assigned.extend(merged.assigned.iter().cloned());
        for (found, noun) in [(&merged.fixes, "correction"), (&assigned, "new id")] {
            if !found.is_empty() {
                let lines = list_findings(found, self.read.all_faults).join("\n");
                text.push_str(&format!("{lines}\n{}\n", counted(found.total(), noun)));
            }
        }
        text
    }

    /// Returns the result in JSON.
    fn result_json(
        &self,
        outcome: &BatchOutcome,
        merged: &Merged,
        changes: Option<Changes>,
    ) -> serde_json::Value {
        let mut json = json!({
            "committed": !self.dry_run,
            "datasets": outcome.rows.datasets,
            "organizations": outcome.rows.organizations,
            "tags": outcome.rows.tags,
            "licenses": outcome.licenses,
            "warning_count": merged.warnings.total(),
            "warnings": merged.warnings.kept(),
            "notes": merged.notes,
            "fix_count": merged.fixes.total(),
            "fixes": merged.fixes.kept(),
            "assigned": merged.assigned,
            "rows": merged.counts.rows,
            "unknown": merged.counts.unknown,
            "left_out": merged.counts.left_out,
            "respelled": merged.counts.respelled,
            "kept": merged.counts.kept,
            "cleared": merged.counts.cleared,
            "removed_items": merged.counts.removed_items,
            "filled": filled_json(&merged.filled),
            "note": self.note,
        });
        if self.allow_faults > 0 {
            json["bad_rows"] = json!(merged.bad.rows().count());
            json["error_count"] = json!(merged.bad.total());
            json["errors"] = json!(merged.bad.kept());
        }
        if let Some(Changes {
            changes,
            license_changes,
        }) = changes
        {
            json["changes"] = json!(changes);
            json["license_changes"] = json!(license_changes);
        }
        json
    }

    /// The description for the history.
    fn describe(&self, sources: &[Source]) -> String {
        let read = sources.iter().filter(|source| !source.is_skipped);
        let names: Vec<&str> = read.map(|source| &*source.name).collect();
        format!(
            "import {}{}",
            names.join(" "),
            if self.replace { " --replace" } else { "" }
        )
    }
}

/// Merges the rows with the last commit, without the writer's lock. Also returns that commit.
fn merge_unlocked(
    common: &Common,
    rows: ImportRows,
    options: &MergeOptions,
) -> anyhow::Result<(Head, Result<Merged, Refusal>)> {
    let db = common.resolved_db();
    require_folder(&db)?;
    if !db.exists() {
        return Ok((
            Head::default(),
            import::merge(rows, &Writer::of_copy(&db)?.snapshot()?, options),
        ));
    }
    let reader = common.open_reader()?;
    reader.refuse_replica()?;
    let snapshot = reader.newest();
    Ok((
        snapshot.commit().head(),
        import::merge(rows, snapshot, options),
    ))
}

fn refuse(
    common: &Common,
    refusal: Refusal,
    read: &ReadArgs,
    allowed: usize,
) -> anyhow::Result<ExitCode> {
    let all_faults = read.all_faults;
    let bad = match refusal {
        Refusal::BadRows(bad) => bad,
        Refusal::TooManyRemovals(removals) => {
            let error = format!("{removals}; nothing was changed");
            return refuse_with(common, &error, &Findings::default());
        }
        Refusal::Store(_) => return Err(refusal.into()),
    };
    if !common.json {
        list_findings(&bad, all_faults)
            .iter()
            .for_each(|line| note(line));
    }
    let hint = if all_faults || bad.groups().len() == bad.total() {
        ""
    } else {
        " --all-faults lists each."
    };
    let count = counted(bad.total(), "fault");
    let rows = bad.rows();
    let allowance = match allowed {
        0 => String::new(),
        _ if rows.of_file => " --allow-faults does not cover faults of whole files.".to_owned(),
        _ if rows.count() > BadRows::MAX_ALLOWED => String::new(),
        _ => format!(
            " Or leave out the bad rows with --allow-faults {}.",
            rows.count()
        ),
    };
    let error = format!(
        "{count}; nothing was changed. Make the corrections and run the command again.{allowance}{hint}"
    );
    refuse_with(common, &error, &bad)
}

/// Prints why an import was refused; as JSON, with the findings.
fn refuse_with(common: &Common, error: &str, found: &Findings) -> anyhow::Result<ExitCode> {
    if common.json {
        let json = json!({
            "committed": false, "error": error, "errors": found.kept(), "groups": found.groups(),
            "error_count": found.total()
        });
        print_json(&json.to_string())
            .context("the findings cannot be written to standard output")?;
    } else {
        print_error(common.json, error);
    }
    Ok(ExitCode::FAILURE)
}

/// Prints warnings: one line for each kind, or all.
fn print_warnings(common: &Common, warnings: &Findings, all: bool) {
    list_findings(warnings, all)
        .iter()
        .for_each(|line| common.warning(line));
}

/// Returns the number of rows that fill each field, by kind and field.
fn filled_json(filled: &[FilledFields]) -> serde_json::Value {
    let kinds = filled.iter().map(|of_kind| {
        let fields = of_kind.fields.iter();
        let fields = fields.map(|(field, count)| ((*field).to_owned(), json!(count)));
        (
            of_kind.kind.to_owned(),
            fields.collect::<serde_json::Map<_, _>>().into(),
        )
    });
    kinds.collect::<serde_json::Map<_, _>>().into()
}

/// Describes the effects of the rows of lists of others, and the values that any file clears.
fn describe_counts(outcome: &BatchOutcome, merged: &Merged) -> String {
    let counts = &merged.counts;
    if !counts.is_list && counts.unknown == 0 {
        return match counts.cleared {
            0 => String::new(),
            cleared => format!("{} cleared\n", counted(cleared, "value")),
        };
    }
    let named = outcome.rows.named();
    let sum =
        |count: fn(&RowCounts) -> u64| named.iter().map(|(_, counts)| count(counts)).sum::<u64>();
    let spelling = match counts.respelled {
        0 => String::new(),
        respelled => format!(" ({respelled} but for spelling)"),
    };
    let removed = match counts.removed_items {
        0 => String::new(),
        items => format!(", {} of lists removed", counted(items, "item")),
    };
    let contradicting = match counts.contradicting {
        0 => String::new(),
        rows => format!("{} left out by contradicting ISSNs; ", counted(rows, "row")),
    };
    format!(
        "{}{}: {} changed, {} equal{spelling}, {} unknown{}; {contradicting}{} kept stored values; {} cleared{removed}\n",
        describe_filled(&merged.filled),
        counted(counts.rows, "row"),
        counted(sum(|counts| counts.changed), "record"),
        sum(|counts| counts.unchanged),
        counts.unknown,
        fate_of_unknown(counts),
        counted(counts.kept, "empty cell"),
        counted(counts.cleared, "value"),
    )
}

/// Describes how many rows fill each field.
fn describe_filled(filled: &[FilledFields]) -> String {
    let mut text = String::new();
    for FilledFields { kind, rows, fields } in filled {
        let fields: Vec<String> = fields
            .iter()
            .map(|(field, count)| format!("{field} {count}"))
            .collect();
        let verb = if *rows == 1 { "fills" } else { "fill" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{kind}: {} {verb} {}",
            counted(*rows, "row"),
            fields.join(", ")
        );
    }
    text
}

/// Describes what happens to the rows without a record.
fn fate_of_unknown(counts: &ListCounts) -> String {
    let left_out = counts.left_out - counts.contradicting;
    let fates = [
        (counts.unknown - left_out - counts.absent, "new"),
        (left_out, "left out"),
        (counts.absent, "not there to remove"),
    ];
    let fates: Vec<(u64, &str)> = fates.into_iter().filter(|(rows, _)| *rows > 0).collect();
    match fates[..] {
        [] => String::new(),
        [(_, fate)] => format!(" ({fate})"),
        _ => {
            let parts: Vec<String> = fates
                .iter()
                .map(|(rows, fate)| format!("{rows} {fate}"))
                .collect();
            format!(" ({})", parts.join(", "))
        }
    }
}

/// Describes the changes of an import, or of a dry run.
fn describe(outcome: &BatchOutcome, changes: Option<&Changes>, warnings: usize) -> String {
    let mut text = String::new();
    let rows = outcome.rows.named();
    for (name, counts) in rows {
        if counts == RowCounts::default() {
            continue;
        }
        let RowCounts {
            added,
            changed,
            removed,
            unchanged,
        } = counts;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:<14} {added:>6} added {changed:>6} changed {removed:>6} removed {unchanged:>6} unchanged"
        );
    }
    text.extend(changes.map(Changes::describe_rows));
    for effect in &outcome.licenses {
        let LicenseEffect {
            license,
            dataset,
            entering,
            changed,
            leaving,
        } = effect;
        if entering + changed + leaving > 0 {
            let _ = writeln!(
                text,
                "license `{}`, {dataset}: records entering: {entering}, changing: {changed}, leaving: {leaving}",
                Printable(license)
            );
            text.extend(changes.map(|changes| changes.describe_license(license, *dataset)));
        }
    }
    let nothing_new = rows.iter().all(|(_, counts)| counts.differing() == 0);
    let warned = match warnings {
        0 => ".".to_owned(),
        count => format!(", with {}.", counted(count, "warning")),
    };
    text.push_str(match (nothing_new, changes.is_some()) {
        (true, _) => "Nothing is new; nothing was changed",
        (false, true) => "Dry run: nothing was changed",
        (false, false) => "Committed",
    });
    text + &warned
}

/// Shows the step of the import.
fn show_step(bar: &ProgressBar, message: &'static str) {
    // The bar may have ended for a question.
    if bar.is_finished() {
        bar.reset();
    }
    bar.set_message(message);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
}

/// Prints the error of an option, a recipe or a whole file like that of rows.
pub(in crate::cli) fn refuse_input(
    common: &Common,
    done: anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let InputError(file, error) = match done {
        Err(error) if common.json => error.downcast()?,
        done => return done,
    };
    let mut found = Findings::default();
    found.extend([Finding {
        file: file.map(|file| file.display().to_string()),
        message: message!("{error}"),
        ..Finding::default()
    }]);
    refuse_with(common, &error, &found)
}

/// Runs `medfeed lint`.
pub(in crate::cli) fn lint(common: &Common, args: &ReadArgs) -> anyhow::Result<ExitCode> {
    let findings = if args.paths.is_empty() {
        lint_database(common.open_reader()?.newest())?
    } else {
        let (sources, options) = args.sources_and_options()?;
        let rows = import::read_sources(&sources, &options)?;
        // The files are merged with the database as in an import, but nothing is written. Removals do not matter here.
        let options = MergeOptions {
            lints_all: true,
            allow_removals: Some(u64::MAX),
            ..MergeOptions::default()
        };
        match merge_unlocked(common, rows, &options)?.1 {
            Ok(merged) => merged.warnings,
            Err(refusal) => return refuse(common, refusal, args, 0),
        }
    };
    let ok = findings.is_empty();
    let mut lines = list_findings(&findings, args.all_faults);
    lines.push(if ok {
        "No findings.".to_owned()
    } else {
        counted(findings.total(), "finding")
    });
    let json = json!({ "ok": ok, "finding_count": findings.total(), "findings": findings.kept() });
    common.result(&json, lines.join("\n"))?;
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Dataset;
    use crate::store::ImportCounts;

    #[test]
    fn an_import_prints_committed_only_if_something_is_new() {
        let none = RowCounts::default();
        let outcome = |at: usize, counts: RowCounts| {
            let mut outcome = BatchOutcome::default();
            let ImportCounts {
                datasets,
                organizations,
                tags,
            } = &mut outcome.rows;
            *[
                &mut datasets.conferences,
                &mut datasets.journals,
                organizations,
                tags,
            ][at] = counts;
            outcome
        };
        for at in 0..4 {
            for counts in [
                RowCounts { added: 1, ..none },
                RowCounts { changed: 1, ..none },
                RowCounts { removed: 1, ..none },
            ] {
                let text = describe(&outcome(at, counts), None, 0);
                assert!(text.ends_with("unchanged\nCommitted."), "{text}");
            }
            let text = describe(
                &outcome(
                    at,
                    RowCounts {
                        unchanged: 7,
                        ..none
                    },
                ),
                None,
                1,
            );
            assert!(
                text.ends_with("7 unchanged\nNothing is new; nothing was changed, with 1 warning."),
                "{text}"
            );
        }
        let mut outcome = outcome(3, RowCounts { added: 1, ..none });
        let effect = |entering, changed, leaving| LicenseEffect {
            license: "it's".to_owned(),
            dataset: Dataset::Journals,
            entering,
            changed,
            leaving,
        };
        outcome.licenses = vec![
            effect(0, 0, 0),
            effect(1, 0, 0),
            effect(0, 2, 0),
            effect(0, 0, 3),
        ];
        let expected = "tags                1 added      0 changed      0 removed      0 unchanged\n\
                        license `it's`, journals: records entering: 1, changing: 0, leaving: 0\nlicense `it's`, journals: records entering: 0, changing: 2, leaving: 0\n\
                        license `it's`, journals: records entering: 0, changing: 0, leaving: 3\nCommitted, with 2 warnings.";
        assert_eq!(describe(&outcome, None, 2), expected);
        assert_eq!(
            describe(&BatchOutcome::default(), None, 0),
            "Nothing is new; nothing was changed."
        );
    }

    #[test]
    fn assignments_are_read() {
        let cases = [
            ("Website=url", Some(("Website", "url"))),
            (" a=b = url ", Some(("a=b", "url"))),
            ("=D=url", Some(("=D", "url"))),
            ("Website", None),
            ("=url", None),
            ("Website=", None),
        ];
        for (text, expected) in cases {
            let read = assignment(text.rsplit_once('=')).ok();
            assert_eq!(
                read.as_ref().map(|(name, value)| (&**name, &**value)),
                expected,
                "{text:?}"
            );
        }
        assert_eq!(
            assignment("url=https://x.org/?a=b".split_once('=')),
            Ok(("url".to_owned(), "https://x.org/?a=b".to_owned()))
        );
    }
}
