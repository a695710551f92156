//! Numbers in cells: with signs that group digits, and with either decimal sign. `cells` tests them.

use std::borrow::Cow;

use super::table_cell::{Container, DecimalSign, Notation};
use crate::model::fold::is_blank;
use crate::model::message::{Message, message};

/// Returns the digits of a whole number.
pub(super) fn normalize_integer<'c>(
    cell: &'c str,
    notation: &Notation,
) -> Result<Cow<'c, str>, Message> {
    let sign = if cell.contains(',') {
        DecimalSign::Comma
    } else {
        DecimalSign::Point
    };
    if let Some((whole, fraction)) = cell.split_once(['.', ','])
        && !whole.is_empty()
        && are_digits(whole)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte == b'0')
        && (notation.decimal == Some(sign) || !may_be_grouped(cell))
    {
        return if sign == DecimalSign::Point || notation.may_have_comma() {
            Ok(Cow::Borrowed(whole))
        } else {
            Err(message!(
                "has a decimal comma; write only the digits, `{whole}`, or add --decimal comma"
            ))
        };
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

/// Returns the digits of a number whose thousands are grouped by one sign; a second sign may begin a fraction.
fn without_separators(cell: &str) -> Option<String> {
    let separator = cell.chars().find(|sign| is_separator(*sign))?;
    let (first, rest) = cell.split_once(separator)?;
    let is_grouped =
        (1..=3).contains(&first.len()) && rest.split(separator).all(|group| group.len() == 3);
    let digits = cell.replace(separator, "");
    (is_grouped && are_digits(&digits)).then_some(digits)
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
        return match cell.rfind(['.', ',']) {
            None => Ok(Cow::Borrowed(cell)),
            Some(last) if cell[..last].contains(['.', ',']) => {
                with_several_signs(cell, last, notation).map(Cow::Owned)
            }
            Some(last) => with_one_sign(cell, last, notation),
        };
    }
    let is_number = |sign: char| sign.is_ascii_digit() || is_separator(sign);
    match without_separators(cell) {
        Some(digits) => Err(message!(
            "has separators between its digits; write only the digits, `{digits}`"
        )),
        None if cell.chars().all(is_number) => {
            Err("has several separators; write digits and at most one decimal point".into())
        }
        None => Ok(Cow::Borrowed(cell)),
    }
}

/// Returns the decimal sign that a text begins with.
fn sign_at(text: &str) -> DecimalSign {
    if text.starts_with(',') {
        DecimalSign::Comma
    } else {
        DecimalSign::Point
    }
}

/// Returns a number with several commas or points, the last at `last`. They have one meaning: groups and a fraction,
/// such as `1.234,5`, or several groups.
fn with_several_signs(cell: &str, last: usize, notation: &Notation) -> Result<String, Message> {
    let whole = &cell[..last];
    let groups_by = if whole.contains(',') {
        DecimalSign::Comma
    } else {
        DecimalSign::Point
    };
    let (number, expected) = match (without_separators(whole), without_separators(cell)) {
        (Some(digits), _) if sign_at(&cell[last..]) != groups_by => (
            format!("{digits}.{}", &cell[last + 1..]),
            "has a decimal comma",
        ),
        (_, Some(digits)) => (digits, "groups digits by points"),
        _ => {
            return Err(
                "has several commas or points; write digits and at most one decimal point".into(),
            );
        }
    };
    // In other tables `3.125` is read with a decimal point.
    if groups_by == DecimalSign::Comma || notation.may_have_comma() {
        return Ok(number);
    }
    Err(message!(
        "{expected}; write `{number}`, or add --decimal comma"
    ))
}

/// Returns a number with one comma or point, at `at`.
fn with_one_sign<'c>(
    cell: &'c str,
    at: usize,
    notation: &Notation,
) -> Result<Cow<'c, str>, Message> {
    let whole = &cell[..at];
    let fraction = &cell[at + 1..];
    let sign = sign_at(&cell[at..]);
    let digits = || format!("{whole}{fraction}");
    let number = || format!("{whole}.{fraction}");
    let may_group = may_be_grouped(cell);
    // Exports never write three decimals that end with a zero, so exported numbers are read back unchanged.
    let is_sheet = matches!(notation.container, Container::Sheet | Container::OldSheet);
    let is_likely =
        notation.has_semicolons || notation.is_price && (is_sheet || cell.ends_with('0'));
    match (sign, notation.decimal) {
        (_, Some(decimal)) if decimal == sign => Ok(Cow::Owned(number())),
        (_, Some(_)) if may_group => Ok(Cow::Owned(digits())),
        (DecimalSign::Point, _) if !may_group || !is_likely => Ok(Cow::Borrowed(cell)),
        (DecimalSign::Comma, _) if !may_group && notation.may_have_comma() => {
            Ok(Cow::Owned(number()))
        }
        (DecimalSign::Comma, _) if !may_group => Err(message!(
            "has a decimal comma; write a decimal point, `{whole}.{fraction}`, or add --decimal comma"
        )),
        _ => {
            let digits = digits();
            let number = number();
            let number = number.trim_end_matches('0').trim_end_matches('.');
            let sign = &cell[at..=at];
            Err(message!(
                "may be {digits} or {number}, since a `{sign}` before three digits may group them; write `{digits}` or \
                 `{number}`, or set the decimal sign with --decimal point or --decimal comma"
            ))
        }
    }
}

/// Returns true if the text has one separator, with exactly three digits after it. The sign may group digits or start a
/// fraction.
fn may_be_grouped(cell: &str) -> bool {
    cell.matches(is_separator).count() == 1
        && !cell.starts_with('0')
        && without_separators(cell).is_some()
}
