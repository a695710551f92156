//! No key, token, cursor or query is written anywhere: no file, log, metric or output of a command contains one.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::client::{Client, connect, read_head};
use super::monitoring::serve_watched;
use super::site::{Done, SOON, Server, Site, wait_for, wait_until};

/// The length of the searched substrings. Unrelated random texts share one with negligible probability.
const PIECE: usize = 12;
const PREFIX: &str = "mfk_";
const LICENSES: [(&str, &str); 4] = [
    ("all", "--dataset conferences --dataset journals"),
    ("oncology", "--dataset conferences --therapy-area Oncology"),
    ("journals", "--dataset journals"),
    ("years", "--dataset conferences --year 2024..2026"),
];

/// The secrets that must not be written, as a set of all their substrings, so that one pass over a text searches for
/// all of them.
#[derive(Default)]
struct Secrets(HashSet<[u8; PIECE]>);

impl Secrets {
    fn add(&mut self, secret: &str) {
        // The common prefix of all keys is no secret.
        let secret = secret.strip_prefix(PREFIX).unwrap_or(secret);
        assert!(secret.len() >= PIECE, "{secret} is short");
        self.0.extend(
            secret
                .as_bytes()
                .windows(PIECE)
                .map(|piece| <[u8; PIECE]>::try_from(piece).unwrap()),
        );
    }

    /// Returns the number of pieces of secrets in a text, and the first of them.
    fn find(&self, text: &[u8]) -> (usize, Option<String>) {
        let found: HashSet<&[u8]> = text
            .chunk_by(|one, other| is_of_secrets(*one) && is_of_secrets(*other))
            .filter(|word| word.len() >= PIECE)
            .flat_map(|word| word.windows(PIECE).filter(|piece| self.0.contains(*piece)))
            .collect();
        let first = found.iter().next();
        let first = first.map(|piece| String::from_utf8_lossy(piece).into_owned());
        (found.len(), first)
    }

    fn assert_not_in(&self, output: &str, text: &[u8]) {
        if let (_, Some(piece)) = self.find(text) {
            let text = String::from_utf8_lossy(text);
            let mut line = text.lines();
            let line = line.find(|line| line.contains(&piece)).unwrap_or_default();
            panic!("`{piece}`, of a secret, is in {output}: {line:.500}");
        }
    }

    /// Searches every file of a folder. Returns the number of files.
    fn assert_not_below(&self, folder: &Path) -> usize {
        let mut files = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files += self.assert_not_below(&path);
                continue;
            }
            match fs::read(&path) {
                Ok(content) => self.assert_not_in(&path.display().to_string(), &content),
                // A running server and its commands remove temporary files.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => panic!("{}: {error}", path.display()),
            }
            files += 1;
        }
        files
    }
}

