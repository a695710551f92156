//! Histories of writes, in which the power is lost. They use every way in which medfeed writes. A step is done when its
//! call returns.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use medfeed::model::{
    ConferenceFields, Curated, Dataset, DateStatus, Fields, Id, JournalFields, OrganizationFields,
    Scope, TagFields,
};
use medfeed::store::file::replace::{backup, compact};
use medfeed::store::replication::{ApplyError, OriginView, PublishedNote, ReplicaWriter};
use medfeed::store::restore::{Restoration, upgrade};
use medfeed::store::{Batch, Edit, Reader, Writer};
use tempfile::TempDir;

use super::disk::{Action, Disk};
use super::examine::{State, state_of};
use crate::process::added_fields::take_field;
use crate::process::site::Random;
use crate::properties::replicas::{apply, load, view, waiting};

/// The files whose states are compared.
pub const FEED: &str = "feed.redb";
pub const BACKUP: &str = "backup.redb";
pub const NOTE: &str = "feed.redb.published";
pub const OLD: &str = "feed.redb.format-5";

/// The length of a part of a state that a replica loads.
const PART_BYTES: usize = 5_000;

/// The states of files, by name.
pub type States = BTreeMap<&'static str, State>;

/// A finished history.
pub struct Record {
    /// The files before the first step. They are durable.
    pub before: BTreeMap<String, Vec<u8>>,
    pub actions: Vec<Action>,
    /// The states before the first step, and after each one.
    pub states: Vec<States>,
    pub origin: Option<OriginView>,
    _folders: Vec<TempDir>,
}

impl Record {
    pub fn of(
        disk: Disk,
        states: Vec<States>,
        origin: Option<OriginView>,
        folders: Vec<TempDir>,
    ) -> Record {
        let log = disk.into_log();
        Record {
            before: log.before,
            actions: log.actions,
            states,
            origin,
            _folders: folders,
        }
    }
}

/// A folder in memory, if there is one: a sync then costs nothing.
pub fn memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    }
}

/// A folder that is recorded.
pub struct Site {
    folders: Vec<TempDir>,
    disk: Disk,
    states: Vec<States>,
    /// Some commands still hold the file when the next one begins.
    writer: Option<Writer>,
    origin: Option<OriginView>,
}

impl Site {
    pub fn new() -> Site {
        let folder = tempfile::tempdir_in(memory()).unwrap();
        let disk = Disk::observing(folder.path());
        Site {
            folders: vec![folder],
            disk,
            states: vec![States::new()],
            writer: None,
            origin: None,
        }
    }

    /// Begins again in a new folder with one file.
    fn begin_with(&mut self, name: &str, content: &[u8]) {
        let folder = tempfile::tempdir_in(memory()).unwrap();
        fs::write(folder.path().join(name), content).unwrap();
        self.disk = Disk::observing(folder.path());
        self.folders.push(folder);
        self.states = vec![self.found()];
    }

    pub fn into_record(self) -> Record {
        drop(self.writer);
        Record::of(self.disk, self.states, self.origin, self.folders)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.disk.folder().join(name)
    }

    fn path(&self) -> PathBuf {
        self.at(FEED)
    }

    /// The states of the real files.
    fn found(&self) -> States {
        let state = |name: &'static str| Some((name, state_of(&self.at(name)).unwrap()?));
        [FEED, BACKUP, NOTE, OLD]
            .into_iter()
            .filter_map(state)
            .collect()
    }

    /// Reports the step as done.
    fn done(&mut self) {
        self.disk.done();
        self.states.push(self.found());
    }

    fn commit(&mut self, random: &mut Random, change: impl FnOnce(&mut Edit<'_>, &mut Random)) {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => Writer::open_or_create(&self.path(), Duration::ZERO).unwrap(),
        };
        let mut edit = writer.begin().unwrap();
        change(&mut edit, random);
        edit.commit().unwrap();
        self.done();
        self.writer = Some(writer).filter(|_| random.percent(30));
    }

    fn import(&mut self, random: &mut Random, rows: usize) {
        self.commit(random, |edit, random| {
            drop(edit.apply(&batch(random, rows)).unwrap())
        });
    }

