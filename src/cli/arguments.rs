//! Parsers of option values: durations, times, addresses, years, texts.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use strum::ParseError;
use tracing_subscriber::EnvFilter;

use crate::model::value::scalar::Scalar;
use crate::model::{DAY_S, Timestamp, now, parse_date, parse_time, steers};

/// The longest duration, in days: a thousand years. Added to a time, a longer one could be beyond the clock's range.
const MAX_DAYS: u64 = 365_250;
/// The shortest interval between requests to another service.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// A parser of the path of a database, or of files that are written. `-`, which elsewhere is a stream, is refused.
pub fn path_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err("a database or a folder is no stream; name a file or folder, or write `./-` if that is its name"),
        false => Ok(path),
    })
}

/// A parser of these words of an enum.
pub fn one_of<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = ParseError> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse::<T>())
}

/// Parses the value of a switch, which comes from its variable. An unclear value must not switch anything on.
pub fn parse_switch(text: &str) -> Result<bool, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("write true, 1, yes or on, or false, 0, no or off, without quotes and blanks"),
    }
}

/// Parses a duration: a number and a unit, or several (`1h 30m`).
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let read = humantime::parse_duration(text)
        .map_err(|_| "write a number and a unit: 90s, 5m, 24h, 7d".to_owned())?;
    if read > Duration::from_secs(MAX_DAYS * 86_400) {
        return Err(format!("it is too long; write at most {MAX_DAYS}d"));
    }
    Ok(read)
}

/// Parses the interval between requests to another service.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    let read = parse_duration(text)?;
    if read < SHORTEST_INTERVAL {
        return Err("it is too short; write at least 10ms".to_owned());
    }
    Ok(read)
}

/// Parses an end: an RFC 3339 time, a date (its end, UTC), or a duration from now.
pub fn parse_end(text: &str) -> Result<Timestamp, String> {
    end_after(text, now())
}

fn end_after(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let end = match parse_time(text) {
        Ok(day) if parse_date(text).is_ok() => day.plus_s(DAY_S),
        Ok(time) => time,
        Err(_) => now.plus_s(seconds_of(text)?),
    };
    if end <= now {
        return Err(format!(
            "it is in the past, so the key would never work; now is {now}"
        ));
    }
    Ok(end)
}

/// Parses a time from now.
fn seconds_of(text: &str) -> Result<i64, String> {
    if let Some(months) = text.strip_suffix('m')
        && months.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(format!(
            "`m` means minutes; for months write days, weeks or a date, and for minutes `{months}min`"
        ));
    }
    let rule = "write a date (2026-12-31, until its end in UTC), a date with a time (2026-12-31T18:00:00Z), or a time from \
                now: 12h, 30d, 2w, 1y";
    let duration = humantime::parse_duration(text).map_err(|_| rule)?;
    Ok(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}

/// Parses `ADDRESS:PORT`. A port alone, also as `:PORT` or `localhost:PORT`, means 127.0.0.1.
pub fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let port = text
        .strip_prefix("localhost:")
        .or(text.strip_prefix(':'))
        .unwrap_or(text);
    let local = port
        .parse()
        .map(|port: u16| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    text.parse().or(local).map_err(|_| {
        "write an address of this machine and a port from 0 to 65535, without a scheme: 127.0.0.1:8080, 0.0.0.0:8080 for every \
         address, [::1]:8080; port 0 picks a free one"
            .to_owned()
    })
}

