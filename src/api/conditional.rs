//! Entity tags, conditional requests and range requests (RFC 9110, sections 8.8.3, 13 and 14).
//!
//! Tags are derived from content: equal content has equal tags. They are weak, since a response may be compressed.
//! Those of files are strong, since downloads can be resumed.
//!
//! Only a single range of bytes is supported. Others are ignored, as the RFC allows: the response is the whole file.
//! The crate `headers` is not used, because it rejects a suffix that is longer than the file.

use std::ops::Range;

use data_encoding::HEXLOWER;
use http::header::{IF_MATCH, IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, Method};

#[derive(Debug, PartialEq, Eq)]
pub struct ETag(HeaderValue);

impl ETag {
    /// The weak tag of the parts of a content. `purpose` separates kinds of content.
    pub fn of<'a>(purpose: &str, parts: impl IntoIterator<Item = &'a [u8]>) -> ETag {
        let mut hasher = blake3::Hasher::new_derive_key("medfeed 2026-11 etag");
        hasher.update(purpose.as_bytes());
        for part in parts {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        ETag::from_hash("W/", &hasher.finalize())
    }

    /// The strong tag of a file's bytes.
    pub fn of_bytes(bytes: &[u8]) -> ETag {
        ETag::from_hash("", &blake3::hash(bytes))
    }

    fn from_hash(prefix: &str, hash: &blake3::Hash) -> ETag {
        let tag = format!("{prefix}\"{}\"", HEXLOWER.encode(&hash.as_bytes()[..16]));
        // Hexadecimal digits in quotes are always a valid value.
        ETag(HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("W/\"\"")))
    }

    pub fn header(&self) -> &HeaderValue {
        &self.0
    }
}

/// Whether `If-None-Match` is `*` or contains the tag, compared weakly (RFC 9110, section 13.1.2).
pub fn matches<'a>(values: impl Iterator<Item = &'a HeaderValue>, etag: &ETag) -> bool {
    let tag = etag
        .0
        .to_str()
        .unwrap_or_default()
        .trim_start_matches("W/")
        .trim_matches('"');
    values
        .filter_map(|value| value.to_str().ok())
        .any(|value| value_matches(value, tag))
}

fn value_matches(value: &str, tag: &str) -> bool {
    let mut rest = value.trim();
    if rest == "*" {
        return true;
    }
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let quoted = rest.strip_prefix("W/").unwrap_or(rest);
        // Stop at a malformed tag: the rest cannot be split reliably.
        let Some((found, after)) = quoted
            .strip_prefix('"')
            .and_then(|text| text.split_once('"'))
        else {
            return false;
        };
        if found == tag {
            return true;
        }
        rest = after;
    }
}

/// The part of a file that a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestedPart {
    Whole,
    /// A part, which is never empty.
    Part(Range<usize>),
    Beyond,
}

impl RequestedPart {
    /// The part that a request asks for. `length` is the file's length in bytes. `If-Range` must be exactly the file's
    /// strong tag. A failed `If-Match` gives the whole file too, because the contract has no 412.
    pub fn of(method: &Method, headers: &HeaderMap, etag: &ETag, length: usize) -> RequestedPart {
        let is_current = headers
            .get_all(IF_RANGE)
            .iter()
            .all(|value| value == etag.header());
        if *method != Method::GET || !is_current || !matches_if_match(headers, etag) {
            return RequestedPart::Whole;
        }
        requested_part(headers, length).unwrap_or(RequestedPart::Whole)
    }
}

/// Whether `If-Match` is missing, or names the file's strong tag or `*` (RFC 9110, section 13.1.1).
fn matches_if_match(headers: &HeaderMap, etag: &ETag) -> bool {
    let mut tags = headers
        .get_all(IF_MATCH)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    !headers.contains_key(IF_MATCH)
        || tags.any(|tag| [b"*", etag.header().as_bytes()].contains(&tag.trim_ascii()))
}

