//! Long polls: the instants at which a change wakes them, their limits, and the checks after the wait. The clock is
//! tokio's. It is paused while any task can run.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Method};
use medfeed::api::observe::{Answered, Observer, WaitEnd};
use medfeed::api::request::{Exchange, Interest};
use medfeed::api::service::CheckedRequest;
use medfeed::api::{Request, Service, Settings, SnapshotSource, Unservable};
use medfeed::model::time::now;
use medfeed::serve::connection::limits::Connection;
use medfeed::serve::connection::long_polls::LongPolls;
use medfeed::serve::connection::permits::KeyedPermits;
use medfeed::store::Snapshot;
use medfeed::store::write::licensing::KeySettings;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::harness::{Direct, World, conference};

type Hook = Box<dyn FnOnce() + Send>;

/// A source whose state a test sets. It can run a function right after the state was read.
struct States {
    state: Mutex<Arc<Snapshot>>,
    after_reading: Mutex<Option<Hook>>,
    changes: watch::Sender<()>,
    is_stale: AtomicBool,
}

impl States {
    fn of(world: &World) -> Arc<States> {
        Arc::new(States {
            state: Mutex::new(world.shown()),
            after_reading: Mutex::default(),
            changes: watch::channel(()).0,
            is_stale: AtomicBool::new(false),
        })
    }

    fn service(self: &Arc<States>, observer: Arc<dyn Observer>) -> Service {
        let source: Arc<dyn SnapshotSource> = Arc::<States>::clone(self);
        Service::observed(Settings::of("https://feed.example"), source, observer)
    }
}

impl SnapshotSource for States {
    fn shown(&self) -> Arc<Snapshot> {
        let read = Arc::clone(&self.state.lock().unwrap());
        let hook = self.after_reading.lock().unwrap().take();
        hook.into_iter().for_each(|hook| hook());
        read
    }

    fn newest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state.lock().unwrap())
    }

    fn unservable(&self) -> Option<Unservable> {
        let stale = Unservable {
            retry_after_s: 10,
            reason: "Its data may be outdated.",
        };
        self.is_stale.load(Ordering::Relaxed).then_some(stale)
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn catch_up(&self, _: Instant, _: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.newest()
    }
}

/// Records how waits end.
#[derive(Default)]
struct Ends(Mutex<Vec<WaitEnd>>);

impl Observer for Ends {
    fn answered(&self, _: &Answered<'_>) {}

    fn long_poll_ended(&self, end: WaitEnd) {
        self.0.lock().unwrap().push(end);
    }
}

/// A service over a world's states, and its long polls.
struct Polls {
    world: World,
    states: Arc<States>,
    ends: Arc<Ends>,
    service: Arc<Service>,
    permits: KeyedPermits,
}

/// A request before its wait.
struct Waiter {
    exchange: Exchange,
    interest: Interest,
    state: Connection,
    closing: watch::Receiver<bool>,
}

impl Polls {
    fn new(world: World, max: usize, max_per_key: usize) -> Polls {
        let (states, ends) = (States::of(&world), Arc::new(Ends::default()));
        let service = Arc::new(states.service(Arc::<Ends>::clone(&ends)));
        Polls {
            world,
            states,
            ends,
            service,
            permits: KeyedPermits::new(max, max_per_key),
        }
    }

    /// The end of the last wait.
    fn last_end(&self) -> Option<WaitEnd> {
        self.ends.0.lock().unwrap().pop()
    }

    /// Shows the present state of the database, as a watcher does.
    fn publish(&self) {
        *self.states.state.lock().unwrap() = self.world.shown();
        self.states.changes.send_replace(());
    }

