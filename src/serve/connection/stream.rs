//! The stream between TLS and hyper. It notes the phases of the connection that only a stream can see.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::serve::connection::limits::Connection;

/// A stream of a connection.
///
/// - A caller may close its sending half after a request. hyper would drop the request, so it sees the end of the
///   stream only after the response.
/// - To a request that it cannot parse, hyper writes a bare status line. This stream drops it, and `http` sends a
///   problem.
pub struct ConnectionStream<S> {
    inner: S,
    connection: Arc<Connection>,
    /// Whether the caller closed its sending half, and hyper has not seen it yet.
    is_half_closed: bool,
}

impl<S: AsyncWrite + Unpin> ConnectionStream<S> {
    pub fn new(inner: S, connection: Arc<Connection>) -> ConnectionStream<S> {
        ConnectionStream {
            inner,
            connection,
            is_half_closed: false,
        }
    }

    fn write_noted(
        &mut self,
        bytes: usize,
        write: impl FnOnce(Pin<&mut S>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if !self.connection.is_answering() {
            return Poll::Ready(Ok(bytes));
        }
        let written = ready!(write(Pin::new(&mut self.inner)))?;
        self.connection.note_sent(written);
        Poll::Ready(Ok(written))
    }
}

/// Whether a read found the end of the stream. TLS reports an end without a goodbye as an error.
fn is_end(read: &io::Result<()>, bytes: usize) -> bool {
    match read {
        Ok(()) => bytes == 0,
        Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ConnectionStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let is_answering = self.connection.is_answering();
        if self.is_half_closed {
            // `poll_flush` wakes the task after the response.
            return if is_answering {
                Poll::Pending
            } else {
                Poll::Ready(Ok(()))
            };
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buffer));
        if is_answering && is_end(&read, buffer.filled().len() - before) {
            self.is_half_closed = true;
            self.connection.note_half_closed();
            return Poll::Pending;
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ConnectionStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write_noted(bytes.len(), |inner| inner.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        self.write_noted(bytes, |inner| inner.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.inner).poll_flush(cx));
        self.connection.finish_sending();
        if self.is_half_closed && !self.connection.is_answering() {
            cx.waker().wake_by_ref();
        }
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
