//! Dates and times in the contract's form: `YYYY-MM-DD` and `YYYY-MM-DDThh:mm:ssZ`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A time in whole seconds since 1970-01-01T00:00:00Z, in the years 1 to 9999.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// Returns the time this many seconds after the epoch, clamped to the years 1 to 9999.
    pub fn from_unix_s(seconds: i64) -> Timestamp {
        const YEAR_1: i64 = -62_135_596_800;
        const YEAR_9999_END: i64 = 253_402_207_200;
        Timestamp(seconds.clamp(YEAR_1, YEAR_9999_END))
    }

    /// Returns the seconds since the epoch.
    pub const fn unix_s(self) -> i64 {
        self.0
    }

    /// Returns the time this many seconds later.
    pub fn plus_s(self, seconds: i64) -> Timestamp {
        Timestamp::from_unix_s(self.0.saturating_add(seconds))
    }

    /// Returns the UTC date.
    pub fn date(self) -> Date {
        Offset::UTC.to_datetime(self.instant()).date()
    }

    fn instant(self) -> jiff::Timestamp {
        // Always in range; the epoch is never used.
        jiff::Timestamp::from_second(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.instant().fmt(f)
    }
}

/// Returns the present time. No other function reads the wall clock.
#[allow(clippy::disallowed_methods)]
pub fn now() -> Timestamp {
    Timestamp::from_unix_s(jiff::Timestamp::now().as_second())
}

// On other systems the monotonic clock includes suspend, or no clock does.
#[cfg(target_os = "linux")]
const BOOT_CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOT_CLOCK: ClockId = ClockId::Monotonic;

/// Returns the time since the machine's start. This clock is never set, and it includes the time in suspend.
pub fn since_boot() -> Duration {
    let time = clock_gettime(BOOT_CLOCK);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// The message for a text that is not a date.
pub const NOT_A_DATE: &str = "write a date as YYYY-MM-DD, such as 2026-03-15";

/// Parses exactly `YYYY-MM-DD`. Other forms of ISO 8601 would not be written back the same.
pub fn parse_date(text: &str) -> Result<Date, &'static str> {
    let is_shaped = matches!(text.as_bytes(), [_, _, _, _, b'-', _, _, b'-', _, _]);
    Date::from_str(text)
        .ok()
        .filter(|date| is_shaped && date.year() >= 1)
        .ok_or(NOT_A_DATE)
}

/// The seconds of a day.
pub const DAY_S: i64 = 86_400;

/// The error of a text that is neither a date nor a date-time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotATime {
    /// The `+` of an offset was not encoded and arrived as a blank.
    #[error("it contains a blank where an offset's `+` was meant: send `+` as `%2B`, or use `Z`")]
    BlankForPlus,
    /// Any other error.
    #[error(
        "write a date (2026-03-15) or a date-time (2026-03-15T09:30:00Z, 2026-03-15T09:30:00+02:00; UTC when no offset is given)"
    )]
    Malformed,
}

/// Parses an ISO 8601 date (its first second, UTC) or date-time. Without an offset it is UTC. A fraction of a second is
/// dropped (contract, "List parameters"). Second 60, a leap second, becomes 59.
pub fn parse_time(text: &str) -> Result<Timestamp, NotATime> {
    // The library also accepts a blank as separator. Here it is a `+` that was not encoded.
    if let Some((before, after)) = text.split_once(' ') {
        let is_plus =
            before.contains(['T', 't']) && parse_time(&[before, "+", after].concat()).is_ok();
        return Err(if is_plus {
            NotATime::BlankForPlus
        } else {
            NotATime::Malformed
        });
    }
    // It reads at most nine digits of a fraction, which is dropped in any case.
    const FRACTION_DIGITS: usize = 9;
    if let Some(point) = text.find(['.', ',']) {
        let digits = text[point + 1..]
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count();
        if digits > FRACTION_DIGITS {
            return parse_time(
                &[
                    &text[..=point + FRACTION_DIGITS],
                    &text[point + 1 + digits..],
                ]
                .concat(),
            );
        }
    }
    // It also accepts other forms of a date, an hour without minutes, and the name of a time zone in brackets.
    let has_date = text.get(..10).is_some_and(|date| parse_date(date).is_ok());
    let has_minutes = text.len() == 10 || text.as_bytes().get(13) == Some(&b':');
    if !has_date || !has_minutes || text.contains('[') {
        return Err(NotATime::Malformed);
    }
    let parts = Pieces::parse(text).map_err(|_| NotATime::Malformed)?;
    let local = civil_utc(
        parts
            .date()
            .to_datetime(parts.time().unwrap_or(Time::midnight())),
    )?;
    match i64::from(parts.to_numeric_offset().unwrap_or(Offset::UTC).seconds()) {
        offset_s if offset_s.abs() < DAY_S => Ok(local.plus_s(-offset_s)),
        _ => Err(NotATime::Malformed),
    }
}

