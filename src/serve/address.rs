//! Whose request it is: the peer's, unless the peer is a trusted proxy; then the rightmost untrusted address that the
//! one configured header names.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::FORWARDED;
use ipnet::IpNet;

/// The header in which trusted proxies name the caller. The other kind is ignored, since a caller can send it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`, a list of addresses.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// Which peers are believed, and in which header.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    /// The networks of trusted proxies.
    pub networks: Vec<IpNet>,
    /// The header that they write.
    pub header: ForwardedHeader,
}

impl TrustedProxies {
    /// Whether an address is a trusted proxy's.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// The caller's address. IPv4 mapped to IPv6 becomes IPv4, everywhere.
    pub fn caller(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut caller = peer.to_canonical();
        if !self.trusts(caller) {
            return caller;
        }
        let hops = match self.header {
            ForwardedHeader::XForwardedFor => x_forwarded_for(headers),
            ForwardedHeader::Forwarded => forwarded(headers),
        };
        for hop in hops.into_iter().rev() {
            // What is no address ends the chain: the proxy that wrote it is the last hop that is known.
            let Some(address) = hop else { return caller };
            caller = address;
            if !self.trusts(caller) {
                return caller;
            }
        }
        caller
    }
}

/// The hops of all `X-Forwarded-For` lines, in the order in which they were added.
fn x_forwarded_for(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let lines = headers.get_all("x-forwarded-for").iter();
    lines
        .flat_map(|line| match line.to_str() {
            Ok(text) => text.split(',').map(|hop| parse_hop(hop.trim())).collect(),
            Err(_) => vec![None],
        })
        .collect()
}

/// The `for` of every element of all `Forwarded` lines (RFC 7239, section 4).
fn forwarded(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let lines = headers.get_all(FORWARDED).iter();
    lines
        .flat_map(|line| match line.to_str() {
            Ok(text) => split_unquoted(text, ',').into_iter().map(forwarded_for).collect(),
            Err(_) => vec![None],
        })
        .collect()
}

fn forwarded_for(element: &str) -> Option<IpAddr> {
    let pairs = split_unquoted(element, ';');
    let mut named = pairs.iter().filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        name.eq_ignore_ascii_case("for").then_some(value)
    });
    let value = named.next()?;
    if named.next().is_some() {
        return None;
    }
    match value.strip_prefix('"') {
        Some(quoted) => parse_hop(quoted.strip_suffix('"')?),
        None => parse_hop(value),
    }
}

/// Splits at a separator that stands outside quotes.
fn split_unquoted(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut quoted, mut escaped) = (0, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if letter == separator && !quoted => {
                parts.push(&text[from..at]);
                from = at + separator.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// An address, with or without a port; IPv6 with or without brackets.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = bare
        .unwrap_or(text)
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|socket| socket.ip()))
        .ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    const XFF: &str = "x-forwarded-for";

    /// The peer, the headers that it sent, and whose request it is.
    type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);

    fn caller(header: ForwardedHeader, peer: &str, sent: &[(&str, &str)]) -> String {
        let networks = ["10.0.0.0/8", "2001:db8:1::/48"].map(|network| network.parse().unwrap());
        let proxies = TrustedProxies { networks: networks.to_vec(), header };
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap());
        }
        proxies.caller(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn x_forwarded_for_is_read_from_the_right() {
        let cases: [Case; 20] = [
            ("192.0.2.1", &[], "192.0.2.1"),
            ("192.0.2.1", &[(XFF, "198.51.100.7")], "192.0.2.1"),
            ("::ffff:192.0.2.1", &[], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("::ffff:10.0.0.1", &[(XFF, "198.51.100.7")], "198.51.100.7"),
            ("10.0.0.1", &[(XFF, "198.51.100.7")], "198.51.100.7"),
            ("10.0.0.1", &[(XFF, "203.0.113.9, 198.51.100.7")], "198.51.100.7"),
            ("10.0.0.1", &[(XFF, "203.0.113.9"), (XFF, "198.51.100.7")], "198.51.100.7"),
            ("10.0.0.1", &[(XFF, "203.0.113.9, 198.51.100.7, 10.0.0.2")], "198.51.100.7"),
            ("10.0.0.1", &[(XFF, "203.0.113.9,198.51.100.7,2001:db8:1::5")], "198.51.100.7"),
            ("10.0.0.1", &[(XFF, "10.0.0.3, 10.0.0.2")], "10.0.0.3"),
            ("10.0.0.1", &[(XFF, "198.51.100.7:4711")], "198.51.100.7"),
            ("10.0.0.1", &[(XFF, "[2001:db8::7]:4711")], "2001:db8::7"),
            ("10.0.0.1", &[(XFF, "2001:db8::7")], "2001:db8::7"),
            ("10.0.0.1", &[(XFF, "::ffff:198.51.100.7")], "198.51.100.7"),
            ("10.0.0.1", &[(XFF, "198.51.100.7, unknown")], "10.0.0.1"),
            ("10.0.0.1", &[(XFF, "198.51.100.7, bad, 10.0.0.2")], "10.0.0.2"),
            ("10.0.0.1", &[(XFF, "")], "10.0.0.1"),
            ("10.0.0.1", &[("forwarded", "for=198.51.100.7")], "10.0.0.1"),
            ("2001:db8:1::1", &[(XFF, "198.51.100.7")], "198.51.100.7"),
        ];
        for (peer, sent, expected) in cases {
            assert_eq!(caller(ForwardedHeader::XForwardedFor, peer, sent), expected, "{peer} {sent:?}");
        }
    }

    #[test]
    fn forwarded_is_read_from_the_right() {
        let cases: [Case; 14] = [
            ("192.0.2.1", &[("forwarded", "for=198.51.100.7")], "192.0.2.1"),
            ("10.0.0.1", &[("forwarded", "for=198.51.100.7")], "198.51.100.7"),
            ("10.0.0.1", &[("forwarded", "For=\"198.51.100.7:80\";proto=https;by=10.0.0.1")], "198.51.100.7"),
            ("10.0.0.1", &[("forwarded", "for=\"[2001:db8::7]:4711\"")], "2001:db8::7"),
            ("10.0.0.1", &[("forwarded", "for=203.0.113.9, for=198.51.100.7")], "198.51.100.7"),
            ("10.0.0.1", &[("forwarded", "for=203.0.113.9"), ("forwarded", "for=198.51.100.7")], "198.51.100.7"),
            ("10.0.0.1", &[("forwarded", "for=198.51.100.7, for=10.0.0.2;proto=http")], "198.51.100.7"),
            ("10.0.0.1", &[("forwarded", "for=\"203.0.113.9, for=198.51.100.7\"")], "10.0.0.1"),
            ("10.0.0.1", &[("forwarded", "for=_hidden")], "10.0.0.1"),
            ("10.0.0.1", &[("forwarded", "for=unknown, for=10.0.0.2")], "10.0.0.2"),
            ("10.0.0.1", &[("forwarded", "proto=https")], "10.0.0.1"),
            ("10.0.0.1", &[("forwarded", "for=198.51.100.7;for=203.0.113.9")], "10.0.0.1"),
            ("10.0.0.1", &[(XFF, "198.51.100.7")], "10.0.0.1"),
            ("10.0.0.1", &[("forwarded", "for=\"\\\"198.51.100.7\"")], "10.0.0.1"),
        ];
        for (peer, sent, expected) in cases {
            assert_eq!(caller(ForwardedHeader::Forwarded, peer, sent), expected, "{peer} {sent:?}");
        }
    }
}
