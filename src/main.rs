//! The `medfeed` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    medfeed::cli::run()
}
