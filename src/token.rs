//! Sync tokens and cursors: opaque, of fixed length, deterministic, impossible to forge.
//!
//! A record of fixed length is sealed with AES-SIV (RFC 5297), which encrypts and authenticates deterministically. The
//! text is unpadded base64url (RFC 4648, section 5). The decoder rejects other spellings of the same bytes.

use aes_siv::KeyInit;
use aes_siv::siv::Aes128Siv;
use data_encoding::BASE64URL_NOPAD;

use crate::model::{Dataset, LicenseId, Witness};

const TAG_LEN: usize = 16;
const SYNC_TOKEN_LEN: usize = 1 + 8 + 8 + 8 + 8 + 16;
const CURSOR_LEN: usize = 1 + 8 + 16 + 8;

/// The length of a sync token's text.
pub const SYNC_TOKEN_CHARS: usize = sealed_chars(SYNC_TOKEN_LEN);
/// The length of a cursor's text.
pub const CURSOR_CHARS: usize = sealed_chars(CURSOR_LEN);

/// The length in base64url: six bits per character.
const fn sealed_chars(bytes: usize) -> usize {
    ((bytes + TAG_LEN) * 8).div_ceil(6)
}

const SYNC_TOKEN_PURPOSE: &[u8] = b"sync token 1";
const CURSOR_PURPOSE: &[u8] = b"cursor 1";

/// A position in the feed of a license and dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncToken {
    /// The dataset of the feed.
    pub dataset: Dataset,
    /// The license of the caller.
    pub license: LicenseId,
    /// The license's `scope_seq` when the token was created. The token is invalid under another scope.
    pub scope_seq: u64,
    /// The last seq that the client has.
    pub position: u64,
    /// The witness of the response. It shows whether the history still contains what the client has.
    pub witness: Witness,
}

/// The end of a list page of a license and dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The dataset of the list.
    pub dataset: Dataset,
    /// The license of the caller.
    pub license: LicenseId,
    /// A hash of the filters: the cursor is valid only for the same list.
    pub filters: [u8; 16],
    /// The last id of the page.
    pub last_id: u64,
}

/// The text is not a token or cursor that this database's secret sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forged;

/// Seals and opens tokens and cursors with a database's secret.
pub struct Sealer {
    key: [u8; 32],
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(..)")
    }
}

impl Sealer {
    /// Derives the key from a database's secret.
    pub fn new(secret: &[u8; 32]) -> Sealer {
        Sealer {
            key: blake3::derive_key("medfeed 2026-11 tokens and cursors", secret),
        }
    }

    /// Seals a sync token.
    pub fn seal_sync_token(&self, token: &SyncToken) -> String {
        let SyncToken {
            dataset,
            license,
            scope_seq,
            position,
            witness,
        } = *token;
        let numbers = [license.0, scope_seq, position, witness.seq].map(u64::to_be_bytes);
        let plain = [&[dataset.code()], numbers.as_flattened(), &witness.lineage].concat();
        self.seal(SYNC_TOKEN_PURPOSE, &plain)
    }

    /// Opens a sync token.
    pub fn open_sync_token(&self, text: &str) -> Result<SyncToken, Forged> {
        let plain: [u8; SYNC_TOKEN_LEN] = self.open(SYNC_TOKEN_PURPOSE, text)?;
        let mut from = PlainReader(&plain);
        Ok(SyncToken {
            dataset: Dataset::from_code(from.take::<1>()[0]).ok_or(Forged)?,
            license: LicenseId(from.take_u64()),
            scope_seq: from.take_u64(),
            position: from.take_u64(),
            witness: Witness {
                seq: from.take_u64(),
                lineage: from.take(),
            },
        })
    }

    /// Seals a cursor.
    pub fn seal_cursor(&self, cursor: &Cursor) -> String {
        let Cursor {
            dataset,
            license,
            filters,
            last_id,
        } = *cursor;
        let plain = [
            &[dataset.code()][..],
            &license.0.to_be_bytes(),
            &filters,
            &last_id.to_be_bytes(),
        ]
        .concat();
        self.seal(CURSOR_PURPOSE, &plain)
    }

    /// Opens a cursor.
    pub fn open_cursor(&self, text: &str) -> Result<Cursor, Forged> {
        let plain: [u8; CURSOR_LEN] = self.open(CURSOR_PURPOSE, text)?;
        let mut from = PlainReader(&plain);
        Ok(Cursor {
            dataset: Dataset::from_code(from.take::<1>()[0]).ok_or(Forged)?,
            license: LicenseId(from.take_u64()),
            filters: from.take(),
            last_id: from.take_u64(),
        })
    }

    fn seal(&self, purpose: &[u8], plain: &[u8]) -> String {
        // SIV fails only for more than 126 headers. An empty text is rejected as forged.
        let sealed = Aes128Siv::new(&self.key.into())
            .encrypt([purpose], plain)
            .unwrap_or_default();
        BASE64URL_NOPAD.encode(&sealed)
    }

