//! What a test of publishing needs: a bucket of each kind, the program that publishes to it, and a replay of all that is there.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use medfeed::bucket::{Bucket, SealKey};
use medfeed::model::{DatabaseId, Head, RowDigest};
use medfeed::replicate::follower::LogReader;
use medfeed::replicate::state::{Manifest, decode_part};
use medfeed::replicate::{entry, layout};
use medfeed::store::Follower;
use medfeed::store::replication::{LoadedDraft, PublishedNote, ReplicaDraft, ReplicaMark};
use serde_json::Value;

use super::client::Client;
use super::monitoring::{admin_address, scrape};
use super::s3::S3;
use super::site::{Done, Process, SOON, Site, wait_until, wait_until_every};

/// A bucket, and how the program is told of it.
pub struct Place {
    pub kind: &'static str,
    pub url: String,
    environment: Vec<(String, String)>,
    pub bucket: Bucket,
}

impl Place {
    /// A folder of a site.
    pub fn folder(site: &Site) -> Place {
        Place::of("folder", format!("file://{}", site.path("bucket").display()), Vec::new(), None)
    }

    pub fn s3(s3: &S3) -> Place {
        Place::of("s3", format!("{}/some/prefix", s3.url), s3.environment(), None)
    }

    /// A prefix of its own where everything is sealed.
    pub fn sealed(site: &Site, s3: &S3) -> Place {
        Place::sealed_at("sealed s3", format!("{}/sealed", s3.url), s3.environment(), site)
    }

    /// A folder of a site, where everything is sealed.
    pub fn sealed_folder(site: &Site) -> Place {
        Place::sealed_at("sealed folder", format!("file://{}", site.path("sealed").display()), Vec::new(), site)
    }

    fn sealed_at(kind: &'static str, url: String, mut environment: Vec<(String, String)>, site: &Site) -> Place {
        let file = seal_key(site, "seal-key", 0);
        environment.push(("MEDFEED_SEAL_KEY".to_owned(), file.display().to_string()));
        Place::of(kind, url, environment, Some(SealKey::load(&file).unwrap()))
    }

    /// The same bucket of a store, reached at another address.
    pub fn through(&self, endpoint: &str) -> Place {
        let mut environment = self.environment.clone();
        environment.retain(|(name, _)| name != "AWS_ENDPOINT_URL");
        environment.push(("AWS_ENDPOINT_URL".to_owned(), endpoint.to_owned()));
        Place::of(self.kind, self.url.clone(), environment, None)
    }

    /// Tells a command of the bucket's credentials and key.
    pub fn told(&self, mut command: Command) -> Command {
        command.envs(self.environment.iter().cloned());
        command
    }

    /// Runs a command on a site's database that succeeds, with `--json`.
    pub fn json(&self, site: &Site, args: &[&str]) -> Value {
        let done = self.ends(site, &[args, &["--json"]].concat());
        assert_eq!(done.code, Some(0), "{}: {args:?}: {done:?}", self.kind);
        done.json()
    }

    /// Runs a command on a site's database to its end.
    pub fn ends(&self, site: &Site, args: &[&str]) -> Done {
        Done::of(&mut self.told(site.command(args)))
    }

    fn of(kind: &'static str, url: String, environment: Vec<(String, String)>, seal: Option<SealKey>) -> Place {
        let bucket = Bucket::open_with(&url.parse().unwrap(), seal, &environment).unwrap();
        Place { kind, url, environment, bucket }
    }

    /// The command that publishes, with further options separated by blanks.
    pub fn command(&self, site: &Site, options: &str) -> Command {
        let mut command = site.command(["publish", &self.url]);
        command.args(options.split_whitespace()).envs(self.environment.iter().cloned());
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, site: &Site, options: &str) -> Done {
        Done::of(&mut self.command(site, options))
    }

    /// Publishes what waits; returns how many entries it took.
    pub fn once(&self, site: &Site) -> u64 {
        self.once_with(site, "")
    }

