//! An answer, with the parts that tests compare.

use std::io::Read;

use flate2::read::GzDecoder;
use http::HeaderMap;
use medfeed::api::{Request, Response};
use serde_json::Value;

/// An answer with its request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Method and target, for messages.
    pub asked: String,
    pub status: u16,
    pub headers: HeaderMap,
    /// The body as sent.
    pub body: Vec<u8>,
}

impl Answer {
    pub fn of(request: &Request, response: Response) -> Answer {
        Answer {
            asked: format!("{} {}", request.method, request.target),
            status: response.status.as_u16(),
            headers: response.headers,
            body: response.body.to_vec(),
        }
    }

    /// Demands a status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}: {}", self.asked, self.text());
        self
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// A header's value as a whole number.
    #[track_caller]
    pub fn number(&self, name: &str) -> u64 {
        let value = self
            .header(name)
            .unwrap_or_else(|| panic!("{}: no {name}", self.asked));
        value
            .parse()
            .unwrap_or_else(|_| panic!("{}: {name}: {value}", self.asked))
    }

    /// The content: the body without the transfer's compression.
    pub fn content(&self) -> Vec<u8> {
        if self.header("content-encoding") == Some("gzip") {
            gunzip(&self.body)
        } else {
            self.body.clone()
        }
    }

    /// The content as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.content()).into_owned()
    }

    /// The content as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.content())
            .unwrap_or_else(|error| panic!("{}: {error}", self.asked))
    }

    /// The list in `data`.
    #[track_caller]
    pub fn items(&self) -> Vec<Value> {
        let body = self.json();
        body["data"]
            .as_array()
            .unwrap_or_else(|| panic!("{}: {body}", self.asked))
            .clone()
    }

    /// The ids in `data`, in order.
    #[track_caller]
    pub fn ids(&self) -> Vec<u64> {
        self.items()
            .iter()
            .map(|item| item["id"].as_u64().unwrap())
            .collect()
    }

    /// The entries of a feed page, in order: `7` for a record, `-7` for the tombstone of one.
    #[track_caller]
    pub fn entries(&self) -> String {
        let entry = |item: &Value| {
            if item.get("deleted").is_some() {
                let keys = item.as_object().unwrap().keys();
                let keys: Vec<&str> = keys.map(String::as_str).collect();
                let expected = ["id", "deleted", "changed_at"];
                assert_eq!(keys, expected, "a tombstone's members");
                assert_eq!(item["deleted"], true);
                format!("-{}", item["id"])
            } else {
                item["id"].to_string()
            }
        };
        self.items().iter().map(entry).collect::<Vec<_>>().join(" ")
    }

    /// `has_more` of a page.
    #[track_caller]
    pub fn has_more(&self) -> bool {
        self.json()["has_more"].as_bool().unwrap()
    }

    /// The cursor of the next page.
    #[track_caller]
    pub fn cursor(&self) -> Option<String> {
        let body = self.json();
        assert_eq!(
            body["has_more"],
            !body["next_cursor"].is_null(),
            "{}: a cursor where there is more",
            self.asked
        );
        body["next_cursor"].as_str().map(str::to_owned)
    }

    /// The sync token of a feed page or an export.
    #[track_caller]
    pub fn token(&self) -> String {
        match self.header("x-sync-token") {
            Some(token) => token.to_owned(),
            None => self.json()["next_sync_token"].as_str().unwrap().to_owned(),
        }
    }

    /// The entity tag.
    #[track_caller]
    pub fn etag(&self) -> String {
        self.header("etag")
            .unwrap_or_else(|| panic!("{}: no etag", self.asked))
            .to_owned()
    }

    /// The error code of a problem; empty for an answer that is none.
    pub fn code(&self) -> String {
        if self.status < 400 || self.body.is_empty() {
            return String::new();
        }
        self.json()["type"]
            .as_str()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned()
    }

    /// The detail of a problem.
    #[track_caller]
    pub fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap().to_owned()
    }

    /// Demands a problem: its code, and a piece of its detail.
    #[track_caller]
    pub fn expect_problem(&self, code: &str, piece: &str) {
        assert_eq!(
            self.code(),
            code,
            "{}: {} {}",
            self.asked,
            self.status,
            self.text()
        );
        assert!(
            self.detail().contains(piece),
            "{}: {} lacks {piece:?}",
            self.asked,
            self.detail()
        );
    }
}

/// A gzip member's content.
pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut content).unwrap();
    content
}
