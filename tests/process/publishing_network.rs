//! Publishers whose bucket is behind a network that adds one fault to one exchange: nothing is lost or comes twice, and
//! no publisher is fenced by its own entry. `MEDFEED_CASES` sets the number of faults (else one of each kind),
//! `MEDFEED_SEED` the choice.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use medfeed::bucket::BucketError;
use medfeed::replicate::layout;
use medfeed::replicate::replica::audit::audit;

use super::answer_faults::Fault;
use super::fault_relay::{FaultRelay, Recorded, run_cases};
use super::origin::copy_into;
use super::published::{Place, follow, note, rows_of};
use super::publishing::commit_few;
use super::s3::S3;
use super::site::{Done, Process, SOON, Site, wait_for, wait_until};

const LANES: usize = 6;
/// The number of exchanges of a running publisher that get faults.
const RUNNING: usize = 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    /// A publisher starts with an empty bucket, which it tests.
    First,
    /// A commit, a state, and old objects to delete.
    Again,
    /// A publisher was killed before it stored its last entry in the note.
    AfterKill,
    /// A commit while the publisher runs.
    Running,
}

const RUNS: [Run; 4] = [Run::First, Run::Again, Run::AfterKill, Run::Running];

#[derive(Clone, Copy)]
struct Case {
    run: Run,
    at: usize,
    fault: Fault,
    is_always_run: bool,
}

/// The number of chosen cases.
const QUICK: usize = 24;
/// Cases that always run: the run, the beginning and the end of the request, and the fault.
const ALWAYS: [(Run, &str, &str, Fault); 7] = cases![
    // The sweep deletes all old objects of this list.
    Run::Again, "GET /feed?", "%2Fprobe%2F", Fault::Crossed;
    // Another entry in the slot of the next one would be another publisher's.
    Run::Again, "GET", "log/00000000000000000008", Fault::Crossed;
    Run::Again, "GET", "log/00000000000000000008", Fault::Portal;
    Run::Again, "PUT", "log/00000000000000000006", Fault::RequestTwice;
    Run::Again, "PUT", "log/00000000000000000006", Fault::NoAnswer;
    Run::Again, "GET", "log/00000000000000000005", Fault::Flipped;
    Run::Again, "GET", "states/00000000000000000005", Fault::ShortLast;
];

/// A database with a waiting commit, and its bucket.
struct Prepared {
    site: Site,
    s3: S3,
    /// The answers of the earlier runs.
    relay: FaultRelay,
}

const ONCE: &str = "--once --state-every 0s --keep 1d";

impl Prepared {
    fn new(run: Run) -> Prepared {
        let (s3, site) = (S3::start(), Site::new());
        let relay = FaultRelay::new(s3.address());
        let place = Place::s3(&s3).through(&relay.url());
        commit_few(&site, 0);
        site.open_key();
        for version in 1..=3 {
            if run == Run::First {
                break;
            }
            let noted = site.path("feed.redb.published");
            let before = std::fs::read(&noted);
            let done = place.run(&site, ONCE);
            assert_eq!(done.code, Some(0), "{done:?}");
            if run == Run::AfterKill && version == 3 {
                std::fs::write(&noted, before.unwrap()).unwrap();
            }
            s3.age(Duration::from_secs(2 * 86_400));
            commit_few(&site, version);
        }
        relay.keep_answers();
        Prepared { site, s3, relay }
    }

    /// A copy of the database and the bucket, and a relay between them.
    fn fork(&self) -> (Site, S3, FaultRelay) {
        let (site, s3) = (Site::new(), self.s3.fork());
        copy_into(self.site.folder(), site.folder());
        let relay = self.relay.fork_to(s3.address());
        (site, s3, relay)
    }
}

/// Publishes the waiting commits through a relay. A running publisher gets a further commit.
fn publish(run: Run, site: &Site, relay: &FaultRelay, plan: &[(usize, Fault)], s3: &S3) -> Done {
    let place = Place::s3(s3).through(&relay.url());
    if run != Run::Running {
        relay.begin(plan);
        return place.run(site, ONCE);
    }
    relay.begin(&[]);
    let log = site.path("publisher.log");
    let mut command = place.command(
        site,
        "--every 0s --state-every 0s --keep 1d --heartbeat 20ms --log warn",
    );
    let mut publisher = Process::spawn(
        command
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap()),
    );
    let ended = |publisher: &mut Process| {
        let code = publisher.ended_within(Duration::ZERO)?.code();
        Some(Done {
            code,
            stdout: String::new(),
            stderr: std::fs::read_to_string(&log).unwrap(),
        })
    };
    let is_published = |site: &Site| note(site).seq == rows_of(&site.db()).1.seq;
    wait_for("a heartbeat", || {
        let lines = relay.exchanges();
        let is_alive = lines
            .iter()
            .any(|exchange| exchange.line.starts_with("PUT") && exchange.line.ends_with("/alive"));
        is_alive && is_published(site)
    });
    relay.begin(plan);
    commit_few(site, 9);
    let done = wait_until("the commit is published", SOON, || {
        if let Some(done) = ended(&mut publisher) {
            return Some(done);
        }
        let is_done = is_published(site) && relay.exchanges().len() > RUNNING + 6;
        is_done.then(|| Done {
            code: Some(0),
            stdout: String::new(),
            stderr: std::fs::read_to_string(&log).unwrap(),
        })
    });
    publisher.kill();
    done
}

