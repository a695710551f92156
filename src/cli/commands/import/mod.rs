//! `medfeed import`: one run is one commit, all or nothing. And `medfeed lint`, which finds likely mistakes in files or
//! in the database, and changes nothing.

mod result;

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write, stderr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use indicatif::ProgressBar;
use serde_json::json;
use strum::VariantNames;

use crate::cli::arguments::{one_of, parse_note};
use crate::cli::change::Changes;
use crate::cli::common::{AccessChange, Common, require_folder};
use crate::cli::output::{can_ask, confirm, counted, list_findings, note, print_error, print_json};
use crate::import::lint::lint_database;
use crate::import::{
    self, ColumnMapping, DateOrder, DecimalSign, FileFormat, Finding, Findings, Given, ImportRows,
    InputError, MergeOptions, Merged, ReadOptions, Refusal, RowKind, Source, SourceOptions,
    SourceRows, Word, read_recipe,
};
use crate::model::{Head, Joined, message};
use crate::store::Writer;
use crate::store::write::edit::BatchOutcome;

/// Arguments of `medfeed import`.
#[derive(Args)]
pub struct ImportArgs {
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
        value_parser = RangedU64ValueParser::<usize>::new().range(0..=Findings::MAX_KEPT as u64))]
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

/// An import under way.
struct Run<'a> {
    common: &'a Common,
    args: &'a ImportArgs,
    sources: Vec<Source>,
    reading: ReadOptions,
    options: MergeOptions,
    rows: ImportRows,
    bar: ProgressBar,
    /// The warnings that were shown, and accepted.
    accepted: Option<Findings>,
}

/// The result of an import that was written.
struct Written {
    merged: Merged,
    outcome: BatchOutcome,
    /// The changes that a dry run shows.
    changes: Option<Changes>,
}

pub fn run(common: &Common, args: &ImportArgs) -> Result<ExitCode> {
    common.require_db(args.create, args.dry_run)?;
    if !args.dry_run {
        common.confirm_clock()?;
    }
    let mut run = Run::begin(common, args)?;
    loop {
        show_step(&run.bar, "checking the rows");
        let (head, merged) = merge_unlocked(common, run.rows.clone(), &run.options)?;
        let merged = match merged {
            Ok(merged) => merged,
            Err(refusal) => return run.refuse(refusal),
        };
        if args.strict && !merged.warnings.is_empty() {
            return run.refuse_warnings(&merged.warnings);
        }
        run.ask(&merged.warnings)?;
        if let Some(written) = run.write(head, merged)? {
            return run.finish(&written);
        }
    }
}

