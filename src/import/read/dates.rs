//! Dates in cells: in digits, or with the name of the month in one of six languages. A range of dates may be in one
//! cell.

use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;
use serde::Deserialize;

use super::words::{has_word, pattern};
use crate::import::lint::is_placeholder;
use crate::model::fold::{fold, is_blank};
use crate::model::message::{Message, message};
use crate::model::time::{NOT_A_DATE, parse_date};

/// The names of the months and their abbreviations, folded: English, German, French, Spanish, Italian, Portuguese.
/// `mar` is March, or Tuesday (mardi, martes, martedì).
const MONTHS: [&str; 12] = [
    "january jan januar janner janvier janv enero ene gennaio gen janeiro",
    "february feb februar febr fevrier fevr fev febrero febbraio febb fevereiro",
    "march marz maerz mrz mars marzo marco",
    "april apr avril avr abril abr aprile",
    "may mai mayo maggio mag maio",
    "june jun juni juin junio giugno giu junho",
    "july jul juli juillet juill juil julio luglio lug julho",
    "august aug aout agosto ago",
    "september sept sep septembre septiembre setiembre settembre sett setembro set",
    "october oct oktober okt octobre octubre ottobre ott outubro out",
    "november nov novembre noviembre novembro",
    "december dec dezember dez decembre diciembre dic dicembre dezembro",
];

/// The weekdays, like [`MONTHS`]. `-feira` is removed before.
const WEEKDAYS: [&str; 7] = [
    "monday mon montag mo lundi lun lunes lunedi segunda seg",
    "tuesday tues tue dienstag di mardi martes martedi terca ter",
    "wednesday wed mittwoch mi mercredi mer miercoles mie mercoledi quarta qua",
    "thursday thurs thur thu donnerstag do jeudi jeu jueves jue giovedi gio quinta qui",
    "friday fri freitag fr vendredi ven viernes vie venerdi sexta sex",
    "saturday sat samstag sonnabend sa samedi sam sabado sab sabato",
    "sunday sun sonntag so dimanche dim domingo dom domenica",
];

/// Words between two dates.
const TO: &str = "to until till through thru bis au al all' a ate";

/// Words and signs without a meaning: articles, prepositions, and the ends of ordinal numbers.
const FILLERS: &str =
    "the of from den der vom von le l' du el de del il dal dall' o st nd rd th er °";

/// The time of day of a date that has none, with no time zone or UTC.
static MIDNIGHT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^0?0:00(:00)?(\.0*)?[Zz]*(\+00:00)*$"));

/// The parts of a text with dates.
static PARTS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)[0-9]+|[\p{Alphabetic}'°]+|."));

/// The weekdays in `2026年3月15日(日)`.
static WEEKDAY_SIGNS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\([月火水木金土日祝월화수목금토일]\)"));

/// A date such as `20260315`.
static EIGHT_DIGITS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b([0-9]{4})([0-9]{2})([0-9]{2})\b"));

/// The order of day, month and year in a date.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::VariantNames,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DateOrder {
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
}

/// The forms of a day in a text of [`words_of`], without the weekday before it. `y`, `m` and `d` are year, month and day.
/// `a` and `b` are day and month in any order. Signs next to the name of a month have no meaning. A year of two digits behind
/// `March 12` may be a day.
const FORMS: [&str; 12] = [
    r"(?<d>\d\d?)[-/., ]+m(?<m>\d+)(?:[-/., ]+(?<y>[1-9]\d{3}|\d\d?))?",
    r"m(?<m>\d+)[-/., ]+(?<d>\d\d?)(?:[-/., ]+(?:(?<y>[1-9]\d{3})|(?<unclear>\d\d?)))?",
    r"(?<y>[1-9]\d{3})[-/., ]+m(?<m>\d+)[-/., ]+(?<d>\d\d?)",
    r"(?<y>[1-9]\d{3}) - (?<m>\d\d?) - (?<d>\d\d?)",
    r"(?:(?<y>[1-9]\d{3}) - )?(?<m>\d\d?) 月 (?<d>\d\d?)",
    r"(?<y>[1-9]\d{3}) / (?<m>\d\d?) / (?<d>\d\d?)",
    r"(?<y>[1-9]\d{3}) \. (?<m>\d\d?) \. (?<d>\d\d?)",
    r"(?<d>\d\d?) \. (?<m>\d\d?)(?: \. (?<y>[1-9]\d{3}|\d\d?))?",
    r"(?<a>\d\d?) / (?<b>\d\d?) / (?<y>[1-9]\d{3}|\d\d?)",
    r"(?<a>\d\d?) - (?<b>\d\d?) - (?<y>[1-9]\d{3}|\d\d?)",
    r"(?<d>\d\d?)(?: ,)? (?<y>[1-9]\d{3})",
    r"(?<d>\d\d?)",
];

