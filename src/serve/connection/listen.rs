//! Where the listener comes from: an address, an address shared with an older server, or systemd's socket activation.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};

/// The length of the listener's queue.
const BACKLOG: i32 = 1024;

/// Files reserved for the database, logs and the like when connections are limited by the system's limit.
const RESERVED_FILES: u64 = 64;

/// Listens on an address. With `share`, an older server on the same address may go on until it is stopped
/// (`SO_REUSEPORT`); without, a second start by mistake is refused.
///
/// # Errors
/// What the operating system says.
pub fn bind(address: SocketAddr, share: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Connections of a server that just ended do not block the address.
    socket.set_reuse_address(true)?;
    if share {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Makes the kernel drop what asks for a new connection on this listener, so that its queue can be emptied before it is
/// closed: whoever is still in the queue then is turned away. Callers ask again within a second, and reach the server
/// that shares the address. A listener that other processes hold too must not be treated so.
///
/// # Errors
/// What the operating system says.
pub fn drop_new(listener: &impl AsFd) -> io::Result<()> {
    // A packet filter of one instruction: keep 0 bytes of every packet (BPF_RET | BPF_K).
    let drop_all = SockFilter::new(0x06, 0, 0, 0);
    SockRef::from(listener).attach_filter(&[drop_all])
}

/// The listener that systemd opened for this process (`sd_listen_fds(3)`), if it did.
///
/// # Errors
/// When what it passed is no listening TCP socket.
pub fn activated() -> io::Result<Option<TcpListener>> {
    let listener = listenfd::ListenFd::from_env().take_tcp_listener(0)?;
    if let Some(listener) = &listener {
        listener.set_nonblocking(true)?;
    }
    Ok(listener)
}

/// The most unsent bytes that the system holds per connection.
const MAX_UNSENT_BYTES: u32 = 16 << 10;

/// Prepares a connection. Answers are written whole, so waiting for more to send only delays them (`TCP_NODELAY`). And the
/// system takes no more from us than it can send soon (`TCP_NOTSENT_LOWAT`): else it would hold megabytes for each caller
/// that reads slowly, and nobody could tell who does.
///
/// # Errors
/// What the operating system says.
pub fn prepare(stream: &impl AsFd) -> io::Result<()> {
    let stream = SockRef::from(stream);
    stream.set_tcp_nodelay(true)?;
    stream.set_tcp_notsent_lowat(MAX_UNSENT_BYTES)
}

/// Raises the soft limit of open files to the hard one, and returns how many connections fit under it.
pub fn raise_file_limit(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let Some(files) = files else { return wanted };
    // A limit below the reserve still leaves some room for connections.
    let room = files.saturating_sub(RESERVED_FILES).max(files / 2);
    usize::try_from(room).unwrap_or(usize::MAX).min(wanted)
}
