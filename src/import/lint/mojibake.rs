//! Mojibake: UTF-8 that was decoded in a single-byte encoding, such as `SociÃ©tÃ©`.
//!
//! A text is mojibake if encoding it gives UTF-8 again. A real text does so only by chance: nearly all of its letters
//! beyond ASCII have to form UTF-8 sequences. Most of the chance results are no words ([`is_plausible`]).

use std::iter::successors;

use encoding_rs::{Encoding, MACINTOSH, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252};

use crate::model::message::Joined;

/// The usual wrong encodings, the most frequent one first.
const ENCODINGS: [&Encoding; 4] = [WINDOWS_1252, MACINTOSH, WINDOWS_1250, WINDOWS_1251];

/// UTF-8 may be decoded wrongly twice (`ÃƒÂ©`) or three times.
const MAX_LAYERS: usize = 3;

/// The number of decoded characters that allow for one that lost a byte.
const DECODED_PER_LOST: usize = 4;

/// Returns true for the control characters that ISO 8859-1 has where Windows-1252 has signs.
pub fn is_control(letter: char) -> bool {
    ('\u{80}'..='\u{9f}').contains(&letter)
}

/// Returns the text with the second bytes of letters `à`. They are non-breaking spaces, which were replaced or trimmed:
/// `SocietÃ `.
fn with_lost_blanks(text: &str) -> String {
    text.split(' ')
        .map(|word| match word.strip_suffix('Ã') {
            Some(begin) if begin.ends_with(char::is_lowercase) => format!("{word}\u{a0}"),
            _ => word.to_owned(),
        })
        .joined(" ")
}

/// Returns the bytes of a text, or `None` if the encoding lacks a character.
fn encode(text: &str, encoding: &'static Encoding) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        if is_control(letter) {
            bytes.extend(u8::try_from(letter));
            continue;
        }
        let mut buffer = [0; 4];
        let (encoded, _, has_unmappable) = encoding.encode(letter.encode_utf8(&mut buffer));
        if has_unmappable {
            return None;
        }
        bytes.extend_from_slice(&encoded);
    }
    Some(bytes)
}

/// Returns true if words mix neither scripts nor cases, and no letter is the only one of its script.
fn is_plausible(text: &str) -> bool {
    let letters: Vec<char> = format!(" {text} ").chars().collect();
    let mut foreign = 0;
    for [before, letter, after] in letters.array_windows() {
        if letter.is_ascii() {
            continue;
        }
        let is_mixed = match letter {
            // Latin letters, marks and signs.
            '\u{80}'..='ſ'
            | 'Ơ'
            | 'ơ'
            | 'Ư'
            | 'ư'
            | 'Ș'..='ț'
            | 'ə'
            | '\u{300}'..='\u{36f}'
            | '\u{1e00}'..='\u{2bff}' => {
                before.is_uppercase() && letter.is_lowercase() && after.is_uppercase()
            }
            // Greek letters: `TGFβ`.
            '\u{370}'..='\u{3ff}' => before.is_ascii_lowercase() || after.is_ascii_lowercase(),
            _ => {
                foreign += 1;
                before.is_ascii_alphabetic() || after.is_ascii_alphabetic()
            }
        };
        if is_mixed {
            return false;
        }
    }
    foreign != 1
}

/// Returns the text that UTF-8 decoded in this encoding was, if it is plausible, and whether no letter lost a byte.
fn decode(text: &str, encoding: &'static Encoding) -> Option<(String, bool)> {
    let restored = with_lost_blanks(text);
    let bytes = encode(&restored, encoding)?;
    let mut decoded = String::with_capacity(text.len());
    let mut count = 0;
    let mut lost = 0;
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().chars();
        count += valid.filter(|letter| !letter.is_ascii()).count();
        let (kept, _) = encoding.decode_without_bom_handling(chunk.invalid());
        // A dash or quotation mark may have come later.
        lost += kept.chars().filter(|letter| letter.is_alphabetic()).count();
        decoded = decoded + chunk.valid() + &kept;
    }
    let is_whole = lost == 0 && restored == text;
    (count > DECODED_PER_LOST * lost && is_plausible(&decoded)).then_some((decoded, is_whole))
}

/// Returns the original text if the text is mojibake, and whether it is complete.
pub fn repair(text: &str) -> Option<(String, bool)> {
    let decode = |text: &str| ENCODINGS.iter().find_map(|encoding| decode(text, encoding));
    successors(decode(text), |(text, was_whole)| {
        let (better, is_whole) = decode(text)?;
        Some((better, is_whole && *was_whole))
    })
    .take(MAX_LAYERS)
    .last()
    .filter(|(text, _)| !text.chars().any(is_control))
}

#[cfg(test)]
pub mod samples {
    /// Returns real names of journals and societies in many languages.
    pub fn real_names() -> Vec<&'static str> {
        let lines = include_str!("../../../fixtures/names.txt").lines();
        lines
            .filter(|line| !line.is_empty() && !line.starts_with(['#', '[']))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::samples::real_names;
    use super::*;

    /// Returns spellings of a name: in capitals, with another apostrophe, with punctuation.
    fn variants(name: &str) -> Vec<String> {
        const AROUND: [(&str, &str); 17] = [
            ("", ""),
            ("«", "»"),
            ("« ", " »"),
            ("“", "”"),
            ("„", "“"),
            ("‘", "’"),
            ("", "…"),
            ("", "®"),
            ("", "™"),
            ("", "’s"),
            ("", "’S"),
            ("", "–Europe"),
            ("", "–EUROPE"),
            ("", "—Société"),
            ("L’", " – № 5"),
            ("D’", "…”"),
            ("(", "»…"),
        ];
        let typographic = name.replace('\'', "’");
        let cases = [
            name,
            &name.to_uppercase(),
            &typographic,
            &typographic.to_uppercase(),
        ]
        .map(str::to_owned);
        cases
            .iter()
            .flat_map(|name| AROUND.map(|(before, after)| format!("{before}{name}{after}")))
            .collect()
    }

