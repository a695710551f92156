//! A database with the records of the folder `fixtures`, and a license for all of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use medfeed::import::{self, MergeOptions, ReadOptions, Source, SourceOptions};
use medfeed::model::{Dataset, Scope, Timestamp};
use medfeed::store::Writer;
use medfeed::store::write::licensing::KeySettings;
use tempfile::TempDir;

/// The time of all commits.
pub fn time() -> Timestamp {
    Timestamp::from_unix_s(1_780_000_000)
}

/// A rate limit that no input reaches.
const RATE: u32 = 1_000_000_000;

pub struct Database {
    pub writer: Writer,
    /// The keys of the licenses `all` and `spain`.
    pub keys: [String; 2],
    folder: TempDir,
}

impl Database {
    /// Imports the fixtures in two commits, so that the feed has a tombstone.
    pub fn filled() -> Database {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let writer = Writer::open_or_create(&folder.path().join("medfeed.redb"), Duration::ZERO)
            .expect("a database");
        apply(
            &writer,
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures")),
        );
        let mut edit = writer.begin_at(time()).expect("a transaction");
        let all = Scope {
            datasets: Dataset::ALL.into(),
            therapy_areas: None,
            countries: None,
            years: None,
        };
        let spain = Scope {
            countries: Some(["Spain".to_owned()].into()),
            ..all.clone()
        };
        let keys = [("all", all), ("spain", spain)].map(|(name, scope)| {
            edit.set_license(name, scope, Some(RATE))
                .expect("a license");
            edit.create_key(name, KeySettings::default())
                .expect("a key")
                .0
                .reveal()
                .to_owned()
        });
        edit.commit().expect("the commit");
        let removal = folder.path().join("conferences.jsonl");
        std::fs::write(&removal, "{\"id\":2,\"deleted\":true}\n").expect("the file is written");
        apply(&writer, &removal);
        Database {
            writer,
            keys,
            folder,
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("medfeed.redb")
    }
}

fn apply(writer: &Writer, path: &Path) {
    let sources = Source::find(&[path.to_owned()], SourceOptions::default()).expect("sources");
    let rows = import::read_sources(&sources, &ReadOptions::default()).expect("the files are read");
    let mut edit = writer.begin_at(time()).expect("a transaction");
    let merged = import::merge(
        rows,
        &edit.base().expect("a state"),
        &MergeOptions::default(),
    )
    .unwrap_or_else(|refusal| panic!("{refusal}"));
    edit.apply(&merged.batch).expect("the batch is applied");
    edit.commit().expect("the commit");
}
