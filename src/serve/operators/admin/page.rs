//! The operators' page: data, licenses, keys and their lag, traffic. It works without its script, and shows no API
//! keys.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;

use super::monitored::{Monitored, MonitoredServer};
use crate::api::SnapshotSource;
use crate::model::{
    Count, Dataset, KeyRecord, KeyStatus, License, Rule, Scope, Timestamp, first_of, now,
};
use crate::serve::operators::metrics::RouteTraffic;
use crate::serve::operators::usage::{KeyUse, Uses};
use crate::store::{Snapshot, StoredCommit};

pub const STYLE: &str = concat!(include_str!("../../../look.css"), include_str!("page.css"));
pub const SCRIPT: &str = include_str!("page.js");

const COMMITS: usize = 20;
/// The maximum number of licenses, and of keys, on the page.
const MAX_ROWS: usize = 500;
/// The maximum number of values of a license's set on the page.
const MAX_VALUES: usize = 6;
/// The lag that fills the bar of a key, in seconds: a week.
const FULL_BAR_S: u64 = 7 * 86_400;

impl Monitored for MonitoredServer {
    fn unready(&self) -> Option<String> {
        if *self.stopping.borrow() {
            return Some("the server is stopping".to_owned());
        }
        if !self.watcher.is_polled() {
            return Some(
                "the database file cannot be followed; the last state is served".to_owned(),
            );
        }
        let replica = self.watcher.replica().filter(|replica| !replica.is_fresh());
        self.watcher
            .fence_reason()
            .or_else(|| replica.and_then(|replica| replica.failure()))
    }

    /// A replica stays ready for a while when its bucket fails. Otherwise load balancers would drop all replicas at
    /// once.
    fn warning(&self) -> Option<String> {
        self.watcher.replica().and_then(|replica| replica.failure())
    }

    fn scrape(&self) -> String {
        self.metrics
            .render(&self.watcher, &self.service, self.started_at)
    }

    fn page(&self) -> Option<Result<String, String>> {
        Some(render(self))
    }
}

struct KeyRow<'a> {
    key: &'a KeyRecord,
    status: &'static str,
    used: Option<Timestamp>,
    /// The lag of each feed in seconds; `None` if it is unknown.
    feeds: Vec<(Dataset, Option<u64>)>,
    behind_s: u64,
}

impl<'a> KeyRow<'a> {
    fn of(key: &'a KeyRecord, newest: &Snapshot, uses: &Uses, now: Timestamp) -> KeyRow<'a> {
        let unused = KeyUse::default();
        let used = uses.get(&key.id).unwrap_or(&unused);
        let lags = used
            .feeds
            .iter()
            .map(|(dataset, seen)| (*dataset, seen.lag_s(*dataset, key, newest, now)));
        let feeds: Vec<(Dataset, Option<u64>)> = lags.collect();
        KeyRow {
            key,
            status: match key.status_after(now, newest.commit().time) {
                KeyStatus::Replaced => "replaced, still usable",
                status => status.as_str(),
            },
            used: used.last_used_at,
            behind_s: feeds.iter().filter_map(|(_, lag)| *lag).max().unwrap_or(0),
            feeds,
        }
    }
}

#[derive(Template)]
#[template(path = "page.html", config = "src/askama.toml")]
struct Page<'a> {
    version: &'static str,
    file: String,
    public_url: &'a str,
    state: String,
    is_well: bool,
    now: Timestamp,
    started: Timestamp,
    shown: &'a Snapshot,
    routes: BTreeMap<&'static str, RouteTraffic>,
    licenses: Vec<&'a Arc<License>>,
    more_licenses: usize,
    usable_keys: Vec<&'a Arc<KeyRecord>>,
    keys: Vec<KeyRow<'a>>,
    more_keys: usize,
    unusable_keys: usize,
    commits: Vec<StoredCommit>,
    /// The thresholds of the bar for yellow and red, in percent.
    low: u8,
    high: u8,
}

