//! Whole databases in temporary folders, built through the library as commands build them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use medfeed::model::{Dataset, Scope};
use medfeed::store::write::licensing::KeySettings;
use medfeed::store::{Batch, Writer};
use tempfile::TempDir;

use super::random::Random;
use super::synthetic::{
    self, AREA_OF_FIFTIETH, AREA_OF_HALF, AREA_OF_THOUSANDTH, CONFERENCES, JOURNALS, SEED,
};

/// Commits after the load. Without them the log would lie in the order of ids, as no log in use does.
const LATER_COMMITS: u64 = 10;
/// Each later commit changes one conference in this number.
const CHANGED_ONE_IN: u64 = 100;
/// Each later commit removes one conference in this number, so the feed has tombstones.
const REMOVED_ONE_IN: u64 = 2_000;
/// Records per commit of a load: bounds what a batch needs in memory.
const LOAD_RECORDS: u64 = 100_000;
/// The random stream of the later commits' choices, apart from those of the rows.
const CHANGES_STREAM: u64 = 15 << 60;
/// More requests per minute than a benchmark can send.
const RATE_LIMIT: u32 = u32::MAX;

/// The share of the conferences that a license shows. Journals have no row rule: every license shows them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Every conference.
    All,
    /// One in two.
    Half,
    /// One in 50.
    Fiftieth,
    /// One in 1,000.
    Thousandth,
}

impl Share {
    /// Every share, the largest first.
    pub const EACH: [Share; 4] = [Share::All, Share::Half, Share::Fiftieth, Share::Thousandth];

    /// The share in the names of benchmarks.
    pub const fn name(self) -> &'static str {
        match self {
            Share::All => "all",
            Share::Half => "half",
            Share::Fiftieth => "1 in 50",
            Share::Thousandth => "1 in 1,000",
        }
    }

    /// The scope of a license with this share: by therapy area, as most are.
    pub fn scope(self) -> Scope {
        let area = match self {
            Share::All => None,
            Share::Half => Some(AREA_OF_HALF),
            Share::Fiftieth => Some(AREA_OF_FIFTIETH),
            Share::Thousandth => Some(AREA_OF_THOUSANDTH),
        };
        Scope {
            datasets: Dataset::ALL.into_iter().collect(),
            therapy_areas: area.map(|area| [area.to_owned()].into()),
            countries: None,
            years: None,
        }
    }
}

/// The shares of `n` licenses, one after the other of [`Share::EACH`].
pub fn mixed_licenses(n: usize) -> Vec<Share> {
    Share::EACH.into_iter().cycle().take(n).collect()
}

/// The name of a license by its index.
pub fn license_name(index: usize) -> String {
    format!("license-{index:04}")
}

/// The number of records in a world after its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the datasets")]
pub struct Size {
    pub conferences: u64,
    pub journals: u64,
}

impl Size {
    /// The usual size.
    pub const USUAL: Size = Size {
        conferences: CONFERENCES,
        journals: JOURNALS,
    };

    /// A long log of conferences alone.
    pub const fn of_log(conferences: u64) -> Size {
        Size {
            conferences,
            journals: 0,
        }
    }
}

/// A database in a temporary folder of its own.
#[derive(Debug)]
pub struct World {
    path: PathBuf,
    /// A key of each license, in the order in which they were given.
    pub keys: Vec<String>,
    _folder: TempDir,
}

impl World {
    /// Builds a database whose licenses are older than its records, and whose records changed a little since.
    pub fn build(size: Size, licenses: &[Share]) -> World {
        let folder = tempfile::Builder::new()
            .prefix("medfeed-bench-")
            .tempdir()
            .expect("a temporary folder");
        let mut world = World {
            path: folder.path().join("bench.redb"),
            keys: Vec::new(),
            _folder: folder,
        };
        let writer = Writer::open_or_create(&world.path, Duration::ZERO).expect("a new database");
        let mut edit = writer.begin().expect("the write transaction begins");
        for (index, share) in licenses.iter().enumerate() {
            let name = license_name(index);
            edit.set_license(&name, share.scope(), Some(RATE_LIMIT))
                .expect("the license is set");
            let (key, _) = edit
                .create_key(&name, KeySettings::default())
                .expect("the key is made");
            world.keys.push(key.reveal().to_owned());
        }
        edit.commit().expect("the licenses are committed");
        commit(&writer, synthetic::references());
        let mut loaded = 0;
        while loaded < size.conferences {
            let end = size.conferences.min(loaded + LOAD_RECORDS);
            commit(&writer, synthetic::records(loaded..end, [], 0));
            loaded = end;
        }
        commit(&writer, synthetic::records([], 0..size.journals, 0));
        let mut random = Random::new(SEED, CHANGES_STREAM);
        for revision in (1..=LATER_COMMITS).filter(|_| size.conferences > 0) {
            let mut some = |one_in: u64| -> Vec<u64> {
                (0..size.conferences / one_in)
                    .map(|_| random.below(size.conferences))
                    .collect()
            };
            let changed = some(CHANGED_ONE_IN);
            let removed = some(REMOVED_ONE_IN);
            // Changes come last, so that the head of a long log has records, like that of a short one.
            commit(&writer, synthetic::removals(removed));
            commit(&writer, synthetic::records(changed, [], revision));
        }
        drop(writer);
        world
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the database for writing.
    pub fn writer(&self) -> Writer {
        Writer::open(&self.path, Duration::ZERO).expect("the database opens for writing")
    }
}

/// Commits a batch.
pub fn commit(writer: &Writer, batch: Batch) {
    let mut edit = writer.begin().expect("the write transaction begins");
    edit.apply(&batch).expect("the batch is applied");
    edit.commit().expect("the batch is committed");
}
