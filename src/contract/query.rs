//! Parsing queries. Unknown, repeated and invalid parameters are rejected.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::parameters::typed;
use super::{BadRequest, Code, Endpoint, Parameter, ParameterForm, WhenAbsent};
use crate::model::Dataset;

/// The query of a request to an endpoint, split but not checked.
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
        let pairs = query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty());
        let given = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // A name that does not decode is unknown to every endpoint. Errors show it as it was sent.
            (
                percent_decode(name, true).unwrap_or(Cow::Borrowed(name)),
                value,
            )
        });
        Query {
            endpoint,
            given: given.collect(),
        }
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
        let allowed = || {
            self.endpoint
                .parameters
                .iter()
                .map(|parameter| parameter.name)
        };
        let Some((unknown, _)) = self
            .given
            .iter()
            .find(|(given, _)| !allowed().any(|name| name == given))
        else {
            return Ok(());
        };
        let nearest = allowed()
            .map(|name| {
                (
                    strsim::damerau_levenshtein(&unknown.to_lowercase(), name),
                    name,
                )
            })
            .min()
            .filter(|(distance, name)| {
                *distance <= (name.len() / 3).max(2) && *distance < name.len()
            });
        let hint = nearest
            .map(|(_, name)| format!(" Did you mean `{name}`?"))
            .unwrap_or_default();
        let names: Vec<String> = allowed().map(|name| format!("`{name}`")).collect();
        let list = match names.as_slice() {
            [] => "This endpoint takes no parameters.".to_owned(),
            _ => format!("Allowed are: {}.", names.join(", ")),
        };
        let shown: String = unknown.chars().take(100).collect();
        let detail = format!("Unknown parameter `{shown}`.{hint} {list}");
        Err(BadRequest {
            code: Code::UnknownParameter,
            detail,
        })
    }

    fn value(&self, parameter: &Parameter) -> Result<Option<Value>, BadRequest> {
        let name = parameter.name;
        let text = match parameter.form {
            ParameterForm::Cursor | ParameterForm::SyncToken => self
                .raw(name)?
                .map(|raw| percent_decode(raw, true).unwrap_or_default()),
            _ => self.text(name)?,
        };
        let text = match (text, parameter.absent) {
            (Some(text), _) => text,
            (None, WhenAbsent::Optional) => return Ok(None),
            (None, WhenAbsent::Default(text)) => Cow::Borrowed(text),
            (None, WhenAbsent::Required) => {
                return Err(BadRequest::parameter(
                    name,
                    format!("is required; send {}", parameter.form.words()),
                ));
            }
        };
        parameter.read(&text).map(Some)
    }

    /// Returns a decoded value, which must be nonempty text.
    fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, BadRequest> {
        let Some(raw) = self.raw(name)? else {
            return Ok(None);
        };
        if raw.is_empty() {
            return Err(BadRequest::parameter(
                name,
                "is empty; give a value or leave the parameter out",
            ));
        }
        let text = percent_decode(raw, true).filter(|text| !text.contains('\0'));
        text.map(Some)
            .ok_or_else(|| BadRequest::parameter(name, ENCODING_RULE))
    }

    /// Returns a value as it was sent.
    fn raw(&self, name: &str) -> Result<Option<&'a str>, BadRequest> {
        let mut values = self
            .given
            .iter()
            .filter(|(given, _)| given == name)
            .map(|(_, value)| *value);
        let first = values.next();
        match values.next() {
            Some(_) => Err(BadRequest::parameter(
                name,
                "is given more than once; give it once",
            )),
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
                let [high, low, after @ ..] = rest else {
                    return None;
                };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CONTRACT;
    use crate::contract::parameters::{ChangesParameters, ExportParameters, ListParameters};

    fn query<'a>(path: &str, text: &'a str) -> Query<'a> {
        Query::of(CONTRACT.route(path).unwrap().endpoint, Some(text))
    }

    #[test]
    fn escapes_are_decoded() {
        // A text, and its decoded form in a path and in a query.
        let cases = outcomes![
            "" => (Some(""), Some(""));
            "plain" => (Some("plain"), Some("plain"));
            "a+b" => (Some("a+b"), Some("a b"));
            "a%2Bb" "a%2bb" => (Some("a+b"), Some("a+b"));
            "%41%7A" => (Some("Az"), Some("Az"));
            "%C3%A9" => (Some("é"), Some("é"));
            "é%20" => (Some("é "), Some("é "));
            "%2541" => (Some("%41"), Some("%41"));
            "%00" => (Some("\0"), Some("\0"));
            "%FF" "%C3" "%" "%4" "ab%" "%4g" "%g4" "%+1" "% 1" "+%" => (None, None);
        ];
        for (text, (in_path, in_query)) in cases {
            assert_eq!(
                percent_decode(text, false).as_deref(),
                in_path,
                "{text:?} in a path"
            );
            assert_eq!(
                percent_decode(text, true).as_deref(),
                in_query,
                "{text:?} in a query"
            );
        }
    }

    #[test]
    fn a_parameter_is_given_once_however_it_is_written() {
        let parse = |text| {
            query("/v1/conferences", text)
                .parse::<ListParameters>()
                .map(|read| read.limit)
        };
        for (text, expected) in [
            ("", 100),
            ("limit=7", 7),
            ("%6cimit=7", 7),
            ("limit=%37", 7),
            ("&limit=7&&", 7),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        let twice = words![
            "limit=7&limit=7" "limit=7&limit=8" "limit=7&limit=" "limit&limit=7" "limit=7&%6cimit=8"
            "q=ab&limit=7&q=ab" "cursor=x&cursor=x" "country=a&country=b&country=c"
        ];
        for text in twice {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code, Code::InvalidParameter, "{text}");
            assert!(
                error
                    .detail
                    .ends_with("is given more than once; give it once."),
                "{text}: {}",
                error.detail
            );
        }
    }

    #[test]
    fn the_first_unknown_parameter_is_named_with_the_nearest_known_one() {
        let cases = cases![
            "contry=x", "`contry`. Did you mean `country`? Allowed are: `limit`, ";
            "Country=x", "`Country`. Did you mean `country`? ";
            "coun=x", "`coun`. Allowed";
            "contr=x", "`contr`. Did you mean `country`? ";
            "conrt=x", "`conrt`. Allowed";
            "since=x", "`since`. Allowed";
            "p=x", "`p`. Allowed";
            "x", "`x`. Allowed";
            "=x", "``. Allowed";
            "a%zz=x", "`a%zz`. Allowed";
            "a+b=x", "`a b`. Allowed";
            "limit=0&yaer=1", "`yaer`. Did you mean `year`? ";
            "yaer=1&contry=x", "`yaer`. ";
        ];
        for (text, expected) in cases {
            let error = query("/v1/conferences", text)
                .parse::<ListParameters>()
                .unwrap_err();
            assert_eq!(error.code, Code::UnknownParameter, "{text}");
            assert!(
                error
                    .detail
                    .starts_with(&format!("Unknown parameter {expected}")),
                "{text}: {}",
                error.detail
            );
        }
        let long = "é".repeat(101);
        let error = query("/v1/conferences", &long)
            .parse::<ListParameters>()
            .unwrap_err();
        assert!(
            error.detail.contains(&format!("`{}`.", "é".repeat(100))),
            "{}",
            error.detail
        );
        let error = query("/v1/status", "x=1")
            .parse::<serde::de::IgnoredAny>()
            .unwrap_err();
        assert_eq!(
            error.detail,
            "Unknown parameter `x`. This endpoint takes no parameters."
        );
    }

    #[test]
    fn numbers_have_bounds_on_both_sides() {
        type Read = fn(&Query<'_>) -> Option<u64>;
        let of_list: Read = |query| {
            query
                .parse::<ListParameters>()
                .ok()
                .map(|read| read.limit.into())
        };
        let of_feed: Read = |query| {
            query
                .parse::<ChangesParameters>()
                .ok()
                .map(|read| read.limit.into())
        };
        let wait: Read = |query| {
            query
                .parse::<ChangesParameters>()
                .ok()
                .map(|read| read.wait.into())
        };
        let year: Read = |query| {
            query
                .parse::<ListParameters>()
                .ok()
                .and_then(|read| read.filters.get("year")?.as_u64())
        };
        let cases = cases![
            "/v1/conferences", "limit", of_list, 1, 500, Some(100);
            "/v1/journals", "limit", of_list, 1, 500, Some(100);
            "/v1/conferences/changes", "limit", of_feed, 1, 1000, Some(500);
            "/v1/journals/changes", "limit", of_feed, 1, 1000, Some(500);
            "/v1/journals/changes", "wait", wait, 0, 60, Some(0);
            "/v1/conferences", "year", year, 1900, 2100, None;
        ];
        for (path, name, read, min, max, absent) in cases {
            let given = |value: String| read(&query(path, &format!("{name}={value}")));
            assert_eq!(read(&query(path, "")), absent, "{path} without {name}");
            for value in [min, min + 1, max - 1, max] {
                let expected = Some(value);
                assert_eq!(given(value.to_string()), expected, "{path} {name}={value}");
                let found = given(format!("00{value}"));
                assert_eq!(found, Some(value), "{path} {name}=00{value}");
            }
            for value in [
                (max + 1).to_string(),
                format!("-{min}"),
                format!("%2B{max}"),
                format!("{max}.0"),
                "0x1".into(),
            ] {
                assert_eq!(given(value.clone()), None, "{path} {name}={value}");
            }
            if let Some(below) = min.checked_sub(1) {
                assert_eq!(given(below.to_string()), None, "{path} {name}={below}");
            }
        }
        let format = |text| {
            query("/v1/exports/journals", text)
                .parse::<ExportParameters>()
                .is_ok()
        };
        assert!(format("") && format("format=csv") && format("format=jsonl"));
        assert!(!format("format=CSV") && !format("format=cs") && !format("format=csv+"));
    }
}
