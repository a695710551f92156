//! JSON objects, and references to components.

use serde_json::{Value, json};

pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

pub fn component(section: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{section}/{name}")})
}
