//! Characters that show nothing.

/// Whether the character is blank, or invisible as what web pages leave in copied texts.
pub(super) fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || is_stray(letter)
}

/// Blanks that nobody types: non-breaking ones, and such without width.
fn is_stray(letter: char) -> bool {
    matches!(letter, '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
}
