//! A server in a process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The beginning of every server's first line.
const READY: &str = "listening on http://";
/// Clock ticks per second in `/proc`: 100 on every Linux that Rust runs on.
const TICKS_PER_S: f64 = 100.0;
/// A server that uses no processor time for this long is idle.
const SETTLED: Duration = Duration::from_millis(500);

/// A running server. Dropping it ends the server.
#[derive(Debug)]
pub struct Server {
    process: Child,
    /// The address on which it listens.
    pub address: SocketAddr,
}

impl Server {
    /// Starts a server and waits until it listens.
    pub fn start(command: &mut Command) -> Server {
        let mut process = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let output = process.stdout.take().expect("the server's output is piped");
        let mut line = String::new();
        BufReader::new(output)
            .read_line(&mut line)
            .expect("the server prints a line");
        let address = line.trim().strip_prefix(READY);
        let address = address.and_then(|address| address.parse().ok());
        let address = address
            .unwrap_or_else(|| panic!("the server said {line:?} instead of where it listens"));
        Server { process, address }
    }

    /// Processor time used so far, in seconds: in user mode and in the kernel.
    pub fn cpu_s(&self) -> f64 {
        let text = self.proc_file("stat");
        // The second field is a name in parentheses, which may hold blanks.
        let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks = after_name.split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
        ticks / TICKS_PER_S
    }

    /// Waits until the server is idle. After its start it reads records into memory, which would disturb the figures.
    pub fn settle(&self) {
        let mut before = f64::NAN;
        while self.cpu_s() != before {
            before = self.cpu_s();
            std::thread::sleep(SETTLED);
        }
    }

    /// Memory in MiB: the current use and the maximum so far.
    pub fn memory_mib(&self) -> (f64, f64) {
        let text = self.proc_file("status");
        let value = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<f64>().ok()
        };
        let mib = |name| value(name).map_or(f64::NAN, |kib| kib / 1024.0);
        (mib("VmRSS:"), mib("VmHWM:"))
    }

    fn proc_file(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.process.id())).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
