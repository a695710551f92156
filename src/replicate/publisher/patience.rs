//! Trying again what may pass.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::standing::{Standing, Trouble};
use crate::bucket::{Bucket, BucketError, Created};
use crate::transport::backoff::Backoff;

/// Replicas that see the bucket again before the publisher does must not wait long for it.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(3) };

/// What became of an object that was to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It holds our bytes.
    Ours,
    /// The name was taken; these are the bytes there.
    Others(Vec<u8>),
}

/// How long failures are borne. What is asked at once is asked by one each.
#[derive(Debug)]
pub(super) struct Patience {
    /// Until when is tried; `None` for ever.
    pub until: Option<Instant>,
    /// Whether what somebody must act upon is tried again too: once a publisher is on its way, whoever mends the bucket need not
    /// start it again.
    pub bears_refusal: bool,
    trouble: Trouble,
}

impl Patience {
    pub fn new(until: Option<Instant>, standing: &Arc<Standing>) -> Patience {
        Patience { until, bears_refusal: false, trouble: Trouble::new(standing) }
    }

    /// The same patience, for another thread.
    pub fn another(&self) -> Patience {
        Patience { bears_refusal: self.bears_refusal, ..Patience::new(self.until, self.trouble.standing()) }
    }

    /// Asks until there is an answer, or an error that does not pass.
    ///
    /// # Errors
    /// That one; and what may pass when the time is over.
    pub fn ask<T>(&mut self, mut ask: impl FnMut() -> Result<T, BucketError>) -> Result<T, BucketError> {
        let mut failures = 0;
        loop {
            let error = match ask() {
                Ok(answer) => {
                    self.trouble.passed();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            self.trouble.standing().note(|progress| progress.failures += 1);
            let is_borne = error.may_pass() || (self.bears_refusal && matches!(error, BucketError::Refused(_)));
            failures += 1;
            let pause = BACKOFF.pause(failures);
            if !is_borne || self.until.is_some_and(|until| Instant::now() + pause >= until) {
                return Err(error);
            }
            self.trouble.tell(&error);
            sleep(pause);
        }
    }

    /// Creates an object, whatever answers are lost: what is there at last is ours, or another's.
    ///
    /// # Errors
    /// As [`Patience::ask`].
    pub fn create(&mut self, bucket: &Bucket, name: &str, bytes: &[u8]) -> Result<Made, BucketError> {
        self.ask(|| {
            if bucket.create(name, bytes)? == Created::New {
                return Ok(Made::Ours);
            }
            match bucket.get(name)? {
                Some(found) if found.bytes == bytes => Ok(Made::Ours),
                Some(found) => Ok(Made::Others(found.bytes)),
                // Stores also refuse while another request is under way.
                None => Err(BucketError::Unreachable(format!(
                    "{} refuses to create `{name}`, though there is no such object",
                    bucket.url()
                ))),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_tried_again() {
        type Answers = Vec<Result<u8, BucketError>>;
        let away = || Err(BucketError::Unreachable("away".to_owned()));
        let refused = || Err(BucketError::Refused("no".to_owned()));
        let cases: [(Answers, bool, Result<u8, BucketError>); 5] = [
            (vec![Ok(1)], false, Ok(1)),
            (vec![away(), away(), Ok(2)], false, Ok(2)),
            (vec![away(), refused(), Ok(3)], false, refused()),
            (vec![away(), refused(), Ok(4)], true, Ok(4)),
            (vec![Err(BucketError::Damaged { name: "x".to_owned(), detail: "y".to_owned() })], true, {
                Err(BucketError::Damaged { name: "x".to_owned(), detail: "y".to_owned() })
            }),
        ];
        for (answers, bears_refusal, expected) in cases {
            let standing = Arc::default();
            let mut patience = Patience { bears_refusal, ..Patience::new(None, &standing) };
            let failures = answers.iter().filter(|answer| answer.is_err()).count();
            let mut answers = answers.into_iter();
            assert_eq!(patience.ask(|| answers.next().unwrap()), expected);
            assert_eq!(standing.troubled_for().is_some(), expected == refused(), "told that it passed");
            assert_eq!(standing.progress().failures, u64::try_from(failures).unwrap());
        }
    }

    #[test]
    fn patience_ends() {
        let mut patience = Patience::new(Some(Instant::now()), &Arc::default());
        let mut asked = 0;
        let answer: Result<(), _> = patience.ask(|| {
            asked += 1;
            Err(BucketError::Unreachable("away".to_owned()))
        });
        assert!(answer.is_err() && asked == 1, "{asked}");
    }
}
