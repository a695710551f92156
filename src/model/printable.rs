//! Foreign texts, escaped so that they cannot control a terminal or a shell.

use std::fmt;
use std::fmt::Write as _;

/// Displays a foreign text. Characters that move the cursor, end the line or change the text direction are escaped:
/// `\u{1b}`, `\n`.
#[derive(Clone, Copy)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = 0;
        for (at, letter) in self.0.char_indices().filter(|(_, letter)| steers(*letter)) {
            f.write_str(&self.0[shown..at])?;
            write!(f, "{}", letter.escape_default())?;
            shown = at + letter.len_utf8();
        }
        f.write_str(&self.0[shown..])
    }
}

/// Escapes the characters of [`steers`] in JSON, as `\u009b`. Valid JSON has them only in strings.
pub fn printable_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        match u16::try_from(u32::from(letter)) {
            // Writing to a string cannot fail.
            Ok(unit) if steers(letter) => {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Whether a character controls a terminal: control characters (also those of ISO 6429), line separators, and explicit
/// formatting of the text direction (Unicode UAX #9). The marks in Hebrew and Arabic names do not count.
pub fn steers(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Displays a text as one word of a POSIX shell. Letters, digits and harmless signs stay bare; other texts are quoted.
#[derive(Clone, Copy)]
pub struct ShellWord<'a>(pub &'a str);

impl fmt::Display for ShellWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty()
            && self
                .0
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"@%_+=:,./-".contains(&byte))
        {
            return f.write_str(self.0);
        }
        write!(f, "'{}'", self.0.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn json_keeps_its_meaning() {
        let cases = cases![
            r#"{"a":"Zürich 日本 😀 \n"}"#.to_owned(), r#"{"a":"Zürich 日本 😀 \n"}"#;
            "{\"a\":\"\u{9b}2J\u{7f}\u{85}\u{202e}\u{2028}\u{2066}\"}".to_owned(),
                r#"{"a":"\u009b2J\u007f\u0085\u202e\u2028\u2066"}"#;
        ];
        for (json, expected) in cases {
            let escaped = printable_json(&json);
            assert_eq!(escaped, expected);
            let [before, after] = [&json, &escaped]
                .map(|json| serde_json::from_str::<serde_json::Value>(json).unwrap());
            assert_eq!(before, after, "{json}");
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        let cases = cases![
            "Ann's key: Zürich, 日本, שלום\u{200f}!", "Ann's key: Zürich, 日本, שלום\u{200f}!";
            "a\x1b[31m\nb", "a\\u{1b}[31m\\nb";
            "\r\t\x07\0", "\\r\\t\\u{7}\\u{0}";
            "\u{9b}2J\u{7f}", "\\u{9b}2J\\u{7f}";
            "\u{202e}cba\u{2028}", "\\u{202e}cba\\u{2028}";
            "\u{2027}\u{2029}\u{202a}\u{202f}", "\u{2027}\\u{2029}\\u{202a}\u{202f}";
            "\u{2065}\u{2066}\u{2069}\u{206a}", "\u{2065}\\u{2066}\\u{2069}\u{206a}";
            "'a' \"b\" \\", "'a' \"b\" \\";
            "", "";
        ];
        for (text, expected) in cases {
            assert_eq!(Printable(text).to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_shell_reads_a_word_as_it_is() {
        let cases = cases![
            "", "''";
            "medfeed", "medfeed";
            "/usr/bin/medfeed-0.1", "/usr/bin/medfeed-0.1";
            "s3://bucket/feed", "s3://bucket/feed";
            "http://[::1]:8080/v1/status", "'http://[::1]:8080/v1/status'";
            "/my files/a.redb", "'/my files/a.redb'";
            "it's", r"'it'\''s'";
            "'; touch pwned; '", r"''\''; touch pwned; '\'''";
            "$(touch pwned)`touch pwned`", "'$(touch pwned)`touch pwned`'";
            "~", "'~'";
            r"\", r"'\'";
            "a\nb", "'a\nb'";
            "München", "'München'";
        ];
        let folder = tempfile::tempdir().unwrap();
        for (text, expected) in cases {
            assert_eq!(ShellWord(text).to_string(), expected);
            let line = format!("printf %s {}", ShellWord(text));
            let said = Command::new("sh")
                .arg("-c")
                .arg(&line)
                .current_dir(&folder)
                .output()
                .unwrap();
            assert!(said.status.success(), "{line}");
            assert_eq!(said.stdout.as_slice(), text.as_bytes(), "{line}");
        }
        let count = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(count, 0, "a word was run");
    }
}
