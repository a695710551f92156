//! Requests that wait for news of a change feed, as their callers want (`wait`). Each costs its connection and a timer, and no
//! thread. Those of one key with the same interest form a group: after a commit one check per group, in memory, says whether its
//! callers see anything new.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

use crate::api::Service;
use crate::api::exchange::{Exchange, Interest};
use crate::api::observe::WaitEnd;
use crate::model::KeyHash;
use crate::model::time::now;
use crate::serve::connection::state::ConnectionState;

/// Woken requests of a group that are answered at once: further ones follow, so that others are answered in between, and find
/// what the first ones made. When 2,000 are woken together it halves what another client waits at the worst (p99 4 ms for 9;
/// `benches/waiting.rs`).
const TURNS: usize = 16;

/// All requests that wait for news.
#[derive(Debug)]
pub struct LongPolls {
    max: usize,
    max_per_key: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    count: usize,
    keys: HashMap<KeyHash, Vec<Member>>,
}

/// A group and its size.
#[derive(Debug)]
struct Member {
    group: Arc<Group>,
    count: usize,
}

#[derive(Debug)]
struct Group {
    interest: Interest,
    news: Notify,
    turns: Arc<Semaphore>,
}

/// A request's membership of its group. Dropping it leaves the group.
struct Membership<'h> {
    polls: &'h LongPolls,
    service: &'h Service,
    group: Arc<Group>,
    end: WaitEnd,
}

impl LongPolls {
    /// Room for `max` requests, `max_per_key` of them of one key.
    pub fn new(max: usize, max_per_key: usize) -> LongPolls {
        LongPolls { max, max_per_key, table: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those for whom something changed.
    pub fn notify(&self, service: &Service) {
        let groups: Vec<Arc<Group>> =
            self.lock().keys.values().flatten().map(|member| Arc::clone(&member.group)).collect();
        for group in groups {
            if !service.is_current(&group.interest) {
                group.news.notify_waiters();
            }
        }
    }

    /// Waits until there is news for a request, its time is over, the server stops or its connection is needed for another.
    /// Returns its turn, to be kept until it is answered.
    pub async fn wait(
        &self,
        service: &Service,
        exchange: &mut Exchange,
        interest: Interest,
        until: Instant,
        state: &ConnectionState,
        closing: &mut watch::Receiver<bool>,
    ) -> Option<OwnedSemaphorePermit> {
        let Some(mut membership) = self.enter(service, &interest) else {
            exchange.wake(Instant::now(), now(), true);
            return None;
        };
        let group = Arc::clone(&membership.group);
        let mut news = std::pin::pin!(group.news.notified());
        news.as_mut().enable();
        state.hold();
        // A change before it joined the group woke nobody, so the request does not wait then.
        let is_current = service.is_current(&interest);
        // Its key may end before its own time.
        let wake_at = exchange.key_ends_at().map_or(until, |end| end.min(until));
        membership.end = if is_current {
            tokio::select! {
                biased;
                () = news => WaitEnd::Change,
                // An error means that the server is gone.
                _ = closing.wait_for(|closing| *closing) => WaitEnd::Stop,
                () = state.released() => WaitEnd::Capacity,
                () = tokio::time::sleep_until(wake_at.into()) => WaitEnd::Time,
            }
        } else {
            WaitEnd::Change
        };
        let end = membership.end;
        drop(membership);
        state.go_on();
        let turn = match end {
            WaitEnd::Change => Arc::clone(&group.turns).acquire_owned().await.ok(),
            _ => None,
        };
        let at = Instant::now();
        let is_over = match end {
            WaitEnd::Change => !is_current,
            WaitEnd::Time => at >= until,
            WaitEnd::Capacity | WaitEnd::Stop | WaitEnd::Left => true,
        };
        exchange.wake(at, now(), is_over);
        turn
    }

    /// Puts a request into its group; `None` where there is no room.
    fn enter<'h>(&'h self, service: &'h Service, interest: &Interest) -> Option<Membership<'h>> {
        let mut table = self.lock();
        let of_key = table.keys.get(&interest.key.hash).map_or(0, |members| members.iter().map(|it| it.count).sum());
        if table.count >= self.max || of_key >= self.max_per_key {
            return None;
        }
        table.count += 1;
        let members = table.keys.entry(interest.key.hash).or_default();
        let group = match members.iter_mut().find(|member| member.group.interest == *interest) {
            Some(member) => {
                member.count += 1;
                Arc::clone(&member.group)
            }
            None => {
                let turns = Arc::new(Semaphore::new(TURNS));
                let group = Arc::new(Group { interest: interest.clone(), news: Notify::new(), turns });
                members.push(Member { group: Arc::clone(&group), count: 1 });
                group
            }
        };
        service.observer().waits();
        Some(Membership { polls: self, service, group, end: WaitEnd::Left })
    }
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        let mut table = self.polls.lock();
        table.count -= 1;
        let key_hash = self.group.interest.key.hash;
        if let Some(members) = table.keys.get_mut(&key_hash) {
            for member in members.iter_mut().filter(|member| Arc::ptr_eq(&member.group, &self.group)) {
                member.count -= 1;
            }
            members.retain(|member| member.count > 0);
            if members.is_empty() {
                table.keys.remove(&key_hash);
            }
        }
        drop(table);
        self.service.observer().waited(self.end);
    }
}
