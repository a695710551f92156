//! Helpers for tests of publishing: a bucket of each kind, the program that publishes to it, and a replay of the whole
//! bucket.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use medfeed::bucket::{Bucket, SealKey};
use medfeed::model::{DatabaseId, Head, RowDigest};
use medfeed::replicate::replica::audit::{Audit, audit};
use medfeed::replicate::replica::{LogReader, Replica, ReplicaStatus};
use medfeed::replicate::state::Manifest;
use medfeed::replicate::{entry, layout};
use medfeed::store::replication::PublishedNote;
use medfeed::store::{Reader, StoreError};
use serde_json::Value;

use super::client::Client;
use super::monitoring::{admin_address, scrape};
use super::publishing::commit_few;
use super::s3::S3;
use super::site::{Done, Process, SOON, Site, wait_until, wait_until_every};

/// A bucket, with the settings by which the program reaches it.
pub struct Place {
    pub kind: &'static str,
    pub url: String,
    environment: Vec<(String, String)>,
    pub bucket: Bucket,
}

impl Place {
    /// A folder of a site.
    pub fn folder(site: &Site) -> Place {
        Place::of(
            "folder",
            format!("file://{}", site.path("bucket").display()),
            Vec::new(),
            None,
        )
    }

    pub fn s3(s3: &S3) -> Place {
        Place::of(
            "s3",
            format!("{}/some/prefix", s3.url),
            s3.environment(),
            None,
        )
    }

    /// A prefix of its own in S3, with sealed objects.
    pub fn sealed(site: &Site, s3: &S3) -> Place {
        Place::sealed_at(
            "sealed s3",
            format!("{}/sealed", s3.url),
            s3.environment(),
            site,
        )
    }

    /// A folder of a site, with sealed objects.
    pub fn sealed_folder(site: &Site) -> Place {
        Place::sealed_at(
            "sealed folder",
            format!("file://{}", site.path("sealed").display()),
            Vec::new(),
            site,
        )
    }

    fn sealed_at(
        kind: &'static str,
        url: String,
        mut environment: Vec<(String, String)>,
        site: &Site,
    ) -> Place {
        let file = seal_key(site, "seal-key", 0);
        environment.push(("MEDFEED_SEAL_KEY".to_owned(), file.display().to_string()));
        Place::of(kind, url, environment, Some(SealKey::load(&file).unwrap()))
    }

    /// The same bucket, reached at another address.
    pub fn through(&self, endpoint: &str) -> Place {
        let mut environment = self.environment.clone();
        environment.retain(|(name, _)| name != "AWS_ENDPOINT_URL");
        environment.push(("AWS_ENDPOINT_URL".to_owned(), endpoint.to_owned()));
        Place::of(self.kind, self.url.clone(), environment, None)
    }

    /// Sets the bucket's credentials and key in a command's environment.
    pub fn with_credentials(&self, mut command: Command) -> Command {
        command.envs(self.environment.iter().cloned());
        command
    }

    /// Runs a command on a site's database with `--json`. It must succeed.
    pub fn json(&self, site: &Site, args: &[&str]) -> Value {
        let done = self.ends(site, &[args, &["--json"]].concat());
        assert_eq!(done.code, Some(0), "{}: {args:?}: {done:?}", self.kind);
        done.json()
    }

    /// Runs a command on a site's database to its end.
    pub fn ends(&self, site: &Site, args: &[&str]) -> Done {
        Done::of(&mut self.with_credentials(site.command(args)))
    }

    fn of(
        kind: &'static str,
        url: String,
        environment: Vec<(String, String)>,
        seal: Option<SealKey>,
    ) -> Place {
        let bucket = Bucket::open_with(&url.parse().unwrap(), seal, &environment).unwrap();
        Place {
            kind,
            url,
            environment,
            bucket,
        }
    }

    /// The command that publishes, with further options separated by blanks.
    pub fn command(&self, site: &Site, options: &str) -> Command {
        let mut command = self.with_credentials(site.command(["publish", &self.url]));
        command.args(options.split_whitespace());
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, site: &Site, options: &str) -> Done {
        Done::of(&mut self.command(site, options))
    }

    /// Publishes all pending commits. Returns the number of new entries.
    pub fn once(&self, site: &Site) -> u64 {
        self.once_with(site, "")
    }

    /// Publishes all pending commits, with further options.
    pub fn once_with(&self, site: &Site, options: &str) -> u64 {
        let done = self.run(site, &format!("--once --json {options}"));
        assert_eq!(done.code, Some(0), "{}: {done:?}", self.kind);
        done.json()["entries"].as_u64().unwrap()
    }