/// The part of a file of `length` bytes that the header asks for; `None` unless it contains exactly one range of bytes.
fn requested_part(headers: &HeaderMap, length: usize) -> Option<RequestedPart> {
    let mut values = headers.get_all(RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (unit, spec) = value.to_str().ok()?.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let part = match spec.trim().split_once('-')? {
        ("", count) => length.saturating_sub(number(count)?)..length,
        (first, "") => number(first)?..length,
        (first, last) => {
            let first = number(first)?;
            let last = number(last)?;
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(length)
        }
    };
    Some(if part.is_empty() {
        RequestedPart::Beyond
    } else {
        RequestedPart::Part(part)
    })
}

/// Parses digits. Numbers that are too large become the maximum.
fn number(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_none_match_is_compared_weakly() {
        let cases = outcomes![
            "\"abc\"" "W/\"abc\"" "*" " * " "\"x\", W/\"abc\"" "\"x\",\"abc\"" "\"a,b\", \"abc\""
            ", ,\"abc\"" "\"abc\" ,\"x\"" => true;
            "\"*\"" "\"ABC\"" "'abc'" "\"abcd\"" "abc" "w/\"abc\"" "\"x\" *" "" "\"abc" => false;
        ];
        for (value, expected) in cases {
            assert_eq!(value_matches(value, "abc"), expected, "{value:?}");
        }
    }

    #[test]
    fn all_lines_of_if_none_match_count() {
        let etag = ETag::of("list", [b"x".as_slice()]);
        let own = etag.header().clone();
        let other = HeaderValue::from_static("\"other\"");
        let cases: [(&[&HeaderValue], bool); 5] = [
            (&[], false),
            (&[&own], true),
            (&[&other], false),
            (&[&other, &own], true),
            (&[&own, &other], true),
        ];
        for (lines, expected) in cases {
            assert_eq!(matches(lines.iter().copied(), &etag), expected, "{lines:?}");
        }
        let file = ETag::of_bytes(b"x");
        let weak =
            HeaderValue::from_str(&format!("W/{}", file.header().to_str().unwrap())).unwrap();
        assert!(matches([&weak].into_iter(), &file), "it is compared weakly");
    }

    #[test]
    fn a_tag_depends_on_the_purpose_and_on_each_part() {
        let of = |purpose: &str, parts: &[&str]| {
            ETag::of(purpose, parts.iter().map(|part| part.as_bytes()))
        };
        let tags = [
            of("list", &["ab", "c"]),
            of("list", &["a", "bc"]),
            of("list", &["abc"]),
            of("list", &["abc", ""]),
            of("list", &["c", "ab"]),
            of("record", &["ab", "c"]),
            of("list", &[]),
            ETag::of_bytes(b"abc"),
            ETag::of_bytes(b""),
        ];
        for (at, tag) in tags.iter().enumerate() {
            assert!(!tags[..at].contains(tag), "{at}: {tag:?}");
        }
        assert_eq!(of("list", &["ab", "c"]), tags[0]);
        assert!(tags[0].header().to_str().unwrap().starts_with("W/\""));
        assert!(!tags[7].header().to_str().unwrap().starts_with('W'));
    }

    #[test]
    fn one_range_is_read() {
        use RequestedPart::{Beyond, Part, Whole};
        // For a file of ten bytes.
        let cases: [(&[&str], RequestedPart); 28] = [
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
            let found = requested_part(&headers, 10).unwrap_or(Whole);
            assert_eq!(found, expected, "{values:?}");
        }
        let headers = HeaderMap::from_iter([(RANGE, HeaderValue::from_static("bytes=0-"))]);
        assert_eq!(requested_part(&headers, 0), Some(Beyond));
    }

    #[test]
    fn a_part_is_of_the_same_file_and_for_get() {
        use RequestedPart::{Beyond, Part, Whole};
        let etag = ETag::of_bytes(b"content");
        let own = etag.header().to_str().unwrap().to_owned();
        let (weak, other) = (format!("W/{own}"), "\"other\"".to_owned());
        let list = format!("{own}, {other}");
        let cases: [(&str, &str, &[&str], RequestedPart); 13] = cases![
            "GET", "bytes=2-3", &[], Part(2..4);
            "GET", "bytes=2-3", &[&own], Part(2..4);
            "GET", "bytes=2-3", &[&own, &own], Part(2..4);
            "GET", "bytes=10-", &[], Beyond;
            "GET", "bytes=10-", &[&other], Whole;
            "GET", "bytes=2-3", &[&weak], Whole;
            "GET", "bytes=2-3", &[&other], Whole;
            "GET", "bytes=2-3", &[&other, &own], Whole;
            "GET", "bytes=2-3", &[&own, &other], Whole;
            "GET", "bytes=2-3", &[&list], Whole;
            "GET", "bytes=2-3", &["*"], Whole;
            "GET", "bytes=2-3", &["Sun, 06 Nov 1994 08:49:37 GMT"], Whole;
            "HEAD", "bytes=2-3", &[], Whole;
        ];
        for (method, range, conditions, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, HeaderValue::from_str(range).unwrap());
            for condition in conditions {
                headers.append(IF_RANGE, HeaderValue::from_str(condition).unwrap());
            }
            let sent = Method::from_bytes(method.as_bytes()).unwrap();
            let found = RequestedPart::of(&sent, &headers, &etag, 10);
            assert_eq!(found, expected, "{method} {range} {conditions:?}");
        }
    }
}
