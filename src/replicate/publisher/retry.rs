//! Retrying bucket requests.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::progress::PublisherStatus;
use crate::bucket::{Bucket, BucketError, Created};
use crate::replicate::replica::ReplicaError;
use crate::transport::Backoff;

/// Short pauses: a replica that reaches the bucket again should not wait long for the publisher.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(3),
};

/// The retry policy for bucket requests.
#[derive(Clone, Debug)]
pub struct Retry {
    /// The time of the last attempt; `None` for no limit.
    pub until: Option<Instant>,
    /// Whether refused requests are retried too. A running publisher does so: once the bucket is repaired, it continues
    /// without a restart.
    pub retries_refusals: bool,
    status: Arc<PublisherStatus>,
}

/// The name of the bucket among the parts of a publisher that may fail.
const BUCKET: &str = "bucket";

impl Retry {
    /// Returns a policy that retries temporary errors. `status` shows its failures.
    pub fn new(until: Option<Instant>, status: &Arc<PublisherStatus>) -> Retry {
        Retry {
            until,
            retries_refusals: false,
            status: Arc::clone(status),
        }
    }

    /// Returns a policy that ends after `time`.
    pub fn within(&self, time: Duration) -> Retry {
        Retry::new(Some(Instant::now() + time), &self.status)
    }

    /// Reads from the log until the bucket responds. If an object cannot be decoded, reads it once more: a response may
    /// be changed on its way.
    pub fn read<T>(
        &self,
        mut read: impl FnMut() -> Result<T, ReplicaError>,
    ) -> Result<T, ReplicaError> {
        let mut once = || {
            self.run(|| match read() {
                Err(ReplicaError::Bucket(error)) => Err(error),
                found => Ok(found),
            })
        };
        match once()? {
            Err(ReplicaError::Object { .. }) => once()?,
            found => found,
        }
    }

    /// Reads an object of the log; `None` also if it cannot be decoded.
    pub fn read_valid<T>(
        &self,
        read: impl FnMut() -> Result<Option<T>, ReplicaError>,
    ) -> Result<Option<T>, ReplicaError> {
        match self.read(read) {
            Err(ReplicaError::Object { .. }) => Ok(None),
            found => found,
        }
    }

    /// Repeats a request until it succeeds.
    ///
    /// # Errors
    /// A permanent error, or the last temporary one after [`Retry::until`].
    pub fn run<T>(
        &self,
        mut run: impl FnMut() -> Result<T, BucketError>,
    ) -> Result<T, BucketError> {
        let mut failures = 0;
        loop {
            let error = match run() {
                Ok(answer) => {
                    self.status.passed(BUCKET);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            self.status.update(|progress| progress.failures += 1);
            let is_retried = error.is_transient()
                || (self.retries_refusals && matches!(error, BucketError::Refused(_)));
            failures += 1;
            let pause = BACKOFF.pause(failures);
            if !is_retried
                || self
                    .until
                    .is_some_and(|until| Instant::now() + pause >= until)
            {
                return Err(error);
            }
            self.status.report(BUCKET, &error);
            sleep(pause);
        }
    }

    /// Creates an object. Returns whether it holds these bytes: a lost response is no problem.
    pub fn create(&self, bucket: &Bucket, name: &str, bytes: &[u8]) -> Result<bool, BucketError> {
        self.run(|| {
            if bucket.create(name, bytes)? == Created::New {
                return Ok(true);
            }
            match bucket.get(name)? {
                Some(found) => Ok(found.bytes == bytes),
                // Some stores also refuse while another request for the name is in progress.
                None => Err(BucketError::Unreachable(format!(
                    "{} refuses to create `{name}`, though the name is free",
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
    fn temporary_errors_are_retried() {
        type Answers = Vec<Result<u8, BucketError>>;
        let away = || Err(BucketError::Unreachable("away".to_owned()));
        let refused = || Err(BucketError::Refused("no".to_owned()));
        let cases: [(Answers, bool, Result<u8, BucketError>); 5] = cases![
            vec![Ok(1)], false, Ok(1);
            vec![away(), away(), Ok(2)], false, Ok(2);
            vec![away(), refused(), Ok(3)], false, refused();
            vec![away(), refused(), Ok(4)], true, Ok(4);
            vec![Err(BucketError::Damaged { name: "x".to_owned(), detail: "y".to_owned() })], true,
                { Err(BucketError::Damaged { name: "x".to_owned(), detail: "y".to_owned() }) };
        ];
        for (answers, retries_refusals, expected) in cases {
            let status = Arc::default();
            let retry = Retry {
                retries_refusals,
                ..Retry::new(None, &status)
            };
            let failures = answers.iter().filter(|answer| answer.is_err()).count();
            let mut answers = answers.into_iter();
            assert_eq!(retry.run(|| answers.next().unwrap()), expected);
            assert_eq!(
                status.failing_for().is_some(),
                expected == refused(),
                "the status shows that it passed"
            );
            assert_eq!(status.progress().failures, u64::try_from(failures).unwrap());
        }
    }

    #[test]
    fn retries_end_in_time() {
        let retry = Retry::new(Some(Instant::now()), &Arc::default());
        for (whose, retry) in [("of a thread", retry.clone()), ("of its publisher", retry)] {
            let mut asked = 0;
            let answer: Result<(), _> = retry.run(|| {
                asked += 1;
                assert_eq!(asked, 1, "{whose}");
                Err(BucketError::Unreachable("away".to_owned()))
            });
            assert!(answer.is_err(), "{whose}");
        }
    }
}
