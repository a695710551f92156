//! The threads that serve connections. Each has a runtime of its own, so that an answer is made where its socket is polled:
//! no thread wakes another one, and none takes work from another.

use std::io;
use std::thread::{self, available_parallelism};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The running threads. Dropping this ends them, and the connections that they serve.
#[derive(Debug)]
pub struct Workers {
    workers: Vec<(Handle, oneshot::Sender<()>)>,
    next: usize,
}

impl Workers {
    /// Starts a thread per processor.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start() -> io::Result<Workers> {
        let count = available_parallelism().map_or(1, |count| count.get());
        let workers = (0..count).map(start_worker).collect::<io::Result<_>>()?;
        Ok(Workers { workers, next: 0 })
    }

    /// The worker whose turn it is.
    pub fn take_turn(&mut self) -> &Handle {
        self.next = (self.next + 1) % self.workers.len();
        &self.workers[self.next].0
    }
}

fn start_worker(number: usize) -> io::Result<(Handle, oneshot::Sender<()>)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel();
    thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
        // The sender is dropped with the server.
        let _ = runtime.block_on(stopped);
        // Work that still waits for a disk must not hold up the end.
        runtime.shutdown_background();
    })?;
    Ok((handle, stop))
}
