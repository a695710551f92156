//! Placeholders, damaged texts, website addresses, and ISSNs.

use std::iter::successors;

use url::{Host, Url};

use super::likeness::comparable;
use super::mojibake;
use super::rule::TextRule;
use crate::import::read::words::has_word;
use crate::model::Fields;
use crate::model::flat::looks_like_formula;
use crate::model::fold::fold;
use crate::model::message::{Joined, Message, message};

pub const RULES: &[TextRule] = &[
    ("wrong_encoding", wrong_encoding),
    ("html_escape", html_escape),
    ("placeholder", placeholder),
    ("blanks", blanks),
    ("formula", formula),
    ("no_address", no_address),
    ("issn_form", issn_form),
    ("issn_check_digit", issn_check_digit),
];

/// The columns of the two ISSNs of a journal.
pub const ISSN_COLUMNS: [&str; 2] = ["issn_print", "issn_online"];

/// Returns true for invisible characters that no name needs. Joiners in Indic and Persian words are needed.
fn is_invisible(letter: char) -> bool {
    letter.is_ascii_control() && letter.is_whitespace()
        || matches!(
            letter,
            '\u{200b}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}'
        )
}

/// Returns true for a control character, which stands for a sign that was lost.
fn is_lost_sign(letter: char) -> bool {
    mojibake::is_control(letter) || letter.is_control() && !letter.is_whitespace()
}

/// Returns true if all characters are printable ASCII.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Returns the text with single blanks, without blanks at its ends, and without invisible characters.
pub fn tidy(text: &str) -> String {
    text.split_whitespace()
        .map(|word| word.replace(is_invisible, ""))
        .filter(|word| !word.is_empty())
        .joined(" ")
}

fn wrong_encoding(field: &str, text: &str) -> Option<Message> {
    if is_printable(text) && !text.contains('?') {
        return None;
    }
    let letters: Vec<char> = text.chars().collect();
    let mut around = letters.array_windows();
    let mut has_lost_letter =
        || around.any(|[a, b, c]| *b == '?' && a.is_alphabetic() && c.is_lowercase());
    let lost = match mojibake::repair(text) {
        _ if text.contains('\u{fffd}') => {
            "contains U+FFFD, which replaces lost characters; correct it from its source, and save the file as UTF-8"
        }
        Some((meant, is_whole)) => {
            let message = message!(
                "was read in the wrong encoding; write `{meant}`, and save the file as UTF-8"
            );
            let right = is_whole.then_some(meant);
            return Some(Message { right, ..message });
        }
        None if text.contains(is_lost_sign) => {
            "contains control characters, which stand for lost signs; correct it from its source, and save the file as \
             UTF-8"
        }
        None if field != "url" && has_lost_letter() => {
            "contains a `?` within a word, probably for a lost letter; correct it from its source"
        }
        None => return None,
    };
    Some(lost.into())
}

fn html_escape(_field: &str, text: &str) -> Option<Message> {
    let (escape, meant) = first_escape(text)?;
    // Each round reads the whole text, so a long one does not get as many as it has escapes.
    const MAX_ROUNDS: usize = 100;
    let decoded = successors(Some(text.to_owned()), |text| {
        let (escape, meant) = first_escape(text)?;
        Some(text.replace(escape, &meant))
    })
    .take(MAX_ROUNDS)
    .last()?;
    if decoded.contains(is_lost_sign) {
        return Some(message!(
            "contains `{escape}`, which is HTML for a control character, or contains one; correct it from its source"
        ));
    }
    let message = message!("contains `{escape}`, which is HTML; write `{meant}` instead");
    Some(message.corrected_by(decoded))
}

