//! Symbolic and hard links, and paths that lead to no file. Links are followed before a file is opened or replaced: replacing the link itself would
//! make a second database, while the first is still in use.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// The number of links that Linux follows on the way to a file.
const MAX_LINKS: usize = 40;

/// The file that a path leads to, with all links followed. If it cannot be resolved, the path as far as it can be.
pub fn resolve(path: &Path) -> PathBuf {
    if let Ok(found) = fs::canonicalize(path) {
        return found;
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = folder_of(&path).join(target);
    }
    match (fs::canonicalize(folder_of(&path)), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// The folder of a path; `.` for a bare file name.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Fails if a path leads to something else than a regular file. Opening a pipe would wait, and a device cannot be
/// replaced by a file.
pub(in crate::store) fn refuse_irregular(path: &Path) -> Result<(), StoreError> {
    let reason = match fs::metadata(path) {
        Ok(found) if found.is_dir() => "it is a folder",
        Ok(found) if !found.is_file() => "it is not a regular file",
        _ => return Ok(()),
    };
    Err(StoreError::BadTarget { path: path.to_owned(), reason: reason.to_owned() })
}

/// Fails if a file has several names: the other names would keep the old file.
pub(in crate::store) fn refuse_other_names(path: &Path) -> Result<(), StoreError> {
    let names = fs::metadata(path).map_or(1, |found| found.nlink());
    if names < 2 {
        return Ok(());
    }
    Err(StoreError::BadTarget {
        path: path.to_owned(),
        reason: format!(
            "it has {names} names (hard links); only this one would lead to the new file, and the others to the old \
             one. Remove the others (`find -samefile` lists them), or copy the file and rename the copy to this name"
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "").unwrap();
        for (target, link) in [
            ("real/file", "link"),
            ("link", "link of a link"),
            ("real", "folder"),
            ("real/new", "dangling"),
            ("dangling", "dangling twice"),
            ("nowhere/new", "without folder"),
            ("circle", "circle"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let cases = [
            ("real/file", "real/file"),
            ("real/../real/./file", "real/file"),
            ("link", "real/file"),
            ("link of a link", "real/file"),
            ("folder/file", "real/file"),
            ("real/other", "real/other"),
            ("folder/other", "real/other"),
            ("dangling", "real/new"),
            ("dangling twice", "real/new"),
            ("without folder", "nowhere/new"),
            ("missing/file", "missing/file"),
            ("circle", "circle"),
        ];
        for (path, expected) in cases {
            assert_eq!(resolve(&root.join(path)), root.join(expected), "{path}");
        }
    }
}
