//! The checks of an image.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use medfeed::store::check::check;
use medfeed::store::replication::{PublishedNote, ReplicaWriter, read_replica};
use medfeed::store::restore::upgrade;
use medfeed::store::write::licensing::KeySettings;
use medfeed::store::{Reader, StoreError, Writer};
use tempfile::TempDir;

use super::disk::Disk;
use super::histories::{BACKUP, FEED, NOTE, OLD, Record, States, memory};
use super::images::{Image, images};
use crate::process::site::Random;

/// A digest of a file's content. Files with the same rows have equal digests.
pub type State = [u8; 32];

/// The numbers of examined images.
#[derive(Debug, Default)]
pub struct Examined {
    pub images: u64,
    /// Images that are like no earlier one.
    pub different: BTreeSet<[u8; 32]>,
    /// Images of a power loss while an image was repaired and written.
    pub second: u64,
}

/// One image in this number loses the power again while it is repaired and written.
const SECOND_EVERY: usize = 16;

/// Opens an image as servers and commands do, and compares it with the states that it may have.
pub fn examine(
    record: &Record,
    image: &Image,
    random: &mut Random,
    all: &mut Examined,
) -> Result<(), String> {
    all.images += 1;
    if !all.different.insert(image.hash()) {
        return Ok(());
    }
    let folder = unpacked(image);
    let (before, after) = (
        &record.states[image.done],
        record.states.get(image.done + 1),
    );
    let mut feed = None;
    for name in [FEED, BACKUP, OLD, NOTE] {
        let path = folder.path().join(name);
        if name == FEED && random.percent(50) {
            // A command opens the file first, instead of a server.
            drop(Writer::open_any(&path, Duration::ZERO));
        }
        let found = state_of(&path).map_err(|error| format!("{name}: {error}"))?;
        if name == FEED {
            feed = found;
        }
        let allowed =
            [Some(before), after].map(|states| states.map(|states| states.get(name).copied()));
        if !allowed.contains(&Some(found)) {
            let is = |at: &Option<Option<State>>| {
                if at.is_some_and(|at| at.is_some()) {
                    "a state"
                } else {
                    "no file"
                }
            };
            let found = if found.is_some() {
                "another state"
            } else {
                "no file"
            };
            return Err(format!(
                "{name}: {found} instead of {} or {}",
                is(&allowed[0]),
                is(&allowed[1])
            ));
        }
    }
    let path = folder.path().join(FEED);
    if !image.files.contains_key(FEED) {
        return Ok(());
    }
    is_sound(&path)?;
    if image.files.contains_key(BACKUP) {
        is_sound(&folder.path().join(BACKUP))?;
    }
    if random.below(SECOND_EVERY) == 0
        && let Some(found) = feed
    {
        let again = second_loss(image, found, random);
        all.second += again.map_err(|error| format!("after a second power loss: {error}"))?;
    }
    write_on(record, &path)
}

/// The state of a database, a note or an older file; `None` if there is no file.
pub fn state_of(path: &Path) -> Result<Option<State>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let mut hasher = blake3::Hasher::new();
    if path.ends_with(NOTE) {
        let read =
            PublishedNote::read(&path.with_file_name(FEED)).map_err(|error| error.to_string())?;
        hasher.update(format!("{read:?}").as_bytes());
        return Ok(Some(*hasher.finalize().as_bytes()));
    }
    let reader = match Reader::open(path) {
        Ok(reader) => reader,
        Err(StoreError::OlderFields { .. }) => {
            hasher.update(&fs::read(path).unwrap());
            return Ok(Some(*hasher.finalize().as_bytes()));
        }
        Err(error) => return Err(error.to_string()),
    };
    let mut read = || -> Result<(), StoreError> {
        let origin = reader.origin()?;
        origin.dump::<StoreError>(1 << 20, &mut |part| {
            hasher.update(&part);
            Ok(())
        })?;
        // Local rows: the last published commit before a restore, the pending changes, and the mark of a replica.
        let mut pending = Vec::new();
        for commit in reader.newest().list_commits(0, usize::MAX)? {
            match origin.pending_after(commit.point().head(), u64::MAX)? {
                None => break,
                waiting => pending = vec![waiting],
            }
        }
        let mark = read_replica(path).map(|(mark, _)| mark).ok();
        hasher.update(format!("{:?} {pending:?} {mark:?}", origin.restored_over()?).as_bytes());
        Ok(())
    };
    read().map_err(|error| error.to_string())?;
    Ok(Some(*hasher.finalize().as_bytes()))
}