/// Parses a log level, or a filter of `tracing`.
pub fn parse_filter(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    // To `tracing`, a single word such as `verbose` is the name of a module.
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(text));
    if is_word && !is_level || EnvFilter::try_new(text).is_err() {
        return Err("write error, warn, info, debug or trace, or a filter such as warn,medfeed::serve=debug".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses an absolute URL without query, and drops a slash at its end. The documentation quotes it in shell commands,
/// so it must not contain characters that a shell expands, or that end a quote.
pub fn parse_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://");
    let rest = rest.or(text.strip_prefix("http://")).unwrap_or_default();
    let has_end =
        rest.contains(|letter: char| letter.is_control() || " ?#\"<>'`$\\".contains(letter));
    if rest.is_empty() || rest.starts_with('/') || has_end {
        return Err(
            "write an absolute URL with its scheme and without query, such as https://feed.example.org".to_owned()
        );
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Parses the URL that callers see. The paths of the API already begin with `/v1`.
pub fn parse_public_url(text: &str) -> Result<String, String> {
    let url = parse_url(text)?;
    match url.strip_suffix("/v1") {
        Some(base) => Err(format!("write it without /v1: {base}")),
        None => Ok(url),
    }
}

/// Parses a contact: a mail address, or the URL of a page. Returns its URL.
pub fn parse_contact(text: &str) -> Result<String, String> {
    let address = text.strip_prefix("mailto:").unwrap_or(text);
    let parts: Vec<&str> = address.split('@').collect();
    let is_sign = |letter: char| letter.is_ascii_alphanumeric() || "@._+-".contains(letter);
    if parts.len() == 2 && !parts.contains(&"") && address.chars().all(is_sign) {
        return Ok(format!("mailto:{address}"));
    }
    parse_url(text).map_err(|_| {
        "write a mail address, such as data@example.org, or the URL of a page without query, such as https://example.org/contact".to_owned()
    })
}

/// Parses a year, or a range of years that includes its end.
pub fn parse_years(text: &str) -> Result<std::ops::RangeInclusive<u16>, String> {
    const RULE: &str = "write a year from 1900 to 2100, or a range such as 2024..2027";
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match [first, last].map(<u16 as Scalar>::parse) {
        [Some(first), Some(last)] if first <= last => Ok(first..=last),
        [Some(_), Some(_)] => Err(format!("the range ends before it begins; {RULE}")),
        _ => Err(RULE.to_owned()),
    }
}

/// Parses a text that is not empty.
pub fn parse_text(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("it is empty; write a text, or leave the option out".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// Parses a note for the history.
pub fn parse_note(text: &str) -> Result<String, String> {
    match text.chars().count() {
        0..=500 => parse_plain_text(text),
        chars => Err(format!("it has {chars} characters; write at most 500")),
    }
}

/// Parses a text that is not empty and contains no control characters.
pub fn parse_plain_text(text: &str) -> Result<String, String> {
    if text.contains(steers) {
        return Err(
            "it contains a line break, a tab, or another control character; write one line of plain text".to_owned()
        );
    }
    parse_text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares what a parser returns with the value, or with a part of the message.
    fn check<T: ToString>(
        parse: impl Fn(&str) -> Result<T, String>,
        cases: &[(&str, Result<&str, &str>)],
    ) {
        for (text, expected) in cases {
            match (parse(text), expected) {
                (Ok(value), Ok(expected)) => assert_eq!(value.to_string(), *expected, "{text:?}"),
                (Err(message), Err(expected)) => {
                    assert!(message.contains(expected), "{text:?}: {message}")
                }
                (read, expected) => panic!(
                    "{text:?}: {:?}, not {expected:?}",
                    read.map(|value| value.to_string())
                ),
            }
        }
    }

    #[test]
    fn contacts_are_mail_addresses_or_pages() {
        let cases = outcomes![
            "feed@data.example" => Ok("mailto:feed@data.example");
            "mailto:a.b+c@x-y.example" => Ok("mailto:a.b+c@x-y.example");
            "http://example.org/help" => Ok("http://example.org/help");
            "https://example.org/a&b/" => Ok("https://example.org/a&b");
            "" "example.org" "@example.org" "feed@" "a@b@c" "a b@example.org"
            "feed@example.org?cc=x" "mailto:https://example.org" "javascript:alert(1)"
            "ftp://example.org" "https://" "https://x/\"><script>" => Err("write a mail address");
        ];
        check(parse_contact, &cases);
    }

    #[test]
    fn switches_are_read() {
        for text in ["true", "TRUE", "1", "yes", "Yes", "on", "oN"] {
            assert_eq!(parse_switch(text), Ok(true), "{text:?}");
        }
        for text in ["false", "False", "0", "no", "NO", "off", "OFF"] {
            assert_eq!(parse_switch(text), Ok(false), "{text:?}");
        }
        for text in [
            "", " ", "\"true\"", "'false'", "off\r", " no", "yes ", "y", "n", "t", "f", "2", "00",
            "-1", "enabled", "disabled", "none", "null", "maybe", "ＯＮ", "truee",
        ] {
            assert!(parse_switch(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn notes_are_read() {
        let long = "é".repeat(500);
        check(
            parse_note,
            &cases![
                "agreed with Dr. Ito on 3 May", Ok("agreed with Dr. Ito on 3 May");
                long.as_str(), Ok(long.as_str());
                &format!("{long}!"), Err("501 characters; write at most 500");
                "", Err("it is empty");
                "a\nb", Err("one line of plain text");
                "a\tb", Err("one line of plain text");
                "\u{202e}a", Err("one line of plain text");
                "\u{7f}", Err("one line of plain text");
            ],
        );
    }

    #[test]
    fn durations_are_read() {
        let cases = outcomes![
            "90s" => Some(90_000);
            "250ms" => Some(250);
            "5m" "5min" => Some(300_000);
            "24h" => Some(86_400_000);
            "7d" => Some(604_800_000);
            "0s" => Some(0);
            "90" "s" "" "-1s" "soon" "99999999999999999999d" "365250d 1ms" "500000000000y" => None;
            "1.5h" "1h 30m" => Some(5_400_000);
            "2w" => Some(1_209_600_000);
            "365250d" => Some(31_557_600_000_000);
            "1M" => Some(2_630_016_000);
        ];
        for (text, expected) in cases {
            let read = parse_duration(text).ok().map(|read| read.as_millis());
            assert_eq!(read, expected, "{text:?}");
        }
    }

    #[test]
    fn ends_of_periods_are_read() {
        let now = parse_time("2026-11-22T12:00:00Z").unwrap();
        let cases = outcomes![
            "2026-12-31" => Ok("2027-01-01T00:00:00Z");
            "2026-11-22" => Ok("2026-11-23T00:00:00Z");
            "2026-12-31T18:00:00+02:00" => Ok("2026-12-31T16:00:00Z");
            "30d" => Ok("2026-12-22T12:00:00Z");
            "2w" => Ok("2026-12-06T12:00:00Z");
            "90min" "1h 30m" => Ok("2026-11-22T13:30:00Z");
            "2026-11-21" "2026-11-22T12:00:00Z" "2026-11-22T13:00:00+01:00" "2026-02-28" "500ms"
            "0s" => Err("in the past");
            "2020-01-01T00:00:00Z" => Err("now is 2026-11-22T12:00:00Z");
            "2026-11-22T12:00:01Z" "1s" => Ok("2026-11-22T12:00:01Z");
            "2028-02-28" => Ok("2028-02-29T00:00:00Z");
            "m" => Err("`m` means minutes");
            "6m" => Err("`6min`");
            "tomorrow" "31.12.2026" => Err("write a date");
        ];
        check(|text| end_after(text, now), &cases);
    }

    #[test]
    fn addresses_are_read() {
        let cases = outcomes![
            "127.0.0.1:8080" "8080" ":8080" => Ok("127.0.0.1:8080");
            "localhost:0" => Ok("127.0.0.1:0");
            "[::1]:8080" => Ok("[::1]:8080");
            "0.0.0.0:80" => Ok("0.0.0.0:80");
            "::1" => Err("[::1]:8080");
            "10.0.0.1" "" => Err("a port");
            "localhost" => Err("127.0.0.1:8080");
            "127.0.0.1:99999" "70000" ":http" => Err("0 to 65535");
            "*:8080" "example.org:8080" => Err("0.0.0.0:8080 for every address");
            "http://127.0.0.1:8080" => Err("without a scheme");
        ];
        check(parse_listen, &cases);
    }

    #[test]
    fn years_are_read() {
        let cases = outcomes![
            "2026" => Some(2026..=2026);
            "2024..2027" => Some(2024..=2027);
            "2024..2024" => Some(2024..=2024);
            "1900" => Some(1900..=1900);
            "2100" => Some(2100..=2100);
            "1900..2100" => Some(1900..=2100);
            "2099..2101" "1899..1900" "1899" "2101" "2027..2024" "2024.." "2024-2027" "20260"
            "02026" "x" => None;
        ];
        for (text, expected) in cases {
            assert_eq!(parse_years(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn urls_are_read() {
        let cases = outcomes![
            "https://feed.example.org" => Ok("https://feed.example.org");
            "http://h" => Ok("http://h");
            "https://h/" => Ok("https://h");
            "https://h/a/b//" => Ok("https://h/a/b");
            "https://h:8443/a" => Ok("https://h:8443/a");
            "feed.example.org" => Err("with its scheme");
            "https://" "https:///" "" "ftp://h" "https://h/?a" "https://h/#a" "https://h/a b"
            "https://h/it's" "https://h/\"" "https://h/$(x)" "https://h/`x`" "https://h/\\"
            "https://h/<b>" "https://h/>" "https://h/\n" "o'neill.example.org" => Err("such as");
        ];
        check(parse_url, &cases);
        let expected = Ok("https://h/api");
        assert_eq!(parse_public_url("https://h/api/").as_deref(), expected);
        for text in ["https://h/api/v1", "https://h/api/v1/"] {
            let expected = "write it without /v1: https://h/api";
            assert_eq!(parse_public_url(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn log_filters_are_read() {
        for text in words![
            "error" "WARN" "info" "debug" "trace" "off" "warn,medfeed::serve=debug" "medfeed=info"
        ] {
            assert_eq!(parse_filter(text).as_deref(), Ok(text));
        }
        for text in words!["verbose" "warning" "5x" "medfeed" "a=b=c" "medfeed=loud"] {
            assert!(parse_filter(text).is_err(), "{text}");
        }
    }
}