    /// Starts a publisher that keeps running, and waits until the note of a publisher exists.
    pub fn start(&self, site: &Site, options: &str) -> Process {
        let mut publisher = self.spawn(site, options);
        wait_until("a publisher", SOON, || {
            let found = publisher.ended_within(std::time::Duration::ZERO);
            assert_eq!(found, None, "the publisher keeps running");
            PublishedNote::read(&site.db()).unwrap()
        });
        publisher
    }

    /// Starts a publisher that keeps running.
    pub fn spawn(&self, site: &Site, options: &str) -> Process {
        let mut command = self.command(site, options);
        Process::spawn(
            command
                .args(["--log", "warn"])
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        )
    }

    /// Starts a publisher that keeps running, with monitoring.
    pub fn watch(&self, site: &Site, options: &str) -> Watched {
        Watched::start(
            site,
            &mut self.command(
                site,
                &format!("{options} --admin-listen 127.0.0.1:0 --log info"),
            ),
        )
    }

    /// Checks that the bucket's content equals the database: replayed from the oldest state, and followed from the
    /// newest.
    pub fn check(&self, site: &Site) -> Audit {
        let (rows, folder) = (rows_of(&site.db()), tempfile::tempdir().unwrap());
        let [audited, followed] =
            ["audited.redb", "followed.redb"].map(|name| folder.path().join(name));
        let found =
            audit(&self.log(), &audited).unwrap_or_else(|error| panic!("{}: {error}", self.kind));
        // A state whose publisher was killed before it wrote the manifest has another state after it. No entry between
        // them is lost.
        for gap in &found.given_up {
            assert!(
                self.entry(*gap.start()).header.is_state(),
                "{}: {found:?}",
                self.kind
            );
            gap.clone().for_each(|slot| drop(self.entry(slot)));
        }
        assert_eq!(follow(self, &followed), (found.slot, None), "{}", self.kind);
        for file in [audited, followed] {
            assert_eq!(rows_of(&file), rows, "{}: {}", self.kind, file.display());
        }
        found
    }

    /// A new reader of the log.
    pub fn log(&self) -> LogReader {
        let mut seal_key = self.environment.iter();
        let seal_key = seal_key.find(|(name, _)| name == "MEDFEED_SEAL_KEY");
        let seal = seal_key.map(|(_, file)| SealKey::load(Path::new(file)).unwrap());
        LogReader::new(
            Bucket::open_with(&self.url.parse().unwrap(), seal, &self.environment).unwrap(),
        )
    }

    /// The command that serves a replica of the bucket, with further options.
    pub fn serve_command(&self, site: &Site, options: &str) -> Command {
        self.with_credentials(site.serve_command(&format!("--from {} {options}", self.url)))
    }

    pub fn manifest(&self, slot: u64) -> Manifest {
        Manifest::decode(
            &self
                .bucket
                .get(&layout::state(slot))
                .unwrap()
                .expect("a manifest")
                .bytes,
        )
        .unwrap()
    }

    /// An entry.
    pub fn entry(&self, slot: u64) -> entry::LogEntry {
        entry::decode(
            &self
                .bucket
                .get(&layout::log(slot))
                .unwrap()
                .expect("an entry")
                .bytes,
        )
        .unwrap()
    }

    /// The slots of the entries or of the states, ascending.
    pub fn slots(&self, folder: &str) -> Vec<u64> {
        let listed = self.bucket.list(folder, None).unwrap();
        listed
            .iter()
            .filter_map(|object| object.name.rsplit_once('/')?.1.parse().ok())
            .collect()
    }
}

/// A publisher, its log, and a client of its monitoring.
pub struct Watched {
    pub process: Process,
    pub admin: Client,
    log: PathBuf,
}

impl Watched {
    /// Starts a publisher by a given command.
    pub fn start(site: &Site, command: &mut Command) -> Watched {
        let log = site.path("publisher.log");
        let process = Process::spawn(
            command
                .stdout(Stdio::null())
                .stderr(File::create(&log).unwrap()),
        );
        let address = || admin_address(&fs::read_to_string(&log).unwrap());
        let admin = Client::new(
            wait_until("the log names the address of monitoring", SOON, address),
            None,
        );
        Watched {
            process,
            admin,
            log,
        }
    }

