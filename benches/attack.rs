//! The times of a customer's requests during an attack of 2,000 connections from 32 addresses. Some send the head of a
//! request slowly, some read slowly, and some are idle. In the second half, attackers connect again as soon as they are
//! closed. Then 64 connections from each of 17 addresses read pages of the feed slowly, with another customer's key.
//!
//!     cargo bench --bench attack
//!     cargo bench --bench attack -- PROGRAM     # of another build

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod support;

#[path = "http/child.rs"]
mod child;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use child::Server;
use support::machine::{Table, print_machine, quantiles};
use support::world::{Share, Size, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::time::sleep;

const ATTACKERS: usize = 2_000;
const ADDRESSES: usize = 32;
/// The slow readers with a key, and their addresses.
const READERS: usize = 17 * 64;
const READER_ADDRESSES: usize = 17;
/// The bytes that such a reader takes per pause: 4 KiB a second.
const PIECE: usize = 2 << 10;
/// The time for which customers are measured per row.
const TIME: Duration = Duration::from_secs(10);
/// The pause between two requests of a customer.
const PAUSE: Duration = Duration::from_millis(5);
/// The pause between two bytes of an attacker.
const TRICKLE: Duration = Duration::from_millis(500);
/// A large answer that needs no key.
const LARGE: &[u8] = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n";

#[derive(Default)]
struct Attack {
    comes_again: AtomicBool,
    is_over: AtomicBool,
    connected: AtomicUsize,
}

/// Connects as an attacker, again and again until the attack is over.
async fn attack(number: usize, server: SocketAddr, attack: Arc<Attack>) {
    while !attack.is_over.load(Ordering::Relaxed) {
        attack.connected.fetch_add(1, Ordering::Relaxed);
        // Returns when the server closes the connection.
        let _ = hold(number, server).await;
        while !attack.comes_again.load(Ordering::Relaxed) {
            sleep(TRICKLE).await;
        }
    }
}

/// Holds a connection for as long as the server lets it.
async fn hold(number: usize, server: SocketAddr) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    let host = u8::try_from(1 + number % ADDRESSES).expect("few addresses");
    socket.bind(SocketAddr::new(IpAddr::from([127, 0, 1, host]), 0))?;
    socket.set_recv_buffer_size(4 << 10)?;
    let mut stream = socket.connect(server).await?;
    let mut bytes = [0; 16];
    match number % 3 {
        0 => loop {
            stream.write_all(b"G").await?;
            tokio::select! {
                read = stream.read(&mut bytes) => return read.map(drop),
                () = sleep(TRICKLE) => {}
            }
        },
        1 => {
            stream.write_all(&LARGE.repeat(50)).await?;
            while stream.read(&mut bytes).await? > 0 {
                sleep(TRICKLE).await;
            }
            Ok(())
        }
        _ => stream.read(&mut bytes).await.map(drop),
    }
}

/// Reads pages of the feed with a key, slowly, and again and again until the attack is over.
async fn read_slowly(number: usize, server: SocketAddr, request: Arc<[u8]>, attack: Arc<Attack>) {
    let host = u8::try_from(1 + number % READER_ADDRESSES).expect("few addresses");
    while !attack.is_over.load(Ordering::Relaxed) {
        attack.connected.fetch_add(1, Ordering::Relaxed);
        // Fails when the server closes the connection.
        let _ = hold_with_key([127, 0, 2, host], server, &request).await;
    }
}

async fn hold_with_key(source: [u8; 4], server: SocketAddr, request: &[u8]) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(IpAddr::from(source), 0))?;
    socket.set_recv_buffer_size(4 << 10)?;
    let mut stream = socket.connect(server).await?;
    let mut bytes = [0; PIECE];
    stream.write_all(&request.repeat(20)).await?;
    while stream.read(&mut bytes).await? > 0 {
        sleep(TRICKLE).await;
    }
    Ok(())
}

/// Sends a customer's request. Returns its connection.
async fn ask(kept: Option<TcpStream>, server: SocketAddr, request: &[u8]) -> io::Result<TcpStream> {
    let mut stream = match kept {
        Some(kept) => kept,
        None => TcpStream::connect(server).await?,
    };
    stream.write_all(request).await?;
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if length == Some(body.len()) {
            return if head.starts_with("HTTP/1.1 200") {
                Ok(stream)
            } else {
                Err(io::Error::other(head.to_owned()))
            };
        }
    }
}

