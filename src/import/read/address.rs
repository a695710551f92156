//! The web address of a cell with a hyperlink.

use std::borrow::Cow;

use url::Url;

use crate::model::fold::is_blank;
use crate::model::message::{Message, message};

/// Returns the address to store for a cell with the text `text` and a hyperlink to `link`. An address in the text takes
/// precedence. Fails if the two addresses differ, or if neither is a web address.
pub(in crate::import) fn address<'c>(text: &'c str, link: &'c str) -> Result<Cow<'c, str>, Message> {
    let shown = text.trim_matches(is_blank);
    let link = link.trim_matches(is_blank);
    match (web_address(shown), web_address(link)) {
        (Some(shown), Some(target)) if comparable(&shown) != comparable(&target) => Err(message!(
            "shows one address and links to another, `{link}`; remove the link, or write the right address in both"
        )),
        (Some(_), _) => Ok(text.into()),
        (None, Some(_)) => Ok(link.into()),
        (None, None) => Err(message!(
            "links to `{link}`, which is not a web address (http or https); write the address in the cell, and remove \
             the link"
        )),
    }
}

fn web_address(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// Returns the address without its scheme and its final slashes. Spreadsheets change these when they turn a text into a
/// hyperlink.
fn comparable(url: &Url) -> String {
    let rest = url.as_str().split_once("://").map_or("", |(_, rest)| rest);
    rest.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found() {
        let cases = [
            ("ESMO", "https://esmo.org/", Ok("https://esmo.org/")),
            ("www.esmo.org", "http://www.esmo.org/", Ok("http://www.esmo.org/")),
            ("https://esmo.org", "https://esmo.org/", Ok("https://esmo.org")),
            ("https://ESMO.org", "http://esmo.org/", Ok("https://ESMO.org")),
            ("https://esmo.org/a b", "https://esmo.org/a%20b", Ok("https://esmo.org/a b")),
            ("https://esmo.org/2026", "https://esmo.org/2025", Err("links to another, `https://esmo.org/2025`")),
            ("https://esmo.org", "mailto:info@esmo.org", Ok("https://esmo.org")),
            ("ESMO", "mailto:info@esmo.org", Err("`mailto:info@esmo.org`, which is not a web address")),
            ("ESMO", "file:///C:/esmo.html", Err("not a web address")),
            ("ESMO", "#Sheet2!A1", Err("not a web address")),
            ("ESMO", "HYPERLINK(A1,B1)", Err("not a web address")),
        ];
        for (text, link, expected) in cases {
            match (address(text, link), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text} {link}"),
                (Err(message), Err(expected)) => assert!(message.contains(expected), "{text} {link}: {message}"),
                (found, expected) => panic!("{text} {link}: {found:?}, expected {expected:?}"),
            }
        }
    }
}
