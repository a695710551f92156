//! Cases that need a moment between two steps, a time of a commit, or damage in one row.
//!
//! - `moments`: a file that is replaced while another process works on it.
//! - `damages`: each kind of damage is found by the check.
//! - `commits`: the bytes of commits, which programs of the first release read.
//! - `access`: licenses, keys and the effects of restores, at times that are seconds apart.
//! - `reading`: commits of several times, and filters at the edges of chunks.
//! - `notes`: writers' notes of dead and foreign processes, and versions of files.

mod access;
mod commits;
mod damages;
mod moments;
mod notes;
mod reading;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::model::{
    Conference, ConferenceFields, Curated, Dataset, Id, Organization, OrganizationFields, Scope,
    Tag,
};
use crate::model::{DateStatus, TagFields, Timestamp};
use crate::store::file::metadata::resolve;
use crate::store::format::meta::known_fields;
use crate::store::format::tables::{META, META_FIELDS};
use crate::store::write::licensing::LicenseChange;
use crate::store::{Batch, Edit, Reader, Snapshot, Writer};

/// A database in a folder.
struct Sample {
    folder: tempfile::TempDir,
}

impl Sample {
    fn new() -> Sample {
        let sample = Sample {
            folder: tempfile::tempdir().unwrap(),
        };
        let writer = Writer::open_or_create(&sample.path(), Duration::ZERO).unwrap();
        writer.begin().unwrap().commit().unwrap();
        sample
    }

    fn at(&self, name: &str) -> PathBuf {
        resolve(&self.folder.path().join(name))
    }

    fn path(&self) -> PathBuf {
        self.at("medfeed.redb")
    }

    fn copy_to(&self, name: &str) -> PathBuf {
        std::fs::copy(self.path(), self.at(name)).unwrap();
        self.at(name)
    }

    fn writer(&self) -> Writer {
        Writer::open(&self.path(), Duration::ZERO).unwrap()
    }

    fn edit<T>(&self, change: impl FnOnce(&mut Edit<'_>) -> T) -> T {
        let writer = self.writer();
        let mut edit = writer.begin().unwrap();
        let changed = change(&mut edit);
        edit.commit().unwrap();
        changed
    }

    /// A commit at a time. Later commits must be later.
    fn edit_at<T>(&self, unix_s: i64, change: impl FnOnce(&mut Edit<'_>) -> T) -> T {
        let writer = self.writer();
        let mut edit = writer.begin_at(Timestamp::from_unix_s(unix_s)).unwrap();
        let changed = change(&mut edit);
        edit.commit().unwrap();
        changed
    }

    /// Sets the scope of a license, in a commit of its own.
    fn license(&self, name: &str, scope: Scope) -> LicenseChange {
        self.edit(|edit| edit.set_license(name, scope, None).unwrap())
    }

    fn license_at(&self, unix_s: i64, name: &str, scope: Scope) -> LicenseChange {
        self.edit_at(unix_s, |edit| edit.set_license(name, scope, None).unwrap())
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        snapshot(&self.path())
    }
}

/// Makes a database one of an older program, whose conferences had no venue.
pub(in crate::store) fn make_older(path: &Path) {
    let writer = Writer::open_any(path, Duration::ZERO).unwrap();
    let tx = writer.begin_raw().unwrap();
    let fields = known_fields().replacen("conferences.venue\n", "", 1);
    tx.open_table(META)
        .unwrap()
        .insert(META_FIELDS, fields.as_bytes())
        .unwrap();
    tx.commit().unwrap();
}

fn snapshot(path: &Path) -> Arc<Snapshot> {
    Arc::clone(Reader::open(path).unwrap().newest())
}

fn id(id: u64) -> Id {
    Id::try_from(id).unwrap()
}

fn conference(number: u64, change: impl FnOnce(&mut ConferenceFields)) -> Conference {
    let mut fields = ConferenceFields {
        name: Some(format!("Conference {number}")),
        start_date_status: Some(DateStatus::Check),
        abstract_due_date_status: Some(DateStatus::Check),
        late_breaking_due_date_status: Some(DateStatus::Check),
        ..ConferenceFields::default()
    };
    change(&mut fields);
    Curated::new(id(number), fields).unwrap()
}

fn organization(number: u64, name: &str) -> Organization {
    Curated::new(
        id(number),
        OrganizationFields {
            name: Some(name.to_owned()),
            ..Default::default()
        },
    )
    .unwrap()
}

fn tag(number: u64, name: &str) -> Tag {
    let fields = TagFields {
        kind: Some("Topic".to_owned()),
        name: Some(name.to_owned()),
        category: None,
    };
    Curated::new(id(number), fields).unwrap()
}

fn batch(conferences: impl IntoIterator<Item = Conference>) -> Batch {
    Batch {
        conferences: conferences
            .into_iter()
            .map(|row| (row.id(), Some(row)))
            .collect(),
        ..Batch::default()
    }
}

fn removal(ids: impl IntoIterator<Item = u64>) -> Batch {
    Batch {
        conferences: ids.into_iter().map(|number| (id(number), None)).collect(),
        ..Batch::default()
    }
}

fn conferences() -> Scope {
    Scope {
        datasets: [Dataset::Conferences].into(),
        ..Scope::nothing()
    }
}

fn everything() -> Scope {
    Scope {
        datasets: Dataset::ALL.into(),
        ..Scope::nothing()
    }
}

fn in_country(country: &str) -> Scope {
    Scope {
        countries: Some([country.to_owned()].into()),
        ..conferences()
    }
}
