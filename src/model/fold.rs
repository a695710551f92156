//! Text folding for `q` and alphabetical order, and for `--match`. And suggestions for misspelt names.

use icu_casemap::CaseMapper;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// A place where a word may be divided. It is invisible elsewhere.
const SOFT_HYPHEN: char = '\u{ad}';

/// Latin letters with a stroke or bar in their code point, each followed by its plain form. The default table of the
/// Unicode Collation Algorithm distinguishes them only on the second level.
const STROKES: &str = "øołlđdðdħhŧtıiƀbɨiʉuɵoƶzǥgɇeɉjɍrɏyȼcⱥaⱦtƚlⱡlᵽpꝁkꞡgꞣkꞥnꞧrꞩs";

/// Folds a text for finding it. It is composed (NFKC), so letters of different width are equal. Case, and marks and
/// strokes of Latin and Greek letters are ignored, as well as the points of Hebrew and Arabic. All apostrophes become
/// `'`, all dashes `-`, and soft hyphens vanish.
///
/// Marks of other scripts make other letters, so they count: か and が, и and й. The text is recomposed so that a
/// Hangul syllable does not match the beginning of a longer one.
pub fn fold(text: &str) -> String {
    let plain = plain_letters(text);
    if plain.is_ascii() {
        return plain;
    }
    plain
        .chars()
        .filter(|letter| !is_point(*letter))
        .nfc()
        .collect()
}

/// Folds a text for identifying a record by it. Unlike with [`fold`], points of Hebrew and Arabic count, and blanks,
/// dashes and apostrophes do not. Blanks and dashes between digits count as one dash: `1-2` is not `12`.
pub fn match_form(text: &str) -> String {
    let mut form = String::with_capacity(text.len());
    let mut is_parted = false;
    for letter in plain_letters(text).chars() {
        if letter == '-' || is_blank(letter) {
            is_parted = true;
        } else if letter != '\'' {
            if is_parted && letter.is_numeric() && form.ends_with(char::is_numeric) {
                form.push('-');
            }
            form.push(letter);
            is_parted = false;
        }
    }
    form.nfc().collect()
}

/// Returns the text in its compatibility decomposition, after full Unicode case folding. Marks, strokes and ligatures
/// of Latin and Greek letters are left out.
fn plain_letters(text: &str) -> String {
    if text.is_ascii() {
        let plain = text.to_ascii_lowercase();
        return match plain.contains('`') {
            true => plain.replace('`', "'"),
            false => plain,
        };
    }
    // The compatibility decomposition of U+00B4 is a blank with an accent.
    let apostrophes = text
        .nfd()
        .map(|letter| if letter == '\u{b4}' { '\'' } else { letter });
    let decomposed: String = apostrophes.nfkd().collect();
    let folded = CaseMapper::new().fold_string(&decomposed);
    let mut plain = String::with_capacity(folded.len());
    let mut drops_marks = true;
    for letter in folded.nfkd() {
        if canonical_combining_class(letter) == 0 {
            drops_marks = !has_own_marks(letter);
        } else if drops_marks {
            continue;
        }
        match letter {
            '\u{2018}' | '\u{2019}' | '\u{2bc}' | '`' => plain.push('\''),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push('-'),
            SOFT_HYPHEN => {}
            'æ' => plain.push_str("ae"),
            'œ' => plain.push_str("oe"),
            _ => plain.push(without_stroke(letter).unwrap_or(letter)),
        }
    }
    plain
}

/// Returns true for letters of other scripts than Latin and Greek.
fn has_own_marks(letter: char) -> bool {
    letter.is_alphanumeric()
        && !matches!(letter, '\0'..='\u{3ff}' | '\u{1d00}'..='\u{2c7f}' | '\u{a720}'..='\u{a7ff}')
}

/// Returns true for the points of Hebrew and Arabic. Hamza and madda make other letters.
fn is_point(letter: char) -> bool {
    matches!(letter, '\u{591}'..='\u{652}' | '\u{656}'..='\u{6ed}' | '\u{8ca}'..='\u{8ff}')
        && canonical_combining_class(letter) != 0
}

/// Returns the plain form of a letter of [`STROKES`].
fn without_stroke(letter: char) -> Option<char> {
    let (_, after) = STROKES.split_once(letter).filter(|_| !letter.is_ascii())?;
    after.chars().next()
}

/// Folds a text, and removes blanks, invisible characters, `_`, `-` and `.`.
pub fn comparable(text: &str) -> String {
    let mut folded = fold(text);
    folded.retain(|letter| !matches!(letter, '_' | '-' | '.') && !is_blank(letter));
    folded
}

/// Whether a character is blank or invisible. Texts copied from web pages contain such characters.
pub fn is_blank(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(
            letter,
            '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{200b}' | '\u{2060}' | '\u{feff}'
        )
}

