//! Currencies of prices. Only prices in US dollars have a field.

use crate::model::fold::fold;

const DOLLARS: &str = "usd|us$|$|us dollar|us dollars|us-dollar|dollar|dollars|u.s. dollar";

const OTHERS: &str = "eur|euro|euros|€|gbp|£|pound|pounds|chf|jpy|¥|yen|cny|rmb|inr|₹|aud|a$|cad|c$|brl|r$|sek|nok|dkk|pln|zł|zl|czk|huf|krw|\
    mxn|zar|try|rub|sgd|hkd|nzd|idr|myr|thb|twd|irr|ils|clp|cop|egp|ron|bgn|uah|isk|vnd|php|pkr|ngn|kes|sar|aed|ars|pen";

fn is_in(words: &str, text: &str) -> bool {
    let folded = fold(text.trim());
    words.split('|').any(|word| word == folded)
}

/// Returns true if a text is the name or sign of a currency.
pub(in crate::import) fn is_currency(text: &str) -> bool {
    is_dollar(text) || is_in(OTHERS, text)
}

/// Returns true if a text means US dollars.
pub(in crate::import) fn is_dollar(text: &str) -> bool {
    is_in(DOLLARS, text)
}

/// Returns true if a header or a price names another currency than US dollars.
pub(in crate::import) fn names_other_currency(text: &str) -> bool {
    let folded = fold(text);
    let mut words =
        folded.split(|sign: char| sign.is_ascii_digit() || " .,;:/()[]-".contains(sign));
    text.contains(['€', '£', '¥', '₹']) || words.any(|word| is_in(OTHERS, word))
}

/// Returns true if a header names US dollars, such as `apc_usd`.
pub(in crate::import) fn names_dollars(header: &str) -> bool {
    let folded = fold(header);
    folded.contains("usd") || folded.contains("us$")
}
