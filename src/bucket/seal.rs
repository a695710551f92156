//! Sealing objects. A program without the key can see only sizes and names, and cannot change an object unnoticed.
//!
//! The cipher is AES-256-SIV (RFC 5297), with the object's name as associated data. So an object moved to another name
//! is rejected, like a changed one. The cipher is deterministic: the same object has the same bytes.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use aes_siv::KeyInit;
use aes_siv::siv::Aes256Siv;
use data_encoding::{BASE64, BASE64_NOPAD, HEXLOWER_PERMISSIVE};

use super::object::{BucketError, Result};

use crate::disk::describe_at;

/// The first bytes of a sealed object.
const MARK: &[u8] = b"medfeed sealed 1\n";

/// The context of the key derivation.
const PURPOSE: &str = "medfeed 2026-11 sealed objects of a bucket";

/// The maximum size of a key's file, in bytes.
const FILE_BYTES: u64 = 4096;

const HOW_TO: &str = "use the key of the bucket's publisher; before the first `medfeed publish`, make one with \
                      `openssl rand -hex 64 > FILE; chmod 600 FILE`";

/// The key that seals objects.
pub struct SealKey([u8; 64]);

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(..)")
    }
}

impl SealKey {
    /// Reads a key from its file: 32 or 64 random bytes in hex or base64.
    ///
    /// # Errors
    /// If the file cannot be read, is readable by others, or holds no key. The message says what to do.
    pub fn load(path: &Path) -> Result<SealKey, String> {
        let shown = path.display();
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no file {shown} with a seal key; {HOW_TO}")
            }
            _ => format!("cannot read the seal key in {}", describe_at(path, &error)),
        };
        let mut file = File::open(path).map_err(unreadable)?;
        let found = file.metadata().map_err(unreadable)?;
        if found.is_dir() {
            return Err(format!(
                "{shown} is a folder; name the file of a seal key, or {HOW_TO}"
            ));
        }
        let others = found.mode() & 0o007;
        if others != 0 {
            return Err(format!(
                "{shown} holds a seal key that every user of this machine may use (mode {:03o}); run `chmod o= \
                 {shown}`, and make a new key if somebody may have read it",
                found.mode() & 0o777
            ));
        }
        let mut text = Vec::new();
        Read::take(&mut file, FILE_BYTES)
            .read_to_end(&mut text)
            .map_err(unreadable)?;
        SealKey::parse(&text).ok_or_else(|| {
            format!("{shown} holds no seal key, which is 32 or 64 bytes in hex or base64; {HOW_TO}")
        })
    }

    /// Parses a key.
    fn parse(text: &[u8]) -> Option<SealKey> {
        let text = text.trim_ascii();
        // The lengths of the encodings differ: 64 or 128 hex digits; 43, 44, 86 or 88 characters of base64.
        let bytes = match text.len() {
            64 | 128 => HEXLOWER_PERMISSIVE.decode(text),
            43 | 86 => BASE64_NOPAD.decode(text),
            44 | 88 => BASE64.decode(text),
            _ => return None,
        };
        let bytes = bytes.ok().filter(|bytes| matches!(bytes.len(), 32 | 64))?;
        // A single repeated byte is a placeholder, not a key.
        if bytes.iter().all(|byte| *byte == bytes[0]) {
            return None;
        }
        let mut key = [0; 64];
        blake3::Hasher::new_derive_key(PURPOSE)
            .update(&bytes)
            .finalize_xof()
            .fill(&mut key);
        Some(SealKey(key))
    }
}

/// Returns the bytes to store for an object.
pub(super) fn seal(key: Option<&SealKey>, name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let Some(SealKey(key)) = key else {
        return Ok(bytes.to_vec());
    };
    // SIV fails only for more than 126 headers, or for impossible lengths.
    let sealed = Aes256Siv::new(key.into())
        .encrypt([name.as_bytes()], bytes)
        .map_err(|_| {
            BucketError::Refused(format!(
                "`{name}` cannot be sealed: {} bytes are too many",
                bytes.len()
            ))
        })?;
    Ok([MARK, &sealed].concat())
}