    fn license(&mut self, random: &mut Random, name: &str) {
        self.commit(random, |edit, random| {
            drop(edit.set_license(name, scope(random), None).unwrap())
        });
    }
}

const COUNTRIES: [&str; 3] = ["Spain", "Japan", "Côte d'Ivoire"];

fn scope(random: &mut Random) -> Scope {
    let countries = random
        .percent(60)
        .then(|| [COUNTRIES[random.below(3)].to_owned()].into());
    Scope {
        datasets: Dataset::ALL.into(),
        countries,
        ..Scope::nothing()
    }
}

fn id(number: usize) -> Id {
    Id::try_from(u64::try_from(number).unwrap()).unwrap()
}

fn row<F: Fields>(number: usize, fields: F) -> (Id, Option<Curated<F>>) {
    (id(number), Some(Curated::new(id(number), fields).unwrap()))
}

/// An import: of three rows, or of enough rows to make the file grow.
fn batch(random: &mut Random, rows: usize) -> Batch {
    let mut batch = Batch::default();
    for number in 1..=3 {
        let name = Some(format!("Society {number}.{}", random.below(2)));
        batch.organizations.extend([row(
            number,
            OrganizationFields {
                name,
                ..Default::default()
            },
        )]);
        let name = Some(format!("Tag {number}"));
        batch.tags.extend([row(
            number,
            TagFields {
                kind: Some("Topic".to_owned()),
                name,
                category: None,
            },
        )]);
    }
    for _ in 0..rows {
        let number = 1 + random.below(10 + rows);
        if random.percent(20) {
            batch.conferences.insert(id(number), None);
            continue;
        }
        let fields = ConferenceFields {
            name: Some(format!(
                "Conference {number} {}",
                "of the heart ".repeat(random.below(20))
            )),
            start_date_status: Some(DateStatus::Check),
            abstract_due_date_status: Some(DateStatus::Check),
            late_breaking_due_date_status: Some(DateStatus::Check),
            country: Some(COUNTRIES[random.below(3)].to_owned()),
            organizations: vec![id(1 + random.below(3))].into(),
            tags: vec![id(1 + random.below(3))].into(),
            ..ConferenceFields::default()
        };
        batch.conferences.extend([row(number, fields)]);
    }
    let name = Some(format!("Journal {}", random.below(5)));
    batch.journals.extend([row(
        1 + random.below(5),
        JournalFields {
            name,
            ..Default::default()
        },
    )]);
    batch
}

/// Imports, licenses and keys.
pub fn commits(site: &mut Site, random: &mut Random) {
    site.import(random, 5);
    site.license(random, "one");
    for _ in 0..6 {
        match random.below(6) {
            0 => site.license(random, "one"),
            1 => site.license(random, "two"),
            2 => site.import(random, 150),
            3 => site.commit(random, |edit, _| {
                let (_, key) = edit.create_key("one", Default::default()).unwrap();
                edit.replace_key(&key.id, 60).unwrap();
            }),
            _ => site.import(random, 3),
        }
    }
    site.commit(random, |edit, _| {
        assert!(edit.remove_license("one").is_ok())
    });
}

fn note(site: &Site) -> PublishedNote {
    let view = view(&site.path());
    let head = view.head().unwrap();
    PublishedNote {
        url: "file:///srv/feed".to_owned(),
        id: view.id().unwrap().unwrap(),
        slot: head.seq,
        seq: head.seq,
        lineage: head.lineage,
        hash: [7; 32],
        fenced: None,
        fenced_at: None,
    }
}

/// A database that is marked as published between two commits, with an outbox and a publisher's note.
pub fn published(site: &mut Site, random: &mut Random) {
    site.import(random, 10);
    site.license(random, "one");
    site.writer = None;
    let writer = Writer::open(&site.path(), Duration::ZERO).unwrap();
    writer.mark_published().unwrap();
    site.done();
    site.writer = Some(writer);
    for _ in 0..3 {
        for _ in 0..random.below(4) {
            let rows = [2, 2, 60][random.below(3)];
            site.import(random, rows);
        }
        note(site).write(&site.path()).unwrap();
        site.done();
        site.license(random, "one");
    }
}

