//! Entity tags, derived from content: equal content has equal tags (RFC 9110, section 8.8.3). They are weak, since a
//! response may be compressed. Those of files are strong, since downloads can be resumed.

use data_encoding::HEXLOWER;
use http::HeaderValue;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ETag(HeaderValue);

impl ETag {
    /// The weak tag of the parts of a content. `purpose` separates kinds of content.
    pub fn of<'a>(purpose: &str, parts: impl IntoIterator<Item = &'a [u8]>) -> ETag {
        let mut hasher = blake3::Hasher::new_derive_key("medfeed 2026-11 etag");
        hasher.update(purpose.as_bytes());
        for part in parts {
            hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
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
    let tag = etag.0.to_str().unwrap_or_default().trim_start_matches("W/").trim_matches('"');
    values.filter_map(|value| value.to_str().ok()).any(|value| value_matches(value, tag))
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
        let Some((found, after)) = quoted.strip_prefix('"').and_then(|text| text.split_once('"')) else {
            return false;
        };
        if found == tag {
            return true;
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_none_match_is_compared_weakly() {
        let cases = [
            ("\"abc\"", true),
            ("W/\"abc\"", true),
            ("*", true),
            (" * ", true),
            ("\"x\", W/\"abc\"", true),
            ("\"x\",\"abc\"", true),
            ("\"a,b\", \"abc\"", true),
            ("\"abcd\"", false),
            ("abc", false),
            ("w/\"abc\"", false),
            ("\"x\" *", false),
            ("", false),
            ("\"abc", false),
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
        let cases: [(&[&HeaderValue], bool); 5] =
            [(&[], false), (&[&own], true), (&[&other], false), (&[&other, &own], true), (&[&own, &other], true)];
        for (lines, expected) in cases {
            assert_eq!(matches(lines.iter().copied(), &etag), expected, "{lines:?}");
        }
        let file = ETag::of_bytes(b"x");
        let weak = HeaderValue::from_str(&format!("W/{}", file.header().to_str().unwrap())).unwrap();
        assert!(matches([&weak].into_iter(), &file), "it is compared weakly");
    }

    #[test]
    fn a_tag_depends_on_the_purpose_and_on_each_part() {
        let of = |purpose: &str, parts: &[&str]| ETag::of(purpose, parts.iter().map(|part| part.as_bytes()));
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
        assert!(
            tags[0].header().to_str().unwrap().starts_with("W/\"")
                && !tags[7].header().to_str().unwrap().starts_with('W')
        );
    }
}
