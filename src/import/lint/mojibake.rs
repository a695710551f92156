//! Mojibake: UTF-8 that was decoded in a single-byte encoding, such as `SociÃ©tÃ©`.
//!
//! Mojibake has one character per byte of a UTF-8 sequence. Some real texts contain such characters by chance: the `’é`
//! of `d’études` has the Mac Roman bytes of an Armenian letter. So a text is repaired only under two conditions. At
//! least one sequence cannot be part of a real word (`is_foreign`). And the decoded character is a common one that fits
//! the script of its word (`script_of`, `drop_implausible`).

use std::sync::LazyLock;

use encoding_rs::{Encoding, MACINTOSH, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252};

/// The usual wrong encodings, the most frequent one first.
const ENCODINGS: [&Encoding; 4] = [WINDOWS_1252, MACINTOSH, WINDOWS_1250, WINDOWS_1251];

/// UTF-8 may be decoded wrongly twice (`ÃƒÂ©`) or three times.
const MAX_LAYERS: usize = 3;

/// For each encoding: the characters of the bytes from 0x80 on, with their bytes, sorted by character.
static BYTES: LazyLock<[Vec<(char, u8)>; ENCODINGS.len()]> = LazyLock::new(|| {
    ENCODINGS.map(|encoding| {
        let mut bytes: Vec<(char, u8)> = Vec::new();
        for byte in 0x80..=0xff {
            let (text, _) = encoding.decode_without_bom_handling(std::slice::from_ref(&byte));
            bytes.extend(text.chars().map(|character| (character, byte)));
        }
        if encoding != MACINTOSH {
            // ISO 8859-1 has control characters at these bytes.
            let controls = (0x80..=0x9f).map(|byte| (char::from(byte), byte));
            bytes.extend(
                controls.filter(|(control, _)| bytes.iter().all(|(known, _)| known != control)).collect::<Vec<_>>(),
            );
        }
        bytes.sort_unstable();
        bytes
    })
});

/// A script. Words do not mix scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    /// Punctuation, digits and combining marks, which occur in all scripts.
    Common,
    Latin,
    Greek,
    Cyrillic,
    Armenian,
    Hebrew,
    Arabic,
    Indic,
    Thai,
    Georgian,
    /// Chinese, Japanese and Korean. Names mix them with Latin letters.
    EastAsian,
}

/// Returns the script of a character, or `None` for rare characters (phonetic, historic, private use).
fn script_of(character: char) -> Option<Script> {
    Some(match character {
        '\u{80}'..='\u{bf}' | '×' | '÷' => Script::Common,
        // Letters of transliterations: `Arhangelʹsk`, `Hawaiʻi`.
        'ʹ'..='ʿ' => Script::Common,
        // The combining marks of European and Vietnamese letters, for decomposed text.
        '\u{300}'..='\u{304}'
        | '\u{306}'..='\u{308}'
        | '\u{30a}'..='\u{30c}'
        | '\u{31b}'
        | '\u{323}'
        | '\u{326}'..='\u{328}' => Script::Common,
        'A'..='Z' | 'a'..='z' | 'À'..='ſ' | 'Ə' | 'ə' | 'Ơ' | 'ơ' | 'Ư' | 'ư' | 'Ș'..='ț' | 'Ḁ'..='ỿ' | 'ﬁ' | 'ﬂ' => {
            Script::Latin
        }
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Script::Greek,
        '\u{400}'..='\u{4ff}' => Script::Cyrillic,
        '\u{531}'..='\u{58f}' => Script::Armenian,
        '\u{591}'..='\u{5f4}' => Script::Hebrew,
        '\u{600}'..='\u{6ff}' => Script::Arabic,
        '\u{900}'..='\u{dff}' => Script::Indic,
        '\u{e01}'..='\u{eff}' => Script::Thai,
        '\u{10a0}'..='\u{10ff}' => Script::Georgian,
        // Punctuation, currencies, letterlike signs, arrows, mathematics, pictures.
        '\u{2000}'..='\u{206f}'
        | '\u{2070}'..='\u{27bf}'
        | '\u{3000}'..='\u{303f}'
        | '\u{feff}'
        | '\u{ff01}'..='\u{ffee}' => Script::Common,
        '\u{1f300}'..='\u{1faff}' => Script::Common,
        '\u{1100}'..='\u{11ff}'
        | '\u{3041}'..='\u{31ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' => Script::EastAsian,
        _ => return None,
    })
}

/// Signs that occur neither in a word nor at its end.
const ALIEN_SIGNS: &str = "¡¢£¤¥¦§¨¬\u{ad}¯±¶¸¼½¾¿×÷ƒˆ˜‰†‡€µ√≈∆◊∞∂∑∏∫≠≤≥πΩ⁄˙˚˝˛ˇ˘";

