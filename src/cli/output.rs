//! The output of commands: text for people, one JSON object for scripts. Errors name each cause once.

use std::io::{self, IsTerminal, Write, stderr, stdin, stdout};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use serde_json::json;

use crate::disk;
use crate::import::{Finding, FindingGroup, Findings};
use crate::model::{Count, Joined, Printable, nearest, printable_json};

/// Prints why the command failed.
pub fn print_error(json: bool, message: &str) {
    if !json || print_json(&json!({ "error": message.trim_end() }).to_string()).is_err() {
        note(&format!("error: {}", Printable(message.trim_end())));
    }
}

/// Prints a text on standard output, as far as it can be written.
pub fn print_line(text: &str) {
    let _ = print_text(text);
}

/// Prints a text on standard output. A closed pipe is not an error.
pub fn print_text(text: &str) -> io::Result<()> {
    print_file(format!("{}\n", harmless(text.trim_end_matches('\n'))).as_bytes())
}

/// Prints JSON on standard output. Control characters occur only in strings, and are escaped there. A closed pipe is
/// not an error.
pub fn print_json(json: &str) -> io::Result<()> {
    print_file(format!("{}\n", printable_json(json)).as_bytes())
}

/// Prints a file on standard output. A closed pipe is not an error.
pub fn print_file(content: &[u8]) -> io::Result<()> {
    let mut out = stdout().lock();
    match out.write_all(content).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints a text on standard error.
pub fn note(text: &str) {
    let _ = writeln!(stderr().lock(), "{}", harmless(text));
}

/// Prints a warning that is no part of the result.
pub fn warn(message: &str) {
    note(&format!("warning: {}", Printable(message)));
}

/// Returns a line for each kind of findings, or for each finding.
pub fn list_findings(findings: &Findings, all: bool) -> Vec<String> {
    let kept = findings.kept();
    let mut listed = kept.len();
    let mut lines: Vec<String> = kept.iter().map(Finding::to_string).collect();
    if !all {
        let groups = findings.groups();
        lines = groups.map(FindingGroup::to_string).collect();
        listed = findings.groups().map(|group| group.count).sum();
    }
    let more = findings.total() - listed;
    if more > 0 {
        lines.push(format!(
            "and {} more, which are only counted",
            Count(more as u64)
        ));
    }
    lines
}

/// Makes every line of a text safe to print on a terminal. Values that must not break a line are made [`Printable`] by
/// the caller.
fn harmless(text: &str) -> String {
    text.split('\n')
        .map(|line| Printable(line).to_string())
        .joined("\n")
}

/// Whether a question can be asked: standard input is a terminal, and nothing waits in it. Pasted lines are commands,
/// and no answers.
pub fn can_ask() -> bool {
    stdin().is_terminal() && rustix::io::ioctl_fionread(stdin()).is_ok_and(|waiting| waiting == 0)
}

/// Whether standard error is a terminal that understands escape sequences.
pub fn can_draw() -> bool {
    stderr().is_terminal() && !is_dumb_terminal()
}

/// Whether the user says that the terminal understands no escape sequences.
pub fn is_dumb_terminal() -> bool {
    std::env::var_os("TERM").is_some_and(|kind| kind == "dumb")
}

/// Asks on a terminal, unless `yes` is set. Returns an error if the answer is not `y` or `yes`, or if there is no
/// terminal. `done` names the refused action in that error, such as `removed`.
pub fn confirm(question: &str, yes: bool, done: &str) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !can_ask() {
        bail!(
            "nothing was {done}: \"{question}\" cannot be asked, because standard input is not a terminal, or further lines wait in it; \
             add --yes to continue without a question"
        );
    }
    let _ = write!(stderr().lock(), "{} [y/N] ", Printable(question));
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    bail!("nothing was {done}")
}

/// Rows below a header, in aligned columns. A cell never breaks a line.
pub fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let header = header.map(str::to_owned);
    let lines: Vec<[String; N]> = std::iter::once(&header)
        .chain(rows)
        .map(|row| row.each_ref().map(|cell| Printable(cell).to_string()))
        .collect();
    let mut widths = [0; N];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let lines = lines.iter().map(|line| {
        let cells = line.iter().zip(widths);
        let cells = cells.map(|(cell, width)| format!("{cell:<width$}"));
        cells.joined("  ").trim_end().to_owned() + "\n"
    });
    lines.collect()
}

