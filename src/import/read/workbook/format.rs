//! Number formats: whether a cell shows its stored value. Each format code is parsed once, not for each cell.

use std::mem;
use std::sync::LazyLock;

use calamine::Style;
use jiff::civil::Date;
use regex::Regex;

use crate::import::read::words::{has_word, pattern};

/// Why a cell is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Refusal {
    pub shows: &'static str,
    pub remedy: &'static str,
}

const PERCENT: Refusal = Refusal {
    shows: "a percentage",
    remedy: "write the right number in a cell without a percentage format",
};
const CURRENCY: Refusal = Refusal {
    shows: "an amount that is not in US dollars",
    remedy: "write one in US dollars in a cell with a number format",
};
const SCALED: Refusal = Refusal {
    shows: "thousands or millions",
    remedy: "format the cell as a number that is not shown in thousands or millions",
};
pub(super) const UNIT: Refusal = Refusal {
    shows: "other signs than those of a number",
    remedy: "format the cell as a number without other signs, and check its value",
};
pub(super) const ROUNDED: Refusal = Refusal {
    shows: "fewer digits than it has",
    remedy: "write the right number, or make the cell show all of its digits",
};
pub(super) const UNSHOWN: Refusal = Refusal {
    shows: "no number",
    remedy: "format the cell as a number, and check its value",
};
const CONDITIONAL: Refusal = Refusal {
    shows: "some numbers in another way",
    remedy: "format the cell as a number without conditions",
};
pub(super) const PARTIAL_DATE: Refusal = Refusal {
    shows: "only a part of the date",
    remedy: "write the date in a cell that shows day, month and year, such as 2026-03-15",
};
pub(super) const OTHER_TEXT: Refusal = Refusal {
    shows: "another text",
    remedy: "format the cell as text, and check its value",
};

/// A number format.
#[derive(Debug)]
pub(super) struct CellFormat {
    /// The format code, for messages.
    pub code: String,
    /// The sections for positive numbers, negative numbers and zero. No field has negative numbers.
    sections: Vec<Section>,
    /// Whether texts are shown as they are.
    pub shows_text: bool,
}

impl CellFormat {
    /// Reads the number format of a style. The default is the general format.
    pub fn of_style(style: &Style) -> CellFormat {
        let format = style.number_format.as_ref();
        let code = format.map_or("General", |format| &*format.format_code);
        // calamine has other codes for some built-in formats. Those that depend on Excel's language have the English code.
        let id = format.and_then(|format| format.format_id);
        CellFormat::new(match (id, code) {
            (Some(14), "mm-dd-yy") => "m/d/yyyy",
            (Some(22), "m/d/yy h:mm") => "m/d/yyyy h:mm",
            _ => code,
        })
    }

    /// Reads a format code, such as `#,##0.00;[Red]-#,##0.00`.
    pub fn new(code: &str) -> CellFormat {
        let mut sections = read_sections(code);
        sections.truncate(4);
        let text = match sections.len() {
            4 => sections.pop(),
            _ => sections.pop_if(|section| section.has("@")),
        };
        let shows_text = text.is_none_or(|text| text.has("@G") && text.literals.trim().is_empty());
        if sections.is_empty() {
            // The text format shows numbers as the general format does.
            sections = read_sections("General");
        }
        CellFormat {
            code: code.to_owned(),
            sections,
            shows_text,
        }
    }

    /// Returns the section for a number, unless it depends on a condition.
    pub fn section(&self, number: f64) -> Result<&Section, Refusal> {
        match &*self.sections {
            sections if sections.iter().any(|section| section.has("<")) => Err(CONDITIONAL),
            [_, _, zero, ..] if number == 0.0 => Ok(zero),
            sections => Ok(&sections[0]),
        }
    }

    /// Returns true if numbers are shown by the digits of their texts alone.
    pub fn is_plain(&self) -> bool {
        ["general", "@", "0"].contains(&&*self.code.to_ascii_lowercase())
    }
}

const DIGITS: &str = "0#?";

/// The signs of dates and times, also of eras. `A` is AM or PM.
const DATES: &str = "ymdhsgebA";

