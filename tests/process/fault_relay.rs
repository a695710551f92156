//! A relay between a client and a server that reads each exchange as a whole, and adds a fault to one of them.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::answer_faults::{Exchange, Fault, Received, Sent, all_faults};
use super::client::{Answer, read_head};
use super::site::Random;
use crate::harness::counted;
use crate::properties::variable;

/// The delay of [`Fault::Delayed`].
const DELAY: Duration = Duration::from_millis(150);

/// A relay with a port of its own.
pub struct FaultRelay {
    address: SocketAddr,
    server: SocketAddr,
    state: Arc<Mutex<RelayState>>,
}

/// The last answers, by method and target.
#[derive(Clone, Default)]
struct Memory {
    answers: HashMap<String, Answer>,
    /// The last two requests of each method.
    last: HashMap<String, [String; 2]>,
}

#[derive(Default)]
struct RelayState {
    /// The memory at the start of each run.
    kept: Memory,
    memory: Memory,
    plan: Vec<(usize, Fault)>,
    met: Vec<String>,
    exchanges: Vec<Recorded>,
}

/// An exchange of a run.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Method and target.
    pub line: String,
    /// The faults that change it.
    pub faults: Vec<Fault>,
}

impl FaultRelay {
    pub fn new(server: SocketAddr) -> FaultRelay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<RelayState>>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for caller in listener.incoming() {
                let shared = Arc::clone(&shared);
                // An error ends the connection.
                std::thread::spawn(move || {
                    caller.and_then(|caller| carry(&caller, server, &shared))
                });
            }
        });
        FaultRelay {
            address,
            server,
            state,
        }
    }

    /// Another relay to the same server, which remembers the same answers.
    pub fn fork(&self) -> FaultRelay {
        self.fork_to(self.server)
    }

    /// Another relay, to another server, which remembers the same answers.
    pub fn fork_to(&self, server: SocketAddr) -> FaultRelay {
        let fork = FaultRelay::new(server);
        fork.state.lock().unwrap().kept = self.state.lock().unwrap().kept.clone();
        fork
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Remembers the answers so far at the start of each run.
    pub fn keep_answers(&self) {
        let mut state = self.state.lock().unwrap();
        state.kept = state.memory.clone();
    }

    /// Begins a run in which the answers with these numbers, from 0, have faults.
    pub fn begin(&self, plan: &[(usize, Fault)]) {
        let mut state = self.state.lock().unwrap();
        *state = RelayState {
            kept: state.kept.clone(),
            memory: state.kept.clone(),
            plan: plan.to_vec(),
            ..RelayState::default()
        };
    }

    /// The exchanges of this run.
    pub fn exchanges(&self) -> Vec<Recorded> {
        self.state.lock().unwrap().exchanges.clone()
    }

    /// The requests of this run that met a fault.
    pub fn met(&self) -> Vec<String> {
        self.state.lock().unwrap().met.clone()
    }
}

impl Recorded {
    /// Each fault that changes one of these exchanges, with the number of that exchange.
    pub fn cases(exchanges: &[Recorded]) -> Vec<(usize, Fault)> {
        let numbered = exchanges.iter().enumerate();
        numbered
            .flat_map(|(at, exchange)| exchange.faults.iter().map(move |fault| (at, *fault)))
            .collect()
    }
}

/// The seed, and the number of cases if it is set.
fn chosen_size() -> (u64, Option<usize>) {
    let (seed, cases) = (
        variable("MEDFEED_SEED").unwrap_or(1),
        variable("MEDFEED_CASES"),
    );
    println!("MEDFEED_SEED={seed} MEDFEED_CASES={cases:?}");
    (seed, cases.map(|cases| usize::try_from(cases).unwrap()))
}

/// Chooses cases at random: `most`, or else one of each fault, up to `quick`.
fn choose<C>(
    mut cases: Vec<C>,
    fault_of: impl Fn(&C) -> Fault,
    seed: u64,
    most: Option<usize>,
    quick: usize,
) -> Vec<C> {
    let mut random = Random::new(seed);
    for at in (1..cases.len()).rev() {
        cases.swap(at, random.below(at + 1));
    }
    if most.is_none() {
        let mut chosen = Vec::new();
        cases.retain(|case| {
            let fault = fault_of(case);
            let is_new = !chosen.contains(&fault);
            chosen.push(fault);
            is_new
        });
    }
    cases.truncate(most.unwrap_or(quick));
    cases
}

