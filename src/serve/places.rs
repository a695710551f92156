//! Places for connections. When all are taken, a new connection gets the place of the one that has been idle for
//! longest, so that nobody can shut others out by holding connections: idle ones, or ones whose request never comes whole.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long a connection may be idle before its place is given away: whoever has just come has time to ask.
const GRACE: Duration = Duration::from_secs(1);

/// What a connection is doing.
#[derive(Clone, Copy, Debug)]
enum State {
    /// No whole request came since then.
    Idle(Instant),
    /// A request is being answered.
    Answering,
    /// An answer is being sent.
    Sending,
    /// Its place was given away.
    Closed,
}

/// What a connection is doing, as its stream, its service and the places see it.
#[derive(Clone, Debug)]
pub struct Activity(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    closed: Notify,
    /// Told when a connection becomes idle.
    idled: Arc<Notify>,
}

impl Default for Activity {
    fn default() -> Activity {
        Activity::new(Arc::default())
    }
}

impl Activity {
    fn new(idled: Arc<Notify>) -> Activity {
        let state = Mutex::new(State::Idle(Instant::now()));
        Activity(Arc::new(Shared { state, closed: Notify::new(), idled }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request came whole. False when the place was given away before: then it is not to be answered.
    pub fn begin(&self) -> bool {
        let mut state = self.state();
        if matches!(*state, State::Closed) {
            return false;
        }
        *state = State::Answering;
        true
    }

    /// The request's answer is ready to be sent.
    pub fn end(&self) {
        self.sending_from(|state| matches!(state, State::Answering));
    }

    /// Something is being sent.
    pub fn send(&self) {
        self.sending_from(|state| matches!(state, State::Idle(_)));
    }

    fn sending_from(&self, from: impl Fn(State) -> bool) {
        let mut state = self.state();
        if from(*state) {
            *state = State::Sending;
        }
    }

    /// All that was to be sent is sent.
    pub fn sent(&self) {
        let mut state = self.state();
        if matches!(*state, State::Sending) {
            *state = State::Idle(Instant::now());
            drop(state);
            self.0.idled.notify_waiters();
        }
    }

    /// Whether a request is being answered: until then nothing is expected to come.
    pub fn is_answering(&self) -> bool {
        matches!(*self.state(), State::Answering)
    }

    /// Resolves when the place was given away.
    pub async fn closed(&self) {
        self.0.closed.notified().await;
    }

    fn idle_since(&self) -> Option<Instant> {
        match *self.state() {
            State::Idle(since) => Some(since),
            _ => None,
        }
    }

    /// Closes the connection if it has done nothing since then.
    fn close_if_idle_since(&self, then: Instant) -> bool {
        let mut state = self.state();
        let closes = matches!(*state, State::Idle(since) if since == then);
        if closes {
            *state = State::Closed;
            self.0.closed.notify_one();
        }
        closes
    }
}

/// The places of a server.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    taken: Mutex<Taken>,
    idled: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    activities: HashMap<u64, Activity>,
}

/// A connection's place, free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    number: u64,
    activity: Activity,
    places: Arc<Places>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    /// So many places.
    pub fn new(most: usize) -> Arc<Places> {
        let free = Arc::new(Semaphore::new(most));
        Arc::new(Places { free, taken: Mutex::default(), idled: Arc::default() })
    }

    /// A place. While all are taken by connections at work, and by ones that came just now, it waits.
    pub async fn take(self: &Arc<Places>) -> Place {
        let permit = loop {
            let idled = self.idled.notified();
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                break Some(permit);
            }
            let longest = self.longest_idle();
            let due = longest.as_ref().map_or_else(Instant::now, |(_, since)| *since + GRACE);
            match &longest {
                // The place is free as soon as the connection is gone.
                Some((activity, since)) if due <= Instant::now() => {
                    if activity.close_if_idle_since(*since) {
                        break self.acquire().await;
                    }
                }
                _ => tokio::select! {
                    permit = self.acquire() => break permit,
                    () = idled => {}
                    () = tokio::time::sleep_until(due), if longest.is_some() => {}
                },
            }
        };
        let activity = Activity::new(Arc::clone(&self.idled));
        let mut taken = self.taken();
        let number = taken.next;
        taken.next += 1;
        taken.activities.insert(number, activity.clone());
        drop(taken);
        Place { number, activity, places: Arc::clone(self), _permit: permit }
    }