/// `m` next to hours or seconds means minutes.
static MINUTES: LazyLock<Regex> = LazyLock::new(|| pattern("h[^ymdsgeb]*m+|m+[^ymdhgeb]*s"));

/// A unit that is the code of a currency, or contains the sign of one.
static CURRENCY_UNIT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[A-Z]{3}$|\p{Sc}"));

/// The parsed code of a section.
#[derive(Debug, Default)]
pub(super) struct Section {
    literals: String,
    /// The signs in their order. `G` is the general format, `E` an exponent, `<` a condition such as `>=100`, and `x` a
    /// literal, unless that is a blank or an apostrophe.
    signs: String,
}

fn read_sections(code: &str) -> Vec<Section> {
    static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
        pattern("(?is)\"[^\"]*\"?|\\\\.?|[_*].?|\\[[^\\]]*\\]?|general|am/pm|a/p|e[+-]|.")
    });
    let mut sections = Vec::new();
    let mut section = Section::default();
    for token in TOKENS.find_iter(code).map(|token| token.as_str()) {
        let (first, rest) = token.split_at(token.chars().next().map_or(0, char::len_utf8));
        let sign = first.to_ascii_lowercase();
        match &*sign {
            ";" => sections.push(mem::take(&mut section)),
            "\"" => section.take_literals(rest.trim_end_matches("\"")),
            "\\" => section.take_literals(rest),
            // `_` is a blank as wide as the next character. `*` fills the cell with the next character.
            "_" | "*" => section.signs.push(' '),
            "[" => section.take_bracket(rest.trim_end_matches(']')),
            _ if !rest.is_empty() => section.signs += &first.to_ascii_uppercase(),
            "." | "," | "%" | "/" | "@" => section.signs += first,
            _ if DIGITS.contains(&sign) || DATES.contains(&sign) => section.signs += &sign,
            _ => section.take_literals(first),
        }
    }
    sections.push(section);
    sections
}

impl Section {
    /// Returns true if the section has one of these signs.
    fn has(&self, signs: &str) -> bool {
        self.signs.contains(|sign| signs.contains(sign))
    }

    fn take_literals(&mut self, literals: &str) {
        self.literals += literals;
        let is_neutral = |letter: char| letter.is_whitespace() || matches!(letter, '\'' | '’');
        let signs = literals.chars();
        self.signs
            .extend(signs.map(|letter| if is_neutral(letter) { ' ' } else { 'x' }));
    }

    /// Adds the content of brackets: a currency, a language, a condition, an elapsed time or a colour.
    fn take_bracket(&mut self, content: &str) {
        if let Some(currency) = content.strip_prefix('$') {
            let (symbol, language) = currency.split_once('-').unwrap_or((currency, ""));
            // English and Spanish in the United States, by name or by hexadecimal number.
            let language = language.to_ascii_lowercase();
            let is_ours = language.is_empty() || has_word("409 en-us 540a es-us", &language);
            let is_foreign = symbol.contains('$') && !is_ours;
            self.take_literals(if is_foreign { "¤" } else { symbol });
        } else if content.starts_with(['<', '>', '=']) {
            self.signs.push('<');
        } else if content
            .trim_matches(['h', 'm', 's', 'H', 'M', 'S'])
            .is_empty()
        {
            self.signs.push('h');
        }
    }

    /// Returns true if the section shows a number as a date or a time.
    pub fn is_date(&self) -> bool {
        self.has(DATES)
    }

    /// Returns the unit that the section shows with a number, empty for US dollars and no unit. `text` has the digits of
    /// the number.
    pub fn unit_of(&self, number: f64, text: &str) -> Result<String, Refusal> {
        let decimals = |text: &str| text.split_once('.').map_or(0, |(_, after)| after.len());
        let shown = self.signs.replace([' ', 'x'], "");
        let has_digits = self.has(DIGITS);
        let has_zero = self.has("0");
        let has_dash = self.literals.contains(['-', '–', '—', '−']);
        let is_general = !has_digits && self.has("G");
        // A fraction, an exponent, or a text between digits.
        let digits = self.signs.trim_matches(|sign| !DIGITS.contains(sign));
        let is_divided = digits.contains('x') || self.has("/E");
        let is_negative = has_zero && (has_dash || self.literals.contains('('));
        Err(match self.unit() {
            _ if !has_digits && !has_dash && !is_general => UNSHOWN,
            _ if self.has("%") => PERCENT,
            // Commas after the last digit divide by 1,000.
            _ if shown.contains(",.") || shown.ends_with(',') => SCALED,
            None => CURRENCY,
            Some(_) if is_divided || is_negative => UNIT,
            // `#` shows nothing for zero, for which accounting formats show a dash.
            Some(_) if number == 0.0 && has_digits && !has_zero && !has_dash => UNSHOWN,
            Some(unit) if number == 0.0 || is_general => return Ok(unit),
            Some(_) if !has_digits || decimals(text) > decimals(&shown) => ROUNDED,
            Some(unit) => return Ok(unit),
        })
    }

