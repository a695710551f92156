//! The conversion of cells to the form that fields are parsed from. Unambiguous spellings are
//! converted. Ambiguous or damaged cells are rejected, with a message that shows the right spelling.

use std::borrow::Cow;

use super::dates::{date_range, single_day};
use super::numbers::{normalize_integer, normalize_number};
use super::table_cell::Notation;
use super::words::has_word;
use crate::import::lint::{is_placeholder, valid_issn};
use crate::model::fold::{comparable, fold, is_blank};
use crate::model::message::Message;
use crate::model::value::ValueKind;

/// Returns the cell in the form that a field of this kind is parsed from; empty for null. The error says what to write
/// instead.
pub(in crate::import) fn normalize<'c>(
    kind: ValueKind,
    cell: &'c str,
    notation: &Notation,
) -> Result<Cow<'c, str>, Message> {
    let trimmed = cell.trim_matches(is_blank);
    if (kind.is_whole() || kind == ValueKind::Number)
        && !trimmed.is_empty()
        && is_placeholder("", trimmed)
    {
        return Err("is not a number; leave the cell empty".into());
    }
    match kind {
        // Text stays unchanged, so that an export can be imported again.
        ValueKind::Text | ValueKind::Texts | ValueKind::Links(_) => Ok(Cow::Borrowed(cell)),
        ValueKind::Choice(words) | ValueKind::DateStatus(words) => {
            Ok(Cow::Borrowed(word_meant(words, trimmed).unwrap_or(trimmed)))
        }
        ValueKind::Date => single_day(date_range(trimmed, notation.dates)?).map(Cow::Owned),
        ValueKind::Integer | ValueKind::Year => normalize_integer(trimmed, notation),
        ValueKind::Number if notation.is_number => Ok(Cow::Borrowed(trimmed)),
        ValueKind::Number => normalize_number(trimmed, notation),
        ValueKind::Flag => Ok(Cow::Borrowed(match parse_flag(trimmed) {
            Some(true) => "TRUE",
            Some(false) => "FALSE",
            None => trimmed,
        })),
    }
}

/// Words of a field, and other words of the same meaning, without case, blanks, `-`, `_` and `.`.
const SYNONYMS: [(&str, &str); 3] = [
    (
        "open",
        "openaccess oa gold goldoa goldopenaccess fullopenaccess fullyopenaccess fulloa fullyoa diamond diamondoa",
    ),
    (
        "hybrid",
        "hybridoa hybridopenaccess hybridjournal openchoice",
    ),
    (
        "subscription",
        "subscriptionbased subscriptiononly subscriptionjournal closed closedaccess",
    ),
];

