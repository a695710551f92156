//! A bucket in a folder. Each object is a file, written and synced under another name before it gets its own.
//!
//! A new folder is private to its owner. Files and folders in it have the permissions of the root folder. So an
//! operator who creates that folder decides who can read the bucket.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::{NamedTempFile, PersistError};

use super::object::{
    BucketError, BucketObject, Created, ListedObject, OBJECT_BYTES, Result, Store,
};
use crate::disk::{self, DiskEvent, describe_at, folder_of, if_found};
use crate::model::{Timestamp, now};

/// The prefix of drafts: files in the root folder that have no object name yet.
const DRAFT: &str = ".draft-";

/// The age in seconds at which a draft is certainly abandoned.
const DRAFT_AGE_S: i64 = 86_400;

/// The maximum number of attempts to write while other programs delete the folder.
const TRIES: usize = 10;

#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// The folder's inode when it was first seen. If the disk is not mounted, the path leads to another folder.
    inode: OnceLock<u64>,
}

impl Folder {
    pub fn new(root: &Path) -> Folder {
        Folder {
            root: root.to_owned(),
            inode: OnceLock::new(),
        }
    }

    fn write(
        &self,
        name: &str,
        bytes: &[u8],
        take_name: fn(NamedTempFile, PathBuf) -> Result<File, PersistError>,
    ) -> Result<Created> {
        let mode = self.root()?.mode();
        let target = self.root.join(name);
        let write = || -> io::Result<Created> {
            let mut draft = tempfile::Builder::new()
                .prefix(DRAFT)
                .tempfile_in(&self.root)?;
            draft.write_all(bytes)?;
            draft
                .as_file()
                .set_permissions(Permissions::from_mode(mode & 0o666))?;
            disk::sync(draft.as_file())?;
            let folder = target.parent().unwrap_or(&self.root);
            self.make_folders(folder, mode & 0o777)?;
            let created = match take_name(draft, target.clone()) {
                Ok(_) => {
                    disk::report(DiskEvent::Name {
                        from: None,
                        to: &target,
                    });
                    Created::New
                }
                Err(refused) if refused.error.kind() == ErrorKind::AlreadyExists => Created::Exists,
                Err(refused) => return Err(refused.error),
            };
            // Also for existing objects and folders: who created them may have died before the sync.
            let above = folder
                .ancestors()
                .take_while(|above| above.starts_with(&self.root));
            above.into_iter().try_for_each(disk::sync_folder)?;
            Ok(created)
        };
        self.retried(&target, write)
    }

    /// Repeats a write while other programs delete its folder.
    fn retried(&self, target: &Path, write: impl Fn() -> io::Result<Created>) -> Result<Created> {
        for _ in 1..TRIES {
            match write() {
                // Deleting the last object of a folder removes the folder.
                Err(error) if error.kind() == ErrorKind::NotFound => self.root()?,
                written => return written.map_err(failed("write", target)),
            };
        }
        write().map_err(failed("write", target))
    }

    fn make_folders(&self, folder: &Path, mode: u32) -> io::Result<()> {
        if folder == self.root || folder.is_dir() {
            return Ok(());
        }
        let above = folder.parent().unwrap_or(&self.root);
        self.make_folders(above, mode)?;
        match fs::create_dir(folder) {
            Ok(()) => fs::set_permissions(folder, Permissions::from_mode(mode))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
            Err(error) => return Err(error),
        }
        disk::report(DiskEvent::Name {
            from: None,
            to: folder,
        });
        Ok(())
    }

