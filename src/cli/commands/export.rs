//! Files for `medfeed import`. `medfeed export` writes records, organizations and tags. `medfeed template` writes
//! empty import files to fill in, and drafts of recipes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use strum::VariantNames;

use crate::cli::arguments::{one_of, path_parser};
use crate::cli::common::Common;
use crate::cli::output::{at, counted, list_findings};
use crate::cli::sheets::WorkbookWriter;
use crate::disk::folder_of;
use crate::import::read::source::WORKBOOK_STEM;
use crate::import::{self, FileFormat, MergeOptions, Refusal, RowKind, Source, SourceOptions};
use crate::model::{
    ConferenceFields, Id, Joined, JournalFields, Printable, RecordFields, ReferenceFields,
    Referenced, References, flat, json,
};
use crate::store::file::draft::{self, Draft};
use crate::store::{Snapshot, Writer};

/// Arguments of `medfeed export`.
#[derive(Args)]
pub struct ExportArgs {
    /// The folder for the four files, or for the workbook medfeed.xlsx; it is created. Or the name of a workbook,
    /// ending .xlsx. The files get the permissions of the database file
    #[arg(value_name = "FOLDER_OR_FILE", value_parser = path_parser())]
    target: PathBuf,
    /// The format of the files: one JSON object per line (jsonl), tables (csv), or one workbook with a sheet for each
    /// kind (xlsx) [default: jsonl, or xlsx for a name ending .xlsx]
    #[arg(long, value_name = "FORMAT", value_parser = one_of::<FileFormat>(&["jsonl", "csv", "xlsx"]))]
    format: Option<FileFormat>,
}

/// All kinds of rows, in the order of a workbook's sheets.
const KINDS: [RowKind; 4] = [
    RowKind::Conferences,
    RowKind::Journals,
    RowKind::Organizations,
    RowKind::Tags,
];

/// Whether the rows of a kind have the column `updated_at`.
fn is_dated(kind: RowKind) -> bool {
    matches!(kind, RowKind::Conferences | RowKind::Journals)
}

pub fn run(common: &Common, args: ExportArgs) -> Result<ExitCode> {
    let reader = common.open_reader()?;
    let snapshot = reader.newest();
    let permissions = FilePermissions::of(&common.db).map_err(at(&common.db))?;
    let target = ExportTarget::of(args, permissions)?;
    target
        .permissions
        .create_folder(&target.folder)
        .map_err(at(&target.folder))?;
    let mut files = Vec::new();
    if target.format == FileFormat::Xlsx {
        let write = |file: &File| write_sheets(snapshot, file);
        files.push(target.write_file(&target.workbook, write)?);
    } else {
        for kind in KINDS {
            let write = |file: &File| write_text(snapshot, kind, target.format, file);
            files.push(target.write_file(&target.text_file(&kind.to_string()), write)?);
        }
    }
    let text: String = files
        .iter()
        .map(|(file, rows)| format!("{file}: {rows} rows\n"))
        .collect();
    let files = files
        .iter()
        .map(|(file, rows)| json!({ "file": file, "rows": rows }));
    common.result(&json!({ "files": files.collect::<Vec<_>>() }), text)
}

/// The folder, format and permissions of the exported files.
struct ExportTarget {
    folder: PathBuf,
    /// The path of the workbook.
    workbook: PathBuf,
    format: FileFormat,
    permissions: FilePermissions,
}