impl<'a> Run<'a> {
    /// Reads the files.
    fn begin(common: &'a Common, args: &'a ImportArgs) -> Result<Run<'a>> {
        let bar = common.progress_bar();
        let (sources, mut reading) = args.read.sources_and_options()?;
        reading.replace = args.replace;
        args.check_faults_file(&sources)?;
        show_step(&bar, "reading the files");
        let rows = import::read_sources(&sources, &reading)?;
        let options = MergeOptions {
            replace: args.replace,
            allow_removals: args.allow_removals,
            fix: args.fix,
            allow_faults: args.allow_faults,
            lints_all: false,
        };
        Ok(Run {
            common,
            args,
            sources,
            reading,
            options,
            rows,
            bar,
            accepted: None,
        })
    }

    /// Refuses the import, and writes its bad rows to the file of `--faults`.
    fn refuse(&self, refusal: Refusal) -> Result<ExitCode> {
        self.bar.finish_and_clear();
        if let Refusal::BadRows(bad) = &refusal {
            self.write_faults(bad)?;
        }
        refuse(
            self.common,
            refusal,
            &self.args.read,
            (!self.args.replace).then_some(self.args.allow_faults),
        )
    }

    /// Refuses the import for its warnings, as `--strict` says.
    fn refuse_warnings(&self, warnings: &Findings) -> Result<ExitCode> {
        self.bar.finish_and_clear();
        print_warnings(self.common, warnings, self.args.read.all_faults);
        let count = counted(warnings.total(), "warning");
        let error = format!(
            "{count}; nothing was changed, because --strict refuses warnings. Make the corrections, or leave out --strict"
        );
        refuse_with(self.common, &error, warnings)
    }

    /// Asks before a commit with warnings, at a terminal.
    fn ask(&mut self, warnings: &Findings) -> Result<()> {
        let is_accepted = warnings.is_empty() || self.accepted.as_ref() == Some(warnings);
        if is_accepted || !self.args.asks(self.common) {
            return Ok(());
        }
        self.bar.finish_and_clear();
        print_warnings(self.common, warnings, self.args.read.all_faults);
        let count = counted(warnings.total(), "warning");
        let question = format!("The import has {count}. Commit nevertheless?");
        confirm(&question, false, "imported")?;
        self.accepted = Some(warnings.clone());
        Ok(())
    }

    /// Commits the rows that were merged with the commit `head`. If there is another one by now, and the warnings are
    /// others than those that were accepted, returns `None` and releases the writer's lock.
    fn write(&mut self, head: Head, mut merged: Merged) -> Result<Option<Written>> {
        let Run { common, args, .. } = *self;
        show_step(&self.bar, "waiting for the writer's lock");
        let writer = common.open_to_change(args.create, args.dry_run)?;
        let mut edit = writer.begin()?;
        if edit.base_commit().head() != head {
            // Another command has committed, or has replaced the file.
            show_step(&self.bar, "checking the rows again");
            merged = match import::merge(self.rows.clone(), &edit.base()?, &self.options) {
                Ok(again) if again.warnings == merged.warnings => again,
                _ => return Ok(None),
            };
        }
        show_step(&self.bar, "writing");
        self.rows.forget_rows();
        let outcome = edit.apply(&merged.batch)?;
        let changes = args
            .dry_run
            .then(|| Changes::of(&edit.base()?, &edit, &merged.batch))
            .transpose()?;
        if !args.dry_run {
            edit.set_note(args.note.clone());
            common.commit(edit, args.describe(&self.sources))?;
        }
        Ok(Some(Written {
            merged,
            outcome,
            changes,
        }))
    }

    /// Shows the result.
    fn finish(&self, written: &Written) -> Result<ExitCode> {
        let Run { common, args, .. } = *self;
        let merged = &written.merged;
        self.bar.finish_and_clear();
        if self.accepted.is_none() {
            print_warnings(common, &merged.warnings, args.read.all_faults);
        }
        for found in merged.notes.iter().filter(|_| !common.json) {
            note(&format!("note: {found}"));
        }
        self.write_faults(&merged.bad)?;
        let text = args.result_text(written);
        let done = common.result(&args.result_json(written), text)?;
        if args.dry_run {
            Ok(done)
        } else {
            common.await_publication(AccessChange::None)
        }
    }

    /// Writes the bad rows to the file of `--faults`, if there are some.
    fn write_faults(&self, bad: &Findings) -> Result<()> {
        let Some(path) = self.args.faults.as_ref().filter(|_| !bad.is_empty()) else {
            return Ok(());
        };
        let found = SourceRows::read(&self.sources, &self.reading, &self.rows, bad)?;
        if found.left_out > 0 {
            let count = counted(found.left_out, "bad row");
            let path = path.display();
            self.common.warning(&format!(
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

    /// The description for the history.
    fn describe(&self, sources: &[Source]) -> String {
        let read = sources.iter().filter(|source| !source.is_skipped);
        let names = read.map(|source| &*source.name).joined(" ");
        let replace = if self.replace { " --replace" } else { "" };
        format!("import {names}{replace}")
    }
}

/// Merges the rows with the last commit, without the writer's lock. Also returns that commit.
fn merge_unlocked(
    common: &Common,
    rows: ImportRows,
    options: &MergeOptions,
) -> Result<(Head, Result<Merged, Refusal>)> {
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
    allowed: Option<usize>,
) -> Result<ExitCode> {
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
        let lines = list_findings(&bad, all_faults);
        lines.iter().for_each(|line| note(line));
    }
    let hint = if all_faults || bad.groups().len() == bad.total() {
        ""
    } else {
        " --all-faults lists each."
    };
    let count = counted(bad.total(), "fault");
    let rows = bad.rows().len();
    let allowance = match allowed {
        Some(1..) if bad.is_of_file() => {
            " --allow-faults does not cover faults of whole files.".to_owned()
        }
        Some(_) if !bad.is_of_file() && rows <= Findings::MAX_KEPT => {
            format!(" Or leave out the bad rows with --allow-faults {rows}.")
        }
        _ => String::new(),
    };
    let error = format!(
        "{count}; nothing was changed. Make the corrections and run the command again.{allowance}{hint}"
    );
    refuse_with(common, &error, &bad)
}

/// Prints why an import was refused; as JSON, with the findings.
fn refuse_with(common: &Common, error: &str, found: &Findings) -> Result<ExitCode> {
    if common.json {
        let json = json!({
            "committed": false, "error": error, "errors": found.kept(), "groups": found.groups().collect::<Vec<_>>(),
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
pub fn refuse_input(common: &Common, done: Result<ExitCode>) -> Result<ExitCode> {
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
pub fn lint(common: &Common, args: &ReadArgs) -> Result<ExitCode> {
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
            Err(refusal) => return refuse(common, refusal, args, None),
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
    Ok(ExitCode::from(u8::from(!ok)))
}

/// The files to read, and how.
#[derive(Args)]
pub struct ReadArgs {
    /// Files to read, or folders with such files. Without --dataset, a file or a sheet of a workbook is named
    /// conferences, journals, organizations or tags. Formats: .jsonl, .json, .csv (each also with .gz) and .xlsx. `-`
    /// reads standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
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
    pub fn sources_and_options(&self) -> Result<(Vec<Source>, ReadOptions)> {
        let (mut options, of_recipe) = match &self.recipe {
            Some(path) => read_recipe(path)?,
            None => (ReadOptions::default(), None),
        };
        for (name, field) in &self.columns {
            let value = ColumnMapping::new(name, vec![field.clone()]);
            options
                .columns
                .retain(|given| given.value.column != value.column);
            options.columns.push(Given {
                value,
                origin: format!("--map '{name}={field}'"),
            });
        }
        for constant in &self.constants {
            let (field, value) = constant;
            options.constants.retain(|given| given.value.0 != *field);
            options.constants.push(Given {
                value: constant.clone(),
                origin: format!("--set '{field}={value}'"),
            });
        }
        if !self.matching.is_empty() {
            let sets = self.matching.iter().map(|names| Given {
                value: names.split(',').map(|name| name.trim().into()).collect(),
                origin: format!("--match {names}"),
            });
            options.matching = sets.collect();
        }
        let empty = self.empty.iter().map(|text| Given {
            value: Word::empty(text.clone()),
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
        let given = SourceOptions {
            kind: self.dataset.or(of_recipe),
            format: self.format,
        };
        let sources = Source::find(&self.paths, given)?;
        options.check_list(sources.iter().map(|source| source.kind))?;
        Ok((sources, options))
    }
}

#[cfg(test)]
mod read_args_tests {
    use super::*;

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
            let found = read.as_ref().map(|(name, value)| (&**name, &**value));
            assert_eq!(found, expected, "{text:?}");
        }
        assert_eq!(
            assignment("url=https://x.org/?a=b".split_once('=')),
            Ok(("url".to_owned(), "https://x.org/?a=b".to_owned()))
        );
    }
}
