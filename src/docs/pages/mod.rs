//! The documentation as HTML: self-contained pages that need no script.
//!
//! The prose is in `reference.html`. The tables are built from the model and the contract. Below
//! them are escaping, templates, the frame of every page, and its tables.

use strum::EnumMessage;

use super::fields::{record_fields, reference_fields};
use crate::contract::{CodeInfo, Contract, Parameter, WhenAbsent};
use crate::docs::fields::{FieldDoc, status_date};
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
    let indented = |render| listing(&indented(&sample(render)));
    let values = [
        ("base_url", escape(&base_url)),
        ("public_url", escape(public_url)),
        ("client", listing(CLIENT)),
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
            listing(include_str!("../../../examples/dlt/medfeed_dlt.py")),
        ),
        (
            "airbyte",
            listing(include_str!("../../../examples/airbyte/manifest.yaml")),
        ),
        ("endpoints", endpoints(contract, samples.as_ref())),
        (
            "conference_fields",
            fields(&record_fields::<ConferenceFields>()),
        ),
        ("journal_fields", fields(&record_fields::<JournalFields>())),
        (
            "organization_fields",
            fields(&reference_fields::<OrganizationFields>()),
        ),
        ("tag_fields", fields(&reference_fields::<TagFields>())),
        ("date_confidence", date_confidence(&DateStatus::ALL)),
        ("errors", errors(contract.codes, "docs/errors/")),
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
        errors(contract.codes, "errors/")
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

const STYLE: &str = concat!(include_str!("../../look.css"), include_str!("style.css"));
const LOGO: &str = include_str!("logo.svg");

/// Escapes text for HTML elements and quoted attributes.
fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

/// Escapes text, and converts backticks into `<code>`.
fn inline(text: &str) -> String {
    let pieces = text.split('`').enumerate().map(|(at, piece)| {
        let piece = escape(piece);
        // Every second piece was between two backticks.
        if at % 2 == 1 {
            format!("<code>{piece}</code>")
        } else {
            piece
        }
    });
    pieces.collect()
}

/// Replaces every `{{name}}` in a template by its HTML. Values are inserted as they are. A name without a value
/// remains, and a test finds it.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut parts = template.split("{{");
    let mut html = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let named = part.split_once("}}");
        match named
            .and_then(|(name, tail)| Some((values.iter().find(|(known, _)| *known == name)?, tail)))
        {
            Some(((_, value), tail)) => html.extend([value.as_str(), tail]),
            None => html.extend(["{{", part]),
        }
    }
    html
}

/// Builds a page around a body. `root` is the relative address of `/`. Links are relative, so they work behind any
/// prefix.
fn frame(title: &str, root: &str, body: &str) -> String {
    let title = escape(title);
    let root = escape(root);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"{root}favicon.svg\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n<script src=\"{root}docs/page.js\" defer></script>\n</head>\n<body>\n\
         <header class=\"top\"><div class=\"frame\"><a class=\"brand\" href=\"{root}\">{LOGO}medfeed</a>\n\
         <nav aria-label=\"Pages\"><a href=\"{root}docs\">Guide and reference</a> <a href=\"{root}docs/errors\">Errors</a> \
         <a href=\"{root}openapi.json\">OpenAPI</a>{{{{contact}}}}</nav></div></header>\n\
         {body}</body>\n</html>\n"
    )
}

fn fields(fields: &[FieldDoc]) -> String {
    let rows = fields.iter().map(|field| {
        let or_null = if field.nullable { " or null" } else { "" };
        [
            code(field.name),
            escape(field.type_name) + or_null,
            inline(field.note),
        ]
    });
    table(["Field", "Type", "Notes"], rows)
}

fn date_confidence(statuses: &[DateStatus]) -> String {
    let rows = statuses.iter().map(|status| {
        let meaning = status.get_documentation().unwrap_or_default();
        [
            code(status.into()),
            inline(meaning),
            escape(status_date(*status)),
        ]
    });
    table(["Value", "Meaning", "The date itself"], rows)
}