fn cases(prepared: &[Prepared]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (run, prepared) in RUNS.into_iter().zip(prepared) {
        let (site, s3, relay) = prepared.fork();
        let done = publish(run, &site, &relay, &[], &s3);
        assert_eq!(done.code, Some(0), "{run:?}: {done:?}");
        let exchanges = relay.exchanges();
        let most = if run == Run::Running {
            RUNNING
        } else {
            exchanges.len()
        };
        let is_always_run = |at: usize, fault: Fault| {
            let line = &exchanges[at].line;
            let is_always = |(of, start, end, always): &(Run, &str, &str, Fault)| {
                (*of, *always) == (run, fault) && line.starts_with(start) && line.ends_with(end)
            };
            ALWAYS.iter().any(is_always)
        };
        let found = Recorded::cases(&exchanges[..most]).into_iter();
        let found = found.map(|(at, fault)| Case {
            run,
            at,
            fault,
            is_always_run: is_always_run(at, fault),
        });
        cases.extend(found);
    }
    cases
}

/// Whether `--once` may fail after this fault: a refusal, or a store that does not return the last written object.
fn ends_once(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Page(400 | 403 | 404 | 410)
            | Fault::NotModified
            | Fault::PortalRedirect
            | Fault::Late
            | Fault::Freshened
            | Fault::Crossed
    )
}

fn run_case(prepared: &Prepared, Case { run, at, fault, .. }: Case) {
    let (site, s3, relay) = prepared.fork();
    let done = publish(run, &site, &relay, &[(at, fault)], &s3);
    let what = format!("{run:?}, {fault:?} at {at} {:?}: {done:?}", relay.met());
    assert!(!done.stderr.contains("panicked"), "{what}");
    assert!(
        done.code == Some(0) || ends_once(fault) && done.code == Some(1),
        "{what}"
    );
    let direct = Place::s3(&s3);
    // Without faults.
    let again = direct.run(&site, ONCE);
    assert_eq!(again.code, Some(0), "then {again:?} after {what}");
    assert_eq!(note(&site).fenced, None, "{what}");
    let slots = direct.slots(layout::LOG);
    let last = slots[slots.len() - 1];
    assert_eq!(slots, (slots[0]..=last).collect::<Vec<_>>(), "{what}");
    // The whole bucket leads to the end, and a replica has the rows of the origin.
    let (audited, file) = (site.path("audited.redb"), site.path("replica.redb"));
    let audit =
        audit(&direct.log(), &audited).unwrap_or_else(|error| panic!("{error} after {what}"));
    assert_eq!((audit.slot, audit.seq), (last, note(&site).seq), "{what}");
    assert_eq!(follow(&direct, &file), (last, None), "{what}");
    assert_eq!(rows_of(&file), rows_of(&site.db()), "{what}");
}

#[test]
fn a_fault_of_any_exchange_loses_no_commit_and_fences_no_publisher() {
    let prepared = RUNS.map(Prepared::new);
    let mut others = cases(&prepared);
    let always = others
        .extract_if(.., |case| case.is_always_run)
        .collect::<Vec<_>>();
    assert!(
        always.len() >= ALWAYS.len(),
        "{} of {}",
        always.len(),
        ALWAYS.len()
    );
    let lane_of = |number: usize, _: &Case| number % LANES;
    run_cases(
        (always, others),
        |case| case.fault,
        QUICK,
        &[(); LANES],
        lane_of,
        |(), case| {
            let at = RUNS.iter().position(|run| *run == case.run).expect("a run");
            run_case(&prepared[at], case);
        },
    );
}

#[test]
fn a_response_of_another_server_is_no_object_and_no_list() {
    let s3 = S3::start();
    let relay = FaultRelay::new(s3.address());
    let direct = Place::s3(&s3);
    let bucket = direct.through(&relay.url()).bucket;
    for name in ["log/1", "parts/1"] {
        direct.bucket.put(name, b"some bytes").unwrap();
    }
    let get = || {
        bucket
            .get("log/1")
            .map(|found| found.map(|object| object.bytes.len()))
    };
    let list = || bucket.list("other", None).map(|listed| Some(listed.len()));
    type Read<'a> = &'a dyn Fn() -> Result<Option<usize>, BucketError>;
    let cases: [(Read<'_>, Fault, Option<usize>, &str); 3] = cases![
        &get, Fault::Portal, Some(10), "`log/1`: the response has no ETag, so it is not the store's";
        &get, Fault::NoTag, Some(10), "`log/1`: the response has no ETag, so it is not the store's";
        &list, Fault::Crossed, Some(0), "`other`: the response names `some/prefix/log/1`";
    ];
    bucket.list("log", None).unwrap();
    relay.keep_answers();
    for (read, fault, expected, message) in cases {
        relay.begin(&[(0, fault)]);
        let error = read().unwrap_err();
        assert!(error.is_transient(), "{fault:?}: {error}");
        assert!(error.to_string().contains(message), "{fault:?}: {error}");
        assert_eq!(read(), Ok(expected), "{fault:?}");
    }
}
