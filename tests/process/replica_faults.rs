//! Damaged or swapped objects: no reader accepts wrong data, and each names the object. `MEDFEED_CASES` sets how many
//! bits of each object are flipped, `MEDFEED_SEED` the first random number.

use std::collections::BTreeMap;

use medfeed::replicate::layout;
use medfeed::replicate::replica::StateLoader;
use medfeed::replicate::replica::audit::audit;

use super::published::{Place, PublishedLog, Rows, follow, rows_of};
use super::publishing::commit_few;
use super::s3::S3;
use super::site::{Random, Site, cases_and_seed};
use crate::harness::counted;

/// A log of four entries, two states and a heartbeat.
struct Published {
    s3: S3,
    log: PublishedLog,
    /// The prefix of its objects in the store.
    prefix: &'static str,
}

impl Published {
    fn new(is_sealed: bool) -> Published {
        let (s3, site) = (S3::start(), Site::new());
        let (place, prefix) = if is_sealed {
            (Place::sealed(&site, &s3), "sealed/")
        } else {
            (Place::s3(&s3), "some/prefix/")
        };
        let log = PublishedLog::new(site, place, (3, 4), |_, _| ());
        Published { s3, log, prefix }
    }

    /// The names of the objects in a folder, or beginning with a text.
    fn names(&self, kind: &str) -> Vec<String> {
        let names = self.s3.names().into_iter();
        names
            .filter_map(|name| {
                Some(name.strip_prefix(self.prefix)?.to_owned())
                    .filter(|name| name.starts_with(kind))
            })
            .collect()
    }

    fn object(&self, name: &str) -> Vec<u8> {
        self.s3
            .object(&format!("{}{name}", self.prefix))
            .expect("an object")
    }

    fn set(&self, name: &str, bytes: &[u8]) {
        self.s3
            .set_object(&format!("{}{name}", self.prefix), Some(bytes.to_vec()));
    }

    fn last_rows(&self) -> Rows {
        self.log.rows[&4]
    }

    /// Reads the log with an audit, a new replica and a following one. Checks that none accepts data that was not
    /// published. Returns their errors.
    fn read(&self) -> [Option<String>; 3] {
        let folder = tempfile::tempdir().unwrap();
        let audited = audit(&self.log.place.log(), &folder.path().join("audited.redb"));
        if let Ok(audited) = &audited {
            assert_eq!((audited.slot, audited.seq), (4, self.last_rows().1.seq));
        }
        // A new replica loads a state.
        let file = folder.path().join("loaded.redb");
        let log = self.log.place.log();
        let load = StateLoader {
            must_confirm: true,
            ..StateLoader::new(&log, &file, &|| true)
        };
        let loaded = load
            .newest()
            .and_then(|loaded| Ok(loaded.draft.persist(None)?))
            .map(drop);
        assert_eq!(file.exists(), loaded.is_ok());
        if loaded.is_ok() {
            assert_eq!(rows_of(&file), self.last_rows());
        }
        // A replica follows from the second entry.
        let following = self.log.replica_at(2);
        let (slot, trouble) = follow(&self.log.place, &following.db());
        let found = rows_of(&following.db());
        assert_eq!(found, self.log.rows[&slot], "slot {slot}");
        assert!(slot == 4 || trouble.is_some(), "slot {slot}");
        [
            audited.err().map(|trouble| trouble.to_string()),
            loaded.err().map(|trouble| trouble.to_string()),
            trouble,
        ]
    }
}

/// The damages of an object: some flipped bits, the object cut short, and the bytes of another object.
fn damages(
    published: &Published,
    random: &mut Random,
    flips: u64,
    name: &str,
) -> Vec<(String, Vec<u8>)> {
    let sound = published.object(name);
    let mut damages: Vec<(String, Vec<u8>)> = (0..flips)
        .map(|_| {
            let (at, bit) = (random.below(sound.len()), random.below(8));
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << bit;
            (format!("bit {bit} of byte {at} flipped"), bytes)
        })
        .collect();
    damages.push((
        "cut short".to_owned(),
        sound[..random.below(sound.len())].to_vec(),
    ));
    let folder = name.split('/').next().unwrap();
    let others = ["log", "states", "parts", "alive"]
        .into_iter()
        .filter(|other| *other != folder);
    let others: Vec<String> = others.flat_map(|folder| published.names(folder)).collect();
    let other = &others[random.below(others.len())];
    damages.push((format!("replaced by {other}"), published.object(other)));
    damages
}

#[test]
fn damaged_and_swapped_objects_are_refused_by_name() {
    let (flips, seed) = cases_and_seed(1, 1);
    std::thread::scope(|scope| {
        for is_sealed in [false, true] {
            scope.spawn(move || damage_all(is_sealed, flips, seed));
        }
    });
}

