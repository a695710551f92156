//! The documentation that the server serves about itself: `/openapi.json`, `/docs` and a page for every problem `type`.
//!
//! All of it stands outside `/v1`, needs no key and loads nothing from anywhere else. In reading order:
//! - [`fields`]: what the fields of the rows mean; their names and types come from the model's own tables.
//! - [`examples`]: errors as the service words them.
//! - [`samples`]: rows and answers as the service renders them.
//! - [`openapi`]: the contract as an OpenAPI document.
//! - [`pages`]: the same for people, as HTML.

pub mod examples;
pub mod fields;
pub mod openapi;
pub mod pages;
pub mod samples;

use crate::contract::Contract;

/// A `Content-Security-Policy` that fits the pages: what stands within the page itself (its style sheet, its empty
/// icon), the one script of this server, and nothing else.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
                                           img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Adds the buttons that copy blocks of code. Pages are whole without it.
const COPY_SCRIPT: &str = include_str!("pages/copy.js");

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
        "/docs/copy.js" => {
            Some(Page { content_type: "text/javascript; charset=utf-8", body: COPY_SCRIPT.as_bytes().to_vec() })
        }
        "/docs/follow.py" => {
            Some(Page { content_type: "text/x-python; charset=utf-8", body: pages::CLIENT.as_bytes().to_vec() })
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

/// Where a page stands when its path has slashes at the end that do not belong there, relative to that path.
pub fn find_moved(contract: &Contract, path: &str) -> Option<String> {
    let page = path.strip_suffix('/')?.trim_end_matches('/');
    find_page(contract, page, "")?;
    let (_, name) = page.rsplit_once('/')?;
    // The last slashes are folders to a browser.
    Some(format!("{}{name}", "../".repeat(path.len() - page.len())))
}

/// The page for browsers that ask for one that does not exist.
pub fn not_found(path: &str) -> Page {
    Page::html(pages::not_found(path))
}

#[cfg(test)]
mod tests;
