//! The generated parts of the reference page.

use serde_json::Value;

use super::html::{escape, inline};
use crate::docs::errors::ErrorDoc;
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
pub fn errors(errors: &[ErrorDoc], folder: &str) -> String {
    let mut html = head(&["Status", "Code", "Condition"]);
    for error in errors {
        let link = format!("<a href=\"{1}{0}\"><code>{0}</code></a>", escape(error.code), escape(folder));
        html.push_str(&row(&[error.status.to_string(), link, inline(error.title_of_condition)]));
    }
    html + "</tbody></table></div>\n"
}

/// All endpoints of the OpenAPI document with their parameters and statuses.
pub fn endpoints(document: &Value) -> String {
    let mut html = String::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        let operation = &item["get"];
        html.push_str(&format!("<section class=\"endpoint\"><h3>{}</h3>\n", code(&format!("GET {path}"))));
        html.push_str(&format!("<p>{}.</p>\n", inline(text(&operation["summary"]))));
        for paragraph in text(&operation["description"]).split("\n\n") {
            html.push_str(&format!("<p>{}</p>\n", inline(paragraph)));
        }
        html.push_str(&parameters(document, operation));
        let statuses: Vec<String> =
            operation["responses"].as_object().into_iter().flatten().map(|(status, _)| code(status)).collect();
        html.push_str(&format!("<p class=\"statuses\">Statuses: {}</p></section>\n", statuses.join(" ")));
    }
    html
}

fn parameters(document: &Value, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    if parameters.is_empty() {
        return String::new();
    }
    let mut html = head(&["Parameter", "In", "Values", "Notes"]);
    for parameter in parameters {
        let parameter = resolve(document, parameter);
        let schema = resolve(document, &parameter["schema"]);
        let mut name = code(text(&parameter["name"]));
        if parameter["required"] == Value::Bool(true) {
            name.push_str(" <small>required</small>");
        }
        let cells = [name, escape(text(&parameter["in"])), values(schema), inline(text(&parameter["description"]))];
        html.push_str(&row(&cells));
    }
    html + "</tbody></table></div>\n"
}

/// What a parameter takes, in words.
fn values(schema: &Value) -> String {
    let is_whole = schema["type"] == "integer";
    let mut words = if let Some(values) = schema["enum"].as_array() {
        values.iter().map(|value| code(text(value))).collect::<Vec<_>>().join(" or ")
    } else if let (true, Some(from), Some(to)) = (is_whole, schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
        format!("integer, {from} to {to}")
    } else if let (Some(from), Some(to)) = (schema["minLength"].as_u64(), schema["maxLength"].as_u64()) {
        format!("{from} to {to} characters")
    } else if schema["format"] == "date" {
        code("YYYY-MM-DD")
    } else if let Some(examples) = schema["examples"].as_array() {
        examples.iter().map(|example| code(text(example))).collect::<Vec<_>>().join(", ")
    } else {
        "string".to_owned()
    };
    match &schema["default"] {
        Value::Null => {}
        Value::String(default) => words.push_str(&format!("; default {}", code(default))),
        default => words.push_str(&format!("; default {}", escape(&default.to_string()))),
    }
    words
}

/// What a `$ref` stands for; anything else stands for itself.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
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
