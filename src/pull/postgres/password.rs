//! Passwords for PostgreSQL, from the same sources as `psql`: the environment, or a file that only its owner can read
//! (<https://www.postgresql.org/docs/current/libpq-pgpass.html>).

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use postgres::Config;
use postgres::config::Host;

const DEFAULT_PORT: u16 = 5432;

/// The folder of the server's socket if the URL names no host, as on Debian.
pub const SOCKET_FOLDER: &str = "/var/run/postgresql";

/// The password for a connection: from `PGPASSWORD`, or from the file `PGPASSFILE` or `~/.pgpass`. `None` if there is
/// none: many servers need no password.
pub fn password_for(config: &Config) -> Result<Option<String>, String> {
    if let Ok(password) = env::var("PGPASSWORD") {
        return Ok(Some(password));
    }
    let named = env::var_os("PGPASSFILE").map(PathBuf::from);
    let home = env::home_dir().map(|home| home.join(".pgpass"));
    let Some(file) = named.or(home).filter(|file| file.is_file()) else { return Ok(None) };
    let text = read(&file)?;
    Ok(find_for(&text, config))
}

/// The password in the text of a file for a connection.
fn find_for(text: &str, config: &Config) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(folder)) if folder == Path::new(SOCKET_FOLDER) => "localhost".to_owned(),
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => config.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default(),
    };
    let port = config.get_ports().first().copied().unwrap_or(DEFAULT_PORT).to_string();
    let user = config.get_user().map(str::to_owned).or_else(|| env::var("USER").ok()).unwrap_or_default();
    let database = config.get_dbname().unwrap_or(&user).to_owned();
    find(text, [&host, &port, &database, &user])
}

fn read(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let found = fs::metadata(file).map_err(|error| format!("{shown}: {error}"))?;
    if found.mode() & 0o077 != 0 {
        return Err(format!("{shown} holds passwords and others can read it; run `chmod 600 {shown}`"));
    }
    fs::read_to_string(file).map_err(|error| format!("{shown}: {error}"))
}

/// The password in the first line that matches host, port, database and user.
fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields_of(line);
        let (password, named) = fields.split_last().filter(|(_, named)| named.len() == wanted.len())?;
        let fits = named.iter().zip(wanted).all(|((field, is_any), wanted)| *is_any || field == wanted);
        fits.then(|| password.0.clone())
    })
}

/// The fields of a line, each with a flag for a bare `*`. A backslash escapes a colon or a backslash. The fifth field
/// is the rest of the line, the password.
fn fields_of(line: &str) -> Vec<(String, bool)> {
    let mut fields = vec![String::new()];
    let mut begins = vec![0];
    let mut letters = line.char_indices();
    while let Some((at, letter)) = letters.next() {
        let letter = match letter {
            '\\' => letters.next().map_or('\\', |(_, next)| next),
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                begins.push(at + 1);
                continue;
            }
            other => other,
        };
        if let Some(field) = fields.last_mut() {
            field.push(letter);
        }
    }
    let raw = |begin: usize| line[begin..].split(':').next() == Some("*");
    fields.into_iter().zip(begins).map(|(field, begin)| (field, raw(begin))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_others_can_open_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        fs::write(&file, "text").unwrap();
        let modes = [(0o600, true), (0o400, true), (0o640, false), (0o620, false), (0o604, false), (0o602, false)];
        for (mode, is_read) in modes {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            match read(&file) {
                Ok(text) => assert!(is_read && text == "text", "{mode:o}"),
                Err(message) => assert!(!is_read && message.contains("others can read it"), "{mode:o}: {message}"),
            }
        }
    }

    #[test]
    fn hosts_are_named_as_psql_names_them() {
        let text = "localhost:*:*:*:local\n/run/own:*:*:*:own\n10.0.0.1:*:*:*:number\ndb:*:*:*:name";
        let cases = [
            ("host=/var/run/postgresql", Some("local")),
            ("host=localhost", Some("local")),
            ("host=/run/own", Some("own")),
            ("host=/run/other", None),
            ("hostaddr=10.0.0.1", Some("number")),
            ("host=db hostaddr=10.0.0.1", Some("name")),
        ];
        for (address, expected) in cases {
            let config: Config = format!("{address} user=me").parse().unwrap();
            assert_eq!(find_for(text, &config).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn passwords_are_found_as_psql_finds_them() {
        let text = "# a comment\nshort:line\ndb:5432:x:me:first\n*:5433:*:me:any\\:port\\\\\ndb:5432:x:\\*:star\n*:*:*:you:with:colon\n\
            twice:1:x:me:one\ntwice:1:x:me:two\ntwice:*:*:*:three\na\\:b:1:x:me:colon\n#hash:1:x:me:no";
        let cases = [
            (["db", "5432", "x", "me"], Some("first")),
            (["twice", "1", "x", "me"], Some("one")),
            (["DB", "5432", "x", "me"], None),
            (["db.example.org", "5432", "x", "me"], None),
            (["a:b", "1", "x", "me"], Some("colon")),
            (["hash", "1", "x", "me"], None),
            (["db", "5432", "y", "me"], None),
            (["elsewhere", "5433", "y", "me"], Some("any:port\\")),
            (["db", "5432", "x", "*"], Some("star")),
            (["db", "5432", "x", "other"], None),
            (["db", "1", "x", "you"], Some("with:colon")),
        ];
        for (wanted, expected) in cases {
            assert_eq!(find(text, wanted).as_deref(), expected, "{wanted:?}");
        }
    }
}
