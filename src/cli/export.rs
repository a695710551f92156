//! `medfeed export`: writes the curated content as files for `medfeed import`.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::common::Common;
use crate::model::reference::{ReferenceFields, Referenced};
use crate::model::{ConferenceFields, Fields, JournalFields, RecordFields, flat, json};
use crate::store::Snapshot;
use crate::store::file::draft::{self, Draft};

/// Arguments of `medfeed export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The folder to write the four files into; it is created. Who may read the database file may read them, and
    /// nobody else
    folder: PathBuf,
    /// The files' format
    #[arg(long, default_value = "jsonl")]
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
    let readers = Readers::of(&common.db).with_context(|| common.db.display().to_string())?;
    readers.create_folder(&args.folder).with_context(|| args.folder.display().to_string())?;
    refuse_other_files(&args)?;
    let target = Target { args: &args, readers };
    let references = snapshot.references()?;
    let files = vec![
        write_records::<ConferenceFields>(snapshot, &target)?,
        write_records::<JournalFields>(snapshot, &target)?,
        write_references(references.organizations.values(), &target)?,
        write_references(references.tags.values(), &target)?,
    ];
    let text: String =
        files.iter().map(|written| format!("{}: {} rows\n", written.file.display(), written.rows)).collect();
    common.output().result(&Exported { files }, text)
}

/// The folder and format of the files, and their permissions.
struct Target<'a> {
    args: &'a ExportArgs,
    readers: Readers,
}

/// Who may read the database, and therefore the files made from it.
#[derive(Clone, Copy, Debug)]
struct Readers {
    /// The permission bits of its file.
    mode: u32,
    group: u32,
}

impl Readers {
    fn of(database: &Path) -> io::Result<Readers> {
        let found = std::fs::metadata(database)?;
        Ok(Readers { mode: found.mode() & 0o777, group: found.gid() })
    }

    /// The permission bits for a file of a group. A group other than the database's gets no more than everybody has.
    fn mode_for(self, group: u32) -> u32 {
        if group == self.group { self.mode } else { (self.mode & !0o070) | ((self.mode & 0o007) << 3 & self.mode) }
    }

    /// Sets a file's permission bits, whatever the umask is.
    fn set_on(self, file: &File) -> io::Result<()> {
        let mode = self.mode_for(file.metadata()?.gid());
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Creates a folder and the missing ones above it, open to those who may read the files.
    fn create_folder(self, folder: &Path) -> io::Result<()> {
        let missing: Vec<&Path> =
            folder.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.is_dir()).collect();
        for folder in missing.into_iter().rev() {
            match DirBuilder::new().mode(0o700).create(folder) {
                // `new/..` was missing, and exists since `new` was created.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => continue,
                created => created?,
            }
            let mode = self.mode_for(std::fs::metadata(folder)?.gid());
            std::fs::set_permissions(folder, Permissions::from_mode(0o700 | mode | (mode & 0o444) >> 2))?;
        }
        Ok(())
    }
}

/// Refuses a folder with files of another format, which would import every row twice.
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

/// Writes a file that takes its name only when it is complete.
fn write_file(
    target: &Target<'_>,
    stem: &str,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<u64>,
) -> anyhow::Result<Written> {
    let Target { args, readers } = target;
    let file = args.folder.join(format!("{stem}.{}", args.format.ending()));
    let named = |path: &Path| path.display().to_string();
    draft::sweep(&file);
    let draft = Draft::beside(&file).with_context(|| named(&args.folder))?;
    let mut out = BufWriter::new(draft.file());
    let rows = write(&mut out).with_context(|| named(&file))?;
    out.into_inner().map_err(|error| error.into_error()).with_context(|| named(&file))?;
    readers.set_on(draft.file()).with_context(|| named(&file))?;
    draft.take_name(&file).with_context(|| named(&file))?;
    Ok(Written { file, rows })
}

fn write_records<F: RecordFields>(snapshot: &Snapshot, target: &Target<'_>) -> anyhow::Result<Written> {
    let references = snapshot.references()?;
    write_file(target, F::STEM, |out| {
        let mut rows = 0;
        match target.args.format {
            Format::Jsonl => {
                snapshot.for_each_record::<F, anyhow::Error>(|record, updated_at, _| {
                    rows += 1;
                    out.write_all(&json::render_record(&record, updated_at, &**references))?;
                    Ok(out.write_all(b"\n")?)
                })?;
            }
            Format::Csv => {
                let mut table = begin_table(out, &flat::record_columns::<F>())?;
                snapshot.for_each_record::<F, anyhow::Error>(|record, updated_at, _| {
                    rows += 1;
                    let cells = flat::record_cells(&record, updated_at, &**references);
                    Ok(table.write_record(cells.iter().map(|cell| cell.as_bytes()))?)
                })?;
                table.flush()?;
            }
        }
        Ok(rows)
    })
}

fn write_references<'r, F: ReferenceFields>(
    rows: impl ExactSizeIterator<Item = &'r Referenced<F>>,
    target: &Target<'_>,
) -> anyhow::Result<Written> {
    let count = u64::try_from(rows.len())?;
    write_file(target, F::STEM, |out| {
        match target.args.format {
            Format::Jsonl => {
                for row in rows {
                    out.write_all(&row.json)?;
                    out.write_all(b"\n")?;
                }
            }
            Format::Csv => {
                let none = crate::model::References::default();
                let mut table = begin_table(out, &flat::reference_columns::<F>())?;
                for row in rows {
                    table.write_record(flat::cells(&row.row, &none).iter().map(|cell| cell.as_bytes()))?;
                }
                table.flush()?;
            }
        }
        Ok(count)
    })
}

fn begin_table<'o>(out: &'o mut dyn Write, columns: &[String]) -> anyhow::Result<csv::Writer<&'o mut dyn Write>> {
    out.write_all(flat::BYTE_ORDER_MARK)?;
    let mut table = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
    table.write_record(columns)?;
    Ok(table)
}