    fn open<const N: usize>(&self, purpose: &[u8], text: &str) -> Result<[u8; N], Forged> {
        if text.len() != BASE64URL_NOPAD.encode_len(N + TAG_LEN) {
            return Err(Forged);
        }
        let sealed = BASE64URL_NOPAD
            .decode(text.as_bytes())
            .map_err(|_| Forged)?;
        let plain = Aes128Siv::new(&self.key.into())
            .decrypt([purpose], &sealed)
            .map_err(|_| Forged)?;
        plain.try_into().map_err(|_| Forged)
    }
}

/// Reads a fixed-size record from front to back.
struct PlainReader<'a>(&'a [u8]);

impl PlainReader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        let (bytes, rest) = self.0.split_at(N);
        taken.copy_from_slice(bytes);
        self.0 = rest;
        taken
    }

    fn take_u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn token(position: u64) -> SyncToken {
        SyncToken {
            dataset: Dataset::Journals,
            license: LicenseId(7),
            scope_seq: 3,
            position,
            witness: Witness {
                seq: 9,
                lineage: [5; 16],
            },
        }
    }

    fn cursor(last_id: u64) -> Cursor {
        Cursor {
            dataset: Dataset::Conferences,
            license: LicenseId(7),
            filters: [1; 16],
            last_id,
        }
    }

    #[test]
    fn tokens_and_cursors_round_trip_with_a_fixed_length() {
        let sealer = Sealer::new(&[1; 32]);
        for number in [0, 1, 500, u64::MAX] {
            let text = sealer.seal_sync_token(&token(number));
            assert_eq!(sealer.open_sync_token(&text), Ok(token(number)));
            let expected = sealer.seal_sync_token(&token(number));
            assert_eq!(text, expected, "deterministic");
            assert_eq!((text.len(), SYNC_TOKEN_CHARS), (87, 87));
            let text = sealer.seal_cursor(&cursor(number));
            assert_eq!(sealer.open_cursor(&text), Ok(cursor(number)));
            assert_eq!((text.len(), CURSOR_CHARS), (66, 66));
        }
    }

    #[test]
    fn each_part_of_a_token_is_its_own() {
        let sealer = Sealer::new(&[1; 32]);
        let lineage: [u8; 16] = std::array::from_fn(|at| u8::try_from(at).unwrap() + 100);
        let parts = |change: usize| {
            let number = |at: usize| 1000 + at as u64 + u64::from(at == change) * 7;
            SyncToken {
                dataset: if change == 0 {
                    Dataset::Conferences
                } else {
                    Dataset::Journals
                },
                license: LicenseId(number(1)),
                scope_seq: number(2),
                position: number(3),
                witness: Witness {
                    seq: number(4),
                    lineage: std::array::from_fn(|at| lineage[at] ^ u8::from(change == 5 + at)),
                },
            }
        };
        let texts: BTreeSet<String> = (0..=21)
            .map(|change| sealer.seal_sync_token(&parts(change)))
            .collect();
        assert_eq!(
            texts.len(),
            22,
            "a change of any part, each byte of the lineage, and no change"
        );
        for change in 0..=21 {
            let found = sealer.open_sync_token(&sealer.seal_sync_token(&parts(change)));
            assert_eq!(found, Ok(parts(change)), "{change}");
        }
    }

    #[test]
    fn each_part_of_a_cursor_is_its_own() {
        let sealer = Sealer::new(&[1; 32]);
        let filters: [u8; 16] = std::array::from_fn(|at| u8::try_from(at).unwrap() + 100);
        let parts = |change: usize| Cursor {
            dataset: if change == 0 {
                Dataset::Conferences
            } else {
                Dataset::Journals
            },
            license: LicenseId(5 + u64::from(change == 1)),
            filters: std::array::from_fn(|at| filters[at] ^ u8::from(change == 3 + at)),
            last_id: 6 + u64::from(change == 2) * 3,
        };
        let texts: BTreeSet<String> = (0..=19)
            .map(|change| sealer.seal_cursor(&parts(change)))
            .collect();
        assert_eq!(
            texts.len(),
            20,
            "a change of any part, each byte of the filters, and no change"
        );
        for change in 0..=19 {
            let found = sealer.open_cursor(&sealer.seal_cursor(&parts(change)));
            assert_eq!(found, Ok(parts(change)), "{change}");
        }
    }

    /// Clients save tokens for months, so newer versions must open them.
    #[test]
    fn tokens_of_earlier_versions_are_opened() {
        let sealer = Sealer::new(&std::array::from_fn(|at| u8::try_from(at).unwrap()));
        let lineage = std::array::from_fn(|at| u8::try_from(at).unwrap() * 3);
        let token = SyncToken {
            dataset: Dataset::Conferences,
            license: LicenseId(0x0102_0304_0506_0708),
            scope_seq: 11,
            position: 22,
            witness: Witness { seq: 33, lineage },
        };
        let text = "Itn2VLoPL8NoRkHbIwWKK0Hw0z0-1l3KXppMgedb4FrAP52gRJa_fE7HMfBYlS-qiwrP2unlpYoviWF0xxJuzhE";
        assert_eq!(sealer.seal_sync_token(&token).as_str(), text);
        assert_eq!(sealer.open_sync_token(text), Ok(token));
    }

    #[test]
    fn each_bit_of_the_secret_counts() {
        let text = Sealer::new(&[0; 32]).seal_sync_token(&token(4));
        for at in 0..32 {
            for bit in [1, 128] {
                let mut secret = [0; 32];
                secret[at] = bit;
                let found = Sealer::new(&secret).open_sync_token(&text);
                assert_eq!(found, Err(Forged), "byte {at}");
            }
        }
        let found = format!("{:?}", Sealer::new(&[1; 32]));
        assert_eq!(found, "Sealer(..)", "the key is not shown");
    }

    #[test]
    fn sealed_bytes_that_are_no_token_are_rejected() {
        let sealer = Sealer::new(&[1; 32]);
        let (sync_token, cursor) = (&[1; SYNC_TOKEN_LEN], &[1; CURSOR_LEN]);
        assert!(
            sealer
                .open_sync_token(&sealer.seal(SYNC_TOKEN_PURPOSE, sync_token))
                .is_ok(),
            "1 is a dataset"
        );
        assert!(
            sealer
                .open_cursor(&sealer.seal(CURSOR_PURPOSE, cursor))
                .is_ok()
        );
        for code in (0..=u8::MAX).filter(|code| Dataset::from_code(*code).is_none()) {
            let (mut sync_token, mut cursor) = (*sync_token, *cursor);
            (sync_token[0], cursor[0]) = (code, code);
            let found = sealer.open_sync_token(&sealer.seal(SYNC_TOKEN_PURPOSE, &sync_token));
            assert_eq!(found, Err(Forged), "{code}");
            let found = sealer.open_cursor(&sealer.seal(CURSOR_PURPOSE, &cursor));
            assert_eq!(found, Err(Forged), "{code}");
        }
        // Of the right length, for another purpose.
        for purpose in [CURSOR_PURPOSE, b"sync token 9", b"sync token", b""] {
            assert_eq!(
                sealer.open_sync_token(&sealer.seal(purpose, sync_token)),
                Err(Forged)
            );
        }
        for purpose in [SYNC_TOKEN_PURPOSE, b"cursor 9", b""] {
            let expected = Err(Forged);
            assert_eq!(sealer.open_cursor(&sealer.seal(purpose, cursor)), expected);
        }
        // Shorter and longer ones.
        for length in [
            0,
            1,
            SYNC_TOKEN_LEN - 1,
            SYNC_TOKEN_LEN + 1,
            2 * SYNC_TOKEN_LEN,
        ] {
            let text = sealer.seal(SYNC_TOKEN_PURPOSE, &vec![1; length]);
            assert_eq!(sealer.open_sync_token(&text), Err(Forged), "{length}");
        }
    }

    #[test]
    fn tokens_with_text_around_them_are_rejected() {
        let sealer = Sealer::new(&[1; 32]);
        let (token, cursor) = (
            sealer.seal_sync_token(&token(4)),
            sealer.seal_cursor(&cursor(4)),
        );
        for (before, after) in [
            (" ", ""),
            ("", " "),
            ("", "\n"),
            ("\u{feff}", ""),
            ("", "\0"),
            ("", "=="),
        ] {
            let around = |text: &str| format!("{before}{text}{after}");
            let found = sealer.open_sync_token(&around(&token));
            assert_eq!(found, Err(Forged), "{before:?} {after:?}");
            let found = sealer.open_cursor(&around(&cursor));
            assert_eq!(found, Err(Forged), "{before:?} {after:?}");
        }
        // The other alphabet of base64.
        let number = (0..)
            .find(|number| sealer.seal_cursor(&self::cursor(*number)).contains('-'))
            .unwrap();
        assert_eq!(
            sealer.open_cursor(&sealer.seal_cursor(&self::cursor(number)).replace('-', "+")),
            Err(Forged)
        );
    }

    #[test]
    fn changed_tokens_and_tokens_of_other_databases_are_rejected() {
        let sealer = Sealer::new(&[1; 32]);
        let text = sealer.seal_sync_token(&token(4));
        let other = Sealer::new(&[2; 32]);
        let expected = Err(Forged);
        assert_eq!(other.open_sync_token(&text), expected, "another database's");
        assert_eq!(
            sealer.open_cursor(&sealer.seal_sync_token(&token(4))),
            Err(Forged)
        );
        assert_eq!(
            sealer.open_sync_token(&sealer.seal_cursor(&cursor(4))),
            Err(Forged)
        );
        for wrong in [
            "",
            "=",
            "x",
            &text[1..],
            &format!("{text}A"),
            &format!("{text}="),
            &format!(" {}", &text[1..]),
        ] {
            assert_eq!(sealer.open_sync_token(wrong), Err(Forged), "{wrong:?}");
        }
        // Every other character at every index, including the unused bits of the last one.
        for at in 0..text.len() {
            for byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
                let mut bytes = text.clone().into_bytes();
                if bytes[at] != *byte {
                    bytes[at] = *byte;
                    let changed = String::from_utf8(bytes).unwrap();
                    assert_eq!(sealer.open_sync_token(&changed), Err(Forged), "{changed}");
                }
            }
        }
    }
}
