//! The generated parts of the reference page.

use super::html::{escape, inline};
use crate::contract::{Absent, CodeInfo, Contract, Endpoint, Parameter};
use crate::docs::fields::{FieldDoc, status_date, status_meaning};
use crate::model::DateStatus;

/// The fields of a kind of row.
pub fn fields(fields: &[FieldDoc]) -> String {
    let mut html = head(&["Field", "Type", "Notes"]);
    for field in fields {
        html.push_str(&row(&[code(field.name), escape(&field.type_text()), inline(field.note)]));
    }
    html + "</tbody></table></div>\n"
}

/// The date confidence values.
pub fn date_confidence(statuses: &[DateStatus]) -> String {
    let mut html = head(&["Value", "Meaning", "The date itself"]);
    for status in statuses {
        let meaning = inline(status_meaning(*status));
        html.push_str(&row(&[code(status.as_str()), meaning, escape(status_date(*status))]));
    }
    html + "</tbody></table></div>\n"
}

/// The error codes, with links to their pages. `folder` leads from the page of the table to those of the errors: links
/// are relative, so that they work wherever the server is reached.
pub fn errors(codes: &[CodeInfo], folder: &str) -> String {
    let mut html = head(&["Status", "Code", "Condition"]);
    for info in codes {
        let link = format!("<a href=\"{1}{0}\"><code>{0}</code></a>", escape(info.name), escape(folder));
        html.push_str(&row(&[info.status.as_str().to_owned(), link, inline(info.title)]));
    }
    html + "</tbody></table></div>\n"
}

/// All endpoints with their parameters and statuses.
pub fn endpoints(contract: &Contract) -> String {
    let mut html = String::new();
    for endpoint in contract.endpoints {
        html.push_str(&format!("<section class=\"endpoint\"><h3>{}</h3>\n", code(&format!("GET {}", endpoint.path()))));
        html.push_str(&format!("<p>{}.</p>\n", inline(endpoint.summary)));
        for paragraph in endpoint.description.split("\n\n") {
            html.push_str(&format!("<p>{}</p>\n", inline(paragraph)));
        }
        html.push_str(&parameters(endpoint));
        let statuses = contract.statuses_of(endpoint);
        let statuses: Vec<String> = statuses.iter().map(|status| code(status.as_str())).collect();
        html.push_str(&format!("<p class=\"statuses\">Statuses: {}</p></section>\n", statuses.join(" ")));
    }
    html
}

fn parameters(endpoint: &Endpoint) -> String {
    let rows: String = endpoint.all_parameters().map(parameter).collect();
    if rows.is_empty() {
        return rows;
    }
    head(&["Parameter", "In", "Values", "Notes"]) + &rows + "</tbody></table></div>\n"
}

fn parameter(parameter: &Parameter) -> String {
    let mut name = code(parameter.name);
    let mut values = inline(&parameter.form.words());
    match parameter.absent {
        Absent::Required => name.push_str(" <small>required</small>"),
        Absent::Default(text) => values.push_str(&format!("; default {}", code(text))),
        Absent::Optional => {}
    }
    row(&[name, parameter.place.as_str().to_owned(), values, inline(parameter.note)])
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

/// The beginning of a table. Wide tables scroll within their own box, not the page.
fn head(titles: &[&str]) -> String {
    let cells: String = titles.iter().map(|title| format!("<th scope=\"col\">{}</th>", escape(title))).collect();
    format!("<div class=\"table\"><table><thead><tr>{cells}</tr></thead><tbody>\n")
}

fn row(cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr>{cells}</tr>\n")
}
