//! The generated parts of the reference page.

use super::html::{escape, inline};
use crate::contract::{CodeInfo, Contract, Parameter, WhenAbsent};
use crate::docs::fields::{FieldDoc, status_date, status_meaning};
use crate::docs::samples::{Samples, indented};
use crate::model::DateStatus;

pub fn fields(fields: &[FieldDoc]) -> String {
    let rows = fields.iter().map(|field| [code(field.name), escape(&field.type_text()), inline(field.note)]);
    table(["Field", "Type", "Notes"], rows)
}

pub fn date_confidence(statuses: &[DateStatus]) -> String {
    let rows = statuses
        .iter()
        .map(|status| [code(status.as_str()), inline(status_meaning(*status)), escape(status_date(*status))]);
    table(["Value", "Meaning", "The date itself"], rows)
}

/// Builds the table of error codes, with links to their pages. `folder` is the relative address of those pages.
pub fn errors(codes: &[CodeInfo], folder: &str) -> String {
    let rows = codes.iter().map(|info| {
        let link = format!("<a href=\"{1}{0}\"><code>{0}</code></a>", escape(info.name), escape(folder));
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
        let statuses: Vec<String> = statuses.iter().map(|status| code(status.as_str())).collect();
        html.push_str(&format!("<p class=\"statuses\">Statuses: {}</p>\n", statuses.join(" ")));
        if let Some(answer) = samples.and_then(|samples| samples.answer(endpoint.resource)) {
            html.push_str(&format!("<p>An answer:</p>\n{}", listing(&indented(&answer))));
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
    [name, parameter.location.to_string(), values, inline(parameter.note)]
}

pub fn listing(text: &str) -> String {
    format!("<pre><code>{}</code></pre>\n", escape(text))
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

/// Builds a table. On narrow screens each row becomes a card, and its cells show the column titles.
pub fn table<const N: usize>(titles: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let head: String = titles.iter().map(|title| format!("<th scope=\"col\">{}</th>", escape(title))).collect();
    let mut html = format!("<table><thead><tr>{head}</tr></thead><tbody>\n");
    for row in rows {
        let titled = titles.iter().zip(&row);
        let cells: String =
            titled.map(|(title, cell)| format!("<td data-label=\"{}\">{cell}</td>", escape(title))).collect();
        html.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    html + "</tbody></table>\n"
}
