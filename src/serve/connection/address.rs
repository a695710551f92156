//! The caller's address: the peer's or, behind trusted proxies, the rightmost untrusted address in the configured
//! header. The test cases are in `fixtures/addresses.txt`.

use std::net::IpAddr;

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

/// The proxies whose header is trusted.
#[derive(Default)]
pub struct TrustedProxies {
    /// Their networks.
    pub networks: Vec<IpNet>,
    /// Whether they name the caller in `Forwarded` (RFC 7239), not in `X-Forwarded-For`. The other header is ignored,
    /// since a caller can send it.
    pub use_forwarded: bool,
}

impl TrustedProxies {
    /// Whether an address is a trusted proxy's.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }

    /// The caller's address. IPv4 mapped to IPv6 becomes IPv4.
    pub fn caller(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut caller = peer.to_canonical();
        if !self.trusts(caller) {
            return caller;
        }
        let (name, read): (_, fn(&[u8]) -> _) = match self.use_forwarded {
            true => (FORWARDED, read_element),
            false => (HeaderName::from_static("x-forwarded-for"), read_address),
        };
        let lines = headers.get_all(name).into_iter().rev();
        for hop in lines.flat_map(|line| split_from_right(line.as_bytes(), b',')) {
            // Anything else than an address ends the chain: the last known hop is the proxy that wrote it. Anybody may
            // have written the entries to its left.
            let Some(address) = read(trim(hop)) else {
                return caller;
            };
            caller = address;
            if !self.trusts(caller) {
                return caller;
            }
        }
        caller
    }
}

/// Splits at separators outside quotes, and yields the last part first. It reads from the right, since a caller may
/// send an open quote that would hide the part that proxies add: `for=ALLOWED;x=", for=REAL`.
fn split_from_right(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut left = Some(text);
    std::iter::from_fn(move || {
        let text = left?;
        let mut quoted = false;
        for (at, byte) in text.iter().enumerate().rev() {
            if *byte == b'"' && !(quoted && is_escaped(text, at)) {
                quoted = !quoted;
            } else if *byte == separator && !quoted {
                left = Some(&text[..at]);
                return Some(&text[at + 1..]);
            }
        }
        left = None;
        Some(text)
    })
}

fn is_escaped(text: &[u8], at: usize) -> bool {
    text[..at]
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count()
        % 2
        == 1
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// The address in an element of `Forwarded`. `None` if any part of the element is malformed.
fn read_element(element: &[u8]) -> Option<IpAddr> {
    let mut named = None;
    for pair in split_from_right(element, b';')
        .map(trim)
        .filter(|pair| !pair.is_empty())
    {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let name = &pair[..equals];
        let value = read_value(&pair[equals + 1..])?;
        let is_token = name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte));
        if name.is_empty() || !is_token {
            return None;
        }
        if name.eq_ignore_ascii_case(b"for") && named.replace(value).is_some() {
            return None;
        }
    }
    let node = named?;
    // `Forwarded` requires brackets around IPv6 addresses.
    let bare_v6 = !node.starts_with(b"[") && node.iter().filter(|byte| **byte == b':').count() > 1;
    if bare_v6 { None } else { read_address(&node) }
}

/// A value without its quotes. Characters that require quotes, such as colons, are accepted without them, since the
/// meaning is clear.
fn read_value(value: &[u8]) -> Option<Vec<u8>> {
    let Some(quoted) = value.strip_prefix(b"\"") else {
        let plain = !value.is_empty()
            && value
                .iter()
                .all(|byte| byte.is_ascii_graphic() && *byte != b'"');
        return plain.then(|| value.to_vec());
    };
    let mut bytes = quoted.strip_suffix(b"\"")?.iter();
    let mut text = Vec::with_capacity(quoted.len());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => text.push(*bytes.next()?),
            b'"' => return None,
            _ => text.push(*byte),
        }
    }
    Some(text)
}

/// An address, with or without a port; IPv6 with or without brackets. `None` for `unknown` and obfuscated names.
fn read_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let address = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            let port = if port.is_empty() {
                None
            } else {
                Some(port.strip_prefix(':')?)
            };
            port.is_none_or(is_port)
                .then_some(IpAddr::V6(address.parse().ok()?))?
        }
        None => match text.split_once(':') {
            Some((v4, port)) if !port.contains(':') => {
                is_port(port).then_some(IpAddr::V4(v4.parse().ok()?))?
            }
            _ => text.parse().ok()?,
        },
    };
    Some(address.to_canonical())
}

/// Whether a text is a port, or an obfuscated one (RFC 7239, section 6.3).
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(hidden) => {
            !hidden.is_empty()
                && hidden
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        }
        None => (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()),
    }
}
