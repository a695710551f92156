//! The documentation as HTML: plain, self-contained pages without scripts.
//!
//! Prose stands in `reference.html`, tables are made from the model and the contract.
//! In reading order:
//! - `html`: escaping, templates and the frame around every page.
//! - `tables`: the generated parts of the reference page.

mod html;
mod tables;

use self::html::{escape, fill, frame, inline};
use super::fields::{record_fields, reference_fields};
use crate::contract::{CodeInfo, Contract};
use crate::docs::examples;
use crate::model::{ConferenceFields, DateStatus, JournalFields, OrganizationFields, TagFields};

/// The client of the reference page, which readers may copy. It is a file of its own so that it can be run.
const CLIENT: &str = include_str!("client.py");

/// What links call the reference page.
const GUIDE: &str = "Guide and reference";

/// `/docs`: everything that a caller needs, on one page.
pub fn reference(contract: &Contract, public_url: &str) -> String {
    let base_url = format!("{public_url}/v1");
    let values = [
        ("base_url", escape(&base_url)),
        ("public_url", escape(public_url)),
        ("client", escape(&CLIENT.replace("{{base_url}}", &base_url))),
        ("endpoints", tables::endpoints(contract)),
        ("conference_fields", tables::fields(&record_fields::<ConferenceFields>())),
        ("journal_fields", tables::fields(&record_fields::<JournalFields>())),
        ("organization_fields", tables::fields(&reference_fields::<OrganizationFields>())),
        ("tag_fields", tables::fields(&reference_fields::<TagFields>())),
        ("date_confidence", tables::date_confidence(&DateStatus::ALL)),
        ("errors", tables::errors(contract.codes, "docs/errors/")),
    ];
    frame("medfeed: guide and reference", &fill(include_str!("reference.html"), &values))
}

/// `/docs/errors`: all error codes.
pub fn error_index(contract: &Contract) -> String {
    let body = format!(
        "<main class=\"narrow\">{}<h1>Errors</h1>\n\
         <p>Every error has an HTTP status of its own and a body of type <code>application/problem+json</code>. Its \
         <code>type</code> is the address of one of these pages.</p>\n{}</main>\n",
        back(&[("../docs", GUIDE)]),
        tables::errors(contract.codes, "errors/")
    );
    frame("medfeed: errors", &body)
}

/// `/docs/errors/<code>`: one error code.
pub fn error(contract: &Contract, info: &CodeInfo, public_url: &str) -> String {
    let body = format!(
        "<main class=\"narrow\">{back}<p class=\"kicker\">{status} · <code>{code}</code></p>\n\
         <h1>{title}</h1>\n\
         <h2>What it means</h2>\n<p>{condition}</p>\n\
         <h2>What to do</h2>\n<p>{remedy}</p>\n\
         <h2>Example</h2>\n<pre><code>{request}\n\nHTTP/1.1 {status}\n\
         Content-Type: application/problem+json\n\n{example}</code></pre>\n\
         <p>Decide by the status and by the last part of <code>type</code>. The text of <code>detail</code> is for \
         people and may change. Quote <code>request_id</code> when you ask the operator.</p></main>\n",
        back = back(&[("../../docs", GUIDE), ("../errors", "Errors")]),
        // With its reason phrase.
        status = info.status,
        code = escape(info.name),
        title = inline(info.title),
        condition = inline(info.condition),
        remedy = inline(info.remedy),
        request = escape(info.request),
        example =
            escape(&serde_json::to_string_pretty(&examples::problem(contract, info, public_url)).unwrap_or_default()),
    );
    frame(&format!("medfeed: {}", info.name), &body)
}

/// The way back, above the heading.
fn back(steps: &[(&str, &str)]) -> String {
    let links: Vec<String> =
        steps.iter().map(|(url, title)| format!("<a href=\"{}\">{}</a>", escape(url), escape(title))).collect();
    format!("<p class=\"back\">{}</p>\n", links.join(" › "))
}

#[cfg(test)]
mod tests;
