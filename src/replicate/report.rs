//! The publisher's heartbeat, and the replicas' reports of their progress and key usage.

use serde::{Deserialize, Serialize};

use super::frame::{self, Hash, MalformedObject};
use crate::model::{DatabaseId, Timestamp};

const ALIVE_MARK: &str = "medfeed alive 1";
const REPLICA_MARK: &str = "medfeed replica 1";

/// A heartbeat: the end of the log, as its publisher knows it. A follower takes an empty slot for the end of the log
/// only if the heartbeat agrees.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    pub id: DatabaseId,
    pub slot: u64,
    pub hash: Hash,
    /// The last seq of the database at that time; at least the last seq in the log.
    pub seq: u64,
    /// The time of writing, by the publisher's clock. It always grows, even if the clock is set back. So an old
    /// heartbeat that is put back is recognized.
    pub at: Timestamp,
    pub who: String,
}

/// A replica's report.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaReport {
    pub id: DatabaseId,
    pub slot: u64,
    pub seq: u64,
    /// The time of writing, by the replica's clock.
    pub at: Timestamp,
    /// The replica: user and machine.
    pub who: String,
    /// The use of keys at the replica, in the format of the usage files next to a database (JSON).
    pub usage: String,
}

impl Heartbeat {
    /// Returns the encoded heartbeat.
    pub fn encode(&self) -> Result<Vec<u8>, MalformedObject> {
        Ok(frame::encode(ALIVE_MARK, self, &[])?.0)
    }

    /// Decodes a heartbeat. Only bytes that [`Heartbeat::encode`] can produce are accepted.
    pub fn decode(bytes: &[u8]) -> Result<Heartbeat, MalformedObject> {
        header_only(frame::decode(ALIVE_MARK, bytes)?)
    }
}

impl ReplicaReport {
    /// Returns the encoded report.
    pub fn encode(&self) -> Result<Vec<u8>, MalformedObject> {
        Ok(frame::encode(REPLICA_MARK, self, &[])?.0)
    }

    /// Decodes a report. Only bytes that [`ReplicaReport::encode`] can produce are accepted.
    pub fn decode(bytes: &[u8]) -> Result<ReplicaReport, MalformedObject> {
        header_only(frame::decode(REPLICA_MARK, bytes)?)
    }
}

/// Returns the header; fails if there is a payload.
fn header_only<T>((header, payload, _): (T, &[u8], Hash)) -> Result<T, MalformedObject> {
    if payload.is_empty() { Ok(header) } else { Err(MalformedObject::new("it holds more than a report")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_round_trip_and_other_bytes_are_rejected() {
        let alive = Heartbeat {
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
        assert_eq!(Heartbeat::decode(&alive_bytes), Ok(alive));
        assert_eq!(ReplicaReport::decode(&report_bytes), Ok(report));
        assert!(Heartbeat::decode(&report_bytes).is_err() && ReplicaReport::decode(&alive_bytes).is_err());
        for bytes in [alive_bytes, report_bytes] {
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1;
                for wrong in [&flipped, &bytes[..at]] {
                    assert!(Heartbeat::decode(wrong).is_err() && ReplicaReport::decode(wrong).is_err(), "{at}");
                }
            }
        }
    }
}
