//! Cells of lists of others that are no plain values. Each function recognizes one kind.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::cells::normalize_issn;
use super::dates::{folded, month_named};
use super::words::{has_word, pattern};
use crate::import::lint::is_placeholder;
use crate::model::country::{is_code, is_country, known_country};
use crate::model::fold::{comparable, is_blank};

/// A time such as `23:59`, `23:59:00-12:00`, `11:59pm`, `5 pm`, `17h` or `17h30`, with the words and signs around it, such as
/// `at` and `UTC+2`.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?xi) (?: (?-i:T) | (?: \b (?: at | by | um ) \b | [\s,;(] )* \b )
        (?: [0-9]{1,2} (?: [:h][0-9]{2} (?: [^0-9\s] \S* )? | h\b | \s? [ap]\.?m\b\.? ) | (?: noon | midnight ) \b )
        (?: [\s,;()]* \b (?: [ap]\.?m | aoe | anywhere | earth | utc | gmt | z | cet | cest | mez | mesz | est | edt | et | pst
            | pdt | pt | cst | cdt | ct | mst | mdt | mt | bst | ist | jst | kst | sgt | hkt | eet | eest | wet | west | aest
            | aedt | acst | awst | nzst | nzdt | msk | local | time | hours | hrs | h | uhr | heures | on ) \b [.0-9+:−-]* )* \)?",
    )
});

/// Returns a date without its time of day. Returns `None` if there is no time.
pub(super) fn without_time(cell: &str) -> Option<String> {
    let Cow::Owned(date) = TIME.replace_all(cell, "") else {
        return None;
    };
    let date = date.trim_matches(|sign: char| is_blank(sign) || ",;-–|()".contains(sign));
    (!date.is_empty()).then(|| date.to_owned())
}

/// Words of a date that is not fixed.
const OPEN_WORDS: &str = "tbc tba tbd to be announced confirmed determined decided defined date dates coming soon pending \
                          provisional provisionally tentative tentatively expected early mid late end beginning of in q1 q2 \
                          q3 q4 h1 h2 quarter spring summer autumn fall winter";

/// A date that is not fixed: a placeholder, or a year with or without a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenDate {
    pub year: Option<i16>,
}

/// Recognizes a date that is not fixed, such as `TBC`, `June 2026`, `Q3 2026` or `2026-01?`.
pub(super) fn open_date(cell: &str) -> Option<OpenDate> {
    if cell.len() > 100 {
        return None;
    }
    if is_placeholder("", cell) {
        return Some(OpenDate { year: None });
    }
    let folded = folded(cell);
    let words = folded.split(|sign: char| !sign.is_alphanumeric() || sign == '月');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut year = None;
    let mut months = 0;
    for word in &words {
        match (word.len(), word.parse::<i16>()) {
            (4, Ok(1900..=2100)) if year.is_none_or(|year| year == *word) => year = Some(*word),
            (1 | 2, Ok(1..=12)) => months += 1,
            (_, Err(_)) if month_named(word) || has_word(OPEN_WORDS, word) => {}
            _ => return None,
        }
    }
    // `2026-01` and `01/2026` are months. With the name of a month a number is a day.
    let is_month = months == 0 || months == 1 && words.len() == 2 && year.is_some();
    let year = year.and_then(|year| year.parse().ok());
    (is_month && !words.is_empty()).then_some(OpenDate { year })
}

/// How a meeting takes place, behind its place.
static MODE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?xi) \s* (?: [(\[&+/,;|] | \sand\s | \s[–-]\s ) \s* (?: and\W* )?
        (?: (?: in\W*person | virtual ) \W* (?: and\W* )? )?
        (?: hybrid | virtual | online | on-?site | in\W?person | face\W?to\W?face | live\W?stream )
        (?: \W? (?: event | meeting | congress | conference | format ) )? [\s)\](\[&+/,;|–-]* $",
    )
});

/// Returns a place without `(hybrid)`, `& Virtual` and the like behind it.
pub(super) fn without_mode(place: &str) -> &str {
    let mut place = place.trim_matches(is_blank);
    while let Some(mode) = MODE.find(place).filter(|mode| mode.start() > 0) {
        place = place[..mode.start()]
            .trim_end_matches(|sign| is_blank(sign) || ")]([&+/,;-–|".contains(sign));
    }
    place
}