/// The [`FORMS`], perhaps with a weekday, whose number is `w`.
static DAYS: LazyLock<[Regex; 12]> = LazyLock::new(|| {
    FORMS.map(|form| pattern(&format!(r"^(?:w(?<w>\d) (?:[.,] )*)?{form}(?: \.)?$")))
});

/// A day whose year and month may be missing, as in the first part of `12 to 15 March 2026`.
#[derive(Clone, Copy)]
struct Day {
    year: Option<i16>,
    month: Option<i16>,
    day: Option<i16>,
    /// From 1 for Monday.
    weekday: Option<i16>,
}

/// Returns a range of one day in the form `YYYY-MM-DD`; empty for none. The error says what to write instead.
pub(super) fn single_day(range: Option<(Date, Date)>) -> Result<String, Message> {
    match range {
        None => Ok(String::new()),
        Some((first, last)) if first == last => Ok(first.to_string()),
        Some(_) => {
            Err("is a range of dates, but the field is one date; write its date as YYYY-MM-DD, or map the column \
                        to both fields in a recipe"
                .into())
        }
    }
}

/// Returns the first and the last day of a range of dates. A single date is both. Returns `None` for an empty cell. The
/// error says what to write instead.
pub(in crate::import) fn date_range(
    cell: &str,
    order: Option<DateOrder>,
) -> Result<Option<(Date, Date)>, Message> {
    // Longer texts are no dates, and all their parts would be compared.
    const MAX_BYTES: usize = 150;
    let cell = cell.trim_matches(is_blank);
    if cell.is_empty() {
        return Ok(None);
    }
    if let Ok(date) = parse_date(cell) {
        return Ok(Some((date, date)));
    }
    if is_placeholder("", cell) {
        return Err(
            "is not a date; leave the cell empty, and use the date's status to say why, such as `not_found`".into()
        );
    }
    if cell.len() <= MAX_BYTES
        && let Some(words) = words_of(&folded(cell))
        && let Some((first, last)) = read_range(&words, order)?
    {
        if last < first {
            return Err(
                "ends before it begins; write the first day first, and both years if they differ"
                    .into(),
            );
        }
        return Ok(Some((first, last)));
    }
    if let Some((day, time)) = cell.split_once(['T', ' '])
        && let Ok(date) = parse_date(day)
    {
        return if MIDNIGHT.is_match(time) {
            Ok(Some((date, date)))
        } else {
            Err(message!("has a time of day; write only the date, `{day}`"))
        };
    }
    if cell.len() == 5 && cell.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("is the number of a day in a spreadsheet; format the column as a date, or write YYYY-MM-DD".into());
    }
    Err(NOT_A_DATE.into())
}

/// Returns true for the name of a month, folded.
pub(super) fn month_named(word: &str) -> bool {
    word == "mar" || number_in(&MONTHS, word).is_some()
}

/// Returns the number of the words with this one, from 1.
fn number_in(table: &[&str], word: &str) -> Option<usize> {
    let at = table.iter().position(|words| has_word(words, word))?;
    Some(at + 1)
}

