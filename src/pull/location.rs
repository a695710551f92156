//! The location of a copy, as given by `--to`, and the address of a service.

use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use url::{Host, ParseError, Position, Url};

use super::files::{is_sqlite, open_file};
use super::postgres::address::PostgresAddress;

const SQLITE_EXTENSIONS: [&str; 3] = ["sqlite", "sqlite3", "db"];

/// The forms of `--to`, for messages.
const FORMS: &str = "give an SQLite file ending .sqlite, .sqlite3 or .db, a folder ending / (for JSON lines and CSV), or an \
                     address such as postgres://user@host/database?schema=NAME";

/// The location of a copy.
#[derive(Debug)]
pub enum CopyLocation {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A folder of JSON lines and CSV.
    Folder(PathBuf),
    /// A schema in PostgreSQL.
    Postgres(Box<PostgresAddress>),
}

impl CopyLocation {
    /// Parses a path or a URL. An existing SQLite file may have any extension. Error messages contain no password.
    pub fn of(to: &Path) -> Result<CopyLocation, String> {
        let text = to.to_string_lossy();
        let (scheme, rest) = text.split_once(':').unwrap_or_default();
        match &*scheme.trim().to_ascii_lowercase() {
            "postgres" | "postgresql" if rest.starts_with("//") => {
                return format!("postgres:{rest}")
                    .parse()
                    .map(|address| CopyLocation::Postgres(Box::new(address)));
            }
            "postgres" | "postgresql" => {
                return Err(format!("the address of PostgreSQL cannot be read; {FORMS}"));
            }
            _ if rest.starts_with("//") => {
                return Err(format!("--to names an address of another kind; {FORMS}"));
            }
            _ => {}
        }
        if to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Ok(CopyLocation::Folder(to.to_owned()));
        }
        let ending = to
            .extension()
            .and_then(OsStr::to_str)
            .unwrap_or_default()
            .to_ascii_lowercase();
        if SQLITE_EXTENSIONS.contains(&&*ending)
            || open_file(to).is_ok_and(|mut file| is_sqlite(&mut file))
        {
            return Ok(CopyLocation::Sqlite(to.to_owned()));
        }
        Err(format!(
            "--to names a file whose ending is not that of a copy; {FORMS}"
        ))
    }
}

/// The longest shown address of a redirect.
const MAX_SHOWN_CHARS: usize = 200;

/// The base URL of a service: the part before `/v1`.
#[derive(Clone)]
pub struct ServerUrl {
    text: String,
    /// Whether connections are encrypted.
    pub is_https: bool,
    /// Whether the service is on this machine.
    pub is_loopback: bool,
}

impl ServerUrl {
    /// Whether keys would travel in plain text beyond this machine.
    pub fn is_exposed(&self) -> bool {
        !self.is_https && !self.is_loopback
    }

    /// The address of the service to which a `Location` header points. It has no user, path of the API, or query.
    pub fn redirected(&self, location: &str) -> Option<String> {
        let url = Url::parse(&self.text)
            .ok()?
            .join(location)
            .ok()
            .filter(Url::has_host)?;
        let text = format!(
            "{}://{}",
            url.scheme(),
            &url[Position::BeforeHost..Position::AfterPath]
        );
        let base = text.split_once("/v1/").map_or(&*text, |(base, _)| base);
        Some(
            base.trim_end_matches('/')
                .chars()
                .take(MAX_SHOWN_CHARS)
                .collect(),
        )
    }
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerUrl, String> {
        let url = Url::parse(text).map_err(|error| match error {
            ParseError::RelativeUrlWithoutBase => {
                "it has no scheme; write it as https://feed.example.org".to_owned()
            }
            error => format!("{error}; write it as https://feed.example.org"),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "`{}` is neither https nor http; write it as https://feed.example.org",
                url.scheme()
            ));
        }
        if !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err("write the service's address alone, such as https://feed.example.org; the key goes into \
                        MEDFEED_KEY or --key-file"
                .to_owned());
        }
        let is_loopback = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
            Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
            None => false,
        };
        let base = url.as_str().trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        Ok(ServerUrl {
            text: base.to_owned(),
            is_https: url.scheme() == "https",
            is_loopback,
        })
    }
}

