//! A whole system: an origin with writes, its publisher, the bucket, and replicas that serve; and its invariants,
//! whatever process was killed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use medfeed::model::{DatabaseId, Head, RowDigest};
use medfeed::replicate::{entry, layout};
use medfeed::store::replication::{OriginView, ReplicaWriter};
use medfeed::store::{Reader, StoreError};

use super::client::Client;
use super::monitoring::start_watched;
use super::published::{Place, rows_of};
use super::replicas::{compare, journals, seq_of};
use super::s3::{CALLERS, S3};
use super::site::{Process, Random, Server, Site, conferences_of_version, wait_until};

/// The number of replicas.
pub const REPLICAS: usize = 3;
/// The time limit for everything that a loaded machine has to do.
const LONG: Duration = Duration::from_secs(120);
/// The maximum number of tokens that are kept for later requests.
const TOKENS: usize = 6;

/// The known parts of a log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    hash: [u8; 32],
    head: Head,
    digest: RowDigest,
}

/// A replica: its folder, and its server while it runs.
pub struct Node {
    pub site: Site,
    pub server: Option<(Server, Client)>,
    /// The last seq that it showed.
    seq: u64,
}

/// The whole system.
pub struct World {
    pub place: Place,
    pub s3: Option<S3>,
    /// The bucket, if it is a folder.
    pub folder: PathBuf,
    pub site: Site,
    key: String,
    serving: Server,
    admin: Client,
    pub publisher: Option<Process>,
    pub replicas: [Node; REPLICAS],
    id: Option<DatabaseId>,
    line: BTreeMap<u64, Known>,
    /// The commits that writers reported, since the last restore.
    acknowledged: Vec<Head>,
    /// Whether there is a backup to restore.
    pub has_backup: bool,
    /// Keys that may be revoked.
    keys: Vec<String>,
    version: u64,
    tokens: Vec<String>,
    /// The actions so far.
    pub actions: Vec<String>,
}