fn damage_all(is_sealed: bool, flips: u64, seed: u64) {
    let published = Published::new(is_sealed);
    let mut random = Random::new(seed);
    assert_eq!(published.read(), [None, None, None]);
    let (mut cases, mut told_of) = (0, BTreeMap::<&str, [u32; 3]>::new());
    for kind in ["log", "states", "parts"] {
        let names = published.names(kind);
        for (at, name) in names.iter().enumerate() {
            let sound = published.object(name);
            for (damage, bytes) in damages(&published, &mut random, flips, name) {
                published.set(name, &bytes);
                let told = published.read();
                let what = format!("sealed {is_sealed}, seed {seed}, {name} {damage}: {told:?}");
                // The audit reads every object.
                assert!(told[0].is_some(), "{what}");
                assert!(
                    told.iter().flatten().all(|told| told.contains(name)),
                    "{what}"
                );
                for (count, told) in told_of.entry(kind).or_default().iter_mut().zip(&told) {
                    *count += u32::from(told.is_some());
                }
                cases += 1;
                published.set(name, &sound);
            }
            // Swapped with each other object of the kind.
            for other in &names[at + 1..] {
                let others = published.object(other);
                published.set(name, &others);
                published.set(other, &sound);
                let told = published.read();
                let what = format!("sealed {is_sealed}, {name} swapped with {other}: {told:?}");
                assert!(told[0].is_some(), "{what}");
                let names_one = |told: &String| told.contains(name) || told.contains(other);
                assert!(told.iter().flatten().all(names_one), "{what}");
                cases += 1;
                published.set(name, &sound);
                published.set(other, &others);
            }
        }
    }
    println!(
        "sealed {is_sealed}: {cases} cases; damage reported by check, load and replica: {told_of:?}"
    );
    // A new replica passes over a damaged state, and a following one needs none. All need the last entry.
    assert!(told_of["log"].iter().all(|told| *told > 0), "{told_of:?}");
    for kind in ["states", "parts"] {
        let sound = published.names(kind).into_iter();
        let sound = sound.map(|name| (name.clone(), published.object(&name)));
        let sound: Vec<(String, Vec<u8>)> = sound.collect();
        sound
            .iter()
            .for_each(|(name, bytes)| published.set(name, &bytes[..bytes.len() / 2]));
        let [_, told, _] = published.read();
        let (newest, _) = sound.last().expect("a state");
        assert!(
            told.as_ref().is_some_and(|told| told.contains(newest)),
            "all {kind}: {told:?}"
        );
        sound
            .iter()
            .for_each(|(name, bytes)| published.set(name, bytes));
    }
    assert_eq!(published.read(), [None, None, None]);
    published.damaged_heartbeats_are_reported(&mut random, flips);
    published.damaged_ends_are_refused(&mut random, flips);
    counted(cases, "damaged objects");
}

impl Published {
    /// With a damaged heartbeat, the end of the log is unknown. Every reader and `--status` report that.
    fn damaged_heartbeats_are_reported(&self, random: &mut Random, flips: u64) {
        let sound = self.object(layout::ALIVE);
        for (damage, bytes) in damages(self, random, flips, layout::ALIVE) {
            self.set(layout::ALIVE, &bytes);
            let status = self.log.place.run(&self.log.site, "--status");
            let expected = format!("object `{}` cannot be used: ", layout::ALIVE);
            status.assert_shown(0, &expected);
            for told in self.read() {
                let is_told = told
                    .as_ref()
                    .is_some_and(|told| told.contains("`alive`") && told.contains("slot 4"));
                assert!(is_told, "{damage}: {told:?}");
            }
            self.set(layout::ALIVE, &sound);
        }
        let status = self.log.place.run(&self.log.site, "--status");
        assert!(status.code == Some(0), "{status:?}");
        assert!(!status.stdout.contains("cannot be used"), "{status:?}");
    }

    /// A publisher does not continue after an end that it cannot read.
    fn damaged_ends_are_refused(&self, random: &mut Random, flips: u64) {
        commit_few(&self.log.site, 5);
        let name = layout::log(4);
        let sound = self.object(&name);
        for (damage, bytes) in damages(self, random, flips, &name) {
            self.set(&name, &bytes);
            let refused = self.log.place.run(&self.log.site, "--once");
            let what = format!("{name} {damage}: {refused:?}");
            assert_eq!(refused.code, Some(1), "{what}");
            assert!(refused.stderr.contains(&format!("`{name}`")), "{what}");
            self.set(&name, &sound);
        }
        assert_eq!(self.log.place.slots(layout::LOG), [1, 2, 3, 4]);
        assert_eq!(self.log.place.once(&self.log.site), 1);
        // If the newest state cannot be read, the publisher writes another one.
        let newest = || {
            *self
                .log
                .place
                .slots(layout::STATES)
                .last()
                .expect("a state")
        };
        for at in 0..damages(self, random, flips, &layout::state(3)).len() {
            let (slot, name) = (newest(), layout::state(newest()));
            let sound = self.object(&name);
            let (damage, bytes) = damages(self, random, flips, &name).swap_remove(at);
            self.set(&name, &bytes);
            assert_eq!(self.log.place.once(&self.log.site), 1, "{name} {damage}");
            assert!(newest() > slot, "{name} {damage}");
            self.set(&name, &sound);
            self.log.place.check(&self.log.site);
        }
    }
}
