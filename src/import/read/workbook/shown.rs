//! The text that a spreadsheet displays for a number, and whether it has the same meaning as the stored number.

use jiff::civil::Date;

use super::decimal::Decimal;
use super::format::{DatePart, FormatToken, NumberFormat, Section};

/// The display of a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShownNumber {
    /// A number equal to the stored one. `None` if the text is the same too.
    Number(Option<String>),
    /// A date or time.
    Date,
    /// The number with a unit: the whole text, and the unit.
    Unit(String, String),
    /// Something else, with the remedy.
    Other(String, &'static str),
}

const PERCENT: &str = "write the right number in a cell without a percentage format";
const CURRENCY: &str = "this is not an amount in US dollars; write one in a cell with a number format";
const SCALED: &str = "format the cell as a number that is not shown in thousands or millions";
pub(super) const UNIT: &str = "format the cell as a number without other signs, and check its value";
const ROUNDED: &str = "write the right number, or make the cell show all of its digits";
const UNSHOWN: &str = "format the cell as a number, and check its value";

/// Returns the display of a number.
pub(super) fn show(format: &NumberFormat, number: f64) -> ShownNumber {
    let Some((section, hides_sign)) = choose(&format.numbers, number) else {
        return ShownNumber::Other(String::new(), UNSHOWN);
    };
    if section.is_date() {
        return ShownNumber::Date;
    }
    let has = |wanted: &FormatToken| section.tokens.contains(wanted);
    let has_digits = section.tokens.iter().any(|token| matches!(token, FormatToken::Digit(_)));
    let numeral = match () {
        () if has(&FormatToken::General) && !has_digits => {
            Numeral { text: format!("{}", number.abs()), is_exact: true }
        }
        () if !has_digits => {
            let literals = literals(section);
            // Accounting formats display zero as a dash.
            let is_zero = number == 0.0 && literals.contains(['-', '–', '—']);
            let shown = collapse_blanks(&literals);
            return if is_zero { ShownNumber::Number(Some(shown)) } else { ShownNumber::Other(shown, UNSHOWN) };
        }
        () if has(&FormatToken::Exponent) => scientific(section, number),
        () if has(&FormatToken::Slash) => fraction(section, number),
        () => decimal(section, number),
    };
    let Framed { text, has_inner_signs } = frame(section, &numeral.text);
    let is_negative = number < 0.0;
    let sign = if is_negative && !hides_sign { "-" } else { "" };
    let text = collapse_blanks(&format!("{sign}{text}"));
    let literals = literals(section);
    let loses_sign = is_negative && hides_sign && !section.is_colored && !literals.contains(['-', '(', '−', '–']);
    match () {
        () if has(&FormatToken::Percent) => ShownNumber::Other(text, PERCENT),
        () if scale(section) > 0 => ShownNumber::Other(text, SCALED),
        () => match unit(section, &literals) {
            Unit::Currency => ShownNumber::Other(text, CURRENCY),
            _ if has_inner_signs || loses_sign => ShownNumber::Other(text, UNIT),
            _ if !numeral.is_exact => ShownNumber::Other(text, ROUNDED),
            Unit::Other(unit) => ShownNumber::Unit(text, unit),
            Unit::None => ShownNumber::Number((text != format!("{number}")).then_some(text)),
        },
    }
}

/// Returns the display of a text, if it differs from the text.
pub(super) fn show_text(format: &NumberFormat, text: &str) -> Option<String> {
    let section = format.text.as_ref()?;
    let mut shown = String::new();
    for token in &section.tokens {
        match token {
            FormatToken::Text | FormatToken::General => shown.push_str(text),
            FormatToken::Literal(literal) => shown.push_str(literal),
            _ => {}
        }
    }
    (shown.trim() != text.trim()).then_some(shown)
}

/// Returns the section for a number, and whether it displays negative numbers without a minus sign.
fn choose(sections: &[Section], number: f64) -> Option<(&Section, bool)> {
    if sections.iter().any(|section| section.condition.is_some()) {
        let holds = |section: &&Section| section.condition.is_none_or(|condition| condition.holds(number));
        return sections.iter().find(holds).map(|section| (section, false));
    }
    match sections {
        [_, negative, ..] if number < 0.0 => Some((negative, true)),
        [_, _, zero, ..] if number == 0.0 => Some((zero, false)),
        [first, ..] => Some((first, false)),
        [] => None,
    }
}