/// States and provinces, by their country. Abbreviations that are also the code of a country are not among them.
const STATES: [(&str, &str); 3] = [
    (
        "United States",
        "Alabama|Alaska|AK|Arizona|Arkansas|California|Calif.|Colorado|Connecticut|CT|Delaware|District of Columbia|DC|D.C.\
         |Florida|FL|Fla.|Hawaii|HI|Idaho|Illinois|Indiana|Iowa|IA|Kansas|KS|Kentucky|Louisiana|Maine|Maryland\
         |Massachusetts|Mass.|Michigan|MI|Minnesota|Mississippi|Missouri|Montana|Nebraska|Nevada|NV|New Hampshire|NH\
         |New Jersey|NJ|New Mexico|NM|New York|NY|N.Y.|North Carolina|North Dakota|ND|Ohio|OH|Oklahoma|OK|Oregon|OR\
         |Pennsylvania|Rhode Island|RI|South Carolina|South Dakota|Tennessee|Tenn.|Texas|TX|Utah|UT|Vermont|VT|Virginia\
         |Washington State|West Virginia|WV|Wisconsin|WI|Wyoming|WY",
    ),
    (
        "Canada",
        "Alberta|AB|British Columbia|Manitoba|MB|New Brunswick|Newfoundland|Newfoundland and Labrador|Nova Scotia|NS\
         |Ontario|ON|Ont.|Prince Edward Island|PEI|Quebec|QC|Saskatchewan|SK",
    ),
    (
        "Australia",
        "New South Wales|NSW|Victoria|VIC|Queensland|QLD|South Australia|Western Australia|Tasmania|TAS|Northern Territory\
         |Australian Capital Territory|ACT",
    ),
];

/// The abbreviations of states that are also codes of countries.
const TWO_MEANINGS: &str =
    "AL AR AZ CA CO DE GA ID IL IN KY LA MA MD ME MN MO MS MT NC NE PA SC SD TN VA NL PE SA SK BC";

/// Returns the country that the end of a place means, and whether this end is a state or province of it. The name of a
/// country means itself. Returns `None` for a word with two meanings, or none.
pub(super) fn country_of_end(text: &str) -> Option<(&str, bool)> {
    // `Atlanta, Georgia` is in the United States.
    if text == "Georgia" || has_word(TWO_MEANINGS, text) {
        return None;
    }
    let country = STATES.iter().find(|(_, states)| {
        let mut states = states.split('|');
        states.any(|state| same_state(state, text))
    });
    if let Some((country, _)) = country {
        return Some((country, true));
    }
    let name = known_country(text)?;
    Some((if is_code_or_nation(text) { name } else { text }, false))
}

/// Returns true if a text is this state. An abbreviation is in capitals.
fn same_state(state: &str, text: &str) -> bool {
    let is_short = state.len() < 4;
    state == text || !is_short && comparable(state) == comparable(text)
}

fn is_code_or_nation(text: &str) -> bool {
    const NATIONS: [&str; 4] = ["england", "scotland", "wales", "northernireland"];
    is_code(text) || NATIONS.contains(&&*comparable(text)) && is_country(text)
}

/// The first item of a list that is written as in a program.
static ITEM: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^(?:'([^']*)'|"([^"]*)")\s*(?:,\s*|$)"#));

/// Returns the items of a list that is written as in a program, such as `['a', "b"]`.
pub(super) fn listed(text: &str) -> Option<Vec<String>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    let mut items = Vec::new();
    let mut rest = inner.trim();
    while !rest.is_empty() {
        let found = ITEM.captures(rest)?;
        let item = found.get(1).or_else(|| found.get(2))?;
        items.push(item.as_str().to_owned());
        rest = &rest[found[0].len()..];
    }
    Some(items)
}

/// Returns the ISSNs of a text that contains nothing else. Marks of direction count as blanks. The text may be a list as
/// in a program.
pub(super) fn issns(text: &str) -> Option<Vec<String>> {
    let words = text.split(|sign| is_blank(sign) || is_mark(sign) || ",;/|[]'\"".contains(sign));
    let words = words.filter(|word| !word.is_empty());
    let issns = words.map(|word| normalize_issn("issn_print", word).map(|(issn, _)| issn));
    issns.collect()
}

/// Returns true for a text that fills the place of an ISSN: zeros.
pub(super) fn is_zero(text: &str) -> bool {
    let mut digits = text
        .chars()
        .filter(|sign| sign.is_alphanumeric())
        .peekable();
    digits.peek().is_some() && digits.all(|digit| digit == '0')
}

