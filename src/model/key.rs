//! API keys: `mfk_`, 32 random base62 characters, 6 characters of checksum. Only a hash is ever stored.
//! And the networks of addresses from which callers come.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

use super::{LicenseId, Timestamp};

const PREFIX: &str = "mfk_";
const RANDOM_CHARS: usize = 32;
const CHECKSUM_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A key in plain text. It has no `Display` and an opaque `Debug`, to keep it out of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Returns a new random key.
    pub fn generate() -> Result<ApiKey, getrandom::Error> {
        let random = random_base62(RANDOM_CHARS)?;
        let checksum = checksum(&random);
        Ok(ApiKey(format!("{PREFIX}{random}{checksum}")))
    }

    /// Parses a key and verifies its checksum. `None` if the text does not have the form of a key.
    pub fn parse(text: &str) -> Option<ApiKey> {
        let body = text.strip_prefix(PREFIX)?;
        let shaped = body.len() == RANDOM_CHARS + CHECKSUM_CHARS
            && body.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (shaped && checksum(&body[..RANDOM_CHARS]) == body[RANDOM_CHARS..])
            .then(|| ApiKey(text.to_owned()))
    }

    /// Returns the hash to store or look up. 190 random bits need no salt and no slow hash.
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(self.0.as_bytes())
    }

    /// Returns the plain text, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// The BLAKE3 hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    /// Returns the hash of a text that may be a key.
    pub fn of(text: &[u8]) -> KeyHash {
        KeyHash(*blake3::hash(text).as_bytes())
    }
}

/// A stored key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRecord {
    /// The public id, for `key list`, `key revoke` and logs.
    pub id: String,
    /// The operator's note.
    pub label: Option<String>,
    /// The license that it gives access to.
    pub license: LicenseId,
    /// The name of that license, kept because the license can be removed.
    pub license_name: String,
    /// The time of the commit that created it.
    pub created_at: Timestamp,
    /// The time from which the key gets `expired_api_key`.
    pub expires_at: Option<Timestamp>,
    /// The networks that may use the key; empty for all.
    pub allowed_ips: Vec<IpNet>,
    /// The time from which the key gets `revoked_api_key`. For a replaced key that is the end of the overlap.
    pub revoked_at: Option<Timestamp>,
    /// The id of the key that replaced it.
    pub replaced_by: Option<String>,
}

/// The status of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum KeyStatus {
    /// Usable.
    Active,
    /// Usable until the overlap with its replacement ends.
    Replaced,
    /// Revoked, or replaced and past the overlap.
    Revoked,
    /// Past its expiry.
    Expired,
}

impl KeyStatus {
    /// Whether the key can be used.
    pub const fn is_usable(self) -> bool {
        matches!(self, KeyStatus::Active | KeyStatus::Replaced)
    }

    /// Returns the word in `key list`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl KeyRecord {
    /// Returns the status at `now`, after a commit at `committed`. Revoked takes precedence over expired. A revocation
    /// has the time of its commit. So it also holds if the clock was set back since.
    pub fn status_after(&self, now: Timestamp, committed: Timestamp) -> KeyStatus {
        match (self.revoked_at, self.expires_at) {
            (Some(revoked), _) if revoked <= now.max(committed) => KeyStatus::Revoked,
            (_, Some(expires)) if expires <= now => KeyStatus::Expired,
            (Some(_), _) => KeyStatus::Replaced,
            (None, _) => KeyStatus::Active,
        }
    }
}

/// Returns a new public id for a key. It is short and not secret.
pub fn new_key_id() -> Result<String, getrandom::Error> {
    Ok(format!("key_{}", random_base62(10)?))
}

/// Returns random base62 characters, uniformly distributed.
fn random_base62(length: usize) -> Result<String, getrandom::Error> {
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let mut bytes = [0_u8; 64];
        getrandom::fill(&mut bytes)?;
        // 248 is the largest multiple of 62 below 256. Larger bytes would favor the first characters.
        let fair = bytes
            .iter()
            .filter(|byte| **byte < 248)
            .take(length - text.len());
        text.extend(fair.map(|byte| char::from(BASE62[usize::from(byte % 62)])));
    }
    Ok(text)
}

fn checksum(random: &str) -> String {
    let hash = blake3::derive_key("medfeed 2026-11 api key checksum", random.as_bytes());
    let mut number = u64::from_le_bytes(hash[..8].try_into().unwrap_or_default());
    let mut text = String::with_capacity(CHECKSUM_CHARS);
    for _ in 0..CHECKSUM_CHARS {
        let digit = usize::try_from(number % 62).unwrap_or_default();
        number /= 62;
        text.push(char::from(BASE62[digit]));
    }
    text
}

/// Parses a CIDR, or an address as a CIDR of one address. IPv4 addresses mapped to IPv6 become IPv4.
///
/// # Errors
/// A remedy: what to write instead.
pub fn parse_network(text: &str) -> Result<IpNet, String> {
    let network = match text.parse::<IpNet>() {
        Ok(network) => network,
        Err(_) => IpNet::from(text.parse::<IpAddr>().map_err(|_| {
            "write an address or a CIDR: 192.0.2.7, 192.0.2.0/24, 2001:db8::/32".to_owned()
        })?),
    };
    let IpNet::V6(v6) = network else {
        return Ok(network.trunc());
    };
    let Some(v4) = v6.addr().to_ipv4_mapped() else {
        return Ok(network.trunc());
    };
    let net = v6
        .prefix_len()
        .checked_sub(96)
        .and_then(|prefix| Ipv4Net::new(v4, prefix).ok());
    net.map(|net| IpNet::V4(net.trunc())).ok_or_else(|| {
        "a CIDR of mapped IPv4 addresses must be /96 or longer; write it as IPv4".to_owned()
    })
}

