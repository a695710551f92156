//! The meaning of number formats. Each format is read once, not for each cell.

use calamine::NumberFormat;
use jiff::civil::Date;

/// The meaning of numbers in a section of a format.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meaning {
    /// The stored number.
    Number(Digits),
    /// A dash, which accounting formats show for zero.
    Dash,
    Date(DateParts),
    /// Something else than the stored number.
    Other(Refusal),
}

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

/// The digits that a section shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Digits {
    /// Whether the section shows all digits, as the general format does.
    is_general: bool,
    max_decimals: usize,
    /// Whether the section shows nothing for zero, as `#` does.
    hides_zero: bool,
    /// The unit after or before the digits, other than US dollars.
    pub unit: Option<String>,
}

impl Digits {
    /// Returns true if the section shows all digits of the number, whose digits are `text`.
    pub fn show_all(&self, number: f64, text: &str) -> bool {
        let decimals = text.split_once('.').map_or("", |(_, decimals)| decimals);
        match number {
            0.0 => !self.hides_zero,
            _ => self.is_general || decimals.len() <= self.max_decimals,
        }
    }
}

/// The parts of a date that a section shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DateParts {
    /// The number of letters of the year.
    year: usize,
    has_month: bool,
    has_day: bool,
}

impl DateParts {
    /// Returns the year and the month of a date, as far as the section shows them.
    pub fn shown_part(self, day: Date) -> String {
        match self.year {
            0 => "TBD".to_owned(),
            _ if self.has_month => format!("{}-{:02}", day.year(), day.month()),
            _ => day.year().to_string(),
        }
    }

    /// Returns true if the section shows the whole date.
    pub fn show_all(self, day: Date) -> bool {
        // With two digits, 1930 and 2030 look the same.
        let has_year = self.year > 2 || self.year > 0 && (2000..2100).contains(&day.year());
        has_year && self.has_month && self.has_day
    }
}

/// The meaning of a format.
#[derive(Debug)]
pub(super) struct CellFormat {
    /// The format code, for messages.
    pub code: String,
    /// The sections for positive numbers, negative numbers and zero. No field has negative numbers.
    sections: Vec<Meaning>,
    /// Whether texts are shown as they are.
    pub shows_text: bool,
}

impl CellFormat {
    /// Reads the number format of a style. The default is the general format.
    pub fn of_style(format: Option<&NumberFormat>) -> CellFormat {
        let code = format.map_or("General", |format| &*format.format_code);
        // calamine has other codes for some built-in formats. Those that depend on Excel's language have the English code.
        let id = format.and_then(|format| format.format_id);
        CellFormat::new(match (id, code) {
            (Some(5 | 6), "General") => "$#,##0",
            (Some(7 | 8), "General") => "$#,##0.00",
            (Some(14), "mm-dd-yy") => "m/d/yyyy",
            (Some(22), "m/d/yy h:mm") => "m/d/yyyy h:mm",
            _ => code,
        })
    }

    /// Reads a format code, such as `#,##0.00;[Red]-#,##0.00`.
    pub fn new(code: &str) -> CellFormat {
        let mut sections = read_sections(code);
        sections.truncate(4);
        let has_text =
            sections.len() == 4 || sections.last().is_some_and(|section| section.has_text);
        let text = if has_text { sections.pop() } else { None };
        let shows_text = text.is_none_or(|text| {
            (text.has_text || text.digits.is_general) && text.literals.trim().is_empty()
        });
        if sections.is_empty() {
            // The text format shows numbers as the general format does.
            sections.extend(read_sections("General"));
        }
        let has_condition = sections.iter().any(|section| section.has_condition);
        let sections = if has_condition {
            vec![Meaning::Other(CONDITIONAL)]
        } else {
            sections.into_iter().map(Section::meaning).collect()
        };
        CellFormat {
            code: code.to_owned(),
            sections,
            shows_text,
        }
    }

    /// Returns the meaning of a number.
    pub fn meaning(&self, number: f64) -> &Meaning {
        match &*self.sections {
            [_, _, zero, ..] if number == 0.0 => zero,
            sections => &sections[0],
        }
    }

    /// Returns true if numbers are shown by the digits of their texts alone.
    pub fn is_plain(&self) -> bool {
        ["general", "@", "0"].contains(&&*self.code.to_ascii_lowercase())
    }
}

