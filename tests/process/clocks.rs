//! Clocks that are wrong: libfaketime (Debian's package of that name) shifts the wall clock that a program reads, and no other
//! clock, and may shift it again while the program runs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::client::Client;
use super::site::{SOON, Server, Site, wait_until};
use medfeed::model::time::{now, parse_time};

/// Where distributions put the library, for programs of several threads.
const FOLDERS: [&str; 5] = [
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
    "/usr/lib64/faketime",
    "/usr/lib/faketime",
    "/usr/local/lib/faketime",
];

/// How far a shown time may be from the one that is meant, in seconds: what a busy machine takes to answer.
const TOLERANCE_S: i64 = 300;

/// A wall clock that a test sets.
#[derive(Debug)]
pub struct Clock {
    library: PathBuf,
    /// Holds by how many seconds it is wrong.
    file: PathBuf,
    draft: PathBuf,
}

impl Clock {
    /// A clock in a site's folder, which is right so far; `None` where the library is missing, which is told.
    pub fn new(site: &Site) -> Option<Clock> {
        let mut found = FOLDERS.iter().map(|folder| PathBuf::from(folder).join("libfaketimeMT.so.1"));
        let Some(library) = found.find(|library| library.exists()) else {
            println!("clocks that are wrong are left out: install libfaketime");
            return None;
        };
        let clock = Clock { library, file: site.path("clock"), draft: site.path("clock.draft") };
        clock.set(0);
        Some(clock)
    }

    /// Makes it wrong by so many seconds.
    pub fn set(&self, ahead_s: i64) {
        fs::write(&self.draft, format!("{ahead_s:+}\n")).unwrap();
        fs::rename(&self.draft, &self.file).unwrap();
    }

    /// Has a command go by this clock.
    pub fn wind(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        // Set anew it is read anew. Clocks that count from the start, and the times of files, stay right.
        for name in ["FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC", "DONT_FAKE_MONOTONIC", "NO_FAKE_STAT"] {
            command.env(name, "1");
        }
    }
}

/// Waits until a server's clock is wrong by so many seconds, or it tells no time any more.
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
