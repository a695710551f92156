//! Kills of any process between a write and the answers of replicas. The search of the protocol kills publishers at each
//! request; here files, processes and answers are real. `MEDFEED_CASES` sets the number of kills, `MEDFEED_SEED` the
//! first random number.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::publishing::age;
use super::replicated::{REPLICAS, World};
use super::s3::{CALLERS, Fault, S3};
use super::site::{Process, Random, cases_and_seed, conferences_of_version};
use crate::harness::counted;

/// Faults of the store meanwhile: the method, a part of the name, and the fault.
const FAULTS: [(&str, &str, Fault); 9] = cases![
    "PUT", "/log/", Fault::LostAnswer;
    "PUT", "/log/", Fault::Code(409, "ConditionalRequestConflict");
    "PUT", "/parts/", Fault::LostAnswer;
    "PUT", "/states/", Fault::LostAnswer;
    "PUT", "", Fault::Status(503);
    "PUT", "", Fault::Code(409, "OperationAborted");
    "GET", "", Fault::HalfBody;
    "GET", "", Fault::LostAnswer;
    "DELETE", "", Fault::LostAnswer;
];

/// A run of kills in one world.
struct Run {
    world: World,
    random: Random,
    /// The usual time of a write.
    usual: Duration,
    counts: BTreeMap<&'static str, u64>,
}

impl Run {
    fn new(mut world: World, random: Random) -> Run {
        let begun = Instant::now();
        let content = conferences_of_version(30, 1);
        let args = world.import("conferences.jsonl", content);
        world.write(&args);
        let usual = begun.elapsed();
        Run {
            world,
            random,
            usual,
            counts: BTreeMap::new(),
        }
    }

    fn count(&mut self, what: &'static str) {
        self.world.note(format!("killed: {what}"));
        *self.counts.entry(what).or_default() += 1;
    }

    fn start_publisher(&mut self) {
        let state_every = ["0s", "0s", "1h"][self.random.below(3)];
        let options = format!(
            "--every 0s --heartbeat 200ms --keep 1d --log info --state-every {state_every}"
        );
        self.world.start_publisher(&options);
        self.world.note(format!("publisher {options}"));
    }

    /// Starts the publisher and some of the replicas that are down.
    fn start(&mut self) {
        if self.world.publisher.is_none() {
            self.start_publisher();
            if self.random.below(4) == 0 {
                self.hold(0, "", 60);
                self.wait_for_held();
                self.kill_publisher("publisher starting");
                self.start_publisher();
            }
        }
        if self.world.last_slot() == 0 {
            // Replicas cannot start before the first state.
            self.world.wait_for_publisher();
        }
        for at in 0..REPLICAS {
            if self.world.replicas[at].server.is_none() && self.random.below(3) > 0 {
                self.world.start_replica(at);
            }
        }
    }

    /// Holds one of the next requests of a caller, before or after the store does it.
    fn hold(&mut self, caller: usize, name: &str, most: usize) {
        let fault = [Fault::Held, Fault::Waiting][self.random.below(2)];
        let skip = self.random.below(most);
        if let Some(s3) = &self.world.s3 {
            s3.fail_for(CALLERS[caller], "", name, fault, skip);
        }
    }

    /// Waits some time for the held request; in a folder, a random time. Returns whether it is time for the kill.
    fn wait_for_held(&mut self) -> bool {
        let Some(s3) = &self.world.s3 else {
            std::thread::sleep(self.random.part_of(Duration::from_millis(300)));
            return true;
        };
        let held = s3.held_within(Duration::from_secs(2));
        if let Some(held) = &held {
            self.world.note(format!("held: {held}"));
        }
        held.is_some()
    }

    fn let_go(&self) {
        if let Some(s3) = &self.world.s3 {
            s3.heal();
            s3.wait_for_none_held();
        }
    }

    fn kill_publisher(&mut self, what: &'static str) {
        self.world.expect_publisher();
        self.world.publisher.take().expect("it runs").kill();
        self.let_go();
        self.count(what);
        self.world.read_line();
    }

    /// Sometimes adds a fault to one of the next requests to the store.
    fn disturb(&mut self) {
        if self.random.below(3) > 0 {
            return;
        }
        let caller = CALLERS[self.random.below(CALLERS.len())];
        let skip = self.random.below(4);
        let (method, name, fault) = FAULTS[self.random.below(FAULTS.len())];
        if let Some(s3) = &self.world.s3 {
            s3.fail_for(caller, method, name, fault, skip);
            let what = format!("{caller} meets {fault:?} at {method} {name}");
            self.world.note(what);
        }
    }

    fn round(&mut self) {
        self.disturb();
        self.start();
        if self.random.below(4) == 0 {
            self.writer_dies();
        }
        if self.random.below(2) == 0 {
            self.publisher_dies();
        } else {
            self.world.commit(&mut self.random);
        }
        if self.random.below(2) == 0 {
            self.replica_dies();
        }
        self.world.read_line();
        (0..REPLICAS).for_each(|at| self.world.check_seq(at));
    }

