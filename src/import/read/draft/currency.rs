//! Currencies of prices. Only prices in US dollars have a field.

use super::content::DraftColumn;
use crate::model::fold::fold;

const DOLLARS: &str = "usd|us$|$|us dollar|us dollars|us-dollar|dollar|dollars|u.s. dollar";

const OTHERS: &str = "eur|euro|euros|€|gbp|£|pound|pounds|chf|jpy|¥|yen|cny|rmb|inr|₹|aud|a$|cad|c$|brl|r$|sek|nok|dkk|pln|zł|zl|czk|huf|krw|\
    mxn|zar|try|rub|sgd|hkd|nzd|idr|myr|thb|twd|irr|ils|clp|cop|egp|ron|bgn|uah|isk|vnd|php|pkr|ngn|kes|sar|aed|ars|pen";

/// Words in the header of a column with currencies.
const HEADERS: [&str; 9] = [
    "currency", "wahrung", "waehrung", "devise", "moneda", "moeda", "valuta", "waluta", "monnaie",
];

fn is_in(words: &str, text: &str) -> bool {
    let folded = fold(text.trim());
    words.split('|').any(|word| word == folded)
}

/// Returns true if a text means US dollars.
pub(super) fn is_dollar(text: &str) -> bool {
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
pub(super) fn names_dollars(header: &str) -> bool {
    let folded = fold(header);
    folded.contains("usd") || folded.contains("us$")
}

/// Returns the index of the column with currencies that is nearest to a column.
pub(super) fn currency_column(columns: &[DraftColumn], near: usize) -> Option<usize> {
    let is_currency = |text: &str| is_dollar(text) || is_in(OTHERS, text);
    let has_currencies = |at: &usize| {
        let header = fold(&columns[*at].header);
        *at != near
            && !columns[*at].cells.is_empty()
            && (columns[*at].are_mostly(is_currency)
                || HEADERS.iter().any(|word| header.contains(word))
                    && !columns[*at].are_mostly(has_digit))
    };
    (0..columns.len())
        .filter(has_currencies)
        .min_by_key(|at| at.abs_diff(near))
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}
