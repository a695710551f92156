//! The `medfeed` program.

use std::process::ExitCode;

#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc;

// What one thread allocates is often freed by another. glibc's arenas keep such memory, and grow for hours; tests/README.md
// has the soak that shows it.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    medfeed::cli::run()
}