/// Renders the page, or returns the error message.
fn render(monitored: &MonitoredServer) -> Result<String, String> {
    let shown = monitored.watcher.shown();
    let newest = monitored.watcher.newest();
    let now = now();
    let uses = monitored.usage.as_ref().map(|usage| usage.all());
    let uses = uses.unwrap_or_default();
    let committed = newest.commit().time;
    let mut keys = newest.list_keys();
    let all_keys = keys.len();
    keys.retain(|key| key.status_after(now, committed).is_usable());
    let rows = keys.iter().map(|key| KeyRow::of(key, &newest, &uses, now));
    let mut rows: Vec<KeyRow<'_>> = rows.collect();
    let more_keys = keep_latest(&mut rows);
    let mut licenses = shown.list_licenses();
    let more_licenses = licenses.len().saturating_sub(MAX_ROWS);
    licenses.truncate(MAX_ROWS);
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        file: monitored.watcher.path().display().to_string(),
        public_url: &monitored.service.settings().public_url,
        state: describe_state(monitored, newest.commit() != shown.commit()),
        is_well: monitored.unready().is_none(),
        now,
        started: monitored.started_at,
        routes: monitored.metrics.routes(),
        licenses,
        more_licenses,
        unusable_keys: all_keys - keys.len(),
        usable_keys: keys,
        keys: rows,
        more_keys,
        commits: newest
            .list_commits(0, COMMITS)
            .map_err(|error| error.to_string())?,
        shown: &shown,
        low: filled_bar(3600),
        high: filled_bar(86_400),
    };
    page.render().map_err(|error| error.to_string())
}

/// Values as the template shows them.
impl Page<'_> {
    fn ago(&self, time: &Timestamp) -> String {
        ago(*time, self.now)
    }

    fn count(number: &(impl Copy + Into<u64>)) -> Count {
        Count((*number).into())
    }

    fn records(&self, dataset: &Dataset) -> Count {
        Count(self.shown.totals().records[*dataset])
    }

    fn changed_at(&self, dataset: &Dataset) -> Option<Timestamp> {
        self.shown.totals().changed_at[*dataset]
    }

    /// The records that a license shows; a dash where the dataset is not licensed.
    fn visible(&self, license: &License, dataset: &Dataset) -> String {
        let records = self.shown.visible_records(license, *dataset);
        records.map_or_else(|| "–".to_owned(), |records| Count(records).to_string())
    }

    fn keys_of(&self, license: &License) -> usize {
        let keys = self.usable_keys.iter();
        keys.filter(|key| key.license_name == license.name).count()
    }

    fn per_minute(&self, requests: &u64) -> String {
        let up_s = u64::try_from(self.now.unix_s() - self.started.unix_s());
        per_minute(*requests, up_s.unwrap_or(0).max(1))
    }

    fn share(part: &u64, whole: &u64) -> String {
        share(*part, *whole)
    }

    fn filled(behind_s: &u64) -> u8 {
        filled_bar(*behind_s)
    }

    fn behind(behind_s: &Option<u64>) -> String {
        behind(*behind_s)
    }
}

/// Describes whether the server is ready. `is_held_back`: whether the newest commit is not shown yet.
fn describe_state(monitored: &MonitoredServer, is_held_back: bool) -> String {
    if let Some(reason) = monitored.unready() {
        return reason;
    }
    match monitored.warning() {
        Some(warning) => format!("ready; {warning}"),
        None if is_held_back => "ready; a newer commit waits for the change delay".to_owned(),
        None => "ready".to_owned(),
    }
}

/// Sorts keys by their lag, the largest first, and keeps those that the page shows. Returns the number of the others.
fn keep_latest(keys: &mut Vec<KeyRow<'_>>) -> usize {
    keys.sort_by_key(|key| Reverse(key.behind_s));
    let more_keys = keys.len().saturating_sub(MAX_ROWS);
    keys.truncate(MAX_ROWS);
    more_keys
}

/// The time since an instant, in words.
fn ago(time: Timestamp, now: Timestamp) -> String {
    match u64::try_from(now.unix_s() - time.unix_s()) {
        Ok(0) | Err(_) => "just now".to_owned(),
        Ok(seconds) => format!("{} ago", span(seconds)),
    }
}

/// The lag of a feed, in words.
fn behind(behind_s: Option<u64>) -> String {
    match behind_s {
        Some(0) => "up to date".to_owned(),
        Some(behind_s) => format!("{} behind", span(behind_s)),
        None => "unknown".to_owned(),
    }
}

/// The sets of a scope that restrict it, in words.
fn sets(scope: &Scope) -> Vec<(String, String)> {
    let mut sets = Vec::new();
    for rule in Rule::ALL {
        let Some(set) = scope.set(rule) else {
            continue;
        };
        let values = set.values();
        let text = if values.is_empty() {
            "none".to_owned()
        } else {
            first_of(&values, values.len(), MAX_VALUES)
        };
        sets.push((rule.to_string(), text));
    }
    sets
}