/// A count with its noun: `1 record`, `2 records`, `2 entries`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    match noun.strip_suffix("ry") {
        _ if count == 1 => format!("1 {noun}"),
        Some(stem) => format!("{count} {stem}ries"),
        None => format!("{count} {noun}s"),
    }
}

/// The error for a name that nothing has, with a similar known name, or else a remedy.
pub fn unknown_name<'a>(
    problem: String,
    name: &str,
    known: impl Iterator<Item = &'a str>,
    remedy: &str,
) -> anyhow::Error {
    match nearest(name, known) {
        Some(near) => anyhow!("{problem}; did you mean `{near}`?"),
        None => anyhow!("{problem}; {remedy}"),
    }
}

/// The error and its causes in one line. A cause that is already in the text is not repeated.
pub fn describe_error(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let system = cause.downcast_ref::<io::Error>();
        let cause = system.map_or_else(|| cause.to_string(), disk::describe);
        if !text.contains(&cause) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
            text += system.map(disk::remedy).unwrap_or_default();
        }
    }
    text
}

/// Maps an error of the operating system at a path.
pub fn at(path: &Path) -> impl FnOnce(io::Error) -> anyhow::Error {
    move |error| anyhow!(disk::describe_at(path, &error))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::store::StoreError;

    #[test]
    fn lines_stay_and_control_characters_are_escaped() {
        let cases = [
            ("a\n  b\n", "a\n  b\n"),
            ("a\r\x1b[2J\nb\u{9b}", "a\\r\\u{1b}[2J\nb\\u{9b}"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(harmless(text), expected, "{text:?}");
        }
    }

    #[test]
    fn at_most_a_thousand_kinds_of_findings_are_listed() {
        let mut kinds = Findings::default();
        kinds.extend((0..12_345).map(|at| Finding {
            field: Some(at.to_string()),
            ..Finding::default()
        }));
        let cases = [
            (false, 1_001, "and 11,345 more, which are only counted"),
            (true, 10_001, "and 2,345 more, which are only counted"),
        ];
        for (all, lines, last) in cases {
            let listed = list_findings(&kinds, all);
            assert_eq!((listed.len(), listed[lines - 1].as_str()), (lines, last));
        }
    }

    #[test]
    fn counts_have_a_singular_or_plural_noun() {
        let cases = [
            (0, "record", "0 records"),
            (1, "record", "1 record"),
            (2, "record", "2 records"),
            (1, "entry", "1 entry"),
            (0, "entry", "0 entries"),
            (21, "entry", "21 entries"),
            (2, "key", "2 keys"),
        ];
        for (count, noun, expected) in cases {
            assert_eq!(counted(count, noun), expected);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["é\n", "1", ""], ["Zürich", "", "x"], ["a", "22222", "yy"]];
        let text = table(
            ["NAME", "N", "LAST"],
            &rows.map(|row| row.map(str::to_owned)),
        );
        let expected = "NAME    N      LAST\né\\n     1\nZürich         x\na       22222  yy\n";
        assert_eq!(text, expected);
        assert_eq!(table(["A"], &[]), "A\n");
    }

    #[test]
    fn a_cause_is_described_once() {
        let missing = || io::Error::from_raw_os_error(2);
        let cases = cases![
            anyhow!("nothing to do"), "nothing to do";
            anyhow!(io::Error::from_raw_os_error(28)).context("row 3"),
                "row 3: No space left on device; free some room on the disk, or raise the limits of this user";
            StoreError::Io { path: PathBuf::from("x"), source: missing() }.into(),
                "x: No such file or directory; check the path and its spelling";
        ];
        for (error, expected) in cases {
            assert_eq!(describe_error(&error), expected);
        }
        let refused = StoreError::Io {
            path: PathBuf::from("/x"),
            source: io::Error::from_raw_os_error(13),
        };
        let told = describe_error(&refused.into());
        assert_eq!(told.matches("Permission denied").count(), 1, "{told}");
        assert_eq!(told.matches("run the command").count(), 1, "{told}");
    }
}
