//! The documentation that the server serves about itself: `/openapi.json`, `/docs` and a page for every problem `type`.
//!
//! All of it stands outside `/v1`, needs no key and loads nothing from anywhere else. In reading order:
//! - [`errors`]: the table of error codes.
//! - [`fields`]: what the fields of the rows mean; their names and types come from the model's own tables.
//! - [`openapi`]: the contract as an OpenAPI document.
//! - [`pages`]: the same for people, as HTML.

pub mod errors;
pub mod fields;
pub mod openapi;
pub mod pages;

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

/// The page at a path, which is compared exactly. `public_url` is where callers reach the server, without a slash at
/// its end.
pub fn find_page(path: &str, public_url: &str) -> Option<Page> {
    match path {
        "/openapi.json" => {
            let document = openapi::document(public_url);
            Some(Page { content_type: "application/json", body: format!("{document:#}\n").into_bytes() })
        }
        "/docs" => Some(Page::html(pages::reference(public_url))),
        "/docs/errors" => Some(Page::html(pages::error_index())),
        _ => {
            let error = errors::find(path.strip_prefix("/docs/errors/")?)?;
            Some(Page::html(pages::error(error, public_url)))
        }
    }
}

/// The address under which all endpoints stand.
fn base_url(public_url: &str) -> String {
    format!("{public_url}/v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC_URL: &str = "https://feed.example.org";

    #[test]
    fn every_page_is_found() {
        let mut paths: Vec<String> = ["/openapi.json", "/docs", "/docs/errors"].map(str::to_owned).to_vec();
        paths.extend(errors::ERRORS.iter().map(|error| format!("/docs/errors/{}", error.code)));
        for path in paths {
            let page = find_page(&path, PUBLIC_URL).unwrap_or_else(|| panic!("{path} is missing"));
            assert!(!page.body.is_empty(), "{path}");
        }
    }

    #[test]
    fn other_paths_are_not_found() {
        for path in ["", "/", "/docs/", "/docs/errors/", "/docs/errors/no_such", "/Docs", "/v1", "/openapi.json/"] {
            assert_eq!(find_page(path, PUBLIC_URL), None, "{path:?}");
        }
    }
}