    fn waiter(
        &self,
        key: &str,
        dataset: &str,
        wait_s: u64,
        closing: &watch::Receiver<bool>,
    ) -> Waiter {
        // The time of the paused clock.
        let at = tokio::time::Instant::now().into_std();
        let exchange = |query: &str| {
            let target = format!("/v1/{dataset}/changes{query}");
            Exchange::new(request(&self.world, key, &target, at))
        };
        let mut first = exchange("");
        let Ok(CheckedRequest::Answered(page)) = self.service.check(&mut first) else {
            panic!("the present moment")
        };
        let page: Value =
            serde_json::from_slice(&self.service.finish(&first, Ok(page)).body).unwrap();
        let since = page["next_sync_token"].as_str().unwrap();
        let mut exchange = exchange(&format!("?since={since}&wait={wait_s}"));
        let Ok(CheckedRequest::Answered(page)) = self.service.check(&mut exchange) else {
            panic!("an empty page")
        };
        let interest = exchange.interest(&Ok(page)).expect("it may wait");
        let state = Connection::default();
        assert!(state.start_answer());
        Waiter {
            exchange,
            interest,
            state,
            closing: closing.clone(),
        }
    }

    async fn wait(&self, waiter: &mut Waiter) {
        let Waiter {
            exchange,
            interest,
            state,
            closing,
        } = waiter;
        let interest = interest.clone();
        let polls = LongPolls {
            service: &self.service,
            permits: &self.permits,
        };
        polls.wait(exchange, interest, state, closing).await;
        assert!(state.is_answering(), "its request is being answered again");
    }

    /// Waits. Returns how the wait ended, and after how many seconds.
    async fn outcome(&self, waiter: &mut Waiter) -> (WaitEnd, u64) {
        let begun = tokio::time::Instant::now();
        self.wait(waiter).await;
        let end = self.last_end().expect("the end of the wait");
        (end, begun.elapsed().as_secs())
    }
}

/// A GET with the key of a name.
fn request(world: &World, key: &str, target: &str, at: Instant) -> Request {
    let key = HeaderValue::from_str(&world.key(key).text).unwrap();
    Request {
        method: Method::GET,
        target: target.to_owned(),
        headers: HeaderMap::from_iter([("x-api-key".parse().unwrap(), key)]),
        has_body: false,
        flaw: None,
        address: [192, 0, 2, 7].into(),
        at,
        wall: now(),
    }
}

/// Runs a future until it has to wait. Returns whether it has completed.
async fn runs_through(future: &mut Pin<Box<impl Future<Output = ()>>>) -> bool {
    timeout(Duration::ZERO, future).await.is_ok()
}

/// Changes a record that is shown only by licenses of this therapy area, and by those without areas.
fn change_of(world: &World, area: &str) {
    static CHANGES: AtomicU64 = AtomicU64::new(0);
    let venue = format!("Venue {}", CHANGES.fetch_add(1, Ordering::Relaxed));
    let id = if area == "Oncology" { 90 } else { 91 };
    let fields = json!({"therapy_areas": [area], "venue": venue});
    world.conferences(&[conference(id, fields)]);
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test);
}

#[test]
fn a_commit_before_during_or_after_registration_wakes_the_long_poll() {
    run(async {
        let polls = Polls::new(World::small(), 9, 9);
        let (_open, closing) = watch::channel(false);
        let waiter = |wait_s| polls.waiter("onco", "conferences", wait_s, &closing);
        for (wait_s, waited_s) in [(60, 45), (1, 1)] {
            let outcome = polls.outcome(&mut waiter(wait_s)).await;
            assert_eq!(outcome, (WaitEnd::Time, waited_s), "no change");
        }

        // Before it joins its group, so it is not notified.
        let mut early = waiter(60);
        change_of(&polls.world, "Oncology");
        polls.publish();
        let expected = (WaitEnd::Change, 0);
        assert_eq!(polls.outcome(&mut early).await, expected, "a change before");

        // Between its read of the state and its sleep.
        let mut between = waiter(60);
        change_of(&polls.world, "Oncology");
        let (states, changed) = (Arc::clone(&polls.states), polls.world.shown());
        let hook = move || {
            *states.state.lock().unwrap() = changed;
            states.changes.send_replace(());
        };
        *polls.states.after_reading.lock().unwrap() = Some(Box::new(hook));
        let outcome = polls.outcome(&mut between).await;
        assert_eq!(outcome, expected, "a change in between");
        let hook = polls.states.after_reading.lock().unwrap().take();
        assert!(hook.is_none(), "it read the state");
        // While it sleeps, twice: after the first change, the next request waits again.
        for _ in 0..2 {
            let mut asleep = waiter(60);
            {
                let mut waiting = Box::pin(polls.wait(&mut asleep));
                assert!(!runs_through(&mut waiting).await);
                // Changes that its license does not show, and polls without a change.
                change_of(&polls.world, "Cardiology");
                polls.publish();
                polls.publish();
                assert!(!runs_through(&mut waiting).await, "another group's change");
                change_of(&polls.world, "Oncology");
                polls.publish();
                assert!(runs_through(&mut waiting).await, "its own change");
            }
            assert_eq!(polls.last_end(), Some(WaitEnd::Change));
        }
    });
}

