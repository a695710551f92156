//! A new file, written next to the file that it replaces, and put in its place when it is complete.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::store::StoreError;
use crate::store::file::draft::{self, Draft};
use crate::store::file::links::{folder_of, refuse_irregular};
use crate::store::file::metadata::{FileIdentity, copy_owner};

/// A draft and the path that it gets. Dropping it removes it.
#[derive(Debug)]
pub(in crate::store) struct NewFile {
    draft: Draft,
    target: PathBuf,
}

impl NewFile {
    /// Creates an empty file, and removes abandoned drafts. The caller follows links.
    pub fn create(target: &Path) -> Result<NewFile, StoreError> {
        draft::sweep(target);
        let draft = Draft::create_for(target).map_err(StoreError::io(folder_of(target)))?;
        Ok(NewFile { draft, target: target.to_owned() })
    }

    /// Creates an empty file like [`NewFile::create`]. Fails if it could not replace the file at `target`, so that the
    /// copy is not written in vain.
    pub fn replacing(target: &Path) -> Result<NewFile, StoreError> {
        refuse_irregular(target)?;
        if target.exists() {
            NewFile::create(target)?.copy_owner()?;
        }
        NewFile::create(target)
    }

    /// A path by which this process can open the file.
    pub fn path(&self) -> &Path {
        self.draft.path()
    }

    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The size in bytes.
    pub fn bytes(&self) -> Result<u64, StoreError> {
        self.draft.file().metadata().map(|found| found.len()).map_err(StoreError::io(&self.target))
    }

    /// Copies the bytes of another file.
    pub fn fill_from_file(&self, from: &Path) -> Result<(), StoreError> {
        let copied = fs::File::open(from).and_then(|mut from| io::copy(&mut from, &mut self.draft.file()));
        copied.map(drop).map_err(StoreError::io(from))
    }

    fn copy_owner(&self) -> Result<(), StoreError> {
        copy_owner(self.draft.file(), &self.target).map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => {
                let reason = "it belongs to another user; only its owner or root can replace it".to_owned();
                StoreError::BadTarget { path: self.target.clone(), reason }
            }
            _ => StoreError::io(&self.target)(source),
        })
    }

    /// Gives the file its name. Fails if another file has the name.
    pub fn persist_new(self) -> Result<(), StoreError> {
        self.draft.persist_noclobber(&self.target).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => StoreError::Replaced { path: self.target.clone() },
            _ => StoreError::io(&self.target)(source),
        })
    }

    /// Replaces the file `old`, whose lock the caller holds. The new file gets its owner and permissions. Fails if
    /// another file has come to this name.
    pub fn replace(self, old: FileIdentity) -> Result<(), StoreError> {
        self.copy_owner()?;
        old.check(&self.target)?;
        self.replace_any()
    }

    /// Gives the file its name, in place of any other.
    pub fn replace_any(self) -> Result<(), StoreError> {
        self.draft.persist(&self.target).map_err(|source| match source.kind() {
            // A file that is a mount point cannot lose its name.
            ErrorKind::ResourceBusy => {
                let reason = "it is mounted by itself, so no other file can take its name; mount the folder that \
                              contains it instead"
                    .to_owned();
                StoreError::BadTarget { path: self.target.clone(), reason }
            }
            _ => StoreError::io(&self.target)(source),
        })
    }
}
