//! Nobody who waits is forgotten: shuttle tries interleavings of those who wait with those who wake them, and reports a task
//! that nothing can wake any more as a deadlock.
//!
//! `MEDFEED_CASES` sets how many interleavings each test tries, half of them at random and half with few, well-chosen switches.
//! A failure prints its seed or its schedule, and how to repeat it.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Method};
use medfeed::api::exchange::{Exchange, Interest};
use medfeed::api::observe::{Answered, Observer, WaitEnd};
use medfeed::api::service::CheckedRequest;
use medfeed::api::{Request, Service, Settings, SnapshotSource};
use medfeed::import::{self, MergeOptions, ReadOptions, SourceOptions};
use medfeed::model::time::now;
use medfeed::model::{Dataset, Scope};
use medfeed::serve::Watcher;
use medfeed::store::write::licensing::KeySettings;
use medfeed::store::{Edit, Snapshot, Writer};
use medfeed_wakeups::serve::connection::limits::{Connection, Connections, Limits};
use medfeed_wakeups::serve::connection::long_polls::LongPolls;
use shuttle::future::{block_on, spawn};
use shuttle::thread::yield_now;
use tokio::sync::watch;

/// Tries interleavings of a test.
fn explore(test: impl Fn() + Clone + Send + Sync + 'static) {
    let cases = std::env::var("MEDFEED_CASES").map_or(2_000, |text| text.parse().expect("a number"));
    shuttle::check_random(test.clone(), cases / 2);
    shuttle::check_pct(test, cases - cases / 2, 3);
}

/// The states of a database before and after two commits: the first one changes a record that only `onco` shows, the second one
/// a record that both licenses show.
struct Fixture {
    states: Vec<Arc<Snapshot>>,
    /// For each of the licenses: its key, and a token of the first state.
    callers: [(String, String); 2],
    _folder: tempfile::TempDir,
}

fn commit(writer: &Writer, folder: &Path, lines: &str, change: impl FnOnce(&mut Edit)) {
    let file = folder.join("conferences.jsonl");
    std::fs::write(&file, lines).unwrap();
    let sources = import::Source::find(&[file], SourceOptions::default()).unwrap();
    let rows = import::read_sources(&sources, &ReadOptions::default()).unwrap();
    let mut edit = writer.begin().unwrap();
    let merged = import::merge(rows, &edit.base().unwrap(), &MergeOptions::default()).unwrap();
    edit.apply(&merged.batch).unwrap();
    change(&mut edit);
    edit.commit().unwrap();
}

fn line(id: u64, area: &str, venue: u64) -> String {
    format!(
        "{{\"id\":{id},\"name\":\"Conference {id}\",\"year\":2026,\"therapy_areas\":[\"{area}\"],\"venue\":\"Venue {venue}\",\
         \"start_date_status\":\"check\",\"abstract_due_date_status\":\"check\",\"late_breaking_due_date_status\":\"check\"}}\n"
    )
}

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medfeed.redb");
        let writer = Writer::open_or_create(&path, Duration::ZERO).unwrap();
        let mut keys = Vec::new();
        let first = line(1, "Oncology", 1) + &line(2, "Cardiology", 1);
        commit(&writer, folder.path(), &first, |edit| {
            for (name, areas) in [("onco", vec!["Oncology"]), ("both", vec!["Oncology", "Cardiology"])] {
                let areas = Some(areas.into_iter().map(str::to_owned).collect());
                let datasets = [Dataset::Conferences].into();
                let scope = Scope { datasets, therapy_areas: areas, countries: None, years: None };
                edit.set_license(name, scope, Some(u32::MAX)).unwrap();
                keys.push(edit.create_key(name, KeySettings::default()).unwrap().0.reveal().to_owned());
            }
        });
        let state = || Watcher::open(&path, Duration::ZERO).unwrap().published();
        let mut states = vec![state()];
        for lines in [line(2, "Cardiology", 2), line(1, "Oncology", 2)] {
            commit(&writer, folder.path(), &lines, |_| {});
            states.push(state());
        }
        let source = States::at(&states, 0);
        let service = Service::new(Settings::of("https://feed.example"), source);
        let callers = [0, 1].map(|at| {
            let mut exchange = Exchange::new(request(&keys[at], "/v1/conferences/changes"));
            let Ok(CheckedRequest::Answered(page)) = service.check(&mut exchange) else { panic!("the present moment") };
            let page: serde_json::Value = serde_json::from_slice(&service.finish(&exchange, Ok(page)).body).unwrap();
            (keys[at].clone(), page["next_sync_token"].as_str().unwrap().to_owned())
        });
        Fixture { states, callers, _folder: folder }
    })
}

fn request(key: &str, target: &str) -> Request {
    Request {
        method: Method::GET,
        target: target.to_owned(),
        headers: HeaderMap::from_iter([("x-api-key".parse().unwrap(), HeaderValue::from_str(key).unwrap())]),
        has_body: false,
        flaw: None,
        address: Ipv4Addr::LOCALHOST.into(),
        at: Instant::now(),
        wall: now(),
    }
}

/// A source that goes through the states. Others may run whenever it is read.
struct States {
    states: Vec<Arc<Snapshot>>,
    current: AtomicUsize,
    is_explored: bool,
}

impl States {
    fn at(states: &[Arc<Snapshot>], current: usize) -> Arc<States> {
        Arc::new(States { states: states.to_vec(), current: AtomicUsize::new(current), is_explored: false })
    }

    fn explored() -> Arc<States> {
        let states = fixture().states.clone();
        Arc::new(States { states, current: AtomicUsize::new(0), is_explored: true })
    }

