//! What the benchmarks share: seeded rows, databases made of them, and how figures are printed.
//!
//! - [`random`] and [`synthetic`]: rows made of a seed and their number.
//! - [`world`]: databases of them, with licenses that show all or a share.
//! - [`bare`]: the rows of a database, inserted by the engine alone.
//! - [`machine`]: the machine's name, and tables.

#![allow(dead_code, reason = "each benchmark uses its part")]
#![allow(clippy::print_stdout, reason = "the figures are the output")]

pub mod bare;
pub mod machine;
pub mod random;
pub mod synthetic;
pub mod world;

/// Whether the benchmarks that need minutes and gigabytes are asked for.
pub fn is_large() -> bool {
    std::env::var_os("MEDFEED_BENCH_LARGE").is_some_and(|value| !value.is_empty() && value != "0")
}
