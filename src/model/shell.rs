//! Texts in command lines that people paste into a shell.

use std::fmt;

/// Displays a text as one word of a POSIX shell. Letters, digits and harmless signs stay bare; other texts are quoted.
#[derive(Clone, Copy, Debug)]
pub struct ShellWord<'a>(pub &'a str);

impl fmt::Display for ShellWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"@%_+=:,./-".contains(&byte);
        if !self.0.is_empty() && self.0.bytes().all(is_bare) {
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
    fn a_shell_reads_a_word_as_it_is() {
        let cases = [
            ("", "''"),
            ("medfeed", "medfeed"),
            ("/usr/bin/medfeed-0.1", "/usr/bin/medfeed-0.1"),
            ("s3://bucket/feed", "s3://bucket/feed"),
            ("http://[::1]:8080/v1/status", "'http://[::1]:8080/v1/status'"),
            ("/my files/a.redb", "'/my files/a.redb'"),
            ("it's", r"'it'\''s'"),
            ("'; touch pwned; '", r"''\''; touch pwned; '\'''"),
            ("$(touch pwned)`touch pwned`", "'$(touch pwned)`touch pwned`'"),
            ("~", "'~'"),
            (r"\", r"'\'"),
            ("a\nb", "'a\nb'"),
            ("München", "'München'"),
        ];
        let folder = tempfile::tempdir().unwrap();
        for (text, expected) in cases {
            assert_eq!(ShellWord(text).to_string(), expected);
            let line = format!("printf %s {}", ShellWord(text));
            let said = Command::new("sh").arg("-c").arg(&line).current_dir(&folder).output().unwrap();
            assert_eq!((said.status.success(), said.stdout.as_slice()), (true, text.as_bytes()), "{line}");
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "a word was run");
    }
}
