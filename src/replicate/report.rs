//! The publisher's sign of life, and the replicas' reports of their progress and key usage.

use serde::{Deserialize, Serialize};

use super::frame::{self, Hash, Malformed};
use crate::model::{DatabaseId, Timestamp};

const ALIVE_MARK: &str = "medfeed alive 1";
const REPLICA_MARK: &str = "medfeed replica 1";

/// A publisher's sign of life: what it knows to be the end of the log. Followers trust an empty slot to be the log's end only
/// where a sign of life agrees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alive {
    /// The database.
    pub id: DatabaseId,
    /// The last slot.
    pub slot: u64,
    /// The hash of that entry.
    pub hash: Hash,
    /// The last seq of the database when this was written; not before the last seq in the log.
    pub seq: u64,
    /// When this was written, by the publisher's clock; always later than the one before, even if the clock was set back, so
    /// that an old one is known for what it is.
    pub at: Timestamp,
    /// Who publishes: user and machine.
    pub who: String,
}

/// A replica's report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaReport {
    /// The database.
    pub id: DatabaseId,
    /// The last slot that it applied.
    pub slot: u64,
    /// The last seq that it serves.
    pub seq: u64,
    /// When this was written, by the replica's clock.
    pub at: Timestamp,
    /// Whose replica it is: user and machine.
    pub who: String,
    /// The use of keys there, as servers write it beside the database (JSON).
    pub usage: String,
}

impl Alive {
    /// The bytes of a sign of life.
    ///
    /// # Errors
    /// [`Malformed`] when it is too long.
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        Ok(frame::encode(ALIVE_MARK, self, &[])?.0)
    }

    /// Reads a sign of life.
    ///
    /// # Errors
    /// [`Malformed`] for what [`Alive::encode`] does not make.
    pub fn decode(bytes: &[u8]) -> Result<Alive, Malformed> {
        alone(frame::decode(ALIVE_MARK, bytes)?)
    }
}

impl ReplicaReport {
    /// The bytes of a report.
    ///
    /// # Errors
    /// [`Malformed`] when it is too long.
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        Ok(frame::encode(REPLICA_MARK, self, &[])?.0)
    }

    /// Reads a report.
    ///
    /// # Errors
    /// [`Malformed`] for what [`ReplicaReport::encode`] does not make.
    pub fn decode(bytes: &[u8]) -> Result<ReplicaReport, Malformed> {
        alone(frame::decode(REPLICA_MARK, bytes)?)
    }
}

/// A header that nothing follows.
fn alone<T>((header, payload, _): (T, &[u8], Hash)) -> Result<T, Malformed> {
    if payload.is_empty() { Ok(header) } else { Err(Malformed::new("it holds more than a report")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_back_and_nothing_else_is_taken() {
        let alive = Alive {
            id: DatabaseId([1; 16]),
            slot: 42,
            hash: [2; 32],
            seq: 4711,
            at: Timestamp::from_unix_s(1_700_000_000),
            who: "ana@origin".to_owned(),
        };
        let report = ReplicaReport {
            id: alive.id,
            slot: 41,
            seq: 4700,
            at: alive.at,
            who: "ana@replica".to_owned(),
            usage: "{}".to_owned(),
        };
        let (alive_bytes, report_bytes) = (alive.encode().unwrap(), report.encode().unwrap());
        assert_eq!(Alive::decode(&alive_bytes), Ok(alive));
        assert_eq!(ReplicaReport::decode(&report_bytes), Ok(report));
        assert!(Alive::decode(&report_bytes).is_err() && ReplicaReport::decode(&alive_bytes).is_err());
        for bytes in [alive_bytes, report_bytes] {
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1;
                for wrong in [&flipped, &bytes[..at]] {
                    assert!(Alive::decode(wrong).is_err() && ReplicaReport::decode(wrong).is_err(), "{at}");
                }
            }
        }
    }
}