/// Returns an object's bytes from the stored ones.
pub(super) fn unseal(key: Option<&SealKey>, name: &str, stored: Vec<u8>) -> Result<Vec<u8>> {
    let damaged = |detail: &str| BucketError::Damaged {
        name: name.to_owned(),
        detail: detail.to_owned(),
    };
    match (key, stored.strip_prefix(MARK)) {
        (None, None) => Ok(stored),
        (None, Some(_)) => {
            Err(BucketError::Refused(format!("`{name}` is sealed; give the file of its key with --seal-key")))
        }
        (Some(_), None) => Err(damaged(
            "it is not sealed, though --seal-key is given: it was written without a key, or by somebody who does not \
             have the key; leave out --seal-key only if nothing in this bucket is sealed",
        )),
        (Some(SealKey(key)), Some(sealed)) => {
            Aes256Siv::new(key.into()).decrypt([name.as_bytes()], sealed).map_err(|_| {
                damaged(
                    "it was sealed with another key or under another name, or its bytes were changed; check --seal-key",
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn key(byte: u8) -> SealKey {
        let bytes: Vec<u8> = (0..64).map(|at| at ^ byte).collect();
        SealKey::parse(HEXLOWER_PERMISSIVE.encode(&bytes).as_bytes()).unwrap()
    }

    #[test]
    fn sealed_objects_round_trip() {
        for bytes in [&b""[..], b"x", &[7; 100_000]] {
            let sealed = seal(Some(&key(1)), "log/1", bytes).unwrap();
            let expected = seal(Some(&key(1)), "log/1", bytes).unwrap();
            assert_eq!(sealed, expected, "deterministic");
            assert_eq!(sealed.len(), MARK.len() + 16 + bytes.len());
            assert_eq!(unseal(Some(&key(1)), "log/1", sealed).unwrap(), bytes);
            let plain = seal(None, "log/1", bytes).unwrap();
            assert_eq!(plain, bytes);
            assert_eq!(unseal(None, "log/1", plain).unwrap(), bytes);
        }
    }

    #[test]
    fn other_bytes_are_rejected() {
        let sealed = seal(Some(&key(1)), "log/1", b"what it says").unwrap();
        let refused = |key: Option<&SealKey>, name: &str, stored: &[u8]| {
            unseal(key, name, stored.to_vec()).unwrap_err()
        };
        assert!(
            matches!(
                refused(Some(&key(2)), "log/1", &sealed),
                BucketError::Damaged { .. }
            ),
            "another key"
        );
        assert!(
            matches!(
                refused(Some(&key(1)), "log/2", &sealed),
                BucketError::Damaged { .. }
            ),
            "another name"
        );
        assert!(
            matches!(refused(None, "log/1", &sealed), BucketError::Refused(text) if text.contains("--seal-key"))
        );
        let told = refused(Some(&key(1)), "log/1", b"plain").to_string();
        assert!(told.contains("it is not sealed"));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(
                matches!(
                    refused(Some(&key(1)), "log/1", &changed),
                    BucketError::Damaged { .. }
                ),
                "byte {at}"
            );
            assert!(
                matches!(
                    refused(Some(&key(1)), "log/1", &sealed[..at]),
                    BucketError::Damaged { .. }
                ),
                "cut at {at}"
            );
        }
    }

    #[test]
    fn an_object_is_sealed_under_its_whole_name() {
        let names = words![
            "log/00000000000000000001" "log/00000000000000000002" "states/00000000000000000001"
            "parts/00000000000000000001-0123456789abcdef/00000"
            "parts/00000000000000000001-0123456789abcdef/00001"
            "parts/00000000000000000001-fedcba9876543210/00000"
            "parts/00000000000000000002-0123456789abcdef/00000" "alive"
        ];
        for name in names {
            let sealed = seal(Some(&key(1)), name, b"the same content").unwrap();
            for other in names {
                let found = unseal(Some(&key(1)), other, sealed.clone());
                assert_eq!(found.is_ok(), other == name, "{name} at {other}");
            }
        }
    }

    #[test]
    fn every_byte_of_a_key_counts() {
        let bytes: Vec<u8> = (0..64).collect();
        let sealed = seal(Some(&key(0)), "alive", b"x").unwrap();
        for length in [32, 64] {
            let sound = SealKey::parse(BASE64.encode(&bytes[..length]).as_bytes()).unwrap();
            for at in 0..length {
                let mut other = bytes[..length].to_vec();
                other[at] ^= 1;
                let other = SealKey::parse(BASE64.encode(&other).as_bytes()).unwrap();
                assert_ne!(other.0, sound.0, "byte {at} of {length}");
                assert!(
                    unseal(Some(&other), "alive", sealed.clone()).is_err(),
                    "byte {at} of {length}"
                );
            }
        }
    }

    #[test]
    fn keys_are_read_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let bytes: Vec<u8> = (0..64).collect();
        let hex = HEXLOWER_PERMISSIVE.encode(&bytes);
        let good = "";
        let cases = cases![
            format!("{hex}\n"), 0o600, good;
            hex.to_uppercase(), 0o400, good;
            hex[..64].to_owned(), 0o640, good;
            BASE64.encode(&bytes), 0o600, good;
            BASE64.encode(&bytes[..32]), 0o600, good;
            BASE64_NOPAD.encode(&bytes[..32]), 0o600, good;
            BASE64_NOPAD.encode(&bytes), 0o600, good;
            hex.clone(), 0o660, good;
            hex.clone(), 0o601, "(mode 601)";
            format!("{}{}", &hex, &hex), 0o600, "holds no seal key";
            BASE64.encode(&[0; 32]), 0o600, "holds no seal key";
            hex[..62].to_owned(), 0o600, "holds no seal key, which is 32 or 64 bytes";
            "0".repeat(128), 0o600, "holds no seal key";
            format!("{}x", &hex[..63]), 0o600, "holds no seal key";
            String::new(), 0o600, "openssl rand -hex 64";
            hex.clone(), 0o644, "every user of this machine may use (mode 644); run `chmod o= ";
            hex.clone(), 0o602, "(mode 602)";
        ];
        for (text, mode, expected) in cases {
            fs::write(&path, &text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match SealKey::load(&path) {
                Ok(_) => assert_eq!(expected, good, "{text}"),
                Err(error) => assert!(
                    expected != good && error.contains(expected),
                    "{text}: {error}"
                ),
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        // The key itself, without an encoding.
        fs::write(&path, [0xff; 64]).unwrap();
        let told = SealKey::load(&path).unwrap_err();
        assert!(told.contains("openssl rand -hex 64"));
        let told = SealKey::load(&folder.path().join("none")).unwrap_err();
        assert!(told.contains("there is no file"));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let told = SealKey::load(folder.path()).unwrap_err();
        assert!(told.contains("is a folder"));
        // Both encodings of the same bytes give the same key. Half of the bytes give another key.
        let of = |text: &str| SealKey::parse(text.as_bytes()).unwrap().0;
        assert_eq!(of(&hex), of(&BASE64.encode(&bytes)));
        assert_ne!(of(&hex), of(&hex[..64]));
    }
}
