//! Maps SQLite's errors to a [`PullError`].

use std::path::Path;

use rusqlite::{Error, ErrorCode};

use crate::pull::error::PullError;

/// Maps an error of SQLite.
pub fn failure(path: &Path, error: &Error) -> PullError {
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            PullError::Unwritable(format!("{path}: no space is left on the disk; make room and run again"))
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => PullError::Unwritable(format!(
            "{path}: another program holds a lock on it for writing; close it, or run again later"
        )),
        Some(ErrorCode::SystemIoFailure) => PullError::Unwritable(format!(
            "{path}: it cannot be read or written ({error}); check the disk and its space, and run again"
        )),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => PullError::Unusable(
            format!("{path}: it cannot be opened for writing; check the permissions of it and its folder"),
        ),
        Some(ErrorCode::NotADatabase) => no_copy(&path),
        Some(ErrorCode::ConstraintViolation | ErrorCode::Unknown) => PullError::Rejected {
            copy: path.to_string(),
            reason: error.to_string(),
            remedy: "move the file away, and the next pull makes a new copy",
        },
        _ => PullError::Unusable(format!(
            "{path}: the copy is damaged ({error}); move it away, and the next pull makes a new one"
        )),
    }
}

/// The error for a file that is not a copy.
pub fn no_copy(path: &impl std::fmt::Display) -> PullError {
    PullError::Unusable(format!("{path} is not a copy made by `medfeed pull`, and was not changed; give another path"))
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn each_error_has_its_exit_code() {
        // (SQLite's code, whether it may pass, the exit code, a part of the message)
        let cases = [
            (ffi::SQLITE_BUSY, true, 1, "another program holds a lock"),
            (ffi::SQLITE_BUSY_SNAPSHOT, true, 1, "another program holds a lock"),
            (ffi::SQLITE_LOCKED, true, 1, "another program holds a lock"),
            (ffi::SQLITE_FULL, true, 1, "no space is left"),
            (ffi::SQLITE_IOERR, true, 1, "check the disk"),
            (ffi::SQLITE_READONLY, false, 4, "check the permissions"),
            (ffi::SQLITE_CANTOPEN, false, 4, "check the permissions"),
            (ffi::SQLITE_NOTADB, false, 4, "is not a copy"),
            (ffi::SQLITE_CORRUPT, false, 4, "the copy is damaged"),
            (ffi::SQLITE_ERROR, false, 4, "the tables are damaged"),
            (ffi::SQLITE_CONSTRAINT_TRIGGER, false, 4, "the tables are damaged"),
        ];
        for (code, may_pass, exit_code, part) in cases {
            let error = failure(Path::new("copy.sqlite"), &Error::SqliteFailure(ffi::Error::new(code), None));
            assert_eq!((error.may_pass(), error.exit_code()), (may_pass, exit_code), "{code}: {error}");
            assert!(error.to_string().contains(part), "{code}: {error}");
        }
    }
}
