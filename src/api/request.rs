//! A request, and its state while it is being answered.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method};

use super::answers::AnswerResult;
use super::auth::KnownKey;
use super::rate::Window;
use crate::model::{Dataset, KeyRecord, Timestamp, Witness};

/// A request, with its time on two clocks.
#[derive(Clone)]
pub struct Request {
    /// The HTTP method; callers may send any word.
    pub method: Method,
    /// The path and query as sent, not decoded.
    pub target: String,
    /// All headers.
    pub headers: HeaderMap,
    /// Whether a body follows.
    pub has_body: bool,
    /// An error message if the request is invalid in HTTP.
    pub flaw: Option<&'static str>,
    /// The caller's address. IPv4 mapped to IPv6 becomes IPv4.
    pub address: IpAddr,
    /// The time of arrival on the monotonic clock, for rate windows.
    pub at: Instant,
    /// The time of arrival on the wall clock, for expiry and `/v1/status`.
    pub wall: Timestamp,
}

impl Request {
    /// The path as sent.
    pub fn path(&self) -> &str {
        self.target
            .split_once('?')
            .map_or(&self.target, |(path, _)| path)
    }

    /// The query as sent, without its `?`.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// Whether the method is GET or HEAD.
    pub fn is_reading(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Whether the response must have no body.
    pub fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }
}

/// A request, and the state for its response, set as checks pass.
pub struct Exchange {
    pub(super) request: Request,
    pub(super) request_id: String,
    pub(super) window: RateHeaders,
    pub(super) key: Option<KnownKey>,
    /// The key that was sent, also if it is not usable.
    pub(super) sent_key: Option<Arc<KeyRecord>>,
    /// The seq of its license's scope, once the key is checked.
    pub(super) scope_seq: u64,
    pub(super) pattern: &'static str,
    /// The time of its arrival or of its last wake-up, from which its duration counts.
    pub(super) since: Instant,
    pub(super) has_polled_for_key: bool,
    /// Whether it was counted in the rate window of its key.
    pub(super) is_counted: bool,
    pub(super) may_wait: bool,
}

/// The rate window for the response headers.
#[derive(Clone, Copy)]
pub(super) enum RateHeaders {
    /// The window of the address, if the path is under `/v1`.
    OfAddress,
    Of(Window),
    None,
}

/// A long poll ends when this key, or this witness of its license in a dataset, is no longer current.
#[derive(Clone, PartialEq)]
pub struct Interest {
    /// The key of the request.
    pub key: KnownKey,
    pub(super) dataset: Dataset,
    pub(super) witness: Witness,
    /// The time at which the request is answered without a change.
    pub until: Instant,
}

impl Exchange {
    /// Starts an exchange.
    pub fn new(request: Request) -> Exchange {
        Exchange {
            request_id: new_request_id(),
            window: RateHeaders::OfAddress,
            key: None,
            sent_key: None,
            scope_seq: 0,
            pattern: "(none)",
            since: request.at,
            has_polled_for_key: false,
            is_counted: false,
            may_wait: true,
            request,
        }
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The id of its key; empty without a usable key.
    pub fn key_id(&self) -> &str {
        self.key.as_ref().map_or("", |key| &key.record.id)
    }

    /// The interest of the request, if it should long-poll instead of getting this answer.
    pub fn interest(&self, answer: &AnswerResult) -> Option<Interest> {
        if !self.may_wait || self.request.is_head() {
            return None;
        }
        let answer = answer.as_ref().ok()?;
        let until = self.request.at + answer.wait?;
        let (dataset, witness) = answer.depends_on?;
        let key = self.key.clone()?;
        Some(Interest {
            key,
            dataset,
            witness,
            until,
        })
    }

    /// The time at which its key expires or is revoked.
    pub fn key_ends_at(&self) -> Option<Instant> {
        let key = &self.key.as_ref()?.record;
        let end = [key.expires_at, key.revoked_at]
            .into_iter()
            .flatten()
            .min()?;
        let left_s = u64::try_from(end.unix_s() - self.request.wall.unix_s())
            .ok()
            .filter(|left_s| *left_s > 0)?;
        Some(self.since + Duration::from_secs(left_s))
    }

    /// Resets the exchange, so that its key and license are checked again. It is not counted again.
    pub fn recheck(&mut self) {
        self.wake(Instant::now(), self.wall_now(), !self.may_wait);
    }

    /// The present time on the wall clock.
    pub(super) fn wall_now(&self) -> Timestamp {
        self.request
            .wall
            .plus_s(i64::try_from(self.since.elapsed().as_secs()).unwrap_or(0))
    }

    /// Resets the exchange after a wait for changes, at a time on both clocks. Unless `is_over`, it may wait again.
    pub fn wake(&mut self, at: Instant, wall: Timestamp, is_over: bool) {
        self.since = at;
        self.request.wall = wall;
        self.may_wait = !is_over;
        self.window = RateHeaders::OfAddress;
        self.key = None;
        self.has_polled_for_key = true;
    }
}

/// A new request id, unique across processes and ordered by time.
pub fn new_request_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{HeaderMap, Method};

    use super::*;
    use crate::api::answers::Answer;
    use crate::model::time::now;
    use crate::model::{KeyHash, KeyRecord, LicenseId};

    const WITNESS: Witness = Witness {
        seq: 7,
        lineage: [1; 16],
    };

