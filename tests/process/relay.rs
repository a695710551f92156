//! A relay to a server. It records, delays, cuts and loses answers.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::site::Random;

/// A relay. A thread of its own accepts connections.
pub struct Relay {
    /// The address for callers.
    pub address: SocketAddr,
    shared: Arc<RelayShared>,
}

struct RelayShared {
    server: Mutex<SocketAddr>,
    is_rough: AtomicBool,
    /// The bytes of answers that the next connections pass on.
    cuts: Mutex<VecDeque<usize>>,
    /// A test holds it to act before a connection is cut.
    gate: Mutex<()>,
    requests: Mutex<Vec<String>>,
    answered: AtomicU64,
}

impl Relay {
    /// A relay to a server, without faults.
    pub fn new(server: SocketAddr, seed: u64) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(RelayShared {
            server: Mutex::new(server),
            is_rough: AtomicBool::new(false),
            cuts: Mutex::default(),
            gate: Mutex::default(),
            requests: Mutex::default(),
            answered: AtomicU64::new(0),
        });
        let open = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut random = Random::new(seed);
            for caller in listener.incoming() {
                let server = *open.server.lock().unwrap();
                let (Ok(caller), Ok(server)) = (caller, TcpStream::connect(server)) else {
                    continue;
                };
                RelayShared::carry(&open, caller, server, &mut random);
            }
        });
        Relay { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of the server.
    pub fn server(&self) -> SocketAddr {
        *self.shared.server.lock().unwrap()
    }

    /// Connects to another server from now on.
    pub fn lead_to(&self, server: SocketAddr) {
        *self.shared.server.lock().unwrap() = server;
    }

    /// Sets whether new connections are delayed at random, and some of them cut, or closed without an answer.
    pub fn set_rough(&self, is_rough: bool) {
        self.shared.is_rough.store(is_rough, Ordering::Relaxed);
    }

    /// Cuts the next connection, after those with earlier cuts, after `bytes` bytes of answers.
    pub fn cut_after(&self, bytes: usize) {
        self.shared.cuts.lock().unwrap().push_back(bytes);
    }

    /// While this is held, connections stall instead of being cut.
    pub fn hold_cuts(&self) -> MutexGuard<'_, ()> {
        self.shared.gate.lock().unwrap()
    }

    /// The heads of all requests since the last call.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.requests.lock().unwrap())
    }

    /// The number of answered bytes since the last call.
    pub fn take_answered(&self) -> u64 {
        self.shared.answered.swap(0, Ordering::Relaxed)
    }

    /// The number of answered bytes since the last call of [`Relay::take_answered`].
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }
}

impl RelayShared {
    fn carry(shared: &Arc<RelayShared>, caller: TcpStream, server: TcpStream, random: &mut Random) {
        let is_rough = shared.is_rough.load(Ordering::Relaxed);
        let planned = shared.cuts.lock().unwrap().pop_front();
        let allowed = planned.unwrap_or_else(|| match random.below(24) {
            0 if is_rough => 0,
            1..8 if is_rough => random.below(60_000),
            _ => usize::MAX,
        });
        let delay = if is_rough {
            random.part_of(Duration::from_millis(8))
        } else {
            Duration::ZERO
        };
        let (from, to) = (caller.try_clone().unwrap(), server.try_clone().unwrap());
        let (there, back) = (Arc::clone(shared), Arc::clone(shared));
        std::thread::spawn(move || there.carry_requests(from, to));
        std::thread::spawn(move || back.carry_answers(server, caller, allowed, delay));
    }

    fn carry_requests(&self, mut from: TcpStream, mut to: TcpStream) {
        const END: &[u8] = b"\r\n\r\n";
        let (mut piece, mut read) = ([0; 8192], Vec::new());
        while let Ok(length @ 1..) = from.read(&mut piece) {
            read.extend_from_slice(&piece[..length]);
            while let Some(end) = read.windows(END.len()).position(|window| window == END) {
                let head: Vec<u8> = read.drain(..end + END.len()).collect();
                self.requests
                    .lock()
                    .unwrap()
                    .push(String::from_utf8(head).expect("a request in ASCII"));
            }
            if to.write_all(&piece[..length]).is_err() {
                break;
            }
        }
        end(&from, &to);
    }

    fn carry_answers(
        &self,
        mut from: TcpStream,
        mut to: TcpStream,
        mut allowed: usize,
        delay: Duration,
    ) {
        let mut piece = [0; 8192];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            std::thread::sleep(delay);
            let passed = length.min(allowed);
            if to.write_all(&piece[..passed]).is_err() {
                break;
            }
            self.answered.fetch_add(passed as u64, Ordering::Relaxed);
            allowed -= passed;
            if allowed == 0 {
                drop(self.gate.lock());
                break;
            }
        }
        end(&from, &to);
    }
}

fn end(one: &TcpStream, other: &TcpStream) {
    let _ = one.shutdown(Shutdown::Both);
    let _ = other.shutdown(Shutdown::Both);
}
