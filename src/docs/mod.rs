//! The documentation that the server serves: `/openapi.json`, `/docs` and a page for every problem `type`.
//!
//! All of it is outside `/v1`, needs no key, and loads nothing from other servers. In reading order:
//! - [`fields`]: the fields of rows, from the model's tables.
//! - [`samples`]: example rows, responses and errors, rendered by the service's own code.
//! - [`openapi`]: the contract as an OpenAPI document.
//! - [`pages`]: the contract as HTML.

pub mod fields;
pub mod openapi;
pub mod pages;
pub mod samples;

use serde_json::json;

use crate::contract::Contract;

/// The `Content-Security-Policy` of the pages. It allows only inline styles, images of this server, and its one script.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
                                           img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The script that adds copy buttons and folds long tables on narrow screens. Pages work without it.
const SCRIPT: &str = include_str!("pages/page.js");

/// The content type and the bytes of a document.
pub type Document = (&'static str, Vec<u8>);

fn html(page: String) -> Document {
    ("text/html; charset=utf-8", page.into_bytes())
}

/// Returns the document at a path, if there is one. `public_url` is the server's address without a slash at the end,
/// `contact` the URL of its operator.
pub fn find_page(
    contract: &Contract,
    path: &str,
    public_url: &str,
    contact: Option<&str>,
) -> Option<Document> {
    match path {
        "/openapi.json" => {
            let mut document = openapi::document(contract, public_url);
            if let Some(url) = contact {
                document["info"]["contact"] = match url.strip_prefix("mailto:") {
                    Some(address) => json!({ "email": address }),
                    None => json!({ "url": url }),
                };
            }
            Some(("application/json", format!("{document:#}\n").into_bytes()))
        }
        "/docs/page.js" => Some(("text/javascript; charset=utf-8", SCRIPT.as_bytes().to_vec())),
        "/docs/follow.py" => Some((
            "text/x-python; charset=utf-8",
            pages::CLIENT.as_bytes().to_vec(),
        )),
        "/docs" => Some(html(pages::reference(contract, public_url, contact))),
        "/docs/errors" => Some(html(pages::error_index(contract, contact))),
        _ => {
            let name = path.strip_prefix("/docs/errors/")?;
            let info = contract.codes.iter().find(|info| info.name == name)?;
            let page = pages::error(contract, info, public_url, contact);
            Some(html(page))
        }
    }
}

/// Returns the page for browsers that request a missing page.
pub fn not_found(path: &str, contact: Option<&str>) -> Document {
    html(pages::not_found(path, contact))
}

#[cfg(test)]
mod tests;