#[test]
fn a_commit_wakes_all_long_polls_of_its_groups_and_no_others() {
    run(async {
        let polls = Polls::new(World::small(), 9, 9);
        let world = &polls.world;
        world.new_key("onco-too", "onco", KeySettings::default());
        polls.publish();
        let (_open, closing) = watch::channel(false);
        let of = |key: &str, dataset: &str| polls.waiter(key, dataset, 60, &closing);
        let mut waiters = [
            (of("onco", "conferences"), true),
            (of("onco", "conferences"), true),
            (of("onco-too", "conferences"), true),
            (of("full", "conferences"), true),
            (of("full", "journals"), false),
            (of("spain", "conferences"), false),
            (of("papers", "journals"), false),
        ];
        let mut waiting: Vec<_> = waiters
            .iter_mut()
            .map(|(waiter, is_woken)| (Box::pin(polls.wait(waiter)), *is_woken))
            .collect();
        for (future, _) in &mut waiting {
            assert!(!runs_through(future).await);
        }
        change_of(&polls.world, "Oncology");
        polls.publish();
        for (at, (future, is_woken)) in waiting.iter_mut().enumerate() {
            assert_eq!(runs_through(future).await, *is_woken, "{at}");
        }
    });
}

#[test]
fn a_wait_ends_with_its_server() {
    run(async {
        let polls = Polls::new(World::small(), 9, 9);
        let (stop, closing) = watch::channel(false);
        let mut stopped = polls.waiter("onco", "conferences", 60, &closing);
        {
            let mut waiting = Box::pin(polls.wait(&mut stopped));
            assert!(!runs_through(&mut waiting).await);
            stop.send(true).unwrap();
            assert!(runs_through(&mut waiting).await, "the server stops");
        }
        assert_eq!(polls.last_end(), Some(WaitEnd::Stop));
        let mut late = polls.waiter("onco", "conferences", 60, &closing);
        let outcome = polls.outcome(&mut late).await;
        assert_eq!(outcome, (WaitEnd::Stop, 0), "it has stopped already");
    });
}