fn is_sound(path: &Path) -> Result<(), String> {
    let writer = Writer::open_any(path, Duration::ZERO);
    if matches!(writer, Err(StoreError::OlderFields { .. })) {
        return Ok(());
    }
    let report = writer
        .and_then(|mut writer| check(&mut writer))
        .map_err(|error| error.to_string())?;
    if report.damages == 0 {
        Ok(())
    } else {
        Err(format!("damaged: {:?}", report.findings))
    }
}

/// Makes the next commit: a key of an origin, the origin's next commits for a replica, or the upgrade.
fn write_on(record: &Record, path: &Path) -> Result<(), String> {
    let text = |error: StoreError| error.to_string();
    match Writer::open(path, Duration::ZERO) {
        Ok(writer) => {
            let before = writer.snapshot().map_err(text)?.commit().seq;
            add_key(&writer).map_err(text)?;
            let reader = Reader::open(path).map_err(text)?;
            if reader.newest().commit().seq != before + 2 {
                return Err(format!(
                    "the next commit has seq {} after {before}",
                    reader.newest().commit().seq
                ));
            }
        }
        Err(StoreError::OlderFields { .. }) => {
            upgrade(path, Duration::ZERO).map_err(text)?;
            add_key(&Writer::open(path, Duration::ZERO).map_err(text)?).map_err(text)?;
        }
        Err(StoreError::IsReplica { .. }) => {
            let mut replica = ReplicaWriter::open(path).map_err(text)?;
            let origin = record.origin.as_ref().expect("a replica has an origin");
            super::histories::follow(&mut replica, origin).map_err(|error| error.to_string())?;
            let heads = (
                replica.head().map_err(text)?.head(),
                origin.head().map_err(text)?.head(),
            );
            if heads.0 != heads.1 {
                return Err(format!("{heads:?}"));
            }
        }
        Err(error) => return Err(text(error)),
    }
    is_sound(path)
}

/// Adds a license and a key.
fn add_key(writer: &Writer) -> Result<(), StoreError> {
    let mut edit = writer.begin()?;
    let name = "after the power loss";
    let scope = medfeed::model::Scope::nothing();
    edit.set_license(name, scope, None)?;
    edit.create_key(name, KeySettings::default())?;
    edit.commit()
}

/// Loses the power again while an image is opened, repaired and written.
fn second_loss(image: &Image, found: State, random: &mut Random) -> Result<u64, String> {
    let folder = unpacked(image);
    let path = folder.path().join(FEED);
    let disk = Disk::observing(folder.path());
    let opened = Writer::open(&path, Duration::ZERO);
    if let Ok(writer) = &opened {
        add_key(writer).map_err(|error| error.to_string())?;
        disk.done();
    }
    drop(opened);
    let after = state_of(&path)?.unwrap_or(found);
    let states = [found, after]
        .map(|state| States::from([(FEED, state)]))
        .to_vec();
    let record = Record::of(disk, states, None, vec![folder]);
    let mut count = 0;
    for image in images(&record, 8, random) {
        count += 1;
        let folder = unpacked(&image);
        let path = folder.path().join(FEED);
        let state = state_of(&path)?;
        if !record.states[image.done..]
            .iter()
            .any(|states| states.get(FEED).copied() == state)
        {
            return Err("another state".to_owned());
        }
        is_sound(&path)?;
    }
    Ok(count)
}

fn unpacked(image: &Image) -> TempDir {
    let folder = tempfile::tempdir_in(memory()).unwrap();
    for (name, content) in &image.files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}
