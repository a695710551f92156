//! What the feed and the export consist of: records and tombstones, their JSON as the service words it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::PullError;

/// A record or a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The record's id.
    pub id: i64,
    /// Whether it is a tombstone: the record was removed, or left the license.
    pub is_removal: bool,
    /// The bytes that the service sent for it.
    pub json: Box<str>,
}

/// A page of the change feed.
#[derive(Clone, Debug)]
pub struct Page {
    /// Oldest change first.
    pub entries: Vec<Entry>,
    /// Whether to ask again at once.
    pub has_more: bool,
    /// The token to save with the entries, and to go on with.
    pub token: String,
}

impl Entry {
    /// Reads the JSON of a record or tombstone.
    ///
    /// # Errors
    /// When it is neither.
    pub fn read(json: &str) -> Result<Entry, PullError> {
        #[derive(Deserialize)]
        struct Head {
            id: i64,
            #[serde(default)]
            deleted: bool,
        }
        let head: Head = serde_json::from_str(json)
            .map_err(|error| PullError::failed(format!("the service sent a record that cannot be read ({error})")))?;
        Ok(Entry { id: head.id, is_removal: head.deleted, json: json.into() })
    }
}

impl Page {
    /// Reads the body of a feed's answer.
    ///
    /// # Errors
    /// When it is no page.
    pub fn read(body: &[u8]) -> Result<Page, PullError> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow)]
            data: Vec<&'a RawValue>,
            has_more: bool,
            next_sync_token: String,
        }
        let page: Envelope<'_> = serde_json::from_slice(body).map_err(|error| {
            PullError::failed(format!("the service answered with something else than a page of the feed ({error})"))
        })?;
        let entries = page.data.iter().map(|json| Entry::read(json.get())).collect::<Result<_, _>>()?;
        Ok(Page { entries, has_more: page.has_more, token: page.next_sync_token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_the_bytes_of_its_entries() {
        let body = br#"{"data":[{"id":7,"x":1.50,"new":{"a":"\u00e9"}},{"id":8,"deleted":true,"changed_at":"x"}],"has_more":true,"next_sync_token":"t","more":1}"#;
        let page = Page::read(body).unwrap();
        let told: Vec<_> = page.entries.iter().map(|entry| (entry.id, entry.is_removal, &*entry.json)).collect();
        let expected = [
            (7, false, r#"{"id":7,"x":1.50,"new":{"a":"\u00e9"}}"#),
            (8, true, r#"{"id":8,"deleted":true,"changed_at":"x"}"#),
        ];
        assert_eq!(told, expected);
        assert!(page.has_more && page.token == "t");
    }

    #[test]
    fn what_is_no_page_is_refused() {
        for body in ["", "<html>", "{}", r#"{"data":[{}],"has_more":false,"next_sync_token":"t"}"#, r#"{"data":[]}"#] {
            assert!(Page::read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