impl World {
    pub fn new(s3: Option<S3>, is_sealed: bool) -> World {
        let site = Site::with(30);
        site.import("journals.jsonl", journals(0));
        let key = site.open_key();
        let place = match &s3 {
            None if is_sealed => Place::sealed_folder(&site),
            None => Place::folder(&site),
            Some(s3) if is_sealed => Place::sealed(&site, s3),
            Some(s3) => Place::s3(s3),
        };
        let folder = PathBuf::from(place.url.strip_prefix("file://").unwrap_or_default());
        if s3.is_none() {
            fs::create_dir(&folder).unwrap();
        }
        let command = site.serve_command("--admin-listen 127.0.0.1:0 --log info");
        let (serving, admin) = start_watched(&site, command);
        let node = || Node {
            site: Site::new(),
            server: None,
            seq: 0,
        };
        World {
            place,
            s3,
            folder,
            site,
            key,
            serving,
            admin,
            publisher: None,
            replicas: [node(), node(), node()],
            id: None,
            line: BTreeMap::new(),
            acknowledged: Vec::new(),
            has_backup: false,
            keys: Vec::new(),
            version: 0,
            tokens: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// Records an action, for the message of a failure.
    pub fn note(&mut self, what: impl Into<String>) {
        self.actions.push(what.into());
    }

    pub fn view(&self) -> OriginView {
        Reader::open(&self.site.db())
            .expect("a database")
            .origin()
            .expect("it can be read")
    }

    /// The origin's last commit.
    pub fn head(&self) -> Head {
        self.view().head().expect("it can be read").head()
    }

    /// Starts the publisher's process.
    pub fn start_publisher(&mut self, options: &str) {
        let log = self.site.path("publisher.log");
        let log = File::options().append(true).create(true).open(log).unwrap();
        let mut command = self.place.command(&self.site, options);
        command
            .env("AWS_ACCESS_KEY_ID", CALLERS[0])
            .stdout(Stdio::null())
            .stderr(log);
        self.publisher = Some(Process::spawn(&mut command));
    }

    /// Fails if the publisher has ended by itself.
    pub fn expect_publisher(&mut self) {
        let publisher = self.publisher.as_mut().expect("it runs");
        let ended = publisher.ended_within(Duration::ZERO);
        let log = || fs::read_to_string(self.site.path("publisher.log")).unwrap_or_default();
        assert_eq!(ended, None, "the publisher ended by itself: {}", log());
    }

    /// The command of a replica.
    pub fn replica_command(&self, at: usize) -> Command {
        let options = "--poll 20ms --admin-listen 127.0.0.1:0 --log info";
        let mut command = self.place.serve_command(&self.replicas[at].site, options);
        command.env("AWS_ACCESS_KEY_ID", CALLERS[at + 1]);
        command
    }

    /// Starts a replica that is not running.
    pub fn start_replica(&mut self, at: usize) {
        self.read_line();
        let last = self.last_slot();
        // A new replica cannot get past a state of other rows whose manifest was never written. The publisher writes
        // another state.
        if last > 0
            && self.publisher.is_some()
            && self.place.entry(last).header.is_state()
            && !self.place.slots(layout::STATES).contains(&last)
        {
            self.wait_for_state();
        }
        let command = self.replica_command(at);
        self.replicas[at].server = Some(start_watched(&self.replicas[at].site, command));
        self.check_seq(at);
    }

    /// A write, as arguments.
    pub fn next_write(&mut self, random: &mut Random) -> Vec<String> {
        self.version += 1;
        let scope = "license set all --create --yes --rate-limit 1000000 --dataset conferences --dataset journals";
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        match random.below(18) {
            0 if self.has_backup => words("restore backup.redb --yes"),
            1 => words("compact"),
            2 => words(&format!("{scope} --country Japan --country Chile")),
            3 => words(&format!("{scope} --widen")),
            4 => words("key create --license all"),
            5 if !self.keys.is_empty() => {
                let id = self.keys.swap_remove(random.below(self.keys.len()));
                words(&format!("key revoke {id} --publish-wait 0s"))
            }
            6 => self.import("journals.jsonl", journals(self.version)),
            _ => {
                let count = 20 + u64::try_from(random.below(11)).unwrap();
                let rows = conferences_of_version(count, self.version);
                self.import("conferences.jsonl", rows)
            }
        }
    }

    /// The write that imports a file.
    pub fn import(&mut self, name: &str, content: String) -> Vec<String> {
        let file = self.site.write(name, content);
        ["import", &file.display().to_string(), "--create"]
            .map(str::to_owned)
            .into()
    }

    /// Records a write that may have been done.
    fn wrote(&mut self, args: &[String]) {
        if args[0] == "restore" {
            self.acknowledged.clear();
            self.keys.clear();
        }
    }

    /// Runs a write. Returns whether it made a commit.
    pub fn write(&mut self, args: &[String]) -> bool {
        let before = self.head();
        self.note(args.join(" "));
        let args_of_run = args.iter().map(String::as_str).chain(["--json"]);
        let done = self.site.run(args_of_run);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        self.wrote(args);
        if args.starts_with(&["key".to_owned(), "create".to_owned()]) {
            let id = done.json()["id"].as_str().unwrap().to_owned();
            self.keys.push(id);
        }
        let head = self.head();
        self.acknowledged.push(head);
        assert!(head.seq >= before.seq, "{before:?} {head:?}");
        head != before
    }

    /// Writes at random until there is a commit.
    pub fn commit(&mut self, random: &mut Random) {
        loop {
            let args = self.next_write(random);
            if self.write(&args) {
                return;
            }
        }
    }

    /// Starts a write and kills it after some time, or as soon as its commit is visible. Returns whether it was killed
    /// before it ended by itself, and whether there was a commit.
    pub fn write_and_kill(&mut self, args: &[String], after: Option<Duration>) -> (bool, bool) {
        let before = self.head();
        let mut command = self.site.command(args);
        let mut writer = Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let ended = match after {
            Some(time) => writer.ended_within(time),
            None => {
                let mut reader = Reader::open(&self.site.db()).unwrap();
                loop {
                    let ended = writer.ended_within(Duration::ZERO);
                    // While one file replaces the other, there is a moment at which neither can be read.
                    let mut is_new = || {
                        let newest = reader.refresh();
                        newest.is_ok_and(|newest| newest.commit().head() != before)
                    };
                    if ended.is_some() || is_new() {
                        break ended;
                    }
                }
            }
        };
        writer.kill();
        self.wrote(args);
        let head = self.head();
        assert!(head.seq >= before.seq, "{before:?} {head:?}");
        self.note(format!(
            "{} killed after {after:?}: ended {ended:?}, {before:?} {head:?}",
            args.join(" ")
        ));
        (ended.is_none(), head != before)
    }

    /// Restores the last backup.
    pub fn restore(&mut self) {
        self.write(&["restore", "backup.redb", "--yes"].map(str::to_owned));
    }

    /// Makes a backup for later restores.
    pub fn back_up(&mut self) {
        let _ = fs::remove_file(self.site.path("backup.redb"));
        self.site.backup("backup.redb");
        self.has_backup = true;
    }

    /// Reads the new entries of the log. Checks that each entry names the one before, and is of the origin's history.
    pub fn read_line(&mut self) {
        let mut slot = self.line.last_key_value().map_or(0, |(slot, _)| *slot);
        let object = |slot: u64| {
            self.place
                .bucket
                .get(&layout::log(slot))
                .expect("the bucket is there")
        };
        while let Some(object) = object(slot + 1) {
            slot += 1;
            let entry =
                entry::decode(&object.bytes).unwrap_or_else(|error| panic!("slot {slot}: {error}"));
            let header = &entry.header;
            let id = *self.id.get_or_insert(header.id);
            assert_eq!((header.slot, header.id), (slot, id));
            let parent = self.line.get(&(slot - 1));
            let parent = parent.map_or([0; 32], |before| before.hash);
            assert_eq!(
                header.parent, parent,
                "slot {slot} names the entry before it"
            );
            let view = self.view();
            let is_held = view.holds(header.head()).unwrap();
            let over = view.restored_over().unwrap();
            let is_replaced = over.is_some_and(|over| over.seq >= header.seq);
            // It is of the history of the origin, or of one that was replaced.
            assert!(is_held || is_replaced, "slot {slot}: {header:?}");
            let known = Known {
                hash: entry.hash,
                head: header.head(),
                digest: header.digest,
            };
            self.line.insert(slot, known);
        }
    }

    /// The last slot that was read.
    pub fn last_slot(&self) -> u64 {
        self.line.last_key_value().map_or(0, |(slot, _)| *slot)
    }

    /// Checks that a replica serves no older commit than before, and none that its origin does not have.
    pub fn check_seq(&mut self, at: usize) {
        let node = &mut self.replicas[at];
        let Some((server, admin)) = &mut node.server else {
            return;
        };
        let found = server.process.ended_within(Duration::ZERO);
        assert_eq!(found, None, "replica {at} ended by itself");
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number below 2^53"
        )]
        let seq = seq_of(admin) as u64;
        let before = std::mem::replace(&mut node.seq, seq);
        let origin = self.head().seq;
        assert!(
            (before..=origin).contains(&seq),
            "replica {at}: seq {seq} after {before}, the origin's is {origin}"
        );
    }

