//! The documentation as HTML: self-contained pages that need no script.
//!
//! The prose is in the templates next to this file. Their tables are built from the model and the contract.

use askama::Template;
use strum::EnumMessage;

use super::fields::{FieldDoc, record_fields, reference_fields};
use super::samples::{SAMPLES, indented, problem_example};
use crate::contract::{CodeInfo, Contract, Endpoint, WhenAbsent};
use crate::model::{ConferenceFields, Dataset, JournalFields, OrganizationFields, TagFields};

/// The client in the reference page. Tests run it.
pub const CLIENT: &str = include_str!("../../../examples/follow.py");
const DLT: &str = include_str!("../../../examples/dlt/medfeed_dlt.py");
const AIRBYTE: &str = include_str!("../../../examples/airbyte/manifest.yaml");
const STYLE: &str = concat!(include_str!("../../look.css"), include_str!("style.css"));
const LOGO: &str = include_str!("logo.svg");

/// The parts that all pages have.
struct Frame<'a> {
    title: &'a str,
    /// The relative address of `/`. Links are relative, so they work behind any prefix.
    root: &'a str,
    /// The URL of the operator.
    contact: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "reference.html", config = "src/askama.toml")]
struct Reference<'a> {
    frame: Frame<'a>,
    contract: &'a Contract,
    public_url: &'a str,
    base_url: String,
    tombstone: String,
    conference_example: String,
    journal_example: String,
    conference_fields: Vec<FieldDoc>,
    journal_fields: Vec<FieldDoc>,
    organization_fields: Vec<FieldDoc>,
    tag_fields: Vec<FieldDoc>,
}

impl Reference<'_> {
    fn answer(&self, endpoint: &Endpoint) -> Option<String> {
        let answer = SAMPLES.answer(endpoint.resource)?;
        Some(indented(&answer))
    }
}

#[derive(Template)]
#[template(path = "errors.html", config = "src/askama.toml")]
struct ErrorIndex<'a> {
    frame: Frame<'a>,
    contract: &'a Contract,
}

#[derive(Template)]
#[template(path = "error.html", config = "src/askama.toml")]
struct ErrorPage<'a> {
    frame: Frame<'a>,
    info: &'a CodeInfo,
    example: String,
}

#[derive(Template)]
#[template(path = "not_found.html", config = "src/askama.toml")]
struct NotFound<'a> {
    frame: Frame<'a>,
}

/// `/docs`: the guide and reference, on one page. `contact` is the URL of the operator, as on all pages.
pub fn reference(contract: &Contract, public_url: &str, contact: Option<&str>) -> String {
    let example = |dataset| indented(&SAMPLES.record(dataset));
    let page = Reference {
        frame: Frame {
            title: "guide and reference",
            root: "./",
            contact,
        },
        contract,
        public_url,
        base_url: format!("{public_url}/v1"),
        tombstone: String::from_utf8_lossy(&SAMPLES.tombstone()).into_owned(),
        conference_example: example(Dataset::Conferences),
        journal_example: example(Dataset::Journals),
        conference_fields: record_fields::<ConferenceFields>(),
        journal_fields: record_fields::<JournalFields>(),
        organization_fields: reference_fields::<OrganizationFields>(),
        tag_fields: reference_fields::<TagFields>(),
    };
    rendered(&page)
}

/// `/docs/errors`: all error codes.
pub fn error_index(contract: &Contract, contact: Option<&str>) -> String {
    let frame = Frame {
        title: "errors",
        root: "../",
        contact,
    };
    rendered(&ErrorIndex { frame, contract })
}

/// `/docs/errors/<code>`: one error code.
pub fn error(
    contract: &Contract,
    info: &CodeInfo,
    public_url: &str,
    contact: Option<&str>,
) -> String {
    let frame = Frame {
        title: info.name,
        root: "../../",
        contact,
    };
    let example = problem_example(contract, info, public_url);
    rendered(&ErrorPage {
        frame,
        info,
        example: serde_json::to_string_pretty(&example).unwrap_or_default(),
    })
}

/// The page for browsers that request a missing page.
pub fn not_found(path: &str, contact: Option<&str>) -> String {
    // The links lead to the root of the server, however deep the path is.
    let root = match path.matches('/').count() {
        0 | 1 => "./".to_owned(),
        slashes => "../".repeat(slashes - 1),
    };
    let frame = Frame {
        title: "no such page",
        root: &root,
        contact,
    };
    rendered(&NotFound { frame })
}

#[cfg(test)]
mod tests;

/// The HTML of a page. A template fails only if one of its values does, and these do not.
fn rendered(page: &impl Template) -> String {
    page.render().unwrap_or_default()
}

/// Escapes text for HTML, and converts backticks into `<code>`.
fn inline(text: &str) -> String {
    let text = quick_xml::escape::escape(text);
    let pieces = text.split('`').enumerate().map(|(at, piece)| match at % 2 {
        0 => piece.to_owned(),
        // Every second piece was between two backticks.
        _ => format!("<code>{piece}</code>"),
    });
    pieces.collect()
}
