//! Sync tokens and cursors. A text that opens is the only text of its content. Any other text is refused.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use medfeed::model::{Dataset, LicenseId, Witness};
use medfeed::token::{Cursor, Sealer, SyncToken};
use medfeed_fuzz::seeds;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    secret: u8,
    numbers: [u64; 5],
    bytes: [u8; 16],
    is_journals: bool,
    damages: Vec<Damage>,
    text: &'a str,
}

/// A change of a sealed text.
#[derive(Arbitrary, Debug)]
enum Damage {
    Replace(u8, char),
    Insert(u8, char),
    Remove(u8),
}

fn damaged(text: &str, damages: &[Damage]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for damage in damages {
        let length = letters.len();
        match *damage {
            Damage::Replace(at, letter) if length > 0 => letters[usize::from(at) % length] = letter,
            Damage::Remove(at) if length > 0 => drop(letters.remove(usize::from(at) % length)),
            Damage::Insert(at, letter) => letters.insert(usize::from(at) % (length + 1), letter),
            Damage::Replace(..) | Damage::Remove(_) => {}
        }
    }
    letters.into_iter().collect()
}

fuzz_target!(init: seeds::write_and_exit(|| vec![vec![7; 200]]), |input: Input<'_>| {
    let sealer = Sealer::new(&[input.secret; 32]);
    let [license, scope_seq, position, seq, last_id] = input.numbers;
    let dataset = if input.is_journals { Dataset::Journals } else { Dataset::Conferences };
    let license = LicenseId(license);
    let witness = Witness { seq, lineage: input.bytes };
    let token = SyncToken { dataset, license, scope_seq, position, witness };
    let cursor = Cursor { dataset, license, filters: input.bytes, last_id };
    let sealed_token = sealer.seal_sync_token(&token);
    let sealed_cursor = sealer.seal_cursor(&cursor);
    assert_eq!(sealer.open_sync_token(&sealed_token), Ok(token));
    assert_eq!(sealer.open_cursor(&sealed_cursor), Ok(cursor));

    let texts =
        [damaged(&sealed_token, &input.damages), damaged(&sealed_cursor, &input.damages), input.text.to_owned()];
    for text in texts {
        // Nothing but the two sealed texts opens, as nobody else has the secret.
        assert_eq!(sealer.open_sync_token(&text).is_ok(), text == sealed_token, "{text:?}");
        assert_eq!(sealer.open_cursor(&text).is_ok(), text == sealed_cursor, "{text:?}");
        let other = Sealer::new(&[input.secret.wrapping_add(1); 32]);
        assert!(other.open_sync_token(&text).is_err() && other.open_cursor(&text).is_err(), "{text:?}");
    }
});