/// Builds the table of error codes, with links to their pages. `folder` is the relative address of those pages.
fn errors(codes: &[CodeInfo], folder: &str) -> String {
    let rows = codes.iter().map(|info| {
        let link = format!(
            "<a href=\"{1}{0}\"><code>{0}</code></a>",
            escape(info.name),
            escape(folder)
        );
        [info.status.as_str().to_owned(), link, inline(info.title)]
    });
    table(["Status", "Code", "Condition"], rows)
}

/// Builds the sections of all endpoints, with parameters and statuses.
fn endpoints(contract: &Contract, samples: Option<&Samples>) -> String {
    let mut html = String::new();
    for endpoint in contract.endpoints {
        html.push_str(&format!(
            "<details class=\"endpoint\" id=\"{}\"><summary>{} <span>{}</span></summary>\n",
            escape(endpoint.operation),
            code(&format!("GET {}", endpoint.path())),
            inline(endpoint.summary)
        ));
        for paragraph in endpoint.description.split("\n\n") {
            html.push_str(&format!("<p>{}</p>\n", inline(paragraph)));
        }
        let rows: Vec<[String; 4]> = endpoint.all_parameters().map(parameter).collect();
        if !rows.is_empty() {
            html.push_str(&table(["Parameter", "In", "Values", "Notes"], rows));
        }
        let statuses = contract.statuses_of(endpoint);
        let statuses: Vec<String> = statuses
            .iter()
            .map(|status| code(status.as_str()))
            .collect();
        html.push_str(&format!(
            "<p class=\"statuses\">Statuses: {}</p>\n",
            statuses.join(" ")
        ));
        if let Some(answer) = samples.and_then(|samples| samples.answer(endpoint.resource)) {
            html.push_str(&format!(
                "<p>An answer:</p>\n{}",
                listing(&indented(&answer))
            ));
        }
        html.push_str("</details>\n");
    }
    html
}

fn parameter(parameter: &Parameter) -> [String; 4] {
    let mut name = code(parameter.name);
    let mut values = inline(&parameter.form.words());
    match parameter.absent {
        WhenAbsent::Required => name.push_str(" <small>required</small>"),
        WhenAbsent::Default(text) => values.push_str(&format!("; default {}", code(text))),
        WhenAbsent::Optional => {}
    }
    [
        name,
        parameter.location.to_string(),
        values,
        inline(parameter.note),
    ]
}

fn listing(text: &str) -> String {
    format!("<pre><code>{}</code></pre>\n", escape(text))
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

/// Builds a table. On narrow screens each row becomes a card, and its cells show the column titles.
pub fn table<const N: usize>(
    titles: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let head: String = titles
        .iter()
        .map(|title| format!("<th scope=\"col\">{}</th>", escape(title)))
        .collect();
    let mut html = format!("<table><thead><tr>{head}</tr></thead><tbody>\n");
    for row in rows {
        let titled = titles.iter().zip(&row);
        let cells: String = titled
            .map(|(title, cell)| format!("<td data-label=\"{}\">{cell}</td>", escape(title)))
            .collect();
        html.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    html + "</tbody></table>\n"
}

#[cfg(test)]
mod html_tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let expected = "&lt;a href=&quot;x&quot;&gt;&amp;&apos;";
        assert_eq!(escape("<a href=\"x\">&'"), expected);
        let expected = "send <code>&lt;key&gt;</code> &amp; wait";
        assert_eq!(inline("send `<key>` & wait"), expected);
    }

    #[test]
    fn values_in_filled_templates_are_not_filled_again() {
        let values = [("a", "{{b}}".to_owned()), ("b", "B".to_owned())];
        assert_eq!(fill("{{a}} {{b}} {{c}} {{", &values), "{{b}} B {{c}} {{");
    }
}