/// Signs that occur before or after a word, but not within it.
const OUTER_SIGNS: &str = "»«›‹“”„‚‘™®©°²³¹ºª№";

const OPENING_QUOTES: &str = "„‚";

const QUOTES: &str = "»«›‹“”„‚‘’";

const APOSTROPHES: &str = "’´";

const SUPERSCRIPTS: &str = "¹²³";

/// Signs that join words without blanks.
const DASHES: &str = "–—";

/// Signs with a blank on one side.
const PAUSES: &str = "…•·";

/// Capitals that are not words.
const NO_WORDS: &str = "ÃÂÎÏÐĂ";

/// Letter pairs of no language, which occur when UTF-8 is decoded as Windows-1252 or Windows-1250: `Åž`, `ÃŸ`, `Ăł`.
const ALIEN_PAIRS: [(&str, &str); 6] =
    [("ÃÅ", "šžœŠŽŒŸ"), ("Ä", "šžœŒŸ"), ("ĂĹÄ", "ąĄłŁżŻśŚźŹ"), ("ĂĹ", "ľĽ"), ("Ă", "ťŤ"), ("Ĺ", "šŠ")];

fn is_control(character: char) -> bool {
    ('\u{80}'..='\u{9f}').contains(&character)
}

/// Returns true for letters of words. `ª` and `º` follow words and numbers.
fn is_letter(character: char) -> bool {
    character.is_alphabetic() && !"ªº".contains(character)
}

/// Returns true if the characters at `start..end` (at least two) cannot be part of a real text.
fn is_foreign(text: &[char], start: usize, end: usize) -> bool {
    let sequence = &text[start..end];
    let (lead, last) = (text[start], text[end - 1]);
    let is = |at: usize, test: fn(char) -> bool| text.get(at).is_some_and(|character| test(*character));
    let before = start.checked_sub(1).map(|at| text[at]);
    let begins_word = !before.is_some_and(is_letter);

    // `Ã¤`, `√©`. In real texts such signs may follow a non-breaking space: `5 µm`.
    let has_alien_sign =
        lead != '\u{a0}' && sequence.iter().any(|sign| ALIEN_SIGNS.contains(*sign) || is_control(*sign));

    // `SociÃ©`, `œÑ`; `NĂş`.
    let from = start.max(1);
    let has_inner_capital = (from..end).any(|at| is(at - 1, char::is_lowercase) && is(at, char::is_uppercase))
        || before.is_some_and(char::is_uppercase) && lead.is_uppercase() && last.is_lowercase();

    // `Bucure»ôti`, `CANCIÃ“N`, `Å‚`.
    let has_inner_sign = (from..end)
        .filter(|at| is(at - 1, is_letter))
        .any(|at| OPENING_QUOTES.contains(text[at]) || OUTER_SIGNS.contains(text[at]) && is(at + 1, is_letter));

    let is_alien_pair = ALIEN_PAIRS.iter().any(|(leads, lasts)| leads.contains(lead) && lasts.contains(last));

    // `MÃ…NED`; `GÄ…siorowski`, `ZÄ–b`.
    let is_odd_pause = !begins_word
        && (PAUSES.contains(last) && is(end, is_letter)
            || DASHES.contains(last) && lead.is_uppercase() && is(end, char::is_lowercase));

    // `GYDYTOJÅ²`
    let is_odd_superscript = !begins_word && SUPERSCRIPTS.contains(last);

    // `Å’uvre`, but not `Å’s`.
    let is_odd_apostrophe = begins_word && APOSTROPHES.contains(last) && is(end, is_letter) && is(end + 1, is_letter);

    // `Ã la`, `Î²`, `Â·`, but not `«Â»`.
    let is_quoted = before.is_some_and(|before| QUOTES.contains(before)) && QUOTES.contains(last);
    let is_no_word = begins_word && NO_WORDS.contains(lead) && !is_letter(last) && !is_quoted;

    // `‚Äì`: the start of a punctuation mark decoded as Mac Roman.
    let is_mark = sequence.starts_with(&['‚', 'Ä']);

    // `fГјr`: Cyrillic letters next to Latin ones.
    let is_mixed = script_of(lead) == Some(Script::Cyrillic)
        && (before.is_some_and(|before| before.is_ascii_alphabetic())
            || begins_word && is(end, |after| after.is_ascii_alphabetic()));

    has_alien_sign
        || has_inner_capital
        || has_inner_sign
        || is_alien_pair
        || is_odd_pause
        || is_odd_superscript
        || is_odd_apostrophe
        || is_no_word
        || is_mark
        || is_mixed
}