/// Returns the word that the cell means: the same one except for case, blanks, `-` and `_`, or a synonym. A remark in
/// brackets may follow. Returns `None` for another text.
pub(in crate::import) fn word_meant(words: &[&'static str], cell: &str) -> Option<&'static str> {
    if let Some(word) = words.iter().find(|word| **word == cell) {
        return Some(word);
    }
    // No word with its remark is longer, and remarks in remarks have an end.
    if cell.len() > 200 {
        return None;
    }
    let meant = comparable(cell);
    let means = |word: &str| {
        let mut synonyms = SYNONYMS.iter().filter(|(of, _)| *of == word);
        comparable(word) == meant || synonyms.any(|(_, words)| has_word(words, &meant))
    };
    words.iter().copied().find(|word| means(word)).or_else(|| {
        let (cell, remark) = cell.strip_suffix(')')?.split_once('(')?;
        // `Subscription (hybrid)` is hybrid, so a remark must not contradict.
        word_meant(words, cell)
            .filter(|word| *word == "hybrid" || word_meant(words, remark) == Some(word))
    })
}

/// Returns the usual form of an ISSN whose check digit fits, and whether a spreadsheet dropped the zeros at its
/// beginning.
pub(in crate::import) fn normalize_issn(field: &str, cell: &str) -> Option<(String, bool)> {
    let folded = fold(cell.trim_matches(is_blank));
    let bare = folded
        .strip_prefix("issn")
        .map_or(&*folded, |number| number.trim_start_matches([':', ' ']));
    let is_short = (5..8).contains(&bare.len())
        && bare.bytes().all(|digit| digit.is_ascii_digit())
        && !bare.starts_with('0');
    let issn = if is_short {
        valid_issn(field, &format!("{bare:0>8}"))
    } else {
        valid_issn(field, bare)
    };
    issn.map(|issn| (issn, is_short))
}

/// Parses a flag: TRUE and FALSE in the languages of spreadsheet programs, yes and no, or an `x`.
pub(in crate::import) fn parse_flag(cell: &str) -> Option<bool> {
    const YES: &str = "1 yes y x \u{2713} \u{2714} ja j oui si sim tak ano igen kylla evet да wahr vrai vero verdadero \
                       verdadeiro waar prawda sand sant sann tosi pravda igaz dogru истина true";
    const NO: &str = "0 no n nein non nao nie ne nem ei nej nee nei hayir нет falsch faux falso onwaar falsz falsk falskt \
                      usann epatosi nepravda hamis yanlis ложь false";
    let flag_of = |word: &str| {
        let is_yes = has_word(YES, word);
        (is_yes || has_word(NO, word)).then_some(is_yes)
    };
    let word = cell.trim_matches(is_blank);
    match word {
        // The usual words and no word, without a search.
        "" => None,
        "TRUE" | "true" => Some(true),
        "FALSE" | "false" => Some(false),
        _ => flag_of(word).or_else(|| flag_of(&fold(word).replace('ı', "i"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::read::dates::DateOrder;
    use crate::import::read::table_cell::{Container, DecimalSign};
    use crate::model::ReferenceKind;

    #[test]
    fn cells_are_brought_into_form() {
        let cases = outcomes![
            "2026-03-15" "\u{a0}2026-03-15 " "2026/03/15" "15.03.2026" "March 15, 2026"
            "15 Mar 2026" "15-Mar-2026" "2026-03-15T00:00:00" "2026-03-15 00:00:00.000"
            "2026-03-15T00:00:00Z" "03/15/2026" "15/3/2026" "15-3-2026" "2026-03-15T00:00:00+00:00"
            "2026-03-15 0:00" => (ValueKind::Date, Ok("2026-03-15"));
            " \u{a0}" => (ValueKind::Date, Ok(""));
            "2026-3-5" "20260305" "5.3.2026" => (ValueKind::Date, Ok("2026-03-05"));
            "20261305" => (ValueKind::Date, Err("write a date as"));
            "15.03.26" "3/4/26" => (ValueKind::Date, Err("no year of four digits"));
            "2026-03-15T09:30:00" "2026-03-15T00:00:00.5" "2026-03-15T23:59:59Z"
                => (ValueKind::Date, Err("write only the date, `2026-03-15`"));
            "2026-03-15T00:00:00+02:00" "2026-03-15T00:00:00-00:30" "2026-03-15T24:00:00"
                => (ValueKind::Date, Err("write only the date"));
            "5/5/2026" => (ValueKind::Date, Ok("2026-05-05"));
            "03/04/2026" "12/11/2025" => (ValueKind::Date, Err("may be day/month or month/day"));
            "31/31/2026" "2026-02-30" "29.02.2026" "02/29/2026" "29.02.1900" "31.11.2025"
            "15/3/0999" "15.3.999" "2026-W11-7" "4609" "460960"
                => (ValueKind::Date, Err("write a date as YYYY-MM-DD, such as 2026-03-15"));
            "46096" => (ValueKind::Date, Err("is the number of a day"));
            "TBD"
                => (ValueKind::Date, Err("leave the cell empty, and use the date's status to say why"));
            "-" => (ValueKind::Date, Err("leave the cell empty"));
            "29.02.2024" "29/02/2024" => (ValueKind::Date, Ok("2024-02-29"));
            "29.02.2000" => (ValueKind::Date, Ok("2000-02-29"));
            "31.12.2025" "12/31/2025" "31/12/2025" => (ValueKind::Date, Ok("2025-12-31"));
            "12/13/2025" "13/12/2025" => (ValueKind::Date, Ok("2025-12-13"));
            "12/12/2025" => (ValueKind::Date, Ok("2025-12-12"));
            "1'234" "1,234" "1\u{202f}234" => (ValueKind::Integer, Err("`1234`"));
            "1’234’567" "1 234 567" => (ValueKind::Integer, Err("`1234567`"));
            "1'23" => (ValueKind::Integer, Ok("1'23"));
            "1234'567" => (ValueKind::Integer, Ok("1234'567"));
            "5.00" "5.0000" "5" "5.0" => (ValueKind::Integer, Ok("5"));
            "5.5" => (ValueKind::Integer, Ok("5.5"));
            "5." => (ValueKind::Integer, Ok("5."));
            "1,234.567" => (ValueKind::Integer, Ok("1,234.567"));
            "1'234" "1’234" "1 234" => (ValueKind::Number, Err("`1234`"));
            "1 234 567" => (ValueKind::Number, Err("`1234567`"));
            "1 234,567"
                => (ValueKind::Number, Err("has several separators; write digits and at most one decimal point"));
            "1'234.567" "1 234.5" => (ValueKind::Number, Err("has several separators"));
            "1,234.567,890" "1234.567,8" "1,2345,678" "1,23,4" "1,234,5"
                => (ValueKind::Number, Err("several commas or points"));
            "1,234.567" "1234.567" => (ValueKind::Number, Ok("1234.567"));
            "123,456" => (ValueKind::Number, Err("may be 123456 or 123.456"));
            "1234,567"
                => (ValueKind::Number, Err("has a decimal comma; write a decimal point, `1234.567`"));
            "1.234.567,8"
                => (ValueKind::Number, Err("has a decimal comma; write a decimal point, `1234567.8`"));
            "1.234.567" => (ValueKind::Number, Err("groups digits by points; write `1234567`"));
            "1,234,567.89" => (ValueKind::Number, Ok("1234567.89"));
            ",5" => (ValueKind::Number, Err("`.5`"));
            "verdadeiro" "True" "wahr" "VRAI" " x " => (ValueKind::Flag, Ok("TRUE"));
            "HAYIR" "FAŁSZ" "Nein" => (ValueKind::Flag, Ok("FALSE"));
            "'x" => (ValueKind::Flag, Ok("'x"));
            "2024.000" => (ValueKind::Integer, Ok("2024"));
            "0.000" => (ValueKind::Integer, Ok("0"));
            "5.0.0" => (ValueKind::Integer, Ok("5.0.0"));
            "2024,0"
                => (ValueKind::Integer, Err("has a decimal comma; write only the digits, `2024`, or add --decimal comma"));
            "2024,5" => (ValueKind::Integer, Ok("2024,5"));
            "1,000" "1.000" => (ValueKind::Integer, Err("`1000`"));
            "1.23E+05" => (ValueKind::Integer, Err("loses digits"));
            "05" => (ValueKind::Integer, Ok("05"));
            "twelve" => (ValueKind::Integer, Ok("twelve"));
            "N/A" => (ValueKind::Integer, Err("leave the cell empty"));
            "4.2" => (ValueKind::Number, Ok("4.2"));
            "12,5" => (ValueKind::Number, Err("`12.5`"));
            "1,234" => (ValueKind::Number, Err("may be 1234 or 1.234"));
            "1,234.5" => (ValueKind::Number, Ok("1234.5"));
            "1.234,50"
                => (ValueKind::Number, Err("has a decimal comma; write a decimal point, `1234.50`, or add --decimal comma"));
            "1,234,567" => (ValueKind::Number, Ok("1234567"));
            "4.125" => (ValueKind::Number, Ok("4.125"));
            "0.125" => (ValueKind::Number, Ok("0.125"));
            "45%" => (ValueKind::Number, Err("without `%`"));
            "1e3" => (ValueKind::Number, Ok("1e3"));
            "o" => (ValueKind::Flag, Ok("o"));
            " a " => (ValueKind::Text, Ok(" a "));
            "\u{a0}a b\u{a0}" => (ValueKind::Text, Ok("\u{a0}a b\u{a0}"));
            "a\u{a0}b" => (ValueKind::Text, Ok("a\u{a0}b"));
            "N/A" => (ValueKind::Text, Ok("N/A"));
            "a; b " => (ValueKind::Links(ReferenceKind::Tag), Ok("a; b "));
            " check " => (ValueKind::DateStatus(&["check"]), Ok("check"));
        ];
        for (cell, (kind, expected)) in cases {
            match (normalize(kind, cell, &Notation::default()), expected) {
                (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{kind:?} {cell:?}"),
                (Err(message), Err(expected)) => {
                    assert!(message.contains(expected), "{kind:?} {cell:?}: {message}")
                }
                (read, expected) => panic!("{kind:?} {cell:?}: {read:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn notation_decides_between_two_meanings_of_a_cell() {
        let semicolons = Notation {
            has_semicolons: true,
            ..Notation::default()
        };
        let comma = Notation {
            decimal: Some(DecimalSign::Comma),
            ..Notation::default()
        };
        let price = Notation {
            is_price: true,
            ..Notation::default()
        };
        let sheet = Notation {
            container: Container::Sheet,
            is_price: true,
            ..Notation::default()
        };
        let number = Notation {
            is_number: true,
            is_price: true,
            ..Notation::default()
        };
        let decimal = |sign| Notation {
            decimal: Some(sign),
            has_semicolons: true,
            ..Notation::default()
        };
        let dates = |order| Notation {
            dates: Some(order),
            ..Notation::default()
        };
        let cases = cases![
            ValueKind::Number, "3.000", semicolons, Err("may be 3000 or 3,");
            ValueKind::Number, "3,000", semicolons, Err("may be 3000 or 3,");
            ValueKind::Number, "2,5", semicolons, Ok("2.5");
            ValueKind::Number, "0,125", semicolons, Ok("0.125");
            ValueKind::Number, "3.5", semicolons, Ok("3.5");
            ValueKind::Number, "3000", semicolons, Ok("3000");
            ValueKind::Number, "1.234.567", semicolons, Ok("1234567");
            ValueKind::Number, "1.234.567,8", semicolons, Ok("1234567.8");
            ValueKind::Number, "1.234,50", comma, Ok("1234.50");
            ValueKind::Number, "2.500", price, Err("may be 2500 or 2.5");
            ValueKind::Number, "2.50", price, Ok("2.50");
            ValueKind::Number, "71.917", price, Ok("71.917");
            ValueKind::Number, "71.917", sheet, Err("may be 71917 or 71.917");
            ValueKind::Number, "2.125", number, Ok("2.125");
            ValueKind::Integer, "1.234", number, Ok("1.234");
            ValueKind::Integer, "5.0", number, Ok("5");
            ValueKind::Year, "2024,0", semicolons, Ok("2024");
            ValueKind::Year, "2024.0", semicolons, Ok("2024");
            ValueKind::Integer, "5,000", semicolons, Err("`5000`");
            ValueKind::Integer, "2024,5", semicolons, Ok("2024,5");
            ValueKind::Year, "2024,00", decimal(DecimalSign::Comma), Ok("2024");
            ValueKind::Integer, "5,000", decimal(DecimalSign::Comma), Ok("5");
            ValueKind::Integer, "5.000", decimal(DecimalSign::Comma), Err("`5000`");
            ValueKind::Year, "2024.0", decimal(DecimalSign::Comma), Ok("2024");
            ValueKind::Year, "2024,0", decimal(DecimalSign::Point), Ok("2024");
            ValueKind::Integer, "5.000", decimal(DecimalSign::Point), Ok("5");
            ValueKind::Number, "3.000", decimal(DecimalSign::Comma), Ok("3000");
            ValueKind::Number, "145,004", decimal(DecimalSign::Comma), Ok("145.004");
            ValueKind::Number, "3.000", decimal(DecimalSign::Point), Ok("3.000");
            ValueKind::Number, "3,000", decimal(DecimalSign::Point), Ok("3000");
            ValueKind::Number, "3,00", decimal(DecimalSign::Point), Ok("3.00");
            ValueKind::Date, "03/04/2026", dates(DateOrder::Dmy), Ok("2026-04-03");
            ValueKind::Date, "03/04/2026", dates(DateOrder::Mdy), Ok("2026-03-04");
            ValueKind::Date, "15/03/2026", dates(DateOrder::Mdy), Err("not a date in the order --dates mdy");
            ValueKind::Date, "15.03.2026", dates(DateOrder::Mdy), Ok("2026-03-15");
        ];
        for (kind, cell, notation, expected) in cases {
            match (normalize(kind, cell, &notation), expected) {
                (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{kind:?} {cell:?}"),
                (Err(message), Err(expected)) => {
                    assert!(message.contains(expected), "{kind:?} {cell:?}: {message}")
                }
                (read, expected) => panic!("{kind:?} {cell:?}: {read:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn words_are_read_in_any_case() {
        let status = ValueKind::DateStatus(&["not_found", "check"]);
        let access = ValueKind::Choice(&["subscription", "hybrid", "open"]);
        let cases = outcomes![
            "Not Found" "NOT-FOUND" => (status, "not_found");
            "Check " => (status, "check");
            "cheque" => (status, "cheque");
            "open" => (status, "open");
            "OA" => (status, "OA");
            "Open access" "Gold" "GOLD OA" "OA" "Fully Open Access" "Open access (gold)"
            "Open Access " => (access, "open");
            "Hybrid (Open Choice)" "Hybrid (OA option) " "hybrid OA" => (access, "hybrid");
            "Subscription-based" "Subscription (closed access)" => (access, "subscription");
            "Subscription (hybrid)" => (access, "Subscription (hybrid)");
            "Open (from 2027)" => (access, "Open (from 2027)");
            "Hybrid, then open" => (access, "Hybrid, then open");
            "(hybrid)" => (access, "(hybrid)");
            "Green" => (access, "Green");
            "" => (access, "");
        ];
        for (cell, (kind, expected)) in cases {
            assert_eq!(
                normalize(kind, cell, &Notation::default()).as_deref(),
                Ok(expected),
                "{cell:?}"
            );
        }
        let nested = format!("open{}{}", "(open".repeat(300_000), ")".repeat(300_000));
        assert_eq!(
            normalize(access, &nested, &Notation::default()).as_deref(),
            Ok(&*nested)
        );
    }

    #[test]
    fn issns_get_their_usual_form() {
        let usual = |issn: &str| Some((issn.to_owned(), false));
        let cases = outcomes![
            "2434-561X" "2434561X" " 2434 561x\u{a0}" "2434\u{2013}561X" "2434\u{2010}561x"
            "2434\u{2212}561x" "ISSN 2434-561X" "issn: 2434561x" => usual("2434-561X");
            "ISSN 3785955" "3785955" => Some(("0378-5955".to_owned(), true));
            "284793" => Some(("0028-4793".to_owned(), true));
            "284794" "3785954" "0000000" "378595X" "2434-5610" "24345610" "ISSN" "eISSN 2434-561X"
            "2434-561X, 0378-5955" "N/A" "" => None;
        ];
        for (cell, expected) in cases {
            assert_eq!(normalize_issn("issn_online", cell), expected, "{cell:?}");
        }
        assert_eq!(normalize_issn("name", "2434561X"), None);
    }
}
