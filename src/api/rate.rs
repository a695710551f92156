//! Rate limits: fixed one-minute windows, per key and per address, on the monotonic clock.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::model::network_of;

const WINDOW: Duration = Duration::from_secs(60);
/// The number of unusable keys that an address may send per window.
pub const ADDRESS_LIMIT: u32 = 100;
/// The maximum number of windows. A full table first drops expired windows, then all.
const MAX_WINDOWS: usize = 65_536;

/// The content of the rate headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub limit: u32,
    pub remaining: u32,
    /// Seconds until the window ends, at least 1.
    pub reset_s: u64,
    /// Whether the window was used up before this request, which is not counted.
    pub is_exceeded: bool,
}

/// The windows of keys, and of addresses that send unusable keys.
#[derive(Default)]
pub struct RateLimiter {
    pub keys: Windows,
    /// By network.
    addresses: Windows,
}

impl RateLimiter {
    /// Counts an unusable key from an address.
    pub fn count_failure(&self, address: IpAddr, now: Instant) -> Window {
        self.addresses
            .count(&network_of(address).to_string(), ADDRESS_LIMIT, now)
    }

    pub fn address_window(&self, address: IpAddr, now: Instant) -> Window {
        self.addresses
            .peek(&network_of(address).to_string(), ADDRESS_LIMIT, now)
    }
}

#[derive(Clone, Copy)]
struct WindowCount {
    began: Instant,
    used: u32,
}

impl WindowCount {
    fn begin(now: Instant) -> WindowCount {
        WindowCount {
            began: now,
            used: 0,
        }
    }
}

#[derive(Default)]
pub struct Windows(Mutex<HashMap<String, WindowCount>>);

impl Windows {
    /// Counts a request, unless the window is used up.
    pub fn count(&self, key: &str, limit: u32, now: Instant) -> Window {
        let mut windows = self.0.lock();
        if !windows.contains_key(key) && windows.len() >= MAX_WINDOWS {
            windows.retain(|_, count| !is_over(count, now));
            if windows.len() >= MAX_WINDOWS {
                windows.clear();
            }
        }
        let fresh = WindowCount::begin(now);
        let count = windows.entry(key.to_owned()).or_insert(fresh);
        if is_over(count, now) {
            *count = fresh;
        }
        let is_exceeded = count.used >= limit;
        if !is_exceeded {
            count.used += 1;
        }
        Window {
            is_exceeded,
            ..window(count, limit, now)
        }
    }

    pub fn peek(&self, key: &str, limit: u32, now: Instant) -> Window {
        let windows = self.0.lock();
        let count = windows.get(key).filter(|count| !is_over(count, now));
        window(count.unwrap_or(&WindowCount::begin(now)), limit, now)
    }
}

fn is_over(count: &WindowCount, now: Instant) -> bool {
    now.saturating_duration_since(count.began) >= WINDOW
}

fn window(count: &WindowCount, limit: u32, now: Instant) -> Window {
    let left = WINDOW.saturating_sub(now.saturating_duration_since(count.began));
    let reset_s = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    Window {
        limit,
        remaining: limit.saturating_sub(count.used),
        reset_s: reset_s.max(1),
        is_exceeded: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lasts_a_minute_from_its_first_request() {
        let rate = RateLimiter::default();
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let cases = [
            // key, ms, limit → remaining, reset, refused
            ("a", 0, 2, 1, 60, false),
            ("a", 500, 2, 0, 60, false),
            ("a", 1_000, 2, 0, 59, true),
            ("b", 1_000, 2, 1, 60, false),
            ("a", 59_999, 2, 0, 1, true),
            ("a", 60_000, 2, 1, 60, false),
            ("a", 61_000, 5, 3, 59, false),
        ];
        for (key, ms, limit, remaining, reset_s, refused) in cases {
            assert_eq!(
                rate.keys.count(key, limit, at(ms)),
                Window {
                    limit,
                    remaining,
                    reset_s,
                    is_exceeded: refused,
                },
                "{key} at {ms}"
            );
        }
    }

    #[test]
    fn an_ipv6_caller_is_its_network() {
        let rate = RateLimiter::default();
        let now = Instant::now();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for at in 0..ADDRESS_LIMIT {
            let one = address(&format!("2001:db8:0:1::{at:x}"));
            assert!(!rate.count_failure(one, now).is_exceeded);
        }
        for (text, expected) in [("2001:db8:0:1:ffff::1", true), ("2001:db8:0:2::1", false)] {
            let window = rate.count_failure(address(text), now);
            assert_eq!(window.is_exceeded, expected, "{text}");
        }
        let remaining = rate.address_window(address("192.0.2.1"), now).remaining;
        assert_eq!(remaining, ADDRESS_LIMIT);
    }

    #[test]
    fn the_table_of_windows_is_bounded() {
        let windows = Windows::default();
        let start = Instant::now();
        for key in 0..200_000_u32 {
            let _ = windows.count(&key.to_string(), 1, start);
        }
        assert!(windows.0.lock().len() <= MAX_WINDOWS);
    }

    #[test]
    fn a_full_table_drops_expired_windows_first() {
        let windows = Windows::default();
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        for key in 0..MAX_WINDOWS - 1 {
            let _ = windows.count(&key.to_string(), 9, start);
        }
        let (running, beyond) = ("running", "beyond");
        let _ = windows.count(running, 9, at(30_000));
        assert_eq!(windows.0.lock().len(), MAX_WINDOWS, "so many have a place");
        // A key that has a window needs no further one.
        let _ = windows.count(running, 9, at(60_000));
        assert_eq!(windows.0.lock().len(), MAX_WINDOWS);
        let _ = windows.count(beyond, 9, at(60_000));
        let count = windows.0.lock().len();
        assert_eq!(count, 2, "those of the first minute are dropped");
        assert_eq!(
            windows.peek(running, 9, at(60_000)),
            Window {
                limit: 9,
                remaining: 7,
                reset_s: 30,
                is_exceeded: false,
            }
        );
        assert_eq!(windows.peek(beyond, 9, at(60_000)).remaining, 8);
    }

    #[test]
    fn reading_a_window_does_not_count_a_request() {
        let rate = RateLimiter::default();
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let full = Window {
            limit: 3,
            remaining: 3,
            reset_s: 60,
            is_exceeded: false,
        };
        let peek = rate.keys.peek("a", 3, start);
        assert_eq!(peek, full, "one that has not begun");
        let _ = rate.keys.count("a", 3, start);
        let cases = [
            ("a", 0, 2, 60),
            ("a", 1, 2, 60),
            ("a", 59_000, 2, 1),
            ("a", 59_999, 2, 1),
            ("b", 59_000, 3, 60),
        ];
        for (key, ms, remaining, reset_s) in cases {
            assert_eq!(
                rate.keys.peek(key, 3, at(ms)),
                Window {
                    remaining,
                    reset_s,
                    ..full
                },
                "{key} at {ms}"
            );
        }
        assert_eq!(rate.keys.peek("a", 3, at(60_000)), full, "it is over");
        assert_eq!(rate.keys.peek("a", 1, at(1)).remaining, 0);
        assert_eq!(
            rate.keys.peek("a", 0, at(1)).remaining,
            0,
            "a lower limit than was used"
        );
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let _ = rate.count_failure(address("::ffff:192.0.2.1"), start);
        for (text, used) in [("192.0.2.1", 1), ("::ffff:192.0.2.1", 1), ("192.0.2.2", 0)] {
            assert_eq!(
                rate.address_window(address(text), start).remaining,
                ADDRESS_LIMIT - used,
                "{text}"
            );
        }
    }
}
