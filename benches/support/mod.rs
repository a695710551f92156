//! Helpers of the benchmarks: seeded rows, databases made of them, and tables of figures.
//!
//! - [`random`] and [`synthetic`]: rows made of a seed and their number.
//! - [`world`]: databases of them, with licenses that show all or a share.
//! - [`feed`]: positions in a license's feed, and tokens that lead there.
//! - [`assembly`]: the parts of an export, joined by hand.
//! - [`request`]: requests to the API.
//! - [`machine`]: the machine's name, and tables.

#![allow(dead_code, reason = "each benchmark uses its part")]
#![allow(clippy::print_stdout, reason = "the figures are the output")]

pub mod assembly;
pub mod feed;
pub mod machine;
pub mod random;
pub mod request;
pub mod synthetic;
pub mod world;

/// Whether `MEDFEED_BENCH_LARGE` requests the benchmarks that need minutes and gigabytes.
pub fn is_large() -> bool {
    std::env::var_os("MEDFEED_BENCH_LARGE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// The arguments of a benchmark.
#[derive(Debug)]
pub struct Arguments {
    filters: Vec<String>,
    is_list: bool,
    /// Whether this is a test run, which only checks that everything works.
    pub is_test: bool,
}

impl Arguments {
    /// Reads the arguments of this process.
    pub fn read() -> Arguments {
        let given: Vec<String> = std::env::args().skip(1).collect();
        let has = |wanted: &str| given.iter().any(|argument| argument == wanted);
        Arguments {
            // Without cargo's `--bench` this is a test run.
            is_test: !has("--bench") || has("--test"),
            is_list: has("--list"),
            filters: filters(&given),
        }
    }

    /// Whether the arguments select a comparison that is no benchmark of criterion's.
    pub fn asks_for(&self, name: &str) -> bool {
        !self.is_list
            && (self.filters.is_empty()
                || self
                    .filters
                    .iter()
                    .any(|filter| name.contains(filter.as_str())))
    }
}

/// Options of criterion that take no value. The next argument may be a filter.
const FLAGS: [&str; 7] = [
    "--bench",
    "--test",
    "--exact",
    "--noplot",
    "--quiet",
    "--verbose",
    "--discard-baseline",
];

/// The arguments that are neither options nor their values.
fn filters(given: &[String]) -> Vec<String> {
    let is_value = |position: usize| {
        let before = position
            .checked_sub(1)
            .map_or("", |before| given[before].as_str());
        before.starts_with('-') && !FLAGS.contains(&before) && !before.contains('=')
    };
    let positions = (0..given.len())
        .filter(|position| !given[*position].starts_with('-') && !is_value(*position));
    positions.map(|position| given[position].clone()).collect()
}
