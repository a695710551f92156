//! A part of a file, for a caller that resumes a download (RFC 9110, section 14).
//!
//! One range is answered. Several at once, and what is no range of bytes, are ignored, as the RFC allows: the answer is the
//! whole file then. The crate `headers` is of no use here: it refuses a suffix longer than the file.

use std::ops::Range;

use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, Method};

use super::etag::ETag;
use super::request::Request;

/// What a caller asks for of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of it.
    Whole,
    /// Some of its bytes, never none.
    Part(Range<usize>),
    /// Bytes beyond its end.
    Beyond,
}

impl Wanted {
    /// What a request asks for of a file with a tag and a length in bytes. `If-Range` must be the tag, byte for byte: it is a
    /// strong one.
    pub fn of(request: &Request, etag: &ETag, length: usize) -> Wanted {
        let is_current = request.headers.get_all(IF_RANGE).iter().all(|value| value == etag.header());
        if request.method != Method::GET || !is_current {
            return Wanted::Whole;
        }
        range_of(&request.headers).map_or(Wanted::Whole, |spec| spec.within(length))
    }
}

/// One range of bytes as it is written.
enum Spec {
    /// From the first, to the last if there is one.
    From(usize, Option<usize>),
    /// The last ones.
    Last(usize),
}

impl Spec {
    fn within(&self, length: usize) -> Wanted {
        let part = match *self {
            Spec::From(first, last) => first..last.map_or(length, |last| last.saturating_add(1).min(length)),
            Spec::Last(count) => length.saturating_sub(count)..length,
        };
        if part.is_empty() { Wanted::Beyond } else { Wanted::Part(part) }
    }
}

/// The only range that is asked for.
fn range_of(headers: &HeaderMap) -> Option<Spec> {
    let mut values = headers.get_all(RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (unit, spec) = value.to_str().ok()?.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    match spec.trim().split_once('-')? {
        ("", count) => Some(Spec::Last(number(count)?)),
        (first, "") => Some(Spec::From(number(first)?, None)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::From(first, Some(last)))
        }
    }
}

/// A number of digits alone; one that no file is as long as is the largest.
fn number(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::RANGE;

    use super::*;

    #[test]
    fn one_range_is_read() {
        use Wanted::{Beyond, Part, Whole};
        // Of ten bytes.
        let cases: [(&[&str], Wanted); 28] = [
            (&[], Whole),
            (&["bytes=0-9"], Part(0..10)),
            (&["bytes=0-0"], Part(0..1)),
            (&["bytes=4-"], Part(4..10)),
            (&["bytes=9-"], Part(9..10)),
            (&["bytes=4-100"], Part(4..10)),
            (&["bytes=4-99999999999999999999999"], Part(4..10)),
            (&["bytes=-3"], Part(7..10)),
            (&["bytes=-10"], Part(0..10)),
            (&["bytes=-11"], Part(0..10)),
            (&["Bytes = 2-3 "], Part(2..4)),
            (&["bytes=10-"], Beyond),
            (&["bytes=10-12"], Beyond),
            (&["bytes=99999999999999999999999-"], Beyond),
            (&["bytes=-0"], Beyond),
            (&["bytes=5-4"], Whole),
            (&["bytes=0-1,4-5"], Whole),
            (&["bytes=4-,"], Whole),
            (&["bytes=0-1", "bytes=0-1"], Whole),
            (&["bytes=-"], Whole),
            (&["bytes="], Whole),
            (&["bytes"], Whole),
            (&["bytes=a-"], Whole),
            (&["bytes=+1-"], Whole),
            (&["bytes=--1"], Whole),
            (&["bytes=1-2-3"], Whole),
            (&["records=0-1"], Whole),
            (&[""], Whole),
        ];
        for (values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(RANGE, HeaderValue::from_static(value));
            }
            let wanted = range_of(&headers).map_or(Whole, |spec| spec.within(10));
            assert_eq!(wanted, expected, "{values:?}");
        }
        assert_eq!(Spec::From(0, None).within(0), Beyond);
    }
}