/// Runs the cases of `always`, and others that are chosen at random: as many as `MEDFEED_CASES`, or else one of each
/// fault, up to `quick`. `lane_of` returns the index of a case's lane. It also gets the number of the case.
pub fn run_cases<L: Sync, C: Send>(
    (always, others): (Vec<C>, Vec<C>),
    fault_of: impl Fn(&C) -> Fault,
    quick: usize,
    lanes: &[L],
    lane_of: impl Fn(usize, &C) -> usize,
    run: impl Fn(&L, C) + Sync,
) {
    let (seed, most) = chosen_size();
    let all = always.len() + others.len();
    let mut cases = always;
    cases.extend(choose(others, fault_of, seed, most, quick));
    let count = cases.len();
    println!("{count} of {all} cases");
    let mut of_lanes: Vec<(&L, Vec<C>)> = lanes.iter().map(|lane| (lane, Vec::new())).collect();
    for (number, case) in cases.into_iter().enumerate() {
        of_lanes[lane_of(number, &case)].1.push(case);
    }
    run_lanes(of_lanes, run);
    counted(count, "faults on the way");
}

/// Runs the cases of each lane in a thread. Panics at the end if a case did.
fn run_lanes<L: Sync, C: Send>(lanes: Vec<(&L, Vec<C>)>, run: impl Fn(&L, C) + Sync) {
    let failures = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (lane, cases) in lanes {
            let (run, failures) = (&run, &failures);
            scope.spawn(move || {
                for case in cases {
                    let ran = catch_unwind(AssertUnwindSafe(|| run(lane, case)));
                    failures.fetch_add(usize::from(ran.is_err()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(failures.into_inner(), 0, "cases that failed");
}

/// Forwards the exchanges of a connection until a fault or the client closes it.
fn carry(caller: &TcpStream, server: SocketAddr, state: &Mutex<RelayState>) -> std::io::Result<()> {
    caller.set_nodelay(true)?;
    let mut reader = BufReader::new(caller);
    while let Some(sent) = read_request(&mut reader)? {
        let received = exchange(&sent, server, state)?;
        // A client may leave before the end.
        let written = { caller }.write_all(&received.bytes);
        if received.is_closed || written.is_err() {
            break;
        }
    }
    caller.shutdown(Shutdown::Both)
}

fn exchange(
    sent: &Sent,
    server: SocketAddr,
    state: &Mutex<RelayState>,
) -> std::io::Result<Received> {
    let line = sent.line().to_owned();
    let (number, fault) = {
        let mut state = state.lock().unwrap();
        let number = state.exchanges.len();
        state.exchanges.push(Recorded {
            line: line.clone(),
            faults: Vec::new(),
        });
        (
            number,
            state
                .plan
                .iter()
                .find(|(at, _)| *at == number)
                .map(|(_, fault)| *fault),
        )
    };
    let mut answer = Answer {
        status: 200,
        headers: Vec::new(),
        body: Vec::new(),
    };
    if fault.is_none_or(Fault::is_forwarded) {
        answer = forward(sent, server)?;
        if fault == Some(Fault::RequestTwice) {
            answer = forward(sent, server)?;
        }
    }
    if fault == Some(Fault::Delayed) {
        std::thread::sleep(DELAY);
    }
    let mut state = state.lock().unwrap();
    let state = &mut *state;
    let method = line.split(' ').next().unwrap_or_default().to_owned();
    let last = state.memory.last.entry(method).or_default();
    if last[0] != line {
        last.swap(0, 1);
        last[0].clone_from(&line);
    }
    let previous = state.memory.answers.get(&line);
    let other = state.memory.answers.get(&last[1]);
    let exchange = Exchange {
        sent,
        answer: &answer,
        previous,
        other,
    };
    if let Some(recorded) = state.exchanges.get_mut(number) {
        recorded.faults = all_faults()
            .filter(|fault| fault.apply(exchange).is_some())
            .collect();
    }
    let changed = fault.and_then(|fault| fault.apply(exchange));
    if changed.is_some() {
        state.met.push(line.clone());
    }
    let received = changed
        .or_else(|| Fault::Delayed.apply(exchange))
        .expect("an answer");
    if fault.is_none_or(Fault::is_forwarded) {
        state.memory.answers.insert(line, answer);
    }
    Ok(received)
}

/// Reads a request; `None` at the end of the connection.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<Sent>> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a length");
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Sent { head, body }))
}

/// Sends a request over a connection of its own, and reads the whole answer. Removes its length. Answers to HTTP/1.0
/// have no chunks.
fn forward(sent: &Sent, server: SocketAddr) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    let head = sent.head.replacen(" HTTP/1.1\r\n", " HTTP/1.0\r\n", 1);
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    stream.write_all(&sent.body)?;
    let mut reader = BufReader::new(stream);
    let (status, headers) = read_head(&mut reader)?;
    let mut answer = Answer {
        status,
        headers,
        body: Vec::new(),
    };
    reader.read_to_end(&mut answer.body)?;
    let is_head = sent.is("HEAD");
    answer.headers.retain(|(name, _)| {
        let name = name.to_ascii_lowercase();
        name != "connection" && (is_head || name != "content-length")
    });
    Ok(answer)
}