    #[test]
    fn real_names_are_not_repaired() {
        for text in real_names() {
            assert_eq!(repair(text), None, "{text}");
        }
        // A capital at the end and a sign after it may be one letter: `AMANHÃ…`.
        let variants: Vec<String> = real_names().into_iter().flat_map(variants).collect();
        let wrong = variants.iter();
        let wrong: Vec<&String> = wrong.filter(|text| repair(text).is_some()).collect();
        assert!(
            wrong.len() * 500 <= variants.len(),
            "{} of {}: {wrong:?}",
            wrong.len(),
            variants.len()
        );
    }

    #[test]
    fn chance_sequences_are_not_repaired() {
        let cases = [
            "d’études",
            "D’ÉTUDES",
            "CÂMARA ALEMÃ–BRASILEIRA",
            "SPITALUL ORĂŞENESC",
            "Îşi",
            "PÄŤDESIAT DĹŽOK",
            "TĂŠARRŮFAT",
            "Priäžy, PRIÄŽY",
            "NESCAFÉ®",
            "SANTÉ–SOCIÉTÉ",
            "СССР–США",
            "Ch’ü-fou",
            "5\u{a0}µm, \u{a0}±2",
            // The Mac Roman bytes of a Cyrillic letter, alone and next to Latin letters.
            "Dosis –±5 %",
            "pH–±1, T–±2",
        ];
        for text in cases {
            assert_eq!(repair(text), None, "{text}");
        }
    }

    #[test]
    fn mojibake_is_repaired() {
        let cases = [
            ("KardiologÃ¼ in ZÃ¼rich", "Kardiologü in Zürich"),
            ("Menâ€™s", "Men’s"),
            ("Ð¡ÐµÑ€Ð´Ñ†Ðµ", "Сердце"),
            ("Soci√©t√© d‚Äô√©tudes", "Société d’études"),
            ("cÅ“ur, CÅ’UR, Å’uvre", "cœur, CŒUR, Œuvre"),
            ("ESPAÃ‘A, INFORMACIÃ“N, SÃƒO", "ESPAÑA, INFORMACIÓN, SÃO"),
            ("GÄ…siorowski, Å»ycie", "Gąsiorowski, Życie"),
            ("TGFÎ² and Î²-Blockers", "TGFβ and β-Blockers"),
            ("SocietÃ\u{a0} Ã\u{a0} la carte", "Società à la carte"),
            ("socieÌ\u{81}teÌ\u{81}", "socie\u{301}te\u{301}"),
            ("Ã\u{89}tudes", "Études"),
            // Read in Windows-1250 and Windows-1251.
            ("ZĂĽrich, SĂŁo Paulo", "Zürich, São Paulo"),
            ("РљР°СЂРґРёРѕР»РѕРіРёСЏ", "Кардиология"),
            ("fГјr", "für"),
            // Decoded wrongly twice, and three times.
            ("SociÃƒÂ©tÃƒÂ©", "Société"),
            ("Menâ\u{80}\u{99}s", "Men’s"),
            ("MenÃ¢â‚¬â„¢s", "Men’s"),
            // Texts with signs that came later.
            ("KardiologÃ¼ – Band 2", "Kardiologü – Band 2"),
            ("“L’EncÃ©phale”", "“L’Encéphale”"),
        ];
        // Texts that lost bytes. The last letters may be others: `aquí` becomes `aquÃ` without its soft hyphen.
        let incomplete = [
            ("SocietÃ di Sanit\u{c3}", "Società di Sanità"),
            ("EstÃ¡ aquÃ", "Está aquà"),
            ("ÐšÐ°Ñ€Ð´Ð¸Ð¾Ð»Ð¾Ð³Ð¸Ñ", "КардиологиÑ"),
        ];
        let cases = cases.map(|case| (case, true)).into_iter();
        for ((text, expected), is_whole) in cases.chain(incomplete.map(|case| (case, false))) {
            let found = repair(text);
            assert_eq!(found, Some((expected.to_owned(), is_whole)), "{text}");
        }
    }

    /// Returns the percentage of texts that are fully repaired after wrong decoding.
    fn recall(texts: &[String], encoding: &'static Encoding) -> f64 {
        let is_repaired = |text: &&String| {
            let (spoiled, _) = encoding.decode_without_bom_handling(text.as_bytes());
            repair(&spoiled) == Some(((*text).clone(), true))
        };
        let (repaired, missed): (Vec<&String>, Vec<&String>) = texts.iter().partition(is_repaired);
        println!(
            "{}: {} repaired, missed {missed:?}",
            encoding.name(),
            repaired.len()
        );
        100.0 * repaired.len() as f64 / texts.len() as f64
    }

    #[test]
    fn nearly_all_spoiled_names_are_repaired() {
        let is_special = |text: &&str| {
            text.chars()
                .any(|letter| letter.is_alphabetic() && !letter.is_ascii())
        };
        let all = real_names().into_iter();
        let all: Vec<String> = all.filter(is_special).map(str::to_owned).collect();
        let capitals = all.iter().map(|text| text.to_uppercase());
        let capitals: Vec<String> = capitals.filter(|text| !text.is_ascii()).collect();
        assert!(all.len() > 300, "{}", all.len());
        for encoding in ENCODINGS {
            for texts in [&all, &capitals] {
                let reached = recall(texts, encoding);
                assert!(reached >= 99.0, "{}: {reached:.1} %", encoding.name());
            }
        }
    }
}