/// Compactions, backups and restores, with commits between them.
pub fn replaced(site: &mut Site, random: &mut Random) {
    site.import(random, 20);
    site.license(random, "one");
    if random.percent(50) {
        site.writer = None;
        Writer::open(&site.path(), Duration::ZERO)
            .unwrap()
            .mark_published()
            .unwrap();
        site.done();
    }
    for _ in 0..4 {
        match random.below(3) {
            0 => {
                backup(&Reader::open(&site.path()).unwrap(), &site.at(BACKUP)).unwrap();
            }
            1 => {
                site.writer = None;
                compact(&site.path(), Duration::ZERO).unwrap();
            }
            _ if site.at(BACKUP).exists() => {
                site.writer = None;
                let restoration =
                    Restoration::prepare(&site.path(), &site.at(BACKUP), Duration::ZERO, None)
                        .unwrap();
                restoration.finish().unwrap();
            }
            _ => continue,
        }
        site.done();
        site.import(random, 4);
    }
}

/// A file whose records lack a field is upgraded, and written on.
pub fn upgraded(site: &mut Site, random: &mut Random) {
    let folder = tempfile::tempdir_in(memory()).unwrap();
    let path = folder.path().join("older.redb");
    site.disk.paused(|| {
        let writer = Writer::open_or_create(&path, Duration::ZERO).unwrap();
        let mut edit = writer.begin().unwrap();
        edit.apply(&batch(random, 60)).unwrap();
        edit.set_license("one", scope(random), None).unwrap();
        edit.commit().unwrap();
        drop(writer);
        take_field(&path);
    });
    let content = fs::read(&path).unwrap();
    site.begin_with(FEED, &content);
    upgrade(&site.path(), Duration::ZERO).unwrap().unwrap();
    site.done();
    site.commit(random, |edit, random| {
        drop(edit.set_license("one", scope(random), None).unwrap())
    });
}

/// Brings a replica to the state of its origin.
pub fn follow(replica: &mut ReplicaWriter, origin: &OriginView) -> Result<(), ApplyError> {
    let end = replica.head()?.head();
    apply(replica, &waiting(origin, end))
}

/// A replica is loaded, applies commits, is replaced by a whole state, and is promoted.
pub fn replica(site: &mut Site, random: &mut Random) {
    // The origin is on another machine, which does not lose power.
    let folder = tempfile::tempdir_in(memory()).unwrap();
    let path = folder.path().join("origin.redb");
    let mut views = Vec::new();
    site.disk.paused(|| {
        let writer = Writer::open_or_create(&path, Duration::ZERO).unwrap();
        let commit = |change: &dyn Fn(&mut Edit<'_>, &mut Random), random: &mut Random| {
            let mut edit = writer.begin().unwrap();
            change(&mut edit, random);
            edit.commit().unwrap();
        };
        let import = |rows: usize| {
            move |edit: &mut Edit<'_>, random: &mut Random| {
                drop(edit.apply(&batch(random, rows)).unwrap());
            }
        };
        let license = |edit: &mut Edit<'_>, random: &mut Random| {
            edit.set_license("one", scope(random), None).unwrap();
        };
        commit(&import(20), random);
        commit(&license, random);
        writer.mark_published().unwrap();
        for _ in 0..3 {
            views.push(view(&path));
            commit(&import(3), random);
            commit(&license, random);
            commit(&import([3, 100][random.below(2)]), random);
        }
        views.push(view(&path));
    });
    let mut replica = load(&views[0], &site.path(), PART_BYTES, None);
    site.done();
    for (index, origin) in views.iter().enumerate().skip(1) {
        if index == 2 && random.percent(50) {
            replica = load(origin, &site.path(), PART_BYTES, Some(replica));
            site.done();
        }
        let mut commits = waiting(origin, replica.head().unwrap().head());
        while !commits.is_empty() {
            let later = commits.split_off(1 + random.below(commits.len()));
            apply(&mut replica, &commits).unwrap();
            site.done();
            commits = later;
        }
        if random.percent(30) {
            // The server is restarted.
            drop(replica);
            replica = ReplicaWriter::open(&site.path()).unwrap();
        }
    }
    if random.percent(50) {
        site.writer = Some(replica.promote().unwrap());
        site.done();
        site.license(random, "two");
    }
    site.origin = views.pop();
    site.folders.push(folder);
}
