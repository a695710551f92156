//! Who calls: the key in `Authorization: Bearer` or `X-API-Key` (the contract, "Authentication").

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::problem::{Code, Problem};
use super::request::Request;
use crate::model::key::{ApiKey, KeyStatus};
use crate::model::{KeyHash, KeyRecord};
use crate::store::Snapshot;

/// A usable key.
#[derive(Clone, Debug, PartialEq)]
pub struct UsableKey {
    /// The hash of its text.
    pub hash: KeyHash,
    /// Its row.
    pub record: Arc<KeyRecord>,
}

/// The key of a request, in the form that it was sent in.
#[derive(Debug, PartialEq, Eq)]
enum Sent<'h> {
    Nothing,
    One(&'h [u8]),
    Different,
}

fn sent_key(headers: &HeaderMap) -> Sent<'_> {
    let bearer = headers.get_all(AUTHORIZATION).iter().filter_map(|value| bearer_token(value.as_bytes()));
    let own = headers.get_all("x-api-key").iter().map(|value| value.as_bytes().trim_ascii());
    let mut keys = bearer.chain(own).filter(|key| !key.is_empty());
    let Some(first) = keys.next() else { return Sent::Nothing };
    if keys.any(|other| other != first) { Sent::Different } else { Sent::One(first) }
}

/// The token of a Bearer header; any other scheme counts as no key.
fn bearer_token(value: &[u8]) -> Option<&[u8]> {
    let value = value.trim_ascii();
    let (scheme, token) = value.split_at_checked("Bearer".len())?;
    let separated = token.first().is_none_or(u8::is_ascii_whitespace);
    (separated && scheme.eq_ignore_ascii_case(b"Bearer")).then(|| token.trim_ascii())
}

/// That no key was sent. An `Authorization` of another form is told apart, since its sender believes to have sent one.
fn missing_key(headers: &HeaderMap) -> Problem {
    let Some(sent) = headers.get(AUTHORIZATION).map(|value| value.as_bytes().trim_ascii()) else {
        return Code::MissingApiKey.into();
    };
    let end = sent.iter().position(u8::is_ascii_whitespace).unwrap_or(sent.len());
    let scheme = &sent[..end];
    let what = if scheme.starts_with(b"mfk_") {
        "`Authorization` holds a key without its scheme"
    } else if scheme.eq_ignore_ascii_case(b"Bearer") {
        "`Authorization: Bearer` came without a key"
    } else if scheme.eq_ignore_ascii_case(b"Basic") {
        "`Authorization: Basic` is not taken"
    } else {
        "`Authorization` is of another form than the service takes"
    };
    Problem::new(
        Code::MissingApiKey,
        format!("{what}. Send the key as `Authorization: Bearer mfk_...` or `X-API-Key: mfk_...`."),
    )
}

/// Whether what was sent has the form of a key, whosever it is.
pub(super) fn is_shaped(request: &Request) -> bool {
    match sent_key(&request.headers) {
        Sent::One(text) => std::str::from_utf8(text).is_ok_and(|text| ApiKey::parse(text).is_ok()),
        Sent::Nothing | Sent::Different => false,
    }
}

/// Finds the usable key of a request.
///
/// # Errors
/// The 401 of the contract. All but `missing_api_key` are of a key that was sent and cannot be used.
pub fn authenticate(request: &Request, snapshot: &Snapshot) -> Result<UsableKey, Problem> {
    let text = match sent_key(&request.headers) {
        Sent::Nothing => return Err(missing_key(&request.headers)),
        Sent::Different => {
            let detail = "Two different API keys were sent. Send one key, in one header.";
            return Err(Problem::new(Code::InvalidApiKey, detail));
        }
        Sent::One(text) => text,
    };
    let hash = KeyHash::of(text);
    let record = snapshot.find_key(&hash).ok_or(Code::InvalidApiKey)?;
    match record.status_after(request.wall, snapshot.commit().time) {
        KeyStatus::Active | KeyStatus::Replaced => Ok(UsableKey { hash, record: Arc::clone(record) }),
        KeyStatus::Revoked => Err(Code::RevokedApiKey.into()),
        KeyStatus::Expired => Err(Code::ExpiredApiKey.into()),
    }
}

/// Refuses a key used from an address that is not in its list.
///
/// # Errors
/// `ip_not_allowed`, which names the address as the server sees it.
pub fn check_address(request: &Request, key: &KeyRecord) -> Result<(), Problem> {
    let address = request.address;
    if key.allowed_ips.is_empty() || key.allowed_ips.iter().any(|network| network.contains(&address)) {
        return Ok(());
    }
    Err(Problem::new(
        Code::IpNotAllowed,
        format!(
            "The API key may not be used from the address {address}. Use an address of the key's list, or ask the operator to add this one."
        ),
    ))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_key_in_another_form_is_told() {
        let cases = [
            (None, "No API key was sent. "),
            (Some("mfk_abc"), "holds a key without its scheme. Send the key as `Authorization: Bearer mfk_...`"),
            (Some("Basic dXNlcjo="), "`Authorization: Basic` is not taken. Send the key as"),
            (Some("Bearer"), "came without a key"),
            (Some("Token mfk_abc"), "of another form"),
            (Some(""), "of another form"),
        ];
        for (sent, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.extend(sent.map(|value| (AUTHORIZATION, HeaderValue::from_static(value))));
            let problem = missing_key(&headers);
            assert_eq!(problem.code, Code::MissingApiKey, "{sent:?}");
            assert!(
                problem.detail.contains(expected) && !problem.detail.contains("abc"),
                "{sent:?}: {}",
                problem.detail
            );
        }
    }

    #[test]
    fn keys_are_found_in_both_headers() {
        let one = |text: &'static str| Sent::One(text.as_bytes());
        let cases: [(&[(&str, &str)], Sent); 14] = [
            (&[], Sent::Nothing),
            (&[("authorization", "Bearer k")], one("k")),
            (&[("authorization", "bearer   k ")], one("k")),
            (&[("authorization", "BEARER\tk")], one("k")),
            (&[("x-api-key", " k ")], one("k")),
            (&[("authorization", "Bearer k"), ("x-api-key", "k")], one("k")),
            (&[("authorization", "Bearer k"), ("x-api-key", "l")], Sent::Different),
            (&[("x-api-key", "k"), ("x-api-key", "l")], Sent::Different),
            (&[("authorization", "Basic k")], Sent::Nothing),
            (&[("authorization", "Bearerk")], Sent::Nothing),
            (&[("authorization", "Bearer")], Sent::Nothing),
            (&[("authorization", "Basic k"), ("x-api-key", "l")], one("l")),
            (&[("authorization", "Bearer "), ("x-api-key", "l")], one("l")),
            (&[("x-api-key", "")], Sent::Nothing),
        ];
        for (headers, expected) in cases {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, HeaderValue::from_str(value).unwrap());
            }
            assert_eq!(sent_key(&map), expected, "{headers:?}");
        }
    }
}
