//! Long-polling requests of change feeds (parameter `wait`). Each takes its connection and a timer, but no thread.
//! After a commit, each looks in memory whether its license shows a change.

use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::api::Service;
use crate::api::observe::WaitEnd;
use crate::api::request::{Exchange, Interest};
use crate::model::now;
use crate::serve::connection::limits::Connection;
use crate::serve::connection::permits::KeyedPermits;

/// A long poll that is counted. Dropping it reports its end.
struct LongPoll<'s> {
    service: &'s Service,
    end: WaitEnd,
    _permits: Vec<OwnedSemaphorePermit>,
}

/// The long polls of a service.
#[derive(Clone, Copy)]
pub struct LongPolls<'s> {
    /// The service that is asked for changes.
    pub service: &'s Service,
    /// Their permits.
    pub permits: &'s KeyedPermits,
}

impl LongPolls<'_> {
    /// Waits until a change, the end of the request's time, the server's stop, the closing of its connection, or the end of
    /// what its caller sends. Does not wait if no permit is free.
    pub async fn wait(
        self,
        exchange: &mut Exchange,
        interest: Interest,
        connection: &Connection,
        closing: &mut watch::Receiver<bool>,
    ) {
        let Some(permits) = self.permits.try_acquire(&interest.key.record.id) else {
            exchange.wake(Instant::now(), now(), true);
            return;
        };
        let service = self.service;
        service.observer().long_poll_started();
        let mut poll = LongPoll {
            service,
            end: WaitEnd::Left,
            _permits: permits,
        };
        // From here on it is notified, so it misses no commit.
        let mut commits = service.changes();
        connection.start_long_poll(interest.key.hash);
        // The witness of a damaged feed is never current. Such a request would be woken at once, again and again.
        let was_current = service.is_current(&interest);
        let changed =
            async { while service.is_current(&interest) && commits.changed().await.is_ok() {} };
        // Its key may expire or be revoked earlier.
        let wake_at = exchange
            .key_ends_at()
            .map_or(interest.until, |end| end.min(interest.until));
        poll.end = tokio::select! {
            biased;
            () = changed => WaitEnd::Change,
            _ = closing.wait_for(|closing| *closing) => WaitEnd::Stop,
            end = connection.woken() => end,
            () = tokio::time::sleep_until(wake_at.into()) => WaitEnd::Time,
        };
        connection.finish_long_poll();
        let at = Instant::now();
        let is_over = match poll.end {
            WaitEnd::Change => !was_current,
            WaitEnd::Time => at >= interest.until,
            WaitEnd::Capacity | WaitEnd::Stop | WaitEnd::Left => true,
        };
        exchange.wake(at, now(), is_over);
    }
}

impl Drop for LongPoll<'_> {
    fn drop(&mut self) {
        self.service.observer().long_poll_ended(self.end);
    }
}
