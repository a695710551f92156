//! The least rate at which a caller must read responses, over a whole connection.
//!
//! The stream is below TLS, directly on the socket, where only a slow caller blocks writes. A caller has a time budget
//! for blocked writes. Each byte that it reads adds the time of one byte at the least rate. So the sizes of responses
//! do not matter, nor do bursts: a slow reader with large buffers may read 100 KB at once, then nothing for a minute.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::api::observe::CloseReason;
use crate::serve::connection::guard::{expire, timed_out};
use crate::serve::connection::state::ConnectionState;

/// The largest budget that a caller can earn, as a multiple of the write timeout.
const MAX_TIMEOUTS: u32 = 4;

/// The head and body of a response up to this size are sent in one plain write, in bytes.
const MAX_JOINED_BYTES: usize = 16 << 10;

/// The limits for slow readers.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The initial budget: the time for which writes may be blocked.
    pub write_timeout: Duration,
    /// The least rate, in bytes per second. With 0, every byte restores the whole write timeout.
    pub least_rate: u32,
}

/// A stream that fails with [`io::ErrorKind::TimedOut`] when its caller reads too slowly.
#[derive(Debug)]
pub struct PacedStream<S> {
    inner: S,
    pace: Pace,
    state: ConnectionState,
    /// The time for which writes may still be blocked.
    budget: Duration,
    blocked_since: Option<Instant>,
    /// Whether the caller is behind the good rate, so that `state` counts its reads.
    is_behind: bool,
    timer: Pin<Box<Sleep>>,
    discard: fn(&S),
}

impl<S> PacedStream<S> {
    /// Wraps a stream. `discard` is called before the stream of a slow caller is dropped: it must discard the unsent
    /// bytes in the kernel.
    pub fn new(inner: S, pace: Pace, state: ConnectionState, discard: fn(&S)) -> PacedStream<S> {
        let (budget, timer) = (pace.write_timeout, Box::pin(sleep_until(Instant::now())));
        PacedStream { inner, pace, state, budget, blocked_since: None, is_behind: false, timer, discard }
    }

    fn note_written(&mut self, bytes: usize) {
        if let Some(since) = self.blocked_since.take() {
            self.budget = self.budget.saturating_sub(since.elapsed());
        }
        let bytes_wide = u64::try_from(bytes).unwrap_or(u64::MAX);
        let earned = bytes_wide.saturating_mul(1_000_000).checked_div(u64::from(self.pace.least_rate));
        self.budget = match earned.map(Duration::from_micros) {
            Some(earned) => (self.budget + earned).min(self.pace.write_timeout.saturating_mul(MAX_TIMEOUTS)),
            None => self.pace.write_timeout,
        };
        if self.is_behind {
            self.is_behind = self.state.note_written(bytes);
        }
    }

    fn account(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                self.note_written(bytes);
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                if self.blocked_since.is_none() {
                    self.blocked_since = Some(Instant::now());
                    self.is_behind = true;
                    self.state.note_blocked();
                }
                let since = self.blocked_since.unwrap_or_else(Instant::now);
                expire(&mut self.timer, since + self.budget, cx).map(|()| {
                    self.state.expire(CloseReason::Slow);
                    Err(timed_out("reading its response"))
                })
            }
        }
    }
}

impl<S> Drop for PacedStream<S> {
    fn drop(&mut self) {
        if matches!(self.state.close_reason(), Some((CloseReason::Slow, _))) {
            (self.discard)(&self.inner);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PacedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.account(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let written = if bytes <= MAX_JOINED_BYTES {
            let mut joined = Vec::with_capacity(bytes);
            slices.iter().for_each(|slice| joined.extend_from_slice(slice));
            Pin::new(&mut self.inner).poll_write(cx, &joined)
        } else {
            Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
        };
        self.account(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const PACE: Pace = Pace { write_timeout: Duration::from_secs(30), least_rate: 1024 };

    fn paced(buffer: usize, pace: Pace) -> (DuplexStream, PacedStream<DuplexStream>) {
        let (caller, server) = duplex(buffer);
        (caller, PacedStream::new(server, pace, ConnectionState::default(), |_| ()))
    }

    /// Starts a caller that reads this number of bytes, pauses, and repeats.
    fn take(mut caller: DuplexStream, bytes: usize, rest: Duration) {
        tokio::spawn(async move {
            let mut buffer = vec![0; bytes];
            while caller.read_exact(&mut buffer).await.is_ok() {
                tokio::time::sleep(rest).await;
            }
        });
    }

    /// Sends bytes. Returns the seconds until it failed, if it did.
    async fn send(server: &mut PacedStream<DuplexStream>, bytes: usize) -> Option<u64> {
        let begun = Instant::now();
        let error = server.write_all(&vec![0; bytes]).await.err()?;
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(server.state.close_reason().map(|(reason, _)| reason), Some(CloseReason::Slow));
        Some(begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn slower_callers_are_closed() {
        let off = Pace { least_rate: 0, ..PACE };
        let cases = [
            // Limits, socket buffer, bytes per read, pause between reads (s), expected seconds until it is closed.
            ("nothing is read", PACE, 4096, 1, 10_000, Some(34)),
            ("400 bytes a second", PACE, 4096, 400, 1, Some(55)),
            ("1 KB a second", PACE, 4096, 1000, 1, None),
            ("2 KB a second, in bursts of a minute", PACE, 131_072, 131_072, 64, None),
            ("a byte a second", PACE, 4096, 1, 1, Some(34)),
            ("a byte a second without a rate", off, 4096, 1, 1, None),
            ("nothing is read without a rate", off, 4096, 1, 10_000, Some(30)),
        ];
        for (case, pace, buffer, bytes, rest_s, expected) in cases {
            let (caller, mut server) = paced(buffer, pace);
            take(caller, bytes, Duration::from_secs(rest_s));
            let length = if bytes == 1 { 10_000 } else { 1_000_000 };
            let closed_after_s = send(&mut server, length).await;
            assert_eq!(closed_after_s, expected, "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_small_responses_count_as_one() {
        let (caller, mut server) = paced(1024, PACE);
        take(caller, 200, Duration::from_secs(1));
        let begun = Instant::now();
        let mut answers = 0;
        while send(&mut server, 500).await.is_none() {
            answers += 1;
        }
        // The budget shrinks by 800 ms per second.
        let seconds = begun.elapsed().as_secs();
        assert!((38..45).contains(&seconds) && answers > 5, "{answers} answers in {seconds} s");
    }

    #[tokio::test(start_paused = true)]
    async fn time_between_answers_costs_nothing() {
        let (caller, mut server) = paced(1 << 20, PACE);
        take(caller, 100, Duration::from_secs(10));
        for _ in 0..100 {
            assert_eq!(send(&mut server, 1000).await, None);
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unsent_bytes_are_discarded_for_slow_callers_only() {
        static DISCARDED: AtomicBool = AtomicBool::new(false);
        for slow in [false, true] {
            let (_caller, server) = duplex(64);
            let discard = |_: &DuplexStream| DISCARDED.store(true, Ordering::Relaxed);
            let mut server = PacedStream::new(server, PACE, ConnectionState::default(), discard);
            let sent = send(&mut server, if slow { 65 } else { 64 }).await;
            assert_eq!(sent.is_some(), slow);
            drop(server);
            assert_eq!(DISCARDED.load(Ordering::Relaxed), slow);
        }
    }
}