/// Keys are base62, tokens and cursors base64 for URLs.
fn is_of_secrets(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// A key, and the expected result of its use from 127.0.0.1.
struct Issued {
    id: String,
    key: String,
    license: &'static str,
    status: u16,
}

/// Sixty keys of all kinds.
fn issue(site: &Site) -> Vec<Issued> {
    // The settings, and the status of a request from 127.0.0.1.
    let kinds: [(&[&str], u16); 6] = [
        (&[], 200),
        (&["--label", "the loader of the data team"], 200),
        (&["--expires", "2999-12-31"], 200),
        (&["expired"], 401),
        (&["--allow-ip", "127.0.0.0/8", "--allow-ip", "::1"], 200),
        (&["--allow-ip", "192.0.2.0/24"], 403),
    ];
    let mut keys: Vec<Issued> = (0..48)
        .map(|number| {
            let (license, _) = LICENSES[number % LICENSES.len()];
            let (settings, status) = kinds[number % kinds.len()];
            let is_expired = settings == ["expired"];
            let (id, key) = if is_expired {
                site.expired_key(license)
            } else {
                site.key(license, settings)
            };
            Issued {
                id,
                key,
                license,
                status,
            }
        })
        .collect();
    // Replaces usable keys by keys that are usable too.
    let usable = (0..24).filter(|number| keys[*number].status != 401);
    let usable: Vec<usize> = usable.take(12).collect();
    for number in usable {
        let old = &mut keys[number];
        let overlap = if number % 2 == 0 { "1h" } else { "0s" };
        let made = site.json(["key", "replace", &old.id, "--overlap", overlap]);
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        let new = Issued {
            id: text("id"),
            key: text("key"),
            license: old.license,
            status: old.status,
        };
        if number % 2 == 1 {
            old.status = 401;
        }
        keys.push(new);
    }
    for key in &mut keys[30..40] {
        site.json(["key", "revoke", &key.id]);
        key.status = 401;
    }
    assert_eq!(
        keys.iter()
            .map(|key| &key.key)
            .collect::<HashSet<_>>()
            .len(),
        60
    );
    keys
}

/// Sends bytes as they are, and waits for any answer.
fn send_raw(address: SocketAddr, request: &str) -> u16 {
    let mut connection = BufReader::new(connect(address).unwrap());
    connection.get_mut().write_all(request.as_bytes()).unwrap();
    read_head(&mut connection).map_or(0, |(status, _)| status)
}

/// Uses a key in every way, right and wrong. The tokens and cursors of the answers are secrets too.
fn use_key(server: &Server, number: usize, issued: &Issued, secrets: &mut Secrets) {
    let Issued {
        id,
        key,
        license,
        status,
    } = issued;
    let host = server.address;
    // Too many refusals of one address would lead to 429.
    let own = IpAddr::from([127, 0, 2, u8::try_from(number).unwrap()]);
    let dataset = if *license == "journals" {
        "journals"
    } else {
        "conferences"
    };
    let mut bearer = server.client(key).coming_from(own);
    let mut header = Client::new(host, None)
        .with_header("x-api-key", key)
        .coming_from(own);
    for client in [&mut bearer, &mut header] {
        let answer = client.get(&format!("/v1/{dataset}"));
        assert_eq!(
            answer.status,
            *status,
            "{id} {license}: {}",
            String::from_utf8_lossy(&answer.body)
        );
    }
    if *status == 200 {
        let page = bearer.get(&format!("/v1/{dataset}?limit=2")).json();
        let export = bearer.get(&format!("/v1/exports/{dataset}"));
        let token = export.header("x-sync-token").unwrap().to_owned();
        let feed = bearer.get(&format!("/v1/{dataset}/changes?since={token}"));
        assert_eq!(feed.status, 200);
        let next = feed.json()["next_sync_token"].as_str().unwrap().to_owned();
        if let Some(cursor) = page["next_cursor"].as_str() {
            secrets.add(cursor);
            bearer.get(&format!("/v1/{dataset}?cursor={cursor}&limit=2"));
        }
        bearer.get(&format!("/v1/{dataset}?cursor={token}"));
        secrets.add(&token);
        secrets.add(&next);
    }
    // A query, and a key with a typing error.
    let query = format!("Zyzzyva{number}TheQueryOf{}", &id["key_".len()..]);
    let wrong = format!("{}x", &key[..key.len() - 1]);
    secrets.add(&query);
    secrets.add(&wrong);
    let mut others = [
        server.client(&wrong).coming_from(own),
        server.client(&format!("{key}{key}")).coming_from(own),
    ];
    others
        .iter_mut()
        .for_each(|client| drop(client.get("/v1/conferences")));
    let targets = [
        format!("/v1/{dataset}?q={query}"),
        format!("/v1/{dataset}?q={key}"),
        format!("/v1/{dataset}?year={key}"),
        format!("/v1/{dataset}?cursor={key}"),
        format!("/v1/{dataset}?{key}={query}"),
        format!("/v1/{dataset}?nothing={key}"),
        format!("/v1/{dataset}/changes?since={key}"),
        format!("/v1/{dataset}/{key}"),
        format!("/v1/exports/{key}"),
        format!("/v1/exports/{dataset}?format={key}"),
        format!("/v1/{key}"),
        format!("/docs/errors/{key}"),
        format!("/{key}?api_key={key}"),
    ];
    targets.iter().for_each(|target| drop(bearer.get(target)));
    let raw = [
        format!("GET /v1/conferences HTTP/1.1\r\nhost: {host}\r\nauthorization: {key}\r\n\r\n"),
        format!(
            "GET /v1/conferences HTTP/1.1\r\nhost: {host}\r\nauthorization: Basic {key}\r\n\r\n"
        ),
        format!(
            "GET /v1/conferences HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\x01\r\n\r\n"
        ),
        format!(
            "GET /v1/conferences HTTP/1.1\r\nhost: {host}\r\nx-api-key: {key}\r\nx-api-key: {wrong}\r\n\r\n"
        ),
        format!(
            "GET /v1/conferences HTTP/1.1\r\nhost: {host}\r\nx-forwarded-for: {key}\r\nx-api-key: {key}\r\n\r\n"
        ),
        format!(
            "GET /v1/conferences HTTP/1.1\r\nhost: {host}\r\nx-request-id: {key}\r\nuser-agent: {key}\r\n\r\n"
        ),
        format!("GET /v1/conferences HTTP/1.1\r\nhost: {key}\r\nreferer: {key}\r\n\r\n"),
        format!("GET /v1/conferences HTTP/1.1\r\nhost: {host}\r\nno colon {key}\r\n\r\n"),
        format!(
            "GET /v1/conferences HTTP/1.1\r\nhost: {host}\r\n{key}: {key}\r\ncontent-length: {key}\r\n\r\n"
        ),
        format!("GET /{key} HTTP/9.9\r\nhost: {host}\r\n\r\n"),
        format!("GET http://{key}@{host}/v1/conferences HTTP/1.1\r\nhost: {host}\r\n\r\n"),
        format!("{key} / HTTP/1.1\r\nhost: {host}\r\n\r\n"),
        format!(
            "POST /v1/{key} HTTP/1.1\r\nhost: {host}\r\nx-api-key: {key}\r\ncontent-length: 0\r\n\r\n"
        ),
        format!(
            "GET /v1/conferences?q={} HTTP/1.1\r\nhost: {host}\r\n\r\n",
            key.repeat(120)
        ),
        format!(
            "GET /v1/conferences HTTP/1.1\r\nhost: {host}\r\ncookie: {}\r\n\r\n",
            key.repeat(500)
        ),
    ];
    for request in raw {
        let status = send_raw(host, &request);
        assert!(status >= 400 || status == 200, "{status} to {request}");
    }
}

/// Every operator command except those that print keys.
fn run_commands(site: &Site, keys: &[Issued]) -> Vec<Done> {
    let first = keys[0].id.as_str();
    let commands: [&[&str]; 22] = [
        &["import", "conferences.jsonl"],
        &["import", "conferences.jsonl", "--dry-run", "--json"],
        &["key", "list"],
        &["key", "list", "--json"],
        &["key", "revoke", first],
        &["key", "revoke", first, "--json"],
        &["key", "revoke", "key_nothing"],
        &["license", "list"],
        &["license", "list", "--json"],
        &["license", "show", "all", "--json"],
        &["license", "explain", "oncology", "conferences", "1"],
        &["license", "set", "rate", "--yes", "--dataset", "journals"],
        &["license", "remove", "rate", "--yes"],
        &["backup", "second.redb"],
        &["backup", "second.redb", "--json"],
        &["compact"],
        &["compact", "--json"],
        &["check"],
        &["check", "--json", "--db", "first.redb"],
        &["export", "exported", "--format", "csv"],
        &["restore", "first.redb", "--yes"],
        &["restore", "second.redb", "--yes", "--json"],
    ];
    let mut done: Vec<Done> = commands.iter().map(|args| site.run(*args)).collect();
    // A mistake: the key itself in place of its id, a file or a name.
    for key in keys.iter().take(3).map(|key| key.key.as_str()) {
        for args in [["key", "revoke", key], ["key", "replace", key]] {
            let refused = site.run(args);
            assert_eq!(refused.code, Some(1), "{args:?}: {refused:?}");
            done.push(refused);
        }
    }
    done
}

#[test]
fn nothing_secret_is_written_anywhere() {
    let site = Site::with(10);
    for (name, scope) in LICENSES {
        site.license(name, scope);
    }
    let over = AtomicBool::new(false);
    let note = site.path("feed.redb.writer");
    std::thread::scope(|scope| {
        // The writers' notes exist only while a writer runs.
        let notes = scope.spawn(|| {
            let mut seen = HashSet::new();
            wait_until("the end of the test", 20 * SOON, || {
                seen.extend(fs::read(&note).ok());
                over.load(Ordering::Relaxed).then_some(())
            });
            seen
        });
        let all =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| search_everywhere(&site)));
        over.store(true, Ordering::Relaxed);
        let notes = notes.join().unwrap();
        let secrets = all.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(
            notes.iter().any(|note| note.starts_with(b"process ")),
            "no writer's note was seen"
        );
        for note in &notes {
            secrets.assert_not_in("a writer's note", note);
        }
    });
}

