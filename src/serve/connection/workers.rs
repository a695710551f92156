//! The threads that serve connections. Each has its own single-threaded runtime, so threads neither wake each other nor
//! steal work.

use std::io;
use std::thread::{self, available_parallelism};

use tokio::runtime::{Builder, Handle};

/// The running threads. They end with the process.
#[derive(Debug)]
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
    let run = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new().name(format!("worker-{number}")).spawn(run)?;
    Ok(handle)
}