    fn writer_dies(&mut self) {
        let args = self.world.next_write(&mut self.random);
        let after = (self.random.below(2) == 0).then(|| self.random.part_of(self.usual));
        match self.world.write_and_kill(&args, after) {
            (false, _) => {}
            (true, false) => self.count("writer before its commit"),
            (true, true) => self.count("writer after its commit"),
        }
    }

    /// Makes all objects old, so that the next state sweeps. Running replicas have read them before.
    fn age(&mut self) {
        self.world.wait_for_publisher();
        let seq = self.world.head().seq;
        for at in 0..REPLICAS {
            if self.world.replicas[at].server.is_some() {
                self.world.wait_for_replica(at, seq);
            }
        }
        self.world.note("all objects become old");
        match &self.world.s3 {
            Some(s3) => s3.age(Duration::from_secs(2 * 86_400)),
            None => age(&self.world.folder, 2),
        }
    }

    fn publisher_dies(&mut self) {
        if self.random.below(4) == 0 {
            self.age();
        }
        self.hold(0, "", 24);
        for _ in 0..20 {
            self.change();
            if self.wait_for_held() {
                return self.kill_publisher("publisher");
            }
            self.world.expect_publisher();
        }
        panic!("the publisher sends no requests");
    }

    /// A commit, or a restore, which is published in a whole state.
    fn change(&mut self) {
        if self.world.has_backup && self.random.below(4) == 0 {
            self.world.restore();
        } else {
            self.world.commit(&mut self.random);
        }
    }

    fn replica_dies(&mut self) {
        if self.world.publisher.is_none() {
            self.start_publisher();
        }
        let at = self.random.below(REPLICAS);
        if self.world.replicas[at].server.is_none() {
            self.world.start_replica(at);
        }
        match self.random.below(4) {
            0 => self.dies_loading(at),
            1 => self.dies_starting(at),
            _ => self.dies_applying(at),
        }
    }

    /// Kills a replica around the time when it applies changes, or a whole state that replaces its rows.
    fn dies_applying(&mut self, at: usize) {
        if let Some(s3) = &self.world.s3 {
            s3.fail_for(CALLERS[at + 1], "GET", "/log/", Fault::Waiting, 0);
            s3.wait_for_held();
        }
        self.change();
        self.world.wait_for_publisher();
        if let Some(s3) = &self.world.s3 {
            s3.release();
        }
        std::thread::sleep(self.random.part_of(Duration::from_millis(80)));
        self.kill_replica(at);
        self.count("replica applying");
    }

    fn kill_replica(&mut self, at: usize) {
        let (mut server, _) = self.world.replicas[at].server.take().expect("it runs");
        server.process.kill();
        self.let_go();
        self.world.check_killed(at);
    }

    /// Afterwards there is no file, or a whole one.
    fn dies_loading(&mut self, at: usize) {
        self.world.wait_for_publisher();
        self.kill_replica(at);
        self.count("replica at a random moment");
        self.world.forget_replica(at);
        let name = ["states", "/parts/"][self.random.below(2)];
        self.hold(at + 1, name, 1);
        self.kill_starting(at);
        self.count("replica loading the first time");
    }

    fn dies_starting(&mut self, at: usize) {
        self.kill_replica(at);
        self.count("replica at a random moment");
        self.world.commit(&mut self.random);
        self.kill_starting(at);
        self.count("replica starting");
    }

    /// Starts a replica, and kills it soon.
    fn kill_starting(&mut self, at: usize) {
        let mut command = self.world.replica_command(at);
        let mut starting = Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let ended = starting.ended_within(self.random.part_of(Duration::from_millis(250)));
        assert_eq!(ended, None, "replica {at} ended by itself");
        starting.kill();
        self.let_go();
        self.world.check_killed(at);
        // It leaves no draft with a name, and drafts without a name vanish.
        let left: Vec<String> = self.world.replicas[at].site.files();
        assert!(!left.iter().any(|name| name.contains("draft")), "{left:?}");
    }

    fn run(mut self, kills: u64) -> BTreeMap<&'static str, u64> {
        for round in 1.. {
            self.round();
            let is_over = self.counts.values().sum::<u64>() >= kills;
            if round % 8 == 0 || is_over {
                self.start();
                self.world.settle();
                self.world.back_up();
            }
            if is_over || round % 64 == 0 {
                self.world.check();
            }
            if is_over {
                break;
            }
        }
        self.world.end();
        self.counts
    }
}

#[test]
fn kills_of_any_process_lose_nothing_and_all_answer_alike() {
    let (kills, seed) = cases_and_seed(16, 1);
    std::thread::scope(|scope| {
        for is_s3 in [false, true] {
            scope.spawn(move || {
                let world = World::new(is_s3.then(S3::start), seed % 2 == 0);
                let random = Random::new(seed.wrapping_mul(2) + u64::from(is_s3));
                let counts = Run::new(world, random).run(kills.div_ceil(2));
                println!("in S3: {is_s3}: {counts:?}");
            });
        }
    });
    counted(kills, "kills");
}
