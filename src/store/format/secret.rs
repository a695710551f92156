//! The secret that seals tokens and cursors: a row of `meta`, with a hash in front. With a damaged
//! secret, every token of a client would look forged.

use redb::ReadableTable;

use crate::store::StoreError;
use crate::store::format::codec::hash_under;
use crate::store::format::tables::META_SECRET;

const SECRET_LEN: usize = 32;

/// The row of a secret.
pub fn encode(secret: &[u8; SECRET_LEN]) -> Vec<u8> {
    [hash_under(META_SECRET.as_bytes(), secret).as_slice(), secret].concat()
}

/// Reads the secret. Rows of earlier files have no hash.
///
/// # Errors
///
/// [`StoreError::Damaged`] if it is missing or damaged.
pub fn read(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<[u8; SECRET_LEN], StoreError> {
    let row = meta.get(META_SECRET)?;
    let row = row.as_ref().map(|row| row.value()).unwrap_or_default();
    let Some((hash, secret)) = row.split_last_chunk::<SECRET_LEN>() else {
        return Err(StoreError::damaged("meta", "the token secret is missing"));
    };
    if hash.is_empty() || *hash == hash_under(META_SECRET.as_bytes(), secret) {
        return Ok(*secret);
    }
    Err(StoreError::damaged("meta", "the token secret does not match its hash"))
}
