//! Whether a store creates a name only once, which everything rests on: some do not look at the condition, some check it and
//! then write, so that two callers at once both succeed.

use std::thread;

use super::client::Bucket;
use super::error::BucketError;
use super::object::Created;

/// The folder of what is made to try a store. Whoever is killed meanwhile leaves some of it.
pub const PROBES: &str = "probe";

/// How many callers race for a name.
const RACERS: usize = 8;
/// How often they do.
const ROUNDS: usize = 5;
/// How many names are tried until that many races had a winner: stores may turn all of them away.
const NAMES: usize = 15;

impl Bucket {
    /// Tries the store: an object that exists must not be created again, nor by one of eight at once, five times over. The
    /// objects that it makes for that, below [`PROBES`], are deleted. A folder that is not there is made.
    ///
    /// # Errors
    /// [`BucketError::Refused`] when the store creates a name twice, and when it permits no writing, reading or deleting;
    /// [`BucketError::Unreachable`].
    pub fn probe(&self) -> Result<(), BucketError> {
        self.prepare()?;
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| BucketError::Refused(format!("the operating system gave no random bytes: {error}")))?;
        let folder = format!("{PROBES}/{}", data_encoding::HEXLOWER.encode(&random));
        let mut made = Vec::new();
        let tried = self.try_names(&folder, &mut made);
        let deleted = made.iter().map(|name| self.delete(name)).fold(Ok(()), Result::and);
        tried.and(deleted)
    }

    fn try_names(&self, folder: &str, made: &mut Vec<String>) -> Result<(), BucketError> {
        let Some(name) = self.make_first(folder, made)? else { return Err(self.is_busy()) };
        let again = self.create(&name, b"second")?;
        if again == Created::New || self.bytes(&name)?.as_deref() != Some(b"first") {
            return Err(self.no_condition("created a name again that was taken"));
        }
        let mut won = 0;
        for at in 0..NAMES {
            let name = format!("{folder}/race-{at:02}");
            made.push(name.clone());
            let winners = self.race(&name)?;
            let stands = self.bytes(&name)?;
            match (winners.as_slice(), stands) {
                ([], _) => {}
                ([winner], Some(stands)) if stands == winner.as_bytes() => won += 1,
                _ => return Err(self.no_condition("let several create the same name at once")),
            }
            if won == ROUNDS {
                return Ok(());
            }
        }
        Err(self.is_busy())
    }

    /// Creates an object and tells its name; `None` if the store turns all requests away, which it may do for any that meets
    /// another one.
    fn make_first(&self, folder: &str, made: &mut Vec<String>) -> Result<Option<String>, BucketError> {
        for at in 0..NAMES {
            let name = format!("{folder}/twice-{at:02}");
            made.push(name.clone());
            if self.create(&name, b"first")? == Created::New || self.bytes(&name)?.is_some() {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// What those had written who were told that they had created a name, all of them at once.
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
            // A thread that panicked answered nothing.
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

    fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, BucketError> {
        Ok(self.get(name)?.map(|object| object.bytes))
    }

    fn is_busy(&self) -> BucketError {
        BucketError::Unreachable(format!(
            "{} turns everybody away who creates a name; try again when it has less to do",
            self.url()
        ))
    }

    fn no_condition(&self, what: &str) -> BucketError {
        BucketError::Refused(format!(
            "{} {what}: two publishers would overwrite each other's commits there; use a store that keeps conditional puts \
             (`If-None-Match: *`), such as Amazon S3, Google Cloud Storage, Azure or a folder",
            self.url()
        ))
    }
}
