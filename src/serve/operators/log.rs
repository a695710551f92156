//! The log. A thread writes its lines to standard error, so responses never wait for a slow reader. Lines are dropped
//! and counted if they cannot be written, or if the queue is full.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;

/// The maximum number of queued lines. A line has about 300 bytes.
const MAX_WAITING: usize = 1 << 16;
/// The maximum time to wait for queued lines when the log is dropped.
const END_WAIT: Duration = Duration::from_secs(2);
/// The pause before the next attempt to put the end message into a full queue.
const END_PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Default)]
pub struct LostLines(Arc<AtomicU64>);

impl LostLines {
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
enum Message {
    Line(Vec<u8>),
    /// The last message. The thread drops the sender after writing all lines before it.
    End(SyncSender<()>),
}

/// A writer of whole lines that never blocks and never fails. It sends them to the log's thread.
#[derive(Clone)]
pub struct Lines {
    messages: SyncSender<Message>,
    lost: LostLines,
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self
            .messages
            .try_send(Message::Line(line.to_vec()))
            .is_err()
        {
            self.lost.add();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Lines;

    fn make_writer(&'a self) -> Lines {
        self.clone()
    }
}

/// The open log. Dropping it writes the queued lines, within a time limit.
#[must_use = "lines are written as long as this is kept"]
pub struct Log {
    lines: Lines,
}

impl Log {
    /// Opens the log on standard error.
    pub fn to_stderr() -> io::Result<(Lines, Log)> {
        // A separate file handle: otherwise the thread would hold the lock of `io::stderr` while it writes.
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let (messages, received) = sync_channel(MAX_WAITING);
        let lines = Lines {
            messages,
            lost: LostLines::default(),
        };
        let lost = lines.lost.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_lines(&received, stderr, &lost))?;
        Ok((lines.clone(), Log { lines }))
    }

    pub fn lost(&self) -> LostLines {
        self.lines.lost.clone()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let until = Instant::now() + END_WAIT;
        let (alive, ended) = sync_channel(0);
        let mut end = Message::End(alive);
        while let Err(refused) = self.lines.messages.try_send(end) {
            if Instant::now() >= until {
                return;
            }
            end = match refused {
                TrySendError::Full(end) => end,
                TrySendError::Disconnected(_) => return,
            };
            thread::sleep(END_PAUSE);
        }
        // Returns when all is written, or after the time limit.
        let _ = ended.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

fn write_lines(messages: &Receiver<Message>, mut output: impl Write, lost: &LostLines) {
    for message in messages {
        match message {
            Message::Line(line) => {
                if output.write_all(&line).is_err() {
                    lost.add();
                }
            }
            Message::End(written) => return drop(written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 {
                Err(io::ErrorKind::StorageFull.into())
            } else {
                Ok(taken)
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn lost_lines_are_counted() {
        let (messages, received) = sync_channel(3);
        let mut lines = Lines {
            messages,
            lost: LostLines::default(),
        };
        // The fourth line finds the queue full.
        for (line, lost) in [("12345\n", 0), ("12345\n", 0), ("1\n", 0), ("1\n", 1)] {
            lines.write_all(line.as_bytes()).unwrap();
            lines.flush().unwrap();
            assert_eq!(lines.lost.count(), lost, "{line:?}");
        }
        let lost = lines.lost.clone();
        drop(lines);
        write_lines(&received, Full(10), &lost);
        assert_eq!(lost.count(), 3, "two that could not be written");
    }

    #[test]
    fn lines_after_the_end_are_not_written() {
        let (messages, received) = sync_channel(3);
        let (alive, _ended) = sync_channel(0);
        for message in [
            Message::Line(b"a\n".to_vec()),
            Message::End(alive),
            Message::Line(b"b\n".to_vec()),
        ] {
            messages.send(message).unwrap();
        }
        let mut written = Vec::new();
        write_lines(&received, &mut written, &LostLines::default());
        assert_eq!(written, b"a\n");
    }
}
