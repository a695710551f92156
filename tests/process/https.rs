//! HTTPS: which connections are served, and changes of the certificate's files.

use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned,
    SupportedProtocolVersion, crypto, version,
};

use super::client::{Answer, Client, connect, is_closed, read_answer};
use super::monitoring::{scrape, serve_watched};
use super::site::{SOON, Server, Site, wait_for, wait_until};

/// The authority that signs the certificates of tests.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub struct Pair {
    der: CertificateDer<'static>,
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Authority {
        let (params, key) = (Authority::params("root"), KeyPair::generate().unwrap());
        Authority(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// An authority whose certificate this one signed.
    fn intermediate(&self) -> Authority {
        let params = Authority::params("intermediate");
        let key = KeyPair::generate().unwrap();
        Authority(CertifiedIssuer::signed_by(params, key, &self.0).unwrap())
    }

    fn params(name: &str) -> CertificateParams {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    /// A certificate for the loopback address.
    pub fn pair(&self) -> Pair {
        self.pair_for_years(1975, 4096)
    }

    /// The same, valid between the beginnings of two years.
    pub fn pair_for_years(&self, from: i32, until: i32) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        (params.not_before, params.not_after) =
            (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Pair {
            der: certificate.der().clone(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// A caller that trusts only this authority and speaks one version.
    pub fn caller(&self, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let builder =
            ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
        let builder = builder.with_protocol_versions(&[version]).unwrap();
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

pub type TlsConnection = StreamOwned<ClientConnection, TcpStream>;

pub fn shake_hands(address: SocketAddr, caller: &Arc<ClientConfig>) -> io::Result<TlsConnection> {
    let mut stream = connect(address)?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut connection =
        ClientConnection::new(Arc::clone(caller), name).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(connection, stream))
}

/// Sends bytes over a connection of its own, and reads the answer.
fn sent(server: &Server, caller: &Arc<ClientConfig>, request: &str) -> Answer {
    let mut connection = BufReader::new(shake_hands(server.address, caller).unwrap());
    connection.get_mut().write_all(request.as_bytes()).unwrap();
    read_answer(&mut connection, false).unwrap()
}

fn get(connection: TlsConnection, target: &str) -> Answer {
    let mut connection = BufReader::new(connection);
    let request = format!("GET {target} HTTP/1.1\r\nhost: feed.example.org\r\n\r\n");
    connection.get_mut().write_all(request.as_bytes()).unwrap();
    read_answer(&mut connection, false).unwrap()
}

/// A site with something to serve and the files `cert.pem` and `key.pem`.
pub fn site_with(pair: &Pair) -> Site {
    let site = Site::new();
    site.import("journals.jsonl", "{\"id\":1,\"name\":\"J\"}\n");
    write(&site, pair);
    site
}

fn write(site: &Site, pair: &Pair) {
    site.write("cert.pem", &pair.certificate);
    site.write("key.pem", &pair.key);
}

const FILES: &str = "--tls-cert cert.pem --tls-key key.pem";

/// Whether a new connection gets this certificate.
fn shows(server: &Server, caller: &Arc<ClientConfig>, pair: &Pair) -> bool {
    let connection = shake_hands(server.address, caller).expect("HTTPS is served");
    let shown = connection.conn.peer_certificates();
    let shown = shown.and_then(|chain| chain.first().cloned());
    shown.as_ref() == Some(&pair.der)
}

#[test]
fn tls_1_2_and_1_3_are_served() {
    let authority = Authority::new();
    let site = site_with(&authority.pair());
    let server = site.serve_with(FILES);
    assert_eq!(server.scheme, "https");
    for (version, expected) in [
        (&version::TLS12, ProtocolVersion::TLSv1_2),
        (&version::TLS13, ProtocolVersion::TLSv1_3),
    ] {
        let connection = shake_hands(server.address, &authority.caller(version)).unwrap();
        assert_eq!(connection.conn.protocol_version(), Some(expected));
        for (target, status) in [
            ("/v1/status", 200),
            ("/v1/journals", 401),
            ("/nowhere", 404),
        ] {
            let connection = shake_hands(server.address, &authority.caller(version)).unwrap();
            let answer = get(connection, target);
            assert_eq!(answer.status, status, "{target}");
            let told = answer.header("strict-transport-security");
            let is_told = told.is_some_and(|told| told.contains("max-age="));
            assert!(is_told, "{expected:?} {target}: {:?}", answer.headers);
        }
    }
    let stranger = Authority::new().caller(&version::TLS13);
    // The callers of this test do verify.
    assert!(shake_hands(server.address, &stranger).is_err());

    let plain = site.serve();
    assert_eq!(plain.scheme, "http");
    let answer = plain.client("none").get("/v1/status");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("strict-transport-security"), None);
    plain.stop();
    server.stop();
}

#[test]
fn the_whole_chain_of_the_file_is_sent() {
    let root = Authority::new();
    let intermediate = root.intermediate();
    let mut pair = intermediate.pair();
    pair.certificate += &intermediate.0.pem();
    let site = site_with(&pair);
    let server = site.serve_with(FILES);
    for version in [&version::TLS12, &version::TLS13] {
        assert!(shows(&server, &root.caller(version), &pair), "{version:?}");
    }
    server.stop();
}

#[test]
fn answers_to_malformed_requests_require_https_too() {
    let authority = Authority::new();
    let site = site_with(&authority.pair());
    let server = site.serve_with(FILES);
    let connection = shake_hands(server.address, &authority.caller(&version::TLS13)).unwrap();
    let sound = get(connection, "/v1/status");
    let told = sound.header("strict-transport-security").unwrap();
    let long = "a".repeat(20_000);
    let cases = cases![
        "garbage", "\u{1}\u{2} nonsense\r\n\r\n".to_owned(), 400, "not valid HTTP/1.1";
        "a long header", format!("GET /v1/status HTTP/1.1\r\nhost: {long}\r\n\r\n"), 431,
            "headers are too large or too many";
        "a body", "GET /v1/status HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}".to_owned(), 400, "body";
    ];
    for version in [&version::TLS12, &version::TLS13] {
        for (what, request, status, detail) in &cases {
            let answer = sent(&server, &authority.caller(version), request);
            assert_eq!(answer.status, *status, "{what}");
            assert_eq!(answer.problem().as_str(), "invalid_request", "{what}");
            let found = answer.json()["detail"].to_string();
            assert!(found.contains(detail), "{what}: {found}");
            let mut found = answer.headers.clone();
            found.retain(|(name, _)| name.eq_ignore_ascii_case("strict-transport-security"));
            assert_eq!(found.len(), 1, "{what}: {:?}", answer.headers);
            assert_eq!(found[0].1, told, "{what}");
        }
    }
    server.stop();
}

#[test]
fn a_renewed_certificate_is_loaded() {
    let authority = Authority::new();
    let caller = authority.caller(&version::TLS13);
    let first = authority.pair();
    let site = site_with(&first);
    let server = site.serve_with(FILES);
    assert!(shows(&server, &caller, &first));
    let mut stays = shake_hands(server.address, &caller).unwrap();
    for (way, hangup) in [("on SIGHUP", true), ("by itself", false)] {
        let next = authority.pair();
        write(&site, &next);
        if hangup {
            server.process.signal("HUP");
        }
        wait_for(way, || shows(&server, &caller, &next));
    }
    stays.flush().unwrap();
    // Connections outlive the certificate that they began with.
    assert_eq!(get(stays, "/v1/status").status, 200);
    server.stop();
}

#[test]
fn sighup_reloads_files_that_seem_unchanged() {
    let authority = Authority::new();
    let site = site_with(&authority.pair());
    let server = site.serve_with(&format!("{FILES} --log info"));
    for times in 1..=2 {
        server.process.signal("HUP");
        wait_for("it is reloaded", || {
            let log = server.logged();
            log.matches("the certificate was reloaded").count() == times
        });
    }
    server.stop();
}

#[test]
fn a_broken_pair_leaves_the_old_one_in_use() {
    let authority = Authority::new();
    let caller = authority.caller(&version::TLS13);
    let (first, other) = (authority.pair(), authority.pair());
    let site = site_with(&first);
    let server = site.serve_with(FILES);
    let (certificate, key) = (Some(first.certificate.as_str()), Some(first.key.as_str()));
    let cases = cases![
        "a broken certificate", Some("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"), key, "cert.pem: ";
        "half a certificate", Some(&first.certificate[..80]), key, "cert.pem: ";
        "an empty certificate", Some(""), key, "cert.pem: ";
        "a key for a certificate", key, key, "cert.pem: ";
        "no certificate file", None, key, "cert.pem: ";
        "another's key", certificate, Some(other.key.as_str()), "cert.pem and the key key.pem";
        "an empty key", certificate, Some(""), "key.pem: ";
        "no key file", certificate, None, "key.pem: ";
    ];
    let complaint = "the old pair stays in use";
    for (case, certificate, key, named) in cases {
        let before = server.logged().len();
        for (name, content) in [("cert.pem", certificate), ("key.pem", key)] {
            match content {
                Some(content) => drop(site.write(name, content)),
                None => std::fs::remove_file(site.path(name)).unwrap(),
            }
        }
        server.process.signal("HUP");
        let told = wait_until(case, SOON, || {
            let log = server.logged().split_off(before);
            let mut lines = log.lines();
            let told = lines.find(|line| line.contains(complaint) && line.contains(named));
            told.map(str::to_owned)
        });
        assert!(told.contains("ERROR"), "{case}: {told}");
        assert!(shows(&server, &caller, &first), "{case}");
        write(&site, &first);
    }
    let last = authority.pair();
    write(&site, &last);
    server.process.signal("HUP");
    wait_for("a sound pair after broken ones", || {
        shows(&server, &caller, &last)
    });
    server.stop();
}

#[test]
fn metrics_show_the_end_of_the_certificate_and_failed_reloads() {
    let authority = Authority::new();
    // The years, the piece of a warning, and the end in seconds since 1970.
    let cases = cases![
        (1975, 2040), "", 2_208_988_800.0;
        (1975, 2001), "expired at 2001-01-01T00:00:00Z; callers will reject it", 978_307_200.0;
        (2090, 2100), "valid only from 2090-01-01T00:00:00Z on", 4_102_444_800.0;
    ];
    for ((from, until), warning, end) in cases {
        let site = site_with(&authority.pair_for_years(from, until));
        let (server, mut admin) = serve_watched(&site, &FILES.split(' ').collect::<Vec<_>>());
        let names = words!["tls_certificate_expires_timestamp_seconds" "tls_reload_failed"];
        let seen = |admin: &mut Client| names.map(|name| scrape(admin)[&format!("medfeed_{name}")]);
        assert_eq!(seen(&mut admin), [end, 0.0], "{from}");
        let warnings = || {
            let log = server.logged();
            log.lines().filter(|line| line.contains("WARN")).count()
        };
        let expected = usize::from(!warning.is_empty());
        assert_eq!(warnings(), expected, "{}", server.logged());
        let logged = server.logged();
        assert!(logged.contains(warning), "{warning}: {logged}");
        // The old pair stays in use, and the metrics report the failure until a good pair comes.
        site.write("cert.pem", "");
        server.process.signal("HUP");
        wait_for("a failure", || seen(&mut admin) == [end, 1.0]);
        write(&site, &authority.pair_for_years(1975, 2050));
        server.process.signal("HUP");
        wait_for("the new pair", || {
            seen(&mut admin) == [2_524_608_000.0, 0.0]
        });
        assert_eq!(warnings(), expected, "{}", server.logged());
        server.stop();
    }
}

#[test]
fn a_connection_without_tls_is_closed() {
    let authority = Authority::new();
    let site = site_with(&authority.pair());
    let server = super::limited::serve(&site, "request=300ms", FILES);
    let mut plain = connect(server.address).unwrap();
    let request = b"GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n";
    plain.write_all(request).unwrap();
    let mut told = Vec::new();
    // The connection may be reset while bytes are unread.
    let _ = io::Read::read_to_end(&mut plain, &mut told);
    assert!(!told.starts_with(b"HTTP"), "an answer in plain text");

    // A record header that promises more bytes than are sent.
    for begun in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01"] {
        let mut stalled = connect(server.address).unwrap();
        let since = Instant::now();
        stalled.write_all(begun).unwrap();
        assert!(is_closed(&mut stalled, SOON), "{begun:?}");
        let took = since.elapsed();
        let is_in_time = (250..3000).contains(&took.as_millis());
        assert!(is_in_time, "{begun:?}: closed after {took:?}");
    }
    let connection = shake_hands(server.address, &authority.caller(&version::TLS13)).unwrap();
    assert_eq!(get(connection, "/v1/status").status, 200);
    server.stop();
}

/// The beginnings of keys that `openssl` has encrypted. Nothing reads further.
const ENCRYPTED_PKCS8: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----
MIIBXTBXBgkqhkiG9w0BBQ0wSjApBgkqhkiG9w0BBQwwHAQIfd631UT9EhICAggA
-----END ENCRYPTED PRIVATE KEY-----
";

const ENCRYPTED_SEC1: &str = "-----BEGIN EC PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,C422503D8FF3506411411064FFFA9910

MIIBXTBXBgkqhkiG9w0BBQ0wSjApBgkqhkiG9w0BBQwwHAQIfd631UT9EhICAggA
-----END EC PRIVATE KEY-----
";

/// Of `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:secp521r1`.
const P_521_KEY: &str = "-----BEGIN PRIVATE KEY-----
MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIBdM/o1ePr/Bks4ope
exMWHsADwVtEaD2nWgsG/NRj1Ivjhdoif/2IuwRzrX1+0E4mr36yhU3mbIDo+m96
N+VZ2G2hgYkDgYYABAF4Kds23W/h9tN7W9iboCwF/taKVPZz9lnlvtOxFe1Cxdk4
tFTfTSnjgcrFJRrvtAXjFeak1FlpSQH076WLj7ekXAFkaLL4/R+Ur2TDSIyg8yRo
OJVRNCJSd927EyF/vHV9mOW/feqJ/XOeN/jRXC3gJxothQ3kYLaFyOxEVfYAoSp0
IQ==
-----END PRIVATE KEY-----
";

const P_521_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIICDTCCAW6gAwIBAgIUOJLZwCjn57ddBMm2TPp8l9bKTSYwCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMZmVlZC5leGFtcGxlMCAXDTI2MTEyODA4MDcwNFoYDzIxMjYx
MTA0MDgwNzA0WjAXMRUwEwYDVQQDDAxmZWVkLmV4YW1wbGUwgZswEAYHKoZIzj0C
AQYFK4EEACMDgYYABAF4Kds23W/h9tN7W9iboCwF/taKVPZz9lnlvtOxFe1Cxdk4
tFTfTSnjgcrFJRrvtAXjFeak1FlpSQH076WLj7ekXAFkaLL4/R+Ur2TDSIyg8yRo
OJVRNCJSd927EyF/vHV9mOW/feqJ/XOeN/jRXC3gJxothQ3kYLaFyOxEVfYAoSp0
IaNTMFEwHQYDVR0OBBYEFGzHyAQ2Bf95HEAX4eyhfTEThSVXMB8GA1UdIwQYMBaA
FGzHyAQ2Bf95HEAX4eyhfTEThSVXMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0E
AwIDgYwAMIGIAkIBjzwm/pxkph8QcT8A89g9B31/e4duczVPcwjOfb3QNQ4UDzsq
DMVOQsukLspPYUQcp4u3dRjqBBUXqA2AIOiI9eUCQgFJDLeAfOVja2jJaNOWm15w
i/quZ6USqLAS9SFZEIay/UnKMrHy8hR+jTgawU0cWDzdrFaCy/bYHyS9k0IsnFe6
lw==
-----END CERTIFICATE-----
";

#[test]
fn wrong_certificate_files_are_refused_at_the_start() {
    let authority = Authority::new();
    let (first, other) = (authority.pair(), authority.pair());
    let site = site_with(&first);
    site.write("empty.pem", "");
    site.write("text.pem", "a letter\n");
    site.write("other.pem", &other.key);
    let (own, root) = (&first.certificate, authority.0.pem());
    site.write("marked.pem", format!("\u{feff}{own}"));
    site.write("joined.pem", format!("{own}\u{feff}{root}"));
    let marked = format!("\u{feff}{own}");
    let utf16 = marked.encode_utf16().flat_map(u16::to_le_bytes);
    site.write("utf16.pem", utf16.collect::<Vec<u8>>());
    site.write("marked_key.pem", format!("\u{feff}{}", first.key));
    site.write("pkcs8.pem", ENCRYPTED_PKCS8);
    site.write("sec1.pem", ENCRYPTED_SEC1);
    site.write("p521.pem", P_521_KEY);
    site.write("p521.crt", P_521_CERTIFICATE);
    site.write("second.pem", format!("{root}{own}"));
    site.write("third.pem", format!("{root}{}{own}", other.certificate));
    let cases = cases![
        "missing.pem", "key.pem", "missing.pem: ";
        "empty.pem", "key.pem", "empty.pem: it contains no certificate";
        "text.pem", "key.pem", "text.pem: it contains no certificate";
        "key.pem", "key.pem", "key.pem: it contains no certificate";
        "cert.pem", "missing.pem", "missing.pem: ";
        "cert.pem", "empty.pem", "empty.pem: ";
        "cert.pem", "cert.pem", "cert.pem: ";
        "cert.pem", "other.pem",
            "the certificate cert.pem and the key other.pem cannot be used together: keys may not be consistent";
        "cert.pem", ".", ".: ";
        "marked.pem", "key.pem", "marked.pem: it contains a byte-order mark (BOM)";
        "joined.pem", "key.pem", "joined.pem: it contains a byte-order mark (BOM)";
        "utf16.pem", "key.pem", "utf16.pem: it contains a byte-order mark (BOM)";
        "cert.pem", "marked_key.pem", "marked_key.pem: it contains a byte-order mark (BOM)";
        "cert.pem", "pkcs8.pem", "pkcs8.pem: the key is encrypted";
        "cert.pem", "sec1.pem", "sec1.pem: the key is encrypted";
        "p521.crt", "p521.pem", "ECDSA on P-256 and P-384 (not P-521)";
        "second.pem", "key.pem",
            "the key belongs to certificate 2 of the file, not to the first one; the order must be";
        "third.pem", "key.pem", "the key belongs to certificate 3 of the file";
    ];
    for (certificate, key, expected) in cases {
        let options = format!("--tls-cert {certificate} --tls-key {key}");
        let done = site.ends(format!("serve --listen 127.0.0.1:0 {options}").split(' '));
        assert_eq!(done.code, Some(1), "{certificate} {key}: {done:?}");
        assert_eq!(done.stdout.as_str(), "", "{certificate} {key}: {done:?}");
        assert!(done.stderr.contains(expected), "{done:?}");
    }
    for (option, needed) in [("--tls-cert", "--tls-key"), ("--tls-key", "--tls-cert")] {
        let done = site.ends(["serve", "--listen", "127.0.0.1:0", option, "cert.pem"]);
        done.assert_told(2, needed);
    }
}

#[test]
fn plain_http_beyond_this_machine_needs_an_option() {
    let authority = Authority::new();
    let site = site_with(&authority.pair());
    // Monitoring speaks plain HTTP with and without a certificate, so its address is no reason to add one.
    let cases = cases![
        "--listen 0.0.0.0:0", true;
        "--listen [::]:0", true;
        "--listen 0.0.0.0:0 --admin-listen 0.0.0.0:0", true;
        "--listen 127.0.0.1:0 --admin-listen 0.0.0.0:0", false;
        "--listen 127.0.0.1:0 --admin-listen 192.0.2.1:0", false;
        &format!("--listen 127.0.0.1:0 --admin-listen 0.0.0.0:0 {FILES}"), false;
        &format!("--listen 0.0.0.0:0 --admin-listen 0.0.0.0:0 {FILES}"), false;
    ];
    for (options, certificate_helps) in cases {
        let done = site.ends(["serve"].into_iter().chain(options.split_whitespace()));
        assert_eq!(done.code, Some(1), "{options}: {done:?}");
        assert_eq!(done.stdout.as_str(), "", "{options}: {done:?}");
        assert!(done.stderr.contains("--plain-http"), "{options}: {done:?}");
        let stderr = done.stderr.contains("--tls-cert");
        assert_eq!(stderr, certificate_helps, "{options}: {done:?}");
    }
    for (allowed, scheme) in [
        ("--plain-http --admin-listen 0.0.0.0:0", "http"),
        (FILES, "https"),
    ] {
        let mut command = site.command(["serve", "--listen", "0.0.0.0:0", "--log", "warn"]);
        command.args(allowed.split_whitespace());
        let server = site.start(command);
        assert_eq!(server.scheme, scheme);
        server.stop();
    }
}
