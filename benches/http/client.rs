//! The client that drives both servers: raw sockets that are kept open, prebuilt requests, answers counted and dropped.
//!
//! It does as little as can be done, since it shares the processor with the server that it drives.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::StatusCode;
use memchr::memmem;
use tokio::net::TcpStream;

use crate::exchange::{HEAD_END, Recorded};

/// Bytes taken from a socket at once.
const READ_BYTES: usize = 256 << 10;

/// The measurements of some connections together.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// The latency of each request, in microseconds, ascending.
    pub latencies_us: Vec<f64>,
    /// The time of all requests together.
    pub elapsed: Duration,
}

impl Load {
    /// Requests per second.
    pub fn per_s(&self) -> f64 {
        self.count() / self.elapsed.as_secs_f64()
    }

    /// The number of answered requests.
    pub fn count(&self) -> f64 {
        self.latencies_us.len() as f64
    }

    /// The latency below which a share of the requests stayed, in microseconds.
    pub fn quantile_us(&self, hundredths: usize) -> f64 {
        let position = self.latencies_us.len() * hundredths / 100;
        self.latencies_us
            .get(position)
            .or(self.latencies_us.last())
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// A request, and the expected answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request's bytes.
    pub request: Vec<u8>,
    /// The answer's status.
    pub status: StatusCode,
    /// The length of the answer's body, in bytes.
    pub body_bytes: usize,
    /// By how many bytes it may be longer or shorter.
    pub tolerance: usize,
}

/// Sends requests over some connections for some time, one after the other and all again and again.
pub async fn drive(
    address: SocketAddr,
    exchanges: &Arc<[Exchange]>,
    connections: usize,
    time: Duration,
) -> Load {
    let mut opened = Vec::with_capacity(connections);
    for _ in 0..connections {
        opened.push(Connection::open(address).await);
    }
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let tasks: Vec<_> = opened
        .into_iter()
        .map(|mut connection| {
            let (exchanges, next) = (Arc::clone(exchanges), Arc::clone(&next));
            tokio::spawn(async move {
                let mut latencies_us = Vec::new();
                while began.elapsed() < time {
                    // One counter for all, so that each request is repeated only after all others.
                    let exchange =
                        &exchanges[next.fetch_add(1, Ordering::Relaxed) % exchanges.len()];
                    let sent = Instant::now();
                    connection.send(&exchange.request).await;
                    let (head, length) = connection.receive(|_| {}).await;
                    // Limits, request id and date may differ. The status must not, and the body's length only within
                    // the tolerance.
                    let same = head.get(9..12) == Some(exchange.status.as_str().as_bytes())
                        && length.abs_diff(exchange.body_bytes) <= exchange.tolerance;
                    assert!(
                        same,
                        "another answer than before: {}",
                        String::from_utf8_lossy(&head)
                    );
                    latencies_us.push(sent.elapsed().as_secs_f64() * 1e6);
                }
                latencies_us
            })
        })
        .collect();
    let mut load = Load::default();
    for task in tasks {
        load.latencies_us
            .extend(task.await.expect("the connection works to the end"));
    }
    load.elapsed = began.elapsed();
    load.latencies_us.sort_unstable_by(f64::total_cmp);
    load
}

/// Sends a request once. Returns its answer.
pub async fn fetch(address: SocketAddr, request: &[u8]) -> Recorded {
    Connection::open(address).await.ask(request).await
}

/// A connection that is kept open.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects to a server.
    pub async fn open(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address)
            .await
            .expect("the server takes the connection");
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        Connection {
            stream,
            buffer: vec![0; READ_BYTES],
        }
    }

    /// Sends a request. Returns its answer.
    pub async fn ask(&mut self, request: &[u8]) -> Recorded {
        self.send(request).await;
        let mut body = Vec::new();
        let (head, _) = self.receive(|piece| body.extend_from_slice(piece)).await;
        Recorded { head, body }
    }

    async fn send(&mut self, mut request: &[u8]) {
        while !request.is_empty() {
            match self.stream.try_write(request) {
                Ok(written) => request = &request[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stream
                        .writable()
                        .await
                        .expect("the connection stays open");
                }
                Err(error) => panic!("the request cannot be sent: {error}"),
            }
        }
    }

    /// Reads some bytes into the buffer from a position on. Returns their number.
    async fn read(&mut self, from: usize) -> usize {
        loop {
            match self.stream.try_read(&mut self.buffer[from..]) {
                Ok(0) => panic!("the server closed the connection before the answer's end"),
                Ok(read) => return read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stream
                        .readable()
                        .await
                        .expect("the connection stays open");
                }
                Err(error) => panic!("the answer cannot be read: {error}"),
            }
        }
    }

    /// Reads an answer, handing over its body piece by piece. Returns the head and the body's length.
    async fn receive(&mut self, mut take: impl FnMut(&[u8])) -> (Vec<u8>, usize) {
        let mut filled = 0;
        let end = loop {
            filled += self.read(filled).await;
            if let Some(at) = memmem::find(&self.buffer[..filled], HEAD_END) {
                break at + HEAD_END.len();
            }
        };
        let head = self.buffer[..end].to_vec();
        let length = content_length(&head);
        let mut received = filled - end;
        take(&self.buffer[end..filled]);
        while received < length {
            let read = self.read(0).await;
            take(&self.buffer[..read]);
            received += read;
        }
        assert_eq!(received, length, "the answer is longer than its head says");
        (head, length)
    }
}

/// The length of the body after a head. A 304 has none, whatever its head says.
fn content_length(head: &[u8]) -> usize {
    const NAME: &[u8] = b"\r\ncontent-length: ";
    if head.get(9..12) == Some(b"304") {
        return 0;
    }
    let after = memmem::find(head, NAME).map_or(&head[..0], |at| &head[at + NAME.len()..]);
    let digits = after.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'))
}