/// Returns an HTML escape in the text, and its meaning.
fn first_escape(text: &str) -> Option<(&str, String)> {
    const ESCAPES: &[(&str, &str)] = &[
        ("&amp;", "&"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&nbsp;", " "),
        ("&#160;", " "),
        ("<br>", " "),
        ("<br/>", " "),
        ("<br />", " "),
    ];
    if !text.contains(['&', '<']) {
        return None;
    }
    let mut named = ESCAPES.iter();
    match named.find(|(escape, _)| text.contains(escape)) {
        Some((escape, meant)) => Some((escape, (*meant).to_owned())),
        None => numeric_escape(text),
    }
}

/// Returns the first numeric character reference, such as `&#xE7;`, and its character.
fn numeric_escape(text: &str) -> Option<(&str, String)> {
    text.match_indices("&#").find_map(|(start, _)| {
        let (escape, _) = text[start..].split_once(';')?;
        let code = &escape["&#".len()..];
        let number = match code.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
            None => code.parse(),
        };
        let character = char::from_u32(number.ok()?)?;
        Some((&text[start..=start + escape.len()], character.to_string()))
    })
}

/// Returns true for numbers that stand for an unknown ISSN, such as 0000-0000.
fn is_filler(field: &str, text: &str) -> bool {
    if !field.starts_with("issn_") {
        return false;
    }
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.starts_with("0000000") || digits.starts_with("9999999")
}

/// Returns true for words of absence that are values of this field: abbreviations, the cities Na, Nan, Nil and None, and
/// the code of Namibia.
pub fn may_be_name(field: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    match field {
        "abbv" | "city" => has_word("na nan nil none", &text),
        "country" => text == "na",
        _ => false,
    }
}

/// Returns true for placeholder words, filler ISSNs, spreadsheet errors and texts without letters or digits.
pub fn is_placeholder(field: &str, text: &str) -> bool {
    // Without blanks and punctuation.
    const WORDS: &str = "tbd tba tbc na none null nil nan unknown undefined untitled todo xxx notknown notavailable notapplicable \
                         tobeannounced tobeconfirmed tobedecided tobedefined tobedetermined";
    /// The error values of spreadsheets.
    const ERRORS: &str = "#n/a #ref! #name? #value! #div/0! #null! #num! #error!";
    // No word has a digit or more letters. Other texts need not be folded.
    const MOST_LETTERS: usize = "tobedetermined".len();
    if text.starts_with(|sign: char| sign.is_ascii_digit()) {
        return is_filler(field, text);
    }
    let letters = text
        .chars()
        .filter(|sign| sign.is_alphanumeric())
        .take(MOST_LETTERS + 1)
        .count();
    let may_be_word = letters <= MOST_LETTERS
        && !text.contains(|sign: char| sign.is_ascii_digit())
        && field != "abbv"
        && !may_be_name(field, text.trim());
    letters == 0
        || text.contains('#') && has_word(ERRORS, &fold(text.trim()))
        || is_filler(field, text)
        || may_be_word && has_word(WORDS, &comparable(text))
}

fn placeholder(field: &str, text: &str) -> Option<Message> {
    let is_capitalized = text.starts_with(char::is_uppercase) && text.ends_with(char::is_lowercase);
    if field == "city" && may_be_name(field, text) && !is_capitalized {
        return Some("is a word for no value, and also a city; leave the cell empty if that city is not meant".into());
    }
    if text.is_empty() || !is_placeholder(field, text) {
        return None;
    }
    Some(match field {
        "name" => "is not a name; give the real one, or leave the row out until it is known".into(),
        _ => Message::from(
            "is a placeholder; leave the cell empty (in JSON: null) until the value is known",
        )
        .corrected_by(String::new()),
    })
}

fn blanks(field: &str, text: &str) -> Option<Message> {
    let has_blanks = match field {
        "name" => text.split(char::is_whitespace).any(str::is_empty),
        // In other fields double blanks are harmless and frequent.
        _ => text.trim() != text,
    };
    let is_plain = !has_blanks && (is_printable(text) || !text.contains(is_invisible));
    // The spelling rules report these fields.
    if is_plain || matches!(field, "therapy_areas" | "country") || is_placeholder(field, text) {
        return None;
    }
    let tidied = tidy(text);
    let message =
        message!("has blanks at an end, double blanks or invisible characters; write `{tidied}`");
    Some(message.corrected_by(tidied))
}

