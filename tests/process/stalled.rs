//! Slow answers delay no others: a server with one worker, over a source whose polls last until a test releases them.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use medfeed::api::observe::{Answered, ConnectionLimit, Observer};
use medfeed::api::{Service, Settings, SnapshotSource};
use medfeed::serve::connection::address::TrustedProxies;
use medfeed::serve::{Limits, Server};
use medfeed::store::Snapshot;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use super::client::{Client, connect, connect_from, read_answer};
use super::site::{SOON, wait_for};
use crate::harness::{World, no_changes, removal};

/// The state of a world's database, whose polls wait until they are released.
struct Stalled {
    state: Arc<Snapshot>,
    stalled: Mutex<bool>,
    released: Condvar,
    polling: AtomicUsize,
    max_polling: AtomicUsize,
}

impl Stalled {
    fn over(state: Arc<Snapshot>) -> Arc<Stalled> {
        let (polling, max_polling) = Default::default();
        Arc::new(Stalled {
            state,
            stalled: Mutex::new(true),
            released: Condvar::new(),
            polling,
            max_polling,
        })
    }

    fn release(&self) {
        *self.stalled.lock().unwrap() = false;
        self.released.notify_all();
    }
}

impl SnapshotSource for Stalled {
    fn shown(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state)
    }

    fn newest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state)
    }

    fn changes(&self) -> watch::Receiver<()> {
        no_changes()
    }

    fn catch_up(&self, _: Instant, _: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.max_polling.fetch_max(
            self.polling.fetch_add(1, Ordering::SeqCst) + 1,
            Ordering::SeqCst,
        );
        let stalled = self.stalled.lock().unwrap();
        drop(
            self.released
                .wait_while(stalled, |stalled| *stalled)
                .unwrap(),
        );
        self.polling.fetch_sub(1, Ordering::SeqCst);
        Arc::clone(&self.state)
    }
}

/// Counts answers, and connections that reached the total limit.
#[derive(Default)]
struct Count {
    answers: AtomicU64,
    at_limit: AtomicU64,
}

impl Observer for Count {
    fn answered(&self, _: &Answered<'_>) {
        self.answers.fetch_add(1, Ordering::SeqCst);
    }

    fn reached_limit(&self, limit: ConnectionLimit) {
        self.at_limit
            .fetch_add(u64::from(limit == ConnectionLimit::Total), Ordering::SeqCst);
    }
}

