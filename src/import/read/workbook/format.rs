//! Number formats, which define how a spreadsheet displays the numbers in its cells.

/// The maximum size of a format. Excel allows 255 characters.
const MAX_CODE_BYTES: usize = 600;

/// A number format, such as `#,##0.00;[Red]-#,##0.00`.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberFormat {
    /// The sections for positive numbers, negative numbers and zero, or sections with conditions.
    pub numbers: Vec<Section>,
    /// The section for text, if any.
    pub text: Option<Section>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Section {
    pub tokens: Vec<FormatToken>,
    pub condition: Option<SectionCondition>,
    /// Whether the section has a colour. It may replace a minus sign.
    pub is_colored: bool,
    /// Whether years belong to another calendar.
    pub is_foreign_calendar: bool,
    /// Whether `$` means another currency than US dollars.
    pub is_foreign_dollar: bool,
}

/// A token of a section.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FormatToken {
    Literal(String),
    /// `0`, `#` or `?`.
    Digit(char),
    Point,
    Comma,
    Percent,
    Slash,
    /// `E+` or `E-`.
    Exponent,
    General,
    /// `@`.
    Text,
    Date(DatePart),
}

/// A part of a date or time, with the number of its letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatePart {
    Year(usize),
    Month(usize),
    Day(usize),
    Hour(usize),
    Minute(usize),
    Second(usize),
    AmPm,
    /// A year or era of another calendar.
    Era,
}

/// A condition on the numbers of a section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SectionCondition {
    pub operator: Operator,
    pub value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl SectionCondition {
    pub fn holds(self, number: f64) -> bool {
        match self.operator {
            Operator::Less => number < self.value,
            Operator::LessOrEqual => number <= self.value,
            Operator::Equal => number == self.value,
            Operator::NotEqual => number != self.value,
            Operator::GreaterOrEqual => number >= self.value,
            Operator::Greater => number > self.value,
        }
    }

    /// Parses a condition such as `>=100`.
    fn read(text: &str) -> Option<SectionCondition> {
        let operators = [
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<>", Operator::NotEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("=", Operator::Equal),
        ];
        let (operator, value) =
            operators.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)))?;
        Some(SectionCondition { operator, value: value.trim().parse().ok()? })
    }
}

impl NumberFormat {
    /// Parses a format code. Returns `None` if it is too long.
    pub fn read(code: &str) -> Option<NumberFormat> {
        if code.len() > MAX_CODE_BYTES {
            return None;
        }
        let mut sections = read_sections(code);
        sections.truncate(4);
        let is_for_text = |section: &Section| section.tokens.contains(&FormatToken::Text);
        let has_text = sections.len() == 4 || sections.last().is_some_and(is_for_text);
        let text = if has_text { sections.pop() } else { None };
        if sections.is_empty() {
            // The text format displays numbers as the general format does.
            sections.push(Section { tokens: vec![FormatToken::General], ..Section::default() });
        }
        Some(NumberFormat { numbers: sections, text })
    }
}

fn read_sections(code: &str) -> Vec<Section> {
    let mut sections = vec![Section::default()];
    let mut letters = code.chars().peekable();
    while let Some(letter) = letters.next() {
        let section = match sections.last_mut() {
            Some(section) if letter != ';' => section,
            _ => {
                sections.push(Section::default());
                continue;
            }
        };
        let token = match letter {
            '"' => FormatToken::Literal(letters.by_ref().take_while(|letter| *letter != '"').collect()),
            '\\' => FormatToken::Literal(letters.next().into_iter().collect()),
            // `_` is a blank as wide as the next character. `*` fills the cell with the next character.
            '_' => FormatToken::Literal(letters.next().map(|_| ' ').into_iter().collect()),
            '*' => FormatToken::Literal(letters.next().map(|_| ' ').into_iter().collect()),
            '[' => {
                let content: String = letters.by_ref().take_while(|letter| *letter != ']').collect();
                section.take_bracket(&content);
                continue;
            }
            '0' | '#' | '?' => FormatToken::Digit(letter),
            '.' => FormatToken::Point,
            ',' => FormatToken::Comma,
            '%' => FormatToken::Percent,
            '/' => FormatToken::Slash,
            '@' => FormatToken::Text,
            'E' | 'e' if letters.next_if(|next| matches!(next, '+' | '-')).is_some() => FormatToken::Exponent,
            'a' | 'A' if skip_word(&mut letters, "m/pm") || skip_word(&mut letters, "/p") => {
                FormatToken::Date(DatePart::AmPm)
            }
            'g' | 'G' if skip_word(&mut letters, "eneral") => FormatToken::General,
            'y' | 'Y' | 'm' | 'M' | 'd' | 'D' | 'h' | 'H' | 's' | 'S' | 'g' | 'G' | 'e' | 'E' | 'b' | 'B' => {
                let mut count = 1;
                while letters.next_if(|next| next.eq_ignore_ascii_case(&letter)).is_some() {
                    count += 1;
                }
                FormatToken::Date(match letter.to_ascii_lowercase() {
                    'y' => DatePart::Year(count),
                    'm' => DatePart::Month(count),
                    'd' => DatePart::Day(count),
                    'h' => DatePart::Hour(count),
                    's' => DatePart::Second(count),
                    _ => DatePart::Era,
                })
            }
            other => FormatToken::Literal(other.into()),
        };
        section.tokens.push(token);
    }
    sections.iter_mut().for_each(Section::find_minutes);
    sections
}