/// The displayed digits, and whether they are exact.
struct Numeral {
    text: String,
    is_exact: bool,
}

/// Returns the number of divisions by 1,000: the commas after the last digit before the point.
fn scale(section: &Section) -> i64 {
    let whole =
        section.tokens.split(|token| matches!(token, FormatToken::Point | FormatToken::Exponent)).next().unwrap_or(&[]);
    let is_digit = |token: &FormatToken| matches!(token, FormatToken::Digit(_));
    let count = |tokens: &[FormatToken]| {
        let last = tokens.iter().rposition(is_digit).map_or(tokens.len(), |at| at + 1);
        tokens[last..].iter().filter(|token| **token == FormatToken::Comma).count()
    };
    // `0.0,,` divides too.
    let behind = if whole.len() < section.tokens.len() { count(&section.tokens) } else { 0 };
    i64::try_from(count(whole) + behind).unwrap_or(0)
}

/// Returns the digit placeholders before and after the point.
fn places(section: &Section) -> (Vec<char>, Vec<char>) {
    let (mut whole, mut decimals, mut is_behind) = (Vec::new(), Vec::new(), false);
    for token in &section.tokens {
        match token {
            FormatToken::Point => is_behind = true,
            FormatToken::Exponent => break,
            FormatToken::Digit(place) if is_behind => decimals.push(*place),
            FormatToken::Digit(place) => whole.push(*place),
            _ => {}
        }
    }
    (whole, decimals)
}

fn decimal(section: &Section, number: f64) -> Numeral {
    let (whole_places, decimal_places) = places(section);
    let percents = section.tokens.iter().filter(|token| **token == FormatToken::Percent).count();
    let scale = scale(section);
    let mut decimal = Decimal::new(number);
    decimal.shift(2 * i64::try_from(percents).unwrap_or(0) - 3 * scale);
    let is_exact = !decimal.round(decimal_places.len());
    let (mut whole, mut fraction) = decimal.parts();
    let least = whole_places.iter().position(|place| *place == '0').map_or(0, |first| whole_places.len() - first);
    whole = format!("{}{whole}", "0".repeat(least.saturating_sub(whole.len())));
    let first = section.tokens.iter().position(|token| matches!(token, FormatToken::Digit(_)));
    let is_grouped = scale == 0 && first.is_some_and(|first| section.tokens[first..].contains(&FormatToken::Comma));
    if is_grouped {
        let bytes = whole.len();
        let grouped = whole.chars().enumerate().map(|(at, digit)| {
            if at > 0 && (bytes - at).is_multiple_of(3) { format!(",{digit}") } else { digit.to_string() }
        });
        whole = grouped.collect();
    }
    let least = decimal_places.iter().rposition(|place| *place == '0').map_or(0, |last| last + 1);
    fraction.push_str(&"0".repeat(least.saturating_sub(fraction.len())));
    let point = if section.tokens.contains(&FormatToken::Point) { "." } else { "" };
    Numeral { text: format!("{whole}{point}{fraction}"), is_exact }
}