/// Returns a text in its folded form, without `-feira`, and with `2026-3月15` for `2026年3月15日(日)`.
pub(super) fn folded(text: &str) -> String {
    let text = fold(text).replace("-feira", "");
    WEEKDAY_SIGNS
        .replace_all(&text, "")
        .replace(['年', '년', '~', '〜'], "-")
        .replace('월', "月")
        .replace(['日', '일'], " ")
}

/// Returns the words and signs of a folded text, each after a blank: numbers, signs, `m3` for a month, `w4` for a weekday,
/// and `>` for a word between two dates. `mar` may be both a month and a weekday. Returns `None` if a part belongs to no
/// date.
fn words_of(text: &str) -> Option<String> {
    let text = EIGHT_DIGITS.replace_all(text, "$1-$2-$3");
    let pieces = PARTS.find_iter(&text).map(|piece| piece.as_str());
    let pieces = pieces.filter(|piece| !piece.chars().all(is_blank) && !has_word(FILLERS, piece));
    let words = pieces.map(|piece| match piece {
        "-" | "/" | "." | "," | "月" | "mar" => Some(piece.to_owned()),
        number if number.parse::<u64>().is_ok() => Some(number.to_owned()),
        to if has_word(TO, to) => Some(">".to_owned()),
        name => match number_in(&MONTHS, name) {
            Some(month) => Some(format!("m{month}")),
            None => Some(format!("w{}", number_in(&WEEKDAYS, name)?)),
        },
    });
    let words: Option<Vec<String>> = words.collect();
    Some(words?.join(" "))
}

/// Returns the first and the last day. A single date is both.
fn read_range(words: &str, order: Option<DateOrder>) -> Result<Option<(Date, Date)>, Message> {
    if let Some(day) = read_day(words, order)?
        && let Some(date) = day.date()?
    {
        return Ok(Some((date, date)));
    }
    for (at, _) in words.match_indices(['>', '-', '/']) {
        if let Some(first) = read_day(words[..at].trim_end(), order)?
            && let Some(last) = read_day(words[at + 1..].trim_start(), order)?
        {
            let range = (first.completed(last).date()?, last.completed(first).date()?);
            if let (Some(first), Some(last)) = range {
                return Ok(Some((first, last)));
            }
        }
    }
    Ok(None)
}

/// Reads a day, perhaps without month and year. Returns `None` for anything else.
fn read_day(words: &str, order: Option<DateOrder>) -> Result<Option<Day>, Message> {
    let words = match words.strip_prefix("mar ") {
        Some(rest) if rest.contains('m') => format!("w2 {rest}"),
        _ => words.to_owned(),
    };
    let words = words.replace("mar", "m3");
    let Some(found) = DAYS.iter().find_map(|form| form.captures(&words)) else {
        return Ok(None);
    };
    let number = |name| found.name(name)?.as_str().parse::<i16>().ok();
    let mut day = Day {
        year: number("y"),
        month: number("m"),
        day: number("d"),
        weekday: number("w"),
    };
    let is_short = day.year.is_some_and(|year| year < 100);
    if is_short && order.is_none() || number("unclear").is_some() {
        return Err(
            "has no year of four digits; write a date as YYYY-MM-DD, such as 2026-03-15, or set --dates, so that \
                    26 means 2026"
                .into(),
        );
    }
    if is_short {
        // The option says that the source has years of two digits. They are of this century.
        day.year = day.year.map(|year| 2000 + year);
    }
    if let (Some(first), Some(second)) = (number("a"), number("b")) {
        let is_month_first = is_month_first(first, second, order)?;
        day.month = Some(if is_month_first { first } else { second });
        day.day = Some(if is_month_first { second } else { first });
    }
    Ok(Some(day))
}

impl Day {
    /// Returns the day with the year and the month of another one, if its own are missing.
    fn completed(self, by: Day) -> Day {
        Day {
            year: self.year.or(by.year),
            month: self.month.or(by.month),
            ..self
        }
    }

