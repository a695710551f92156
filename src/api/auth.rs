//! Authentication: the key in `Authorization: Bearer` or `X-API-Key` (the contract, "Authentication"), and the
//! authenticated caller.

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::answers::Answer;
use super::problem::{Code, Problem};
use crate::model::key::ApiKey;
use crate::model::{Dataset, KeyHash, KeyRecord, KeyStatus, License, Timestamp, Witness};
use crate::store::Snapshot;
use crate::token::Sealer;
use crate::view::View;

/// A key of the database.
#[derive(Clone, PartialEq)]
pub struct KnownKey {
    pub hash: KeyHash,
    pub record: Arc<KeyRecord>,
}

/// The key in the headers. Returns a 401 if there is none, or if there are different ones.
fn sent_key(headers: &HeaderMap) -> Result<&[u8], Problem> {
    let bearer = headers
        .get_all(AUTHORIZATION)
        .iter()
        .filter_map(|value| bearer_token(value.as_bytes()));
    let own = headers
        .get_all("x-api-key")
        .iter()
        .map(|value| value.as_bytes().trim_ascii());
    let mut keys = bearer.chain(own).filter(|key| !key.is_empty());
    let first = keys.next().ok_or_else(|| missing_key(headers))?;
    if keys.any(|other| other != first) {
        let detail = "Two different API keys were sent. Send one key, in one header.";
        return Err(Problem::new(Code::InvalidApiKey, detail));
    }
    Ok(first)
}

/// The token of a Bearer header; `None` for other schemes.
fn bearer_token(value: &[u8]) -> Option<&[u8]> {
    let value = value.trim_ascii();
    let (scheme, token) = value.split_at_checked("Bearer".len())?;
    let separated = token.first().is_none_or(u8::is_ascii_whitespace);
    (separated && scheme.eq_ignore_ascii_case(b"Bearer")).then(|| token.trim_ascii())
}

/// The problem for a request without a key. If there is an `Authorization` header of another form, the detail says so.
fn missing_key(headers: &HeaderMap) -> Problem {
    if !headers.contains_key(AUTHORIZATION) {
        return Code::MissingApiKey.into();
    }
    Problem::new(
        Code::MissingApiKey,
        "`Authorization` contains no key with the scheme `Bearer`. Send the key as `Authorization: Bearer mfk_...` or \
         `X-API-Key: mfk_...`.",
    )
}

/// Whether a request has one key of a valid form, even if it is unknown.
pub(super) fn has_well_formed_key(headers: &HeaderMap) -> bool {
    let text = sent_key(headers)
        .ok()
        .and_then(|key| str::from_utf8(key).ok());
    text.is_some_and(|text| ApiKey::parse(text).is_some())
}

/// Finds the key of a request, which may be unusable. Returns a 401 otherwise.
pub fn find_key(headers: &HeaderMap, snapshot: &Snapshot) -> Result<KnownKey, Problem> {
    let hash = KeyHash::of(sent_key(headers)?);
    let record = Arc::clone(snapshot.find_key(&hash).ok_or(Code::InvalidApiKey)?);
    Ok(KnownKey { hash, record })
}

/// Returns a 401 for a key that is revoked or expired.
pub fn check_status(
    key: KnownKey,
    at: Timestamp,
    snapshot: &Snapshot,
) -> Result<KnownKey, Problem> {
    match key.record.status_after(at, snapshot.commit().time) {
        KeyStatus::Active | KeyStatus::Replaced => Ok(key),
        KeyStatus::Revoked => Err(Code::RevokedApiKey.into()),
        KeyStatus::Expired => Err(Code::ExpiredApiKey.into()),
    }
}

/// Rejects a key that may not be used from the request's address.
pub fn check_address(address: IpAddr, key: &KeyRecord) -> Result<(), Problem> {
    if key.allowed_ips.is_empty()
        || key
            .allowed_ips
            .iter()
            .any(|network| network.contains(&address))
    {
        return Ok(());
    }
    Err(Problem::new(
        Code::IpNotAllowed,
        format!(
            "The API key may not be used from the address {address}. Use an address of the key's list, or ask the operator to add this one."
        ),
    ))
}

/// The snapshot and license of a request with a usable key.
#[derive(Debug)]
pub(super) struct Caller {
    pub snapshot: Arc<Snapshot>,
    pub license: Arc<License>,
}

impl Caller {
    /// Whether an answer for the caller's license is still current. It must not read the disk: the cache calls it under
    /// its lock.
    pub fn is_current(&self, answer: &Answer) -> bool {
        let Some((dataset, witness)) = &answer.depends_on else {
            return true;
        };
        self.has_witness(*dataset, witness)
    }

    /// Whether a witness is the current one. It does not read the disk.
    pub fn has_witness(&self, dataset: Dataset, witness: &Witness) -> bool {
        let view = View::open(&self.snapshot, &self.license, dataset).ok();
        view.and_then(|view| view.known_witness()).as_ref() == Some(witness)
    }

    /// The sealer of tokens and cursors.
    pub fn sealer(&self) -> Sealer {
        Sealer::new(self.snapshot.secret())
    }

    /// The caller's view of a dataset. Returns a 403 if it is not licensed.
    pub fn view(&self, dataset: Dataset) -> Result<View<'_>, Problem> {
        View::open(&self.snapshot, &self.license, dataset).map_err(|_| {
            Problem::new(
                Code::DatasetNotLicensed,
                format!("The license of this API key does not include the dataset `{dataset}`. Ask the operator for a license that does."),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_key_in_another_form_is_explained() {
        let cases = cases![
            None, "No API key was sent. ";
            Some("mfk_abc"), "no key with the scheme `Bearer`. Send the key as `Authorization: Bearer mfk_...`";
            Some("Basic dXNlcjo="), "no key with the scheme `Bearer`";
            Some("Bearer"), "no key with the scheme `Bearer`";
            Some(""), "no key with the scheme `Bearer`";
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
        let one = |text: &'static str| Ok(text.as_bytes());
        let none = Err(Code::MissingApiKey);
        let different = Err(Code::InvalidApiKey);
        type Headers = [(&'static str, &'static str)];
        let cases: [(&Headers, Result<&[u8], Code>); 20] = cases![
            &[], none;
            &[("authorization", "Bearer k")], one("k");
            &[("authorization", "bearer   k ")], one("k");
            &[("authorization", "BEARER\tk")], one("k");
            &[("x-api-key", " k ")], one("k");
            &[("authorization", "Bearer k"), ("x-api-key", "k")], one("k");
            &[("authorization", "Bearer k"), ("x-api-key", "l")], different;
            &[("x-api-key", "k"), ("x-api-key", "l")], different;
            &[("x-api-key", "k"), ("x-api-key", "k")], one("k");
            &[("authorization", "Bearer k"), ("authorization", "Bearer l")], different;
            &[("x-api-key", "Bearer k")], one("Bearer k");
            &[("x-api-key", "k,k")], one("k,k");
            &[("api-key", "k")], none;
            &[("authorization", "k")], none;
            &[("authorization", "Basic k")], none;
            &[("authorization", "Bearerk")], none;
            &[("authorization", "Bearer")], none;
            &[("authorization", "Basic k"), ("x-api-key", "l")], one("l");
            &[("authorization", "Bearer "), ("x-api-key", "l")], one("l");
            &[("x-api-key", "")], none;
        ];
        for (headers, expected) in cases {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, HeaderValue::from_str(value).unwrap());
            }
            let found = sent_key(&map).map_err(|problem| problem.code);
            assert_eq!(found, expected, "{headers:?}");
        }
    }
}
