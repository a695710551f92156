//! Several publishers of one database: one continues, whichever is first, and the others end. `MEDFEED_CASES` sets the
//! number of rounds, `MEDFEED_SEED` the first random number.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use medfeed::replicate::layout;

use super::published::{Place, note, rows_of};
use super::publishing::{commit, copy_of, curated};
use super::s3::S3;
use super::site::{
    Process, Random, SOON, Site, cases_and_seed, conferences_of_version, wait_until,
};
use crate::harness::counted;

fn spawn_commit(site: &Site, version: u64) -> Process {
    let file = site.write("conferences.jsonl", conferences_of_version(30, version));
    let mut command = site.command(["import".as_ref(), file.as_os_str()]);
    Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

#[test]
fn one_of_two_publishing_copies_is_fenced() {
    let (rounds, seed) = cases_and_seed(4, 1);
    let s3 = S3::start();
    let folder = Site::new();
    for place in [Place::folder(&folder), Place::s3(&s3)] {
        let mut site = curated();
        place.once(&site);
        let (mut random, mut late) = (Random::new(seed), 0);
        for round in 1..=rounds {
            let told = || format!("{}, seed {seed}, round {round}", place.kind);
            let copies = [copy_of(&site), copy_of(&site)];
            let states = if random.below(2) == 0 {
                "--state-every 0s"
            } else {
                ""
            };
            let options = format!("--every 0s --heartbeat 20ms {states}");
            // One starts later than the other. The commits come about when it starts.
            let [mut first, mut second] = copies.each_ref().map(|copy| {
                let publisher = place.spawn(copy, &options);
                std::thread::sleep(random.part_of(Duration::from_millis(150)));
                publisher
            });
            let commits: Vec<Process> = copies
                .iter()
                .zip([2 * round, 2 * round + 1])
                .map(|(copy, version)| {
                    std::thread::sleep(random.part_of(Duration::from_millis(50)));
                    spawn_commit(copy, version)
                })
                .collect();
            let codes = commits
                .into_iter()
                .map(|mut commit| commit.ended_within(SOON).expect("it ends").code());
            let codes: Vec<Option<i32>> = codes.collect();
            let (lost, ended) = wait_until("one of them ends", 3 * SOON, || {
                let ended = [&mut first, &mut second]
                    .map(|publisher| publisher.ended_within(Duration::ZERO));
                ended
                    .iter()
                    .position(Option::is_some)
                    .map(|lost| (lost, ended))
            });
            assert_eq!(
                ended[lost].and_then(|status| status.code()),
                Some(4),
                "{}",
                told()
            );
            let (loser, winner) = (&copies[lost], &copies[1 - lost]);
            let by = note(loser)
                .fenced
                .unwrap_or_else(|| panic!("{}: it is fenced", told()));
            assert!(by.contains(" published slot "), "{}: {by}", told());
            // If a copy was fenced before its commit, the commit was refused. The other copy's commit succeeded.
            assert_eq!(codes[1 - lost], Some(0), "{}", told());
            late += u64::from(codes[lost] == Some(4));
            let (_, head, _) = rows_of(&winner.db());
            wait_until("the other one continues", 3 * SOON, || {
                (note(winner).seq == head.seq).then_some(())
            });
            let survivor = [&mut first, &mut second].into_iter().nth(1 - lost).unwrap();
            assert_eq!(
                survivor.ended_within(Duration::ZERO),
                None,
                "{}: it keeps running",
                told()
            );
            survivor.kill();
            // The loser's own commit is only in its file.
            assert_eq!(place.run(loser, "--once").code, Some(4), "{}", told());
            let [one, other] = copies;
            site = if lost == 0 { other } else { one };
            // The copies of the next round have no notes.
            if round % 20 == 0 || round == rounds {
                place.check(&site);
            }
        }
        println!("{}: {rounds} rounds, {late} commits refused", place.kind);
    }
    counted(rounds, "rounds of two publishers");
}

#[test]
fn one_of_eight_simultaneous_starts_publishes() {
    let (rounds, seed) = cases_and_seed(2, 1);
    let s3 = S3::start();
    let folder = Site::new();
    for place in [Place::folder(&folder), Place::s3(&s3)] {
        let site = curated();
        place.once(&site);
        let mut random = Random::new(seed);
        for round in 1..=rounds {
            let told = || format!("{}, seed {seed}, round {round}", place.kind);
            let copies: Vec<Site> = (0..8).map(|_| copy_of(&site)).collect();
            std::iter::zip(8 * round.., &copies).for_each(|(version, copy)| commit(copy, version));
            // All start at once, or some after others have written their entry. The result is the same.
            let spread = Duration::from_millis([0, 10, 100][random.below(3)]);
            let publishers: Vec<Process> = copies
                .iter()
                .map(|copy| {
                    std::thread::sleep(random.part_of(spread));
                    place.spawn(copy, "--once")
                })
                .collect();
            let codes: Vec<Option<i32>> = publishers
                .into_iter()
                .map(|mut publisher| publisher.ended_within(3 * SOON).expect("it ends").code())
                .collect();
            let won: Vec<&Site> = std::iter::zip(&copies, &codes)
                .filter(|(_, code)| **code == Some(0))
                .map(|(copy, _)| copy)
                .collect();
            let fenced = codes.iter().filter(|code| **code == Some(4)).count();
            assert_eq!((won.len(), fenced), (1, 7), "{}: {codes:?}", told());
            assert!(
                place.slots(layout::LOG).into_iter().eq(1..=round + 1),
                "{}",
                told()
            );
            for (copy, code) in std::iter::zip(&copies, &codes) {
                assert_eq!(note(copy).fenced.is_some(), *code == Some(4), "{}", told());
            }
            if round % 20 == 0 || round == rounds {
                place.check(won[0]);
            }
            fs::copy(won[0].db(), site.db()).unwrap();
        }
    }
}
