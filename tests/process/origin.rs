//! An origin with a bucket in a folder, which publishes when the test calls it, and sites for replicas.

use std::fs;
use std::path::{Path, PathBuf};

use medfeed::bucket::{Bucket, Created};
use medfeed::replicate::entry::{self, EntryHeader};
use medfeed::replicate::layout;
use medfeed::store::Reader;
use medfeed::store::replication::OriginView;

use super::published::{Place, note};
use super::publishing::copy_of;
use super::site::{Server, Site};

/// An origin and the end of its log.
pub struct Origin {
    pub site: Site,
    place: Place,
    pub slot: u64,
}

impl Origin {
    /// Publishes a site's database in the folder `bucket` next to it.
    pub fn new(site: Site) -> Origin {
        let place = Place::folder(&site);
        let mut origin = Origin {
            site,
            place,
            slot: 0,
        };
        origin.publish();
        origin
    }

    pub fn bucket(&self) -> &Bucket {
        &self.place.bucket
    }

    pub fn folder(&self) -> PathBuf {
        self.site.path("bucket")
    }

    pub fn url(&self) -> String {
        self.place.url.clone()
    }

    pub fn view(&self) -> OriginView {
        Reader::open(&self.site.db())
            .expect("a database")
            .origin()
            .expect("it can be read")
    }

    /// Publishes all commits since the last call, and writes a heartbeat.
    pub fn publish(&mut self) {
        self.publish_with("");
    }

    /// The same, with a whole state after the log's end for new replicas.
    pub fn add_state(&mut self) {
        self.publish_with("--state-every 0s");
    }

    fn publish_with(&mut self, options: &str) {
        self.place.once_with(&self.site, options);
        self.slot = note(&self.site).slot;
    }

    /// Restores the database as it is, so that a whole state is published.
    pub fn publish_state(&mut self) {
        let backup = self.site.backup("present.redb");
        self.site
            .json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
        self.publish();
    }

    /// The next entry of the log: a copy of the database publishes it into a copy of the bucket.
    pub fn next_entry(&self) -> (EntryHeader, Vec<Vec<u8>>) {
        let copy = copy_of(&self.site);
        let bucket = copy.path("bucket");
        fs::create_dir(&bucket).expect("a folder");
        copy_into(&self.folder(), &bucket);
        let place = Place::folder(&copy);
        assert_eq!(place.once(&copy), 1);
        let entry = place.entry(self.slot + 1);
        (entry.header, entry.changes)
    }

    /// Adds an entry at the log's end, also one that no publisher would write.
    pub fn put(&mut self, header: &EntryHeader, changes: &[Vec<u8>]) {
        let changes: Vec<&[u8]> = changes.iter().map(Vec::as_slice).collect();
        let (bytes, _) = entry::encode(header, &changes).expect("an entry");
        let created = self
            .bucket()
            .create(&layout::log(header.slot), &bytes)
            .expect("the bucket is there");
        assert_eq!(created, Created::New);
        self.slot = header.slot;
    }

    /// A site for a replica of this origin.
    pub fn replica(&self) -> Replica {
        Replica {
            site: Site::new(),
            url: self.url(),
        }
    }
}

/// Copies the content of a folder into another one, which may be new.
pub fn copy_into(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
    {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_into(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}

/// A replica's folder.
#[derive(Debug)]
pub struct Replica {
    pub site: Site,
    pub url: String,
}

impl Replica {
    /// Options with which a server follows as a replica, and has monitoring.
    pub fn options(&self, more: &str) -> String {
        format!(
            "--from {} --admin-listen 127.0.0.1:0 --log info {more}",
            self.url
        )
    }

    /// Serves the replica, with more options.
    pub fn serve(&self, more: &str) -> Server {
        self.site.serve_with(&self.options(more))
    }
}

/// The URL of a folder as a bucket.
pub fn url_of(folder: &Path) -> String {
    format!("file://{}", folder.display())
}