    async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    fn longest_idle(&self) -> Option<(Activity, Instant)> {
        let taken = self.taken();
        let idle = taken.activities.values().filter_map(|activity| Some((activity, activity.idle_since()?)));
        idle.min_by_key(|(_, since)| *since).map(|(activity, since)| (activity.clone(), since))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// What the connection is doing.
    pub fn activity(&self) -> Activity {
        self.activity.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().activities.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    /// Whether the place was given away.
    async fn is_closed(place: &Place) -> bool {
        timeout(Duration::ZERO, place.activity.closed()).await.is_ok()
    }

    /// Takes a place while all are taken; returns which of the others was closed for it, and after how long.
    async fn take_one_of(places: &Arc<Places>, mut others: Vec<(&'static str, Place)>) -> (&'static str, Duration) {
        let begun = Instant::now();
        let taking = tokio::spawn({
            let places = Arc::clone(places);
            async move { places.take().await }
        });
        for _ in 0..1000 {
            for at in 0..others.len() {
                if is_closed(&others[at].1).await {
                    let (name, place) = others.remove(at);
                    drop(place);
                    taking.await.unwrap();
                    return (name, begun.elapsed());
                }
            }
            advance(Duration::from_millis(10)).await;
        }
        panic!("nobody was closed");
    }

    #[tokio::test(start_paused = true)]
    async fn who_idles_longest_makes_room() {
        let places = Places::new(3);
        let (first, second, third) = (places.take().await, places.take().await, places.take().await);
        advance(Duration::from_secs(5)).await;
        // The first one asks and is idle again; the second one is at work all the time.
        assert!(first.activity.begin() && second.activity.begin());
        first.activity.end();
        first.activity.sent();
        advance(Duration::from_secs(5)).await;
        let others = vec![("first", first), ("second", second), ("third", third)];
        let (name, after) = take_one_of(&places, others).await;
        assert!(name == "third" && after.as_millis() < 100, "{name} after {after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_just_came_has_a_second() {
        let places = Places::new(2);
        let (first, second) = (places.take().await, places.take().await);
        let (name, after) = take_one_of(&places, vec![("first", first), ("second", second)]).await;
        assert!((1000..1100).contains(&after.as_millis()), "{name} after {after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_at_work_is_never_closed() {
        let places = Places::new(2);
        let (answering, sending) = (places.take().await, places.take().await);
        assert!(answering.activity.begin() && sending.activity.begin());
        sending.activity.end();
        assert!(timeout(Duration::from_secs(3600), places.take()).await.is_err(), "no place");
        assert!(!is_closed(&answering).await && !is_closed(&sending).await);
        // A place that is given back is taken at once; what becomes idle has its second.
        drop(answering);
        let mut taken = timeout(Duration::ZERO, places.take()).await.expect("a free place");
        assert!(taken.activity.begin());
        sending.activity.sent();
        let (name, after) = take_one_of(&places, vec![("taken", taken), ("sending", sending)]).await;
        assert!(name == "sending" && (1000..1100).contains(&after.as_millis()), "{name} after {after:?}");
        taken = timeout(Duration::ZERO, places.take()).await.expect("the others are gone");
        assert!(taken.activity.begin());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_comes_too_late_is_not_begun() {
        let places = Places::new(1);
        let only = places.take().await;
        advance(GRACE).await;
        assert!(timeout(Duration::from_secs(1), places.take()).await.is_err(), "it is not gone yet");
        assert!(is_closed(&only).await);
        assert!(!only.activity.begin() && !only.activity.is_answering());
        drop(only);
        assert!(places.take().await.activity.begin());
    }
}
