//! A bucket in a folder. Each object is a file, written and synced under another name before it gets its own.
//!
//! A new folder is private to its owner. Files and folders in it have the permissions of the root folder. So an
//! operator who creates that folder decides who can read the bucket.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::NamedTempFile;

use super::error::BucketError;
use super::object::{BucketObject, Created, ListedObject, OBJECT_BYTES};
use crate::model::Timestamp;
use crate::model::time::now;

/// The prefix of drafts: files in the root folder that have no object name yet.
const DRAFT: &str = ".draft-";

/// The age in seconds at which a draft is certainly abandoned.
const DRAFT_AGE_S: i64 = 86_400;

/// The maximum number of attempts to write while other programs delete the folder.
const TRIES: usize = 10;

#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    /// The folder's inode when it was first seen. If the disk is not mounted, the path leads to another folder.
    inode: OnceLock<u64>,
}

impl Folder {
    pub(super) fn new(root: &Path) -> Folder {
        Folder { root: root.to_owned(), inode: OnceLock::new() }
    }

    /// Creates the folder if needed, and removes old drafts.
    pub(super) fn prepare(&self) -> Result<(), BucketError> {
        let make = || -> io::Result<()> {
            if !self.root.is_dir() {
                DirBuilder::new().recursive(true).mode(0o700).create(&self.root)?;
                self.root.parent().map_or(Ok(()), sync_folder)?;
            }
            Ok(())
        };
        make().map_err(|error| self.failed("create the folder", &self.root, &error))?;
        self.root()?;
        let drafts = fs::read_dir(&self.root).map_err(|error| self.failed("list", &self.root, &error))?;
        for draft in drafts.flatten().filter(|file| file.file_name().to_string_lossy().starts_with(DRAFT)) {
            if draft.metadata().is_ok_and(|found| modified(&found).plus_s(DRAFT_AGE_S) < now()) {
                // A draft that cannot be removed does no harm.
                let _ = fs::remove_file(draft.path());
            }
        }
        Ok(())
    }

    pub(super) fn contains(&self, name: &str) -> Result<bool, BucketError> {
        self.root()?;
        let path = self.root.join(name);
        match fs::metadata(&path) {
            Ok(found) => Ok(found.is_file()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed("read", &path, &error)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<BucketObject>, BucketError> {
        self.root()?;
        let path = self.root.join(name);
        let read = || -> io::Result<Option<BucketObject>> {
            let file = File::open(&path)?;
            let found = file.metadata()?;
            if found.len() > OBJECT_BYTES {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut io::Read::take(file, OBJECT_BYTES + 1), &mut bytes)?;
            Ok(Some(BucketObject { bytes, modified: modified(&found) }))
        };
        match read() {
            Ok(Some(object)) => Ok(Some(object)),
            Ok(None) => {
                Err(BucketError::Damaged { name: name.to_owned(), detail: "it is too large for an object".to_owned() })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", &path, &error)),
        }
    }

    pub(super) fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, BucketError> {
        self.write(name, bytes, |draft, target| {
            draft.persist_noclobber(target).map(drop).map_err(|refused| refused.error)
        })
    }

    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), BucketError> {
        self.write(name, bytes, |draft, target| draft.persist(target).map(drop).map_err(|refused| refused.error))?;
        Ok(())
    }

    fn write(
        &self,
        name: &str,
        bytes: &[u8],
        take_name: fn(NamedTempFile, &Path) -> io::Result<()>,
    ) -> Result<Created, BucketError> {
        let mode = self.root()?.mode();
        let target = self.root.join(name);
        let write = || -> io::Result<Created> {
            let mut draft = tempfile::Builder::new().prefix(DRAFT).tempfile_in(&self.root)?;
            draft.write_all(bytes)?;
            draft.as_file().set_permissions(Permissions::from_mode(mode & 0o666))?;
            draft.as_file().sync_all()?;
            let folder = target.parent().unwrap_or(&self.root);
            self.make_folders(folder, mode & 0o777)?;
            let created = match take_name(draft, &target) {
                Ok(()) => Created::New,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Created::Exists,
                Err(error) => return Err(error),
            };
            // Also for an existing object: its creator may have died before the sync.
            sync_folder(folder)?;
            Ok(created)
        };
        let mut tries = 0;
        loop {
            tries += 1;
            match write() {
                // Deleting the last object of a folder removes the folder.
                Err(error) if error.kind() == ErrorKind::NotFound && tries < TRIES => self.root()?,
                Err(error) => return Err(self.failed("write", &target, &error)),
                Ok(created) => return Ok(created),
            };
        }
    }

    fn make_folders(&self, folder: &Path, mode: u32) -> io::Result<()> {
        if folder == self.root || folder.is_dir() {
            return Ok(());
        }
        let above = folder.parent().unwrap_or(&self.root);
        self.make_folders(above, mode)?;
        match fs::create_dir(folder) {
            Ok(()) => fs::set_permissions(folder, Permissions::from_mode(mode))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        sync_folder(above)
    }

    pub(super) fn list(&self, folder: &str) -> Result<Vec<ListedObject>, BucketError> {
        self.root()?;
        let (mut listed, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(name) = folders.pop() {
            let path = self.root.join(&name);
            let mut read = || -> io::Result<()> {
                for file in fs::read_dir(&path)? {
                    let file = file?;
                    let Ok(last) = file.file_name().into_string() else { continue };
                    let name = format!("{name}/{last}");
                    match file.metadata() {
                        _ if last.starts_with('.') => {}
                        Ok(found) if found.is_dir() => folders.push(name),
                        Ok(found) if found.is_file() => {
                            listed.push(ListedObject { name, bytes: found.len(), modified: modified(&found) });
                        }
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            };
            match read() {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(self.failed("list", &path, &error)),
                _ => {}
            }
        }
        Ok(listed)
    }

    pub(super) fn delete(&self, name: &str) -> Result<(), BucketError> {
        self.root()?;
        let path = self.root.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(self.failed("delete", &path, &error)),
            _ => {}
        }
        // Remove the folders that are empty now.
        let above = path.ancestors().skip(1).take_while(|above| *above != self.root);
        for folder in above {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the metadata of the root folder. Fails if it is missing, or another folder than before.
    fn root(&self) -> Result<Metadata, BucketError> {
        let shown = self.root.display();
        let found = match fs::metadata(&self.root) {
            Ok(found) if found.is_dir() => found,
            Ok(_) => return Err(BucketError::Refused(format!("{shown} is a file; name a folder"))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(BucketError::Unreachable(format!(
                    "there is no folder {shown}; check the path and whether its disk is mounted, or publish into it \
                     first"
                )));
            }
            Err(error) => return Err(self.failed("read", &self.root, &error)),
        };
        if *self.inode.get_or_init(|| found.ino()) != found.ino() {
            return Err(BucketError::Unreachable(format!(
                "{shown} is another folder than before; mount its disk again, or restart to use the new one"
            )));
        }
        Ok(found)
    }

    fn failed(&self, what: &str, path: &Path, error: &io::Error) -> BucketError {
        let text = format!("cannot {what} {}: {error}", path.display());
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

fn modified(found: &Metadata) -> Timestamp {
    Timestamp::from_unix_s(found.mtime())
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