fn scientific(section: &Section, number: f64) -> Numeral {
    let (whole, decimals) = places(section);
    let text = format!("{:.*e}", decimals.len(), number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(("+", exponent), |digits| ("-", digits));
    let is_exact = Decimal::new(number).len() <= decimals.len() + whole.len().min(1);
    Numeral { text: format!("{mantissa}E{sign}{digits:0>2}"), is_exact }
}

/// Returns the nearest fraction. The format limits the digits of its denominator.
fn fraction(section: &Section, number: f64) -> Numeral {
    let slash = section.tokens.iter().position(|token| *token == FormatToken::Slash).unwrap_or(0);
    let places = section.tokens[slash..].iter().filter(|token| matches!(token, FormatToken::Digit(_))).count();
    let highest: u32 = 10_u32.pow(u32::try_from(places.clamp(1, 3)).unwrap_or(1)) - 1;
    let (whole, rest) = (number.abs().trunc(), number.abs().fract());
    let error = |below: &u32| (rest - (rest * f64::from(*below)).round() / f64::from(*below)).abs();
    let below = (1..=highest).min_by(|one, other| error(one).total_cmp(&error(other))).unwrap_or(1);
    let above = (rest * f64::from(below)).round();
    let text = if above == 0.0 { format!("{whole}") } else { format!("{whole} {above}/{below}") };
    Numeral { text, is_exact: error(&below) < 1e-15 }
}

struct Framed {
    text: String,
    /// Whether other signs than blanks and apostrophes are between the digits.
    has_inner_signs: bool,
}

/// Adds the literals of the section around and between the digits.
fn frame(section: &Section, numeral: &str) -> Framed {
    let is_digit = |token: &FormatToken| matches!(token, FormatToken::Digit(_) | FormatToken::General);
    let first = section.tokens.iter().position(is_digit).unwrap_or(0);
    let last = section.tokens.iter().rposition(is_digit).unwrap_or(0);
    let text_of = |tokens: &[FormatToken]| -> String {
        tokens
            .iter()
            .map(|token| match token {
                FormatToken::Literal(text) => text.as_str(),
                FormatToken::Percent => "%",
                _ => "",
            })
            .collect()
    };
    let inner = &section.tokens[first..=last];
    let is_plain = |letter: char| letter.is_whitespace() || matches!(letter, '\'' | '’');
    let is_single = section.tokens.contains(&FormatToken::Slash) || section.tokens.contains(&FormatToken::Exponent);
    let between = if is_single { String::new() } else { text_of(inner) };
    let has_inner_signs = between.chars().any(|letter| !is_plain(letter));
    let numeral = if between.is_empty() { numeral.to_owned() } else { interleave(inner, numeral) };
    Framed {
        text: format!("{}{numeral}{}", text_of(&section.tokens[..first]), text_of(&section.tokens[last + 1..])),
        has_inner_signs,
    }
}

/// Inserts literals between the digits, from the last digit to the first.
fn interleave(tokens: &[FormatToken], numeral: &str) -> String {
    let mut left: Vec<char> = numeral.chars().collect();
    let mut shown: Vec<char> = Vec::new();
    for token in tokens.iter().rev() {
        match token {
            FormatToken::Digit(_) | FormatToken::Point => shown.extend(left.pop()),
            FormatToken::Literal(text) => shown.extend(text.chars().rev()),
            _ => {}
        }
    }
    left.iter().chain(shown.iter().rev()).collect()
}

/// The unit that a section displays.
enum Unit {
    /// No unit, or US dollars.
    None,
    Currency,
    Other(String),
}

fn unit(section: &Section, literals: &str) -> Unit {
    let is_neutral = |letter: char| letter.is_whitespace() || "-+()'’–−".contains(letter);
    let unit: String = literals.chars().filter(|letter| !is_neutral(*letter)).collect();
    let is_code = unit.len() == 3 && unit.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_symbol =
        |letter: char| matches!(letter, '$' | '¢' | '£' | '¤' | '¥' | '\u{20a0}'..='\u{20cf}' | '￥' | '￡');
    match unit.as_str() {
        _ if section.is_foreign_dollar => Unit::Currency,
        "" | "$" | "USD" | "US$" | "$US" | "USD$" => Unit::None,
        _ if is_code || unit.contains(is_symbol) => Unit::Currency,
        _ => Unit::Other(unit),
    }
}

fn literals(section: &Section) -> String {
    let texts = section.tokens.iter().filter_map(|token| match token {
        FormatToken::Literal(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Trims the text, and replaces each run of blanks by one.
fn collapse_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the display of a date, if it is not the full date.
pub(super) fn show_day(format: &NumberFormat, serial: f64, day: Date) -> Option<String> {
    let (section, _) = choose(&format.numbers, serial)?;
    let (mut has_year, mut has_month, mut has_day) = (false, false, false);
    for part in section.date_parts() {
        match part {
            // With two digits, 1930 and 2030 look the same.
            DatePart::Year(count) => has_year |= count > 2 || (2000..2100).contains(&day.year()),
            DatePart::Month(_) => has_month = true,
            DatePart::Day(count) => has_day |= count < 3,
            _ => {}
        }
    }
    let is_whole = has_year && has_month && has_day && !section.is_foreign_calendar;
    let is_foreign = section.date_parts().any(|part| part == DatePart::Era);
    (!is_whole || is_foreign).then(|| shown_day(section, day))
}

fn shown_day(section: &Section, day: Date) -> String {
    let mut shown = String::new();
    for token in &section.tokens {
        match token {
            FormatToken::Literal(text) => shown.push_str(text),
            FormatToken::Slash => shown.push('/'),
            FormatToken::Point => shown.push('.'),
            FormatToken::Comma => shown.push(','),
            FormatToken::Date(part) => {
                let pattern = match part {
                    DatePart::Year(1 | 2) => "%y",
                    DatePart::Year(_) => "%Y",
                    DatePart::Month(1) => "%-m",
                    DatePart::Month(2) => "%m",
                    DatePart::Month(4) => "%B",
                    DatePart::Month(_) => "%b",
                    DatePart::Day(1) => "%-d",
                    DatePart::Day(2) => "%d",
                    DatePart::Day(3) => "%a",
                    DatePart::Day(_) => "%A",
                    DatePart::Hour(1) => "0",
                    DatePart::Hour(_) | DatePart::Minute(_) | DatePart::Second(_) => "00",
                    DatePart::AmPm => "AM",
                    DatePart::Era => "…",
                };
                shown.push_str(&day.strftime(pattern).to_string());
            }
            _ => {}
        }
    }
    collapse_blanks(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(code: &str) -> NumberFormat {
        NumberFormat::read(code).unwrap()
    }

    #[test]
    fn numbers_are_shown_as_in_spreadsheets() {
        let same = |text: &str| ShownNumber::Number(Some(text.to_owned()));
        let unit = |text: &str, unit: &str| ShownNumber::Unit(text.to_owned(), unit.to_owned());
        let other = |text: &str, remedy| ShownNumber::Other(text.to_owned(), remedy);
        let accounting = "_-* #,##0.00\\ \"€\"_-;\\-* #,##0.00\\ \"€\"_-;_-* \"-\"??\\ \"€\"_-;_-@_-";
        let dollars = "_($* #,##0.00_);_($* (#,##0.00);_($* \"-\"??_);_(@_)";
        let cases = [
            ("General", 0.1 + 0.2, ShownNumber::Number(None)),
            ("@", 2.5, ShownNumber::Number(None)),
            ("0", 3.0, ShownNumber::Number(None)),
            ("0.00", 3.0, same("3.00")),
            ("0.0", 0.1 + 0.2, same("0.3")),
            ("#,##0", 1_234_567.0, same("1,234,567")),
            ("#\\ ##0", 1_234.0, same("1 234")),
            ("0000", 901.0, same("0901")),
            ("0", 2.5, other("3", ROUNDED)),
            ("0.0", 4.25, other("4.3", ROUNDED)),
            ("#,##0", 0.4, other("0", ROUNDED)),
            ("0%", 0.12, other("12%", PERCENT)),
            ("0.0\\ %", 0.125, other("12.5 %", PERCENT)),
            ("#,##0,", 3_000_000.0, other("3000", SCALED)),
            ("0.0,,\"M\"", 3_500_000.0, other("3.5M", SCALED)),
            ("$#,##0", 3_000.0, same("$3,000")),
            ("[$$-409]#,##0.00", 3_000.0, same("$3,000.00")),
            ("[$USD] 0", 3_000.0, same("USD 3000")),
            ("[$$-1009]0", 3_000.0, other("$3000", CURRENCY)),
            ("#,##0\\ [$€-407]", 3_000.0, other("3,000 €", CURRENCY)),
            ("[$EUR]\\ 0", 3_000.0, other("EUR 3000", CURRENCY)),
            ("0\" CHF\"", 3_000.0, other("3000 CHF", CURRENCY)),
            ("€0", 3_000.0, other("€3000", CURRENCY)),
            (accounting, 3_000.0, other("3,000.00 €", CURRENCY)),
            (accounting, -3_000.0, other("- 3,000.00 €", CURRENCY)),
            (dollars, 3_000.0, same("$ 3,000.00")),
            (dollars, -3_000.0, same("$ (3,000.00)")),
            (dollars, 0.0, same("$ -")),
            ("0\" days\"", 5.0, unit("5 days", "days")),
            ("0\" days\"", 5.5, other("6 days", ROUNDED)),
            ("\"J\"0", 5.0, unit("J5", "J")),
            ("0000\\-0000", 280_836.0, other("0028-0836", UNIT)),
            ("0\\.0", 12.0, other("1.2", UNIT)),
            ("0;0", -5.0, other("5", UNIT)),
            ("0;[Red]0", -5.0, same("5")),
            ("0;-0", -5.0, ShownNumber::Number(None)),
            ("0", -5.0, ShownNumber::Number(None)),
            ("\"Yes\";;\"No\"", 1.0, other("Yes", UNSHOWN)),
            (";;;", 1.0, other("", UNSHOWN)),
            ("[>=1000]0,\"k\";0", 5_000.0, other("5k", SCALED)),
            ("[>=1000]0,\"k\";0", 5.0, ShownNumber::Number(None)),
            ("[>=1000]0", 5.0, other("", UNSHOWN)),
            ("0.00E+00", 123_000.0, same("1.23E+05")),
            ("0.00E+00", 123_456.0, other("1.23E+05", ROUNDED)),
            ("0E-0", 0.002, same("2E-03")),
            ("# ?/?", 2.5, same("2 1/2")),
            ("# ?/?", 0.3, other("0 2/7", ROUNDED)),
            ("General\" kg\"", 5.0, unit("5 kg", "kg")),
            ("dd.mm.yyyy", 46_096.0, ShownNumber::Date),
        ];
        for (code, number, expected) in cases {
            assert_eq!(show(&format(code), number), expected, "{code} {number}");
        }
    }

    #[test]
    fn days_are_shown_whole_or_in_part() {
        let cases = [
            ("dd.mm.yyyy", (2026, 3, 15), None),
            ("m/d/yyyy", (2026, 3, 15), None),
            ("[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy", (2026, 3, 15), None),
            ("d-mmm-yy", (2026, 3, 15), None),
            ("d-mmm-yy", (1930, 3, 15), Some("15-Mar-30")),
            ("yyyy/m/d h:mm", (2026, 3, 15), None),
            ("mmm yy", (2026, 3, 1), Some("Mar 26")),
            ("mmm d", (2026, 3, 15), Some("Mar 15")),
            ("yyyy", (2026, 1, 1), Some("2026")),
            ("dddd", (2026, 3, 15), Some("Sunday")),
            ("mmmm\\ yyyy", (2026, 3, 1), Some("March 2026")),
            ("h:mm", (2026, 3, 15), Some("0:00")),
            ("[$-D07041E]d/m/yyyy", (2026, 3, 15), Some("15/3/2026")),
            ("[$-411]ge.m.d", (2026, 3, 15), Some("……3.15")),
        ];
        for (code, (year, month, day), expected) in cases {
            let day = Date::new(year, month, day).unwrap();
            let shown = show_day(&format(code), 46_096.0, day);
            let expected = expected.map(str::to_owned);
            if code.contains("ge") {
                assert!(shown.is_some(), "{code}");
            } else {
                assert_eq!(shown, expected, "{code}");
            }
        }
    }

    #[test]
    fn texts_are_shown_as_they_are() {
        let cases =
            [("General", None), ("@", None), ("0;-0;0;@", None), ("_(@_)", None), ("\"ISSN \"@", Some("ISSN x"))];
        for (code, expected) in cases {
            assert_eq!(show_text(&format(code), "x").as_deref(), expected, "{code}");
        }
        assert_eq!(show_text(&format(";;;"), "x").as_deref(), Some(""));
    }
}
