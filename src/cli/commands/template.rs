//! `medfeed template`: empty import files to fill in, and drafts of recipes.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use crate::cli::arguments::one_of;
use crate::cli::common::Common;
use crate::cli::output::{at, counted, list_findings};
use crate::cli::sheets::WorkbookWriter;
use crate::import::{self, FileFormat, MergeOptions, Refusal, RowKind, Source, SourceOptions};
use crate::model::{Joined, Printable, flat};
use crate::store::Writer;

/// Arguments of `medfeed template`.
#[derive(Debug, Args)]
pub struct TemplateArgs {
    /// The kind of the rows: conferences, journals, organizations or tags. Or the name of a workbook to write, ending
    /// .xlsx, with a sheet for each kind
    #[arg(value_name = "KIND_OR_FILE")]
    what: PathBuf,
    /// csv prints the header as a line; xlsx writes a workbook (KIND.xlsx if only a kind is given) with notes, lists of
    /// allowed words, and cells that keep texts as typed
    #[arg(long, value_name = "FORMAT", value_parser = one_of::<FileFormat>(&["csv", "xlsx"]))]
    format: Option<FileFormat>,
    /// Print a recipe for this file: its columns, each with its best field. `medfeed import FILE --recipe RECIPE` uses
    /// it
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    from: Option<PathBuf>,
    /// The sheet of the workbook FILE
    #[arg(long, value_name = "NAME", requires = "from")]
    sheet: Option<String>,
}

pub fn run(common: &Common, args: &TemplateArgs) -> Result<ExitCode> {
    let given = args.what.to_string_lossy();
    let kind: Option<RowKind> = given.parse().ok();
    let is_workbook = args
        .what
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("xlsx"));
    match (kind, args.format) {
        (Some(kind), _) if args.from.is_some() => draft_recipe(common, args, kind),
        (Some(kind), Some(FileFormat::Xlsx)) => {
            write_workbook(common, Path::new(&format!("{kind}.xlsx")), &[kind])
        }
        (Some(kind), _) => print_header(common, kind),
        (None, None | Some(FileFormat::Xlsx)) if is_workbook && args.from.is_none() => {
            const ALL: [RowKind; 4] = [
                RowKind::Conferences,
                RowKind::Journals,
                RowKind::Organizations,
                RowKind::Tags,
            ];
            write_workbook(common, &args.what, &ALL)
        }
        (None, _) if args.from.is_some() => {
            bail!("`{given}` is no kind of rows; write what FILE contains, such as `journals`")
        }
        _ => bail!(
            "`{given}` is neither `conferences`, `journals`, `organizations`, `tags` nor a file name ending .xlsx; write one of them"
        ),
    }
}

/// Prints a recipe for a file.
fn draft_recipe(common: &Common, args: &TemplateArgs, kind: RowKind) -> Result<ExitCode> {
    let paths: Vec<PathBuf> = args.from.iter().cloned().collect();
    let options = SourceOptions {
        kind: Some(kind),
        format: None,
    };
    let sources = Source::find(&paths, options)?;
    let [source] = &*sources else {
        bail!("a recipe is drafted from one file, not from a folder; give the file");
    };
    let name = source.path.as_deref().and_then(Path::file_name);
    let name = name.map_or_else(
        || source.name.to_string(),
        |name| name.to_string_lossy().into(),
    );
    let (draft, bad) = import::draft_recipe(source, kind, args.sheet.as_deref())?;
    let Some(draft) = draft else {
        if !bad.is_empty() {
            bail!("{bad}");
        }
        bail!("{name}: there is no row; a recipe needs the header of a table, or objects")
    };
    let body = draft.recipe;
    let mut head = Vec::new();
    if !draft.has_name {
        head.push(
            "No column is read as `name`, so no row can be new: map the right one under [columns]."
                .to_owned(),
        );
    }
    head.push(format!(
        "A recipe for {}. Check each line; docs/recipes.md explains them.",
        Printable(&name)
    ));
    head.extend(run_recipe(&body, &sources)?);
    let head: Vec<String> = head.iter().map(|line| format!("# {line}\n")).collect();
    let recipe = head.concat() + &body;
    common.result(
        &json!({ "kind": kind.to_string(), "recipe": recipe }),
        recipe.trim_end(),
    )
}

/// Runs a recipe over a whole file, with an empty database. Returns lines that say what it reads and refuses.
fn run_recipe(recipe: &str, sources: &[Source]) -> Result<Vec<String>> {
    let read = import::parse_recipe("recipe", recipe).and_then(|(options, _)| {
        options.check()?;
        import::read_sources(sources, &options)
    });
    let rows = match read {
        Ok(rows) => rows,
        Err(error) => {
            return Ok(vec![format!(
                "The file cannot be read so: {}",
                Printable(&error.to_string())
            )]);
        }
    };
    let mut lines = Vec::new();
    for of_kind in rows.filled_fields() {
        let filled = of_kind.fields.iter().filter(|(_, count)| *count > 0);
        let filled = filled
            .map(|(field, count)| format!("{field} {count}"))
            .joined(", ");
        lines.push(format!(
            "The whole file has {}. Filled: {}.",
            counted(of_kind.rows, "row"),
            filled
        ));
    }
    let empty = Writer::of_copy(Path::new(""))?;
    let bad = match import::merge(rows, &empty.snapshot()?, &MergeOptions::default()) {
        Ok(_) => return Ok(lines),
        Err(Refusal::BadRows(bad)) => bad,
        Err(refusal) => return Err(refusal.into()),
    };
    lines.push(format!(
        "{} would refuse the import:",
        counted(bad.total(), "fault")
    ));
    lines.extend(
        list_findings(&bad, false)
            .iter()
            .map(|line| format!("  {line}")),
    );
    Ok(lines)
}

fn print_header(common: &Common, kind: RowKind) -> Result<ExitCode> {
    let columns = flat::columns(kind.table(), false);
    let header = columns.join(",");
    common.result(
        &json!({ "kind": kind.to_string(), "columns": columns }),
        header,
    )
}

fn write_workbook(common: &Common, path: &Path, kinds: &[RowKind]) -> Result<ExitCode> {
    let mut sheets = WorkbookWriter::new();
    for kind in kinds {
        let mut sheet = sheets.begin(&kind.to_string(), kind.table(), false)?;
        sheet.prepare()?;
        sheet.end()?;
    }
    // A workbook that was filled in is never overwritten.
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(at(path))?;
    sheets.write(&file)?;
    let file = path.display().to_string();
    let text = format!("{file}: fill it in, then run `medfeed import` with it");
    common.result(&json!({ "file": file }), text)
}
