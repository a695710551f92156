//! HTTPS: TLS 1.2 and 1.3. The certificate and key are reloaded when their files change.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use arc_swap::ArcSwap;
use memchr::memmem;
use parking_lot::Mutex;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::time::Time;

use crate::model::{Timestamp, now};
use crate::transport::tls::{self, ServerConfig};

/// The value of `Strict-Transport-Security` in every response over HTTPS: one year.
pub const STRICT_TRANSPORT: &str = "max-age=31536000";

/// The certificate and key in use.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: ArcSwap<ServerConfig>,
    stamp: Mutex<Stamp>,
    /// Seconds since 1970.
    expires_at: AtomicI64,
    is_reload_failed: AtomicBool,
}

/// The times from and until which a certificate is valid.
type Validity = [Timestamp; 2];

/// Device, inode, size and modification time of both files, to notice changes.
type Stamp = [Option<(u64, u64, u64, i64, i64)>; 2];

impl Tls {
    /// Loads a certificate and its key. Returns why they cannot be used as the error.
    pub fn load(certificate: PathBuf, key: PathBuf) -> Result<Tls, String> {
        let stamp = stamp(&certificate, &key);
        let (config, validity) = load_config(&certificate, &key)?;
        let tls = Tls {
            certificate,
            key,
            config: ArcSwap::from_pointee(config),
            stamp: Mutex::new(stamp),
            expires_at: AtomicI64::new(0),
            is_reload_failed: AtomicBool::new(false),
        };
        tls.note_validity(validity);
        Ok(tls)
    }

    /// The time until which the certificate in use is valid, in seconds since 1970; 0 if it cannot be read.
    pub fn expires_at(&self) -> i64 {
        self.expires_at.load(Ordering::Relaxed)
    }

    /// Whether the last reload failed, so that an old pair is in use.
    pub fn is_reload_failed(&self) -> bool {
        self.is_reload_failed.load(Ordering::Relaxed)
    }

    /// Notes the validity of the certificate in use. Logs a warning if callers will reject it now.
    fn note_validity(&self, validity: Option<Validity>) {
        self.expires_at.store(
            validity.map_or(0, |[_, end]| end.unix_s()),
            Ordering::Relaxed,
        );
        let certificate = self.certificate.display();
        match validity {
            Some([begin, _]) if now() < begin => {
                tracing::warn!(
                    "the certificate {certificate} is valid only from {begin} on; check the clock, or renew it"
                );
            }
            Some([_, end]) if end < now() => {
                tracing::warn!(
                    "the certificate {certificate} expired at {end}; callers will reject it, so renew it"
                );
            }
            Some(_) => {}
            None => tracing::warn!(
                "the end of the certificate {certificate} cannot be read, so no metric shows it"
            ),
        }
    }

    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.load_full())
    }

    /// Reloads the pair if a file changed. An unusable pair is not loaded.
    pub fn reload_if_changed(&self) {
        // Before reading, so that a change in between is noticed next time.
        let found = stamp(&self.certificate, &self.key);
        let changed = {
            let mut stamp = self.stamp.lock();
            std::mem::replace(&mut *stamp, found) != found
        };
        if changed {
            self.reload();
        }
    }

    /// Reloads the pair. An unusable pair is not loaded.
    pub fn reload(&self) {
        let loaded = load_config(&self.certificate, &self.key);
        self.is_reload_failed
            .store(loaded.is_err(), Ordering::Relaxed);
        match loaded {
            Ok((config, validity)) => {
                self.config.store(Arc::new(config));
                self.note_validity(validity);
                tracing::info!(certificate = %self.certificate.display(), "the certificate was reloaded");
            }
            Err(error) => {
                tracing::error!(%error, "the new certificate or key cannot be used; the old pair stays in use");
            }
        }
    }
}

fn stamp(certificate: &Path, key: &Path) -> Stamp {
    [certificate, key].map(|path| {
        let found = std::fs::metadata(path).ok()?;
        Some((
            found.dev(),
            found.ino(),
            found.size(),
            found.mtime(),
            found.mtime_nsec(),
        ))
    })
}

