//! Reading and writing the objects of a bucket, and testing its store.

use std::env;
use std::thread;

use super::folder::Folder;
use super::object::{BucketError, BucketObject, Created, ListedObject, Result, Store};
use super::remote::Remote;
use super::seal::{SealKey, seal, unseal};
use super::url::{BucketLocation, BucketUrl};

/// The number of concurrent creates of one name.
const RACERS: usize = 8;

/// A bucket. Its methods block, so threads of an async runtime must not call them. Several threads may call them at
/// once. Each call has a time limit: half a minute, and more for large objects.
#[derive(Debug)]
pub struct Bucket {
    url: BucketUrl,
    store: Box<dyn Store>,
    seal: Option<SealKey>,
}

impl Bucket {
    /// Opens a bucket with the credentials and endpoints in the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`, or else
    /// the machine's role). Sends no request yet. With a key, all objects are sealed.
    ///
    /// # Errors
    /// [`BucketError::Refused`] if the environment is incomplete.
    pub fn open(url: &BucketUrl, seal: Option<SealKey>) -> Result<Bucket> {
        Bucket::open_with(
            url,
            seal,
            &env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect::<Vec<_>>(),
        )
    }

    /// Opens a bucket as [`Bucket::open`] does, with these environment variables.
    pub fn open_with(
        url: &BucketUrl,
        seal: Option<SealKey>,
        environment: &[(String, String)],
    ) -> Result<Bucket> {
        let store: Box<dyn Store> = match &url.location {
            BucketLocation::Folder(path) => Box::new(Folder::new(path)),
            BucketLocation::Remote {
                kind,
                bucket,
                prefix,
            } => Box::new(Remote::open(url, *kind, bucket, prefix, environment)?),
        };
        Ok(Bucket {
            url: url.clone(),
            store,
            seal,
        })
    }

    /// Returns the URL.
    pub fn url(&self) -> &BucketUrl {
        &self.url
    }

    /// Whether its objects are sealed.
    pub fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// Reads an object; `None` if there is none of this name. Never returns a part of an object.
    pub fn get(&self, name: &str) -> Result<Option<BucketObject>> {
        check_name(name)?;
        let found = self.store.get(name)?;
        found
            .map(|object| {
                Ok(BucketObject {
                    bytes: unseal(self.seal.as_ref(), name, object.bytes)?,
                    ..object
                })
            })
            .transpose()
    }

    /// Creates an object if the name is free.
    ///
    /// # Errors
    /// After [`BucketError::Unreachable`] the object may exist, or may still be created. Repeat the call with the same
    /// bytes. If the result is [`Created::Exists`] and the object has those bytes, the create succeeded.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<Created> {
        check_name(name)?;
        self.store
            .create(name, seal(self.seal.as_ref(), name, bytes)?)
    }

    /// Writes an object, and replaces an existing one. After [`BucketError::Unreachable`] it may have been written or
    /// not.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_name(name)?;
        self.store.put(name, seal(self.seal.as_ref(), name, bytes)?)
    }

    /// Lists the objects below a folder such as `log`, at any depth, ordered by name. With `after`, lists only names
    /// after that full name, such as `log/00000000000000000007`.
    pub fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<ListedObject>> {
        check_name(folder)?;
        after.map_or(Ok(()), check_name)?;
        let mut listed = self.store.list(folder, after)?;
        listed.retain(|object| after.is_none_or(|after| object.name.as_str() > after));
        listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// Deletes an object. Succeeds if there is none.
    pub fn delete(&self, name: &str) -> Result<()> {
        check_name(name)?;
        self.store.delete(name)
    }

    /// Creates the folder of a `file:` bucket if needed, and removes files that killed programs left in it.
    pub fn prepare(&self) -> Result<()> {
        self.store.prepare()
    }

    /// Tests whether the store creates a name only once, because publishing depends on it. Some stores ignore the
    /// condition. Others check it and then write, so two concurrent requests both succeed. Of several concurrent
    /// creates of a free name exactly one must succeed. Deletes the object afterwards. Creates the folder of a `file:`
    /// bucket if needed.
    ///
    /// # Errors
    /// [`BucketError::Refused`] if the store creates a name twice, or lacks a permission.
    pub fn probe(&self, name: &str) -> Result<()> {
        self.prepare()?;
        let tested = self.race(name);
        tested.and(self.delete(name))
    }

    fn race(&self, name: &str) -> Result<()> {
        let created: Result<Vec<Option<String>>> = thread::scope(|scope| {
            let racers: Vec<_> = (0..RACERS)
                .map(|racer| {
                    scope.spawn(move || {
                        let bytes = format!("racer {racer}");
                        let created = self.create(name, bytes.as_bytes())?;
                        Ok((created == Created::New).then_some(bytes))
                    })
                })
                .collect();
            // A panicked thread has no result.
            racers
                .into_iter()
                .filter_map(|racer| racer.join().ok())
                .collect()
        });
        let winners: Vec<String> = created?.into_iter().flatten().collect();
        match winners.as_slice() {
            [winner] if self.compare(name, winner.as_bytes())? => Ok(()),
            // A store may refuse all concurrent requests.
            [] => Err(BucketError::Unreachable(format!(
                "{} refuses every concurrent create of a name; try again when it is less busy",
                self.url()
            ))),
            _ => Err(BucketError::Refused(format!(
                "{} let several clients create the same name: two publishers would overwrite each other's commits there; \
                 use a store that supports conditional puts (`If-None-Match: *`), such as Amazon S3, Google Cloud \
                 Storage, Azure or a folder",
                self.url()
            ))),
        }
    }

    /// Compares an object with these bytes. If they differ, reads it once more: a response may be changed on its way.
    fn compare(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let is_it = || Ok(self.get(name)?.is_some_and(|object| object.bytes == bytes));
        Ok(is_it()? || is_it()?)
    }
}

/// Rejects invalid names. Names may come from objects that somebody else wrote.
fn check_name(name: &str) -> Result<()> {
    if name.len() <= 512
        && name.split('/').all(|part| {
            !part.is_empty()
                && !part.starts_with('.')
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        })
    {
        return Ok(());
    }
    Err(BucketError::Refused(format!(
        "{name:?} cannot be the name of an object"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_prefix() {
        for name in words!["alive" "log/00000000000000000042" "parts/7-abc_D/00000" "a.b"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        assert_eq!(check_name(&"x".repeat(512)), Ok(()));
        let long = "x".repeat(513);
        for name in [
            "", "/", "/log", "log/", "log//1", "..", "../log", "log/..", ".draft", "log/.x", "a b",
            "ä", "a\0", &long,
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn no_method_takes_a_name_outside_the_bucket() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}", folder.path().display())
            .parse()
            .unwrap();
        let bucket = Bucket::open_with(&url, None, &[]).unwrap();
        let name = "../x";
        let refused = |error: Option<BucketError>| matches!(error, Some(BucketError::Refused(_)));
        assert!(refused(bucket.get(name).err()));
        assert!(refused(bucket.create(name, b"").err()) && refused(bucket.put(name, b"").err()));
        assert!(
            refused(bucket.list(name, None).err()) && refused(bucket.list("log", Some(name)).err())
        );
        assert!(refused(bucket.delete(name).err()));
    }
}
