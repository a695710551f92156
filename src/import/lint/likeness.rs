//! Names without what is spelled in different ways, and the edit distance of texts.

use unicode_normalization::char::is_combining_mark;

use crate::model::fold::fold;

/// Returns a name without case, diacritics, blanks and punctuation. A plus counts: `HIV+` is not `HIV`.
pub fn comparable(name: &str) -> String {
    let mut comparable = fold(name);
    if comparable.contains('&') {
        comparable = comparable.replace('&', "and");
    }
    comparable.retain(|letter| match letter {
        '+' => true,
        _ => letter.is_alphanumeric() || !letter.is_ascii() && is_combining_mark(letter),
    });
    comparable
}

/// Returns true if two comparable names differ in a few letters at most.
pub fn are_similar(one: &str, other: &str) -> bool {
    one == other
        || distance(
            one,
            other,
            one.chars().count().max(other.chars().count()) / 10,
        )
        .is_some()
}

/// The maximum length, in bytes, of texts that are compared.
pub const MAX_BYTES: usize = 200;

/// Returns the edit distance of two texts, if it is at most `max` and the digits are equal. A swap of two neighbours
/// counts as one edit.
pub fn distance(one: &str, other: &str, max: usize) -> Option<usize> {
    // The difference of the lengths is a cheap lower bound.
    let is_far = one.chars().count().abs_diff(other.chars().count()) > max
        || one.len().max(other.len()) > MAX_BYTES;
    if is_far
        || !one
            .bytes()
            .filter(u8::is_ascii_digit)
            .eq(other.bytes().filter(u8::is_ascii_digit))
    {
        return None;
    }
    Some(strsim::damerau_levenshtein(one, other)).filter(|distance| *distance <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_by_a_slip_are_alike() {
        let cases = cases![
            "European Society of Cardiology Congress", "Europaen Society of Cardiology Congress", true;
            "European Society of Cardiology Congress", "EUROPEAN SOCIETY OF CARDIOLOGY - CONGRESS", true;
            "Heart & Lung Congress", "Heart and Lung Congress", true;
            "ASCO Annual Meeting 2026", "ASCO Annual Meeting 2025", false;
            "ESMO Breast Cancer", "ESMO Lung Cancer", false;
            "Asia Pacific Forum 1", "Asia Pacific Forum 2", false;
            "", "A", false;
            // One letter in ten may differ, counted by the longer name.
            "abcdefghijklmnopqrst", "abcdefghijklmnopqrxx", true;
            "abcdefghijklmnopqrst", "abcdefghijklmnopqxxx", false;
            "abcdefghijklmnopqrst", "abcdefghijklmnopqrx", true;
            "abcdefghijklmnopqrs", "abcdefghijklmnopqxx", false;
            "abcdefghij", "abcdefghix", true;
            "abcdefghi", "abcdefghx", false;
            "Patients' Day", "Patients’ Day", true;
        ];
        for (one, other, expected) in cases {
            let [first, second] = [one, other].map(comparable);
            let found = are_similar(&first, &second);
            assert_eq!(found, expected, "{one:?} and {other:?}");
        }
    }

    #[test]
    fn near_texts_are_found() {
        let cases = [
            ("cardiology", "cardiology", 1, Some(0)),
            ("cardiology", "cadriology", 1, Some(1)),
            ("cardiology", "cardiolgy", 1, Some(1)),
            ("cardiology", "cardiologyy", 1, Some(1)),
            ("cardiology", "kardiology", 1, Some(1)),
            ("cardiology", "kardiologi", 2, Some(2)),
            ("cardiology", "kardiologi", 1, None),
            ("cardiology", "kardiologie", 2, None),
            // The same letters in another order.
            ("cardiology", "golocardiy", 2, None),
            ("ab", "ba", 1, Some(1)),
            ("a", "", 1, Some(1)),
            ("a", "", 0, None),
            ("forum1", "forum2", 2, None),
            ("", "", 0, Some(0)),
            ("", "ab", 1, None),
        ];
        for (one, other, max, expected) in cases {
            assert_eq!(distance(one, other, max), expected, "{one:?} {other:?}");
            assert_eq!(distance(other, one, max), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn texts_are_compared_up_to_their_longest_length() {
        for (bytes, expected) in [
            (MAX_BYTES - 1, Some(1)),
            (MAX_BYTES, Some(1)),
            (MAX_BYTES + 1, None),
        ] {
            let long = "x".repeat(bytes);
            let shorter = "x".repeat(bytes - 1);
            assert_eq!(distance(&long, &shorter, 1), expected, "{bytes}");
            assert_eq!(distance(&shorter, &long, 1), expected, "{bytes}");
        }
    }
}