    /// Checks the file of a killed replica: it has a position of the log with its rows, and is not behind its earlier
    /// seq. Returns the slot; `None` if there is no file.
    pub fn check_killed(&mut self, at: usize) -> Option<u64> {
        let path = self.replicas[at].site.db();
        let mark = match ReplicaWriter::open(&path) {
            Ok(replica) => replica.mark().unwrap(),
            Err(StoreError::NotFound { .. }) => {
                assert_eq!(self.replicas[at].seq, 0, "replica {at} is gone");
                return None;
            }
            Err(error) => panic!("replica {at}: {error}"),
        };
        self.read_line();
        let known = self.line.get(&mark.slot);
        let known = known.unwrap_or_else(|| panic!("replica {at} is at slot {}", mark.slot));
        assert_eq!(
            (mark.hash, mark.digest),
            (known.hash, known.digest),
            "replica {at}, slot {}",
            mark.slot
        );
        let expected = (mark.id, known.head, known.digest);
        assert_eq!(rows_of(&path), expected, "replica {at}, slot {}", mark.slot);
        let node = &mut self.replicas[at];
        assert!(
            known.head.seq >= node.seq,
            "replica {at}: seq {} after {}",
            known.head.seq,
            node.seq
        );
        node.seq = known.head.seq;
        Some(mark.slot)
    }

    /// Removes a replica's file, so that it loads all data again.
    pub fn forget_replica(&mut self, at: usize) {
        assert!(self.replicas[at].server.is_none());
        let _ = fs::remove_file(self.replicas[at].site.db());
        self.replicas[at].seq = 0;
    }