fn load_config(certificate: &Path, key: &Path) -> Result<(ServerConfig, Option<Validity>), String> {
    let chain = tls::certificates_in(certificate)?;
    let validity = read_validity(&chain[0]);
    let pem = tls::read_pem(key)?;
    let private = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
        let advice = if memmem::find(&pem, b"ENCRYPTED").is_some() {
            "the key is encrypted; write it without a passphrase (openssl pkey -in key.pem -out plain.pem); "
        } else {
            ""
        };
        format!(
            "{}: {advice}{error}; it must hold one private key in PEM",
            key.display()
        )
    })?;
    let config = tls::server_config(chain.clone(), private.clone_key()).map_err(|error| {
        let owner = chain.into_iter().position(|certificate| {
            tls::server_config(vec![certificate], private.clone_key()).is_ok()
        });
        let reason = match owner {
            Some(at) => format!(
                "the key belongs to certificate {} of the file, not to the first one; the order must be the server's own \
                 certificate, then the authority that signed it, and so on",
                at + 1
            ),
            None => format!(
                "{error}; supported are keys for RSA with 2048 to 4096 bits, ECDSA on P-256 and P-384 (not P-521), and Ed25519"
            ),
        };
        format!(
            "the certificate {} and the key {} cannot be used together: {reason}",
            certificate.display(),
            key.display()
        )
    })?;
    Ok((config, validity))
}

/// Reads the validity of a certificate; `None` if it has an unusual form.
fn read_validity(certificate: &CertificateDer<'_>) -> Option<Validity> {
    let validity = Certificate::from_der(certificate)
        .ok()?
        .tbs_certificate
        .validity;
    let at = |time: Time| {
        i64::try_from(time.to_unix_duration().as_secs())
            .ok()
            .map(Timestamp::from_unix_s)
    };
    Some([at(validity.not_before)?, at(validity.not_after)?])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// A certificate and its key, in PEM.
    fn pair() -> [String; 2] {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["feed.example".to_owned()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        [certificate.pem(), key.serialize_pem()]
    }

    #[test]
    fn every_change_of_a_file_is_loaded_once() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
        // Renamed, as programs that renew certificates do it. So each has an inode of its own.
        let write = |at: usize, text: &str| {
            let draft = folder.path().join("draft");
            fs::write(&draft, text).unwrap();
            fs::rename(draft, &files[at]).unwrap();
        };
        let [first, second, third] = [pair(), pair(), pair()];
        write(0, &first[0]);
        write(1, &first[1]);
        let tls = Tls::load(files[0].clone(), files[1].clone()).unwrap();
        let mut used = tls.config.load_full();
        let mut is_reloaded = || {
            tls.reload_if_changed();
            !Arc::ptr_eq(
                &std::mem::replace(&mut used, tls.config.load_full()),
                &tls.config.load_full(),
            )
        };
        assert!(!is_reloaded(), "nothing has changed");
        for pair in [&second, &third, &first, &second] {
            write(0, &pair[0]);
            assert!(!is_reloaded(), "the certificate does not fit the key yet");
            assert!(!is_reloaded(), "and still does not");
            write(1, &pair[1]);
            assert!(is_reloaded(), "both have changed");
            assert!(!is_reloaded(), "it is loaded once");
        }
        // The key first, then the certificate.
        write(1, &third[1]);
        assert!(!is_reloaded());
        write(0, &third[0]);
        assert!(is_reloaded() && !is_reloaded());
        // The same content again is a change, too; a file that is missing for a while is not loaded.
        write(0, &third[0]);
        assert!(is_reloaded());
        fs::remove_file(&files[0]).unwrap();
        assert!(!is_reloaded() && !is_reloaded());
        write(0, "no certificate");
        assert!(!is_reloaded());
        write(0, &third[0]);
        assert!(is_reloaded() && !is_reloaded());
        // SIGHUP reloads unchanged files too.
        let before = tls.config.load_full();
        tls.reload();
        assert!(!Arc::ptr_eq(&before, &tls.config.load_full()));
    }

    #[test]
    fn faults_of_a_pair_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [pair(), pair()];
        let empty = [String::new(), String::new()];
        let cases = cases![
            &one[0], &one[1], "";
            &one[0], &other[1], "cannot be used together";
            &one[1], &one[1], "contains no certificate; it must hold the certificate chain";
            &one[0], &one[0], "it must hold one private key";
            &empty[0], &one[1], "contains no certificate";
            &one[0], &empty[1], "it must hold one private key";
        ];
        for (at, (certificate, key, expected)) in cases.into_iter().enumerate() {
            let paths = ["cert", "key"].map(|name| folder.path().join(format!("{at}.{name}")));
            fs::write(&paths[0], certificate).unwrap();
            fs::write(&paths[1], key).unwrap();
            let [certificate, key] = paths;
            let told = Tls::load(certificate, key).err().unwrap_or_default();
            assert!(told.contains(expected), "{at}: {told}");
            assert!(told.is_empty() == expected.is_empty(), "{at}: {told}");
        }
    }
}