impl Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_recognized_as_file_folder_or_database() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("old.copy"), b"SQLite format 3\0 and more").unwrap();
        std::fs::write(at("mine.csv"), b"id,name\n1,a\n").unwrap();
        std::fs::write(at("mine.sqlite"), b"").unwrap();
        let cases = cases![
            at("copy.sqlite"), Ok("Sqlite");
            at("copy.SQLITE3"), Ok("Sqlite");
            "copy.db".to_owned(), Ok("Sqlite");
            at("mine.sqlite"), Ok("Sqlite");
            at("old.copy"), Ok("Sqlite");
            at("new/"), Ok("Folder");
            at("x.csv/"), Ok("Folder");
            folder.path().display().to_string(), Ok("Folder");
            "postgres://me@localhost/x".to_owned(), Ok("Postgres");
            "POSTGRES://me@localhost/x".to_owned(), Ok("Postgres");
            "PostgreSQL://me@localhost/x?schema=a".to_owned(), Ok("Postgres");
            at("mine.csv"), Err("not that of a copy");
            at("x.parquet"), Err("not that of a copy");
            at("x.jsonl"), Err("a folder ending /");
            at("copy"), Err("not that of a copy");
            "file:x.duckdb".to_owned(), Err("not that of a copy");
            "".to_owned(), Err("not that of a copy");
            "POSTGRES://me:secret@localhost/x".to_owned(), Err("PGPASSWORD");
            "postgres://me:secret@localhost:port/x".to_owned(), Err("write it as");
            "Postgres://me:secret%ZZ@localhost/x?x=%".to_owned(), Err("");
            "postgres:me:secret@localhost/x.sqlite".to_owned(), Err("cannot be read");
            " postgres://me:secret@localhost/x".to_owned(), Err("PGPASSWORD");
            "mysql://me:secret@localhost/x".to_owned(), Err("of another kind");
            "postgres+tls://me:secret@localhost/x.sqlite".to_owned(), Err("of another kind");
            "host=db.sqlite password=secret".to_owned(), Err("not that of a copy");
        ];
        for (to, expected) in cases {
            match (CopyLocation::of(Path::new(&to)), expected) {
                (Ok(place), Ok(kind)) => {
                    assert!(format!("{place:?}").starts_with(kind), "{to}: {place:?}")
                }
                (Err(message), Err(part)) => {
                    assert!(message.contains(part), "{to}: {message}");
                    assert!(!message.contains("secret"), "{to}: {message}");
                }
                (place, _) => panic!("{to}: {place:?}"),
            }
        }
    }
}

#[cfg(test)]
mod server_url_tests {
    use super::*;

    #[test]
    fn redirects_point_to_an_address() {
        let server: ServerUrl = "https://feed.example.org/feeds".parse().unwrap();
        // (the header, the address)
        let cases = cases![
            "https://new.example.org/v1/exports/journals", Some("https://new.example.org");
            "https://new.example.org:8443/a/v1/journals/changes?since=t#x", Some("https://new.example.org:8443/a");
            "//new.example.org/v1/", Some("https://new.example.org");
            "/login?next=x", Some("https://feed.example.org/login");
            "http://me:secret@192.0.2.1/", Some("http://192.0.2.1");
            "mailto:me@example.org", None;
            "http://[", None;
        ];
        for (location, expected) in cases {
            assert_eq!(
                server.redirected(location).as_deref(),
                expected,
                "{location}"
            );
        }
        let count = server.redirected(&"x".repeat(1000)).unwrap().len();
        assert_eq!(count, MAX_SHOWN_CHARS);
    }

    #[test]
    fn addresses_are_read() {
        let cases = outcomes![
            "https://feed.example.org" "https://feed.example.org/" "https://feed.example.org/v1/"
                => Some(("https://feed.example.org", false));
            "https://EXAMPLE.org:443/feeds/a" => Some(("https://example.org/feeds/a", false));
            "http://127.0.0.1:8080" => Some(("http://127.0.0.1:8080", false));
            "http://[::1]:8080" => Some(("http://[::1]:8080", false));
            "http://localhost" => Some(("http://localhost", false));
            "http://feed.example.org" => Some(("http://feed.example.org", true));
            "http://192.0.2.1" => Some(("http://192.0.2.1", true));
            // Hosts that begin or end like this machine's.
            "http://notlocalhost" => Some(("http://notlocalhost", true));
            "http://localhost.example.org" => Some(("http://localhost.example.org", true));
            "http://feed.localhost" => Some(("http://feed.localhost", true));
            "http://127.0.0.1.example.org" => Some(("http://127.0.0.1.example.org", true));
            "http://LOCALHOST:80/" => Some(("http://localhost", false));
            "http://127.255.255.254" => Some(("http://127.255.255.254", false));
            "http://128.0.0.1" => Some(("http://128.0.0.1", true));
            "http://0.0.0.0" => Some(("http://0.0.0.0", true));
            "http://[::2]" => Some(("http://[::2]", true));
            "HTTPS://feed.example.org" => Some(("https://feed.example.org", false));
            // Only a whole `/v1` at the end is the API's.
            "https://feed.example.org/v1" "https://feed.example.org/v1//"
                => Some(("https://feed.example.org", false));
            "https://feed.example.org/v10" => Some(("https://feed.example.org/v10", false));
            "https://feed.example.org/av1" => Some(("https://feed.example.org/av1", false));
            "https://feed.example.org/v1/conferences"
                => Some(("https://feed.example.org/v1/conferences", false));
            "https://feed.example.org/v1/v1" => Some(("https://feed.example.org/v1", false));
            "https://:secret@feed.example.org" "https://feed.example.org#part" "feed.example.org"
            "ftp://feed.example.org" "https://mfk_x@feed.example.org"
            "https://feed.example.org?key=x" "" => None;
        ];
        for (text, expected) in cases {
            let read = text.parse::<ServerUrl>().ok();
            let read = read.map(|url| (url.to_string(), url.is_exposed()));
            let expected = expected.map(|(url, is_exposed)| (url.to_owned(), is_exposed));
            assert_eq!(read, expected, "{text}");
        }
    }
}