/// The characters of one UTF-8 sequence.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    start: usize,
    end: usize,
    decoded: char,
    script: Script,
    is_foreign: bool,
}

/// Returns true for an `Ã` that was an `à`. Its second byte is a non-breaking space, which was replaced or trimmed:
/// `SocietÃ `.
fn is_lost_a(text: &[char], at: usize) -> bool {
    let ends_word = text.get(at + 1).is_none_or(|after| *after == ' ');
    text[at] == 'Ã' && ends_word && at > 0 && text[at - 1].is_lowercase()
}

/// Returns the sequences that decode to common characters.
fn sequences(text: &[char], encoding: usize) -> Vec<Sequence> {
    let byte_of = |character: char| {
        let table = &BYTES[encoding];
        table.binary_search_by_key(&character, |(known, _)| *known).ok().map(|at| table[at].1)
    };
    let mut found = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let len = match byte_of(text[start]) {
            Some(0xc2..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(0xf0..=0xf4) => 4,
            _ => 0,
        };
        if len == 2 && is_lost_a(text, start) {
            found.push(Sequence { start, end: start + 1, decoded: 'à', script: Script::Latin, is_foreign: true });
            start += 1;
            continue;
        }
        let end = start + len;
        let bytes: Vec<u8> = text.get(start..end).unwrap_or_default().iter().map_while(|sign| byte_of(*sign)).collect();
        let decoded = std::str::from_utf8(&bytes).ok().and_then(|decoded| decoded.chars().next());
        // A decoded control character is valid only if the sequence contains one: the text was decoded wrongly twice.
        let decoded =
            decoded.filter(|decoded| !is_control(*decoded) || text[start..end].iter().copied().any(is_control));
        match decoded.and_then(|decoded| Some((decoded, script_of(decoded)?))) {
            Some((decoded, script)) => {
                found.push(Sequence { start, end, decoded, script, is_foreign: is_foreign(text, start, end) });
                start = end;
            }
            None => start += 1,
        }
    }
    found
}

/// Drops sequences whose decoded letter does not fit its word, or is the only one of its script.
fn drop_implausible(text: &[char], sequences: Vec<Sequence>) -> Vec<Sequence> {
    let mut is_decoded = vec![false; text.len()];
    for one in &sequences {
        is_decoded[one.start..one.end].fill(true);
    }
    let mut kept: Vec<Sequence> = Vec::new();
    let mut rest = sequences.as_slice();
    while let Some(first) = rest.first() {
        // The sequences of one word have only letters between them.
        let is_joined = |pair: &[Sequence]| {
            pair[0].script != Script::Common
                && pair[1].script != Script::Common
                && text[pair[0].end..pair[1].start].iter().all(|between| between.is_alphabetic())
        };
        let len = 1 + rest.windows(2).take_while(|pair| is_joined(pair)).count();
        let (word, later) = rest.split_at(len);
        rest = later;
        // The original characters next to the sequences.
        let near = |at: &usize| text.get(*at).filter(|_| !is_decoded[*at]).copied();
        let around = word.iter().flat_map(|one| [one.start.wrapping_sub(1), one.end]);
        let near: Vec<char> = around.filter_map(|at| near(&at)).collect();
        let is_near_ascii = near.iter().any(char::is_ascii_alphabetic);
        let is_near_cyrillic = near.iter().any(|near| script_of(*near) == Some(Script::Cyrillic));
        let is_pure = word.iter().all(|one| one.script == first.script);
        kept.extend(word.iter().filter(|one| match one.script {
            Script::Common | Script::EastAsian => true,
            Script::Latin => !is_near_cyrillic,
            // `TGFβ`
            Script::Greek => !is_near_cyrillic && (!is_near_ascii || one.is_foreign),
            _ => !is_near_ascii && is_pure,
        }));
    }
    // Words in these scripts have at least two letters.
    for script in [
        Script::Cyrillic,
        Script::Armenian,
        Script::Hebrew,
        Script::Arabic,
        Script::Indic,
        Script::Thai,
        Script::Georgian,
        Script::EastAsian,
    ] {
        let is_single = kept.iter().filter(|one| one.script == script).count() == 1;
        kept.retain(|one| !is_single || one.script != script);
    }
    kept
}

/// Repairs the sequences of one encoding. Returns the number of replaced characters, and the repaired text.
fn repair_once(text: &[char], encoding: usize) -> Option<(usize, String)> {
    let sequences = drop_implausible(text, sequences(text, encoding));
    if !sequences.iter().any(|one| one.is_foreign) {
        return None;
    }
    let replaced = sequences.iter().map(|one| one.end - one.start).sum();
    let mut repaired = String::new();
    let mut at = 0;
    for one in sequences {
        repaired.extend(&text[at..one.start]);
        repaired.push(one.decoded);
        at = one.end;
    }
    repaired.extend(&text[at..]);
    Some((replaced, repaired))
}

