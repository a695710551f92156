//! Power losses: whatever part of the writes a disk kept, the database opens, is sound, contains everything that was
//! reported as done, and accepts the next commit.
//!
//! In reading order: `disk` (records each write, sync and new name), `images` (the possible contents after a power
//! loss), `examine` (the checks of an image), `histories` (the writes of medfeed), then the tests, one for each
//! history. `objects` is the same for a bucket in a folder.
//!
//! Images are the same in every run, apart from random ids. `MEDFEED_SEED` and `MEDFEED_CASES` give others, or more:
//!
//!     MEDFEED_CASES=100000 cargo test --test medfeed -- --nocapture power

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disk;
mod examine;
mod histories;
mod images;
mod objects;

use std::time::Instant;

use super::harness::counted;
use super::process::site::Random;
use super::properties::variable;
use disk::Action;
use examine::{Examined, examine};
use histories::Site;
use images::images;

/// The images of one run of a history.
const IMAGES_PER_RUN: u64 = 120;

/// Runs a history until there are enough images of it.
fn survives(name: &str, cases: u64, history: fn(&mut Site, &mut Random)) {
    let cases = variable("MEDFEED_CASES").unwrap_or(cases);
    let first = variable("MEDFEED_SEED").unwrap_or(1);
    let (began, mut all) = (Instant::now(), Examined::default());
    for seed in (first..).take_while(|seed| (seed - first) * IMAGES_PER_RUN < cases) {
        let mut random = Random::new(seed);
        let mut site = Site::new();
        history(&mut site, &mut random);
        let record = site.into_record();
        for image in images(&record, IMAGES_PER_RUN.min(cases), &mut random) {
            examine(&record, &image, &mut random, &mut all).unwrap_or_else(|error| {
                panic!(
                    "{name}, seed {seed}, after action {} of {}: {error}",
                    image.at,
                    record.actions.len()
                )
            });
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let Examined {
        images,
        different,
        second,
    } = all;
    println!(
        "{name}: {images} images, {} different, {second} of a second power loss, in {seconds:.1} s",
        different.len()
    );
    counted(images, "images of power losses");
    assert!(images >= cases.min(IMAGES_PER_RUN) / 2, "{images} images");
}

#[test]
fn commits_survive_a_power_loss() {
    survives("commits", 120, histories::commits);
}

#[test]
fn a_published_database_survives_a_power_loss() {
    survives("published", 60, histories::published);
}

#[test]
fn replaced_files_survive_a_power_loss() {
    survives("replaced", 60, histories::replaced);
}

#[test]
fn an_upgrade_survives_a_power_loss() {
    survives("upgraded", 20, histories::upgraded);
}

#[test]
fn a_replica_survives_a_power_loss() {
    survives("replica", 60, histories::replica);
}

#[test]
fn a_bucket_in_a_folder_survives_a_power_loss() {
    let cases = variable("MEDFEED_CASES").unwrap_or(600);
    let images = objects::examine(cases, variable("MEDFEED_SEED").unwrap_or(1), |_| true);
    let images = images.unwrap_or_else(|error| panic!("{error}"));
    counted(images, "images of power losses");
    assert!(objects::is_noticed_without_folder_syncs());
}

/// The tests above can fail: a disk that syncs nothing loses steps that were reported as done.
#[test]
fn a_disk_that_does_not_sync_is_noticed() {
    let mut random = Random::new(1);
    let mut site = Site::new();
    histories::commits(&mut site, &mut random);
    let mut record = site.into_record();
    let whole = record.actions.clone();
    let kinds: [fn(&Action) -> bool; 2] = [
        |action| matches!(action, Action::Sync { .. }),
        |action| matches!(action, Action::SyncFolder),
    ];
    for is_lost in kinds {
        record.actions = whole.clone();
        record.actions.retain(|action| !is_lost(action));
        let images = images(&record, 20, &mut random);
        let mut all = Examined::default();
        assert!(
            images
                .iter()
                .any(|image| examine(&record, image, &mut random, &mut all).is_err())
        );
    }
}
