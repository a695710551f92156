//! The entries of the feed and the export: records and tombstones, with the bytes of their JSON.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::too_long;
use super::error::{PullError, Result};
use crate::model::Id;

/// The largest id.
pub const MAX_ID: i64 = Id::MAX.get().cast_signed();

/// The most entries of a page: the largest `limit` of the feed (contract, "Limits").
const MAX_ENTRIES: usize = 1000;

/// The longest sync token, in bytes. It fits into a request line.
const MAX_TOKEN_BYTES: usize = 2048;

/// A record or a tombstone.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The record's id.
    pub id: i64,
    /// Whether it is a tombstone: the record was removed, or left the license.
    pub is_removal: bool,
    /// The bytes that the service sent.
    pub json: Box<str>,
}

/// A page of the change feed.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// The entries, oldest change first.
    pub entries: Vec<Entry>,
    /// Whether there are further pages.
    pub has_more: bool,
    /// The token to save with the entries, and to continue from.
    pub token: String,
}

impl Entry {
    /// Parses a record or tombstone. Rejects JSON of several lines.
    pub fn parse(json: &str) -> Result<Entry> {
        #[derive(Deserialize)]
        struct EntryHead {
            id: i64,
            #[serde(default)]
            deleted: bool,
        }
        let head: EntryHead = serde_json::from_str(json).map_err(|error| {
            PullError::failed(format!(
                "the service sent a record that cannot be read ({error})"
            ))
        })?;
        let id = head.id;
        if !(1..=MAX_ID).contains(&id) {
            return Err(PullError::failed(format!(
                "the service sent a record with the id {id}; an id is a whole number from 1 to {MAX_ID}; the copy stays as it \
                 was; report it to the service's operator"
            )));
        }
        if json.contains(['\n', '\r', '\t']) {
            return Err(PullError::failed(format!(
                "the service sent record {id} with a line break or a tab outside its texts; the lines of an export are compact \
                 JSON; the copy stays as it was; report it to the service's operator"
            )));
        }
        Ok(Entry {
            id,
            is_removal: head.deleted,
            json: json.into(),
        })
    }
}

impl FeedPage {
    /// Parses the body of a feed response. Rejects entries of more than `record_bytes`.
    pub fn parse(body: &[u8], record_bytes: usize) -> Result<FeedPage> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow)]
            data: Vec<&'a RawValue>,
            has_more: bool,
            next_sync_token: String,
        }
        let page: Envelope<'_> = serde_json::from_slice(body).map_err(|error| {
            PullError::failed(format!(
                "the service sent a response that is not a page of the feed ({error}); check the address, and whether \
                 something in between answered, such as a proxy or a login page"
            ))
        })?;
        if page.data.len() > MAX_ENTRIES {
            return Err(PullError::failed(format!(
                "the page holds more than {MAX_ENTRIES} entries, the most that the contract allows; the copy stays as it was; \
                 report it to the service's operator"
            )));
        }
        if page.data.iter().any(|json| json.get().len() > record_bytes) {
            return Err(too_long("a record of the feed", record_bytes as u64));
        }
        let token = checked_token(page.next_sync_token)?;
        let entries = page
            .data
            .iter()
            .map(|json| Entry::parse(json.get()))
            .collect::<Result<_, _>>()?;
        Ok(FeedPage {
            entries,
            has_more: page.has_more,
            token,
        })
    }
}

/// Returns the token if it is visible ASCII of a valid length.
pub fn checked_token(token: String) -> Result<String> {
    if (1..=MAX_TOKEN_BYTES).contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Ok(token);
    }
    Err(PullError::failed(format!(
        "the service sent a sync token of {} bytes that cannot be used; a token is 1 to {MAX_TOKEN_BYTES} letters, digits and \
         signs of ASCII; the copy stays as it was; report it to the service's operator",
        token.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD_BYTES: usize = 1000;

    #[test]
    fn a_page_keeps_the_bytes_of_its_entries() {
        let body = br#"{"data":[{"id":7,"x":1.50,"new":{"a":"\u00e9"}},{"id":8,"deleted":true,"changed_at":"x"}],"has_more":true,"next_sync_token":"t","more":1}"#;
        let page = FeedPage::parse(body, RECORD_BYTES).unwrap();
        let told: Vec<_> = page
            .entries
            .iter()
            .map(|entry| (entry.id, entry.is_removal, &*entry.json))
            .collect();
        let expected = [
            (7, false, r#"{"id":7,"x":1.50,"new":{"a":"\u00e9"}}"#),
            (8, true, r#"{"id":8,"deleted":true,"changed_at":"x"}"#),
        ];
        assert_eq!(told, expected);
        assert!(page.has_more && page.token == "t");
    }

    fn page_of(data: &str, token: &str) -> Result<FeedPage> {
        let body = format!("{{\"data\":[{data}],\"has_more\":false,\"next_sync_token\":{token}}}");
        FeedPage::parse(body.as_bytes(), RECORD_BYTES)
    }

    #[test]
    fn invalid_pages_are_refused() {
        for body in [
            "",
            "<html>",
            "{}",
            r#"{"data":[{}],"has_more":false,"next_sync_token":"t"}"#,
            r#"{"data":[]}"#,
        ] {
            assert!(
                FeedPage::parse(body.as_bytes(), RECORD_BYTES).is_err(),
                "{body}"
            );
        }
        let long = format!("\"{}\"", "t".repeat(MAX_TOKEN_BYTES + 1));
        let [whole, longer] =
            [0, 1].map(|more| format!("{{\"id\":{}1}}", " ".repeat(RECORD_BYTES - 8 + more)));
        assert!(page_of(&whole, "\"t\"").is_ok());
        let many = vec!["{\"id\":1}"; MAX_ENTRIES + 1].join(",");
        let cases = cases![
            "{\"id\":0}", "\"t\"", "with the id 0; an id is a whole number from 1 to 9007199254740991";
            "{\"id\":-5,\"deleted\":true}", "\"t\"", "with the id -5;";
            "{\"id\":9007199254740992}", "\"t\"", "with the id 9007199254740992;";
            "{\"id\":9223372036854775808}", "\"t\"", "cannot be read";
            "{\"id\":1.5}", "\"t\"", "cannot be read";
            "{\"id\":\"1\"}", "\"t\"", "cannot be read";
            "{\"id\":1,\"id\":2}", "\"t\"", "cannot be read";
            "{\"id\":1,\"name\":\"a\nb\"}", "\"t\"", "a response that is not a page";
            &longer, "\"t\"", "a record of the feed is longer than 1000 bytes";
            &many, "\"t\"", "the page holds more than 1000 entries";
            "", "\"\"", "a sync token of 0 bytes";
            "", "\"a\\nb\"", "a sync token of 3 bytes";
            "", "\"é\"", "a sync token of 2 bytes";
            "", &long, "a sync token of 2049 bytes";
        ];
        for (data, token, message) in cases {
            let error = page_of(data, token).unwrap_err().to_string();
            assert!(error.contains(message), "{message}: {error}");
        }
        assert_eq!(
            page_of(&many[9..], &long.replacen('t', "", 1))
                .unwrap()
                .entries
                .len(),
            MAX_ENTRIES
        );
    }

    #[test]
    fn entries_are_one_line() {
        for line in ["{\"id\":\n1}", "{\"id\":1}\r", "{\"id\":\t1}"] {
            assert!(
                Entry::parse(line)
                    .unwrap_err()
                    .to_string()
                    .contains("a line break or a tab"),
                "{line:?}"
            );
        }
    }
}
