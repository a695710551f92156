//! Error messages: each cause once.

use std::io;
use std::path::Path;

use anyhow::anyhow;

use crate::disk;

/// The error and its causes in one line. A cause that is already in the text is not repeated.
pub(in crate::cli) fn describe(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let system = cause.downcast_ref::<io::Error>();
        let cause = system.map_or_else(|| cause.to_string(), disk::describe);
        if !text.contains(&cause) {
            let separator = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{separator}{cause}{}", system.map(disk::remedy).unwrap_or_default());
        }
    }
    text
}

/// Maps an error of the operating system at a path.
pub(in crate::cli) fn at(path: &Path) -> impl FnOnce(io::Error) -> anyhow::Error {
    move |error| anyhow!(disk::describe_at(path, &error))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::store::StoreError;

    #[test]
    fn a_cause_is_described_once() {
        let missing = || io::Error::from_raw_os_error(2);
        let cases = [
            (anyhow!("nothing to do"), "nothing to do"),
            (
                anyhow!(io::Error::from_raw_os_error(28)).context("row 3"),
                "row 3: No space left on device; free some room on the disk",
            ),
            (
                StoreError::Io { path: PathBuf::from("x"), source: missing() }.into(),
                "x: No such file or directory; check the path and its spelling",
            ),
        ];
        for (error, expected) in cases {
            assert_eq!(describe(&error), expected);
        }
        let refused = StoreError::Io { path: PathBuf::from("/x"), source: io::Error::from_raw_os_error(13) };
        let told = describe(&refused.into());
        assert_eq!(
            (told.matches("Permission denied").count(), told.matches("run the command").count()),
            (1, 1),
            "{told}"
        );
    }
}
