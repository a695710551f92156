//! Escaping, templates, the frame of every page, and its tables.

use strum::EnumMessage;

use crate::contract::{CodeInfo, Contract, Parameter, WhenAbsent};
use crate::docs::fields::{FieldDoc, status_date};
use crate::docs::samples::{Samples, indented};
use crate::model::DateStatus;

const STYLE: &str = concat!(include_str!("../../look.css"), include_str!("style.css"));
const LOGO: &str = include_str!("logo.svg");

/// Escapes text for HTML elements and quoted attributes.
pub fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

/// Escapes text, and converts backticks into `<code>`.
pub fn inline(text: &str) -> String {
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
pub fn fill(template: &str, values: &[(&str, String)]) -> String {
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
pub fn frame(title: &str, root: &str, body: &str) -> String {
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

pub fn fields(fields: &[FieldDoc]) -> String {
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

pub fn date_confidence(statuses: &[DateStatus]) -> String {
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
pub fn errors(codes: &[CodeInfo], folder: &str) -> String {
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
pub fn endpoints(contract: &Contract, samples: Option<&Samples>) -> String {
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

pub fn listing(text: &str) -> String {
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
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(
            escape("<a href=\"x\">&'"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&apos;"
        );
        assert_eq!(
            inline("send `<key>` & wait"),
            "send <code>&lt;key&gt;</code> &amp; wait"
        );
    }

    #[test]
    fn values_in_filled_templates_are_not_filled_again() {
        let values = [("a", "{{b}}".to_owned()), ("b", "B".to_owned())];
        assert_eq!(fill("{{a}} {{b}} {{c}} {{", &values), "{{b}} B {{c}} {{");
    }
}