/// Returns the latencies of a customer in ms, in order, and the number of its errors. Runs on a thread of its own.
fn measure(server: SocketAddr, key: &str, is_kept: bool, time: Duration) -> (Vec<f64>, usize) {
    let request =
        format!("GET /v1/conferences?limit=5 HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\n\r\n");
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (mut latencies, mut errors, begun) = (Vec::new(), 0, Instant::now());
        let mut kept = None;
        while begun.elapsed() < time {
            let asked = Instant::now();
            match ask(kept.take().filter(|_| is_kept), server, request.as_bytes()).await {
                Ok(stream) => kept = Some(stream),
                Err(error) => {
                    println!("error: {error}");
                    errors += 1;
                }
            }
            latencies.push(asked.elapsed().as_secs_f64() * 1e3);
            sleep(PAUSE).await;
        }
        (latencies, errors)
    })
}

fn main() {
    // Without cargo's `--bench` this is a test run, which only checks that everything works.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let program = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_medfeed").to_owned());
    let (attackers, time) = if is_test {
        (100, Duration::from_millis(200))
    } else {
        (ATTACKERS, TIME)
    };
    print_machine("cargo bench --bench attack");
    raise_file_limit();
    let world = World::build(
        Size {
            conferences: 600,
            journals: 500,
        },
        &[Share::All, Share::All],
    );
    let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "error", "--db"];
    let server = Server::start(Command::new(program).args(serve).arg(world.path()));
    server.settle();
    let (address, key) = (server.address, &world.keys[0]);
    let mut table = Table::new(&[
        "a customer",
        "requests",
        "errors",
        "p50 ms",
        "p99 ms",
        "most ms",
        "server's CPU s",
    ]);
    let mut add = |what: &str| {
        thread::scope(|scope| {
            let before = server.cpu_s();
            let measured = [true, false]
                .map(|is_kept| scope.spawn(move || measure(address, key, is_kept, time)));
            for (measured, connection) in measured
                .into_iter()
                .zip(["kept connection", "new connections"])
            {
                let (latencies, errors) = measured.join().expect("a customer");
                let [p50, p99, most] =
                    quantiles(&latencies, [50, 99, 100]).map(|ms| format!("{ms:.2}"));
                let cpu_s = format!("{:.2}", server.cpu_s() - before);
                let what = format!("{what}, {connection}");
                table.add(&[&what, &latencies.len(), &errors, &p50, &p99, &most, &cpu_s]);
            }
        });
    };
    add("no attack");
    let attacking = Arc::new(Attack::default());
    let attacked = Arc::clone(&attacking);
    let runtime = run_attackers(&attacking, move || {
        for number in 0..attackers {
            tokio::spawn(attack(number, address, Arc::clone(&attacked)));
        }
    });
    thread::sleep(time / 4);
    add("2,000 slow connections");
    attacking.comes_again.store(true, Ordering::Relaxed);
    thread::sleep(time / 4);
    let before = attacking.connected.load(Ordering::Relaxed);
    add("they come again at once");
    let again = attacking.connected.load(Ordering::Relaxed) - before;
    attacking.is_over.store(true, Ordering::Relaxed);
    runtime.join().expect("the attackers");
    add("after the attack");

    let readers = if is_test { 100 } else { READERS };
    let request = format!(
        "GET /v1/conferences/changes?limit=1000 HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\n\r\n",
        world.keys[1]
    );
    let request: Arc<[u8]> = request.into_bytes().into();
    let reading = Arc::new(Attack::default());
    let attacked = Arc::clone(&reading);
    let runtime = run_attackers(&reading, move || {
        for number in 0..readers {
            let (request, attacked) = (Arc::clone(&request), Arc::clone(&attacked));
            tokio::spawn(read_slowly(number, address, request, attacked));
        }
    });
    thread::sleep(time / 4);
    let before = reading.connected.load(Ordering::Relaxed);
    add("17 × 64 slow readers with a key");
    let read_again = reading.connected.load(Ordering::Relaxed) - before;
    reading.is_over.store(true, Ordering::Relaxed);
    runtime.join().expect("the readers");
    table.print();
    for (who, count) in [("attackers", again), ("slow readers", read_again)] {
        println!(
            "connections of {who} who came again: {:.0} a second",
            count as f64 / time.as_secs_f64()
        );
    }
    println!(
        "memory of the server at the most: {:.0} MiB",
        server.memory_mib().1
    );
}

/// Runs the attackers that `spawn` starts on a thread of its own, until the attack is over.
fn run_attackers(
    attack: &Arc<Attack>,
    spawn: impl FnOnce() + Send + 'static,
) -> thread::JoinHandle<()> {
    let attack = Arc::clone(attack);
    thread::spawn(move || {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            spawn();
            while !attack.is_over.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(10)).await;
            }
        });
    })
}

/// Raises this process's limit of open files to its maximum.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )
    .expect("the limit of open files can be raised");
}