fn formula(field: &str, text: &str) -> Option<Message> {
    let is_one = field == "name" && looks_like_formula(text) && !is_placeholder(field, text);
    is_one.then(|| {
        "starts like a formula, so the CSV export puts a `'` before it; check the name".into()
    })
}

fn no_address(field: &str, text: &str) -> Option<Message> {
    // Another rule is about blanks.
    let text = text.trim();
    if field != "url" || is_website(text) || is_placeholder(field, text) {
        return None;
    }
    let with_scheme = format!("https://{}", text.trim_start_matches('/'));
    let lacks_scheme = !text.contains("://") && !text.contains('@') && is_website(&with_scheme);
    Some(match lacks_scheme {
        true => message!("is not a complete address; write `{with_scheme}`"),
        false => {
            "is not a website address; write one, such as https://www.example.org, or leave the cell empty".into()
        }
    })
}

/// Returns true if the text is one absolute http or https URL with a public host name or an IP address.
fn is_website(text: &str) -> bool {
    let folded = text.to_ascii_lowercase();
    let rest = folded
        .strip_prefix("https://")
        .or_else(|| folded.strip_prefix("http://"));
    // The URL parser accepts and changes blanks and additional slashes.
    if rest.is_none_or(|rest| rest.starts_with('/') || rest.contains(char::is_whitespace)) {
        return false;
    }
    match Url::parse(text).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(domain)) => {
            domain
                .trim_end_matches('.')
                .rsplit_once('.')
                .is_some_and(|(_, last)| last.len() > 1)
                && !domain.contains("..")
        }
        host => host.is_some(),
    }
}

/// Returns true if the field contains an ISSN (ISO 3297): four digits, a hyphen, three digits and a check digit.
fn is_issn_field(field: &str, text: &str) -> bool {
    ISSN_COLUMNS.contains(&field) && !is_placeholder(field, text)
}

/// Returns the eight characters of an ISSN without hyphens and blanks. The last one may be `X`, for ten.
pub fn normalized(text: &str) -> Option<String> {
    let is_sign =
        |sign: &char| !sign.is_whitespace() && !matches!(sign, '-' | '‐' | '‑' | '–' | '—');
    let bare = text.chars().filter(is_sign).take(9);
    let bare: String = bare.map(|sign| sign.to_ascii_uppercase()).collect();
    let (digits, last) = bare.split_at_checked(7)?;
    let is_one = digits.bytes().all(|digit| digit.is_ascii_digit())
        && matches!(last.as_bytes(), [b'0'..=b'9' | b'X']);
    is_one.then_some(bare)
}

/// Returns eight characters of an ISSN with a hyphen.
fn with_hyphen(signs: &str) -> String {
    format!("{}-{}", &signs[..4], &signs[4..])
}

/// Returns a valid ISSN in its usual form. Placeholders are not valid.
pub fn valid_issn(field: &str, text: &str) -> Option<String> {
    let signs = normalized(text).filter(|_| is_issn_field(field, text))?;
    signs
        .ends_with(check_digit_of(&signs))
        .then(|| with_hyphen(&signs))
}

/// The valid ISSNs of the printed and the online edition of a journal.
pub type ValidIssns = [Option<String>; 2];

/// Returns the valid ISSNs of a row, in their usual form.
pub fn valid_issns<F: Fields>(row: &F) -> ValidIssns {
    let values = row.values();
    ISSN_COLUMNS.map(|column| {
        let at = F::table().index_of(column)?;
        valid_issn(column, values[at].texts().first()?)
    })
}

