//! The address that a cell with a hyperlink stands for.

use std::borrow::Cow;

use url::Url;

use crate::model::fold::is_blank;

/// Whether the column holds the address of a web page.
pub(super) fn is_address_column(column: &str) -> bool {
    column == "url"
}

/// The address that is stored for a cell that shows `text` and has a hyperlink to `link`: `text` if it is an address
/// itself, otherwise `link`.
///
/// # Errors
/// When the cell shows one address and links to another, or links to no web page.
pub(super) fn address<'c>(text: &'c str, link: &'c str) -> Result<Cow<'c, str>, String> {
    let shown = text.trim_matches(is_blank);
    let link = link.trim_matches(is_blank);
    match (web_address(shown), web_address(link)) {
        (Some(shown), Some(target)) if comparable(&shown) != comparable(&target) => Err(format!(
            "shows one address and links to another, `{link}`; remove the link, or write the right address in both"
        )),
        (Some(_), _) => Ok(text.into()),
        (None, Some(_)) => Ok(link.into()),
        (None, None) => Err(format!(
            "links to `{link}`, which is no web address (http or https); write the address in the cell, and remove the link"
        )),
    }
}

fn web_address(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// The part of an address that all its spellings share. Spreadsheets change the rest when they make links of texts.
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
            ("ESMO", "mailto:info@esmo.org", Err("`mailto:info@esmo.org`, which is no web address")),
            ("ESMO", "file:///C:/esmo.html", Err("no web address")),
            ("ESMO", "#Sheet2!A1", Err("no web address")),
            ("ESMO", "HYPERLINK(A1,B1)", Err("no web address")),
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
