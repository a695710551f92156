//! The copy as a folder: a JSON lines file and a CSV file for each dataset, as in the service's exports, and a state
//! file.
//!
//! Files are replaced by rename, the state file last. It holds the digests of the other files. If they differ, as after
//! a crash between two renames, the export is loaded again. A page is applied only to a file with the digest of the
//! state, because another program may change or remove files while this one follows the feed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::body::{ReadLimits, read_line};
use super::columns::{Cell, cell_of, columns};
use super::error::{PullError, Result};
use super::export::{ContentDigest, Entry, Export, FeedPage, Hasher};
use super::files::{lock, make_draft, make_folder, open_file};
use super::location::ServerUrl;
use super::target::{Changes, Events, Position, PullTarget, report, tombstone, verified_s};
use crate::disk::describe_at;
use crate::model::{Dataset, Number, flat, now};

const STATE_FILE: &str = "medfeed-copy.json";

const LOCK_FILE: &str = "medfeed-copy.lock";

/// The most bytes of a state file; usual are about 600.
const MAX_STATE_BYTES: u64 = 1 << 20;

const LINE: &str = "a line";

/// The format of a copy. It changes if older versions must not use newer copies.
const FORMAT: u32 = 1;
/// The advice to name another location.
const OTHER_LOCATION: &str = "give another folder";

#[derive(Serialize, Deserialize)]
struct CopyState {
    format: u32,
    server: String,
    datasets: BTreeMap<String, DatasetState>,
}

#[derive(Serialize, Deserialize)]
struct DatasetState {
    token: String,
    records: u64,
    /// SHA-256 of the JSON lines, in hexadecimal.
    jsonl_sha256: String,
    /// SHA-256 of the CSV file, in hexadecimal.
    csv_sha256: String,
    changed_at: String,
    verified_at: Option<String>,
}

impl CopyState {
    fn empty(server: &str) -> CopyState {
        CopyState {
            format: FORMAT,
            server: server.to_owned(),
            datasets: BTreeMap::new(),
        }
    }
}

/// A copy in a folder.
pub struct FolderCopy {
    folder: PathBuf,
    state: CopyState,
    server: String,
    /// The datasets to load: their files do not match the state, or the user wants to reload.
    to_load: Vec<Dataset>,
    /// The datasets of the state on the disk, if it is that of another service.
    foreign: Vec<Dataset>,
    lock: File,
}

impl FolderCopy {
    /// Opens the copy of a service's content, or creates one in a new or empty folder. With `reload`, everything is
    /// loaded again, and the copy may be that of another service.
    pub fn open(folder: &Path, server: &ServerUrl, reload: bool) -> Result<FolderCopy> {
        let fail = |error: io::Error| failure(folder, &error);
        let shown = folder.display();
        make_folder(folder).map_err(fail)?;
        let state_file = folder.join(STATE_FILE);
        if !state_file.exists() && fs::read_dir(folder).map_err(fail)?.any(is_foreign) {
            return Err(PullError::Unusable(format!(
                "{shown} contains files that are not a copy; give an empty or a new folder"
            )));
        }
        let lock = lock(&folder.join(LOCK_FILE), folder)?;
        let server = server.to_string();
        let is_new = !state_file.exists();
        let mut json = Vec::new();
        let read = open_file(&state_file)
            .and_then(|file| file.take(MAX_STATE_BYTES).read_to_end(&mut json));
        let mut state = match read {
            Ok(_) => read_state(folder, &json)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => CopyState::empty(&server),
            Err(error) => return Err(fail(error)),
        };
        let mut foreign = Dataset::ALL.to_vec();
        foreign.retain(|dataset| {
            state.server != server && state.datasets.contains_key(dataset.as_str())
        });
        // A copy without content is that of no server: its first pull failed.
        if state.server != server && (reload || state.datasets.is_empty()) {
            state = CopyState::empty(&server);
        }
        let mut copy = FolderCopy {
            folder: folder.to_owned(),
            state,
            server,
            to_load: Vec::new(),
            foreign,
            lock,
        };
        for dataset in Dataset::ALL {
            if reload || !copy.compare_files(dataset).map_err(fail)? {
                copy.to_load.push(dataset);
            }
        }
        // The state file marks the folder as a copy, so it is written before any other file. An existing one stays
        // until the first load: a run that fails leaves the copy as it was.
        if is_new {
            copy.save().map_err(fail)?;
        }
        Ok(copy)
    }