    fn exchange(method: Method, expires_s: Option<i64>, revoked_s: Option<i64>) -> Exchange {
        let (at, wall) = (Instant::now(), now());
        let request = Request {
            method,
            target: "/v1/journals/changes?since=x&wait=60".to_owned(),
            headers: HeaderMap::new(),
            has_body: false,
            flaw: None,
            address: [192, 0, 2, 7].into(),
            at,
            wall,
        };
        let record = KeyRecord {
            id: "key_1".to_owned(),
            label: None,
            license: LicenseId(1),
            license_name: "all".to_owned(),
            created_at: wall,
            expires_at: expires_s.map(|seconds| wall.plus_s(seconds)),
            allowed_ips: Vec::new(),
            revoked_at: revoked_s.map(|seconds| wall.plus_s(seconds)),
            replaced_by: None,
        };
        let mut exchange = Exchange::new(request);
        exchange.key = Some(KnownKey {
            hash: KeyHash::of(b"k"),
            record: Arc::new(record),
        });
        exchange
    }

    fn page(wait_s: Option<u64>) -> AnswerResult {
        Ok(Arc::new(Answer {
            pattern: "/v1/journals/changes",
            depends_on: Some((Dataset::Journals, WITNESS)),
            wait: wait_s.map(Duration::from_secs),
            ..Answer::json(b"{}".to_vec())
        }))
    }

    #[test]
    fn a_wait_ends_at_its_time_limit_however_often_it_was_woken() {
        let mut exchange = exchange(Method::GET, None, None);
        let came = exchange.request.at;
        let until = |exchange: &Exchange| {
            exchange
                .interest(&page(Some(60)))
                .map(|interest| interest.until - came)
        };
        assert_eq!(until(&exchange), Some(Duration::from_secs(60)));
        assert!(
            exchange.interest(&page(None)).is_none(),
            "a page with entries does not wait"
        );
        let key = exchange.key.clone();
        for woken_s in [10, 59] {
            exchange.wake(came + Duration::from_secs(woken_s), now(), false);
            assert!(
                exchange.interest(&page(Some(60))).is_none(),
                "not before its key is checked again"
            );
            exchange.key.clone_from(&key);
            let expected = Some(Duration::from_secs(60));
            assert_eq!(until(&exchange), expected, "woken after {woken_s} s");
        }
        exchange.wake(came + Duration::from_secs(60), now(), true);
        exchange.key.clone_from(&key);
        assert!(exchange.interest(&page(Some(60))).is_none(), "it is over");
    }

    #[test]
    fn interests_differ_by_key_dataset_and_witness() {
        let exchange = exchange(Method::GET, None, None);
        let interest = exchange.interest(&page(Some(1))).unwrap();
        let other_key = KnownKey {
            hash: KeyHash::of(b"l"),
            ..interest.key.clone()
        };
        let others = [
            Interest {
                key: other_key,
                ..interest.clone()
            },
            Interest {
                dataset: Dataset::Conferences,
                ..interest.clone()
            },
            Interest {
                witness: Witness { seq: 8, ..WITNESS },
                ..interest.clone()
            },
            Interest {
                witness: Witness {
                    lineage: [2; 16],
                    ..WITNESS
                },
                ..interest.clone()
            },
        ];
        assert!(others.iter().all(|other| *other != interest));
        let expected = (Dataset::Journals, WITNESS);
        assert_eq!((interest.dataset, interest.witness), expected);
    }

    #[test]
    fn head_requests_never_wait() {
        assert!(
            exchange(Method::HEAD, None, None)
                .interest(&page(Some(60)))
                .is_none()
        );
    }

    #[test]
    fn the_earlier_end_of_a_key_ends_the_wait() {
        // The seconds to the expiry and the revocation when the request came; the seconds after which it was woken; the
        // seconds from then to the end.
        let cases = [
            (None, None, 0, None),
            (Some(30), None, 0, Some(30)),
            (None, Some(30), 0, Some(30)),
            (Some(30), Some(10), 0, Some(10)),
            (Some(10), Some(30), 0, Some(10)),
            (Some(30), None, 20, Some(10)),
            (Some(30), None, 29, Some(1)),
            (Some(30), None, 30, None),
            (Some(30), None, 31, None),
        ];
        for (expires_s, revoked_s, woken_s, expected) in cases {
            let mut exchange = exchange(Method::GET, expires_s, revoked_s);
            let (came, wall) = (exchange.request.at, exchange.request.wall);
            if woken_s > 0 {
                let key = exchange.key.clone();
                let at = came + Duration::from_secs(woken_s);
                exchange.wake(at, wall.plus_s(i64::try_from(woken_s).unwrap()), false);
                exchange.key = key;
            }
            let left_s = exchange
                .key_ends_at()
                .map(|end| (end - came).as_secs() - woken_s);
            assert_eq!(left_s, expected, "{expires_s:?} {revoked_s:?} {woken_s}");
        }
        let mut nobody = exchange(Method::GET, Some(30), None);
        nobody.key = None;
        assert_eq!((nobody.key_ends_at(), nobody.key_id()), (None, ""));
    }

    #[test]
    fn a_woken_request_is_checked_like_a_new_one() {
        let mut exchange = exchange(Method::GET, None, None);
        exchange.is_counted = true;
        exchange.window = RateHeaders::None;
        let (came, wall) = (exchange.request.at, exchange.request.wall);
        exchange.wake(came + Duration::from_secs(5), wall.plus_s(5), false);
        assert_eq!(
            exchange.request.wall,
            wall.plus_s(5),
            "its key may have expired meanwhile"
        );
        let expected = (came + Duration::from_secs(5), came);
        assert_eq!((exchange.since, exchange.request.at), expected);
        assert!(exchange.key.is_none() && matches!(exchange.window, RateHeaders::OfAddress));
        assert!(
            exchange.is_counted && exchange.has_polled_for_key,
            "it is not counted again, and polls for no key"
        );
    }
}
