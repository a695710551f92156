//! A background thread that stops with the server.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The time to wait for a thread to stop. The disk may block it.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// A running thread. Dropping this stops it.
pub struct BackgroundTask {
    /// `None` while it is stopped.
    running: Option<(Sender<()>, JoinHandle<()>)>,
    /// Disconnected once the thread has ended.
    ended: Receiver<()>,
}

impl BackgroundTask {
    /// Starts a thread. It must stop when its receiver is disconnected.
    pub fn spawn(
        name: &str,
        work: impl FnOnce(&Receiver<()>) + Send + 'static,
    ) -> io::Result<BackgroundTask> {
        let (stop, stopped) = channel();
        let (alive, ended) = channel();
        let handle = Builder::new().name(name.to_owned()).spawn(move || {
            // Dropped at the end, also by a panic.
            let _alive: Sender<()> = alive;
            work(&stopped);
        })?;
        Ok(BackgroundTask {
            running: Some((stop, handle)),
            ended,
        })
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        let Some((stop, handle)) = self.running.take() else {
            return;
        };
        drop(stop);
        if self.ended.recv_timeout(STOP_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            let thread = handle.thread().name().unwrap_or_default().to_owned();
            tracing::warn!(
                thread,
                "a thread did not stop, probably because the disk blocks it"
            );
            return;
        }
        let _ = handle.join();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_blocked_task_delays_the_end_for_seconds_only() {
        let (_disk, wait_disk) = channel::<()>();
        let blocked =
            BackgroundTask::spawn("blocked", move |_| assert!(wait_disk.recv().is_err())).unwrap();
        let began = Instant::now();
        drop(blocked);
        let took = began.elapsed();
        assert!(
            (STOP_TIMEOUT..STOP_TIMEOUT * 5).contains(&took),
            "the end took {took:?}"
        );
    }
}
