//! Kills at every step between a write and the answers of replicas. `MEDFEED_CASES` sets the number of kills,
//! `MEDFEED_SEED` the first random number.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use medfeed::replicate::layout;

use super::kill_steps::{DEATHS, Death, FAULTS, Moment, step, steps};
use super::publishing::age;
use super::replicated::{REPLICAS, World};
use super::s3::{CALLERS, Fault, S3};
use super::site::{Process, Random, cases_and_seed, conferences_of_version};
use crate::harness::counted;

/// From this number of kills on, all steps must have occurred.
const ENOUGH: u64 = 400;

/// A run of kills in one world.
struct Run {
    world: World,
    random: Random,
    /// The remaining moments before any is repeated.
    moments: Vec<Moment>,
    deaths: Vec<Death>,
    /// Whether the running publisher writes a state after each entry.
    puts_states: bool,
    /// The usual time of a write.
    usual: Duration,
    counts: BTreeMap<String, u64>,
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
            moments: Vec::new(),
            deaths: Vec::new(),
            puts_states: false,
            usual,
            counts: BTreeMap::new(),
        }
    }

    fn count(&mut self, step: impl Into<String>) {
        let step = step.into();
        self.world.note(format!("killed: {step}"));
        *self.counts.entry(step).or_default() += 1;
    }

    fn kills(&self) -> u64 {
        self.counts.values().sum()
    }

    fn options(&mut self) -> String {
        self.puts_states = self.random.below(3) > 0;
        let state_every = if self.puts_states { "0s" } else { "1h" };
        format!("--every 0s --heartbeat 200ms --keep 1d --log info --state-every {state_every}")
    }

    /// Starts the publisher and some of the replicas that are down.
    fn start(&mut self) {
        if self.world.publisher.is_none() {
            let options = self.options();
            if self.random.below(4) == 0 {
                self.kill_starting_publisher(&options);
            }
            self.world.start_publisher(&options);
            self.world.note(format!("publisher {options}"));
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

    fn kill_starting_publisher(&mut self, options: &str) {
        let skip = self.random.below(60);
        let fault = self.fault();
        if let Some(s3) = &self.world.s3 {
            s3.fail_for(CALLERS[0], "", "", fault, skip);
        }
        self.world.start_publisher(options);
        match &self.world.s3 {
            Some(s3) => drop(s3.wait_for_held()),
            None => std::thread::sleep(self.random.part_of(Duration::from_millis(150))),
        }
        self.kill_publisher("publisher starting");
    }

    fn kill_publisher(&mut self, step: &str) {
        self.world.expect_publisher();
        self.world.publisher.take().expect("it runs").kill();
        self.let_go();
        self.count(step);
        self.world.read_line();
    }

    fn fault(&mut self) -> Fault {
        [Fault::Held, Fault::Waiting][self.random.below(2)]
    }

    /// Sometimes adds a fault to one of the next requests to the store.
    fn disturb(&mut self) {
        if self.random.below(3) > 0 {
            return;
        }
        let (caller, skip) = (
            CALLERS[self.random.below(CALLERS.len())],
            self.random.below(4),
        );
        let (method, name, fault) = FAULTS[self.random.below(FAULTS.len())];
        if let Some(s3) = &self.world.s3 {
            s3.fail_for(caller, method, name, fault, skip);
            self.world
                .note(format!("{caller} meets {fault:?} at {method} {name}"));
        }
    }

    fn round(&mut self) {
        self.disturb();
        self.start();
        let (writer, publisher, replica) = (
            self.random.below(4),
            self.random.below(2),
            self.random.below(2),
        );
        if writer == 0 {
            self.writer_dies();
        }
        if publisher == 0 {
            self.publisher_dies();
        } else {
            self.world.commit(&mut self.random);
        }
        if replica == 0 {
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
        let has_states = self.puts_states && self.world.place.slots(layout::STATES).len() > 1;
        let can_be = |moment: &Moment| match moment.method {
            "DELETE" => has_states,
            "PUT" if moment.restores => self.world.has_backup,
            _ => self.puts_states || moment.folder().is_none_or(|folder| folder == layout::LOG),
        };
        if !self.moments.iter().any(can_be) {
            self.moments.extend(Moment::all(self.world.s3.is_none()));
        }
        let possible: Vec<usize> = (0..self.moments.len())
            .filter(|at| can_be(&self.moments[*at]))
            .collect();
        let mut moment = self
            .moments
            .swap_remove(possible[self.random.below(possible.len())]);
        if moment.method == "DELETE" {
            moment.name = ["/states/", "/parts/", "/log/"][self.random.below(3)];
            self.age();
        }
        self.publisher_dies_at(moment);
    }

    /// Kills the publisher before or after its next request of a kind. In a folder, kills it when the result is
    /// visible, or at a random moment.
    fn publisher_dies_at(&mut self, moment: Moment) {
        let Moment {
            method,
            name,
            fault,
            restores,
        } = moment;
        let is_folder = self.world.s3.is_none();
        let skip = if name.is_empty() {
            self.random.below(12)
        } else {
            0
        };
        if restores {
            // First publishes the waiting commits, so that the held request is for an object of the restored state.
            self.world.wait_for_publisher();
            if self.puts_states {
                self.world.wait_for_state();
            }
        }
        if let Some(s3) = &self.world.s3 {
            s3.fail_for(CALLERS[0], method, name, fault, skip);
        }
        let kind = moment.folder();
        let before = self.names(kind);
        for attempt in 0..20 {
            if restores && attempt == 0 {
                self.world.restore();
            } else {
                self.world.commit(&mut self.random);
            }
            if is_folder && kind.is_none() {
                std::thread::sleep(self.random.part_of(Duration::from_millis(300)));
                return self.kill_publisher("publisher at a random moment");
            }
            let begun = Instant::now();
            let mut held = None;
            while begun.elapsed() < Duration::from_secs(2) && held.is_none() {
                held = match &self.world.s3 {
                    Some(s3) => s3.held_within(Duration::from_secs(2)),
                    None => {
                        let now = self.names(kind);
                        let is_done = if method == "DELETE" {
                            !before.is_subset(&now)
                        } else {
                            !now.is_subset(&before)
                        };
                        is_done.then(|| format!("{method} {name}"))
                    }
                };
            }
            if let Some(held) = held {
                self.world.note(format!("held, {fault:?}: {held}"));
                let (method, target) = held.split_once(' ').expect("a method");
                return self.kill_publisher(&step(method, target, fault, restores));
            }
            self.world.expect_publisher();
        }
        panic!("the publisher never came to {method} {name}");
    }

    /// The names in a folder of the bucket.
    fn names(&self, kind: Option<&str>) -> BTreeSet<String> {
        let Some(kind) = kind.filter(|_| self.world.s3.is_none()) else {
            return BTreeSet::new();
        };
        let Ok(entries) = fs::read_dir(self.world.folder.join(kind)) else {
            return BTreeSet::new();
        };
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    fn replica_dies(&mut self) {
        if self.world.publisher.is_none() {
            let options = self.options();
            self.world.start_publisher(&options);
        }
        let at = self.random.below(REPLICAS);
        if self.world.replicas[at].server.is_none() {
            self.world.start_replica(at);
        }
        if self.deaths.is_empty() {
            self.deaths.extend(DEATHS);
        }
        match self
            .deaths
            .swap_remove(self.random.below(self.deaths.len()))
        {
            Death::Anytime => {
                std::thread::sleep(self.random.part_of(Duration::from_millis(50)));
                self.kill_replica(at);
                self.count("replica at a random moment");
            }
            Death::Polling => self.dies_polling(at),
            Death::LoadingAnew if self.world.has_backup => self.dies_applying(at, true),
            Death::Applying | Death::LoadingAnew => self.dies_applying(at, false),
            Death::Loading => self.dies_loading(at),
            Death::Starting => self.dies_starting(at),
        }
    }

    fn kill_replica(&mut self, at: usize) -> Option<u64> {
        self.world.replicas[at]
            .server
            .take()
            .expect("it runs")
            .0
            .process
            .kill();
        self.let_go();
        self.world.check_killed(at)
    }

    fn let_go(&self) {
        if let Some(s3) = &self.world.s3 {
            s3.heal();
            s3.wait_for_none_held();
        }
    }

    fn dies_polling(&mut self, at: usize) {
        let fault = self.fault();
        let Some(s3) = &self.world.s3 else {
            return self.dies_applying(at, false);
        };
        s3.fail_for(CALLERS[at + 1], "GET", "/log/", fault, 0);
        s3.wait_for_held();
        self.kill_replica(at);
        self.count("replica polling");
    }

    /// Kills a replica around the time when it applies a commit: by its changes, or by a whole state that replaces its
    /// rows.
    fn dies_applying(&mut self, at: usize, restores: bool) {
        if let Some(s3) = &self.world.s3 {
            s3.fail_for(CALLERS[at + 1], "GET", "/log/", Fault::Waiting, 0);
            s3.wait_for_held();
        }
        let before = self.world.last_slot();
        if restores {
            self.world.restore();
        } else {
            self.world.commit(&mut self.random);
        }
        self.world.wait_for_publisher();
        let last = self.world.last_slot();
        let header = |slot| self.world.place.entry(slot).header;
        let is_replaced =
            |slot| header(slot).replaces(header(slot - 1).head(), header(slot - 1).digest);
        let is_state = (before + 1..=last).any(is_replaced);
        let time = match &self.world.s3 {
            Some(s3) => {
                s3.release();
                Duration::from_millis(if is_state { 60 } else { 25 })
            }
            // The next poll comes after some time.
            None => Duration::from_millis(if is_state { 90 } else { 50 }),
        };
        std::thread::sleep(self.random.part_of(time));
        let left = self.kill_replica(at);
        self.count(match (is_state, left == Some(last)) {
            (true, _) => "replica loading in the place of another",
            (false, false) => "replica applying: old position",
            (false, true) => "replica applying: new position",
        });
    }

    /// Kills a replica during its first load: afterwards there is no file, or a whole one.
    fn dies_loading(&mut self, at: usize) {
        self.world.wait_for_publisher();
        self.kill_replica(at);
        self.count("replica at a random moment");
        self.world.forget_replica(at);
        let (fault, name) = (self.fault(), ["states", "/parts/"][self.random.below(2)]);
        if let Some(s3) = &self.world.s3 {
            s3.fail_for(CALLERS[at + 1], "GET", name, fault, 0);
        }
        let mut starting = self.spawn_replica(at);
        match &self.world.s3 {
            Some(s3) => {
                s3.wait_for_held();
                if self.random.below(2) == 0 {
                    s3.release();
                    std::thread::sleep(self.random.part_of(Duration::from_millis(60)));
                }
            }
            None => std::thread::sleep(self.random.part_of(Duration::from_millis(250))),
        }
        self.kill_starting(&mut starting, at);
        self.count("replica loading the first time");
    }

    fn spawn_replica(&self, at: usize) -> Process {
        let mut command = self.world.replica_command(at);
        Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    fn kill_starting(&mut self, starting: &mut Process, at: usize) {
        assert_eq!(
            starting.ended_within(Duration::ZERO),
            None,
            "replica {at} ended by itself"
        );
        starting.kill();
        self.let_go();
        self.world.check_killed(at);
        // It leaves no draft with a name, and drafts without a name vanish.
        let left: Vec<String> = self.world.replicas[at].site.files();
        assert!(!left.iter().any(|name| name.contains("draft")), "{left:?}");
    }

    fn dies_starting(&mut self, at: usize) {
        self.kill_replica(at);
        self.count("replica at a random moment");
        self.world.commit(&mut self.random);
        let mut starting = self.spawn_replica(at);
        std::thread::sleep(self.random.part_of(Duration::from_millis(250)));
        self.kill_starting(&mut starting, at);
        self.count("replica starting");
    }

    fn run(mut self, kills: u64) -> BTreeMap<String, u64> {
        for round in 1.. {
            self.round();
            let is_over = self.kills() >= kills;
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
    let each = kills.div_ceil(2);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let runs = [None, Some(())].map(|is_s3| {
            scope.spawn(move || {
                let world = World::new(is_s3.map(|()| S3::start()), seed % 2 == 0);
                let counts = Run::new(
                    world,
                    Random::new(seed.wrapping_mul(2) + u64::from(is_s3.is_some())),
                )
                .run(each);
                (is_s3.is_some(), counts)
            })
        });
        for run in runs {
            let (is_s3, counts) = run.join().expect("all that must hold does");
            let total: u64 = counts.values().sum();
            println!(
                "{}: {total} kills in {:?}",
                if is_s3 { "s3" } else { "folder" },
                begun.elapsed()
            );
            counts
                .iter()
                .for_each(|(step, count)| println!("  {count:5} {step}"));
            let missed: Vec<String> = steps(is_s3)
                .into_iter()
                .filter(|step| !counts.contains_key(step))
                .collect();
            assert!(
                kills < ENOUGH || missed.is_empty(),
                "seed {seed}: never killed at {missed:?}"
            );
        }
    });
    counted(kills, "kills");
}
