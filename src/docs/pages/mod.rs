//! The documentation as HTML: self-contained pages that need no script.
//!
//! The prose is in `reference.html`. The tables are built from the model and the contract. `html` has the
//! frame of every page, escaping, templates and tables.

mod html;

use self::html::{escape, fill, frame, inline};
use super::fields::{record_fields, reference_fields};
use crate::contract::{CodeInfo, Contract};
use crate::docs::samples::{Samples, indented, problem_example};
use crate::model::{
    ConferenceFields, Dataset, DateStatus, JournalFields, OrganizationFields, TagFields,
};

/// The client in the reference page. Tests run it.
pub const CLIENT: &str = include_str!("../../../examples/follow.py");

/// `/docs`: the guide and reference, on one page.
pub fn reference(contract: &Contract, public_url: &str) -> String {
    let base_url = format!("{public_url}/v1");
    let samples = Samples::new();
    let sample = |render: fn(&Samples) -> Vec<u8>| samples.as_ref().map(render).unwrap_or_default();
    let indented = |render| html::listing(&indented(&sample(render)));
    let values = [
        ("base_url", escape(&base_url)),
        ("public_url", escape(public_url)),
        ("client", html::listing(CLIENT)),
        (
            "tombstone",
            escape(&String::from_utf8_lossy(&sample(Samples::tombstone))),
        ),
        (
            "conference_example",
            indented(|samples| samples.record(Dataset::Conferences)),
        ),
        (
            "journal_example",
            indented(|samples| samples.record(Dataset::Journals)),
        ),
        (
            "dlt",
            html::listing(include_str!("../../../examples/dlt/medfeed_dlt.py")),
        ),
        (
            "airbyte",
            html::listing(include_str!("../../../examples/airbyte/manifest.yaml")),
        ),
        ("endpoints", html::endpoints(contract, samples.as_ref())),
        (
            "conference_fields",
            html::fields(&record_fields::<ConferenceFields>()),
        ),
        (
            "journal_fields",
            html::fields(&record_fields::<JournalFields>()),
        ),
        (
            "organization_fields",
            html::fields(&reference_fields::<OrganizationFields>()),
        ),
        ("tag_fields", html::fields(&reference_fields::<TagFields>())),
        ("date_confidence", html::date_confidence(&DateStatus::ALL)),
        ("errors", html::errors(contract.codes, "docs/errors/")),
    ];
    frame(
        "medfeed: guide and reference",
        "./",
        &fill(include_str!("reference.html"), &values),
    )
}

/// `/docs/errors`: all error codes.
pub fn error_index(contract: &Contract) -> String {
    let body = format!(
        "<main class=\"narrow\"><h1>Errors</h1>\n\
         <p>Every error has an HTTP error status and a body of type <code>application/problem+json</code>. Its \
         <code>type</code> is the address of one of these pages.</p>\n{}</main>\n",
        html::errors(contract.codes, "errors/")
    );
    frame("medfeed: errors", "../", &body)
}

/// `/docs/errors/<code>`: one error code.
pub fn error(contract: &Contract, info: &CodeInfo, public_url: &str) -> String {
    let body = format!(
        "<main class=\"narrow\"><p class=\"kicker\">{status} · <code>{code}</code></p>\n\
         <h1>{title}</h1>\n\
         <h2>What it means</h2>\n<p>{condition}</p>\n\
         <h2>What to do</h2>\n<p>{remedy}</p>\n\
         <h2>Example</h2>\n<pre><code>{request}\n\nHTTP/1.1 {status}\n\
         Content-Type: application/problem+json\n\n{example}</code></pre>\n\
         <p>Programs should use the status and the last part of <code>type</code>. The text of <code>detail</code> is for \
         people and may change. Quote <code>request_id</code> when you ask the operator.</p></main>\n",
        // `Display` includes the reason phrase.
        status = info.status,
        code = escape(info.name),
        title = inline(info.title),
        condition = inline(info.condition),
        remedy = inline(info.remedy),
        request = escape(info.request),
        example = escape(
            &serde_json::to_string_pretty(&problem_example(contract, info, public_url))
                .unwrap_or_default()
        ),
    );
    frame(&format!("medfeed: {}", info.name), "../../", &body)
}

/// A page that names the operator's contact, a URL.
pub fn with_contact(page: &str, contact: Option<&str>) -> String {
    let link = contact.map(|url| {
        let text = url.strip_prefix("mailto:").unwrap_or(url);
        format!(" <a href=\"{}\">Contact: {}</a>", escape(url), escape(text))
    });
    fill(page, &[("contact", link.unwrap_or_default())])
}

/// The page for browsers that request a missing page.
pub fn not_found(path: &str) -> String {
    // The links lead to the root of the server, however deep the path is.
    let root = match path.matches('/').count() {
        0 | 1 => "./".to_owned(),
        slashes => "../".repeat(slashes - 1),
    };
    let link = escape(&root);
    let body = format!(
        "<main class=\"narrow\"><p class=\"kicker\">404 Not Found</p>\n<h1>There is no such page</h1>\n\
         <p>Go to the <a href=\"{link}\">start page</a> or to the <a href=\"{link}docs\">guide and reference</a>. The API \
         itself is under <code>/v1</code>.</p></main>\n"
    );
    frame("medfeed: no such page", &root, &body)
}

#[cfg(test)]
mod tests;