/// The parsed code of a section.
#[derive(Clone, Debug, Default)]
struct Section {
    /// Whether it is for some numbers only, such as those `>=100`.
    has_condition: bool,
    literals: String,
    digits: Digits,
    has_digits: bool,
    /// Whether it has the digit `0`.
    has_zero: bool,
    /// The length of the literals before the last digit so far.
    literals_before: usize,
    /// Whether other signs than blanks and apostrophes are between digits: a fraction, an exponent, or a text.
    is_divided: bool,
    /// Whether it has `@`.
    has_text: bool,
    has_point: bool,
    has_percent: bool,
    /// Whether commas follow the last digit. They divide by 1,000.
    has_commas: bool,
    is_scaled: bool,
    /// The letters of date and time parts, with their counts.
    dates: Vec<(char, usize)>,
    /// Whether `$` means another currency than US dollars.
    is_foreign_dollar: bool,
}

fn read_sections(code: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut section = Section::default();
    let mut letters = code.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ';' => sections.push(std::mem::take(&mut section)),
            '"' => section
                .literals
                .extend(letters.by_ref().take_while(|letter| *letter != '"')),
            '\\' => section.literals.extend(letters.next()),
            // `_` is a blank as wide as the next character. `*` fills the cell with the next character.
            '_' | '*' => section.literals.extend(letters.next().map(|_| ' ')),
            '[' => {
                let content: String = letters
                    .by_ref()
                    .take_while(|letter| *letter != ']')
                    .collect();
                section.take_bracket(&content);
            }
            '0' | '#' | '?' => section.take_digit(letter),
            '.' => {
                section.is_scaled |= section.has_commas;
                section.has_point = true;
                section.has_commas = false;
            }
            ',' => section.has_commas = section.has_digits,
            '%' => section.has_percent = true,
            '/' => section.is_divided = true,
            '@' => section.has_text = true,
            'E' | 'e' if letters.next_if(|next| matches!(next, '+' | '-')).is_some() => {
                section.is_divided = true
            }
            'a' | 'A' if skip_word(&mut letters, "m/pm") || skip_word(&mut letters, "/p") => {
                section.dates.push(('a', 1));
            }
            'g' | 'G' if skip_word(&mut letters, "eneral") => {
                section.digits.is_general = true;
            }
            'y' | 'Y' | 'm' | 'M' | 'd' | 'D' | 'h' | 'H' | 's' | 'S' | 'g' | 'G' | 'e' | 'E'
            | 'b' | 'B' => {
                let mut count = 1;
                while letters
                    .next_if(|next| next.eq_ignore_ascii_case(&letter))
                    .is_some()
                {
                    count += 1;
                }
                section.dates.push((letter.to_ascii_lowercase(), count));
            }
            other => section.literals.push(other),
        }
    }
    sections.push(section);
    sections
}

/// Skips `word`, in any case, if it is next. Returns false otherwise.
fn skip_word(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, word: &str) -> bool {
    let mut ahead = letters.clone();
    if !word.chars().all(|letter| {
        ahead
            .next_if(|next| next.eq_ignore_ascii_case(&letter))
            .is_some()
    }) {
        return false;
    }
    *letters = ahead;
    true
}

impl Section {
    fn take_digit(&mut self, digit: char) {
        let between = if self.has_digits {
            &self.literals[self.literals_before..]
        } else {
            ""
        };
        self.is_divided |= !between
            .chars()
            .all(|letter| letter.is_whitespace() || matches!(letter, '\'' | '’'));
        self.has_digits = true;
        self.has_zero |= digit == '0';
        self.has_commas = false;
        self.literals_before = self.literals.len();
        self.digits.max_decimals += usize::from(self.has_point);
    }

    /// Adds the content of brackets: a currency, a language, a condition, an elapsed time or a colour.
    fn take_bracket(&mut self, content: &str) {
        if let Some(currency) = content.strip_prefix('$') {
            let (symbol, language) = currency.split_once('-').unwrap_or((currency, ""));
            self.is_foreign_dollar |= symbol.contains('$') && !is_of_united_states(language);
            self.literals.push_str(symbol);
        } else if content.starts_with(['<', '>', '=']) {
            self.has_condition = true;
        } else if content
            .to_ascii_lowercase()
            .trim_matches(['h', 'm', 's'])
            .is_empty()
        {
            self.dates.push(('h', content.len()));
        }
    }

