//! The documentation that the server serves about itself: `/openapi.json`, `/docs` and a page for every problem `type`.
//!
//! All of it stands outside `/v1`, needs no key and loads nothing from anywhere else. In reading order:
//! - [`fields`]: what the fields of the rows mean; their names and types come from the model's own tables.
//! - [`examples`]: errors as the service words them.
//! - [`openapi`]: the contract as an OpenAPI document.
//! - [`pages`]: the same for people, as HTML.

pub mod examples;
pub mod fields;
pub mod openapi;
pub mod pages;

use crate::contract::Contract;

/// A `Content-Security-Policy` that fits the pages: what stands within the page itself (its style sheet, its empty
/// icon), and nothing else.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A document, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its `Content-Type`.
    pub content_type: &'static str,
    /// Its bytes.
    pub body: Vec<u8>,
}

impl Page {
    fn html(text: String) -> Page {
        Page { content_type: "text/html; charset=utf-8", body: text.into_bytes() }
    }
}

/// The page of a contract at a path, which is compared exactly. `public_url` is where callers reach the server, without a
/// slash at its end.
pub fn find_page(contract: &Contract, path: &str, public_url: &str) -> Option<Page> {
    match path {
        "/openapi.json" => {
            let document = openapi::document(contract, public_url);
            Some(Page { content_type: "application/json", body: format!("{document:#}\n").into_bytes() })
        }
        "/docs" => Some(Page::html(pages::reference(contract, public_url))),
        "/docs/errors" => Some(Page::html(pages::error_index(contract))),
        _ => {
            let name = path.strip_prefix("/docs/errors/")?;
            let info = contract.codes.iter().find(|info| info.name == name)?;
            Some(Page::html(pages::error(contract, info, public_url)))
        }
    }
}

#[cfg(test)]
mod tests;
