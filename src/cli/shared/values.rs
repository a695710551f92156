//! Values of fields, as JSON and as text.

use serde_json::Value;

use crate::model::value::{FieldValue, LinkTexts};

/// A field's value in the JSON of the API.
pub(in crate::cli) fn value_of(value: &dyn FieldValue, links: &dyn LinkTexts) -> Value {
    let mut json = Vec::new();
    value.write_json(&mut json, links);
    // Valid JSON was just written.
    serde_json::from_slice(&json).unwrap_or_default()
}

/// A value as text; `None` if it is empty. Links are named as in CSV.
pub(in crate::cli) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => Some(items.iter().filter_map(text_of).collect::<Vec<_>>().join("; ")),
        // An organization or a tag. A tag has a category, and is shown with its type.
        Value::Object(members) => {
            let text = |key: &str| members.get(key).and_then(Value::as_str).unwrap_or_default();
            let kind = if members.contains_key("category") { format!("{}: ", text("type")) } else { String::new() };
            Some(format!("{kind}{}", text("name")))
        }
        other => Some(other.to_string()),
    }
}

/// Shortens a text to `max_chars` characters.
pub(in crate::cli) fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_worded() {
        let cases = [
            (json!(null), None),
            (json!([]), None),
            (json!("Zürich"), Some("Zürich")),
            (json!(4.5), Some("4.5")),
            (json!(true), Some("true")),
            (json!(["Hematology", "Oncology"]), Some("Hematology; Oncology")),
            (json!([{"id": 1, "name": "ASCO", "abbv": null, "type": "society", "url": null}]), Some("ASCO")),
            (json!([{"id": 1, "type": "Topic", "name": "Lung", "category": null}]), Some("Topic: Lung")),
        ];
        for (value, expected) in cases {
            assert_eq!(text_of(&value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn only_longer_texts_are_cut() {
        let cases = [
            ("", 3, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("äöü", 3, "äöü"),
            ("äöüß", 3, "äöü…"),
            ("a", 0, "…"),
        ];
        for (text, most, expected) in cases {
            assert_eq!(cut(text, most), expected, "{text}");
        }
    }
}