#[test]
fn long_polls_beyond_either_limit_do_not_wait() {
    run(async {
        let polls = Polls::new(World::small(), 5, 3);
        let (_open, closing) = watch::channel(false);
        // The key's groups are counted together. Each line: key, dataset, whether it waits.
        let cases = [
            ("full", "conferences", true),
            ("full", "journals", true),
            ("full", "conferences", true),
            ("full", "conferences", false),
            ("full", "journals", false),
            ("onco", "conferences", true),
            ("spain", "conferences", true),
            ("papers", "journals", false),
        ];
        let waiter = |key: &str, set: &str| polls.waiter(key, set, 60, &closing);
        let mut waiters = cases.map(|(key, set, _)| waiter(key, set));
        let mut more = cases![
            waiter("full", "journals"), true;
            waiter("full", "journals"), false;
            waiter("papers", "journals"), false;
        ];
        let mut again = [(); 4].map(|()| waiter("full", "conferences"));
        let mut waiting = Vec::new();
        for (waiter, (key, dataset, waits)) in waiters.iter_mut().zip(cases) {
            let mut future = Box::pin(polls.wait(waiter));
            assert_eq!(!runs_through(&mut future).await, waits, "{key} {dataset}");
            if waits {
                waiting.push(future);
            }
        }
        // A request that leaves makes room for one other, both for its key and in total.
        drop(waiting.remove(1));
        assert_eq!(polls.last_end(), Some(WaitEnd::Left));
        assert_eq!(polls.last_end(), None);
        for (waiter, waits) in &mut more {
            let mut future = Box::pin(polls.wait(waiter));
            assert_eq!(!runs_through(&mut future).await, *waits);
            if *waits {
                waiting.push(future);
            }
        }
        // When all have left, the same number can wait again.
        waiting.clear();
        for (at, waiter) in again.iter_mut().enumerate() {
            let mut future = Box::pin(polls.wait(waiter));
            assert_eq!(!runs_through(&mut future).await, at < 3, "{at}");
            waiting.push(future);
        }
    });
}

#[test]
fn a_key_is_checked_again_after_a_wait() {
    type Change = fn(&World);
    let revoke: Change = |world| {
        let id = world.key("onco").id;
        world.edit(|edit| edit.revoke_key(&id).map(drop).unwrap());
    };
    let replace: Change = |world| {
        let id = world.key("onco").id;
        world.edit(|edit| edit.replace_key(&id, 0).map(drop).unwrap());
    };
    let (export, list) = ("/v1/exports/conferences", "/v1/conferences?country=Spain");
    let feed = "/v1/conferences/changes?updated_since=2020-01-01";
    let since = "/v1/conferences/changes?since=TOKEN";
    let journals: Change = |world| world.license("onco", "journals");
    let narrow: Change = |world| world.license("onco", "conferences; areas: Oncology; years: 1900");
    let other: Change = |world| world.license("spain", "journals");
    let rate: Change = |world| world.set_rate_limit("onco", 7);
    // The change after the request was admitted, then the status and the problem of the answer.
    let cases: [(&str, Change, u16, &str); 13] = [
        (export, revoke, 401, "revoked_api_key"),
        (export, replace, 401, "revoked_api_key"),
        (list, revoke, 401, "revoked_api_key"),
        (feed, revoke, 401, "revoked_api_key"),
        (since, revoke, 401, "revoked_api_key"),
        (export, journals, 403, "dataset_not_licensed"),
        (list, journals, 403, "dataset_not_licensed"),
        (since, narrow, 410, "resync_required"),
        (export, narrow, 200, "0"),
        (export, other, 200, ""),
        (export, rate, 200, ""),
        (list, other, 200, ""),
        (feed, |_| (), 200, ""),
    ];
    for (at, (target, change, status, expected)) in cases.into_iter().enumerate() {
        let world = World::small();
        let states = States::of(&world);
        let direct = Direct::new(states.service(Arc::new(Ends::default())));
        let ask = |target: &str| direct.answer(request(&world, "onco", target, Instant::now()));
        // The token of an export, before an entry.
        let exported = ask("/v1/exports/conferences");
        let token = exported.headers["x-sync-token"].to_str().unwrap();
        change_of(&world, "Oncology");
        let before = world.shown();
        *states.state.lock().unwrap() = before;
        change(&world);
        let changed = world.shown();
        let (hooked, swapped) = (Arc::clone(&states), Arc::clone(&changed));
        let hook = move || *hooked.state.lock().unwrap() = swapped;
        *states.after_reading.lock().unwrap() = Some(Box::new(hook));
        let response = ask(&target.replace("TOKEN", token));
        let body = String::from_utf8_lossy(&response.body);
        let hook = states.after_reading.lock().unwrap().take();
        assert!(hook.is_none(), "{at}: it was admitted before the change");
        assert_eq!(response.status.as_u16(), status, "{at} {target}: {body}");
        match (status, expected) {
            (200, "") => {}
            (200, count) => assert_eq!(response.headers["x-record-count"], count, "{at} {target}"),
            (_, code) => assert!(
                body.contains(&format!("/errors/{code}\"")),
                "{at} {target}: {body}"
            ),
        }
        if status != 401 && target == export {
            let number = |name: &str| -> u32 {
                let text = response.headers[name].to_str().unwrap();
                text.parse().unwrap()
            };
            let counted = number("ratelimit-limit") - number("ratelimit-remaining");
            assert_eq!(counted, 2, "{at} {target}: counted once");
        }
    }
}

