//! Background threads that stop with the server.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The time to wait for a thread to stop. The disk may block it.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// Running threads. Dropping this stops them.
#[derive(Debug)]
pub struct BackgroundTasks(Vec<Task>);

#[derive(Debug)]
struct Task {
    stop: Sender<()>,
    /// Disconnected once the thread has ended.
    ended: Receiver<()>,
    handle: JoinHandle<()>,
}

impl BackgroundTasks {
    /// Starts a thread. It must stop when its receiver is disconnected.
    pub fn spawn(name: &str, work: impl FnOnce(&Receiver<()>) + Send + 'static) -> io::Result<BackgroundTasks> {
        let (stop, stopped) = channel();
        let (alive, ended) = channel();
        let handle = Builder::new().name(name.to_owned()).spawn(move || {
            // Dropped at the end, also by a panic.
            let _alive: Sender<()> = alive;
            work(&stopped);
        })?;
        Ok(BackgroundTasks(vec![Task { stop, ended, handle }]))
    }

    /// Adds other tasks, to be stopped together.
    pub(in crate::serve) fn join(&mut self, mut other: BackgroundTasks) {
        self.0.append(&mut other.0);
    }
}

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        let (stops, ends): (Vec<_>, Vec<_>) =
            self.0.drain(..).map(|Task { stop, ended, handle }| (stop, (ended, handle))).unzip();
        drop(stops);
        let deadline = Instant::now() + STOP_TIMEOUT;
        for (ended, handle) in ends {
            let left = deadline.saturating_duration_since(Instant::now());
            if ended.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                let thread = handle.thread().name().unwrap_or_default().to_owned();
                tracing::warn!(thread, "a thread did not stop, probably because the disk blocks it");
                continue;
            }
            let _ = handle.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_task_delays_the_end_for_seconds_only() {
        let (_disk, wait_disk) = channel::<()>();
        let blocked = BackgroundTasks::spawn("blocked", move |_| assert!(wait_disk.recv().is_err())).unwrap();
        let mut tasks = BackgroundTasks::spawn("ends", |stopped| assert!(stopped.recv().is_err())).unwrap();
        tasks.join(blocked);
        let began = Instant::now();
        drop(tasks);
        let took = began.elapsed();
        assert!((STOP_TIMEOUT..STOP_TIMEOUT * 5).contains(&took), "the end took {took:?}");
    }
}