    /// Returns the unit that the literals name, empty for US dollars, or `None` for another currency.
    fn unit(&self) -> Option<String> {
        let mut unit = self.literals.clone();
        unit.retain(|letter| !letter.is_whitespace() && !"-+()'’–−".contains(letter));
        match &*unit {
            "$" | "USD" | "US$" | "$US" | "USD$" => Some(String::new()),
            _ if CURRENCY_UNIT.is_match(&unit) => None,
            _ => Some(unit),
        }
    }

    /// Returns the year and the month of a date as far as the section shows them, unless it shows the whole date.
    pub fn part_of(&self, day: Date) -> Option<String> {
        let signs = MINUTES.replace_all(&self.signs, "h");
        let year_digits = signs.matches('y').count();
        let has_month = signs.contains('m');
        // More letters show the day of the week.
        let mut days = signs.split(|sign| sign != 'd').map(str::len);
        let has_day = days.any(|len| len == 1 || len == 2);
        // With two digits, 1930 and 2030 look the same.
        let has_year = year_digits > 2 || (2000..2100).contains(&day.year());
        match year_digits {
            0 => Some("TBD".to_owned()),
            _ if has_year && has_month && has_day => None,
            _ if has_month => Some(day.strftime("%Y-%m").to_string()),
            _ => Some(day.year().to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a format shows for a number, in a word or in those of the refusal.
    fn shown(code: &str, number: f64) -> String {
        let format = CellFormat::new(code);
        let section = match format.section(number) {
            Ok(section) if section.is_date() => return "date".to_owned(),
            Ok(section) => section,
            Err(refusal) => return refusal.shows.to_owned(),
        };
        match section.unit_of(number, &format!("{number}")) {
            Err(ROUNDED) => "rounded".to_owned(),
            Err(refusal) => refusal.shows.to_owned(),
            Ok(unit) if !unit.is_empty() => unit,
            Ok(_) if format.is_plain() => "same".to_owned(),
            Ok(_) => "equal".to_owned(),
        }
    }

    #[test]
    fn formats_show_numbers() {
        let accounting =
            "_-* #,##0.00\\ \"€\"_-;\\-* #,##0.00\\ \"€\"_-;_-* \"-\"??\\ \"€\"_-;_-@_-";
        let dollars = "_($* #,##0.00_);_($* (#,##0.00);_($* \"-\"??_);_(@_)";
        let (percent, currency, scaled) = (PERCENT.shows, CURRENCY.shows, SCALED.shows);
        let (signs, unshown) = (UNIT.shows, UNSHOWN.shows);
        let cases = [
            ("General", 0.1 + 0.2, "same"),
            ("general", 2.5, "same"),
            ("", 2.5, unshown),
            ("@", 2.5, "same"),
            ("0", 3.0, "same"),
            ("0.00", 3.0, "equal"),
            ("0.00", 3.25, "equal"),
            ("0.##", 3.5, "equal"),
            ("0.##", 3.125, "rounded"),
            ("0.0", 0.3, "equal"),
            ("#,##0", 1_234_567.0, "equal"),
            ("#,##0", 123.0, "equal"),
            ("#\\ ##0", 1_234.0, "equal"),
            ("# ##0", 1_234.0, "equal"),
            ("0000", 901.0, "equal"),
            ("0000", 2026.0, "equal"),
            ("0", 2.5, "rounded"),
            ("0.0", 4.25, "rounded"),
            ("#,##0", 0.4, "rounded"),
            ("0", 1e-9, "rounded"),
            ("0%", 0.12, percent),
            ("0.0\\ %", 0.125, percent),
            ("#,##0,", 3_000_000.0, scaled),
            ("0.0,,\"M\"", 3_500_000.0, scaled),
            ("0,.0", 3_500.0, scaled),
            ("$#,##0", 3_000.0, "equal"),
            ("[$$-409]#,##0.00", 3_000.0, "equal"),
            ("[$$-en-US]0", 3_000.0, "equal"),
            ("[$USD] 0", 3_000.0, "equal"),
            ("[$$-1009]0", 3_000.0, currency),
            ("[$$-en-CA]0", 3_000.0, currency),
            ("[$CA$-1009]0", 3_000.0, currency),
            ("#,##0\\ [$€-407]", 3_000.0, currency),
            ("[$EUR]\\ 0", 3_000.0, currency),
            ("0\" CHF\"", 3_000.0, currency),
            ("€0", 3_000.0, currency),
            (accounting, 3_000.0, currency),
            (accounting, 0.0, currency),
            (dollars, 3_000.0, "equal"),
            (dollars, 0.0, "equal"),
            ("0;-0;\"-\"", 0.0, "equal"),
            ("0\" days\"", 5.0, "days"),
            ("0\" days\"", 5.5, "rounded"),
            ("\"J\"0", 5.0, "J"),
            ("0000\\-0000", 280_836.0, signs),
            ("0\\.0", 12.0, signs),
            ("-0", 5.0, signs),
            ("(0)", 5.0, signs),
            ("+0", 5.0, "equal"),
            ("#", 0.0, unshown),
            ("#,###", 0.0, unshown),
            ("#,###.0", 0.0, "equal"),
            ("#,###", 5.0, "equal"),
            ("\"Yes\";;\"No\"", 1.0, unshown),
            (";;;", 1.0, unshown),
            ("0;-0;;@", 0.0, unshown),
            ("[>=1000]0,\"k\";0", 5.0, CONDITIONAL.shows),
            ("0;[=0]\"\";General", 5.0, CONDITIONAL.shows),
            ("0.00E+00", 123_000.0, signs),
            ("# ?/?", 2.5, signs),
            ("General\" kg\"", 5.0, "kg"),
            ("[Red]0", 5.0, "equal"),
            ("\"a;b\"0\\;", 1.0, "a;b;"),
            ("dd.mm.yyyy", 46_096.0, "date"),
            ("[h]:mm", 1.5, "date"),
            ("mm:ss.0", 1.5, "date"),
        ];
        for (code, number, expected) in cases {
            assert_eq!(shown(code, number), expected, "{code} {number}");
        }
    }

    #[test]
    fn dates_are_shown_whole_or_in_part() {
        let cases = outcomes![
            "dd.mm.yyyy" "YYYY\"m\"MM\\dDD" "m/d/yyyy" "dd/mm/yyyy hh:mm:ss"
            "[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy" "[$-1010409]d.m.yy" "d-mmm-yy" "yyyy/m/d h:mm"
                => (2026, true);
            "[$-409]d" "yyyy/d h:mm" "mmm yy" "[$-409]mmm\\ yy;@" "mmm d" "yyyy" "dddd"
            "dddd mmmm yyyy" "h:mm AM/PM" "[$-411]ge.m.d" => (2026, false);
            "d-mmm-yy" => (1930, false);
        ];
        for (code, (year, expected)) in cases {
            let format = CellFormat::new(code);
            let section = format.section(46_096.0).unwrap();
            assert!(section.is_date(), "{code}");
            let part = section.part_of(Date::new(year, 3, 15).unwrap());
            assert_eq!(part.is_none(), expected, "{code}");
        }
    }

    #[test]
    fn texts_are_shown_as_they_are() {
        let cases = outcomes![
            "General" "@" "0" "0;@" "0;-0;0;@" "_(@_)" "0;-0;\"-\"" => true;
            "\"ISSN \"@" ";;;" => false;
        ];
        for (code, expected) in cases {
            assert_eq!(CellFormat::new(code).shows_text, expected, "{code}");
        }
    }
}
