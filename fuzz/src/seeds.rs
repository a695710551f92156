//! The first inputs of a target, and its dictionary. `run.sh` asks each target to write its own.

use std::path::Path;
use std::{env, fs, process};

use crate::words::dictionary;

/// Writes the seeds into the folder that the variable `MEDFEED_FUZZ_SEEDS` names, the dictionary next to it with the
/// ending `.words`, and ends the program. Does nothing without the variable.
pub fn write_and_exit(seeds: impl FnOnce() -> Vec<Vec<u8>>) {
    let Some(folder) = env::var_os("MEDFEED_FUZZ_SEEDS") else {
        return;
    };
    for (number, seed) in seeds().into_iter().enumerate() {
        fs::write(Path::new(&folder).join(format!("seed-{number:03}")), seed)
            .expect("the seed is written");
    }
    fs::write(Path::new(&folder).with_extension("words"), dictionary())
        .expect("the dictionary is written");
    process::exit(0);
}

/// Reads a file of the folder `fixtures`.
pub fn fixture(name: &str) -> String {
    fs::read_to_string(format!("{}/../fixtures/{name}", env!("CARGO_MANIFEST_DIR")))
        .expect("the fixture is read")
}
