//! What all objects are: a mark that says what it is, a header, more bytes, and a hash of all that.
//!
//! | bytes | what |
//! | --- | --- |
//! | to the first line end | the mark, such as `medfeed log 1` |
//! | 4 | the length of the header, the most significant byte first |
//! | so many | the header: MessagePack, every struct as an array of its fields |
//! | the rest but 32 | the payload, such as changes (zlib, RFC 1950) |
//! | 32 | BLAKE3 of all before it; it stands for the object elsewhere |
//!
//! Decoders take nothing that the encoder does not make, and need no more memory than an object says and may.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::DatabaseId;

/// BLAKE3, whole.
pub type Hash = [u8; HASH_BYTES];

const HASH_BYTES: usize = 32;
const LENGTH_BYTES: usize = 4;

/// The most that the payload of one object may hold, inflated, in bytes.
pub const PAYLOAD_BYTES: u64 = 1 << 28;

/// How hard changes are deflated: beyond that it takes much longer for little.
const LEVEL: u32 = 3;

/// The most that deflate packs into a byte (RFC 1951: 258 bytes into two bits), generously.
const DENSEST: u64 = 1040;

/// An object's bytes are none of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(super) String);

/// An object is sound, and stands in a place that is another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// It is of another database.
    #[error("it is of another database ({0})")]
    Database(DatabaseId),
    /// It is of another slot.
    #[error("it is of slot {0}")]
    Slot(u64),
}

impl Malformed {
    pub(super) fn new(text: impl Into<String>) -> Malformed {
        Malformed(text.into())
    }
}

/// Fails unless a thing is of the place where it was found.
pub(super) fn check_place(found: (u64, DatabaseId), slot: u64, id: DatabaseId) -> Result<(), Misplaced> {
    match found {
        (_, other) if other != id => Err(Misplaced::Database(other)),
        (other, _) if other != slot => Err(Misplaced::Slot(other)),
        _ => Ok(()),
    }
}

/// The bytes of an object, and their hash.
pub(super) fn encode<T: Serialize>(mark: &str, header: &T, payload: &[u8]) -> Result<(Vec<u8>, Hash), Malformed> {
    let header = rmp_serde::to_vec(header).map_err(|error| Malformed::new(error.to_string()))?;
    let length = u32::try_from(header.len()).map_err(|_| Malformed::new("the header is too long"))?;
    let mut bytes = [mark.as_bytes(), b"\n", &length.to_be_bytes(), &header, payload].concat();
    let hash = *blake3::hash(&bytes).as_bytes();
    bytes.extend_from_slice(&hash);
    Ok((bytes, hash))
}

/// The header, the payload and the hash of an object.
pub(super) fn decode<'a, T: Serialize + DeserializeOwned>(
    mark: &str,
    bytes: &'a [u8],
) -> Result<(T, &'a [u8], Hash), Malformed> {
    let rest = bytes.strip_prefix(mark.as_bytes()).and_then(|rest| rest.strip_prefix(b"\n"));
    let Some(rest) = rest else { return Err(other_mark(mark, bytes)) };
    let cut = || Malformed::new("it is cut short");
    let (rest, stored) = rest.split_last_chunk::<HASH_BYTES>().ok_or_else(cut)?;
    let hash = *blake3::hash(&bytes[..bytes.len() - HASH_BYTES]).as_bytes();
    if hash != *stored {
        return Err(Malformed::new("it does not match its hash"));
    }
    let (length, rest) = rest.split_first_chunk::<LENGTH_BYTES>().ok_or_else(cut)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| cut())?;
    let (header, payload) = rest.split_at_checked(length).ok_or_else(cut)?;
    let read: T = rmp_serde::from_slice(header).map_err(|error| Malformed::new(format!("its header: {error}")))?;
    // The decoder takes other spellings, and leaves what follows.
    if rmp_serde::to_vec(&read).ok().as_deref() != Some(header) {
        return Err(Malformed::new("its header is not written as this program writes it"));
    }
    Ok((read, payload, hash))
}

/// Whether an object is of the kind that a mark names, in another format.
pub(super) fn is_of_other_format(mark: &str, bytes: &[u8]) -> bool {
    let kind = mark.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_of_kind =
        bytes.strip_prefix(kind.as_bytes()).is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit));
    is_of_kind && !bytes.strip_prefix(mark.as_bytes()).is_some_and(|rest| rest.starts_with(b"\n"))
}

/// What an object is that does not begin with the mark that was looked for.
fn other_mark(mark: &str, bytes: &[u8]) -> Malformed {
    Malformed::new(if is_of_other_format(mark, bytes) {
        "it is in a format that this program does not know; use the medfeed that the publisher uses, or a newer one"
    } else {
        "it is no object of this kind"
    })
}

/// Deflates texts one after the other (zlib).
pub(super) fn deflate(texts: &[&[u8]]) -> Result<Vec<u8>, Malformed> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
    texts.iter().try_for_each(|text| encoder.write_all(text)).map_err(|error| Malformed::new(error.to_string()))?;
    encoder.finish().map_err(|error| Malformed::new(error.to_string()))
}

/// Inflates what must be of a given length.
pub(super) fn inflate(deflated: &[u8], length: u64) -> Result<Vec<u8>, Malformed> {
    let deflated_bytes = u64::try_from(deflated.len()).unwrap_or(u64::MAX);
    if length > PAYLOAD_BYTES || length > deflated_bytes.saturating_mul(DENSEST) {
        return Err(Malformed::new(format!("it says that it holds {length} bytes, which it cannot")));
    }
    let mut decoder = ZlibDecoder::new(deflated);
    let mut inflated = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    let read = Read::take(&mut decoder, length + 1).read_to_end(&mut inflated);
    read.map_err(|error| Malformed::new(format!("its bytes cannot be inflated: {error}")))?;
    if u64::try_from(inflated.len()) != Ok(length) || decoder.total_in() != deflated_bytes {
        return Err(Malformed::new("it does not hold as many bytes as it says"));
    }
    Ok(inflated)
}