    /// Waits until the last commit is in the log.
    pub fn wait_for_publisher(&mut self) {
        let head = self.head();
        wait_until("the last commit is published", LONG, || {
            self.expect_publisher();
            self.read_line();
            (self.line.last_key_value().map(|(_, known)| known.head) == Some(head)).then_some(())
        });
    }

    /// Waits until there is a state of the log's end.
    pub fn wait_for_state(&mut self) {
        wait_until("the last state is published", LONG, || {
            self.expect_publisher();
            // A publisher that was killed before it wrote the state of an entry writes another state later.
            self.read_line();
            (self.place.slots(layout::STATES).last() == Some(&self.last_slot())).then_some(())
        });
    }

    /// Waits until a server shows a seq.
    pub fn wait_for_replica(&mut self, at: usize, seq: u64) {
        wait_until("a replica has caught up", LONG, || {
            self.check_seq(at);
            (self.replicas[at].seq == seq).then_some(())
        });
    }

    /// Waits until all run and have caught up. Checks that nothing is lost, and that all give the same answers.
    pub fn settle(&mut self) {
        self.wait_for_publisher();
        let head = self.head();
        let view = self.view();
        for acknowledged in &self.acknowledged {
            let is_held = view.holds(*acknowledged).unwrap();
            assert!(is_held, "{acknowledged:?} is lost");
        }
        let seq = head.seq as f64;
        wait_until("the origin's server shows the commit", LONG, || {
            (seq_of(&mut self.admin) == seq).then_some(())
        });
        let mut here = self.serving.client(&self.key);
        let mut found = Vec::new();
        for at in 0..REPLICAS {
            if self.replicas[at].server.is_none() {
                self.start_replica(at);
            }
            self.wait_for_replica(at, head.seq);
            let (server, _) = self.replicas[at].server.as_ref().expect("it runs");
            found = compare(&mut here, &mut server.client(&self.key), &self.tokens);
        }
        // Tokens of several ages.
        self.tokens.extend(found);
        self.tokens.dedup();
        let surplus = self.tokens.len().saturating_sub(TOKENS);
        self.tokens.drain(..surplus);
    }

    /// Checks that all files are sound, that the bucket has the origin's rows, and that a new replica has the same rows
    /// as the others.
    pub fn check(&mut self) {
        self.settle();
        self.site.check();
        self.place.check(&self.site);
        for slot in self.place.slots(layout::LOG) {
            let hash = self.place.entry(slot).hash;
            assert_eq!(hash, self.line[&slot].hash, "slot {slot} was changed");
        }
        let args = ["check", "--from", &self.place.url];
        let checked = self.place.json(&self.site, &args);
        assert_eq!(checked["slot"], self.last_slot());
        let (fresh, rows) = (Site::new(), rows_of(&self.site.db()));
        let server = fresh.start(self.place.serve_command(&fresh, ""));
        let (mut here, mut there) = (self.serving.client(&self.key), server.client(&self.key));
        compare(&mut here, &mut there, &self.tokens);
        server.stop();
        assert_eq!(rows_of(&fresh.db()), rows, "a fresh replica");
        fresh.check();
        for (at, node) in self.replicas.iter().enumerate() {
            assert_eq!(rows_of(&node.site.db()), rows, "replica {at}");
            let backup = node.site.backup("backup.redb");
            node.site.check_file(&backup);
            fs::remove_file(backup).unwrap();
        }
    }

    /// Ends all processes. Checks that no killed one left a draft.
    pub fn end(mut self) {
        self.publisher.take().expect("it runs").kill();
        for node in &mut self.replicas {
            let (server, _) = node.server.take().expect("it runs");
            server.stop();
            node.site.check();
        }
        let replicas = self.replicas.iter().map(|node| &node.site);
        for site in replicas.chain([&self.site]) {
            let left = site.files().into_iter();
            let left: Vec<String> = left.filter(|name| name.contains("draft")).collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let first = self.actions.len().saturating_sub(30);
            let actions = self.actions[first..].join("\n");
            eprintln!("the last actions, {}:\n{actions}", self.place.kind);
            let log = fs::read_to_string(self.site.path("publisher.log")).unwrap_or_default();
            let from = log.char_indices().rev().nth(3000).map_or(0, |(at, _)| at);
            eprintln!("the publisher's log:\n{}", &log[from..]);
        }
    }
}