    /// Returns the metadata of the root folder. Fails if it is missing, or another folder than before.
    fn root(&self) -> Result<Metadata> {
        let shown = self.root.display();
        let found = match fs::metadata(&self.root) {
            Ok(found) if found.is_dir() => found,
            Ok(_) => {
                return Err(BucketError::Refused(format!(
                    "{shown} is a file; name a folder"
                )));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(BucketError::Unreachable(format!(
                    "there is no folder {shown}; check the path and whether its disk is mounted. `medfeed publish` makes a \
                     new one, and with --start-over one that was lost"
                )));
            }
            Err(error) => return Err(failed("read", &self.root)(error)),
        };
        if *self.inode.get_or_init(|| found.ino()) != found.ino() {
            return Err(BucketError::Unreachable(format!(
                "{shown} is another folder than before; mount its disk again, or restart to use the new one"
            )));
        }
        Ok(found)
    }
}

/// Converts an error of a folder or file.
fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> BucketError {
    move |error| {
        let text = format!("cannot {what} {}", describe_at(path, &error));
        match error.kind() {
            ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::InvalidFilename
            | ErrorKind::Unsupported => BucketError::Refused(text),
            _ => BucketError::Unreachable(text),
        }
    }
}

impl Store for Folder {
    /// Creates the folder if needed, and removes old drafts.
    fn prepare(&self) -> Result<()> {
        if !self.root.is_dir() {
            let parents = parents_of_new(&self.root);
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.root)
                .and_then(|()| parents.into_iter().try_for_each(disk::sync_folder))
                .map_err(failed("create the folder", &self.root))?;
        }
        self.root()?;
        let drafts = fs::read_dir(&self.root).map_err(failed("list", &self.root))?;
        for draft in drafts
            .flatten()
            .filter(|file| file.file_name().to_string_lossy().starts_with(DRAFT))
        {
            if draft
                .metadata()
                .is_ok_and(|found| modified(&found).plus_s(DRAFT_AGE_S) < now())
            {
                // A draft that cannot be removed does no harm.
                let _ = fs::remove_file(draft.path());
            }
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Option<BucketObject>> {
        self.root()?;
        let path = self.root.join(name);
        let read = || -> io::Result<(Metadata, Vec<u8>)> {
            let file = File::open(&path)?;
            let found = file.metadata()?;
            let mut bytes = Vec::new();
            if found.len() <= OBJECT_BYTES {
                file.take(OBJECT_BYTES).read_to_end(&mut bytes)?;
            }
            Ok((found, bytes))
        };
        match if_found(read()).map_err(failed("read", &path))? {
            Some((found, _)) if found.len() > OBJECT_BYTES => Err(BucketError::Damaged {
                name: name.to_owned(),
                detail: "it is too large for an object".to_owned(),
            }),
            found => Ok(found.map(|(found, bytes)| BucketObject {
                bytes,
                modified: modified(&found),
            })),
        }
    }

    fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Created> {
        self.write(name, &bytes, NamedTempFile::persist_noclobber)
    }

    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        self.write(name, &bytes, NamedTempFile::persist).map(drop)
    }

    fn list(&self, folder: &str, _after: Option<&str>) -> Result<Vec<ListedObject>> {
        self.root()?;
        let mut listed = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(name) = folders.pop() {
            let path = self.root.join(&name);
            let found = if_found(entries(&path)).map_err(failed("list", &path))?;
            for (last, found) in found.unwrap_or_default() {
                let name = format!("{name}/{last}");
                if found.is_dir() {
                    folders.push(name);
                } else if found.is_file() {
                    listed.push(ListedObject {
                        name,
                        bytes: found.len(),
                        modified: modified(&found),
                    });
                }
            }
        }
        Ok(listed)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.root()?;
        let path = self.root.join(name);
        let removed = if_found(fs::remove_file(&path)).map_err(failed("delete", &path))?;
        if removed.is_some() {
            disk::report(DiskEvent::Remove { path: &path });
        }
        // Remove the folders that are empty now.
        let above = path
            .ancestors()
            .skip(1)
            .take_while(|above| *above != self.root);
        for folder in above {
            if fs::remove_dir(folder).is_err() {
                break;
            }
            disk::report(DiskEvent::Remove { path: folder });
        }
        Ok(())
    }
}

