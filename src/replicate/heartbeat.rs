//! The publisher's heartbeat.

use serde::{Deserialize, Serialize};

use super::frame::{self, Hash, MalformedObject};
use crate::model::{DatabaseId, Timestamp};

const FORMAT: &str = "medfeed alive 1";

/// A heartbeat: the end of the log, as its publisher knows it. A replica takes an empty slot for the end of the log
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

impl Heartbeat {
    /// Whether it was written before `other`, by its publisher or an earlier one. A later slot is later, whatever the
    /// time: the clock of a publisher that was replaced may have been ahead.
    pub fn is_before(&self, other: &Heartbeat) -> bool {
        self.slot <= other.slot && self.at < other.at
    }

    /// Returns the encoded heartbeat.
    pub fn encode(&self) -> Result<Vec<u8>, MalformedObject> {
        Ok(frame::encode(FORMAT, self, &[])?.0)
    }

    /// Decodes a heartbeat. Only bytes that [`Heartbeat::encode`] can produce are accepted.
    pub fn decode(bytes: &[u8]) -> Result<Heartbeat, MalformedObject> {
        frame::decode_header(FORMAT, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_round_trips_and_other_bytes_are_rejected() {
        let alive = Heartbeat {
            id: DatabaseId([1; 16]),
            slot: 42,
            hash: [2; 32],
            seq: 4711,
            at: Timestamp::from_unix_s(1_700_000_000),
            who: "ana@origin".to_owned(),
        };
        let bytes = alive.encode().unwrap();
        assert_eq!(Heartbeat::decode(&bytes), Ok(alive));
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            for wrong in [&flipped, &bytes[..at]] {
                assert!(Heartbeat::decode(wrong).is_err(), "{at}");
            }
        }
    }
}