/// Serves a source with one worker, while `ask` sends requests. `ask` gets the counts, and stops the server by dropping
/// the sender. Returns the number of answers that the observer counted.
fn serve(
    limits: Limits,
    source: Arc<dyn SnapshotSource>,
    ask: impl FnOnce(SocketAddr, &Count, oneshot::Sender<()>),
) -> u64 {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let count = Arc::new(Count::default());
    let service = Service::observed(Settings::of("http://feed.example"), source, count.clone());
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let proxies = TrustedProxies::default();
    let server = Server {
        listener,
        service: Arc::new(service),
        proxies,
        tls: None,
        limits,
        shares_address: false,
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let running = runtime.spawn(server.run(async move { drop(stopped.await) }));
    ask(address, &count, stop);
    let found = runtime.block_on(running).unwrap().unwrap();
    assert_eq!(found, 0, "connections cut off");
    count.answers.load(Ordering::SeqCst)
}

/// A token for which the world's server has to poll: of a commit that it never gets.
fn stale_token(world: &World) -> String {
    let fork = world.fork();
    fork.conferences(&[removal(1)]);
    fork.get("full", "/v1/conferences/changes").token()
}

#[test]
fn a_slow_poll_delays_no_other_answer() {
    const STALE: usize = 12;
    let world = World::small();
    let (key, token) = (world.key("full").text, stale_token(&world));
    let source = Stalled::over(world.shown());
    let limit: u64 = 600;
    let good = words![
        "/v1/status" "/docs" "/v1/conferences" "/v1/conferences/2" "/v1/conferences?country=Spain&q=on"
        "/v1/conferences/changes" "/v1/conferences/changes?updated_since=2000-01-01"
        "/v1/reference/therapy-areas" "/v1/exports/conferences" "/v1/exports/journals?format=csv"
    ];
    let heard = serve(Limits::default(), source.clone(), |address, _, _stop| {
        std::thread::scope(|scope| {
            let stale = |_| {
                scope.spawn(|| {
                    let target = format!("/v1/conferences/changes?since={token}");
                    Client::new(address, Some(&key)).get(&target)
                })
            };
            let waiting: Vec<_> = (0..STALE).map(stale).collect();
            wait_for("a poll", || source.polling.load(Ordering::SeqCst) > 0);
            let mut client = Client::new(address, Some(&key));
            for target in good.iter().chain(&good) {
                assert_eq!(client.get(target).status, 200, "{target}");
            }
            assert!(
                waiting.iter().all(|asker| !asker.is_finished()),
                "requests that need the poll keep waiting"
            );
            source.release();
            for asker in waiting {
                let answer = asker.join().expect("an asker");
                answer.assert_problem(410, "resync_required");
            }
            // Two targets need no key.
            let asked = u64::try_from(STALE + 2 * (good.len() - 2) + 1).unwrap();
            let remaining = client
                .get("/v1/conferences/2")
                .header("ratelimit-remaining")
                .unwrap()
                .to_owned();
            let expected = (limit - asked).to_string();
            assert_eq!(remaining, expected, "each request is counted once");
        });
    });
    let found = source.max_polling.load(Ordering::SeqCst);
    assert_eq!(found, 1, "one poll serves all equal requests");
    let expected = u64::try_from(STALE + 2 * good.len() + 1).unwrap();
    assert_eq!(heard, expected, "each answer is counted once");
}

#[test]
fn callers_that_left_block_no_thread_of_others() {
    let world = World::small();
    let (key, token) = (world.key("full").text, stale_token(&world));
    let source = Stalled::over(world.shown());
    serve(Limits::default(), source.clone(), |address, _, _stop| {
        let send = |limit: usize| {
            let target = format!("/v1/conferences/changes?since={token}&limit={limit}");
            let mut connection = connect(address).unwrap();
            connection
                .write_all(Client::new(address, Some(&key)).request(&target).as_bytes())
                .unwrap();
            connection
        };
        let is_polled = |count: usize| {
            wait_for("a poll", || source.polling.load(Ordering::SeqCst) >= count);
        };
        // Many callers send the same request and leave, then one sends another request and leaves. The threads keep
        // polling.
        for _ in 0..50 {
            let _leaves = send(1);
            is_polled(1);
        }
        {
            let _leaves = send(2);
            is_polled(2);
        }
        let _more: Vec<_> = (3..=12).map(send).collect();
        let mut client = Client::new(address, Some(&key));
        for limit in 1..=20 {
            for target in
                words!["/v1/conferences?q=on" "/v1/conferences/changes?updated_since=2000-01-01"]
            {
                let status = client.get(&format!("{target}&limit={limit}")).status;
                assert_eq!(status, 200, "{target}");
            }
        }
        source.release();
    });
    assert_eq!(
        source.max_polling.load(Ordering::SeqCst),
        2,
        "two threads poll, however many callers wait or have left"
    );
}

/// Serves a world with a single slot, which a request holds until the source is released, while six others wait for it.
/// `ask` gets them in their order.
fn serve_with_a_taken_slot(
    ask: impl FnOnce(SocketAddr, Vec<BufReader<TcpStream>>, &Stalled, oneshot::Sender<()>),
) {
    let world = World::small();
    let (key, token) = (world.key("full").text, stale_token(&world));
    let source = Stalled::over(world.shown());
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    serve(limits, source.clone(), |address, count, stop| {
        let client = Client::new(address, Some(&key)).with_header("connection", "close");
        let send = |source: [u8; 4], target: &str| {
            let mut connection = connect_from(source.into(), address, None).unwrap();
            connection
                .write_all(client.request(target).as_bytes())
                .unwrap();
            connection.set_read_timeout(Some(SOON)).unwrap();
            BufReader::new(connection)
        };
        let mut taking = send(
            [127, 0, 0, 1],
            &format!("/v1/conferences/changes?since={token}"),
        );
        wait_for("a poll", || source.polling.load(Ordering::SeqCst) > 0);
        let waiting = (2..8)
            .map(|number| send([127, 0, 0, number], "/v1/conferences/2"))
            .collect();
        // The others are in the kernel's queue.
        wait_for("the first one waits", || {
            count.at_limit.load(Ordering::SeqCst) == 1
        });
        ask(address, waiting, &source, stop);
        assert_eq!(
            read_answer(&mut taking, false)
                .expect("it keeps its slot")
                .status,
            410
        );
    });
}

#[test]
fn connections_that_wait_for_a_slot_get_it_in_their_order() {
    serve_with_a_taken_slot(|_, waiting, source, _stop| {
        source.release();
        // The remaining requests of the key show the order.
        let remaining = waiting.into_iter().map(|mut connection| {
            let answer = read_answer(&mut connection, false).expect("its turn");
            answer
                .header("ratelimit-remaining")
                .unwrap()
                .parse::<u64>()
                .unwrap()
        });
        let served: Vec<u64> = remaining.collect();
        assert!(
            served.is_sorted_by(|earlier, later| earlier > later),
            "{served:?}"
        );
    });
}

#[test]
fn connections_that_wait_for_a_slot_are_served_when_the_server_stops() {
    serve_with_a_taken_slot(|address, waiting, source, stop| {
        drop(stop);
        wait_for("the listener closes", || {
            TcpStream::connect(address).is_err()
        });
        for mut connection in waiting {
            let answer =
                read_answer(&mut connection, false).expect("an answer, though all slots are taken");
            assert_eq!(answer.status, 200);
        }
        source.release();
    });
}