    fn read(&self) -> Arc<Snapshot> {
        if self.is_explored {
            yield_now();
        }
        let read = Arc::clone(&self.states[self.current.load(Ordering::SeqCst)]);
        if self.is_explored {
            yield_now();
        }
        read
    }
}

impl SnapshotSource for States {
    fn published(&self) -> Arc<Snapshot> {
        self.read()
    }

    fn newest(&self) -> Arc<Snapshot> {
        self.read()
    }

    fn polls(&self) -> u64 {
        0
    }

    fn catch_up(&self, _: u64, _: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.read()
    }
}

/// Notes how waits end.
#[derive(Default)]
struct Ends(Mutex<Vec<WaitEnd>>);

impl Observer for Ends {
    fn answered(&self, _: &Answered<'_>) {}

    fn long_poll_ended(&self, end: WaitEnd) {
        self.0.lock().unwrap().push(end);
    }
}

/// A service whose requests wait, and what publishes its states.
struct Server {
    states: Arc<States>,
    ends: Arc<Ends>,
    service: Service,
    polls: LongPolls,
}

impl Server {
    fn new() -> Arc<Server> {
        let (states, ends) = (States::explored(), Arc::new(Ends::default()));
        let observer: Arc<dyn Observer> = Arc::<Ends>::clone(&ends);
        let source: Arc<dyn SnapshotSource> = Arc::<States>::clone(&states);
        let service = Service::observed(Settings::of("https://feed.example"), source, observer);
        Arc::new(Server { states, ends, service, polls: LongPolls::new(100, 100) })
    }

    /// Takes over the next state, as a watcher does.
    fn publish(&self) {
        self.states.current.fetch_add(1, Ordering::SeqCst);
        yield_now();
        self.polls.notify();
    }

    /// Asks for changes and waits as a connection does, until there are some or until the request is told to end. Returns whether
    /// there were changes.
    async fn follow(&self, license: usize, connection: &Connection, mut closing: watch::Receiver<bool>) -> bool {
        let (key, token) = &fixture().callers[license];
        let target = format!("/v1/conferences/changes?since={token}&wait=60");
        let mut exchange = Exchange::new(request(key, &target));
        if !connection.start_answer() {
            // Another caller had the slot first.
            return false;
        }
        loop {
            // A page with changes is a job, or comes from the cache. An empty one may wait.
            let Ok(CheckedRequest::Answered(page)) = self.service.check(&mut exchange) else { return true };
            let Some((interest, until)): Option<(Interest, Instant)> = exchange.interest(&Ok(Arc::clone(&page))) else {
                return false;
            };
            // Time is not modelled: a deadline within a year may come at once. This one never comes.
            let never = until + Duration::from_secs(3 * 365 * 86_400);
            self.polls.wait(&self.service, &mut exchange, interest, never, connection, &mut closing).await;
        }
    }
}

/// Waits for tasks, which shuttle ends or reports.
async fn all<T: 'static>(tasks: Vec<shuttle::future::JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("the task ends"));
    }
    results
}

/// Publishes two changes while callers of these licenses begin to wait. The first change is for `both` alone.
fn change_under(licenses: &'static [usize]) {
    fixture();
    explore(move || {
        block_on(async {
            let server = Server::new();
            let (_close, closing) = watch::channel(false);
            let waiters = licenses.iter().map(|license| {
                let (server, closing) = (Arc::clone(&server), closing.clone());
                spawn(async move { server.follow(*license, &Connection::default(), closing).await })
            });
            let waiters: Vec<_> = waiters.collect();
            let publisher = Arc::clone(&server);
            let publishing = spawn(async move {
                publisher.publish();
                publisher.publish();
            });
            publishing.await.expect("it ends");
            assert!(all(waiters).await.into_iter().all(|has_changes| has_changes));
        });
    });
}

#[test]
fn a_change_wakes_whoever_sees_it() {
    // Few tasks, so that the publisher often runs through between two steps of a waiter.
    change_under(&[0]);
    change_under(&[0, 1]);
}

#[test]
fn whoever_waits_hears_that_the_server_stops() {
    fixture();
    explore(|| {
        block_on(async {
            let server = Server::new();
            let (close, closing) = watch::channel(false);
            let waiters = [0, 1].map(|license| {
                let (server, closing) = (Arc::clone(&server), closing.clone());
                spawn(async move { server.follow(license, &Connection::default(), closing).await })
            });
            let publisher = Arc::clone(&server);
            let publishing = spawn(async move { publisher.publish() });
            let stopping = spawn(async move {
                close.send_replace(true);
                close
            });
            let ended = all(waiters.into()).await;
            assert!(!ended[0], "nothing has changed for this license");
            drop((publishing.await, stopping.await));
            assert!(!server.ends.0.lock().unwrap().contains(&WaitEnd::Time));
        });
    });
}

#[test]
fn a_request_that_waits_gives_its_slot_to_a_new_caller() {
    fixture();
    explore(|| {
        block_on(async {
            let server = Server::new();
            let connections = Connections::new(Limits { connections: 1, ..Limits::default() });
            let slot = connections.enter(None).expect("the only slot");
            let (_close, closing) = watch::channel(false);
            let waiting = {
                let server = Arc::clone(&server);
                spawn(async move {
                    let has_changes = server.follow(0, &slot.connection, closing).await;
                    slot.connection.finish_answer(true);
                    drop(slot);
                    has_changes
                })
            };
            // The listener tries until there is a slot. It is free, or taken from who waits.
            let admitted = spawn(async move {
                while connections.enter(None).map(drop).is_err() {
                    shuttle::future::yield_now().await;
                }
            });
            admitted.await.expect("it is admitted");
            assert!(!waiting.await.expect("it ends"), "it is answered without changes");
        });
    });
}
