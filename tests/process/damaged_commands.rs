//! Damaged databases: a failing command reports an error, never panics or dies by a signal, and the check fails too.
//!
//! `MEDFEED_SEED` and `MEDFEED_CASES` give other damages, or more of them.

use std::fs;

use super::site::{Done, Random, Site, cases_and_seed, conferences_of_version};
use crate::harness::counted;

const PAGE: usize = 4096;

/// Damages a copy: in ways of disks and cables, and in unexpected ways.
pub fn damage(whole: &[u8], random: &mut Random) -> (&'static str, Vec<u8>) {
    let mut bytes = whole.to_vec();
    let pages = bytes.len() / PAGE;
    let page = random.below(pages) * PAGE;
    let what = match random.next() % 6 {
        0 => {
            for _ in 0..=random.below(20) {
                let at = random.below(whole.len());
                bytes[at] ^= 1 << (random.next() % 8);
            }
            "bits"
        }
        1 => {
            for byte in &mut bytes[page..page + PAGE] {
                *byte = u8::try_from(random.next() % 256).unwrap();
            }
            "a page of noise"
        }
        2 => {
            bytes[page..page + PAGE].fill(0);
            "a page of zeros"
        }
        3 => {
            let from = random.below(pages) * PAGE;
            bytes.copy_within(from..from + PAGE, page);
            "a page of another place"
        }
        4 => {
            for _ in 0..=random.below(400) {
                let at = random.below(pages) * PAGE + random.below(40);
                bytes[at] ^= 1 << (random.next() % 8);
            }
            "bits at the beginnings of pages"
        }
        _ => {
            let at = random.below(2 * PAGE.min(whole.len() / 2));
            bytes[at] ^= 1 << (random.next() % 8);
            "a bit in the first pages"
        }
    };
    (what, bytes)
}

/// Checks that a command ended with exit code 0, or with 1 and an error, and did not panic.
fn assert_reported(what: &str, done: &Done) {
    assert!(matches!(done.code, Some(0 | 1)), "{what}: {done:?}");
    for noise in ["panicked", "RUST_BACKTRACE", "stack backtrace"] {
        assert!(!done.stdout.contains(noise), "{what}: {done:?}");
        assert!(!done.stderr.contains(noise), "{what}: {done:?}");
    }
    if done.code == Some(1) {
        let told = done.json();
        assert!(
            told["error"].is_string() || told["ok"] == false,
            "{what}: {done:?}"
        );
        let error = told["error"].as_str().unwrap_or_default();
        assert!(
            !error.contains("could not be read or written")
                || error.contains("run `medfeed check`"),
            "{what}: no next step: {error}"
        );
        assert!(!error.contains("report it"), "{what}: {done:?}");
    }
}

#[test]
fn commands_on_a_damaged_file_report_an_error() {
    let (cases, seed) = cases_and_seed(12, 11);
    let site = Site::with(250);
    site.license("all", "--dataset conferences");
    site.license("some", "--dataset conferences --year 2026");
    site.import("conferences.jsonl", conferences_of_version(250, 1));
    site.key("all", &[]);
    let backup = site.backup("backup.redb");
    // Without room for growth, most damages hit used bytes.
    site.json(["compact"]);
    let whole = fs::read(site.db()).unwrap();
    let (mut found, mut failed) = (0, 0);
    for case in 0..cases {
        let (kind, bytes) = damage(&whole, &mut Random::new(seed * 1_000_003 + case));
        let what = format!("MEDFEED_SEED={seed}, case {case} ({kind})");
        let run = |args: &[&str]| {
            fs::write(site.db(), &bytes).unwrap();
            let done = site.run([args, &["--json"]].concat());
            assert_reported(&format!("{what}, {args:?}"), &done);
            done
        };
        let checked = run(&["check"]);
        let damaged = checked.code == Some(1);
        found += u32::from(damaged);
        // Commands do not panic on the damaged file as the check left it either.
        assert_reported(
            &format!("{what}, listing after the check"),
            &site.run(["key", "list", "--json"]),
        );
        let mut commands = vec![
            &["key", "create", "--license", "all"][..],
            &["key", "list"],
            &["import", "conferences.jsonl"],
        ];
        if case % 4 == 0 {
            commands.extend([
                &["compact"][..],
                &["export", "out"],
                &["backup", "copy.redb"],
            ]);
        }
        for args in commands {
            let done = run(args);
            failed += u32::from(done.code == Some(1));
            assert!(
                done.code == Some(0) || damaged,
                "{what}: {args:?} fails, and the check is content: {done:?}"
            );
        }
        // A restore works after any damage.
        if case % 4 == 0 {
            let done = run(&["restore", backup.to_str().unwrap(), "--yes"]);
            // A file whose format is damaged may be another program's, which is never replaced.
            if done.code == Some(1) && done.stdout.contains("was written by a") {
                continue;
            }
            assert_eq!(done.code, Some(0), "{what}: {done:?}");
            site.check();
        }
    }
    println!("seed {seed}: {found} of {cases} damages found, {failed} commands failed");
    assert!(found > 0, "no case was a damage");
    counted(cases, "damaged files");
}
