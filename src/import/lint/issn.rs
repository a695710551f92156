//! International Standard Serial Numbers (ISO 3297): four digits, a hyphen, three digits and a check digit.

use super::rule::TextRule;
use super::texts::is_placeholder;
use crate::model::message::{Message, message};

pub(super) const RULES: &[TextRule] =
    &[TextRule { name: "issn_form", find: form }, TextRule { name: "issn_check_digit", find: check_digit }];

/// Returns true if the field contains an ISSN.
fn is_issn_field(field: &str, text: &str) -> bool {
    matches!(field, "issn_print" | "issn_online") && !is_placeholder(field, text)
}

/// Returns the eight characters of an ISSN without hyphens and blanks. The last one may be `X`, for ten.
pub(super) fn normalized(text: &str) -> Option<String> {
    let bare: String = text.chars().filter(|sign| !sign.is_whitespace() && !"-‐‑–—".contains(*sign)).collect();
    let bare = bare.to_ascii_uppercase();
    let (digits, last) = bare.split_at_checked(7)?;
    let is_one = digits.bytes().all(|digit| digit.is_ascii_digit())
        && matches!(last.as_bytes(), [last] if last.is_ascii_digit() || *last == b'X');
    is_one.then_some(bare)
}

/// Returns a valid ISSN in its usual form. Placeholders are not valid.
pub(in crate::import) fn valid_issn(field: &str, text: &str) -> Option<String> {
    let signs = normalized(text).filter(|_| is_issn_field(field, text))?;
    let (digits, last) = signs.split_at(7);
    last.starts_with(check_digit_of(digits)).then(|| format!("{}-{}", &digits[..4], &signs[4..]))
}

/// Computes the check digit of seven digits: modulus 11, weights 8 to 2 (ISO 3297, annex A).
fn check_digit_of(digits: &str) -> char {
    let weighted = digits.chars().filter_map(|digit| digit.to_digit(10)).zip((2..=8).rev());
    let rest = weighted.map(|(digit, weight)| digit * weight).sum::<u32>() % 11;
    match (11 - rest) % 11 {
        10 => 'X',
        digit => char::from_digit(digit, 10).unwrap_or('0'),
    }
}

fn form(field: &str, text: &str) -> Option<Message> {
    if !is_issn_field(field, text) {
        return None;
    }
    match normalized(text) {
        Some(signs) => {
            let usual = format!("{}-{}", &signs[..4], &signs[4..]);
            (usual != text).then(|| message!("is not in the form of an ISSN; write `{usual}`"))
        }
        None => {
            let digits = text.chars().filter(char::is_ascii_digit).count();
            let lost = matches!(text.len(), 5..=7) && digits == text.len();
            let hint = if lost { "; a spreadsheet may have dropped zeros at its beginning" } else { "" };
            Some(message!("is not an ISSN; write four digits, a hyphen, and four more, such as 0028-4793{hint}"))
        }
    }
}

fn check_digit(field: &str, text: &str) -> Option<Message> {
    let signs = normalized(text).filter(|_| is_issn_field(field, text))?;
    let (digits, last) = signs.split_at(7);
    let expected = check_digit_of(digits);
    (!last.starts_with(expected)).then(|| {
        message!(
            "its check digit is {last}, but its other digits require {expected}; compare it with the journal's own page"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issns_are_judged() {
        let cases = [
            ("0028-4793", ""),
            ("2434-561X", ""),
            ("0378-5955", ""),
            ("TBD", ""),
            ("00284793", "issn_form"),
            ("2434-561x", "issn_form"),
            ("0028–4793", "issn_form"),
            ("0028-4794", "issn_check_digit"),
            ("2434-5610", "issn_check_digit"),
            ("00284794", "issn_form issn_check_digit"),
            ("28-4793", "issn_form"),
            ("284793", "issn_form"),
            ("0028-47933", "issn_form"),
            ("ISSN 0028-4793", "issn_form"),
            ("0028-479A", "issn_form"),
            ("é028-479", "issn_form"),
            // Fillers are placeholders.
            ("0000-0000", ""),
            ("00000000", ""),
            ("9999-9994", ""),
            ("9999-9999", ""),
            ("9999-9899", "issn_check_digit"),
            ("0000-0019", ""),
            ("0000-006X", ""),
            ("0000-0060", "issn_check_digit"),
            ("X000-0060", "issn_form"),
            ("0028 4793", "issn_form"),
            ("'0028-4793", "issn_form"),
        ];
        for (text, expected) in cases {
            let found: Vec<&str> =
                RULES.iter().filter(|rule| (rule.find)("issn_print", text).is_some()).map(|rule| rule.name).collect();
            assert_eq!(found.join(" "), expected, "{text:?}");
        }
        assert!(form("name", "x").is_none());
        for (text, is_likely) in
            [("4793", false), ("84793", true), ("0284793", true), ("28479311", false), ("28-793", false)]
        {
            let message = form("issn_online", text).unwrap_or_default();
            assert_eq!(message.contains("dropped zeros"), is_likely, "{text}: {message}");
        }
    }
}
