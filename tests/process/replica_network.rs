//! Replicas whose bucket is behind a network that adds one fault to one exchange: they have only published states,
//! never go back, and reach the end. `MEDFEED_CASES` sets the number of faults (else one of each kind), `MEDFEED_SEED`
//! the choice.

use medfeed::store::replication::ReplicaWriter;

use super::answer_faults::Fault;
use super::fault_relay::{FaultRelay, Recorded, run_cases};
use super::published::{Place, PublishedLog, TestReplica, rows_of};
use super::s3::S3;
use super::site::{SOON, Site, wait_for, wait_until};

const LAST: u64 = 5;
const LANES: usize = 6;
const QUICK: usize = 58;

/// A log of five entries, of which the first and the fourth are states, behind a relay.
struct Log {
    log: PublishedLog,
    relay: FaultRelay,
    _s3: S3,
}

#[derive(Clone, Copy)]
struct Case {
    is_new: bool,
    at: usize,
    fault: Fault,
}

/// A replica that is started again when it refuses to start.
struct Restarted {
    site: Site,
    replica: Option<TestReplica>,
    /// The last seen slot.
    slot: u64,
}

impl Log {
    fn new() -> Log {
        let (s3, site) = (S3::start(), Site::new());
        let place = Place::s3(&s3);
        let relay = FaultRelay::new(s3.address());
        let through = place.through(&relay.url());
        let log = PublishedLog::new(site, place, (4, LAST), |_, slot| {
            // The relay remembers the answers that replicas read then.
            if slot == 2 {
                (0..3).for_each(|_| Restarted::new(Site::new()).reach(&through, slot));
                relay.keep_answers();
            }
        });
        Log {
            log,
            relay,
            _s3: s3,
        }
    }

    /// A new replica, or one at slot 2.
    fn replica(&self, is_new: bool) -> Restarted {
        if is_new {
            return Restarted::new(Site::new());
        }
        Restarted {
            slot: 2,
            ..Restarted::new(self.log.replica_at(2))
        }
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for is_new in [true, false] {
            self.relay.begin(&[]);
            self.replica(is_new)
                .reach(&self.log.place.through(&self.relay.url()), LAST);
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
        let place = self.log.place.through(&relay.url());
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
        assert!(tested.is_at_end(), "{}", what());
        let rows = rows_of(&tested.site.db());
        assert_eq!(rows, self.log.rows[&LAST], "{}", what());
    }

    /// Checks that the file has a published state, and that only the last one counts as the end of the log.
    fn check(&self, tested: &Restarted, what: &str) {
        let file = tested.site.db();
        if tested.replica.is_none() {
            assert!(!file.exists() || tested.slot > 0, "{what}");
            return;
        }
        assert_eq!(rows_of(&file), self.log.rows[&tested.slot], "{what}");
        if tested.slot < LAST {
            let slot = tested.slot;
            assert!(
                !tested.is_at_end(),
                "{what}: slot {slot} is taken for the end"
            );
            assert!(tested.error().is_some(), "{what}: slot {slot}");
        }
    }
}

impl Restarted {
    fn new(site: Site) -> Restarted {
        Restarted {
            site,
            replica: None,
            slot: 0,
        }
    }

    fn error(&self) -> Option<String> {
        self.replica
            .as_ref()
            .and_then(|replica| replica.outcome().1)
    }

    fn is_at_end(&self) -> bool {
        let replica = self.replica.as_ref();
        replica.is_some_and(|replica| replica.status.unfit().is_none())
    }

    /// Starts, or polls once.
    fn step(&mut self, place: &Place) {
        let slot = match &mut self.replica {
            Some(replica) => replica.poll().0,
            // A server would end with the error, and be started again.
            None => match TestReplica::start(place.log(), &self.site.db()) {
                Ok(replica) => self.replica.insert(replica).outcome().0,
                // It may have loaded a state before.
                Err(_) => ReplicaWriter::open(&self.site.db())
                    .map_or(self.slot, |file| file.mark().unwrap().slot),
            },
        };
        assert!(slot >= self.slot, "from slot {} to slot {slot}", self.slot);
        self.slot = slot;
    }

    fn reach(&mut self, place: &Place, slot: u64) {
        wait_for("the end of the log", || {
            self.step(place);
            self.slot == slot && self.is_at_end()
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