fn modified(found: &Metadata) -> Timestamp {
    Timestamp::from_unix_s(found.mtime())
}

/// The folders that get a new entry when a folder is created with those above it. Without a sync of each, a power loss
/// can take the whole bucket away.
fn parents_of_new(folder: &Path) -> Vec<&Path> {
    let missing = folder
        .ancestors()
        .take_while(|above| !above.as_os_str().is_empty() && !above.is_dir());
    missing.map(folder_of).collect()
}

/// The names and metadata of what a folder has, without hidden files and those that vanish meanwhile.
fn entries(folder: &Path) -> io::Result<Vec<(String, Metadata)>> {
    let mut entries = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        let Ok(name) = file.file_name().into_string() else {
            continue;
        };
        if name.starts_with('.') {
            continue;
        }
        entries.extend(if_found(file.metadata())?.map(|found| (name, found)));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn date(path: &Path, at: Timestamp) {
        let then = UNIX_EPOCH + Duration::from_secs(u64::try_from(at.unix_s()).unwrap());
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(then)
            .unwrap();
    }

    fn new() -> (tempfile::TempDir, Folder) {
        let above = tempfile::tempdir().unwrap();
        let folder = Folder::new(&above.path().join("bucket"));
        folder.prepare().unwrap();
        (above, folder)
    }

    #[test]
    fn drafts_of_more_than_a_day_are_removed() {
        let (_above, folder) = new();
        let files = [
            (".draft-old", 86_400 + 60, false),
            (".draft-new", 86_400 - 60, true),
            ("alive", 900_000, true),
        ];
        for (name, age_s, _) in files {
            fs::write(folder.root.join(name), "x").unwrap();
            date(&folder.root.join(name), now().plus_s(-age_s));
        }
        folder.prepare().unwrap();
        for (name, _, is_kept) in files {
            assert_eq!(folder.root.join(name).exists(), is_kept, "{name}");
        }
    }

    #[test]
    fn drafts_and_folders_are_no_objects() {
        let (_above, folder) = new();
        for name in ["log/1", "log/2/3/4", "alive"] {
            assert_eq!(folder.create(name, b"x".to_vec()), Ok(Created::New));
        }
        fs::write(folder.root.join("log/.hidden"), "x").unwrap();
        let names = folder.list("log", None).unwrap().into_iter();
        let names: Vec<String> = names.map(|found| found.name).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(folder.get("log/2/3/4").unwrap().is_some());
        assert_eq!(folder.list("states", None).unwrap(), []);
        // Deleting removes only folders that are empty.
        folder.delete("log/2/3/4").unwrap();
        assert!(!folder.root.join("log/2").exists() && folder.get("log/1").unwrap().is_some());
        folder.delete("alive").unwrap();
        folder.delete("alive").unwrap();
        fs::remove_file(folder.root.join("log/.hidden")).unwrap();
        folder.delete("log/1").unwrap();
        assert!(folder.root.is_dir(), "the root folder stays");
        assert!(!folder.root.join("log").exists(), "the root folder stays");
    }

    #[test]
    fn the_time_of_an_object_is_that_of_its_file_in_seconds() {
        let (_above, folder) = new();
        folder.put("log/1", b"x".to_vec()).unwrap();
        let at = Timestamp::from_unix_s(1_700_000_000);
        date(&folder.root.join("log/1"), at);
        assert_eq!(folder.get("log/1").unwrap().unwrap().modified, at);
        assert_eq!(folder.list("log", None).unwrap()[0].modified, at);
        folder.put("log/1", b"y".to_vec()).unwrap();
        assert!(folder.get("log/1").unwrap().unwrap().modified > at);
    }

    #[test]
    fn a_larger_file_than_any_object_is_damaged() {
        let (_above, folder) = new();
        let file = File::create(folder.root.join("alive")).unwrap();
        file.set_len(OBJECT_BYTES + 1).unwrap();
        assert!(matches!(
            folder.get("alive"),
            Err(BucketError::Damaged { .. })
        ));
    }

    #[test]
    fn a_folder_that_was_replaced_is_not_used() {
        let (above, folder) = new();
        folder.put("log/1", b"x".to_vec()).unwrap();
        // Another folder of the same content, such as one whose disk was not mounted.
        fs::rename(&folder.root, above.path().join("elsewhere")).unwrap();
        fs::create_dir_all(folder.root.join("log")).unwrap();
        fs::write(folder.root.join("log/1"), "x").unwrap();
        let refused =
            |error: BucketError| error.to_string().contains("is another folder than before");
        assert!(refused(folder.get("log/1").unwrap_err()));
        assert!(refused(folder.list("log", None).unwrap_err()));
        assert!(refused(folder.put("log/1", b"y".to_vec()).unwrap_err()));
        assert!(refused(folder.create("log/2", b"y".to_vec()).unwrap_err()));
        assert!(refused(folder.delete("log/1").unwrap_err()));
        assert!(refused(folder.prepare().unwrap_err()));
        assert_eq!(fs::read(folder.root.join("log/1")).unwrap(), b"x");
        // After a restart the folder that is there counts.
        assert!(Folder::new(&folder.root).get("log/1").unwrap().is_some());
    }

    #[test]
    fn errors_of_the_path_last_and_errors_of_the_disk_may_pass() {
        let (_above, folder) = new();
        folder.put("alive", b"x".to_vec()).unwrap();
        assert!(
            matches!(folder.get("alive/x"), Err(BucketError::Refused(_))),
            "a file where a folder should be"
        );
        for (kind, expected) in [
            (ErrorKind::PermissionDenied, false),
            (ErrorKind::ReadOnlyFilesystem, false),
            (ErrorKind::IsADirectory, false),
            (ErrorKind::StorageFull, true),
            (ErrorKind::Interrupted, true),
            (ErrorKind::Other, true),
            (ErrorKind::NotFound, true),
        ] {
            let error = failed("write", &folder.root)(kind.into());
            assert_eq!(error.is_transient(), expected, "{kind}: {error}");
        }
    }

    #[test]
    fn writing_tries_again_while_others_delete_the_folder() {
        let (_above, folder) = new();
        let tries = std::cell::Cell::new(0);
        // The tenth attempt is the last one.
        for (failures, expected) in [(0, true), (3, true), (9, true), (10, false)] {
            tries.set(0);
            let created = folder.retried(&folder.root, || {
                tries.set(tries.get() + 1);
                if tries.get() <= failures {
                    Err(ErrorKind::NotFound.into())
                } else {
                    Ok(Created::New)
                }
            });
            let found = created.is_ok();
            assert_eq!(found, expected, "{failures} failures: {created:?}");
            assert_eq!(tries.get(), failures + i32::from(expected));
        }
        let other = folder.retried(&folder.root, || Err(ErrorKind::PermissionDenied.into()));
        assert!(matches!(other, Err(BucketError::Refused(_))));
    }

    #[test]
    fn each_folder_with_a_new_entry_is_synced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("there")).unwrap();
        let none: [&str; 0] = [];
        let cases: [(&str, &[&str]); 4] = [
            ("there", &none),
            ("there/new", &["there"]),
            ("new", &[""]),
            ("new/feed/eu", &["new/feed", "new", ""]),
        ];
        for (name, expected) in cases {
            let path = at(name);
            let expected = expected.iter().map(|name| at(name).components().collect());
            let expected: Vec<PathBuf> = expected.collect();
            assert_eq!(parents_of_new(&path), expected, "{name}");
            Folder::new(&path).prepare().unwrap();
            assert!(path.is_dir() && parents_of_new(&path).is_empty(), "{name}");
            fs::remove_dir_all(at("new")).unwrap_or_default();
        }
        assert_eq!(
            parents_of_new(Path::new("no-such-folder")),
            [Path::new(".")]
        );
    }
}
