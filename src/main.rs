//! The `medfeed` program.

use std::process::ExitCode;

use medfeed::serve::Limits;

// What one thread allocates is often freed by another. glibc keeps such memory, more each hour; jemalloc gives it back.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    medfeed::cli::run(std::env::args_os().collect(), Limits::default())
}
