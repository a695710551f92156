//! The names of a bucket's objects, below its prefix.
//!
//! | name | content |
//! | --- | --- |
//! | `log/SLOT` | an entry of the log; created once, never changed; slots are dense, from 1 |
//! | `states/SLOT` | the manifest of the whole state after that slot; created once |
//! | `parts/SLOT-RANDOM/INDEX` | rows of that state |
//! | `alive` | the publisher's heartbeat; overwritten |
//! | `probe/RANDOM` | an object of a test of the store; deleted after it |
//!
//! A slot has 20 digits, so the order of names is the order of slots.

/// The folder of the log's entries.
pub const LOG: &str = "log";
/// The folder of the manifests of states.
pub const STATES: &str = "states";
/// The folder of the states' parts.
pub const PARTS: &str = "parts";
/// The folder of objects that test the store. A killed test leaves one.
pub const PROBES: &str = "probe";
/// The publisher's heartbeat.
pub const ALIVE: &str = "alive";

const SLOT_DIGITS: usize = 20;
/// The minimum number of digits of a part's index.
const INDEX_DIGITS: usize = 5;
/// The number of hex digits in the random part of a name.
const RANDOM_DIGITS: usize = 16;

/// Returns the name of an entry.
pub fn log(slot: u64) -> String {
    format!("{LOG}/{slot:0SLOT_DIGITS$}")
}

/// Returns the name of a manifest.
pub fn state(slot: u64) -> String {
    format!("{STATES}/{slot:0SLOT_DIGITS$}")
}

/// Returns the name of a part of a state. `random` distinguishes the attempts to write it.
pub fn part(slot: u64, random: &str, index: usize) -> String {
    format!("{PARTS}/{slot:0SLOT_DIGITS$}-{random}/{index:0INDEX_DIGITS$}")
}

/// Returns the slot in the name of an entry.
pub fn log_slot(name: &str) -> Option<u64> {
    slot_of(name, log)
}

/// Returns the slot in the name of a manifest.
pub fn state_slot(name: &str) -> Option<u64> {
    slot_of(name, state)
}

fn slot_of(name: &str, name_of: fn(u64) -> String) -> Option<u64> {
    let slot = name.split_once('/')?.1.parse().ok()?;
    (name_of(slot) == name).then_some(slot)
}

/// Parses the name of a part: returns the slot after which its state is, the random part, and its index from 0.
pub fn parse_part(name: &str) -> Option<(u64, &str, usize)> {
    let [_, slot, random, index] = name.split(['/', '-']).collect::<Vec<_>>()[..] else {
        return None;
    };
    let slot = slot.parse().ok()?;
    let index = index.parse().ok()?;
    (is_random(random) && part(slot, random, index) == name).then_some((slot, random, index))
}

/// Returns the name of an object that tests the store.
pub fn probe(random: &str) -> String {
    format!("{PROBES}/{random}")
}

/// Whether an object has a name that [`probe`] gives.
pub fn is_probe(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(folder, random)| folder == PROBES && is_random(random))
}

/// Whether a text is one that [`new_random`] gives.
pub fn is_random(text: &str) -> bool {
    text.len() == RANDOM_DIGITS && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte))
}

/// Returns 16 random hex digits, for names.
pub fn new_random() -> Result<String, getrandom::Error> {
    let mut random = [0; RANDOM_DIGITS / 2];
    getrandom::fill(&mut random)?;
    Ok(data_encoding::HEXLOWER.encode(&random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let random = new_random().unwrap();
        for slot in [0, 1, 42, u64::MAX] {
            assert_eq!(log_slot(&log(slot)), Some(slot));
            assert_eq!(state_slot(&state(slot)), Some(slot));
            for index in [0, 7, 99_999, 100_000] {
                let name = part(slot, &random, index);
                assert_eq!(
                    parse_part(&name),
                    Some((slot, random.as_str(), index)),
                    "{name}"
                );
            }
        }
        assert!(is_probe(&probe(&random)));
        for name in words![
            "probe" "probe/" "probe/0123456789abcde" "probe/0123456789ABCDEF" "probe/0123456789abcdef/x"
        ] {
            assert!(!is_probe(name), "{name}");
        }
        assert!(log(9) < log(10) && part(1, &random, 9) < part(1, &random, 10));
        assert_eq!(log(42), "log/00000000000000000042");
        let expected = "parts/00000000000000000042-0123456789abcdef/00003";
        assert_eq!(part(42, "0123456789abcdef", 3), expected);
    }

    #[test]
    fn other_names_are_rejected() {
        for name in words![
            "" "log" "log/" "log/42" "log/0000000000000000004x" "log/99999999999999999999"
            "log/+0000000000000000042" "log/000000000000000000042" "states/00000000000000000042"
        ] {
            assert_eq!(log_slot(name), None, "{name}");
        }
        for name in words![
            "parts/00000000000000000042-0123456789abcdef" "parts/00000000000000000042-0123456789abcdef/3"
            "parts/00000000000000000042-0123456789abcdef/000003"
            "parts/00000000000000000042-0123456789abcdef/00003/x"
            "parts/00000000000000000042-0123456789ABCDEF/00003" "parts/00000000000000000042-../00003"
            "parts/42-0123456789abcdef/00003" "log/00000000000000000042-0123456789abcdef/00003"
        ] {
            assert_eq!(parse_part(name), None, "{name}");
        }
    }
}