fn search_everywhere(site: &Site) -> Secrets {
    let keys = issue(site);
    let mut secrets = Secrets::default();
    for issued in &keys {
        secrets.add(&issued.key);
    }
    // The search finds the keys in a text that contains them.
    let all: String = keys
        .iter()
        .map(|issued| format!("{{\"key\":\"{}\"}}\n", issued.key))
        .collect();
    assert_eq!(secrets.find(all.as_bytes()).0, 60 * (32 + 6 - PIECE + 1));
    site.backup("first.redb");

    for format in ["pretty", "json"] {
        let options = [
            "--log",
            "trace",
            "--log-format",
            format,
            "--trusted-proxy",
            "127.0.0.1/32",
        ];
        let (server, mut admin) = serve_watched(site, &options);
        for (number, issued) in keys.iter().enumerate() {
            use_key(&server, number + 1, issued, &mut secrets);
        }
        for target in ["/", "/metrics", "/livez", "/readyz", "/nothing"] {
            secrets.assert_not_in(target, &admin.get(target).body);
        }
        let mut anyone = Client::new(server.address, None);
        for target in words!["/docs" "/openapi.json" "/docs/errors/invalid_api_key" "/v1/status"] {
            let answer = anyone.get(target);
            assert_eq!(answer.status, 200, "{target}");
            secrets.assert_not_in(target, &answer.body);
        }
        // The running server loads the commands' changes.
        if format == "json" {
            let mut client = server.client(&keys[4].key);
            let token = client.token("conferences");
            for done in run_commands(site, &keys) {
                secrets.assert_not_in(
                    &format!("{done:?}"),
                    format!("{}{}", done.stdout, done.stderr).as_bytes(),
                );
            }
            assert!(
                secrets.assert_not_below(site.folder()) >= 6,
                "{:?}",
                site.files()
            );
            let since = format!("/v1/conferences/changes?since={token}");
            wait_for("the restore", || client.get(&since).status == 410);
        }
        let log = server.stop_and_read();
        assert!(
            log.matches("answered").count() >= 60 * 18,
            "{format}: {} answers",
            log.matches("answered").count()
        );
        let usable = keys.iter().filter(|issued| issued.status == 200);
        assert!(
            usable.into_iter().all(|issued| log.contains(&issued.id)),
            "{format}: a key's id is missing"
        );
        secrets.assert_not_in("the log", log.as_bytes());
        assert!(!log.contains('\u{1b}'), "{format}: colors in a file");
        let used = site.files().into_iter();
        let used = used.filter(|name| name.starts_with("feed.redb.usage-"));
        let used: Vec<u8> = used
            .flat_map(|name| fs::read(site.path(&name)).unwrap())
            .collect();
        let used = String::from_utf8(used).unwrap();
        assert!(
            keys.iter()
                .filter(|issued| used.contains(&issued.id))
                .count()
                >= 30,
            "{used}"
        );
        assert!(
            secrets.assert_not_below(site.folder()) >= 4,
            "{:?}",
            site.files()
        );
    }
    let listed = site.run(["key", "list", "--json"]);
    assert_eq!(listed.json()["keys"].as_array().unwrap().len(), 60);
    secrets.assert_not_in("the list of keys", listed.stdout.as_bytes());
    secrets
}
