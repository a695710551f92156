//! Checks whether a request's `Host` header names this machine.
//!
//! A web page can point its own name at this machine's address (DNS rebinding). Then its scripts can read responses
//! like those of their own site. The browser still sends the page's name in `Host`. So endpoints that show secrets
//! without a key reject unknown names.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::HOST;

/// Whether `Host` is an address, `localhost`, or one of `names`. A request without `Host` is allowed, since no browser
/// sends one.
pub fn is_own(headers: &HeaderMap, names: &[String]) -> bool {
    let mut values = headers.get_all(HOST).iter();
    let (value, None) = (values.next(), values.next()) else { return false };
    let Some(value) = value else { return true };
    let Ok(host) = value.to_str() else { return false };
    let host = match host.strip_prefix('[') {
        Some(literal) => literal.split_once(']').map_or(literal, |(address, _)| address),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let is_named = ["localhost"].into_iter().chain(names.iter().map(String::as_str));
    host.parse::<IpAddr>().is_ok() || is_named.into_iter().any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn foreign_names_are_rejected() {
        let names = ["Feed-1.internal".to_owned()];
        let cases: [(&[&str], bool); 16] = [
            (&[], true),
            (&["127.0.0.1"], true),
            (&["127.0.0.1:9090"], true),
            (&["192.0.2.7:9090"], true),
            (&["[::1]:9090"], true),
            (&["[fe80::1]"], true),
            (&["localhost:9090"], true),
            (&["LocalHost"], true),
            (&["feed-1.internal:9090"], true),
            (&["feed-2.internal"], false),
            (&["localhost.evil.example"], false),
            (&["127.0.0.1.evil.example:9090"], false),
            (&["evil.example"], false),
            (&[""], false),
            (&["localhost", "localhost"], false),
            (&["[evil.example]"], false),
        ];
        for (hosts, expected) in cases {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_static(host));
            }
            assert_eq!(is_own(&headers, &names), expected, "{hosts:?}");
        }
    }
}
