//! The URL of a copy in PostgreSQL, and its connection settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslMode};
use url::form_urlencoded;

const DEFAULT_SCHEMA: &str = "medfeed";

/// The folder of the server's socket if the URL names no host, as on Debian.
const SOCKET_FOLDER: &str = "/var/run/postgresql";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// The time after which unacknowledged data closes a connection (`TCP_USER_TIMEOUT`).
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest name of a schema, in bytes (PostgreSQL's `NAMEDATALEN` less one).
const MAX_SCHEMA_NAME_BYTES: usize = 63;

/// The URL of a copy in PostgreSQL.
#[derive(Debug)]
pub struct PostgresAddress {
    pub(super) config: Config,
    /// The copy's schema.
    pub(super) schema: String,
    /// The URL, for messages.
    pub(super) shown: String,
    /// The PEM file of trusted certificates; `None` for the system's.
    pub(super) roots: Option<PathBuf>,
}

impl FromStr for PostgresAddress {
    type Err = String;

    /// Parses a URL of `psql`, with the additional parameter `schema`. `sslmode` defaults to `require`, or to `disable`
    /// for this machine. Certificates are always verified.
    fn from_str(text: &str) -> Result<PostgresAddress, String> {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let mut others: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        // The client does not know these.
        let [schema, roots, mode] =
            ["schema", "sslrootcert", "sslmode"].map(|name| others.remove(name));
        let mode = mode.map(|mode| ssl_mode(&mode)).transpose()?;
        // It does not decode `+` as a space.
        let rest = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(others)
            .finish()
            .replace('+', "%20");
        let mut config: Config = format!("{base}?{rest}").parse().map_err(|error: postgres::Error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("the address of PostgreSQL cannot be read{cause}; write it as postgres://user@host/database")
        })?;
        if config.get_password().is_some() {
            return Err(
                "a password in the address can be seen in the list of processes; leave it out, and set PGPASSWORD"
                    .to_owned(),
            );
        }
        if let Some(schema) = schema.as_deref().filter(|schema| !is_plain_name(schema)) {
            return Err(format!(
                "`{schema}` is not a valid schema name; use small letters, digits and underscores, and a letter first"
            ));
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host_path(SOCKET_FOLDER);
        }
        let default = if is_local(&config) {
            SslMode::Disable
        } else {
            SslMode::Require
        };
        config.ssl_mode(mode.unwrap_or(default));
        if config.get_application_name().is_none() {
            config.application_name("medfeed pull");
        }
        config
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives_idle(KEEPALIVE_IDLE)
            .tcp_user_timeout(TCP_USER_TIMEOUT);
        let shown = schema
            .as_ref()
            .map(|schema| format!("{base}?schema={schema}"))
            .unwrap_or(base.to_owned());
        Ok(PostgresAddress {
            config,
            schema: schema.unwrap_or(DEFAULT_SCHEMA.to_owned()),
            shown,
            roots: roots.map(PathBuf::from),
        })
    }
}

impl PostgresAddress {
    /// Trusts the certificates of this PEM file instead of the system's, unless the URL names another file.
    pub fn trust(&mut self, ca_file: Option<&Path>) {
        self.roots = self.roots.take().or(ca_file.map(Path::to_owned));
    }
}

/// Parses `sslmode`. `require` verifies certificates, like libpq's `verify-full`.
fn ssl_mode(text: &str) -> Result<SslMode, String> {
    match text {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        "require" | "verify-ca" | "verify-full" => Ok(SslMode::Require),
        _ => Err(format!(
            "`{text}` is not a supported sslmode; use require (certificates are verified), prefer or disable"
        )),
    }
}

fn is_plain_name(name: &str) -> bool {
    let is_small = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|first| is_small(*first))
        && bytes
            .iter()
            .all(|byte| is_small(*byte) || byte.is_ascii_digit())
        && bytes.len() <= MAX_SCHEMA_NAME_BYTES
        && !name.starts_with("pg_")
}

fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse::<std::net::IpAddr>()
                    .is_ok_and(|address| address.is_loopback())
        }
    }) && config
        .get_hostaddrs()
        .iter()
        .all(std::net::IpAddr::is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let cases = outcomes![
            "postgres://me@db.example.org/x"
            "postgres://me@db.example.org/x?sslmode=verify-full&sslrootcert=ca.pem"
            "postgres://me@[::1]/x?sslmode=require" "postgres://a,b/x"
                => Ok((SslMode::Require, "medfeed"));
            "postgresql://me@db.example.org:5433/x?schema=copy_2" => Ok((SslMode::Require, "copy_2"));
            "postgres://me@db.example.org/x?sslmode=prefer" => Ok((SslMode::Prefer, "medfeed"));
            "postgres://me@db.example.org/x?schema=a&sslmode=disable" => Ok((SslMode::Disable, "a"));
            "postgres://me@127.0.0.1/x" "postgres://localhost" "postgres:///x"
            "postgres:///x?host=%2Ftmp%2Fa%20b&user=me" => Ok((SslMode::Disable, "medfeed"));
            // One host that is elsewhere is enough.
            "postgres://localhost,db.example.org/x" "postgres://db.example.org,localhost/x"
            "postgres://notlocalhost/x" "postgres://localhost.example.org/x"
            "postgres://localhost/x?hostaddr=192.0.2.1" "postgres://192.0.2.1/x?sslmode=verify-ca"
                => Ok((SslMode::Require, "medfeed"));
            "postgres://127.0.0.1,[::1],localhost/x" "postgres://localhost/x?hostaddr=127.0.0.1"
                => Ok((SslMode::Disable, "medfeed"));
            "postgres://localhost/x?schema=_a1" => Ok((SslMode::Disable, "_a1"));
            "postgres://localhost/x?schema=pg" => Ok((SslMode::Disable, "pg"));
            "postgres://localhost/x?schema=1a" "postgres://localhost/x?schema=a%22b"
            "postgres://localhost/x?schema=a-b" "postgres://me@localhost/x?schema=pg_catalog"
            "postgres://me@localhost/x?schema=Copy" "postgres://me@localhost/x?schema="
                => Err("not a valid schema name");
            "postgres://me:secret@localhost/x" "postgres://me@localhost/x?password=secret"
                => Err("PGPASSWORD");
            "postgres://me@localhost/x?sslmode=allow" => Err("`allow` is not a supported sslmode");
            "postgres://me@localhost/x?colour=red" => Err("colour");
            "postgres://me@localhost:port/x" => Err("write it as");
        ];
        for (text, expected) in cases {
            let read = text.parse::<PostgresAddress>();
            match (&read, expected) {
                (Ok(address), Ok(expected)) => {
                    let found = (address.config.get_ssl_mode(), &*address.schema);
                    assert_eq!(found, expected, "{text}");
                }
                (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
                _ => panic!("{text}: {read:?}"),
            }
        }
        // (the certificates in the address, those of the option, those that are trusted)
        let cases = [
            (None, None, None),
            (None, Some("b.pem"), Some("b.pem")),
            (Some("a.pem"), None, Some("a.pem")),
            (Some("a.pem"), Some("b.pem"), Some("a.pem")),
        ];
        for (named, given, expected) in cases {
            let named = named
                .map(|file| format!("?sslrootcert={file}"))
                .unwrap_or_default();
            let mut address: PostgresAddress =
                format!("postgres://localhost/x{named}").parse().unwrap();
            address.trust(given.map(Path::new));
            let roots = address.roots.as_deref();
            assert_eq!(roots, expected.map(Path::new), "{named} {given:?}");
        }
        for (length, is_valid) in [(1, true), (63, true), (64, false)] {
            let text = format!("postgres://localhost/x?schema={}", "a".repeat(length));
            let found = text.parse::<PostgresAddress>().is_ok();
            assert_eq!(found, is_valid, "a name of {length} bytes");
        }
        let spaced: PostgresAddress = "postgres:///x?host=%2Ftmp%2Fa%20b".parse().unwrap();
        assert_eq!(spaced.config.get_hosts(), [Host::Unix("/tmp/a b".into())]);
    }
}
