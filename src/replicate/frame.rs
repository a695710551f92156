//! The encoding of all objects in a bucket: a format, a header, a payload and a hash.
//!
//! | bytes | content |
//! | --- | --- |
//! | up to the first newline | the format, such as `medfeed log 2` |
//! | 4 | the length of the header, big-endian |
//! | that length | the header: MessagePack, every struct as an array of its fields |
//! | all but the last 32 | the payload, such as changes (zlib, RFC 1950) |
//! | 32 | BLAKE3 of everything before it; other objects refer to this object by it |
//!
//! Decoders accept only bytes that the encoder produces. Their memory is bounded by the length in the header and by
//! [`PAYLOAD_BYTES`].

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A full BLAKE3 hash.
pub type Hash = [u8; HASH_BYTES];

const HASH_BYTES: usize = 32;
const LENGTH_BYTES: usize = 4;

/// The maximum size of an object's payload, inflated, in bytes.
pub const PAYLOAD_BYTES: u64 = 1 << 28;

/// The zlib level. Higher levels take much longer and save little.
const LEVEL: u32 = 3;

/// An upper bound for the ratio of deflate (RFC 1951: at most 258 bytes in two bits).
const DENSEST: u64 = 1040;

/// An object whose bytes are not valid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedObject(String);

impl MalformedObject {
    pub fn new(text: impl ToString) -> MalformedObject {
        MalformedObject(text.to_string())
    }
}

/// Returns an object if it is of this slot. A valid one may be at the name of another one.
pub fn of_slot<T>(slot: u64, found: u64, object: T) -> Result<T, MalformedObject> {
    if slot == found {
        Ok(object)
    } else {
        Err(MalformedObject::new(format!("it is of slot {found}")))
    }
}

/// Returns the encoded object and its hash.
pub fn encode<T: Serialize>(
    format: &str,
    header: &T,
    payload: &[u8],
) -> Result<(Vec<u8>, Hash), MalformedObject> {
    let header = rmp_serde::to_vec(header).map_err(MalformedObject::new)?;
    let length =
        u32::try_from(header.len()).map_err(|_| MalformedObject::new("the header is too long"))?;
    let mut bytes = [
        format.as_bytes(),
        b"\n",
        &length.to_be_bytes(),
        &header,
        payload,
    ]
    .concat();
    let hash = *blake3::hash(&bytes).as_bytes();
    bytes.extend_from_slice(&hash);
    Ok((bytes, hash))
}

/// Returns the header, the payload and the hash of an object.
pub fn decode<'a, T: Serialize + DeserializeOwned>(
    format: &str,
    bytes: &'a [u8],
) -> Result<(T, &'a [u8], Hash), MalformedObject> {
    let rest = bytes
        .strip_prefix(format.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"\n"));
    let Some(rest) = rest else {
        return Err(MalformedObject::new(
            match is_of_other_format(format, bytes) {
                true => {
                    "its format is unknown to this program; use the publisher's version of medfeed, or a newer one"
                }
                false => "it is not an object of this kind",
            },
        ));
    };
    let cut = || MalformedObject::new("it is cut short");
    let (rest, stored) = rest.split_last_chunk::<HASH_BYTES>().ok_or_else(cut)?;
    let hash = *blake3::hash(&bytes[..bytes.len() - HASH_BYTES]).as_bytes();
    if hash != *stored {
        return Err(MalformedObject::new("it does not match its hash"));
    }
    let (length, rest) = rest.split_first_chunk::<LENGTH_BYTES>().ok_or_else(cut)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| cut())?;
    let (header, payload) = rest.split_at_checked(length).ok_or_else(cut)?;
    let read: T = rmp_serde::from_slice(header)
        .map_err(|error| MalformedObject::new(format!("its header: {error}")))?;
    // MessagePack has several encodings of a value, and the decoder ignores trailing bytes. Accept only our encoding.
    if rmp_serde::to_vec(&read).ok().as_deref() != Some(header) {
        return Err(MalformedObject::new(
            "its header is not in the canonical encoding",
        ));
    }
    Ok((read, payload, hash))
}

/// Decodes an object without a payload.
pub fn decode_header<T: Serialize + DeserializeOwned>(
    format: &str,
    bytes: &[u8],
) -> Result<T, MalformedObject> {
    match decode(format, bytes)? {
        (header, [], _) => Ok(header),
        _ => Err(MalformedObject::new("it holds more than a header")),
    }
}

pub fn is_of_other_format(format: &str, bytes: &[u8]) -> bool {
    let kind = format.trim_end_matches(|c: char| c.is_ascii_digit());
    let line = bytes.split(|byte| *byte == b'\n').next();
    let version = line.and_then(|line| line.strip_prefix(kind.as_bytes()));
    version.is_some_and(|version| version.first().is_some_and(u8::is_ascii_digit))
        && line != Some(format.as_bytes())
}

pub fn deflate(texts: &[&[u8]]) -> Result<Vec<u8>, MalformedObject> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
    texts
        .iter()
        .try_for_each(|text| encoder.write_all(text))
        .and_then(|()| encoder.finish())
        .map_err(MalformedObject::new)
}

/// Inflates a payload, which must have exactly `length` bytes.
pub fn inflate(deflated: &[u8], length: u64) -> Result<Vec<u8>, MalformedObject> {
    let deflated_bytes = deflated.len() as u64;
    if length > PAYLOAD_BYTES || length > deflated_bytes.saturating_mul(DENSEST) {
        return Err(MalformedObject::new(format!(
            "it cannot hold the {length} bytes that it announces"
        )));
    }
    let mut decoder = ZlibDecoder::new(deflated);
    let mut inflated = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    let read = Read::take(&mut decoder, length + 1).read_to_end(&mut inflated);
    read.map_err(|error| MalformedObject::new(format!("its bytes cannot be inflated: {error}")))?;
    if inflated.len() as u64 != length || decoder.total_in() != deflated_bytes {
        return Err(MalformedObject::new(
            "it does not hold as many bytes as it announces",
        ));
    }
    Ok(inflated)
}