    /// The log so far.
    pub fn logged(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until a sample of a scrape has an expected value.
    pub fn wait_for(&mut self, name: &str, is_so: impl Fn(f64) -> bool) {
        let name = format!("medfeed_publish_{name}");
        wait_until_every(Duration::from_millis(20), &name, SOON, || {
            is_so(scrape(&mut self.admin)[&name]).then_some(())
        });
    }
}

/// Creates the file of a seal key that begins with a byte.
pub fn seal_key(site: &Site, name: &str, first: u8) -> PathBuf {
    let digits: String = (0..32)
        .map(|at| format!("{:02x}", first.wrapping_add(at)))
        .collect();
    let file = site.write(name, digits);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

/// A database's id, its last commit, and the digest of all its rows.
pub type Rows = (DatabaseId, Head, RowDigest);

/// The rows of a database. The digest is computed from them.
pub fn rows_of(file: &Path) -> Rows {
    let view = Reader::open(file).unwrap().origin().unwrap();
    let digest = view.dump::<StoreError>(1 << 20, &mut |_| Ok(())).unwrap();
    assert_eq!(view.digest().unwrap(), digest, "{}", file.display());
    (
        view.id().unwrap().expect("an id"),
        view.head().unwrap().head(),
        digest,
    )
}

/// The note on publishing next to a site's database.
pub fn note(site: &Site) -> PublishedNote {
    PublishedNote::read(&site.db()).unwrap().expect("a note")
}

/// Follows the log in a file as far as possible. Returns the slot, and the error that prevents more.
pub fn follow(place: &Place, file: &Path) -> (u64, Option<String>) {
    let status = Arc::new(ReplicaStatus::new(SOON));
    let mut replica = Replica::start(place.log(), file, Arc::clone(&status), &|| true).unwrap();
    replica.poll(&|| true);
    let progress = status.progress();
    (progress.slot, progress.error)
}

/// A published history, with the rows and the file of a replica after each slot. The first slot and another one are whole
/// states, the others have a commit each.
pub struct PublishedLog {
    pub site: Site,
    pub place: Place,
    pub rows: BTreeMap<u64, Rows>,
    pub replicas: BTreeMap<u64, PathBuf>,
}

impl PublishedLog {
    /// Publishes up to slot `last`. Calls `after` after each slot.
    pub fn new(
        site: Site,
        place: Place,
        (state, last): (u64, u64),
        mut after: impl FnMut(&PublishedLog, u64),
    ) -> PublishedLog {
        site.open_key();
        let replica = site.path("replica.redb");
        let mut log = PublishedLog {
            site,
            place,
            rows: BTreeMap::new(),
            replicas: BTreeMap::new(),
        };
        for slot in 1..=last {
            let mut options = "--state-every 0s";
            if slot != state {
                commit_few(&log.site, slot);
                options = "";
            }
            log.place.once_with(&log.site, options);
            log.rows.insert(slot, rows_of(&log.site.db()));
            assert_eq!(follow(&log.place, &replica), (slot, None));
            let kept = log.site.path(&format!("replica-{slot}.redb"));
            fs::copy(&replica, &kept).unwrap();
            log.replicas.insert(slot, kept);
            after(&log, slot);
        }
        let slots = [layout::LOG, layout::STATES].map(|folder| log.place.slots(folder));
        assert_eq!(slots, [(1..=last).collect(), vec![1, state]]);
        log
    }

    /// A copy of a replica's file, in a folder of its own.
    pub fn replica_at(&self, slot: u64) -> Site {
        let site = Site::new();
        fs::copy(&self.replicas[&slot], site.db()).unwrap();
        site
    }
}

/// A replica in this process. The test starts its polls.
pub struct TestReplica {
    replica: Replica,
    pub status: Arc<ReplicaStatus>,
}

impl TestReplica {
    /// Starts a replica; `Err` if it refuses to start.
    pub fn start(log: LogReader, file: &Path) -> Result<TestReplica, String> {
        let status = Arc::new(ReplicaStatus::checking_every(Duration::ZERO, SOON));
        let replica = Replica::start(log, file, Arc::clone(&status), &|| true);
        Ok(TestReplica {
            replica: replica.map_err(|error| error.to_string())?,
            status,
        })
    }

    /// Its slot and its error. Its records are shown, as by a server.
    pub fn outcome(&self) -> (u64, Option<String>) {
        self.status.note_end_loaded();
        let progress = self.status.progress();
        (progress.slot, progress.error)
    }

    /// Polls once. If that reports an error, checks that the poll did not count as having seen the end of the log.
    pub fn poll(&mut self) -> (u64, Option<String>) {
        let begun = Instant::now();
        let goes_on = self.replica.poll(&|| true);
        let outcome = self.outcome();
        assert!(goes_on, "it stopped: {outcome:?}");
        let (stale, looked) = (self.status.stale_for(), begun.elapsed());
        let has_seen = stale.is_some_and(|stale| stale + Duration::from_millis(1) < looked);
        assert!(
            outcome.1.is_none() || !has_seen,
            "stale for {stale:?} after a poll of {looked:?}: {outcome:?}"
        );
        outcome
    }
}
