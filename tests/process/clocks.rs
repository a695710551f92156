//! Clocks that are wrong: libfaketime (Debian's package of that name) shifts the wall clock that a program reads, and
//! no other clock. It can shift the clock again while the program runs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::client::Client;
use super::site::{SOON, Server, Site, wait_until};
use medfeed::model::time::{now, parse_time};

/// The folders in which distributions install the library, for programs with several threads.
const FOLDERS: [&str; 5] = words![
    "/usr/lib/x86_64-linux-gnu/faketime" "/usr/lib/aarch64-linux-gnu/faketime" "/usr/lib64/faketime"
    "/usr/lib/faketime" "/usr/local/lib/faketime"
];

/// The maximum difference between a shown time and the expected one, in seconds. A busy machine takes time to answer.
const TOLERANCE_S: i64 = 300;

/// A wall clock that a test sets.
#[derive(Debug)]
pub struct Clock {
    library: PathBuf,
    /// The file with the number of seconds by which the clock is wrong.
    file: PathBuf,
    draft: PathBuf,
}

impl Clock {
    /// A clock in a site's folder, correct at first. `None`, with a message, if the library is missing.
    pub fn new(site: &Site) -> Option<Clock> {
        let mut found = FOLDERS
            .iter()
            .map(|folder| PathBuf::from(folder).join("libfaketimeMT.so.1"));
        let Some(library) = found.find(|library| library.exists()) else {
            println!("clocks that are wrong are left out: install libfaketime");
            return None;
        };
        let clock = Clock {
            library,
            file: site.path("clock"),
            draft: site.path("clock.draft"),
        };
        clock.set(0);
        Some(clock)
    }

    /// Sets the clock ahead by `ahead_s` seconds.
    pub fn set(&self, ahead_s: i64) {
        fs::write(&self.draft, format!("{ahead_s:+}\n")).unwrap();
        fs::rename(&self.draft, &self.file).unwrap();
    }

    /// Makes a command use this clock.
    pub fn apply_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file);
        // The file is read at each use of the clock. Clocks that count from the start, and the times of files, stay
        // right.
        for name in words![
            "FAKETIME_NO_CACHE" "FAKETIME_DONT_FAKE_MONOTONIC" "DONT_FAKE_MONOTONIC" "NO_FAKE_STAT"
        ] {
            command.env(name, "1");
        }
    }
}

/// Waits until a server's clock is ahead by `ahead_s` seconds, or the server answers 503.
pub fn wait_for_clock(server: &Server, ahead_s: i64) {
    let mut client = Client::new(server.address, None);
    wait_until("the server's clock is set", SOON, || {
        let answer = client.get("/v1/status");
        if answer.status == 503 {
            return Some(());
        }
        let shown = parse_time(answer.json()["time"].as_str().expect("a time")).unwrap();
        ((shown.unix_s() - now().unix_s() - ahead_s).abs() < TOLERANCE_S).then_some(())
    });
}
