//! Lists of words, and patterns of texts.

use regex::Regex;

/// Returns a regular expression of the program.
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is valid")
}

/// Returns true if a list of words, separated by blanks, has a word.
pub(in crate::import) fn has_word(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}