/// Computes the check digit of an ISSN by its first seven digits: modulus 11, weights 8 to 2 (ISO 3297, annex A).
fn check_digit_of(signs: &str) -> char {
    let rest = signs[..7]
        .chars()
        .filter_map(|digit| digit.to_digit(10))
        .zip((2..=8).rev())
        .map(|(digit, weight)| digit * weight)
        .sum::<u32>()
        % 11;
    match (11 - rest) % 11 {
        10 => 'X',
        digit => char::from_digit(digit, 10).unwrap_or('0'),
    }
}

fn issn_form(field: &str, text: &str) -> Option<Message> {
    if !is_issn_field(field, text) {
        return None;
    }
    if let Some(signs) = normalized(text) {
        let usual = with_hyphen(&signs);
        return (usual != text).then(|| message!("is not in the form of an ISSN; write `{usual}`"));
    }
    let lost = matches!(text.len(), 5..=7) && text.bytes().all(|digit| digit.is_ascii_digit());
    let hint = match lost {
        true => "; a spreadsheet may have dropped zeros at its beginning",
        false => "",
    };
    Some(message!(
        "is not an ISSN; write four digits, a hyphen, and four more, such as 0028-4793{hint}"
    ))
}

fn issn_check_digit(field: &str, text: &str) -> Option<Message> {
    let signs = normalized(text).filter(|_| is_issn_field(field, text))?;
    let last = &signs[7..];
    let expected = check_digit_of(&signs);
    (!last.starts_with(expected)).then(|| {
        message!(
            "its check digit is {last}, but its other digits require {expected}; compare it with the journal's own page"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::import::lint::mojibake::samples::real_names;

    #[test]
    fn real_names_have_no_finding() {
        for text in real_names() {
            let found = RULES.iter();
            let found: Vec<Message> = found.filter_map(|rule| (rule.1)("name", text)).collect();
            assert!(found.is_empty(), "{text}: {found:?}");
        }
    }

    /// Returns the texts of real lists: names, abbreviations, publishers, places.
    fn real_texts(folder: &Path) -> Vec<String> {
        let mut texts = Vec::new();
        for (file, columns) in [
            ("journals_pmc.csv", [0, 1, 4].as_slice()),
            ("journal_abbreviations.csv", &[1, 2]),
            ("organizations_japan.csv", &[1, 2, 4, 5, 19]),
        ] {
            let mut table = csv::Reader::from_path(folder.join(file)).unwrap();
            for row in table.records().map(Result::unwrap) {
                texts.extend(columns.iter().map(|column| row[*column].to_owned()));
            }
        }
        for line in std::fs::read_to_string(folder.join("conferences.jsonl"))
            .unwrap()
            .lines()
        {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let fields = ["name", "acronym", "city", "country", "venue", "place_text"];
            texts.extend(
                fields
                    .iter()
                    .filter_map(|field| row[field].as_str())
                    .map(str::to_owned),
            );
        }
        texts.retain(|text| !text.is_empty());
        texts.sort();
        texts.dedup();
        texts
    }

    #[test]
    fn real_lists_have_no_false_alarm() {
        let Some(folder) = std::env::var_os("MEDFEED_REAL_DATA").map(PathBuf::from) else {
            println!("MEDFEED_REAL_DATA names no folder with real lists: nothing was tested");
            return;
        };
        let mut false_alarms = Vec::new();
        for text in real_texts(&folder) {
            for rule in RULES {
                let Some(message) = (rule.1)("name", &text) else {
                    continue;
                };
                let is_right = match rule.0 {
                    "html_escape" => text.contains("&#"),
                    "blanks" => text.trim() != text || text.contains("  "),
                    "placeholder" => ["TBA", "TBD"].contains(&text.as_str()),
                    _ => false,
                };
                println!("{}: {text:?}", rule.0);
                if !is_right {
                    false_alarms.push(format!("{}: {text:?} {message}", rule.0));
                }
            }
        }
        assert!(false_alarms.is_empty(), "{false_alarms:#?}");
    }

    #[test]
    fn damaged_texts_and_placeholders_are_found() {
        let cases: [(&str, &str, &[&str]); 19] = cases![
            "name", "wrong_encoding", &words!["KardiologÃ¼" "SociÃ©tÃ© FranÃ§aise" "Menâ€™s Health"
                "Soci√©t√© de Cardiologie" "Men\u{92}s Health" "Men\u{7f}s Health"
                "Men\u{19}s Health" "Kardiologi\u{fffd}" "Soci?t? Fran?aise"];
            "name", "wrong_encoding blanks", &["Men\u{1a}s Health\n"];
            "city", "wrong_encoding", &["ZÃ¼rich"];
            "url", "", &["https://a.example/?q=x"];
            "name", "", &words!["Société Française, Łódź" "SÃO PAULO: AÇÃO" "日本癌学会 «Ёлка» ΚΑΡΔΙΟ"
                "Who cares? We do" "Heart & Lung" "R&D; AT&T &#; &#x; &#xD800; Q&#A"
                "Journal d’études" "Test" "TBD Congress" "#MedTwitter Summit" "א\u{200f}"
                "ASCO\u{a0}Meeting" "می\u{200c}خواهم" "ASCO Annual Meeting"];
            "name", "html_escape", &words!["Heart &amp; Lung" "Heart<br>Lung"
                "Associa&#x00e7;&#227;o"];
            "name", "placeholder", &words!["TBD" "(n/a)" "--" "#REF!" "#N/A"];
            "venue", "placeholder", &words!["To be announced" "None"];
            "city", "placeholder", &words![" " "NA" "nil" "Null" "n.a."];
            "country", "placeholder", &words!["-" "Nan"];
            "therapy_areas", "placeholder", &["N/A"];
            "abbv", "", &words!["NA" "=1+1"];
            "city", "", &words!["Nan" "None" "Nancy"];
            "abbv", "placeholder", &["?"];
            "name", "blanks", &words!["ASCO " " ASCO" "ASCO  Meeting" "ASCO\u{a0}" "ASCO\nMeeting"
                "AS\u{200b}CO" "AS\u{202e}CO" "AS\u{2066}CO"];
            "venue", "", &["Hall  A"];
            "venue", "blanks", &["Hall A "];
            "therapy_areas", "", &["Oncology "];
            "name", "formula", &["=1+1"];
        ];
        for (field, expected, texts) in cases {
            for text in texts {
                let found = RULES.iter().filter(|rule| (rule.1)(field, text).is_some());
                let found: Vec<&str> = found.map(|rule| rule.0).collect();
                assert_eq!(found.join(" "), expected, "{field} {text:?}");
            }
        }
    }

    #[test]
    fn every_html_escape_is_reported_with_its_character() {
        let cases = cases![
            "Men&apos;s", Some("contains `&apos;`, which is HTML; write `'` instead");
            "Men&#39;s", Some("contains `&#39;`, which is HTML; write `'` instead");
            "Men&#x27;s", Some("contains `&#x27;`, which is HTML; write `'` instead");
            "Men&#X2019;s", Some("contains `&#X2019;`, which is HTML; write `’` instead");
            "&quot;A&quot;", Some("contains `&quot;`, which is HTML; write `\"` instead");
            "a &lt; b", Some("contains `&lt;`, which is HTML; write `<` instead");
            "a &gt; b", Some("contains `&gt;`, which is HTML; write `>` instead");
            "a&nbsp;b", Some("contains `&nbsp;`, which is HTML; write ` ` instead");
            "a<br />b", Some("contains `<br />`, which is HTML; write ` ` instead");
            // The first sound one of several.
            "A<B &#999999999999; &amp;", Some("contains `&amp;`, which is HTML; write `&` instead");
            "&#; &#231;&#227;", Some("contains `&#231;`, which is HTML; write `ç` instead");
            "A&#10;B", Some("contains `&#10;`, which is HTML; write `\n` instead");
            "A&#0; &amp;", Some("contains `&amp;`, which is HTML for a control character");
            "Men&#x92;s", Some("contains `&#x92;`, which is HTML for a control character");
            "Men's \"A\" < B & C", None;
        ];
        for (text, expected) in cases {
            let message = html_escape("name", text);
            let begin = message
                .as_deref()
                .map(|message| message.split(", or").next().unwrap());
            assert_eq!(begin, expected, "{text}");
        }
    }

    #[test]
    fn long_texts_are_no_placeholders() {
        for (blanks, is_one) in [(0, true), (30, true), (60, true)] {
            // Blanks at both ends do not count as length.
            let blanks = " ".repeat(blanks);
            let text = format!("{blanks}to be announced{blanks}");
            assert_eq!(is_placeholder("name", &text), is_one, "{text:?}");
        }
        for (text, is_one) in [
            ("\"tbd\"", true),
            ("'n/a'", true),
            ("*TBA*", true),
            ("“”", true),
            ("#DIV/0!", true),
            ("N/A's", false),
            (&"-".repeat(41), true),
            (&format!("{}a", "-".repeat(41)), false),
        ] {
            assert_eq!(is_placeholder("city", text), is_one, "{text:?}");
        }
    }

    #[test]
    fn invalid_websites_are_found() {
        let sound = words![
            "https://www.asco.org" "HTTP://asco.org/a?b=c#d" "https://例え.jp/会議"
            "https://web.archive.org/web/2020/http://asco.org/" "https://192.0.2.1:8080/" "TBD"
            "https://[2001:db8::1]/" "https://asco.org./" "https://asco.de"
            "https://user@asco.org/o'hara" "https://asco.org "
        ];
        for text in sound {
            assert_eq!(no_address("url", text), None, "{text}");
        }
        let unsound = words![
            "https://asco.c" "asco.org/?mail=a@b" "htps://asco.org" "http:/asco.org"
            "https:///asco.org" "https://asco" "https://https://asco.org" "https://asco..org"
            "https://asco.org, https://esmo.org" "ftp://asco.org" "mailto:info@asco.org"
            "info@asco.org" "see website"
        ];
        let unsound = unsound.map(|text| (text, "is not a website address"));
        let incomplete = cases![
            "www.asco.org", "write `https://www.asco.org`";
            "asco.org/annual", "write `https://asco.org/annual`";
            "//asco.org", "write `https://asco.org`";
        ];
        for (text, expected) in unsound.into_iter().chain(incomplete) {
            let found = no_address("url", text).unwrap_or_default();
            assert!(found.contains(expected), "{text}: {found:?}");
        }
        assert!(no_address("name", "x").is_none());
    }

    #[test]
    fn invalid_issns_are_found() {
        let cases: [(&str, &[&str]); 4] = cases![
            "", &words!["0028-4793" "2434-561X" "0378-5955" "TBD" "0000-0000" "00000000" "9999-9994"
                "9999-9999" "0000-0019" "0000-006X"];
            "issn_form", &words!["00284793" "2434-561x" "0028–4793" "28-4793" "284793" "0028-47933"
                "ISSN 0028-4793" "0028-479A" "é028-479" "X000-0060" "0028 4793" "'0028-4793"];
            "issn_check_digit", &words!["0028-4794" "2434-5610" "9999-9899" "0000-0060"];
            "issn_form issn_check_digit", &["00284794"];
        ];
        for (expected, texts) in cases {
            for text in texts {
                let found = RULES
                    .iter()
                    .filter(|rule| (rule.1)("issn_print", text).is_some());
                let found = found.map(|rule| rule.0);
                let found: Vec<&str> = found.filter(|name| name.starts_with("issn_")).collect();
                assert_eq!(found.join(" "), expected, "{text:?}");
            }
        }
        assert!(issn_form("name", "x").is_none());
        for (text, is_likely) in cases!["4793", false; "84793", true; "0284793", true; "28479311", false; "28-793", false]
        {
            let message = issn_form("issn_online", text).unwrap_or_default();
            let found = message.contains("dropped zeros");
            assert_eq!(found, is_likely, "{text}: {message}");
        }
    }
}
