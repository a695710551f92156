//! Testing whether a store creates a name only once. Publishing depends on this. Some stores ignore the condition.
//! Others check it and then write, so two concurrent requests both succeed.

use std::thread;

use super::client::Bucket;
use super::error::BucketError;
use super::object::Created;

/// The number of concurrent creates of one name.
const RACERS: usize = 8;

impl Bucket {
    /// Tests the store: of several concurrent creates of a free name exactly one must succeed. Deletes the object
    /// afterwards. Creates the folder of a `file:` bucket if needed.
    ///
    /// # Errors
    /// [`BucketError::Refused`] if the store creates a name twice, or lacks a permission.
    pub fn probe(&self, name: &str) -> Result<(), BucketError> {
        self.prepare()?;
        let tested = self.race(name);
        tested.and(self.delete(name))
    }

    fn race(&self, name: &str) -> Result<(), BucketError> {
        let created: Vec<(String, Result<Created, BucketError>)> = thread::scope(|scope| {
            let racers: Vec<_> = (0..RACERS)
                .map(|racer| {
                    scope.spawn(move || {
                        let bytes = format!("racer {racer}");
                        let created = self.create(name, bytes.as_bytes());
                        (bytes, created)
                    })
                })
                .collect();
            // A panicked thread has no result.
            racers.into_iter().filter_map(|racer| racer.join().ok()).collect()
        });
        let mut winners = Vec::new();
        for (bytes, created) in created {
            if created? == Created::New {
                winners.push(bytes);
            }
        }
        match winners.as_slice() {
            [winner] if self.holds(name, winner.as_bytes())? => Ok(()),
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

    /// Whether an object has these bytes. If it has others, reads it once more: a response may be changed on its way.
    fn holds(&self, name: &str, bytes: &[u8]) -> Result<bool, BucketError> {
        let is_it = || Ok(self.get(name)?.is_some_and(|object| object.bytes == bytes));
        Ok(is_it()? || is_it()?)
    }
}
