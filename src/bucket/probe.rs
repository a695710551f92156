//! Testing whether a store creates a name only once. Publishing depends on this. Some stores ignore the condition.
//! Others check it and then write, so two concurrent requests both succeed.

use std::thread;

use super::client::Bucket;
use super::error::BucketError;
use super::object::Created;

/// The folder of test objects. A killed test leaves some of them.
pub const PROBES: &str = "probe";

/// The random bytes in the name of a test.
const RANDOM_BYTES: usize = 8;

/// Whether an object has a name that [`Bucket::probe`] gives.
pub fn is_probe(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let [PROBES, random, object] = parts.as_slice() else { return false };
    let is_lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let number = object.strip_prefix("twice-").or_else(|| object.strip_prefix("race-"));
    random.len() == 2 * RANDOM_BYTES
        && random.bytes().all(is_lower_hex)
        && number.is_some_and(|number| number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The number of concurrent creates of one name.
const RACERS: usize = 8;
/// The number of races that must have exactly one winner.
const ROUNDS: usize = 5;
/// The maximum number of names for that: a store may refuse all requests of a race.
const NAMES: usize = 15;

impl Bucket {
    /// Tests the store: a name that is taken must not be created again, and of several concurrent creates only one may
    /// succeed. Deletes its objects below [`PROBES`] afterwards. Creates the folder of a `file:` bucket if needed.
    ///
    /// # Errors
    /// [`BucketError::Refused`] if the store creates a name twice, or lacks a permission.
    pub fn probe(&self) -> Result<(), BucketError> {
        self.prepare()?;
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random)
            .map_err(|error| BucketError::Refused(format!("the operating system gave no random bytes: {error}")))?;
        let folder = format!("{PROBES}/{}", data_encoding::HEXLOWER.encode(&random));
        let mut created = Vec::new();
        let tested = self.test_names(&folder, &mut created);
        let deleted = created.iter().map(|name| self.delete(name)).fold(Ok(()), Result::and);
        tested.and(deleted)
    }

    fn test_names(&self, folder: &str, created: &mut Vec<String>) -> Result<(), BucketError> {
        let Some(name) = self.create_first(folder, created)? else { return Err(self.busy_error()) };
        let again = self.create(&name, b"second")?;
        if again == Created::New || !self.holds(&name, b"first")? {
            return Err(self.unsuitable("created a name that was taken"));
        }
        let mut won = 0;
        for at in 0..NAMES {
            let name = format!("{folder}/race-{at:02}");
            created.push(name.clone());
            match self.race(&name)?.as_slice() {
                [] => {}
                [winner] if self.holds(&name, winner.as_bytes())? => won += 1,
                _ => return Err(self.unsuitable("let several clients create the same name")),
            }
            if won == ROUNDS {
                return Ok(());
            }
        }
        Err(self.busy_error())
    }

    /// Creates an object and returns its name; `None` if the store refuses all attempts, as it may do for concurrent
    /// requests.
    fn create_first(&self, folder: &str, created: &mut Vec<String>) -> Result<Option<String>, BucketError> {
        for at in 0..NAMES {
            let name = format!("{folder}/twice-{at:02}");
            created.push(name.clone());
            if self.create(&name, b"first")? == Created::New || self.bytes(&name)?.is_some() {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Creates a name concurrently; returns the bytes of all requests that succeeded.
    fn race(&self, name: &str) -> Result<Vec<String>, BucketError> {
        let answers: Vec<(String, Result<Created, BucketError>)> = thread::scope(|scope| {
            let racers: Vec<_> = (0..RACERS)
                .map(|racer| {
                    scope.spawn(move || {
                        let bytes = format!("racer {racer}");
                        let answer = self.create(name, bytes.as_bytes());
                        (bytes, answer)
                    })
                })
                .collect();
            // A panicked thread has no result.
            racers.into_iter().filter_map(|racer| racer.join().ok()).collect()
        });
        let mut winners = Vec::new();
        for (bytes, answer) in answers {
            if answer? == Created::New {
                winners.push(bytes);
            }
        }
        Ok(winners)
    }

    /// Whether an object has these bytes. If it has others, reads it once more: a response may be changed on its way.
    fn holds(&self, name: &str, bytes: &[u8]) -> Result<bool, BucketError> {
        Ok(self.bytes(name)?.as_deref() == Some(bytes) || self.bytes(name)?.as_deref() == Some(bytes))
    }

    fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, BucketError> {
        Ok(self.get(name)?.map(|object| object.bytes))
    }

    fn busy_error(&self) -> BucketError {
        BucketError::Unreachable(format!(
            "{} refuses every concurrent create of a name; try again when it is less busy",
            self.url()
        ))
    }

    fn unsuitable(&self, what: &str) -> BucketError {
        BucketError::Refused(format!(
            "{} {what}: two publishers would overwrite each other's commits there; use a store that supports \
             conditional puts (`If-None-Match: *`), such as Amazon S3, Google Cloud Storage, Azure or a folder",
            self.url()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_tests_are_recognized() {
        for (name, expected) in [
            ("probe/0123456789abcdef/twice-00", true),
            ("probe/0123456789abcdef/race-14", true),
            ("probe/0123456789abcdef/race-1", false),
            ("probe/0123456789abcdef/race-100", false),
            ("probe/0123456789abcdef/race-1x", false),
            ("probe/0123456789abcdef/notes-00", false),
            ("probe/0123456789abcdef/race-00/x", false),
            ("probe/0123456789ABCDEF/race-00", false),
            ("probe/0123456789abcde/race-00", false),
            ("probe/notes.txt", false),
            ("log/0123456789abcdef/race-00", false),
        ] {
            assert_eq!(is_probe(name), expected, "{name}");
        }
    }
}
