//! Converts errors of opening a file into messages.

use std::io;
use std::path::Path;

use redb::DatabaseError;

use crate::store::StoreError;
use crate::store::error::is_full;
use crate::store::file::draft;
use crate::store::file::links::resolve;

pub(super) fn io_error(path: &Path, source: io::Error) -> StoreError {
    let path = &draft::display_path(path);
    if source.kind() == io::ErrorKind::NotFound {
        // For a dangling link, name its target.
        let path = if path.is_symlink() { resolve(path) } else { path.to_owned() };
        StoreError::NotFound { path }
    } else {
        StoreError::Io { path: path.to_owned(), source }
    }
}

pub(super) fn open_error(path: &Path, error: DatabaseError) -> StoreError {
    use redb::StorageError;
    let is_empty = path.metadata().is_ok_and(|found| found.len() == 0);
    let reason = match error {
        DatabaseError::Storage(_) if is_empty => "it is empty".to_owned(),
        DatabaseError::Storage(StorageError::Io(source)) if source.kind() == io::ErrorKind::InvalidData => {
            let text = source.to_string();
            if text.contains("magic number") { "it is another kind of file".to_owned() } else { text }
        }
        DatabaseError::Storage(StorageError::Io(source)) if source.kind() == io::ErrorKind::UnexpectedEof => {
            "it is cut short".to_owned()
        }
        DatabaseError::Storage(StorageError::Io(source)) if !is_full(&source) => return io_error(path, source),
        DatabaseError::Storage(StorageError::Corrupted(reason)) if reason.contains("truncated") => {
            "it is cut short".to_owned()
        }
        DatabaseError::Storage(StorageError::Corrupted(reason)) => reason,
        DatabaseError::UpgradeRequired(version) => format!("it is in the old redb format {version}"),
        other => return StoreError::from_redb(other.into()),
    };
    StoreError::NotADatabase { path: draft::display_path(path), reason }
}

/// An error of repairing a file. Without write permission, it says who can repair it.
pub(super) fn repair_error(path: &Path, error: DatabaseError) -> StoreError {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match error {
        DatabaseError::Storage(redb::StorageError::Io(source))
            if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem) =>
        {
            StoreError::NeedsRepair { path: resolve(path), source }
        }
        error => open_error(path, error),
    }
}
