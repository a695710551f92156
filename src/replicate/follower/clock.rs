//! A clock that nobody sets and that also runs while the machine sleeps: what was true an hour of sleep ago is an hour old.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

// Elsewhere the monotonic clock runs in suspend itself, or there is none that does.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The time since the machine's start.
pub fn since_boot() -> Duration {
    let time = clock_gettime(CLOCK);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
