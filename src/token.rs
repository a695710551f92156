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
#[allow(missing_docs, reason = "described above")]
pub struct SyncToken {
    pub dataset: Dataset,
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
#[allow(missing_docs, reason = "described above")]
pub struct Cursor {
    pub dataset: Dataset,
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
        Sealer { key: blake3::derive_key("medfeed 2026-11 tokens and cursors", secret) }
    }

    /// Seals a sync token.
    pub fn seal_sync_token(&self, token: &SyncToken) -> String {
        let SyncToken { dataset, license, scope_seq, position, witness } = *token;
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
            witness: Witness { seq: from.take_u64(), lineage: from.take() },
        })
    }

    /// Seals a cursor.
    pub fn seal_cursor(&self, cursor: &Cursor) -> String {
        let Cursor { dataset, license, filters, last_id } = *cursor;
        let plain = [&[dataset.code()][..], &license.0.to_be_bytes(), &filters, &last_id.to_be_bytes()].concat();
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
        let sealed = Aes128Siv::new(&self.key.into()).encrypt([purpose], plain).unwrap_or_default();
        BASE64URL_NOPAD.encode(&sealed)
    }

    fn open<const N: usize>(&self, purpose: &[u8], text: &str) -> Result<[u8; N], Forged> {
        if text.len() != BASE64URL_NOPAD.encode_len(N + TAG_LEN) {
            return Err(Forged);
        }
        let sealed = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| Forged)?;
        let plain = Aes128Siv::new(&self.key.into()).decrypt([purpose], &sealed).map_err(|_| Forged)?;
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
    use super::*;

    fn token(position: u64) -> SyncToken {
        SyncToken {
            dataset: Dataset::Journals,
            license: LicenseId(7),
            scope_seq: 3,
            position,
            witness: Witness { seq: 9, lineage: [5; 16] },
        }
    }

    fn cursor(last_id: u64) -> Cursor {
        Cursor { dataset: Dataset::Conferences, license: LicenseId(7), filters: [1; 16], last_id }
    }

    #[test]
    fn tokens_and_cursors_round_trip_with_a_fixed_length() {
        let sealer = Sealer::new(&[1; 32]);
        for number in [0, 1, 500, u64::MAX] {
            let text = sealer.seal_sync_token(&token(number));
            assert_eq!(sealer.open_sync_token(&text), Ok(token(number)));
            assert_eq!(text, sealer.seal_sync_token(&token(number)), "deterministic");
            assert_eq!((text.len(), SYNC_TOKEN_CHARS), (87, 87));
            let text = sealer.seal_cursor(&cursor(number));
            assert_eq!(sealer.open_cursor(&text), Ok(cursor(number)));
            assert_eq!((text.len(), CURSOR_CHARS), (66, 66));
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        let sealer = Sealer::new(&[1; 32]);
        let text = sealer.seal_sync_token(&token(4));
        let other = Sealer::new(&[2; 32]);
        assert_eq!(other.open_sync_token(&text), Err(Forged), "another database's");
        assert_eq!(sealer.open_cursor(&sealer.seal_sync_token(&token(4))), Err(Forged));
        assert_eq!(sealer.open_sync_token(&sealer.seal_cursor(&cursor(4))), Err(Forged));
        for wrong in ["", "=", "x", &text[1..], &format!("{text}A"), &format!("{text}="), &format!(" {}", &text[1..])] {
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
