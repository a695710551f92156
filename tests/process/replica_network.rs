//! Replicas whose bucket is behind a network that adds one fault to one exchange: they have only published states,
//! never go back, and reach the end. `MEDFEED_CASES` sets the number of faults (else one of each kind), `MEDFEED_SEED`
//! the choice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use medfeed::replicate::layout;
use medfeed::replicate::replica::{Replica, ReplicaStatus};

use super::answer_faults::Fault;
use super::fault_relay::{FaultRelay, Recorded, run_cases};
use super::published::{Place, rows_of};
use super::publishing::commit_few;
use super::replica_faults::Rows;
use super::s3::S3;
use super::site::{SOON, Site, wait_for, wait_until};

const LAST: u64 = 5;
const LANES: usize = 6;
const QUICK: usize = 58;

/// A log of five entries, of which the first and the fourth are states.
struct Log {
    /// The rows after each entry.
    rows: BTreeMap<u64, Rows>,
    place: Place,
    relay: FaultRelay,
    /// A file that was loaded at slot 2; the other replica has none.
    following: PathBuf,
    site: Site,
    _s3: S3,
}

#[derive(Clone, Copy)]
struct Case {
    is_new: bool,
    at: usize,
    fault: Fault,
}

/// A replica's file in a folder of its own.
struct TestReplica {
    folder: tempfile::TempDir,
    status: Arc<ReplicaStatus>,
    replica: Option<Replica>,
    /// The last seen slot.
    slot: u64,
}

impl Log {
    fn new() -> Log {
        let (s3, site) = (S3::start(), Site::new());
        let place = Place::s3(&s3);
        let relay = FaultRelay::new(s3.address());
        let through = place.through(&relay.url());
        let following = site.path("following.redb");
        let mut rows = BTreeMap::new();
        for slot in 1..=LAST {
            if slot != 4 {
                commit_few(&site, slot);
            }
            place.once_with(&site, if slot == 4 { "--state-every 0s" } else { "" });
            rows.insert(slot, rows_of(&site.db()));
            // The relay remembers the answers that replicas read then.
            if slot == 2 {
                for _ in 0..2 {
                    TestReplica::new(None).reach(&through, slot);
                }
                let mut tested = TestReplica::new(None);
                tested.reach(&through, slot);
                drop(tested.replica.take());
                fs::copy(tested.path(), &following).unwrap();
                relay.keep_answers();
            }
        }
        assert_eq!(
            (place.slots(layout::LOG).len(), place.slots(layout::STATES)),
            (5, vec![1, 4])
        );
        Log {
            rows,
            place,
            relay,
            following,
            site,
            _s3: s3,
        }
    }

    fn replica(&self, is_new: bool) -> TestReplica {
        TestReplica::new((!is_new).then_some(self.following.as_path()))
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for is_new in [true, false] {
            self.relay.begin(&[]);
            self.replica(is_new)
                .reach(&self.place.through(&self.relay.url()), LAST);
            let exchanges = self.relay.exchanges();
            cases.extend(
                Recorded::cases(&exchanges)
                    .into_iter()
                    .map(|(at, fault)| Case { is_new, at, fault }),
            );
        }
        cases
    }

    fn run(&self, relay: &FaultRelay, Case { is_new, at, fault }: Case) {
        let place = self.place.through(&relay.url());
        relay.begin(&[(at, fault)]);
        let mut tested = self.replica(is_new);
        tested.step(&place);
        let what = || format!("new: {is_new}, {fault:?} at {at} {:?}", relay.met());
        self.check(&tested, &what());
        wait_until(&what(), SOON, || {
            tested.step(&place);
            self.check(&tested, &what());
            (tested.slot == LAST && tested.error().is_none()).then_some(())
        });
        assert!(!relay.met().is_empty(), "the fault was not met: {}", what());
        assert!(tested.status.unfit().is_none(), "{}", what());
        assert_eq!(
            rows_of(&tested.path()),
            rows_of(&self.site.db()),
            "{}",
            what()
        );
    }

    /// Checks that the file has a published state, and that only the last one counts as the end of the log.
    fn check(&self, tested: &TestReplica, what: &str) {
        if tested.replica.is_none() {
            assert!(!tested.path().exists() || tested.slot > 0, "{what}");
            return;
        }
        assert_eq!(rows_of(&tested.path()), self.rows[&tested.slot], "{what}");
        let is_end = tested.status.unfit().is_none();
        assert!(
            tested.slot == LAST || !is_end,
            "{what}: slot {} is taken for the end",
            tested.slot
        );
        assert!(
            tested.slot == LAST || tested.error().is_some(),
            "{what}: slot {}",
            tested.slot
        );
    }
}

impl TestReplica {
    fn new(file: Option<&Path>) -> TestReplica {
        let tested = TestReplica {
            folder: tempfile::tempdir().unwrap(),
            status: Arc::new(ReplicaStatus::checking_every(Duration::ZERO, SOON)),
            replica: None,
            slot: 0,
        };
        if let Some(file) = file {
            fs::copy(file, tested.path()).unwrap();
        }
        tested
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("feed.redb")
    }

    fn error(&self) -> Option<String> {
        self.status.progress().error
    }

    /// Starts, or polls once.
    fn step(&mut self, place: &Place) {
        match &mut self.replica {
            Some(replica) => assert!(
                replica.poll(&|| true),
                "it stopped: {:?}",
                self.status.progress()
            ),
            None => {
                match Replica::start(place.log(), &self.path(), Arc::clone(&self.status), &|| {
                    true
                }) {
                    Ok(replica) => self.replica = Some(replica),
                    // A server would end with this error, and be started again.
                    Err(error) => println!("not started: {error}"),
                }
            }
        }
        let slot = self.status.progress().slot;
        assert!(slot >= self.slot, "from slot {} to slot {slot}", self.slot);
        self.slot = slot;
        // A server that shows the file calls this too.
        self.status.note_end_loaded();
    }

    fn reach(&mut self, place: &Place, slot: u64) {
        wait_for("the end of the log", || {
            self.step(place);
            self.slot == slot && self.status.unfit().is_none()
        });
    }
}

#[test]
fn a_fault_of_any_exchange_leaves_a_replica_at_a_published_state() {
    let log = Log::new();
    let cases = (Vec::new(), log.cases());
    let relays: Vec<FaultRelay> = (0..LANES).map(|_| log.relay.fork()).collect();
    let lane_of = |number: usize, _: &Case| number % LANES;
    run_cases(
        cases,
        |case| case.fault,
        QUICK,
        &relays,
        lane_of,
        |relay, case| log.run(relay, case),
    );
}
