//! Time limits of a connection: how long a request's head may take, how long a caller may be idle, and how long it may
//! take nothing of an answer.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::places::Activity;

/// The time limits.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the first byte of a request's head to its last; for the first request, from the connection's beginning.
    pub header: Duration,
    /// From the end of an answer to the first byte of the next request.
    pub idle: Duration,
    /// How long a write may make no progress.
    pub stalled_write: Duration,
}

/// A stream that fails with [`io::ErrorKind::TimedOut`] when its caller takes too long.
#[derive(Debug)]
pub struct GuardedStream<S> {
    inner: S,
    timeouts: Timeouts,
    activity: Activity,
    /// Since when the head of a request is being read; `None` between requests.
    head_since: Option<Instant>,
    /// When the last byte went out.
    idle_since: Instant,
    /// Since when a write makes no progress.
    stalled_since: Option<Instant>,
    read_timer: Pin<Box<Sleep>>,
    write_timer: Pin<Box<Sleep>>,
}

impl<S> GuardedStream<S> {
    /// Guards a stream from now on.
    pub fn new(inner: S, timeouts: Timeouts, activity: Activity) -> GuardedStream<S> {
        let now = Instant::now();
        GuardedStream {
            inner,
            timeouts,
            activity,
            head_since: Some(now),
            idle_since: now,
            stalled_since: None,
            read_timer: Box::pin(sleep_until(now)),
            write_timer: Box::pin(sleep_until(now)),
        }
    }

    /// Until when something must come.
    fn read_deadline(&self) -> Option<Instant> {
        // Who still has to take the last answer is held to the time for that.
        if self.stalled_since.is_some() {
            return None;
        }
        match (self.activity.is_answering(), self.head_since) {
            (true, _) => None,
            (false, Some(since)) => Some(since + self.timeouts.header),
            (false, None) => Some(self.idle_since + self.timeouts.idle),
        }
    }

    fn wrote(&mut self, written: &Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled_since = None;
            self.idle_since = Instant::now();
            return Poll::Pending;
        }
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        expire(&mut self.write_timer, since + self.timeouts.stalled_write, cx)
            .map(|()| Err(timed_out("taking its answer")))
    }
}

/// Ready when the deadline has passed; else wakes the task then.
fn expire(timer: &mut Pin<Box<Sleep>>, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
    if timer.deadline() != deadline {
        timer.as_mut().reset(deadline);
    }
    timer.as_mut().poll(cx)
}

fn timed_out(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("the caller took too long {what}"))
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        if this.activity.is_answering() {
            // The head came whole; what comes now belongs to the next one.
            this.head_since = None;
        }
        match Pin::new(&mut this.inner).poll_read(cx, buffer) {
            Poll::Ready(read) => {
                if buffer.filled().len() > before && this.head_since.is_none() && !this.activity.is_answering() {
                    this.head_since = Some(Instant::now());
                }
                Poll::Ready(read)
            }
            Poll::Pending => match this.read_deadline() {
                Some(deadline) => {
                    expire(&mut this.read_timer, deadline, cx).map(|()| Err(timed_out("sending a request")))
                }
                None => Poll::Pending,
            },
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        // Writing means that the head was read.
        this.head_since = None;
        this.activity.send();
        let written = Pin::new(&mut this.inner).poll_write(cx, bytes);
        let expired = this.wrote(&written, cx);
        if expired.is_ready() { expired } else { written }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        this.head_since = None;
        this.activity.send();
        let written = Pin::new(&mut this.inner).poll_write_vectored(cx, slices);
        let expired = this.wrote(&written, cx);
        if expired.is_ready() { expired } else { written }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let flushed = Pin::new(&mut this.inner).poll_flush(cx);
        if flushed.is_ready() {
            this.activity.sent();
        }
        // hyper does not read again after an answer when it has read in vain before: the idle time is set here.
        if flushed.is_ready()
            && let Some(deadline) = this.read_deadline()
            && expire(&mut this.read_timer, deadline, cx).is_ready()
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

    const TIMEOUTS: Timeouts = Timeouts {
        header: Duration::from_secs(10),
        idle: Duration::from_secs(60),
        stalled_write: Duration::from_secs(30),
    };

    async fn seconds_until_error<T>(work: impl Future<Output = io::Result<T>>) -> u64 {
        let begun = Instant::now();
        let error = work.await.map(|_| ()).expect_err("the time should run out");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_ten_seconds_from_the_beginning() {
        let (mut caller, server) = duplex(64);
        let mut server = GuardedStream::new(server, TIMEOUTS, Activity::default());
        tokio::spawn(async move {
            // A byte a second keeps nothing alive.
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
        let activity = Activity::default();
        let mut server = GuardedStream::new(server, TIMEOUTS, activity.clone());
        caller.write_all(b"request").await.unwrap();
        let mut buffer = [0; 64];
        assert_eq!(server.read(&mut buffer).await.unwrap(), 7);
        assert!(activity.begin());
        tokio::time::sleep(Duration::from_secs(25)).await;
        activity.end();
        server.write_all(b"answer").await.unwrap();
        assert_eq!(seconds_until_error(server.read(&mut buffer)).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_being_answered_has_no_limit() {
        let (_caller, server) = duplex(64);
        let activity = Activity::default();
        let mut server = GuardedStream::new(server, TIMEOUTS, activity.clone());
        assert!(activity.begin());
        let mut buffer = [0; 64];
        let read = tokio::time::timeout(Duration::from_secs(3600), server.read(&mut buffer)).await;
        assert!(read.is_err(), "nothing came, and nothing failed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_may_stall_for_half_a_minute() {
        let (_caller, server) = duplex(64);
        let mut server = GuardedStream::new(server, TIMEOUTS, Activity::default());
        assert_eq!(seconds_until_error(server.write_all(&[0; 100])).await, 30);
    }
}
