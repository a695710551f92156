//! `medfeed export`: the way back of `medfeed import`.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Common;
use crate::model::reference::ReferenceFields;
use crate::model::{ConferenceFields, Curated, Fields, JournalFields, RecordFields, flat, json};
use crate::store::Snapshot;
use crate::store::draft::{self, Draft};

/// Arguments of `medfeed export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The folder to write the four files into; it is created
    folder: PathBuf,
    /// The files' format
    #[arg(long, env = "MEDFEED_FORMAT", default_value = "jsonl")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object per line
    Jsonl,
    /// Flat tables
    Csv,
}

impl Format {
    const fn ending(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
        }
    }
}

#[derive(Debug, Serialize)]
struct Written {
    file: PathBuf,
    rows: u64,
}

pub(super) fn run(common: &Common, args: ExportArgs) -> anyhow::Result<ExitCode> {
    #[derive(Serialize)]
    struct Exported {
        files: Vec<Written>,
    }
    let follower = common.open_follower()?;
    let snapshot = follower.newest();
    std::fs::create_dir_all(&args.folder).with_context(|| args.folder.display().to_string())?;
    refuse_other_files(&args)?;
    let files = vec![
        write_records::<ConferenceFields>(snapshot, &args)?,
        write_records::<JournalFields>(snapshot, &args)?,
        write_references(&snapshot.list_organizations()?, &args)?,
        write_references(&snapshot.list_tags()?, &args)?,
    ];
    let text: String =
        files.iter().map(|written| format!("{}: {} rows\n", written.file.display(), written.rows)).collect();
    common.output().result(&Exported { files }, text);
    Ok(ExitCode::SUCCESS)
}

/// A file of another format beside the new ones would make the folder import every row twice.
fn refuse_other_files(args: &ExportArgs) -> anyhow::Result<()> {
    for stem in [ConferenceFields::STEM, JournalFields::STEM, "organizations", "tags"] {
        for ending in ["jsonl", "csv", "jsonl.gz", "csv.gz"] {
            let path = args.folder.join(format!("{stem}.{ending}"));
            if ending != args.format.ending() && path.exists() {
                bail!(
                    "{} is there already; with it the folder would import every row twice. Remove it, or choose another folder",
                    path.display()
                );
            }
        }
    }
    Ok(())
}

/// Writes a file that appears under its name only when it is whole.
fn write_file(
    args: &ExportArgs,
    stem: &str,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<u64>,
) -> anyhow::Result<Written> {
    let file = args.folder.join(format!("{stem}.{}", args.format.ending()));
    let named = |path: &Path| path.display().to_string();
    draft::sweep(&file);
    let draft = Draft::with_mode(&file, 0o644).with_context(|| named(&args.folder))?;
    let mut out = BufWriter::new(draft.file());
    let rows = write(&mut out).with_context(|| named(&file))?;
    out.into_inner().map_err(|error| error.into_error()).with_context(|| named(&file))?;
    draft.take_name(&file).with_context(|| named(&file))?;
    Ok(Written { file, rows })
}

fn write_records<F: RecordFields>(snapshot: &Snapshot, args: &ExportArgs) -> anyhow::Result<Written> {
    let references = snapshot.references()?;
    write_file(args, F::STEM, |out| {
        let mut rows = 0;
        match args.format {
            Format::Jsonl => {
                snapshot.for_each_record::<F, anyhow::Error>(|record, updated_at, _| {
                    rows += 1;
                    out.write_all(&json::render_record(&record, updated_at, references))?;
                    Ok(out.write_all(b"\n")?)
                })?;
            }
            Format::Csv => {
                let mut table = begin_table(out, &flat::record_columns::<F>())?;
                snapshot.for_each_record::<F, anyhow::Error>(|record, updated_at, _| {
                    rows += 1;
                    let cells = flat::record_cells(&record, updated_at, references);
                    Ok(table.write_record(cells.iter().map(|cell| cell.as_bytes()))?)
                })?;
                table.flush()?;
            }
        }
        Ok(rows)
    })
}

fn write_references<F: ReferenceFields>(rows: &[Curated<F>], args: &ExportArgs) -> anyhow::Result<Written> {
    write_file(args, F::STEM, |out| {
        match args.format {
            Format::Jsonl => {
                for row in rows {
                    out.write_all(&json::render_reference(row))?;
                    out.write_all(b"\n")?;
                }
            }
            Format::Csv => {
                let none = crate::model::References::default();
                let mut table = begin_table(out, &flat::reference_columns::<F>())?;
                for row in rows {
                    table.write_record(flat::cells(row, &none).iter().map(|cell| cell.as_bytes()))?;
                }
                table.flush()?;
            }
        }
        Ok(u64::try_from(rows.len())?)
    })
}

fn begin_table<'o>(out: &'o mut dyn Write, columns: &[String]) -> anyhow::Result<csv::Writer<&'o mut dyn Write>> {
    out.write_all(flat::BYTE_ORDER_MARK)?;
    let mut table = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
    table.write_record(columns)?;
    Ok(table)
}
