//! Opens the listener: on an address, on an address shared with an older server, or from systemd's socket activation.
//! And starts the threads that serve its connections. Each has its own single-threaded runtime, so threads neither wake
//! each other nor steal work.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::thread::{self, available_parallelism};
use std::time::Duration;

use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};
use tokio::runtime::{Builder, Handle};

/// The length of the listener's queue of connections that are not accepted yet.
const BACKLOG: i32 = 1024;

/// The open files that are reserved for other uses than connections, such as the database and the log.
const RESERVED_FILES: usize = 32;
/// The same for each runtime.
const FILES_PER_PROCESSOR: usize = 4;
/// The connections that are allowed, however few files may be open.
const MIN_CONNECTIONS: usize = 8;

/// Listens on an address. With `share`, an older server may keep listening on the same address (`SO_REUSEPORT`).
/// Without it, a second server fails to start.
pub fn bind(address: SocketAddr, share: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Closed connections of an earlier server must not block the address.
    socket.set_reuse_address(true)?;
    if share {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Makes the kernel drop new connections to this listener. Then its queue can be emptied before it is closed, since
/// closing resets the connections in the queue. Callers retry within a second, and reach the server that shares the
/// address. Handshakes that are under way are still reset, unless `net.ipv4.tcp_migrate_req` is 1. Must not be used on
/// a listener that other processes hold too.
pub fn drop_new(listener: &impl AsFd) -> io::Result<()> {
    // A packet filter of one instruction: keep 0 bytes of every packet (BPF_RET | BPF_K).
    let drop_all = SockFilter::new(0x06, 0, 0, 0);
    SockRef::from(listener).attach_filter(&[drop_all])
}

/// The listener that systemd opened for this process, if any (`sd_listen_fds(3)`). More than one is an error: callers
/// of the others would wait for ever.
pub fn activated() -> io::Result<Option<TcpListener>> {
    let mut passed = listenfd::ListenFd::from_env();
    if passed.len() > 1 {
        return Err(io::Error::other(format!(
            "systemd passes {} sockets, and medfeed serves one; to replace an address of the socket unit, put an empty \
             `ListenStream=` line before the new one",
            passed.len()
        )));
    }
    let listener = passed.take_tcp_listener(0)?;
    if let Some(listener) = &listener {
        listener.set_nonblocking(true)?;
    }
    Ok(listener)
}

/// The maximum number of unsent bytes in the kernel per connection.
const MAX_UNSENT_BYTES: u32 = 16 << 10;

/// The time for which the kernel waits for a caller to receive sent bytes.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// Sets socket options. `TCP_NODELAY`: responses are written whole, so delaying them is of no use. `TCP_NOTSENT_LOWAT`:
/// otherwise the kernel would buffer megabytes per slow reader, and the server could not detect slow readers.
/// `TCP_USER_TIMEOUT`: the kernel drops connections whose callers receive nothing, also those that the server closed.
pub fn prepare(stream: &impl AsFd) -> io::Result<()> {
    let stream = SockRef::from(stream);
    stream.set_tcp_nodelay(true)?;
    stream.set_tcp_notsent_lowat(MAX_UNSENT_BYTES)?;
    stream.set_tcp_user_timeout(Some(SEND_TIMEOUT))
}

/// Raises the soft limit of open files to the hard limit. Returns the number of connections that it allows, up to
/// `wanted`.
pub fn raise_file_limit(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let Some(files) = files else { return wanted };
    let processors = available_parallelism().map_or(1, |count| count.get());
    let files = usize::try_from(files).unwrap_or(usize::MAX);
    room_for_connections(files, processors).min(wanted)
}

/// The number of connections of a process that may open so many files.
fn room_for_connections(files: usize, processors: usize) -> usize {
    files
        .saturating_sub(RESERVED_FILES + FILES_PER_PROCESSOR * processors)
        .max(MIN_CONNECTIONS)
}

/// The running threads. They end with the process.
#[derive(Debug)]
pub struct Workers {
    workers: Vec<Handle>,
    next: usize,
}

impl Workers {
    /// Starts one thread per processor.
    pub fn start() -> io::Result<Workers> {
        let count = available_parallelism().map_or(1, |count| count.get());
        let workers = (0..count).map(start_worker).collect::<io::Result<_>>()?;
        Ok(Workers { workers, next: 0 })
    }

    /// Returns the workers in turn.
    pub fn next_worker(&mut self) -> &Handle {
        self.next = (self.next + 1) % self.workers.len();
        &self.workers[self.next]
    }
}

fn start_worker(number: usize) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(run)?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_open_files_are_reserved_for_other_uses() {
        let cases = [
            (0, 2, 8),
            (40, 2, 8),
            (48, 2, 8),
            (49, 2, 9),
            (80, 2, 40),
            (80, 16, 8),
            (1024, 2, 984),
            (1024, 8, 960),
            (1024, 64, 736),
            (usize::MAX, 8, usize::MAX - 64),
        ];
        for (files, processors, room) in cases {
            let found = room_for_connections(files, processors);
            assert_eq!(found, room, "{files} files, {processors} processors");
        }
    }
}