/// The maximum length of a name to compare, in bytes. The time grows with the product of both lengths.
const MAX_BYTES: usize = 128;

/// Returns the known name that was probably meant. At most one letter in four differs, or `given` is a prefix of it.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LEAST_BEGINNING: usize = 4;
    if given.len() > MAX_BYTES {
        return None;
    }
    let given = comparable(given);
    let length = given.chars().count();
    let near = known
        .into_iter()
        .filter(|name| name.len() <= MAX_BYTES)
        .filter_map(|name| {
            let known = comparable(name);
            let known_length = known.chars().count();
            let allowed = if length < 2 {
                0
            } else {
                (length.max(known_length) / 4).max(1)
            };
            let distance = if length >= LEAST_BEGINNING && known.starts_with(&given) {
                1
            } else if length.abs_diff(known_length) <= allowed {
                // The difference of the lengths is a cheap lower bound of the distance.
                strsim::damerau_levenshtein(&given, &known)
            } else {
                return None;
            };
            (distance <= allowed).then_some((distance, name))
        });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_diacritics_do_not_count() {
        let cases = [
            ("ASCO", "asco"),
            ("Sjögren", "SJOGREN"),
            ("Société Française", "societe francaise"),
            ("Straße", "STRASSE"),
            ("İstanbul", "istanbul"),
            ("Łódź", "lodz"),
            ("København", "kobenhavn"),
            ("ΚΑΡΔΙΟΛΟΓΊΑΣ", "καρδιολογιας"),
            ("ΐ, ᾴ", "ι, αι"),
            ("\u{301}e", "e"),
            ("ШКОЛА", "школа"),
            ("e\u{301}tude", "ÉTUDE"),
            ("ﬁbrosis", "FIBROSIS"),
            ("Đà Nẵng", "da nang"),
            ("日本癌学会", "日本癌学会"),
            ("ＡＳＣＯ", "asco"),
            ("ｶﾝﾌｧﾚﾝｽ", "カンファレンス"),
            // Composed first: marks of their own, or letters of half width.
            ("か\u{3099}ん", "がん"),
            ("ﾊﾟｽ", "パス"),
            ("и\u{306}од", "ЙОД"),
            // Points of Hebrew and Arabic.
            ("שָׁלוֹם", "שלום"),
            ("مُحَمَّد", "محمد"),
            ("أ\u{64e}ورام", "ا\u{654}ورام"),
        ];
        for (one, other) in cases {
            assert_eq!(fold(one), fold(other), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn strokes_and_ligatures_do_not_count() {
        let cases = [
            ("ØØ", "oo"),
            ("Łł", "ll"),
            ("ĐđÐð", "dddd"),
            ("Ħħ", "hh"),
            ("Ŧŧ", "tt"),
            ("Iı", "ii"),
            ("Ææ", "aeae"),
            ("Œuvre, cœur", "oeuvre, coeur"),
            ("Ƀƀ", "bb"),
            ("Ɨɨ", "ii"),
            ("Ʉʉ", "uu"),
            ("ƵƶǤǥɆɏȻⱥⱦƟ", "zzggeycato"),
            ("ẞß", "ssss"),
        ];
        for (text, expected) in cases {
            assert_eq!(fold(text), expected, "{text}");
        }
    }

    #[test]
    fn typography_does_not_count() {
        let cases = cases![
            "Alzheimer’s", "alzheimer's";
            "‘a’ ʼb `c ´d \u{ff07}e \u{ff40}f \u{1ffd}g \u{1fef}h ŉ", "'a' 'b 'c 'd 'e 'f 'g 'h 'n";
            "O`Hara", "o'hara";
            "non\u{2010}hodgkin COVID\u{2011}19", "non-hodgkin covid-19";
            "\u{2012}\u{2013}\u{2014}\u{2015}\u{2212}\u{ff0d}\u{fe58}\u{fe63}\u{fe31}", "---------";
            "onco\u{ad}lo\u{ad}gy", "oncology";
            "\u{ad}", "";
            "a\u{338}≠", "a=";
            "“a” \u{2016}\u{200f}b\u{2bd}", "“a” \u{2016}\u{200f}b\u{2bd}";
        ];
        for (text, expected) in cases {
            assert_eq!(fold(text), expected, "{text:?}");
        }
    }

    #[test]
    fn names_compare_without_blanks_and_joining_signs() {
        let cases = [
            ("Start_Date", "startdate"),
            ("start-date", "startdate"),
            ("start.date", "startdate"),
            (" start\u{a0}\u{2007}\u{202f}date\t", "startdate"),
            ("\u{feff}id\u{200b}\u{2060}\r\n", "id"),
            ("start/date", "start/date"),
            ("author's", "author's"),
            ("_-. ", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(comparable(text), expected, "{text:?}");
        }
    }

    #[test]
    fn different_letters_fold_differently() {
        let pairs = [
            ("각", "가"),
            ("हिन्दी", "हन्दी"),
            ("癌", "がん"),
            ("n", "m"),
            // Marks that make other letters.
            ("ぱ", "ば"),
            ("ﾊﾞｽ", "ハス"),
            ("ё", "е"),
            ("ї", "і"),
            ("ғ", "г"),
            ("ड\u{93c}", "ड"),
            ("क\u{94d}", "क"),
            ("ก\u{e48}า", "กา"),
            ("أ", "ا"),
            ("ئ", "ي"),
        ];
        for (one, other) in pairs {
            assert_ne!(fold(one), fold(other), "{one:?} and {other:?}");
            assert_ne!(match_form(one), match_form(other), "{one:?} and {other:?}");
        }
        assert!(
            !fold("각").contains(&fold("가")),
            "a Hangul syllable is one letter"
        );
    }

    #[test]
    fn texts_that_identify_one_record() {
        let cases = [
            ("Crohn’s & Colitis", "crohns  &\u{a0}colitis", true),
            ("Non‐Hodgkin-Tage", "nonhodgkin tage", true),
            ("Łódź, Ƶürich", "lodz, zurich", true),
            ("Ｅ－Poster ﬁ", "e poster FI", true),
            ("onco\u{ad}lo\u{200b}gy", "Oncology", true),
            ("ぱ", "は\u{309a}", true),
            ("COVID-19", "covid 19", true),
            ("2026–27", "2026 - 27", true),
            ("2026-27", "202627", false),
            ("Phase 1 2", "Phase 12", false),
            ("שָׁלוֹם", "שלום", false),
            ("عِلْم", "عَلَم", false),
            ("A/B", "AB", false),
            ("C+", "C", false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(
                match_form(one) == match_form(other),
                expected,
                "{one:?} and {other:?}"
            );
        }
    }

    #[test]
    fn folding_again_changes_nothing() {
        for text in ["Łódź İstanbul ﬁ ß Ǆ", "ΑΣ", "Å", "ŉ"] {
            assert_eq!(fold(&fold(text)), fold(text), "{text:?}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let cases = [
            ("Oncolgy", "Oncology", true),
            ("oncology", "Oncology", true),
            ("Germny", "Germany", true),
            ("southkorea", "South Korea", true),
            ("conference", "conferences", true),
            ("Journal", "journals", true),
            ("imprt", "import", true),
            ("licence", "license", true),
            ("therapy", "therapy-area", true),
            ("start_dat", "start_date", true),
            ("formats.oral", "formats_oral", true),
            (" name", "name", true),
            ("contry", "country", true),
            ("nmae", "name", true),
            ("idd", "id", true),
            ("ID", "id", true),
            ("Niger", "Nigeria", true),
            ("Austria", "Australia", true),
            ("port", "export", false),
            ("port", "max-exports-per-key", false),
            ("host", "log", false),
            ("ls", "log", false),
            ("Narnia", "Romania", false),
            ("xyzzy", "name", false),
            ("x", "y", false),
            ("", "id", false),
            // One letter in four of the longer name, and always one.
            ("abcdefgh", "abcdefxx", true),
            ("abcdefgh", "abcdexxx", false),
            ("abcdefg", "abcdexx", false),
            ("abcdefg", "xabcdefgx", true),
            ("abcdef", "xabcdefx", true),
            ("xbc", "abc", true),
            ("ab", "xb", true),
            ("a", "ab", false),
            // Four letters that a name begins with.
            ("abst", "abstract_due_date", true),
            ("abs", "abstract_due_date", false),
            ("date", "abstract_due_date", false),
        ];
        for (given, known, expected) in cases {
            let found = nearest(given, [known]).is_some();
            assert_eq!(found, expected, "{given:?} and {known:?}");
        }
        let found = nearest("nmae", ["name", "nme", "id"]);
        assert_eq!(found, Some("name"), "the nearest of them");
        let found = nearest("nmae", ["id", "nme", "name"]);
        assert_eq!(found, Some("nme"), "the first of two");
        let found = nearest("abcdefgh", ["abcdefxx", "abcdefgx"]);
        assert_eq!(found, Some("abcdefgx"), "the nearer one, though later");
        for (bytes, expected) in [(MAX_BYTES, true), (MAX_BYTES + 1, false)] {
            let (long, other) = ("x".repeat(bytes), "x".repeat(MAX_BYTES - 1));
            let found = nearest(&long, [&*other]).is_some();
            assert_eq!(found, expected, "{bytes} given");
            let found = nearest(&other, [&*long]).is_some();
            assert_eq!(found, expected, "{bytes} known");
        }
        assert_eq!(nearest(&"name".repeat(100_000), ["name"]), None);
    }
}
