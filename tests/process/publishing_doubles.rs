//! Several publishers of one database: one continues, whichever is first, and the others end. The search of the protocol
//! tries all orders of their requests; here their processes race for one name. `MEDFEED_CASES` sets the number of rounds,
//! `MEDFEED_SEED` the first random number.

use std::fs;
use std::time::Duration;

use medfeed::replicate::layout;

use super::published::{Place, note};
use super::publishing::{commit, copy_of, curated};
use super::s3::S3;
use super::site::{Process, Random, SOON, Site, cases_and_seed};
use crate::harness::counted;

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
            let won = std::iter::zip(&copies, &codes).filter(|(_, code)| **code == Some(0));
            let won: Vec<&Site> = won.map(|(copy, _)| copy).collect();
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
    counted(rounds, "rounds of eight publishers");
}