/// A duration in its largest unit, rounded down.
fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", Count(seconds / 86_400)),
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "counts of requests are far below 2^53"
)]
fn per_minute(requests: u64, up_s: u64) -> String {
    let rate = requests as f64 * 60.0 / up_s as f64;
    if rate < 10.0 {
        format!("{rate:.1}")
    } else {
        format!("{rate:.0}")
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "counts of requests are far below 2^53"
)]
fn share(part: u64, whole: u64) -> String {
    if part == 0 {
        "0 %".to_owned()
    } else {
        format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
    }
}

/// The filled part of a key's bar, in percent. Logarithmic, so both minutes and days are visible.
fn filled_bar(behind_s: u64) -> u8 {
    #[allow(clippy::cast_precision_loss, reason = "a bar has a hundred steps")]
    let logarithm = |seconds: u64| (seconds as f64).ln_1p();
    let percent = (logarithm(behind_s) / logarithm(FULL_BAR_S) * 100.0).clamp(0.0, 100.0);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is within 0 and 100"
    )]
    let percent = percent.round() as u8;
    percent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LicenseId;

    #[test]
    fn figures_are_shown_in_words() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3599, "59 min"),
            (3600, "1 h"),
            (172_799, "47 h"),
            (172_800, "2 days"),
            (86_400_000, "1,000 days"),
        ] {
            assert_eq!(span(seconds), expected);
        }
        for (part, whole, expected) in [
            (0, 0, "0 %"),
            (1, 1000, "0.1 %"),
            (1, 3, "33.3 %"),
            (8, 8, "100.0 %"),
        ] {
            assert_eq!(share(part, whole), expected);
        }
        for (seconds, expected) in [
            (0, 0),
            (1, 5),
            (3600, 62),
            (86_400, 85),
            (FULL_BAR_S, 100),
            (u64::MAX, 100),
        ] {
            assert_eq!(filled_bar(seconds), expected, "{seconds}");
        }
        for (requests, up_s, expected) in [
            (0, 1, "0.0"),
            (599, 3600, "10.0"),
            (10, 60, "10"),
            (1, 120, "0.5"),
        ] {
            let found = per_minute(requests, up_s);
            assert_eq!(found, expected, "{requests} in {up_s} s");
        }
        let now = Timestamp::from_unix_s(1_000_000);
        for (ago_s, expected) in [
            (0, "just now"),
            (1, "1 s ago"),
            (60, "1 min ago"),
            (-90_000, "just now"),
        ] {
            assert_eq!(ago(now.plus_s(-ago_s), now), expected);
        }
    }

    #[test]
    fn the_first_values_of_a_set_are_shown() {
        let countries = |count: usize| Scope {
            countries: Some((1..=count).map(|at| format!("C{at}")).collect()),
            ..Scope::nothing()
        };
        let told = |count| sets(&countries(count));
        for (count, expected) in [
            (0, "none"),
            (1, "C1"),
            (6, "C1, C2, C3, C4, C5, C6"),
            (7, "C1, C2, C3, C4, C5, C6 and 1 more"),
            (9, "C1, C2, C3, C4, C5, C6 and 3 more"),
        ] {
            assert_eq!(told(count), [("countries".to_owned(), expected.to_owned())]);
        }
        let whole = Scope {
            therapy_areas: Some(["A".to_owned()].into()),
            years: Some([2026].into()),
            ..countries(1)
        };
        let names: Vec<String> = sets(&whole).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["therapy areas", "countries", "years"]);
        assert_eq!(sets(&Scope::nothing()), []);
    }

    #[test]
    fn the_keys_that_are_most_behind_are_shown() {
        let record = KeyRecord {
            id: String::new(),
            label: None,
            license: LicenseId(1),
            license_name: String::new(),
            created_at: now(),
            expires_at: None,
            allowed_ips: Vec::new(),
            revoked_at: None,
            replaced_by: None,
        };
        let key = |behind_s| KeyRow {
            key: &record,
            status: "active",
            used: None,
            feeds: Vec::new(),
            behind_s,
        };
        for (count, shown, more) in [
            (0, 0, 0),
            (3, 3, 0),
            (500, 500, 0),
            (501, 500, 1),
            (700, 500, 200),
        ] {
            let mut keys: Vec<KeyRow<'_>> = (1..=count).map(key).collect();
            assert_eq!(keep_latest(&mut keys), more);
            let lags: Vec<u64> = keys.iter().map(|key| key.behind_s).collect();
            assert_eq!(lags, (1..=count).rev().take(shown).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_feed_shows_the_lag_of_a_key_or_that_it_is_unknown() {
        for (behind_s, expected) in [
            (Some(0), "up to date"),
            (Some(1), "1 s behind"),
            (Some(90_000), "25 h behind"),
            (None, "unknown"),
        ] {
            assert_eq!(behind(behind_s), expected);
        }
    }
}
