//! Website addresses.

use url::{Host, Url};

use super::rule::TextRule;
use super::texts::is_placeholder;
use crate::model::message::{Message, message};

pub(super) const RULES: &[TextRule] = &[TextRule { name: "no_address", find: no_address }];

fn no_address(field: &str, text: &str) -> Option<Message> {
    // Another rule is about blanks.
    let text = text.trim();
    if field != "url" || is_placeholder(field, text) || is_website(text) {
        return None;
    }
    let with_scheme = format!("https://{}", text.trim_start_matches('/'));
    Some(if !text.contains("://") && !text.contains('@') && is_website(&with_scheme) {
        message!("is not a complete address; write `{with_scheme}`")
    } else {
        "is not a website address; write one, such as https://www.example.org, or leave the cell empty".into()
    })
}

/// Returns true if the text is one absolute http or https URL with a public host name or an IP address.
fn is_website(text: &str) -> bool {
    let folded = text.to_ascii_lowercase();
    let Some(rest) = folded.strip_prefix("https://").or_else(|| folded.strip_prefix("http://")) else { return false };
    // The URL parser accepts and changes blanks and additional slashes.
    if rest.starts_with('/')
        || text.contains(char::is_whitespace)
        || rest.contains("http://") && !rest.contains(['?', '/'])
    {
        return false;
    }
    match Url::parse(text).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(domain)) => {
            let last = domain.trim_end_matches('.').rsplit_once('.').map(|(_, last)| last);
            last.is_some_and(|last| last.len() > 1 && !domain.contains(".."))
        }
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_websites_are_found() {
        let cases = [
            ("https://www.asco.org", None),
            ("HTTP://asco.org/a?b=c#d", None),
            ("https://例え.jp/会議", None),
            ("https://web.archive.org/web/2020/http://asco.org/", None),
            ("https://192.0.2.1:8080/", None),
            ("TBD", None),
            ("https://[2001:db8::1]/", None),
            ("https://asco.org./", None),
            ("https://asco.de", None),
            ("https://asco.c", Some("is not a website address")),
            ("https://user@asco.org/o'hara", None),
            ("asco.org/?mail=a@b", Some("is not a website address")),
            ("www.asco.org", Some("write `https://www.asco.org`")),
            ("asco.org/annual", Some("write `https://asco.org/annual`")),
            ("//asco.org", Some("write `https://asco.org`")),
            ("https://asco.org ", None),
            ("htps://asco.org", Some("is not a website address")),
            ("http:/asco.org", Some("is not a website address")),
            ("https:///asco.org", Some("is not a website address")),
            ("https://asco", Some("is not a website address")),
            ("https://https://asco.org", Some("is not a website address")),
            ("https://asco..org", Some("is not a website address")),
            ("https://asco.org, https://esmo.org", Some("is not a website address")),
            ("ftp://asco.org", Some("is not a website address")),
            ("mailto:info@asco.org", Some("is not a website address")),
            ("info@asco.org", Some("is not a website address")),
            ("see website", Some("is not a website address")),
        ];
        for (text, expected) in cases {
            let found = no_address("url", text);
            match expected {
                None => assert_eq!(found, None, "{text}"),
                Some(expected) => {
                    assert!(found.as_ref().is_some_and(|found| found.contains(expected)), "{text}: {found:?}")
                }
            }
        }
        assert!(no_address("name", "x").is_none());
    }
}