/// Returns true for an invisible mark, such as those of the direction of text.
pub(super) fn is_mark(sign: char) -> bool {
    matches!(sign, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_left_out() {
        let cases = outcomes![
            "2026-01-15 23:59 AoE" "2026-01-15T23:59:00-12:00" "2026-01-15T12:00Z"
            "2026-01-15 23:59:59" => "2026-01-15";
            "23 Jan 2026, 23:59 (UTC-12)" => "23 Jan 2026";
            "January 15, 2026 at 11:59 p.m. EST" "January 15, 2026, 5 pm ET" => "January 15, 2026";
            "11:59pm PST on 15 January 2026" "15 January 2026, noon"
            "15 January 2026 (midnight CET)" "15 January 2026 23:59 UTC+01:00" => "15 January 2026";
            "15.01.2026 17:00 Uhr" => "15.01.2026";
            "15/01/2026 17h30" => "15/01/2026";
            "12 May 2026 09:00 - 15 May 2026 17:00" => "12 May 2026 - 15 May 2026";
            "15 January 2026" "12-15 March 2026" "23:59" "" => "";
        ];
        for (cell, expected) in cases {
            assert_eq!(without_time(cell).unwrap_or_default(), expected, "{cell}");
        }
    }

    #[test]
    fn open_dates_are_recognized() {
        let year = |year| Some(OpenDate { year: Some(year) });
        let none = Some(OpenDate { year: None });
        let cases = outcomes![
            "TBC" "tba" "To be announced" "Date to be confirmed" "N/A" "-" "coming soon" "June" => none;
            "June 2026" "June 2026 (TBC)" "2026 TBD" "Q3 2026" "Spring 2026" "mid-June 2026"
            "June/July 2026" "Juni 2026" "2026" "2026-01" "2026-01?" "01/2026" => year(2026);
            "TBA 2027" => year(2027);
            "2026-13" "June 15" "15 June 2026" "2026-01-15" "June 2026 or May 2027" "2025/2026"
            "Vienna" "12" "" => None;
        ];
        for (cell, expected) in cases {
            let expected = if cell.is_empty() { none } else { expected };
            assert_eq!(open_date(cell), expected, "{cell}");
        }
    }

    #[test]
    fn modes_behind_a_place_are_left_out() {
        let cases = outcomes![
            "Málaga, Spain (hybrid)" => "Málaga, Spain";
            "Toronto, Canada & Virtual" "Toronto, Canada and Online" => "Toronto, Canada";
            "Rome, Italy / Online" "Rome, Italy [Hybrid event]" "Rome, Italy - hybrid"
            "Rome, Italy, in-person & virtual" "Rome, Italy (in person)" "Rome, Italy" => "Rome, Italy";
            "Trinidad and Tobago" => "Trinidad and Tobago";
            "Buenos Aires (Argentina)" => "Buenos Aires (Argentina)";
            "Online" => "Online";
            "(hybrid)" => "(hybrid)";
            "" => "";
        ];
        for (place, expected) in cases {
            assert_eq!(without_mode(place), expected, "{place}");
        }
    }

    #[test]
    fn lists_of_programs_are_read() {
        let items = |text| listed(text).map(|items| items.join("|"));
        let cases = [
            ("['a', 'b']", Some("a|b")),
            (r#"["a","b"]"#, Some("a|b")),
            (r#"['a', "b's"]"#, Some("a|b's")),
            ("['a']", Some("a")),
            ("[]", Some("")),
            ("[a]", None),
            ("['a' 'b']", None),
            ("['a", None),
            ("a; b", None),
        ];
        for (text, expected) in cases {
            assert_eq!(items(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn ends_of_places_are_recognized() {
        let shown = |text| match country_of_end(text) {
            Some((country, true)) => format!("in {country}"),
            Some((country, false)) => country.to_owned(),
            None => "unclear".to_owned(),
        };
        let cases = outcomes![
            "Spain" => "Spain";
            "USA" => "USA";
            "BE" => "Belgium";
            "AUT" => "Austria";
            "Scotland" "Northern Ireland" => "United Kingdom";
            "California" "TX" "D.C." => "in United States";
            "Québec" "ON" => "in Canada";
            "NSW" => "in Australia";
            "Georgia" "IL" "DE" "tx" "Nowhere" => "unclear";
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