    /// Publishes what waits, with further options.
    pub fn once_with(&self, site: &Site, options: &str) -> u64 {
        let done = self.run(site, &format!("--once --json {options}"));
        assert_eq!(done.code, Some(0), "{}: {done:?}", self.kind);
        done.json()["entries"].as_u64().unwrap()
    }

    /// Starts a publisher that goes on, and waits until it is on its way.
    pub fn start(&self, site: &Site, options: &str) -> Process {
        let mut publisher = self.spawn(site, options);
        wait_until("a publisher", SOON, || {
            assert_eq!(publisher.ended_within(std::time::Duration::ZERO), None, "it goes on");
            PublishedNote::read(&site.db()).unwrap()
        });
        publisher
    }

    /// Starts a publisher that goes on.
    pub fn spawn(&self, site: &Site, options: &str) -> Process {
        let mut command = self.command(site, options);
        Process::spawn(command.args(["--log", "warn"]).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Starts a publisher that goes on and is watched.
    pub fn watch(&self, site: &Site, options: &str) -> Watched {
        Watched::start(site, &mut self.command(site, &format!("{options} --admin-listen 127.0.0.1:0 --log info")))
    }

    /// Fails unless all that is kept, replayed from the oldest state and from the newest, is the database.
    pub fn check(&self, site: &Site) -> Replayed {
        let (id, head, digest) = rows_of(&site.db());
        let oldest = self.replay(&site.path("oldest-replayed.redb"), false);
        let newest = self.replay(&site.path("newest-replayed.redb"), true);
        for replayed in [&oldest, &newest] {
            assert_eq!((replayed.id, replayed.head), (id, head), "{}: {replayed:?}", self.kind);
        }
        for name in ["oldest-replayed.redb", "newest-replayed.redb"] {
            let file = site.path(name);
            assert_eq!(rows_of(&file), (id, head, digest), "{}: {name}", self.kind);
            fs::remove_file(file).unwrap();
        }
        oldest
    }

    /// Replays the log into a new file, as a replica does.
    pub fn replay(&self, file: &Path, from_newest: bool) -> Replayed {
        let states = self.slots(layout::STATES);
        let slot = if from_newest { states.last() } else { states.first() };
        let manifest = self.manifest(*slot.expect("a state"));
        let mark = ReplicaMark {
            url: self.url.clone(),
            id: manifest.id,
            slot: manifest.slot,
            hash: manifest.entry_hash,
            digest: manifest.digest,
        };
        let mut draft = self.load(file, &manifest.parts, &mark, manifest.head());
        let mut replayed = Replayed {
            id: manifest.id,
            slot: mark.slot,
            head: manifest.head(),
            entries: 0,
            state_entries: 0,
            commits: 0,
        };
        let mut hash = manifest.entry_hash;
        while let Some(object) = self.bucket.get(&layout::log(replayed.slot + 1)).unwrap() {
            let entry = entry::decode(&object.bytes).unwrap();
            let header = &entry.header;
            header.check(replayed.slot + 1, replayed.id).unwrap();
            assert_eq!(header.parent, hash, "{}: slot {} follows", self.kind, header.slot);
            hash = entry.hash;
            let mark =
                ReplicaMark { url: self.url.clone(), id: header.id, slot: header.slot, hash, digest: header.digest };
            replayed.entries += 1;
            if header.is_state() {
                replayed.state_entries += 1;
                // A publisher that was killed before it wrote the manifest wrote another state next.
                if states.contains(&header.slot) {
                    draft = self.load(file, &self.manifest(header.slot).parts, &mark, header.head());
                }
            } else {
                let commits: Vec<_> =
                    std::iter::zip(header.commits.iter().copied(), entry.changes.iter().map(AsRef::as_ref)).collect();
                replayed.commits += commits.len();
                draft.apply(&commits, &mark).unwrap_or_else(|error| panic!("slot {}: {error}", header.slot));
            }
            (replayed.slot, replayed.head) = (header.slot, header.head());
        }
        draft.persist(None).unwrap();
        replayed
    }

    fn load(
        &self,
        file: &Path,
        parts: &[medfeed::replicate::state::PartRef],
        mark: &ReplicaMark,
        head: Head,
    ) -> LoadedDraft {
        let mut draft = ReplicaDraft::create_for(file).unwrap();
        for part in parts {
            let object = self.bucket.get(&part.name).unwrap().unwrap_or_else(|| panic!("{} is there", part.name));
            draft.add_part(&decode_part(part, &object.bytes).unwrap()).unwrap();
        }
        draft.finish(mark, head).unwrap()
    }

    /// A reader of the log of its own.
    pub fn log(&self) -> LogReader {
        let seal_key = self.environment.iter().find(|(name, _)| name == "MEDFEED_SEAL_KEY");
        let seal = seal_key.map(|(_, file)| SealKey::load(Path::new(file)).unwrap());
        LogReader::new(Bucket::open_with(&self.url.parse().unwrap(), seal, &self.environment).unwrap())
    }

    /// The command that serves a replica of what is published, with further options.
    pub fn serve_command(&self, site: &Site, options: &str) -> Command {
        self.told(site.serve_command(&format!("--from {} {options}", self.url)))
    }

    pub fn manifest(&self, slot: u64) -> Manifest {
        Manifest::decode(&self.bucket.get(&layout::state(slot)).unwrap().expect("a manifest").bytes).unwrap()
    }

    /// An entry.
    pub fn entry(&self, slot: u64) -> entry::LogEntry {
        entry::decode(&self.bucket.get(&layout::log(slot)).unwrap().expect("an entry").bytes).unwrap()
    }

    /// The slots of the entries or of the states, ascending.
    pub fn slots(&self, folder: &str) -> Vec<u64> {
        let listed = self.bucket.list(folder, None).unwrap();
        listed.iter().filter_map(|object| object.name.rsplit_once('/')?.1.parse().ok()).collect()
    }
}

/// A publisher, its log, and a client of its monitoring.
pub struct Watched {
    pub process: Process,
    pub admin: Client,
    log: PathBuf,
}

impl Watched {
    /// Starts a publisher by a command of its own.
    pub fn start(site: &Site, command: &mut Command) -> Watched {
        let log = site.path("publisher.log");
        let process = Process::spawn(command.stdout(Stdio::null()).stderr(File::create(&log).unwrap()));
        let address = || admin_address(&fs::read_to_string(&log).unwrap());
        let admin = Client::new(wait_until("the log tells where monitoring is", SOON, address), None);
        Watched { process, admin, log }
    }

    /// What was logged so far.
    pub fn logged(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until a sample of a scrape is as it should be.
    pub fn wait_for(&mut self, name: &str, is_so: impl Fn(f64) -> bool) {
        let name = format!("medfeed_publish_{name}");
        wait_until_every(Duration::from_millis(20), &name, SOON, || {
            is_so(scrape(&mut self.admin)[&name]).then_some(())
        });
    }
}

/// Makes the file of a seal key that begins with a byte.
pub fn seal_key(site: &Site, name: &str, first: u8) -> PathBuf {
    let digits: String = (0..32).map(|at| format!("{:02x}", first.wrapping_add(at))).collect();
    let file = site.write(name, digits);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

/// What a replay found.
#[derive(Clone, Copy, Debug)]
pub struct Replayed {
    pub id: DatabaseId,
    pub slot: u64,
    pub head: Head,
    /// The entries after the state.
    pub entries: u64,
    /// Those of them that are states.
    pub state_entries: u64,
    /// The commits in the others.
    pub commits: usize,
}

/// A database's id, last commit and the digest of all its rows, which are read.
pub fn rows_of(file: &Path) -> (DatabaseId, Head, RowDigest) {
    let view = Follower::open(file).unwrap().origin().unwrap();
    let digest = view.dump(1 << 20, &mut |_| Ok(())).unwrap();
    assert_eq!(view.digest().unwrap(), digest, "{}", file.display());
    (view.id().unwrap().expect("an id"), view.head().unwrap().head(), digest)
}

/// What is noted as published beside a site's database.
pub fn note(site: &Site) -> PublishedNote {
    PublishedNote::read(&site.db()).unwrap().expect("a note")
}
