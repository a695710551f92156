//! The threads of connections, and the limit of open files.
//!
//! Each thread has its own single-threaded runtime, so threads neither wake each other nor steal work.

use std::io;
use std::thread::{self, available_parallelism};

use tokio::runtime::{Builder, Handle};

/// The open files that are reserved for other uses than connections, such as the database and the log.
const RESERVED_FILES: usize = 32;
/// The same for each runtime.
const FILES_PER_PROCESSOR: usize = 4;
/// The connections that are allowed, however few files may be open.
const MIN_CONNECTIONS: usize = 8;

/// Raises the soft limit of open files to the hard limit. Returns the number of connections that it allows, up to
/// `wanted`.
pub fn raise_file_limit(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let Some(files) = files else { return wanted };
    let processors = available_parallelism().map_or(1, |count| count.get());
    let files = usize::try_from(files).unwrap_or(usize::MAX);
    room_for_connections(files, processors).min(wanted)
}

/// The number of connections of a process that may open so many files.
fn room_for_connections(files: usize, processors: usize) -> usize {
    files
        .saturating_sub(RESERVED_FILES + FILES_PER_PROCESSOR * processors)
        .max(MIN_CONNECTIONS)
}

/// The running threads. They end with the process.
pub struct Workers {
    workers: Vec<Handle>,
    next: usize,
}

impl Workers {
    /// Starts one thread per processor.
    pub fn start() -> io::Result<Workers> {
        let count = available_parallelism().map_or(1, |count| count.get());
        let workers = (0..count).map(start_worker).collect::<io::Result<_>>()?;
        Ok(Workers { workers, next: 0 })
    }

    /// Returns the workers in turn.
    pub fn next_worker(&mut self) -> &Handle {
        self.next = (self.next + 1) % self.workers.len();
        &self.workers[self.next]
    }
}

fn start_worker(number: usize) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_open_files_are_reserved_for_other_uses() {
        let cases = [
            (0, 2, 8),
            (40, 2, 8),
            (48, 2, 8),
            (49, 2, 9),
            (80, 2, 40),
            (80, 16, 8),
            (1024, 2, 984),
            (1024, 8, 960),
            (1024, 64, 736),
            (usize::MAX, 8, usize::MAX - 64),
        ];
        for (files, processors, room) in cases {
            let found = room_for_connections(files, processors);
            assert_eq!(found, room, "{files} files, {processors} processors");
        }
    }
}
