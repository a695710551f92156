//! Error messages: each cause once, with a hint instead of the number of a system error.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::store::file::writer_note::user_name;

/// The error and its causes in one line. A cause that is already in the text is not repeated.
pub(in crate::cli) fn describe(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    with_remedy(text)
}

/// Replaces the number of a system error by a hint.
fn with_remedy(text: String) -> String {
    const MARK: &str = " (os error ";
    let Some((before, rest)) = text.split_once(MARK) else { return text };
    let Some((number, after)) = rest.split_once(')') else { return text };
    let Ok(number) = number.parse() else { return text };
    let remedy = remedy(std::io::Error::from_raw_os_error(number).kind(), before);
    match remedy {
        // The message has a hint of its own.
        _ if after.contains("; ") || before.contains("; ") => format!("{before}{after}"),
        Some(remedy) => format!("{before}{after}; {remedy}"),
        None => text,
    }
}

fn remedy(kind: ErrorKind, message: &str) -> Option<String> {
    Some(match kind {
        ErrorKind::NotFound => "check the path and its spelling".to_owned(),
        ErrorKind::PermissionDenied => match owner_of_path_in(message) {
            Some(owner) => format!("{owner}; run the command as a user with access, or change the permissions"),
            None => "run the command as a user with access, or change the permissions".to_owned(),
        },
        ErrorKind::IsADirectory => "it is a folder; name a file".to_owned(),
        ErrorKind::NotADirectory => "a part of the path is a file, not a folder; name another path".to_owned(),
        ErrorKind::AlreadyExists => "a file with this name exists; choose another name".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only; choose another path".to_owned(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some room on the disk".to_owned(),
        ErrorKind::AddrInUse => "another program listens there; stop it, or choose another address".to_owned(),
        _ => return None,
    })
}

/// The owner of the path in a message such as `cannot read a/b: Permission denied`, or of the nearest folder above it.
fn owner_of_path_in(message: &str) -> Option<String> {
    let (subject, _) = message.rsplit_once(": ")?;
    // A path may contain blanks, so the longest suffix that exists is the path.
    let starts = std::iter::once(0).chain(subject.match_indices(' ').map(|(at, _)| at + 1));
    let paths = starts.filter_map(|start| subject.get(start..)).map(|path| Path::new(path.trim_end_matches(':')));
    let (path, found) = paths
        .flat_map(Path::ancestors)
        .filter(|path| !path.as_os_str().is_empty())
        .find_map(|path| Some((path, path.metadata().ok()?)))?;
    let owner = user_name(found.uid()).unwrap_or_else(|| format!("user {}", found.uid()));
    Some(format!("{} belongs to {owner} (mode {:03o})", path.display(), found.mode() & 0o777))
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn a_cause_is_described_once_with_a_hint() {
        let system = |number| std::io::Error::from_raw_os_error(number);
        let cases = [
            (anyhow!("nothing to do"), "nothing to do"),
            (
                anyhow!(system(2)).context("cannot read x"),
                "cannot read x: No such file or directory; check the path and its spelling",
            ),
            (anyhow!("cannot read x: {}", system(21)), "cannot read x: Is a directory; it is a folder; name a file"),
            (
                Err::<(), _>(system(2)).with_context(|| format!("x: {}", system(2))).unwrap_err(),
                "x: No such file or directory; check the path and its spelling",
            ),
            (anyhow!("no room; free some: {}", system(28)), "no room; free some: No space left on device"),
        ];
        for (error, expected) in cases {
            assert_eq!(describe(&error), expected);
        }
        let told = describe(&anyhow!(system(13)).context("/nowhere at all/x"));
        assert!(told.starts_with("/nowhere at all/x: Permission denied; / belongs to root (mode "), "{told}");
    }
}