/// Returns the address under which limits count a caller. All addresses of an IPv6 /64 count as one.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_form() {
        let random = "0123456789ABCDEFGHIJKLMNOPQRSTUV";
        let right = format!("mfk_{random}{}", checksum(random));
        assert!(ApiKey::parse(&right).is_some());
        for wrong in [
            right.to_ascii_lowercase(),
            format!("{right}0"),
            right[..right.len() - 1].to_owned(),
            format!(" {right}"),
            right.replacen("mfk_", "mfk-", 1),
            right.replacen("mfk_", "", 1),
            format!(
                "mfk_{}é{}",
                &random[..30],
                checksum(&format!("{}é", &random[..30]))
            ),
            String::new(),
        ] {
            assert!(ApiKey::parse(&wrong).is_none(), "{wrong}");
        }
        let (one, other) = (ApiKey::generate().unwrap(), ApiKey::generate().unwrap());
        assert!(one != other);
        assert!(one.hash() != other.hash());
        assert!(one.hash() == ApiKey::parse(one.reveal()).unwrap().hash());
        assert_eq!(new_key_id().unwrap().len(), 14);
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let key = ApiKey::generate().unwrap();
        assert!(ApiKey::parse(key.reveal()).is_some());
        for at in 0..key.reveal().len() {
            let mut bytes = key.reveal().as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(ApiKey::parse(&changed).is_none(), "{at}");
        }
        assert_eq!(format!("{key:?}"), "ApiKey(..)");
    }

    #[test]
    fn the_status_of_a_key_changes_at_the_second() {
        use KeyStatus::{Active, Expired, Replaced, Revoked};
        let key = |revoked: Option<i64>, expires: Option<i64>| KeyRecord {
            id: "key_1".to_owned(),
            label: None,
            license: LicenseId(1),
            license_name: "all".to_owned(),
            created_at: Timestamp::from_unix_s(0),
            expires_at: expires.map(Timestamp::from_unix_s),
            allowed_ips: Vec::new(),
            revoked_at: revoked.map(Timestamp::from_unix_s),
            replaced_by: None,
        };
        let cases = [
            // revoked and expiring at, now, last commit
            (None, None, 100, 100, Active),
            (None, Some(101), 100, 100, Active),
            (None, Some(100), 100, 100, Expired),
            (None, Some(99), 100, 100, Expired),
            // A commit of a clock that was ahead ends no key.
            (None, Some(150), 100, 200, Active),
            (Some(101), None, 100, 100, Replaced),
            (Some(100), None, 100, 100, Revoked),
            (Some(99), None, 100, 100, Revoked),
            (Some(150), None, 100, 150, Revoked),
            (Some(150), None, 100, 149, Replaced),
            (Some(150), None, 150, 100, Revoked),
            (Some(101), Some(100), 100, 100, Expired),
            (Some(101), Some(101), 100, 100, Replaced),
            (None, Some(100), 40, 100, Active),
            (Some(100), Some(100), 100, 100, Revoked),
            (Some(100), Some(99), 100, 100, Revoked),
        ];
        for (revoked, expires, now, committed, expected) in cases {
            let status = key(revoked, expires).status_after(
                Timestamp::from_unix_s(now),
                Timestamp::from_unix_s(committed),
            );
            assert_eq!(
                status, expected,
                "{revoked:?} {expires:?} at {now} after {committed}"
            );
            assert_eq!(status.is_usable(), matches!(expected, Active | Replaced));
        }
    }

    #[test]
    fn networks_are_read_without_host_bits() {
        let cases = outcomes![
            "192.0.2.7" "::ffff:192.0.2.7" "::ffff:192.0.2.7/128" => Ok("192.0.2.7/32");
            "192.0.2.7/24" "::ffff:192.0.2.7/120" => Ok("192.0.2.0/24");
            "192.0.2.255/31" => Ok("192.0.2.254/31");
            "2001:db8:1::9/32" => Ok("2001:db8::/32");
            "2001:db8::9" => Ok("2001:db8::9/128");
            "::ffff:192.0.2.7/96" => Ok("0.0.0.0/0");
            "::ffff:192.0.2.7/95" => Err("must be /96 or longer");
            "192.0.2.7/33" "192.0.2" "example.org" "" => Err("write an address or a CIDR");
        ];
        for (text, expected) in cases {
            match (parse_network(text), expected) {
                (Ok(network), Ok(expected)) => assert_eq!(network.to_string(), expected, "{text}"),
                (Err(message), Err(expected)) => {
                    assert!(message.contains(expected), "{text}: {message}")
                }
                (network, expected) => panic!("{text}: {network:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn an_ipv6_caller_is_its_network() {
        let cases = [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:0:1::7", "2001:db8:0:1::"),
            ("2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::"),
            ("2001:db8:0:2::7", "2001:db8:0:2::"),
            ("::1", "::"),
        ];
        for (address, network) in cases {
            let found = network_of(address.parse().unwrap()).to_string();
            assert_eq!(found, network, "{address}");
        }
    }
}
