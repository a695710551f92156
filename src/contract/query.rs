//! Parsing queries. Unknown, repeated and invalid parameters are rejected.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::parameters::typed;
use super::{BadRequest, Code, Endpoint, Parameter, ParameterForm, WhenAbsent};
use crate::model::Dataset;

/// The query of a request to an endpoint, split but not checked.
#[derive(Debug)]
pub struct Query<'a> {
    endpoint: &'a Endpoint,
    given: Vec<(Cow<'a, str>, &'a str)>,
}

/// The rule of a value that is not valid text.
const ENCODING_RULE: &str = "is not valid percent-encoded UTF-8 text without NUL; encode the value as UTF-8 and escape \
                             what is not a letter or digit";

impl<'a> Query<'a> {
    /// Splits a query.
    pub fn of(endpoint: &'a Endpoint, query: Option<&'a str>) -> Query<'a> {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let given = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // A name that does not decode is unknown to every endpoint. Errors show it as it was sent.
            (percent_decode(name, true).unwrap_or(Cow::Borrowed(name)), value)
        });
        Query { endpoint, given: given.collect() }
    }

    /// Parses the query into one of the structs in [`super::parameters`].
    ///
    /// # Errors
    /// `unknown_parameter` first, then `invalid_parameter`. Parameters with a default are checked first, tokens last.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, BadRequest> {
        self.refuse_unknown()?;
        let mut declared: Vec<&Parameter> = self.endpoint.parameters.iter().collect();
        declared.sort_by_key(|parameter| match (parameter.form, parameter.absent) {
            (_, WhenAbsent::Default(_)) => 0,
            (ParameterForm::Cursor | ParameterForm::SyncToken, _) => 2,
            _ => 1,
        });
        let mut values = Map::new();
        for parameter in declared {
            if let Some(value) = self.value(parameter)? {
                values.insert(parameter.name.to_owned(), value);
            }
        }
        typed(Value::Object(values))
    }

    /// Returns the dataset that the parameter `dataset` names, if it is valid. The license is checked before the
    /// parameters.
    pub fn dataset(&self) -> Option<Dataset> {
        self.text("dataset").ok().flatten()?.parse().ok()
    }

    fn refuse_unknown(&self) -> Result<(), BadRequest> {
        let allowed = || self.endpoint.parameters.iter().map(|parameter| parameter.name);
        let Some((unknown, _)) = self.given.iter().find(|(given, _)| !allowed().any(|name| name == given)) else {
            return Ok(());
        };
        let nearest = allowed()
            .map(|name| (strsim::damerau_levenshtein(&unknown.to_lowercase(), name), name))
            .min()
            .filter(|(distance, name)| *distance <= (name.len() / 3).max(2) && *distance < name.len());
        let hint = nearest.map(|(_, name)| format!(" Did you mean `{name}`?")).unwrap_or_default();
        let names: Vec<String> = allowed().map(|name| format!("`{name}`")).collect();
        let list = match names.as_slice() {
            [] => "This endpoint takes no parameters.".to_owned(),
            _ => format!("Allowed are: {}.", names.join(", ")),
        };
        let shown: String = unknown.chars().take(100).collect();
        let detail = format!("Unknown parameter `{shown}`.{hint} {list}");
        Err(BadRequest { code: Code::UnknownParameter, detail })
    }

    fn value(&self, parameter: &Parameter) -> Result<Option<Value>, BadRequest> {
        let name = parameter.name;
        let text = match parameter.form {
            ParameterForm::Cursor | ParameterForm::SyncToken => {
                self.raw(name)?.map(|raw| percent_decode(raw, true).unwrap_or_default())
            }
            _ => self.text(name)?,
        };
        let text = match (text, parameter.absent) {
            (Some(text), _) => text,
            (None, WhenAbsent::Optional) => return Ok(None),
            (None, WhenAbsent::Default(text)) => Cow::Borrowed(text),
            (None, WhenAbsent::Required) => {
                return Err(BadRequest::parameter(name, format!("is required; send {}", parameter.form.words())));
            }
        };
        parameter.read(&text).map(Some)
    }

    /// Returns a decoded value, which must be nonempty text.
    fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, BadRequest> {
        let Some(raw) = self.raw(name)? else { return Ok(None) };
        if raw.is_empty() {
            return Err(BadRequest::parameter(name, "is empty; give a value or leave the parameter out"));
        }
        let text = percent_decode(raw, true).filter(|text| !text.contains('\0'));
        text.map(Some).ok_or_else(|| BadRequest::parameter(name, ENCODING_RULE))
    }

    /// Returns a value as it was sent.
    fn raw(&self, name: &str) -> Result<Option<&'a str>, BadRequest> {
        let mut values = self.given.iter().filter(|(given, _)| given == name).map(|(_, value)| *value);
        let first = values.next();
        match values.next() {
            Some(_) => Err(BadRequest::parameter(name, "is given more than once; give it once")),
            None => Ok(first),
        }
    }
}

/// Decodes percent-escapes; with `form` also `+` as a blank. `None` for an invalid escape or invalid UTF-8.
pub fn percent_decode(text: &str, form: bool) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| byte == b'%' || byte == b'+') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'%' => {
                let [high, low, after @ ..] = rest else { return None };
                let high = char::from(*high).to_digit(16)?;
                let low = char::from(*low).to_digit(16)?;
                bytes.push(u8::try_from(high * 16 + low).ok()?);
                rest = after;
            }
            b'+' if form => bytes.push(b' '),
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
