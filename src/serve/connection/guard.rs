//! Read timeouts: for a request's head, and for idle connections.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::api::observe::CloseReason;
use crate::serve::connection::state::ConnectionState;

#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the first byte of a request's head to its last. For the first request, from the start of the connection.
    pub header: Duration,
    /// From the end of a response to the first byte of the next request.
    pub idle: Duration,
}

/// A stream that fails with [`io::ErrorKind::TimedOut`] when its caller sends nothing for too long.
///
/// A caller may close its sending half after a request. hyper would drop the request, so it sees the end of the stream
/// only after the response.
#[derive(Debug)]
pub struct GuardedStream<S> {
    inner: S,
    timeouts: Timeouts,
    state: ConnectionState,
    /// The start of the current head; `None` between requests.
    head_since: Option<Instant>,
    idle_since: Instant,
    /// Whether the caller closed its sending half, and hyper has not seen it yet.
    is_half_closed: bool,
    timer: Pin<Box<Sleep>>,
}

impl<S> GuardedStream<S> {
    /// Guards a stream. The time for the first head starts now.
    pub fn new(inner: S, timeouts: Timeouts, state: ConnectionState) -> GuardedStream<S> {
        let now = Instant::now();
        let timer = Box::pin(sleep_until(now));
        GuardedStream { inner, timeouts, state, head_since: Some(now), idle_since: now, is_half_closed: false, timer }
    }

    /// The current read deadline, and the reason for closing when it passes.
    fn read_deadline(&self) -> Option<(Instant, CloseReason)> {
        // While a response is sent, the least rate applies instead.
        self.state.awaits_request().then(|| match self.head_since {
            Some(since) => (since + self.timeouts.header, CloseReason::Unfinished),
            None => (self.idle_since + self.timeouts.idle, CloseReason::Idle),
        })
    }

    fn write(&mut self, write: impl FnOnce(Pin<&mut S>) -> Poll<io::Result<usize>>) -> Poll<io::Result<usize>>
    where
        S: Unpin,
    {
        // A write means that the head is complete.
        self.head_since = None;
        self.state.start_sending();
        let written = write(Pin::new(&mut self.inner));
        if written.is_ready() {
            self.idle_since = Instant::now();
        }
        written
    }
}

/// Returns ready if the deadline has passed. Else it wakes the task at the deadline or earlier. An early timer is kept
/// when the deadline moves, since setting a timer costs more than one early wake-up.
pub(in crate::serve) fn expire(timer: &mut Pin<Box<Sleep>>, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
    if timer.deadline() > deadline {
        timer.as_mut().reset(deadline);
    }
    while timer.as_mut().poll(cx).is_ready() {
        if timer.deadline() >= deadline {
            return Poll::Ready(());
        }
        timer.as_mut().reset(deadline);
    }
    Poll::Pending
}

pub(in crate::serve) fn timed_out(action: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("the caller took too long {action}"))
}

