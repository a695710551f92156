//! Query parameters: decoded once, each known, each given once, each of its form.

use std::str::FromStr;

use super::problem::{Code, Problem};

/// The parameters of a request, not yet looked at.
#[derive(Debug)]
pub struct Params<'a> {
    given: Vec<(String, &'a str)>,
}

/// What was wrong with a parameter's text before its meaning was looked at.
const ENCODING_RULE: &str = "is not valid percent-encoded UTF-8 text without NUL; encode the value as UTF-8 and escape \
                             what is not a letter or digit";

impl<'a> Params<'a> {
    /// Splits the query of a request.
    pub fn of(query: Option<&'a str>) -> Params<'a> {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let given = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // A name that does not decode is shown as it came, and is unknown to every endpoint.
            (percent_decode(name, true).unwrap_or_else(|| name.to_owned()), value)
        });
        Params { given: given.collect() }
    }

    /// Refuses parameters that the endpoint does not take.
    ///
    /// # Errors
    /// `unknown_parameter`, with the nearest name and all that are allowed.
    pub fn allow(&self, allowed: &[&str]) -> Result<(), Problem> {
        let Some((unknown, _)) = self.given.iter().find(|(name, _)| !allowed.contains(&name.as_str())) else {
            return Ok(());
        };
        let nearest = allowed
            .iter()
            .map(|name| (strsim::damerau_levenshtein(&unknown.to_lowercase(), name), name))
            .min()
            .filter(|(distance, name)| *distance <= (name.len() / 3).max(2) && *distance < name.len());
        let hint = nearest.map(|(_, name)| format!(" Did you mean `{name}`?")).unwrap_or_default();
        let list = if allowed.is_empty() {
            "This endpoint takes no parameters.".to_owned()
        } else {
            format!("Allowed are: {}.", allowed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
        };
        let shown: String = unknown.chars().take(100).collect();
        Err(Problem::new(Code::UnknownParameter, format!("Unknown parameter `{shown}`.{hint} {list}")))
    }

    /// The value of a parameter as sent.
    fn raw(&self, name: &str) -> Result<Option<&'a str>, Problem> {
        let mut values = self.given.iter().filter(|(given, _)| given == name).map(|(_, value)| *value);
        let first = values.next();
        if values.next().is_some() {
            return Err(Problem::invalid_parameter(name, "is given more than once; give it once"));
        }
        Ok(first)
    }

    /// The value of a parameter, decoded.
    ///
    /// # Errors
    /// `invalid_parameter` when it is given twice, empty, or no text.
    pub fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        let Some(raw) = self.raw(name)? else { return Ok(None) };
        if raw.is_empty() {
            return Err(Problem::invalid_parameter(name, "is empty; give a value or leave the parameter out"));
        }
        match percent_decode(raw, true) {
            Some(text) if !text.contains('\0') => Ok(Some(text)),
            _ => Err(Problem::invalid_parameter(name, ENCODING_RULE)),
        }
    }

    /// The value of a `cursor` or `since`: whatever is wrong with a single one, it is no value of ours.
    ///
    /// # Errors
    /// `invalid_parameter` when it is given twice.
    pub fn opaque(&self, name: &str) -> Result<Option<String>, Problem> {
        Ok(self.raw(name)?.map(|raw| percent_decode(raw, true).unwrap_or_default()))
    }

    /// The value of a parameter, read.
    ///
    /// # Errors
    /// `invalid_parameter` with the given rule when it cannot be read.
    pub fn parsed<T: FromStr>(&self, name: &str, rule: &str) -> Result<Option<T>, Problem> {
        self.read(name, |text| text.parse().map_err(|_| rule.to_owned()))
    }

    /// The value of a parameter, read by a function that returns the broken rule.
    ///
    /// # Errors
    /// `invalid_parameter` with that rule.
    pub fn read<T>(&self, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        read(&text).map(Some).map_err(|rule| Problem::invalid_parameter(name, rule))
    }

    /// A whole number of a range.
    ///
    /// # Errors
    /// `invalid_parameter` when it is none.
    pub fn whole(&self, name: &str, least: u16, most: u16) -> Result<Option<u16>, Problem> {
        self.read(name, |text| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.then(|| text.parse::<u16>().ok()).flatten();
            number
                .filter(|number| (least..=most).contains(number))
                .ok_or_else(|| format!("must be a whole number from {least} to {most}"))
        })
    }
}

/// Decodes percent-escapes, and `+` as a blank where `form` says so. `None` for a broken escape or invalid UTF-8.
pub fn percent_decode(text: &str, form: bool) -> Option<String> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(text.to_owned());
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
    String::from_utf8(bytes).ok()
}