/// Returns the original text if the text is mojibake.
pub(super) fn repair(text: &str) -> Option<String> {
    let mut repaired: Option<String> = None;
    for _ in 0..MAX_LAYERS {
        let text = repaired.as_deref().unwrap_or(text);
        if text.is_ascii() {
            break;
        }
        let characters: Vec<char> = text.chars().collect();
        let candidates = (0..ENCODINGS.len()).filter_map(|encoding| repair_once(&characters, encoding));
        // On a tie, the first encoding is the most frequent one.
        let Some((_, better)) = candidates.rev().max_by_key(|(replaced, _)| *replaced) else { break };
        repaired = Some(better);
    }
    repaired
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::lint::real_names::names;

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
        let cases = [name, &name.to_uppercase(), &typographic, &typographic.to_uppercase()].map(str::to_owned);
        cases.iter().flat_map(|name| AROUND.map(|(before, after)| format!("{before}{name}{after}"))).collect()
    }

    #[test]
    fn real_names_are_left_alone() {
        for text in names().into_iter().flat_map(variants) {
            assert_eq!(repair(&text), None, "{text}");
        }
    }

    #[test]
    fn chance_sequences_are_left_alone() {
        let cases = [
            "d’études",
            "D’ÉTUDES",
            "CÂMARA ALEMÃ–BRASILEIRA",
            "AMANHÃ…",
            "«Â»",
            "SPITALUL ORĂŞENESC",
            "Îşi",
            "PÄŤDESIAT DĹŽOK",
            "TĂŠARRŮFAT",
            "Priäžy, PRIÄŽY",
            "NESCAFÉ®",
            "SANTÉ–SOCIÉTÉ",
            "Å’s",
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
            ("cÅ“ur, CÅ“UR, Å’uvre", "cœur, CœUR, Œuvre"),
            ("ESPAÃ‘A, INFORMACIÃ“N, SÃƒO", "ESPAÑA, INFORMACIÓN, SÃO"),
            ("GÄ…siorowski, Å»ycie", "Gąsiorowski, Życie"),
            ("TGFÎ² and Î²-Blockers", "TGFβ and β-Blockers"),
            ("SocietÃ di Sanit\u{c3}", "Società di Sanità"),
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
            // In part.
            ("Société franÃ§aise", "Société française"),
            // Texts that lost bytes.
            ("ÐšÐ°Ñ€Ð´Ð¸Ð¾Ð»Ð¾Ð³Ð¸Ñ", "КардиологиÑ"),
        ];
        for (text, expected) in cases {
            assert_eq!(repair(text).as_deref(), Some(expected), "{text}");
        }
    }

    /// Returns the percentage of texts that are fully repaired after wrong decoding.
    fn recall(texts: &[String], encoding: &'static Encoding) -> f64 {
        let is_repaired = |text: &&String| {
            let (spoiled, _) = encoding.decode_without_bom_handling(text.as_bytes());
            repair(&spoiled).as_ref() == Some(*text)
        };
        let (repaired, missed): (Vec<&String>, Vec<&String>) = texts.iter().partition(is_repaired);
        println!("{}: {} repaired, missed {missed:?}", encoding.name(), repaired.len());
        100.0 * repaired.len() as f64 / texts.len() as f64
    }

    #[test]
    fn nearly_all_spoiled_names_are_repaired() {
        let is_special = |text: &&str| text.chars().any(|letter| letter.is_alphabetic() && !letter.is_ascii());
        let all: Vec<String> = names().into_iter().filter(is_special).map(str::to_owned).collect();
        let is_european = |text: &&String| {
            !text.chars().any(|letter| {
                letter.is_alphabetic()
                    && script_of(letter).is_none_or(|script| {
                        !matches!(script, Script::Common | Script::Latin | Script::Greek | Script::Cyrillic)
                    })
            })
        };
        let european: Vec<String> = all.iter().filter(is_european).cloned().collect();
        // Capitals resemble names with a dash or a trademark sign more often: `GRÃ–SSE`, `PIÃ™`.
        let capitals: Vec<String> =
            european.iter().map(|text| text.to_uppercase()).filter(|text| !text.is_ascii()).collect();
        assert!(european.len() > 250, "{}", european.len());
        for encoding in ENCODINGS {
            let least = if encoding == WINDOWS_1251 { 98.5 } else { 99.0 };
            for (texts, least) in [(&all, least), (&european, least), (&capitals, 95.0)] {
                let reached = recall(texts, encoding);
                assert!(reached >= least, "{}: {reached:.1} %", encoding.name());
            }
        }
    }
}