    fn meaning(self) -> Meaning {
        if !self.dates.is_empty() {
            return Meaning::Date(self.date_parts());
        }
        let has_dash = self.literals.contains(['-', '–', '—', '−']);
        let has_number = self.has_digits || self.digits.is_general;
        let has_sign = has_dash || self.literals.contains('(');
        Meaning::Other(match self.unit() {
            _ if !has_number && has_dash => return Meaning::Dash,
            _ if !has_number => UNSHOWN,
            _ if self.has_percent => PERCENT,
            _ if self.is_scaled || self.has_commas => SCALED,
            None => CURRENCY,
            Some(_) if self.is_divided || has_sign && self.has_zero => UNIT,
            Some(unit) => {
                return Meaning::Number(Digits {
                    is_general: self.digits.is_general && !self.has_digits,
                    hides_zero: self.has_digits && !self.has_zero && !has_dash,
                    unit: Some(unit).filter(|unit| !unit.is_empty()),
                    ..self.digits
                });
            }
        })
    }

    /// Returns the unit that the literals name, empty for US dollars, or `None` for another currency.
    fn unit(&self) -> Option<String> {
        let is_neutral = |letter: char| letter.is_whitespace() || "-+()'’–−".contains(letter);
        let unit: String = self
            .literals
            .chars()
            .filter(|letter| !is_neutral(*letter))
            .collect();
        let is_code = unit.len() == 3 && unit.bytes().all(|byte| byte.is_ascii_uppercase());
        let is_symbol = |letter: char| {
            matches!(
                letter,
                '$' | '¢' | '£' | '¤' | '¥' | '\u{20a0}'..='\u{20cf}' | '￥' | '￡'
            )
        };
        match &*unit {
            _ if self.is_foreign_dollar => None,
            "" | "$" | "USD" | "US$" | "$US" | "USD$" => Some(String::new()),
            _ if is_code || unit.contains(is_symbol) => None,
            _ => Some(unit),
        }
    }

    fn date_parts(&self) -> DateParts {
        let mut parts = DateParts::default();
        for (at, (letter, count)) in self.dates.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| self.dates.get(before));
            let after = self.dates.get(at + 1);
            // `m` next to hours or seconds means minutes.
            let is_minute = *count < 3
                && (before.is_some_and(|(l, _)| *l == 'h')
                    || after.is_some_and(|(l, _)| *l == 's'));
            match letter {
                'y' => parts.year = parts.year.max(*count),
                'm' if !is_minute => parts.has_month = true,
                // More letters show the day of the week.
                'd' => parts.has_day |= *count < 3,
                _ => {}
            }
        }
        parts
    }
}

/// Returns true if `$` means US dollars in the language. It is given by name or by a hexadecimal number.
fn is_of_united_states(language: &str) -> bool {
    let is_named =
        language.len() > 3 && language.get(..3).is_some_and(|start| start.ends_with('-'));
    language.is_empty()
        || (is_named && language.to_ascii_lowercase().ends_with("-us"))
        // English and Spanish in the United States. 0 is the language of the program.
        || matches!(u32::from_str_radix(language, 16).map(|number| number & 0xffff), Ok(0 | 0x409 | 0x540a))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a format shows for a number, in a word or in those of the refusal.
    fn shown(code: &str, number: f64) -> String {
        let format = CellFormat::new(code);
        let text = format!("{number}");
        match format.meaning(number) {
            Meaning::Number(digits) if !digits.show_all(number, &text) => match number {
                0.0 => UNSHOWN.shows.to_owned(),
                _ => "rounded".to_owned(),
            },
            Meaning::Number(Digits {
                unit: Some(unit), ..
            }) => unit.clone(),
            Meaning::Number(_) if format.is_plain() => "same".to_owned(),
            Meaning::Number(_) => "equal".to_owned(),
            Meaning::Dash => "dash".to_owned(),
            Meaning::Date(_) => "date".to_owned(),
            Meaning::Other(refusal) => refusal.shows.to_owned(),
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
            ("0;-0;\"-\"", 0.0, "dash"),
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
            let Meaning::Date(parts) = format.meaning(46_096.0) else {
                panic!("{code}")
            };
            let show_all = parts.show_all(Date::new(year, 3, 15).unwrap());
            assert_eq!(show_all, expected, "{code}");
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
