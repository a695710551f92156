//! Properties that hold for any world and any sequence of edits, tested in-process on generated cases.
//!
//! In reading order: `world` (an independent model of records and licenses), `edits` (its changes), `system` (a
//! database with the same changes), then the properties, one file each.
//!
//! Cases are the same in every run. `MEDFEED_SEED` and `MEDFEED_CASES` give others, or more of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod edits;
pub mod feeds;
mod folding;
mod inputs;
mod lists;
pub mod replicas;
mod resync;
mod round_trips;
mod served;
mod soundness;
mod system;
mod workbooks;
mod world;

use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::harness::counted;

const SEED: u64 = 1;

pub fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs a property on generated cases. A failing case is made as small as possible, and printed with the seed.
fn holds<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value))
where
    S::Value: Debug,
{
    let seed = variable("MEDFEED_SEED").unwrap_or(SEED);
    let cases = variable("MEDFEED_CASES")
        .and_then(|cases| u32::try_from(cases).ok())
        .unwrap_or(cases);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    // A failed assertion is a panic, which counts as a failed case.
    let run = runner.run(&strategy, |case| {
        property(case);
        Ok::<(), TestCaseError>(())
    });
    if let Err(failure) = run {
        panic!("seed {seed}: {failure}");
    }
    counted(cases, "generated cases");
}

/// A file with masked timestamps: the round trip does not keep `updated_at`.
pub fn masked(bytes: &[u8]) -> Vec<u8> {
    const SHAPE: &[u8; 20] = b"0000-00-00T00:00:00Z";
    let mut masked = bytes.to_vec();
    let mut at = 0;
    while let Some(window) = masked.get_mut(at..at + SHAPE.len()) {
        let fits = window.iter().zip(SHAPE).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            _ => byte == shape,
        });
        if fits {
            window.copy_from_slice(SHAPE);
            at += SHAPE.len();
        } else {
            at += 1;
        }
    }
    masked
}