/// Parses a date of HTTP, such as `Wed, 21 Oct 2026 07:28:00 GMT` (RFC 9110, section 5.6.7).
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    let is_shaped = text.len() == "Wed, 21 Oct 2026 07:28:00 GMT".len() && text.ends_with(" GMT");
    let time = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()
        .filter(|_| is_shaped)?;
    Some(Timestamp::from_unix_s(time.as_second()))
}

fn civil_utc(at: DateTime) -> Result<Timestamp, NotATime> {
    match Offset::UTC.to_timestamp(at) {
        Ok(instant) => Ok(Timestamp::from_unix_s(instant.as_second())),
        // The library's times end two hours before the year 9999 does.
        Err(_) if at.year() == 9999 => Ok(Timestamp::from_unix_s(i64::MAX)),
        Err(_) => Err(NotATime::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn time_since_boot_is_the_boot_clocks() {
        let kernels = || Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap();
        let before = kernels();
        let shown = since_boot();
        assert!(
            (before..=kernels()).contains(&shown),
            "{shown:?} after {before:?}"
        );
    }

    /// The same in a time namespace whose boot clock is a day ahead, as on a machine that was suspended for a day.
    #[cfg(target_os = "linux")]
    #[test]
    fn time_since_boot_includes_suspend() {
        let suspended = |program: &std::ffi::OsStr| {
            let mut command = std::process::Command::new("unshare");
            command
                .args(["--map-root-user", "--time", "--boottime", "86400"])
                .arg(program);
            command
        };
        if !suspended("true".as_ref())
            .output()
            .is_ok_and(|done| done.status.success())
        {
            println!("skipped: no time namespace can be created here");
            return;
        }
        let mut same = suspended(std::env::current_exe().unwrap().as_os_str());
        let done = same
            .args("--exact model::time::tests::time_since_boot_is_the_boot_clocks".split(' '))
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stdout)
        );
    }

    #[test]
    fn a_time_has_the_date_of_its_second() {
        let cases = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (86_399, "1970-01-01"),
            (86_400, "1970-01-02"),
            (1_709_164_799, "2024-02-28"),
            (1_709_164_800, "2024-02-29"),
            (1_709_251_200, "2024-03-01"),
            (1_767_225_599, "2025-12-31"),
            (1_767_225_600, "2026-01-01"),
            (i64::MIN, "0001-01-01"),
            (i64::MAX, "9999-12-30"),
        ];
        for (seconds, expected) in cases {
            let date = Timestamp::from_unix_s(seconds).date().to_string();
            assert_eq!(date, expected, "{seconds}");
        }
        let (first, last) = (
            Timestamp::from_unix_s(i64::MIN),
            Timestamp::from_unix_s(i64::MAX),
        );
        assert_eq!(first.plus_s(-1), first);
        assert_eq!(last.plus_s(1), last);
        assert_eq!(last.plus_s(i64::MAX), last);
        assert_eq!(first.plus_s(1).unix_s(), first.unix_s() + 1);
        assert_eq!(last.plus_s(-1).unix_s(), last.unix_s() - 1);
        assert_eq!(first.to_string(), "0001-01-01T00:00:00Z");
        assert_eq!(last.to_string(), "9999-12-30T22:00:00Z");
    }

    #[test]
    fn times_are_read() {
        let cases = outcomes![
            "2026-03-15" => Ok("2026-03-15T00:00:00Z");
            "2026-03-15T09:30:00Z" "2026-03-15T09:30:00" "2026-03-15T09:30" "2026-03-15t09:30:00z"
            "2026-03-15T09:30:00.999Z" => Ok("2026-03-15T09:30:00Z");
            "2026-03-15T09:30:00+02:00" => Ok("2026-03-15T07:30:00Z");
            "2026-03-15T09:30:00-0130" => Ok("2026-03-15T11:00:00Z");
            "2026-12-31T23:59:60Z" => Ok("2026-12-31T23:59:59Z");
            "2024-02-29" => Ok("2024-02-29T00:00:00Z");
            // Offsets that move the day, the month, the year and the leap day.
            "2026-01-01T00:30:00+01:00" => Ok("2025-12-31T23:30:00Z");
            "2025-12-31T23:30:00-01:00" => Ok("2026-01-01T00:30:00Z");
            "2024-03-01T00:00:00+00:01" => Ok("2024-02-29T23:59:00Z");
            "2026-03-01T00:00:00+14:00" => Ok("2026-02-28T10:00:00Z");
            "2026-03-15T09:30:00+0530" => Ok("2026-03-15T04:00:00Z");
            "2026-03-15T09:30:00+02" => Ok("2026-03-15T07:30:00Z");
            "2026-03-15T09:30:00+23:59" => Ok("2026-03-14T09:31:00Z");
            "2026-03-15T09:30:00-00:00" "2026-03-15T09:30:00,5Z" => Ok("2026-03-15T09:30:00Z");
            "2026-03-15T09:30:00+24:00" "2026-03-15T09:30:00+01:60" "2026-03-15T09:30:00+1:00"
            "2026-03-15T09:30:00+" "2026-03-15T09:30:00+02:00Z" "2026-03-15T09:30:00 25:00"
            "2026-03-15T09:30.5Z" "2026-03-15T09" "2026-03-15T093000Z" "2026-03-15T09:30:00:00Z"
            "2026-03-15T9:30:00Z" "2026-03-15T23:59:61Z" "2026-03-15T09:60:00Z" "2026-04-31"
            "1900-02-29" "2026-03-15 09:30:00" "2026-02-29" "2026-3-5" "20260315" "2026-W11-7"
            "2026-03-1 " "-202-03-15" "+202-03-15" "2026-03-1T" "2026-03-15T24:00:00Z"
            "2026-03-15T09:30:00Z[UTC]" "2026-03-15[u-ca=iso8601]" "2026-03-15T09:30:00.Z"
            "2026-03-15T09:30:00+25:00" "2026-03-15T" "0000-01-01" "yesterday" "ééééé" ""
                => Err(NotATime::Malformed);
            "2026-03-15T23:59:59.999999999Z" => Ok("2026-03-15T23:59:59Z");
            "2026-03-15T23:59:59,99999999999999999999+02:00" => Ok("2026-03-15T21:59:59Z");
            "2026-03-15T10:59:60Z" => Ok("2026-03-15T10:59:59Z");
            "2016-12-31T18:59:60-05:00" => Ok("2016-12-31T23:59:59Z");
            "2000-02-29" => Ok("2000-02-29T00:00:00Z");
            "0001-01-01" "0001-01-01T00:00:00+23:59" => Ok("0001-01-01T00:00:00Z");
            "1969-12-31T23:59:59Z" => Ok("1969-12-31T23:59:59Z");
            "2026-03-15T09:30:00 02:00" => Err(NotATime::BlankForPlus);
            "9999-12-31T23:59:59Z" => Ok("9999-12-30T22:00:00Z");
        ];
        for (text, expected) in cases {
            let read = parse_time(text).map(|time| time.to_string());
            assert_eq!(read, expected.map(str::to_owned), "{text:?}");
        }
    }
}
