//! The log: lines are written to standard error by their own thread, so that no answer waits for the reader.
//!
//! A log that nobody reads must not stop the server: lines that cannot be written, or that come while too many wait, are
//! dropped and counted.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// The most lines that wait to be written. A line has about 300 bytes.
const MAX_WAITING: usize = 1 << 16;
/// How long the end waits for lines to be written.
const END_WAIT: Duration = Duration::from_secs(2);

/// The count of lost lines.
#[derive(Clone, Debug)]
pub struct LostLines {
    /// Lines that came while too many waited.
    dropped: ErrorCounter,
    /// Lines that could not be written.
    failed: Arc<AtomicU64>,
}

impl LostLines {
    /// The number of lost lines so far.
    pub fn count(&self) -> u64 {
        let dropped = u64::try_from(self.dropped.dropped_lines()).unwrap_or(u64::MAX);
        dropped.saturating_add(self.failed.load(Ordering::Relaxed))
    }
}

/// The open log. Dropping it first writes the waiting lines, if somebody reads them.
#[must_use = "lines are written as long as this is kept"]
#[derive(Debug)]
pub struct Log {
    guard: Option<WorkerGuard>,
    lost: LostLines,
}

impl Log {
    /// Opens the log on standard error. The returned writer takes lines, and never blocks and never fails.
    ///
    /// # Errors
    /// When the operating system gives no further file.
    pub fn to_stderr() -> io::Result<(NonBlocking, Log)> {
        // A file of its own: code that prints on standard error must not wait for a lock that is held while a line is
        // written.
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let failed = Arc::<AtomicU64>::default();
        let writer = Lenient { inner: stderr, failed: Arc::clone(&failed) };
        let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(MAX_WAITING).thread_name("log");
        let (lines, guard) = builder.finish(writer);
        let lost = LostLines { dropped: lines.error_counter(), failed };
        Ok((lines, Log { guard: Some(guard), lost }))
    }

    /// The count of lost lines.
    pub fn lost(&self) -> LostLines {
        self.lost.clone()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else { return };
        let (alive, ended) = channel::<()>();
        // In its own thread: if nobody reads the log, the guard may print about it where nobody reads either.
        let closing = thread::Builder::new().name("log end".to_owned()).spawn(move || {
            drop(guard);
            drop(alive);
        });
        if closing.is_ok() {
            // Returns when all is written, or after the time limit.
            let _ = ended.recv_timeout(END_WAIT);
        }
    }
}

/// A writer of whole lines that counts those that cannot be written, and never fails.
struct Lenient<W> {
    inner: W,
    failed: Arc<AtomicU64>,
}

impl<W: Write> Write for Lenient<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.inner.write_all(line).is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes, then fails.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_line_that_cannot_be_written_is_counted() {
        let failed = Arc::<AtomicU64>::default();
        let mut log = Lenient { inner: Full(10), failed: Arc::clone(&failed) };
        for (line, lost) in [("12345\n", 0), ("12345\n", 1), ("1\n", 2)] {
            log.write_all(line.as_bytes()).unwrap();
            log.flush().unwrap();
            assert_eq!(failed.load(Ordering::Relaxed), lost, "{line:?}");
        }
    }
}