/// Checks a request, and finishes it if no job is needed. Returns the error code, and limit, remaining and reset of its
/// window.
fn check(service: &Service, exchange: &mut Exchange) -> (String, [u64; 3]) {
    let (code, answer) = match service.check(exchange) {
        Ok(CheckedRequest::Answered(answer)) => (String::new(), Ok(answer)),
        Ok(_) => panic!("a job"),
        Err(problem) => (problem.code.to_string(), Err(problem)),
    };
    let headers = service.finish(exchange, answer).headers;
    let names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    let numbers = names.map(|name| headers[name].to_str().unwrap().parse().unwrap());
    (code, numbers)
}

fn polled(world: &World) -> String {
    let token = world.get("onco", "/v1/conferences/changes").token();
    format!("/v1/conferences/changes?since={token}&wait=60")
}

#[test]
fn a_request_that_waited_is_counted_once() {
    let world = World::small();
    world.set_rate_limit("onco", 2);
    let (target, begun) = (polled(&world), Instant::now());
    let states = States::of(&world);
    let service = states.service(Arc::new(Ends::default()));
    let exchange = || Exchange::new(request(&world, "onco", &target, begun));
    let after = |seconds| begun + Duration::from_secs(seconds);
    let (mut waited, answered, limited) = (exchange(), String::new(), "rate_limited".to_owned());
    assert_eq!(check(&service, &mut waited).1, [2, 1, 60]);
    waited.wake(after(20), now(), false);
    // The window of the time when it was woken.
    assert_eq!(check(&service, &mut waited).1, [2, 1, 40]);
    // Other requests use up the window meanwhile. The request that has waited is answered.
    assert_eq!(check(&service, &mut exchange()).1, [2, 0, 60]);
    assert_eq!(check(&service, &mut exchange()).0, limited);
    waited.wake(after(59), now(), false);
    assert_eq!(check(&service, &mut waited), (answered.clone(), [2, 0, 1]));
    // A minute after the first request the window is over.
    waited.wake(after(60), now(), true);
    assert_eq!(check(&service, &mut waited), (answered, [2, 2, 60]));
    // A key that was revoked meanwhile is refused, but does not count as an unusable key of its address.
    let id = world.key("onco").id;
    world.edit(|edit| edit.revoke_key(&id).map(drop).unwrap());
    *states.state.lock().unwrap() = world.shown();
    waited.wake(after(61), now(), false);
    let expected = ("revoked_api_key".to_owned(), [100, 100, 60]);
    assert_eq!(check(&service, &mut waited), expected);
}

#[test]
fn a_long_poll_at_a_stale_replica_gets_503() {
    let world = World::small();
    let states = States::of(&world);
    let service = states.service(Arc::new(Ends::default()));
    let mut waited = Exchange::new(request(&world, "onco", &polled(&world), Instant::now()));
    assert_eq!(check(&service, &mut waited).0, "");
    for (is_stale, is_over, expected) in [
        (true, false, "unavailable"),
        (false, false, ""),
        (true, true, "unavailable"),
    ] {
        states.is_stale.store(is_stale, Ordering::Relaxed);
        waited.wake(Instant::now() + Duration::from_secs(5), now(), is_over);
        let code = check(&service, &mut waited).0;
        assert_eq!(code, expected, "stale: {is_stale}, over: {is_over}");
    }
}