/// Skips `word`, in any case, if it is next. Returns false otherwise.
fn skip_word(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, word: &str) -> bool {
    let mut ahead = letters.clone();
    if !word.chars().all(|letter| ahead.next_if(|next| next.eq_ignore_ascii_case(&letter)).is_some()) {
        return false;
    }
    *letters = ahead;
    true
}

impl Section {
    /// Adds the content of brackets: a currency, a language, a condition, a colour or an elapsed time.
    fn take_bracket(&mut self, content: &str) {
        const COLORS: [&str; 8] = ["black", "blue", "cyan", "green", "magenta", "red", "white", "yellow"];
        let lower = content.to_ascii_lowercase();
        let only = |letter: char| !lower.is_empty() && lower.chars().all(|other| other == letter);
        if let Some(currency) = content.strip_prefix('$') {
            let (symbol, language) = currency.split_once('-').unwrap_or((currency, ""));
            self.is_foreign_dollar |= symbol.contains('$') && !is_of_united_states(language);
            self.is_foreign_calendar |= has_other_calendar(language);
            self.tokens.push(FormatToken::Literal(symbol.to_owned()));
        } else if let Some(condition) = SectionCondition::read(content) {
            self.condition = Some(condition);
        } else if only('h') {
            self.tokens.push(FormatToken::Date(DatePart::Hour(lower.len())));
        } else if only('m') {
            self.tokens.push(FormatToken::Date(DatePart::Minute(lower.len())));
        } else if only('s') {
            self.tokens.push(FormatToken::Date(DatePart::Second(lower.len())));
        } else if COLORS.contains(&&*lower) || lower.starts_with("color") {
            self.is_colored = true;
        }
    }

    /// Converts `m` next to hours or seconds from months to minutes.
    fn find_minutes(&mut self) {
        let parts: Vec<(usize, DatePart)> = self.tokens.iter().enumerate().filter_map(date_part).collect();
        for (index, (at, part)) in parts.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|before| parts.get(before)).map(|(_, part)| part);
            let after = parts.get(index + 1).map(|(_, part)| part);
            let is_minute = matches!(before, Some(DatePart::Hour(_))) || matches!(after, Some(DatePart::Second(_)));
            if let (DatePart::Month(count @ (1 | 2)), true) = (*part, is_minute) {
                self.tokens[*at] = FormatToken::Date(DatePart::Minute(count));
            }
        }
    }

    /// Returns the date and time parts of the section.
    pub fn date_parts(&self) -> impl Iterator<Item = DatePart> {
        self.tokens.iter().enumerate().filter_map(date_part).map(|(_, part)| part)
    }

    /// Returns true if the section displays dates or times.
    pub fn is_date(&self) -> bool {
        self.date_parts().next().is_some()
    }
}

fn date_part((at, token): (usize, &FormatToken)) -> Option<(usize, DatePart)> {
    match token {
        FormatToken::Date(part) => Some((at, *part)),
        _ => None,
    }
}

/// Returns true if `$` means US dollars in the language. It is given by name or by a hexadecimal number.
fn is_of_united_states(language: &str) -> bool {
    let is_named = language.len() > 3 && language.get(..3).is_some_and(|start| start.ends_with('-'));
    language.is_empty()
        || (is_named && language.to_ascii_lowercase().ends_with("-us"))
        // English and Spanish in the United States. 0 is the language of the program.
        || matches!(u32::from_str_radix(language, 16).map(|number| number & 0xffff), Ok(0 | 0x409 | 0x540a))
}

/// Returns true if the language number contains a calendar other than the Gregorian one.
fn has_other_calendar(language: &str) -> bool {
    let number = u32::from_str_radix(language, 16).unwrap_or(0);
    // The system formats for long dates and times have numbers without a calendar.
    !matches!(number >> 16 & 0xff, 0 | 1 | 2 | 9..=12)
}