    fn stored(&self, dataset: Dataset) -> Option<&DatasetState> {
        self.state.datasets.get(dataset.as_str())
    }

    fn file(&self, dataset: Dataset, ending: &str) -> PathBuf {
        self.folder.join(format!("{dataset}.{ending}"))
    }

    /// Compares the files of a dataset with the state, and the header of the CSV file with that of this version. True if
    /// the state does not have the dataset.
    fn compare_files(&self, dataset: Dataset) -> io::Result<bool> {
        let Some(state) = self.stored(dataset) else {
            return Ok(true);
        };
        for (ending, expected) in [("jsonl", &state.jsonl_sha256), ("csv", &state.csv_sha256)] {
            match open_file(&self.file(dataset, ending)) {
                Ok(file) if ending == "csv" && !compare_header(&file, dataset)? => {
                    return Ok(false);
                }
                Ok(file) if digest_of(&file)?.sha256 == *expected => {}
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The records in a dataset's file; none if there is no file.
    fn lines(&self, dataset: Dataset) -> Result<RecordLines> {
        let path = self.file(dataset, "jsonl");
        let reader = match open_file(&path) {
            Ok(file) => Some(BufReader::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failure(&path, &error)),
        };
        Ok(RecordLines {
            path,
            reader,
            line: Vec::new(),
            hasher: Hasher::default(),
        })
    }

    /// The ids in a dataset's file, with the SHA-256 of their JSON. Skips unreadable lines, because other programs may
    /// have edited the file.
    fn held(&self, dataset: Dataset) -> Result<BTreeMap<i64, [u8; 32]>> {
        let mut lines = self.lines(dataset)?;
        let mut held = BTreeMap::new();
        loop {
            match lines.next() {
                Ok(Some(entry)) => {
                    held.insert(entry.id, Sha256::digest(entry.json.as_bytes()).into())
                }
                Err(PullError::Failed { .. }) => None,
                // The records in the part that cannot be read from the disk are reported as new.
                Ok(None) | Err(_) => return Ok(held),
            };
        }
    }

    /// The new records of a dataset: those of its file, with the changes of a page. Fails after the last record if the
    /// file is not the one that the state names.
    fn merge(
        &mut self,
        dataset: Dataset,
        page: &FeedPage,
        old: &mut RecordLines,
        events: &dyn Events,
    ) -> Result<()> {
        // The last entry of a record wins.
        let mut changes: BTreeMap<i64, &Entry> =
            page.entries.iter().map(|entry| (entry.id, entry)).collect();
        let before = self.stored(dataset);
        let verified_at = before.and_then(|before| before.verified_at.clone());
        let expected = before.map(|before| before.jsonl_sha256.clone());
        let mut held = old.next()?;
        self.replace(dataset, &page.token, verified_at, &mut || {
            loop {
                let change = changes.first_key_value().map(|(id, entry)| (*id, *entry));
                let old_id = held.as_ref().map(|entry| entry.id);
                let Some((id, entry)) =
                    change.filter(|(id, _)| old_id.is_none_or(|old_id| *id <= old_id))
                else {
                    let kept = held.take();
                    match kept {
                        Some(_) => held = old.next()?,
                        None if Some(old.hasher.clone().finish().sha256) != expected => {
                            return Err(changed_meanwhile(&old.path));
                        }
                        None => {}
                    }
                    return Ok(kept);
                };
                changes.pop_first();
                let was_there = old_id == Some(id);
                if was_there {
                    held = old.next()?;
                }
                if was_there || !entry.is_removal {
                    events.change(dataset, &entry.json)?;
                }
                if !entry.is_removal {
                    return Ok(Some(entry.clone()));
                }
            }
        })
    }

    /// Replaces the files of a dataset by the entries that `next` returns, ordered by id, and then the state.
    fn replace(
        &mut self,
        dataset: Dataset,
        token: &str,
        verified_at: Option<String>,
        next: &mut dyn FnMut() -> Result<Option<Entry>>,
    ) -> Result<()> {
        let folder = self.folder.clone();
        let fail = |error: io::Error| failure(&folder, &error);
        let jsonl = self.file(dataset, "jsonl");
        let csv = self.file(dataset, "csv");
        let mut lines = HashedDraft::new(&jsonl).map_err(fail)?;
        let mut table = HashedDraft::new(&csv).map_err(fail)?;
        header(dataset)
            .and_then(|header| table.write_all(&header))
            .map_err(fail)?;
        while let Some(entry) = next()? {
            lines
                .write_all(entry.json.as_bytes())
                .and_then(|()| lines.write_all(b"\n"))
                .map_err(fail)?;
            write_record(&mut table, dataset, &entry).map_err(fail)?;
        }
        let content = lines.finish().map_err(fail)?;
        let state = DatasetState {
            token: token.to_owned(),
            records: content.records,
            jsonl_sha256: content.sha256,
            csv_sha256: table.finish().map_err(fail)?.sha256,
            changed_at: now().to_string(),
            verified_at,
        };
        // From the first rename until the state is saved, the files do not match it.
        self.to_load.push(dataset);
        put_in_place(&jsonl)
            .and_then(|()| put_in_place(&csv))
            .map_err(fail)?;
        self.state.datasets.insert(dataset.to_string(), state);
        // The files of another service are removed before the state names the new one, so that a killed run leaves none
        // behind.
        let mut others = self
            .foreign
            .iter()
            .filter(|other| self.stored(**other).is_none());
        others
            .try_for_each(|other| self.remove_files(*other))
            .map_err(fail)?;
        self.save().map_err(fail)?;
        self.foreign.clear();
        self.to_load.retain(|other| *other != dataset);
        Ok(())
    }

    fn remove_files(&self, dataset: Dataset) -> io::Result<()> {
        for ending in ["jsonl", "csv"] {
            match fs::remove_file(self.file(dataset, ending)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn save(&self) -> io::Result<()> {
        let path = self.folder.join(STATE_FILE);
        let mut draft = HashedDraft::new(&path)?;
        let json = serde_json::to_string_pretty(&self.state).map_err(io::Error::other)?;
        draft.write_all(json.as_bytes())?;
        draft.write_all(b"\n")?;
        draft.finish()?;
        put_in_place(&path)?;
        File::open(&self.folder)?.sync_all()
    }
}

impl PullTarget for FolderCopy {
    fn position(&mut self, dataset: Dataset) -> Result<Option<Position>> {
        let state = self.stored(dataset);
        let state = state.filter(|_| !self.to_load.contains(&dataset));
        Ok(state.map(|state| Position {
            token: state.token.clone(),
            records: state.records,
            verified_at: verified_s(state.verified_at.as_deref()),
            other_server: Some(self.state.server.clone()).filter(|held| *held != self.server),
        }))
    }

    fn records(&mut self, dataset: Dataset) -> Result<Option<u64>> {
        Ok(self.stored(dataset).map(|state| state.records))
    }

    fn apply(&mut self, dataset: Dataset, page: &FeedPage, events: &dyn Events) -> Result<()> {
        let stored = self.stored(dataset);
        if page.entries.is_empty() && stored.is_some_and(|state| state.token == page.token) {
            return Ok(());
        }
        let mut old = self.lines(dataset)?;
        let result = self.merge(dataset, page, &mut old, events);
        if result.is_err() && !self.compare_files(dataset).unwrap_or(false) {
            self.to_load.push(dataset);
        }
        result
    }

    fn load(
        &mut self,
        dataset: Dataset,
        export: &mut Export<'_>,
        events: &dyn Events,
    ) -> Result<()> {
        let mut held = if events.takes_changes() {
            self.held(dataset)?
        } else {
            BTreeMap::new()
        };
        let token = export.announced.token.clone();
        let mut changes = Changes::new(dataset, events);
        self.replace(dataset, &token, Some(now().to_string()), &mut || {
            let next = export.next_record()?;
            let id = next.as_ref().map_or(i64::MAX, |entry| entry.id);
            while let Some(removed) = held.first_entry().filter(|first| *first.key() < id) {
                changes.add(&tombstone(removed.remove_entry().0))?;
            }
            if let Some(entry) = &next {
                if held.remove(&id) != Some(Sha256::digest(entry.json.as_bytes()).into()) {
                    changes.add(&entry.json)?;
                }
                report(dataset, export, events);
            } else {
                changes.send()?;
            }
            Ok(next)
        })
    }

    fn clear(&mut self, dataset: Dataset, events: &dyn Events) -> Result<u64> {
        let held = self.held(dataset)?;
        held.keys()
            .try_for_each(|id| events.change(dataset, &tombstone(*id)))?;
        // The state last: a killed run is repeated, since the files do not match it.
        let removed = self.remove_files(dataset).and_then(|()| {
            self.state.datasets.remove(dataset.as_str());
            self.save()
        });
        removed
            .map_err(|error| failure(&self.folder, &error))
            .map(|()| held.len() as u64)
    }

    fn digest(&mut self, dataset: Dataset) -> Result<ContentDigest> {
        let path = self.file(dataset, "jsonl");
        let digest = match open_file(&path) {
            // A removed file has no records. So a comparison finds the difference, and loads the export.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Hasher::default().finish());
            }
            opened => opened.and_then(|file| digest_of(&file)),
        };
        digest.map_err(|error| failure(&path, &error))
    }

    fn find_fault(&mut self, dataset: Dataset) -> Result<Option<String>> {
        let fits = self
            .compare_files(dataset)
            .map_err(|error| failure(&self.folder, &error))?;
        Ok((!fits).then(|| "a file does not match the state file".to_owned()))
    }

    fn set_verified(&mut self, dataset: Dataset) -> Result<()> {
        self.state.server.clone_from(&self.server);
        if let Some(state) = self.state.datasets.get_mut(dataset.as_str()) {
            state.verified_at = Some(now().to_string());
        }
        self.save().map_err(|error| failure(&self.folder, &error))
    }

    fn check_location(&self) -> Result<()> {
        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        let lock = fs::metadata(self.folder.join(LOCK_FILE)).map(identity);
        if lock.is_ok_and(|lock| {
            self.lock
                .metadata()
                .map(identity)
                .is_ok_and(|own| own == lock)
        }) {
            return Ok(());
        }
        Err(PullError::Unusable(format!(
            "{}: the lock file or its folder was removed or replaced meanwhile; run again",
            self.folder.join(LOCK_FILE).display()
        )))
    }
}

/// Whether an entry of a folder is neither the lock nor a draft of a killed pull.
fn is_foreign(entry: io::Result<fs::DirEntry>) -> bool {
    entry.map_or(true, |entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name != LOCK_FILE && !name.ends_with(".new")
    })
}

fn read_state(folder: &Path, json: &[u8]) -> Result<CopyState> {
    let path = folder.join(STATE_FILE);
    let state: Value = serde_json::from_slice(json).unwrap_or_default();
    match state["format"].as_u64() {
        Some(format) if format != u64::from(FORMAT) => {
            Err(PullError::of_another_version(path.display(), format, FORMAT, OTHER_LOCATION))
        }
        _ => serde_json::from_slice(json).map_err(|error| {
            PullError::Unusable(format!(
                "{} cannot be read ({error}); remove it and the other files of the copy; the next pull creates them again",
                path.display()
            ))
        }),
    }
}

fn failure(path: &Path, error: &io::Error) -> PullError {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            PullError::Unwritable(format!(
                "{shown}: no space is left on the disk; make room and run again"
            ))
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            PullError::Unusable(format!(
                "{shown}: it cannot be written; check the permissions of the folder and its files"
            ))
        }
        _ => PullError::Unwritable(describe_at(path, error)),
    }
}

fn changed_meanwhile(path: &Path) -> PullError {
    PullError::failed(format!(
        "{}: another program changed or removed the file; loading the export",
        path.display()
    ))
}

fn put_in_place(path: &Path) -> io::Result<()> {
    fs::rename(path.with_added_extension("new"), path)
}

/// The number of lines of a file, and its SHA-256. For a file of records, this is the digest of its content.
fn digest_of(mut file: &File) -> io::Result<ContentDigest> {
    let mut hasher = Hasher::default();
    io::copy(&mut file, &mut hasher)?;
    Ok(hasher.finish())
}

/// A new file that will replace another one. It is hashed while it is written.
struct HashedDraft {
    file: BufWriter<File>,
    hasher: Hasher,
}

impl HashedDraft {
    fn new(path: &Path) -> io::Result<HashedDraft> {
        Ok(HashedDraft {
            file: BufWriter::new(make_draft(&path.with_added_extension("new"), path)?),
            hasher: Hasher::default(),
        })
    }

    /// Syncs the file to the disk. Returns its digest.
    fn finish(mut self) -> io::Result<ContentDigest> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok(self.hasher.finish())
    }
}

impl Write for HashedDraft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.add_bytes(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The header of a dataset's CSV file.
fn header(dataset: Dataset) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    flat::write_header(&mut header, dataset.table(), true).map(|()| header)
}

/// Compares the beginning of a CSV file with its header. Leaves the position at the start.
fn compare_header(mut file: &File, dataset: Dataset) -> io::Result<bool> {
    let header = header(dataset)?;
    let mut found = Vec::new();
    file.take(header.len() as u64).read_to_end(&mut found)?;
    file.rewind().map(|()| found == header)
}

/// Writes a record as a row of CSV.
fn write_record(table: &mut HashedDraft, dataset: Dataset, entry: &Entry) -> io::Result<()> {
    let record: Value = serde_json::from_str(&entry.json)?;
    let updated_at = text_of(record["updated_at"].as_str().unwrap_or_default().into());
    let cells = columns(dataset)
        .iter()
        .map(|column| text_of(cell_of(column, &record)));
    flat::write_row(
        table,
        [entry.id.to_string()]
            .into_iter()
            .chain(cells)
            .chain([updated_at]),
    )
}

/// The text of a cell in CSV. A `'` precedes texts that a spreadsheet may take for a formula.
fn text_of(cell: Cell) -> String {
    match cell {
        Cell::Null | Cell::Bytes(_) => String::new(),
        Cell::Integer(number) => number.to_string(),
        Cell::Number(number) => Number::try_from(number)
            .map_or_else(|_| number.to_string(), |number| number.to_string()),
        Cell::Flag(flag) => flag.to_string().to_uppercase(),
        Cell::Text(text) if flat::looks_like_formula(&text) => format!("'{text}"),
        Cell::Text(text) => text,
    }
}

/// The lines of a file, hashed as they are read.
struct RecordLines {
    path: PathBuf,
    reader: Option<BufReader<File>>,
    line: Vec<u8>,
    hasher: Hasher,
}

impl RecordLines {
    fn next(&mut self) -> Result<Option<Entry>> {
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        match read_line(
            reader,
            &mut self.line,
            LINE,
            ReadLimits::default().record_bytes,
        ) {
            Ok(0) => Ok(None),
            Ok(_) => {
                self.hasher.add_bytes(&self.line);
                let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
                let entry = str::from_utf8(line)
                    .ok()
                    .and_then(|text| Entry::parse(text).ok());
                entry.map(Some).ok_or_else(|| changed_meanwhile(&self.path))
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(changed_meanwhile(&self.path))
            }
            Err(error) => Err(failure(&self.path, &error)),
        }
    }
}
