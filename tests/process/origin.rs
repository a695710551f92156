//! An origin with a bucket: what is committed at a site is put into the bucket when a test says so, and as it says.

use std::path::{Path, PathBuf};

use medfeed::bucket::{Bucket, Created};
use medfeed::model::time::now;
use medfeed::model::{DatabaseId, Head};
use medfeed::replicate::entry::{self, CommitInfo, Header};
use medfeed::replicate::layout;
use medfeed::replicate::report::Alive;
use medfeed::replicate::state::{Manifest, PartRef, encode_part};
use medfeed::store::replication::{OriginView, Pending, SCHEMA};
use medfeed::store::{Follower, Writer};

use super::site::{SOON, Server, Site};

/// An origin and the end of its log.
#[derive(Debug)]
pub struct Origin {
    pub site: Site,
    folder: PathBuf,
    /// Where the database was before.
    former: Option<Site>,
    bucket: Bucket,
    id: DatabaseId,
    pub slot: u64,
    pub hash: [u8; 32],
    head: Head,
}

impl Origin {
    /// Publishes a site's database, whole, in the folder `bucket` beside it.
    pub fn new(site: Site) -> Origin {
        let folder = site.path("bucket");
        std::fs::create_dir(&folder).expect("a folder");
        let bucket = Bucket::open(&url_of(&folder).parse().expect("a URL"), None).expect("a bucket");
        let writer = Writer::open(&site.db(), SOON).expect("a database");
        let id = writer.mark_published().expect("it can be written");
        drop(writer);
        let mut origin = Origin {
            site,
            folder,
            former: None,
            bucket,
            id,
            slot: 0,
            hash: [0; 32],
            head: Head { seq: 0, lineage: [0; 16] },
        };
        origin.publish_state();
        origin
    }

    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn url(&self) -> String {
        url_of(&self.folder)
    }

    pub fn view(&self) -> OriginView {
        Follower::open(&self.site.db()).expect("a database").origin().expect("it can be read")
    }

    /// Publishes all that was committed since the last time as one entry, or as a whole state where the outbox does not reach
    /// back. Nothing is published where nothing was committed.
    pub fn publish(&mut self) {
        if let Some((header, changes)) = self.next_entry() {
            self.put(&header, &changes);
        } else if self.view().head().expect("it can be read").head() != self.head {
            self.publish_state();
        }
        self.beat();
    }

    /// The entry that comes next, if what was committed since the last one can be told by its changes.
    pub fn next_entry(&self) -> Option<(Header, Vec<Vec<u8>>)> {
        let view = self.view();
        if !view.holds(self.head.seq, self.head.lineage).expect("it can be read") {
            return None;
        }
        let Pending::Commits(pending) = view.pending_after(self.head.seq, u64::MAX).expect("it can be read") else {
            return None;
        };
        let changes = pending.iter().map(|commit| view.changes(commit).expect("it can be read")).collect();
        let commits: Vec<CommitInfo> = pending
            .iter()
            .map(|commit| CommitInfo {
                first_seq: commit.first_seq,
                last_seq: commit.last_seq,
                lineage: commit.lineage,
                time: commit.time,
                base: commit.base,
                digest: commit.digest,
                bytes: commit.bytes,
            })
            .collect();
        let last = commits.last().expect("one at least");
        let header = Header {
            seq: last.last_seq,
            lineage: last.lineage,
            digest: last.digest,
            state: None,
            commits,
            ..self.header_of_state(Vec::new())
        };
        Some((header, changes))
    }

    fn header_of_state(&self, parts: Vec<PartRef>) -> Header {
        let view = self.view();
        let head = view.head().expect("it can be read").head();
        Header {
            id: self.id,
            slot: self.slot + 1,
            parent: self.hash,
            schema: SCHEMA,
            who: "a test".to_owned(),
            at: now(),
            commits: Vec::new(),
            seq: head.seq,
            lineage: head.lineage,
            digest: view.digest().expect("it can be read"),
            state: Some(parts),
        }
    }

    /// Puts an entry at the log's end.
    pub fn put(&mut self, header: &Header, changes: &[Vec<u8>]) {
        let changes: Vec<&[u8]> = changes.iter().map(Vec::as_slice).collect();
        let (bytes, hash) = entry::encode(header, &changes).expect("a sound entry");
        let created = self.bucket.create(&layout::log(header.slot), &bytes).expect("the bucket is there");
        assert_eq!(created, Created::New);
        (self.slot, self.hash, self.head) = (header.slot, hash, header.head());
    }

    fn put_parts(&self, slot: u64) -> Vec<PartRef> {
        let (random, mut parts) = (layout::new_random().expect("random bytes"), Vec::new());
        let dumped = self.view().dump(64 << 10, &mut |changes| {
            let (bytes, part) = encode_part(layout::part(slot, &random, parts.len()), &changes).expect("a sound part");
            self.bucket.create(&part.name, &bytes).expect("the bucket is there");
            parts.push(part);
            Ok(())
        });
        assert_eq!(dumped.expect("it can be read"), self.view().digest().expect("it can be read"));
        parts
    }

    /// Publishes the whole state as an entry, with its manifest.
    pub fn publish_state(&mut self) {
        let header = self.header_of_state(self.put_parts(self.slot + 1));
        self.put(&header, &[]);
        self.put_manifest(header.state.clone().expect("its parts"));
    }

    /// Adds a whole state after the log's end, for those who start. All that was committed must be published.
    pub fn add_state(&mut self) {
        let parts = self.put_parts(self.slot);
        self.put_manifest(parts);
    }

    fn put_manifest(&self, parts: Vec<PartRef>) {
        let header = self.header_of_state(Vec::new());
        let manifest = Manifest {
            id: self.id,
            slot: self.slot,
            entry_hash: self.hash,
            schema: SCHEMA,
            seq: header.seq,
            lineage: header.lineage,
            digest: header.digest,
            at: now(),
            parts,
        };
        let (bytes, _) = manifest.encode().expect("a sound manifest");
        self.bucket.create(&layout::state(self.slot), &bytes).expect("the bucket is there");
    }

    /// Gives the publisher's sign of life.
    pub fn beat(&self) {
        let (id, slot, hash, seq) = (self.id, self.slot, self.hash, self.head.seq);
        let alive = Alive { id, slot, hash, seq, at: now(), who: "a test".to_owned() };
        self.bucket.put(layout::ALIVE, &alive.encode().expect("a small object")).expect("the bucket is there");
    }

    /// Goes on with another file of the database, which has put the last entry.
    pub fn move_to(&mut self, site: Site) {
        self.former = Some(std::mem::replace(&mut self.site, site));
        while let Some(object) = self.bucket.get(&layout::log(self.slot + 1)).expect("the bucket is there") {
            let entry = entry::decode(&object.bytes).expect("a sound entry");
            (self.slot, self.hash, self.head) = (entry.header.slot, entry.hash, entry.header.head());
        }
    }

    /// A place for a replica of this origin.
    pub fn replica(&self) -> Replica {
        Replica { site: Site::new(), url: self.url() }
    }
}

/// A replica's folder.
#[derive(Debug)]
pub struct Replica {
    pub site: Site,
    pub url: String,
}

impl Replica {
    /// Options that let a replica follow, and monitoring look at it.
    pub fn options(&self, more: &str) -> String {
        format!("--from {} --admin-listen 127.0.0.1:0 --log info {more}", self.url)
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