/// Returns the code of a built-in format. Formats that depend on Excel's language have the English code.
pub(super) fn built_in(id: u32) -> &'static str {
    match id {
        1 => "0",
        2 => "0.00",
        3 => "#,##0",
        4 => "#,##0.00",
        5 | 6 => "\"$\"#,##0_);(\"$\"#,##0)",
        7 | 8 => "\"$\"#,##0.00_);(\"$\"#,##0.00)",
        9 => "0%",
        10 => "0.00%",
        11 => "0.00E+00",
        12 => "# ?/?",
        13 => "# ??/??",
        14 | 30 => "m/d/yyyy",
        15 => "d-mmm-yy",
        16 => "d-mmm",
        17 => "mmm-yy",
        18 | 55 => "h:mm AM/PM",
        19 | 56 => "h:mm:ss AM/PM",
        20 | 32 | 34 => "h:mm",
        21 | 33 | 35 => "h:mm:ss",
        22 => "m/d/yyyy h:mm",
        // Dates in East Asian languages. Some display only a part of the date.
        31 => "yyyy/m/d",
        27 | 36 | 50 | 52 | 57 => "yyyy/m",
        28 | 29 | 51 | 53 | 54 | 58 => "m/d",
        37 | 38 => "#,##0_);(#,##0)",
        39 | 40 => "#,##0.00_);(#,##0.00)",
        41 => "_(* #,##0_);_(* (#,##0);_(* \"-\"_);_(@_)",
        42 => "_($* #,##0_);_($* (#,##0);_($* \"-\"_);_(@_)",
        43 => "_(* #,##0.00_);_(* (#,##0.00);_(* \"-\"??_);_(@_)",
        44 => "_($* #,##0.00_);_($* (#,##0.00);_($* \"-\"??_);_(@_)",
        45 => "mm:ss",
        46 => "[h]:mm:ss",
        47 => "mm:ss.0",
        48 => "##0.0E+0",
        49 => "@",
        _ => "General",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_and_minutes_are_told_apart() {
        use DatePart::{AmPm, Day, Era, Hour, Minute, Month, Second, Year};
        let cases: [(&str, &[DatePart]); 9] = [
            ("dd/mm/yyyy hh:mm:ss", &[Day(2), Month(2), Year(4), Hour(2), Minute(2), Second(2)]),
            ("mm:ss.0", &[Minute(2), Second(2)]),
            ("[h]:mm", &[Hour(1), Minute(2)]),
            ("h:mm AM/PM", &[Hour(1), Minute(2), AmPm]),
            ("[$-409]mmm\\ yy;@", &[Month(3), Year(2)]),
            ("YYYY\"m\"MM\\dDD", &[Year(4), Month(2), Day(2)]),
            ("[$-411]ge.m.d", &[Era, Era, Month(1), Day(1)]),
            ("General", &[]),
            ("0.0E+0", &[]),
        ];
        for (code, expected) in cases {
            let format = NumberFormat::read(code).unwrap();
            assert_eq!(format.numbers[0].date_parts().collect::<Vec<_>>(), expected, "{code}");
        }
    }

    #[test]
    fn sections_are_told_apart() {
        let cases = [
            ("", 1, false),
            ("0", 1, false),
            ("@", 1, true),
            ("0;@", 1, true),
            ("0;-0;\"-\"", 3, false),
            ("0;-0;\"-\";@", 3, true),
            (";;;", 3, true),
            ("\"a;b\"0\\;", 1, false),
        ];
        for (code, numbers, has_text) in cases {
            let format = NumberFormat::read(code).unwrap();
            assert_eq!((format.numbers.len(), format.text.is_some()), (numbers, has_text), "{code}");
        }
        assert!(NumberFormat::read(&"0".repeat(601)).is_none());
    }

    #[test]
    fn brackets_are_read() {
        let section = |code| NumberFormat::read(code).unwrap().numbers.swap_remove(0);
        let condition = Some(SectionCondition { operator: Operator::GreaterOrEqual, value: 1e6 });
        assert_eq!(section("[>=1000000]0").condition, condition);
        assert!(section("[Red]0").is_colored && section("[Color 12]0").is_colored && !section("[DBNum1]0").is_colored);
        for (code, is_foreign) in [
            ("$0", false),
            ("[$$-409]0", false),
            ("[$$-en-US]0", false),
            ("[$USD]0", false),
            ("[$$-1009]0", true),
            ("[$$-en-CA]0", true),
            ("[$CA$-1009]0", true),
        ] {
            assert_eq!(section(code).is_foreign_dollar, is_foreign, "{code}");
        }
        for (code, is_foreign) in [
            ("[$-409]d", false),
            ("[$-F800]d", false),
            ("[$-1010409]d", false),
            ("[$-D07041E]d", true),
            ("[$-1060401]d", true),
        ] {
            assert_eq!(section(code).is_foreign_calendar, is_foreign, "{code}");
        }
    }
}
