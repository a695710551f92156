//! Numbers in cells: with signs that group digits, and with either decimal sign. `cells` tests them.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::table_cell::{Container, DecimalSign, Notation};
use super::words::pattern;
use crate::model::fold::is_blank;
use crate::model::message::{Message, message};

/// A number whose fraction is zeros.
static ZEROS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^([0-9]+)([.,])0+$"));

/// A number whose thousands are grouped by one sign.
static GROUPS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)^ [0-9]{1,3}
        (?: (?: , [0-9]{3} )+ | (?: \. [0-9]{3} )+ | (?: ' [0-9]{3} )+ | (?: ’ [0-9]{3} )+ | (?: \s [0-9]{3} )+ ) $",
    )
});

/// Returns the digits of a whole number.
pub(super) fn normalize_integer<'c>(
    cell: &'c str,
    notation: &Notation,
) -> Result<Cow<'c, str>, Message> {
    if let Some(found) = ZEROS.captures(cell) {
        let sign = match &found[2] {
            "," => DecimalSign::Comma,
            _ => DecimalSign::Point,
        };
        let digits = &cell[..found[1].len()];
        let has_two_meanings =
            with_decimal(cell, '.').is_some() && with_decimal(cell, ',').is_some();
        if notation.decimal == Some(sign) || !has_two_meanings {
            return match sign == DecimalSign::Point || notation.may_have_comma() {
                true => Ok(Cow::Borrowed(digits)),
                false => Err(message!(
                    "has a decimal comma; write only the digits, `{digits}`, or add --decimal comma"
                )),
            };
        }
    }
    if cell.contains(['e', 'E']) && cell.parse::<f64>().is_ok() {
        return Err(
            "is written with an exponent, which loses digits; format the column as text, and write all digits".into()
        );
    }
    // The point of a number cell always begins a fraction.
    if let Some(digits) = without_separators(cell).filter(|_| !notation.is_number) {
        return Err(message!(
            "has separators between its digits; write only the digits, `{digits}`"
        ));
    }
    Ok(Cow::Borrowed(cell))
}

/// Returns true if a sign may group digits.
fn is_separator(sign: char) -> bool {
    matches!(sign, ',' | '.' | '\'' | '’') || is_blank(sign)
}

/// Returns the digits of a number whose thousands are grouped.
fn without_separators(cell: &str) -> Option<String> {
    let digits = cell.chars().filter(char::is_ascii_digit);
    GROUPS.is_match(cell).then(|| digits.collect())
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a number with at most one decimal point.
pub(super) fn normalize_number<'c>(
    cell: &'c str,
    notation: &Notation,
) -> Result<Cow<'c, str>, Message> {
    let mut dollars = ["US$", "USD", "$"]
        .into_iter()
        .filter(|_| notation.is_price);
    let price = |sign| cell.strip_prefix(sign).or(cell.strip_suffix(sign));
    let cell = dollars.find_map(price).map_or(cell, str::trim);
    if cell.ends_with('%') {
        return Err("is a percentage; write only the number, without `%`".into());
    }
    if cell
        .chars()
        .all(|sign| sign.is_ascii_digit() || matches!(sign, '.' | ','))
    {
        return match cell.contains(['.', ',']) {
            true => with_signs(cell, notation).map(Cow::Owned),
            false => Ok(Cow::Borrowed(cell)),
        };
    }
    let mut signs = cell.chars();
    match without_separators(cell) {
        Some(digits) => Err(message!(
            "has separators between its digits; write only the digits, `{digits}`"
        )),
        None if signs.all(|sign| sign.is_ascii_digit() || is_separator(sign)) => {
            Err("has several separators; write digits and at most one decimal point".into())
        }
        None => Ok(Cow::Borrowed(cell)),
    }
}

/// Returns a number with commas or points. Each may be the decimal sign, or group digits.
fn with_signs(cell: &str, notation: &Notation) -> Result<String, Message> {
    match (with_decimal(cell, '.'), with_decimal(cell, ',')) {
        (Some(number), None) => Ok(number),
        // In other tables `3.125` is read with a decimal point.
        (None, Some(number)) if notation.may_have_comma() => Ok(number),
        (None, Some(number)) => {
            let expected = match cell.contains(',') {
                true => "has a decimal comma; write a decimal point,",
                false => "groups digits by points; write",
            };
            Err(message!("{expected} `{number}`, or add --decimal comma"))
        }
        (Some(with_point), Some(with_comma)) => {
            // Exports never write three decimals that end with a zero, so exported numbers are read back unchanged.
            let is_sheet = matches!(notation.container, Container::Sheet | Container::OldSheet);
            let may_be_group = notation.has_semicolons
                || notation.is_price && (is_sheet || cell.ends_with('0'))
                || cell.contains(',');
            match notation.decimal {
                Some(DecimalSign::Comma) => Ok(with_comma),
                None if may_be_group => Err(of_two_meanings(cell, &with_point, &with_comma)),
                Some(DecimalSign::Point) | None => Ok(with_point),
            }
        }
        (None, None) => {
            Err("has several commas or points; write digits and at most one decimal point".into())
        }
    }
}

/// Returns the fault of a number such as `1,234`, with what it means with either decimal sign.
fn of_two_meanings(cell: &str, with_point: &str, with_comma: &str) -> Message {
    let has_comma = cell.contains(',');
    let sign = if has_comma { ',' } else { '.' };
    let digits = if has_comma { with_point } else { with_comma };
    let number = if has_comma { with_comma } else { with_point };
    let number = number.trim_end_matches('0').trim_end_matches('.');
    message!(
        "may be {digits} or {number}, since a `{sign}` before three digits may group them; write `{digits}` or \
         `{number}`, or set the decimal sign with --decimal point or --decimal comma"
    )
}

/// Returns a number with a decimal point, if `sign` is its decimal sign, and the other one groups its digits.
pub(super) fn with_decimal(cell: &str, sign: char) -> Option<String> {
    let mut parts = cell.splitn(2, sign);
    let whole = parts.next()?;
    let digits = match are_digits(whole) {
        true => whole.to_owned(),
        false => without_separators(whole).filter(|_| !whole.starts_with('0'))?,
    };
    match parts.next() {
        None => Some(digits),
        Some(fraction) => are_digits(fraction).then(|| format!("{digits}.{fraction}")),
    }
}
