//! Reading and writing the objects of a bucket.

use std::env;
use std::ffi::OsString;

use super::error::BucketError;
use super::folder::Folder;
use super::object::{Created, Listed, Object};
use super::remote::Remote;
use super::seal::{SealKey, seal, unseal};
use super::url::{BucketUrl, Place};

/// A bucket. Its calls block, from any thread but those of a runtime; several threads may call at once. Each is bounded in time:
/// half a minute, and more for large objects.
#[derive(Debug)]
pub struct Bucket {
    url: BucketUrl,
    store: Store,
    seal: Option<SealKey>,
}

#[derive(Debug)]
enum Store {
    Folder(Folder),
    Remote(Box<Remote>),
}

impl Bucket {
    /// A bucket by its URL, with credentials and endpoints from the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`, else the
    /// machine's role). Nothing is asked of the store yet. With a key all objects are sealed.
    ///
    /// # Errors
    /// [`BucketError::Refused`] when the environment does not say enough.
    pub fn open(url: &BucketUrl, seal: Option<SealKey>) -> Result<Bucket, BucketError> {
        let texts = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Bucket::open_with(url, seal, &env::vars_os().filter_map(texts).collect::<Vec<_>>())
    }

    /// As [`Bucket::open`], with these variables instead of the environment's.
    ///
    /// # Errors
    /// As [`Bucket::open`].
    pub fn open_with(
        url: &BucketUrl,
        seal: Option<SealKey>,
        environment: &[(String, String)],
    ) -> Result<Bucket, BucketError> {
        let store = match url.place() {
            Place::Folder(path) => Store::Folder(Folder::new(path)),
            Place::Remote { kind, bucket, prefix } => {
                Store::Remote(Box::new(Remote::open(url, *kind, bucket, prefix, environment)?))
            }
        };
        Ok(Bucket { url: url.clone(), store, seal })
    }

    /// Where it is.
    pub fn url(&self) -> &BucketUrl {
        &self.url
    }

    /// Whether its objects are sealed.
    pub fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// An object's bytes; `None` if there is no such object.
    ///
    /// # Errors
    /// All of [`BucketError`]. An object that arrives in part is never returned.
    pub fn get(&self, name: &str) -> Result<Option<Object>, BucketError> {
        check_name(name)?;
        let stored = match &self.store {
            Store::Folder(folder) => folder.get(name)?,
            Store::Remote(remote) => remote.get(name)?,
        };
        let Some(Object { bytes, modified }) = stored else { return Ok(None) };
        Ok(Some(Object { bytes: unseal(self.seal.as_ref(), name, bytes)?, modified }))
    }

    /// Whether there is an object of a name, without reading all of it.
    ///
    /// # Errors
    /// [`BucketError::Unreachable`], [`BucketError::Refused`].
    pub fn contains(&self, name: &str) -> Result<bool, BucketError> {
        check_name(name)?;
        match &self.store {
            Store::Folder(folder) => folder.contains(name),
            Store::Remote(remote) => remote.contains(name),
        }
    }

    /// Creates an object, if there is none of that name.
    ///
    /// # Errors
    /// [`BucketError::Unreachable`] when the answer was lost too: then it is there or not, now or in a moment. Try the same bytes
    /// again; [`Created::Exists`] with those bytes is a success.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, BucketError> {
        check_name(name)?;
        let sealed = seal(self.seal.as_ref(), name, bytes)?;
        match &self.store {
            Store::Folder(folder) => folder.create(name, &sealed),
            Store::Remote(remote) => remote.create(name, sealed),
        }
    }

    /// Writes an object, over one of that name if there is one.
    ///
    /// # Errors
    /// [`BucketError::Unreachable`] when it may have been written and when not.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), BucketError> {
        check_name(name)?;
        let sealed = seal(self.seal.as_ref(), name, bytes)?;
        match &self.store {
            Store::Folder(folder) => folder.put(name, &sealed),
            Store::Remote(remote) => remote.put(name, sealed),
        }
    }

    /// The objects below a folder such as `log`, at any depth, in the order of their names; only those after a name (written
    /// whole, such as `log/00000000000000000007`) if one is given.
    ///
    /// # Errors
    /// [`BucketError::Unreachable`], [`BucketError::Refused`].
    pub fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>, BucketError> {
        check_name(folder)?;
        after.map_or(Ok(()), check_name)?;
        let mut listed = match &self.store {
            Store::Folder(store) => store.list(folder)?,
            Store::Remote(remote) => remote.list(folder, after)?,
        };
        listed.retain(|object| after.is_none_or(|after| object.name.as_str() > after));
        listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// Deletes an object. That there is none is a success.
    ///
    /// # Errors
    /// [`BucketError::Unreachable`], [`BucketError::Refused`].
    pub fn delete(&self, name: &str) -> Result<(), BucketError> {
        check_name(name)?;
        match &self.store {
            Store::Folder(folder) => folder.delete(name),
            Store::Remote(remote) => remote.delete(name),
        }
    }

    /// Makes a folder that is not there, and removes what killed programs left in it. A store over the network needs nothing.
    ///
    /// # Errors
    /// [`BucketError::Unreachable`], [`BucketError::Refused`].
    pub fn prepare(&self) -> Result<(), BucketError> {
        match &self.store {
            Store::Folder(folder) => folder.prepare(),
            Store::Remote(_) => Ok(()),
        }
    }
}

/// Refuses what is no name of ours: names may come out of objects that somebody else wrote.
fn check_name(name: &str) -> Result<(), BucketError> {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    if name.len() <= 512 && name.split('/').all(is_part) {
        return Ok(());
    }
    Err(BucketError::Refused(format!("{name:?} cannot be the name of an object")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_prefix() {
        for name in ["alive", "log/00000000000000000042", "parts/7-abc_D/00000", "a.b"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let long = "x".repeat(513);
        for name in
            ["", "/", "/log", "log/", "log//1", "..", "../log", "log/..", ".draft", "log/.x", "a b", "ä", "a\0", &long]
        {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