impl ExportTarget {
    fn of(args: ExportArgs, permissions: FilePermissions) -> Result<ExportTarget> {
        let given = args.target;
        let is_workbook = given
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("xlsx"))
            && !given.is_dir();
        let format = args.format.unwrap_or(match is_workbook {
            true => FileFormat::Xlsx,
            false => FileFormat::Jsonl,
        });
        if is_workbook && format != FileFormat::Xlsx {
            bail!(
                "{} is the name of a workbook; write a folder, or --format xlsx",
                given.display()
            );
        }
        let default_name = given.join(WORKBOOK_STEM).with_extension("xlsx");
        let folder = if is_workbook {
            folder_of(&given)
        } else {
            &given
        };
        let target = ExportTarget {
            folder: folder.to_owned(),
            workbook: if is_workbook { given } else { default_name },
            format,
            permissions,
        };
        let source = Source::from_folder(&target.workbook);
        if format != FileFormat::Xlsx || source.is_some_and(|source| !source.is_skipped) {
            target.refuse_other_files()?;
        }
        Ok(target)
    }

    /// The path of a text file.
    fn text_file(&self, stem: &str) -> PathBuf {
        self.folder.join(format!("{stem}.{}", self.format))
    }

    /// Refuses a folder with other files that an import of the folder reads: it would read every row twice.
    fn refuse_other_files(&self) -> Result<()> {
        let found = match Source::in_folder(&self.folder) {
            // The folder is created later, or that fails.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(());
            }
            found => found.map_err(at(&self.folder))?,
        };
        let is_written = |path: &PathBuf| match self.format {
            FileFormat::Xlsx => *path == self.workbook,
            _ => RowKind::VARIANTS
                .iter()
                .any(|stem| *path == self.text_file(stem)),
        };
        let mut read = found.iter().filter(|source| !source.is_skipped);
        match read.find(|source| !source.path.as_ref().is_some_and(is_written)) {
            Some(other) => bail!(
                "{} exists already; with it, the folder would import every row twice. Remove it, or choose another folder",
                other.name
            ),
            None => Ok(()),
        }
    }

    /// Writes a draft, and gives it its name when it is complete. Returns the name, and the number of rows.
    fn write_file(
        &self,
        path: &Path,
        write: impl FnOnce(&File) -> Result<u64>,
    ) -> Result<(String, u64)> {
        draft::sweep(path);
        let draft = Draft::create_for(path).map_err(at(&self.folder))?;
        let name = path.display().to_string();
        let rows = write(draft.file()).with_context(|| name.clone())?;
        self.permissions.set(draft.file()).map_err(at(path))?;
        draft.persist().map_err(at(path))?;
        Ok((name, rows))
    }
}

/// The permissions of the database file, which exported files get too.
#[derive(Clone, Copy)]
struct FilePermissions {
    mode: u32,
    group: u32,
}

impl FilePermissions {
    fn of(database: &Path) -> io::Result<FilePermissions> {
        let found = std::fs::metadata(database)?;
        Ok(FilePermissions {
            mode: found.mode() & 0o777,
            group: found.gid(),
        })
    }

    /// Sets the permissions of a file, regardless of the umask.
    fn set(self, file: &File) -> io::Result<()> {
        let mode = self.mode_for(file.metadata()?.gid());
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// The permission bits for a file of `group`. A group other than the database's gets at most the rights of
    /// everyone.
    fn mode_for(self, group: u32) -> u32 {
        if group == self.group {
            self.mode
        } else {
            (self.mode & !0o070) | ((self.mode & 0o007) << 3 & self.mode)
        }
    }

    /// Creates a folder and its missing parents, with permissions that match those of the files.
    fn create_folder(self, folder: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = folder
            .ancestors()
            .take_while(|above| !above.as_os_str().is_empty() && !above.is_dir())
            .collect();
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
        for folder in missing {
            let mode = self.mode_for(std::fs::metadata(folder)?.gid());
            let mode = 0o700 | mode | (mode & 0o444) >> 2;
            std::fs::set_permissions(folder, Permissions::from_mode(mode))?;
        }
        Ok(())
    }
}

/// Writes the text file of a kind of rows. Returns the number of rows.
fn write_text(snapshot: &Snapshot, kind: RowKind, format: FileFormat, file: &File) -> Result<u64> {
    let mut out = BufWriter::new(file);
    let rows = if format == FileFormat::Jsonl {
        push_rows(snapshot, kind, &mut |json, _| {
            out.write_all(json)?;
            Ok(out.write_all(b"\n")?)
        })?
    } else {
        flat::write_header(&mut out, kind.table(), is_dated(kind))?;
        push_rows(snapshot, kind, &mut |_, cells| {
            Ok(flat::write_row(&mut out, cells)?)
        })?
    };
    out.flush()?;
    Ok(rows)
}

/// Writes a workbook with a sheet for each kind of rows. Returns the number of rows.
fn write_sheets(snapshot: &Snapshot, file: &File) -> Result<u64> {
    let mut sheets = WorkbookWriter::new();
    let mut rows = 0;
    for kind in KINDS {
        let mut sheet = sheets.begin(&kind.to_string(), kind.table(), is_dated(kind))?;
        rows += push_rows(snapshot, kind, &mut |_, cells| sheet.push(cells))?;
        sheet.end()?;
    }
    sheets.write(file)?;
    Ok(rows)
}

/// Takes a row, as JSON and as cells.
type PushRow<'a> = dyn FnMut(&[u8], &[Cow<'_, str>]) -> Result<()> + 'a;

