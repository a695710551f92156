//! `medfeed template`: empty import files to fill in.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::cli::shared::common::Common;
use crate::cli::shared::failure::at;
use crate::cli::shared::sheets::WorkbookWriter;
use crate::import::RowKind;
use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields, flat};

/// Arguments of `medfeed template`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TemplateArgs {
    /// The kind of the rows: conferences, journals, organizations or tags. Or the name of a workbook to write, ending
    /// .xlsx, with a sheet for each kind
    #[arg(value_name = "KIND_OR_FILE")]
    what: PathBuf,
    /// csv prints the header; xlsx writes a workbook, KIND.xlsx if only a kind is given
    #[arg(long)]
    format: Option<TemplateFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TemplateFormat {
    /// The header, as a line of CSV
    Csv,
    /// A workbook with notes, lists of allowed words, and cells that keep texts as typed
    Xlsx,
}

pub(in crate::cli) fn run(common: &Common, args: &TemplateArgs) -> anyhow::Result<ExitCode> {
    let given = args.what.to_string_lossy();
    let kind: Option<RowKind> = given.parse().ok();
    let is_workbook = args.what.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xlsx"));
    match (kind, args.format) {
        (Some(kind), None | Some(TemplateFormat::Csv)) => print_header(common, kind),
        (Some(kind), Some(TemplateFormat::Xlsx)) => write_workbook(common, Path::new(&format!("{kind}.xlsx")), &[kind]),
        (None, None | Some(TemplateFormat::Xlsx)) if is_workbook => {
            const ALL: [RowKind; 4] = [RowKind::Conferences, RowKind::Journals, RowKind::Organizations, RowKind::Tags];
            write_workbook(common, &args.what, &ALL)
        }
        _ => bail!(
            "`{given}` is neither `conferences`, `journals`, `organizations`, `tags` nor a file name ending .xlsx; write one of them"
        ),
    }
}

fn print_header(common: &Common, kind: RowKind) -> anyhow::Result<ExitCode> {
    let columns = match kind {
        RowKind::Conferences => flat::reference_columns::<ConferenceFields>(),
        RowKind::Journals => flat::reference_columns::<JournalFields>(),
        RowKind::Organizations => flat::reference_columns::<OrganizationFields>(),
        RowKind::Tags => flat::reference_columns::<TagFields>(),
    };
    let header = columns.join(",");
    common.output().result(&json!({ "kind": kind.to_string(), "columns": columns }), header)
}

fn write_workbook(common: &Common, path: &Path, kinds: &[RowKind]) -> anyhow::Result<ExitCode> {
    fn prepare<F: Fields>(sheets: &mut WorkbookWriter) -> anyhow::Result<()> {
        let mut sheet = sheets.begin::<F>(false)?;
        sheet.prepare()?;
        sheet.end().map(|_| ())
    }
    let mut sheets = WorkbookWriter::new();
    for kind in kinds {
        match kind {
            RowKind::Conferences => prepare::<ConferenceFields>(&mut sheets),
            RowKind::Journals => prepare::<JournalFields>(&mut sheets),
            RowKind::Organizations => prepare::<OrganizationFields>(&mut sheets),
            RowKind::Tags => prepare::<TagFields>(&mut sheets),
        }?;
    }
    // A workbook that was filled in is never overwritten.
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(at(path))?;
    sheets.write(&file)?;
    let text = format!("{}: fill it in, then run `medfeed import` with it", path.display());
    common.output().result(&json!({ "file": path }), text)
}