    /// Returns the date; `None` if a part is missing or the calendar does not have it.
    fn date(self) -> Result<Option<Date>, Message> {
        let (Some(year), Some(month), Some(day)) = (self.year, self.month, self.day) else {
            return Ok(None);
        };
        let [month, day] = [month, day].map(|number| i8::try_from(number).unwrap_or(0));
        let Ok(date) = Date::new(year, month, day) else {
            return Ok(None);
        };
        let right = date.weekday();
        if self
            .weekday
            .is_some_and(|named| named != i16::from(right.to_monday_one_offset()))
        {
            return Err(message!(
                "names another weekday, but {date} is a {right:?}; write the right date as YYYY-MM-DD"
            ));
        }
        Ok(Some(date))
    }
}

/// Returns true if of two numbers the first is the month.
fn is_month_first(first: i16, second: i16, order: Option<DateOrder>) -> Result<bool, Message> {
    match order {
        Some(DateOrder::Dmy) if second <= 12 => Ok(false),
        Some(DateOrder::Mdy) if first <= 12 => Ok(true),
        Some(order) => Err(message!("is not a date in the order --dates {order}; write a date as YYYY-MM-DD")),
        None if first > 12 || first == second => Ok(false),
        None if second > 12 => Ok(true),
        None => {
            Err("may be day/month or month/day; write a date as YYYY-MM-DD, such as 2026-03-15, or set the order with \
                     --dates dmy or --dates mdy"
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_single(cell: &str, order: Option<DateOrder>) -> Result<String, Message> {
        single_day(date_range(cell, order)?)
    }

    fn read(cell: &str, order: Option<DateOrder>) -> String {
        match date_range(cell, order) {
            Ok(None) => String::new(),
            Ok(Some((first, last))) if first == last => first.to_string(),
            Ok(Some((first, last))) => format!("{first} {last}"),
            Err(message) => message.text,
        }
    }

    #[test]
    fn dates_are_read_in_six_languages() {
        let cases = outcomes![
            "Sept 5, 2026" => "2026-09-05";
            "5th March 2026" "05MAR2026" "2026-Mar-05" "Thursday, 5 March 2026" "Thu 5 Mar 2026"
            "Do., 5. März 2026" "Donnerstag, den 5.3.2026" "5 DE MARZO DEL 2026"
            "el 5 de marzo de 2026" => "2026-03-05";
            "Mar 15 2026" "15 March, 2026" "15/Mar/2026" "15. 3. 2026" => "2026-03-15";
            "the 1st of March, 2026." "le 1er mars 2026" "1\u{ba} de março de 2026" => "2026-03-01";
            "Thu, 03/05/2026" => "may be day/month";
            "5. Jänner 2026" => "2026-01-05";
            "mar. 3 mars 2026" => "2026-03-03";
            "mardi 3 août 2027" => "2027-08-03";
            "quarta-feira, 4 de março de 2026" "mié. 4 mar. 2026" => "2026-03-04";
            "l'8 marzo 2026" => "2026-03-08";
            "martedì 1° dicembre 2026" "mar 1 dic 2026" => "2026-12-01";
            "Wednesday, 5 March 2026" "mar. 5 mars 2026"
                => "names another weekday, but 2026-03-05 is a Thursday";
            "15 Mar 26" "March 12-15" => "has no year of four digits";
            "Mar 15 '26" "31 April 2026" "32 March 2026" "March 2026" "15 March" "15 March 2026 -"
            "- 15 March 2026" "15 March 2026, 10:00" "15 March 0999" "15 March or April 2026"
            "15 03 2026" "15.03-2026" "spring 2026" "3/4" "12.03" => "write a date as";
            "2026-03-15 ?" => "has a time of day";
            "" => "";
        ];
        for (cell, expected) in cases {
            let read = read(cell, None);
            assert!(read.starts_with(expected), "{cell:?}: {read}");
            assert!(read.is_empty() == expected.is_empty(), "{cell:?}: {read}");
        }
        let long = "15 March 2026".repeat(100_000);
        assert!(read(&long, None).starts_with("write a date as"));
    }

    #[test]
    fn years_of_two_digits_need_an_order() {
        let cases = cases![
            "21.01.27", DateOrder::Dmy, Ok("2027-01-21");
            "3/4/26", DateOrder::Mdy, Ok("2026-03-04");
            "15-Mar-26", DateOrder::Dmy, Ok("2026-03-15");
            "15.13.26", DateOrder::Dmy, Err("write a date as");
            "15/13/26", DateOrder::Dmy, Err("is not a date in the order");
            "03.04.26", DateOrder::Mdy, Ok("2026-04-03");
            "26-03-15", DateOrder::Dmy, Ok("2015-03-26");
        ];
        for (cell, order, expected) in cases {
            let read = read_single(cell, Some(order));
            match expected {
                Ok(date) => assert_eq!(read.as_deref(), Ok(date), "{cell}"),
                Err(message) => assert!(read.unwrap_err().contains(message), "{cell}"),
            }
        }
    }

    #[test]
    fn ranges_are_read() {
        const RANGE: &str = "2026-03-12 2026-03-15";
        let cases = outcomes![
            "12–15 March 2026" "12-15 March 2026" "12 \u{2014} 15 March, 2026"
            "12th to 15th March 2026" "from 12 until 15 March 2026" "Thu 12 - Sun 15 March 2026"
            "March 12-15, 2026" "March 12 - March 15, 2026" "March 12-15 2026" "Mar. 12–15, 2026"
            "12.–15.03.2026" "12. - 15. März 2026" "vom 12. bis 15. März 2026" "12.03.-15.03.2026"
            "12.03.2026 - 15.03.2026" "2026-03-12 - 2026-03-15" "2026-03-12/2026-03-15"
            "2026-03-12 to 2026-03-15" "2026-03-12/15" "12-15/03/2026" "du 12 au 15 mars 2026"
            "del 12 al 15 de marzo de 2026" "de 12 a 15 de março de 2026" "dal 12 al 15 marzo 2026"
            "dal 12 all'15 marzo 2026" "quinta-feira, 12 a domingo, 15 de março de 2026" => RANGE;
            "Thu 12 - Sat 15 March 2026" => "names another weekday, but 2026-03-15 is a Sunday";
            "12/3/2026 - 15/3/2026" => "may be day/month or month/day";
            "mar. 3 mars – jeu. 5 mars 2026" => "2026-03-03 2026-03-05";
            "30 Sep - 2 Oct 2026" => "2026-09-30 2026-10-02";
            "Mar 30 – Apr 2, 2026" => "2026-03-30 2026-04-02";
            "30 Dec 2025 – 2 Jan 2026" => "2025-12-30 2026-01-02";
            "30 Dec – 2 Jan 2026" "15-12 March 2026" => "ends before it begins";
            "12–12 March 2026" "12 March 2026" "2026-03-12" => "2026-03-12";
            "30-31 April 2026" "12-15 March" "12-15-18 March 2026" "12-15, 2026" "March-April 2026"
            "12, 15 March 2026" => "write a date as";
            "12.03.26-15.03.26" => "has no year of four digits";
            "TBD" => "is not a date; leave the cell empty";
        ];
        for (cell, expected) in cases {
            let text = read(cell, None);
            assert!(text.starts_with(expected), "{cell:?}: {text}");
            let single = read_single(cell, None).unwrap_or_else(|message| message.text);
            let expected = if expected == RANGE {
                "is a range of dates"
            } else {
                expected
            };
            assert!(
                single.starts_with(expected) || single.starts_with("is a range"),
                "{cell:?}: {single}"
            );
        }
        let ordered = |cell, order| read(cell, Some(order));
        assert_eq!(ordered("12/03/2026 - 15/03/2026", DateOrder::Dmy), RANGE);
        assert_eq!(ordered("03/12/2026 - 03/15/2026", DateOrder::Mdy), RANGE);
        assert_eq!(ordered("12.03.-15.03.2026", DateOrder::Mdy), RANGE);
        assert_eq!(
            ordered("03.04.2026", DateOrder::Mdy),
            ordered("03.04.26", DateOrder::Mdy)
        );
        let text = ordered("12/03/2026 - 15/03/2026", DateOrder::Mdy);
        assert!(text.starts_with("is not a date in the order --dates mdy"));
    }

    #[test]
    fn no_word_has_two_meanings() {
        let tables = [&MONTHS[..], &WEEKDAYS[..], &[TO, FILLERS, "mar"][..]].concat();
        let mut words: Vec<&str> = tables.iter().flat_map(|words| words.split(' ')).collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
        assert!(
            words.iter().all(|word| fold(word) == *word),
            "the words are folded"
        );
    }

    #[test]
    fn every_date_is_read_back_in_every_format() {
        #[rustfmt::skip]
        let patterns = [
            "{y}-{n}-{d}", "{y}/{n}/{d}", "{y}.{n}.{d}", "{d}.{n}.{y}", "{d}. {n}. {y}", "{d} {m} {y}", "{d}. {m} {y}", "{d} {m}, {y}", "{m} {d}, {y}",
            "{m} {d} {y}", "{d}th {m} {y}", "{d}-{m}-{y}", "{d}/{m}/{y}", "{y}-{m}-{d}", "{d} de {m} de {y}", "le {d} {m} {y}", "{w}, {d} {m} {y}", "{w}., {m} {d}, {y}",
        ];
        let names = |table: &[&'static str], at: i8| -> Vec<&'static str> {
            table[usize::try_from(at - 1).unwrap()].split(' ').collect()
        };
        let mut date = jiff::civil::date(1000, 1, 1);
        let mut round = 0;
        while let Ok(next) = date.checked_add(jiff::Span::new().days(367)) {
            round += 1;
            let months = names(&MONTHS, date.month());
            let weekdays = names(&WEEKDAYS, date.weekday().to_monday_one_offset());
            for (at, pattern) in patterns.iter().enumerate() {
                let (month, weekday) = (
                    months[(round + at) % months.len()],
                    weekdays[(round + at) % weekdays.len()],
                );
                let text = pattern
                    .replace("{y}", &date.year().to_string())
                    .replace("{n}", &date.month().to_string());
                let text = text
                    .replace("{d}", &date.day().to_string())
                    .replace("{m}", &month.to_uppercase());
                let text = text.replace("{w}", weekday);
                assert_eq!(read(&text, None), date.to_string(), "{text:?}");
            }
            for (order, text) in cases![
                DateOrder::Dmy, format!("{}/{}/{}", date.day(), date.month(), date.year());
                DateOrder::Mdy, format!("{}-{}-{}", date.month(), date.day(), date.year());
            ] {
                assert_eq!(read(&text, Some(order)), date.to_string(), "{text:?}");
            }
            let last = date
                .checked_add(jiff::Span::new().days(i64::try_from(round % 40).unwrap()))
                .unwrap();
            let range = if last == date {
                date.to_string()
            } else {
                format!("{date} {last}")
            };
            for to in [" - ", "–", " to ", " bis ", "/"] {
                assert_eq!(read(&format!("{date}{to}{last}"), None), range);
            }
            if date.first_of_month() == last.first_of_month() {
                let (first, month) = (date.day(), months[round % months.len()]);
                for text in [
                    format!("{first}-{} {month} {}", last.day(), last.year()),
                    format!("{month} {first}-{}, {}", last.day(), last.year()),
                    format!("{first}.-{}.{}.{}", last.day(), last.month(), last.year()),
                ] {
                    assert_eq!(read(&text, None), range, "{text:?}");
                }
            }
            date = next;
        }
        assert!(round > 8_000);
    }
}
