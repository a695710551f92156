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
    let host = match host.strip_prefix('[').and_then(|literal| literal.split_once(']')) {
        Some((address, port)) if port.is_empty() || port.starts_with(':') => address,
        Some(_) => return false,
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
        let names = ["Feed-1.internal", "example.org"].map(str::to_owned);
        let cases: [(&[&str], bool); 46] = [
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
            // Every name is compared whole: none that only begins, ends or goes on like it.
            (&["example.org"], true),
            (&["example.org:8080"], true),
            (&["EXAMPLE.ORG"], true),
            (&["Example.Org:8080"], true),
            (&["evilexample.org"], false),
            (&["evil.example.org"], false),
            (&["evilexample.org:8080"], false),
            (&["example.org.evil.net"], false),
            (&["example.org.evil.net:8080"], false),
            (&["example.orgevil"], false),
            (&["example.org."], false),
            (&[".example.org"], false),
            (&["xample.org"], false),
            (&["example.or"], false),
            (&["org"], false),
            (&["evilfeed-1.internal"], false),
            (&["feed-1.internal.evil.net"], false),
            (&["evillocalhost"], false),
            (&["localhost."], false),
            (&["localhos"], false),
            (&["ocalhost:8080"], false),
            (&[":8080"], false),
            (&["example.org", "evil.example"], false),
            (&["evil.example", "example.org"], false),
            (&["127.0.0.1", "127.0.0.1"], false),
            (&["127.0.0.1."], false),
            (&["[::ffff:127.0.0.1]:9090"], true),
            (&["[::1].evil.example"], false),
            (&["[::1]evil.example"], false),
            (&["[::1"], false),
        ];
        for (hosts, expected) in cases {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_static(host));
            }
            assert_eq!(is_own(&headers, &names), expected, "{hosts:?}");
        }
        let named = HeaderMap::from_iter([(HOST, HeaderValue::from_static("example.org"))]);
        assert!(!is_own(&named, &[]), "without names there are only addresses and localhost");
    }
}
