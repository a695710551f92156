//! The listener: on an address, on an address shared with an older server, or from systemd's socket activation. And the
//! options of the sockets that it accepts.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};

/// The length of the listener's queue of connections that are not accepted yet.
const BACKLOG: i32 = 1024;

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