/// Passes on the rows of a kind. Returns their number.
fn push_rows(snapshot: &Snapshot, kind: RowKind, push: &mut PushRow<'_>) -> Result<u64> {
    let references = snapshot.references()?;
    match kind {
        RowKind::Conferences => push_records::<ConferenceFields>(snapshot, push),
        RowKind::Journals => push_records::<JournalFields>(snapshot, push),
        RowKind::Organizations => push_references(&references.organizations, push),
        RowKind::Tags => push_references(&references.tags, push),
    }
}

fn push_records<F: RecordFields>(snapshot: &Snapshot, push: &mut PushRow<'_>) -> Result<u64> {
    let references = snapshot.references()?;
    snapshot.for_each_record::<F, anyhow::Error>(|record, updated_at, _| {
        push(
            &json::render_record(&record, updated_at, &**references),
            &flat::cells(&record, Some(updated_at), &**references),
        )
    })?;
    Ok(snapshot.totals().records[F::DATASET])
}

fn push_references<F: ReferenceFields>(
    rows: &BTreeMap<Id, Referenced<F>>,
    push: &mut PushRow<'_>,
) -> Result<u64> {
    // They link to nothing.
    let none = References::default();
    rows.values()
        .try_for_each(|row| push(&row.json, &flat::cells(&row.row, None, &none)))?;
    Ok(rows.len() as u64)
}

/// Arguments of `medfeed template`.
#[derive(Args)]
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

pub fn run_template(common: &Common, args: &TemplateArgs) -> Result<ExitCode> {
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
            write_workbook(common, &args.what, &KINDS)
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
    let file_name = source.path.as_deref().and_then(Path::file_name);
    let name = file_name.map_or((&*source.name).into(), OsStr::to_string_lossy);
    let (draft, bad) = import::draft_recipe(source, kind, args.sheet.as_deref())?;
    let Some(draft) = draft else {
        if !bad.is_empty() {
            bail!("{bad}");
        }
        bail!("{name}: there is no row; a recipe needs the header of a table, or objects")
    };
    let mut head = vec![format!(
        "A recipe for {}. Check each line; docs/recipes.md explains them.",
        Printable(&name)
    )];
    if !draft.has_name {
        let lacks =
            "No column is read as `name`, so no row can be new: map the right one under [columns].";
        head.insert(0, lacks.to_owned());
    }
    head.extend(run_recipe(&draft.recipe, &sources)?);
    let recipe = format!("# {}\n{}", head.join("\n# "), draft.recipe);
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
            let error = error.to_string();
            let line = format!("The file cannot be read so: {}", Printable(&error));
            return Ok(vec![line]);
        }
    };
    let mut lines = Vec::new();
    for of_kind in rows.filled_fields() {
        let filled = of_kind.fields.iter().filter(|(_, count)| *count > 0);
        let filled = filled.map(|(field, count)| format!("{field} {count}"));
        let rows = counted(of_kind.rows, "row");
        let filled = filled.joined(", ");
        lines.push(format!("The whole file has {rows}. Filled: {filled}."));
    }
    let empty = Writer::of_copy(Path::new(""))?;
    match import::merge(rows, &empty.snapshot()?, &MergeOptions::default()) {
        Ok(_) => {}
        Err(Refusal::BadRows(bad)) => {
            let faults = counted(bad.total(), "fault");
            lines.push(format!("{faults} would refuse the import:"));
            let listed = list_findings(&bad, false);
            lines.extend(listed.iter().map(|line| format!("  {line}")));
        }
        Err(refusal) => return Err(refusal.into()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_group_has_no_wider_permissions_than_the_database() {
        let cases = [
            (0o600, 0o600, 0o600),
            (0o640, 0o640, 0o600),
            (0o660, 0o660, 0o600),
            (0o644, 0o644, 0o644),
            (0o664, 0o664, 0o644),
            (0o666, 0o666, 0o666),
            (0o604, 0o604, 0o604),
            (0o646, 0o646, 0o646),
            (0o400, 0o400, 0o400),
        ];
        for (mode, own, other) in cases {
            let permissions = FilePermissions { mode, group: 7 };
            let found = (permissions.mode_for(7), permissions.mode_for(8));
            assert_eq!(found, (own, other), "{mode:o}: {:o} {:o}", found.0, found.1);
        }
    }
}