/// Whether a read found the end of the stream. TLS reports an end without a goodbye as an error.
fn is_end(read: &io::Result<()>, bytes: usize) -> bool {
    match read {
        Ok(()) => bytes == 0,
        Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let waiting = this.state.awaits_request();
        if !waiting {
            // The head is complete. Further bytes belong to the next one.
            this.head_since = None;
        }
        if this.is_half_closed {
            // `poll_flush` wakes the task after the response.
            return if waiting { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        match Pin::new(&mut this.inner).poll_read(cx, buffer) {
            Poll::Ready(read) if !waiting && is_end(&read, buffer.filled().len() - before) => {
                this.is_half_closed = true;
                this.state.note_half_closed();
                Poll::Pending
            }
            Poll::Ready(read) => {
                if waiting && buffer.filled().len() > before && this.head_since.is_none() {
                    this.head_since = Some(Instant::now());
                    this.state.note_head_started();
                }
                Poll::Ready(read)
            }
            Poll::Pending => match this.read_deadline() {
                Some((deadline, reason)) => expire(&mut this.timer, deadline, cx).map(|()| {
                    this.state.expire(reason);
                    Err(timed_out("sending a request"))
                }),
                None => Poll::Pending,
            },
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(|inner| inner.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(|inner| inner.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let flushed = Pin::new(&mut this.inner).poll_flush(cx);
        if flushed.is_ready() {
            this.state.finish_sending();
        }
        if flushed.is_ready() && this.is_half_closed && this.state.awaits_request() {
            cx.waker().wake_by_ref();
        }
        // hyper may not read again after a response, so set the idle timer here.
        if flushed.is_ready()
            && let Some((deadline, _)) = this.read_deadline()
            && expire(&mut this.timer, deadline, cx).is_ready()
        {
            cx.waker().wake_by_ref();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const TIMEOUTS: Timeouts = Timeouts { header: Duration::from_secs(10), idle: Duration::from_secs(60) };

    async fn seconds_until_error<T>(work: impl Future<Output = io::Result<T>>) -> u64 {
        let begun = Instant::now();
        let error = work.await.map(|_| ()).expect_err("the time should run out");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_ten_seconds_from_the_beginning() {
        let (mut caller, server) = duplex(64);
        let mut server = GuardedStream::new(server, TIMEOUTS, ConnectionState::default());
        tokio::spawn(async move {
            // One byte per second does not extend the limit.
            while caller.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let mut all = Vec::new();
        assert_eq!(seconds_until_error(server.read_to_end(&mut all)).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_caller_has_a_minute_after_its_answer() {
        let (mut caller, server) = duplex(64);
        let state = ConnectionState::default();
        let mut server = GuardedStream::new(server, TIMEOUTS, state.clone());
        caller.write_all(b"request").await.unwrap();
        let mut buffer = [0; 64];
        assert_eq!(server.read(&mut buffer).await.unwrap(), 7);
        assert!(state.start_answer());
        tokio::time::sleep(Duration::from_secs(25)).await;
        state.finish_answer(false);
        server.write_all(b"answer").await.unwrap();
        server.flush().await.unwrap();
        assert_eq!(seconds_until_error(server.read(&mut buffer)).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_being_answered_has_no_limit() {
        let (_caller, server) = duplex(64);
        let state = ConnectionState::default();
        let mut server = GuardedStream::new(server, TIMEOUTS, state.clone());
        assert!(state.start_answer());
        let mut buffer = [0; 64];
        let read = tokio::time::timeout(Duration::from_secs(3600), server.read(&mut buffer)).await;
        assert!(read.is_err(), "nothing came, and nothing failed");
    }

    /// Reads a request and sends a response of a connection.
    async fn serve(caller: &mut tokio::io::DuplexStream, server: &mut GuardedStream<tokio::io::DuplexStream>) {
        let mut buffer = [0; 64];
        caller.write_all(b"request").await.unwrap();
        assert_eq!(server.read(&mut buffer).await.unwrap(), 7);
        assert!(server.state.start_answer());
        server.state.finish_answer(false);
        server.write_all(b"answer").await.unwrap();
        server.flush().await.unwrap();
        assert_eq!(caller.read(&mut buffer).await.unwrap(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn each_head_has_its_time_from_its_first_byte() {
        let (mut caller, server) = duplex(64);
        let mut server = GuardedStream::new(server, TIMEOUTS, ConnectionState::default());
        for _ in 0..3 {
            serve(&mut caller, &mut server).await;
            tokio::time::sleep(Duration::from_secs(50)).await;
        }
        // It is idle for 59 seconds and then begins a head, which has ten seconds.
        serve(&mut caller, &mut server).await;
        let mut buffer = [0; 64];
        let read = tokio::time::timeout(Duration::from_secs(59), server.read(&mut buffer)).await;
        assert!(read.is_err(), "an idle connection has a minute");
        caller.write_all(b"r").await.unwrap();
        assert_eq!(server.read(&mut buffer).await.unwrap(), 1);
        tokio::time::sleep(Duration::from_secs(5)).await;
        caller.write_all(b"e").await.unwrap();
        assert_eq!(server.read(&mut buffer).await.unwrap(), 1);
        assert_eq!(seconds_until_error(server.read(&mut buffer)).await, 5);
        assert_eq!(server.state.close_reason().map(|(reason, _)| reason), Some(CloseReason::Unfinished));
    }

    #[tokio::test(start_paused = true)]
    async fn the_reason_for_closing_is_the_limit_that_passed() {
        let (mut caller, server) = duplex(64);
        let mut server = GuardedStream::new(server, TIMEOUTS, ConnectionState::default());
        serve(&mut caller, &mut server).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        serve(&mut caller, &mut server).await;
        let mut buffer = [0; 64];
        assert_eq!(seconds_until_error(server.read(&mut buffer)).await, 60, "from its last response");
        assert_eq!(server.state.close_reason().map(|(reason, _)| reason), Some(CloseReason::Idle));
    }
}
