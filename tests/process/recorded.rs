//! Every route answers as the release did, byte for byte. `fixtures/format-5` has a database (`routes.redb.gz`), and the
//! requests and answers of medfeed 0.1.0 on it (`routes.json`): pages, records, feeds, exports, reference lists and
//! errors.
//!
//! A new endpoint, parameter or error code needs a record of its own. This command adds what is missing, and leaves the
//! others:
//!
//!     cargo test --test medfeed -- --ignored adds_records_of_routes

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Write};
use std::path::PathBuf;

use medfeed::contract::{CONTRACT, Code, Endpoint, ParameterForm, Resource};
use serde::{Deserialize, Serialize};

use super::client::{Answer, connect, read_answer};
use super::released::{pack, unpack};
use super::site::{SOON, Server, Site, wait_for, wait_until};

/// The records, and the keys that they use by name.
#[derive(Deserialize, Serialize)]
struct Records {
    keys: BTreeMap<String, String>,
    records: Vec<Record>,
}

/// A request (the name of its key, its method, target and a header), and what it got.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Record {
    request: String,
    status: u16,
    headers: Vec<String>,
    body: String,
}

/// Requests beside those that [`wanted`] makes from the contract.
const REQUESTS: &str = "
    all GET /v1/conferences
    all HEAD /v1/conferences?limit=4
    all GET /v1/conferences?limit=4
    narrow GET /v1/conferences?limit=2
    all GET /v1/conferences?country=Germany&year=2026&q=on
    all GET /v1/conferences If-None-Match: *
    all GET /v1/conferences/1
    all HEAD /v1/conferences/1
    all GET /v1/conferences/1 If-None-Match: *
    all GET /v1/conferences/6
    narrow GET /v1/conferences/1
    all GET /v1/conferences/changes
    all GET /v1/conferences/changes?updated_since=2020-01-01&limit=6
    narrow GET /v1/conferences/changes?updated_since=2020-01-01&limit=3
    all GET /v1/conferences/changes?limit=9&resync=diff
    all GET /v1/journals/changes?limit=9&resync=diff
    all GET /v1/journals
    all GET /v1/journals?limit=5
    all GET /v1/journals/4
    all GET /v1/journals/8
    all GET /v1/journals/changes?updated_since=2020-01-01&limit=4
    all GET /v1/exports/conferences
    all HEAD /v1/exports/conferences
    all GET /v1/exports/conferences If-None-Match: *
    all GET /v1/exports/conferences Range: bytes=900000-
    all GET /v1/exports/conferences?format=csv
    all GET /v1/exports/journals
    all GET /v1/exports/journals?format=csv
    narrow GET /v1/exports/conferences
    narrow GET /v1/exports/conferences?format=csv
    all GET /v1/reference/therapy-areas
    narrow GET /v1/reference/therapy-areas
    all GET /v1/reference/tags?dataset=conferences
    all GET /v1/reference/tags?dataset=journals
    all GET /v1/reference/tags?dataset=conferences&type=audience
    all GET /v1/reference/organizations?dataset=conferences
    all GET /v1/reference/organizations?dataset=journals
    narrow GET /v1/reference/organizations?dataset=conferences
    narrow GET /v1/reference/tags?dataset=conferences
    all GET /v1/reference/tags If-None-Match: *
    none GET /v1/status
    none HEAD /v1/status
    none GET /v1/conferences
    forged GET /v1/conferences
    revoked GET /v1/conferences
    expired GET /v1/journals
    elsewhere GET /v1/conferences
    narrow GET /v1/journals
    narrow GET /v1/exports/journals
    all GET /v1/conferences?year=1066
    all GET /v1/conferences?contry=Germany
    all GET /v1/conferences?limit=0
    all GET /v1/conferences?limit=4&limit=5
    all GET /v1/conferences?q=a
    all GET /v1/conferences?cursor=2
    all GET /v1/conferences/changes?since=yesterday
    all GET /v1/conferences/changes?since=
    all GET /v1/conferences/changes?updated_since=soon
    all GET /v1/conferences/4711
    all GET /v1/conferences/
    all GET /v1/conferences/one
    all GET /v1/reference/organizations
    all GET /v1/reference/tags?dataset=papers
    all GET /v1/exports/papers
    all GET /v1/exports/journals?format=xlsx
    all GET /v2/conferences
    all POST /v1/conferences
    all DELETE /v1/status
    all GET /v1/conferences Content-Length: 1
";

/// Headers that differ from answer to answer.
const VOLATILE: [&str; 6] = words![
    "date" "ratelimit-remaining" "ratelimit-reset" "x-request-id" "x-ratelimit-remaining" "x-ratelimit-reset"
];
/// Headers about compressed bytes. Only the bytes that they decompress to are compared.
const COMPRESSED: [&str; 2] = ["content-length", "repr-digest"];
/// Codes that no request gets for certain.
const BY_CHANCE: [Code; 3] = [Code::RateLimited, Code::InternalError, Code::Unavailable];

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/format-5/{name}"))
}

fn serve(site: &Site) -> Server {
    site.start(site.serve_command("--public-url https://feed.example.org"))
}

/// Sends a request, and makes a record of the answer.
fn ask(server: &Server, keys: &BTreeMap<String, String>, request: &str) -> Record {
    let parts: Vec<&str> = request.splitn(4, ' ').collect();
    let [name, method, target, ..] = *parts else {
        panic!("no request: {request}");
    };
    let key = keys
        .get(name)
        .map_or(String::new(), |key| format!("x-api-key: {key}\r\n"));
    let header = parts
        .get(3)
        .map_or(String::new(), |header| format!("{header}\r\n"));
    let mut connection = BufReader::new(connect(server.address).unwrap());
    write!(
        connection.get_mut(),
        "{method} {target} HTTP/1.1\r\nhost: feed.example.org\r\n{key}{header}\r\n"
    )
    .unwrap();
    let answer = read_answer(&mut connection, method == "HEAD").unwrap();
    // The name of an export has the day on which it is sent.
    let today = day_of(answer.header("date").unwrap());
    let is_packed = answer.header("content-encoding") == Some("gzip")
        || answer.header("content-type") == Some("application/gzip");
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, _)| !VOLATILE.contains(&name.as_str()))
        .filter(|(name, _)| !is_packed || !COMPRESSED.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {}", value.replace(&today, "TODAY")))
        .collect();
    headers.sort();
    Record {
        request: request.to_owned(),
        status: answer.status,
        headers,
        body: body_of(&answer, is_packed && method == "GET"),
    }
}

/// The day of a `Date` header (RFC 9110, section 5.6.7), as `2026-01-31`.
fn day_of(date: &str) -> String {
    let time = jiff::fmt::rfc2822::parse(date).unwrap();
    time.date().to_string()
}

/// The content, without the id of the request and the time of the server.
fn body_of(answer: &Answer, is_packed: bool) -> String {
    let content = if is_packed && answer.status == 200 {
        answer.gunzip()
    } else {
        answer.body.clone()
    };
    let mut body = String::from_utf8(content).unwrap();
    if let Some(id) = answer.header("x-request-id") {
        body = body.replace(id, "REQUEST-ID");
    }
    if body.contains("\"api_version\"") {
        let time = answer.json()["time"].as_str().unwrap().to_owned();
        body = body.replace(&format!("\"time\":\"{time}\""), "\"time\":\"TIME\"");
    }
    body
}

/// The requests: the listed ones, and one for each value of each filter of a list.
fn wanted() -> Vec<String> {
    let listed = REQUESTS.lines().map(str::trim);
    let requests = listed.filter(|request| !request.is_empty());
    let mut requests: Vec<String> = requests.map(str::to_owned).collect();
    let lists = CONTRACT.endpoints.iter();
    let lists = lists.filter(|endpoint| matches!(endpoint.resource, Resource::List(_)));
    for endpoint in lists {
        for parameter in endpoint.parameters {
            let values = match (parameter.name, parameter.form) {
                ("cursor" | "limit", _) => vec![],
                ("q", _) => vec!["on", "journal"],
                ("country", _) => vec!["Germany"],
                (_, ParameterForm::Choice(values)) => values.to_vec(),
                (_, ParameterForm::Whole(..)) => vec!["2026", "3"],
                (_, ParameterForm::Id) => vec!["3"],
                (_, ParameterForm::Number) => vec!["1.5"],
                (_, ParameterForm::Date | ParameterForm::Time) => vec!["2026-05-01"],
                _ => vec!["Oncology"],
            };
            let request =
                |value| format!("all GET {}?{}={value}", endpoint.pattern, parameter.name);
            requests.extend(values.into_iter().map(request));
        }
    }
    requests
}

/// The request of the next page. At the end of a feed it is the same one again.
fn next_page(record: &Record) -> Option<String> {
    let page: serde_json::Value = serde_json::from_str(&record.body).ok()?;
    let cursor = page["next_cursor"].as_str().map(|value| ("cursor", value));
    let token = || Some(("since", page["next_sync_token"].as_str()?));
    let (name, value) = cursor.or_else(token)?;
    let request = &record.request;
    let (path, query) = request.split_once('?').unwrap_or((request, ""));
    let replaced = ["cursor=", "since=", "updated_since="];
    let mut parts: Vec<String> = query
        .split('&')
        .filter(|part| !part.is_empty() && !replaced.iter().any(|name| part.starts_with(name)))
        .map(str::to_owned)
        .collect();
    parts.push(format!("{name}={value}"));
    Some(format!("{path}?{}", parts.join("&")))
}

/// The path of an endpoint is that of a request.
fn is_of(endpoint: &Endpoint, request: &str) -> bool {
    let target = request.split(' ').nth(2).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let pattern: Vec<&str> = endpoint.pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    pattern.len() == path.len()
        && pattern
            .iter()
            .zip(&path)
            .all(|(part, given)| part.starts_with('{') || part == given)
}

#[test]
fn every_route_answers_as_the_release_did() {
    let Records { keys, records } =
        serde_json::from_slice(&fs::read(fixture("routes.json")).unwrap()).unwrap();
    let site = Site::new();
    unpack(&fixture("routes.redb.gz"), &site.db());
    let server = serve(&site);
    for record in &records {
        assert_eq!(&ask(&server, &keys, &record.request), record);
    }
    server.stop();
    for endpoint in CONTRACT.endpoints {
        let found = |parameter: &str| {
            records.iter().any(|record| {
                record.status == 200
                    && is_of(endpoint, &record.request)
                    && record.request.contains(parameter)
            })
        };
        assert!(found(""), "{} has no record", endpoint.pattern);
        for parameter in endpoint.parameters {
            let name = format!("{}=", parameter.name);
            assert!(
                parameter.name == "wait" || found(&name),
                "{}: `{name}` has no record",
                endpoint.pattern
            );
        }
    }
    for info in CONTRACT.codes {
        let link = format!("/docs/errors/{}\"", info.name);
        assert!(
            BY_CHANCE.contains(&info.code)
                || records.iter().any(|record| record.body.contains(&link)),
            "{} has no record",
            info.name
        );
    }
}

/// Makes the database: two imports, and licenses with keys of each kind. Returns the keys, and a token of a narrower
/// license before it changed.
fn make_database(site: &Site) -> (BTreeMap<String, String>, String) {
    for name in ["organizations", "tags", "journals", "conferences"] {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/{name}.jsonl"));
        fs::copy(file, site.path(&format!("{name}.jsonl"))).unwrap();
    }
    site.json(["import", ".", "--create"]);
    site.license("all", "--dataset conferences --dataset journals");
    site.license("narrow", "--dataset conferences --year 2025..2026");
    let mut keys = BTreeMap::new();
    for (name, license, settings) in [
        ("all", "all", ""),
        ("narrow", "narrow", ""),
        ("elsewhere", "all", "--allow-ip 192.0.2.7"),
        ("expired", "all", "--expires 1s"),
        ("revoked", "all", ""),
    ] {
        let settings: Vec<&str> = settings.split_whitespace().collect();
        let (id, key) = site.key(license, &settings);
        if name == "revoked" {
            site.json(["key", "revoke", &id]);
        }
        keys.insert(name.to_owned(), key);
    }
    keys.insert("forged".to_owned(), format!("mfk_{}", "a".repeat(38)));
    let server = serve(site);
    let mut client = server.client(&keys["narrow"]);
    let page = client.get("/v1/conferences/changes").json();
    let token = page["next_sync_token"].as_str().unwrap().to_owned();
    site.license("narrow", "--dataset conferences --year 2026");
    site.import(
        "conferences.jsonl",
        "{\"id\":2,\"deleted\":true}\n{\"id\":6,\"name\":\"=Renamed; \\\"quoted\\\"\"}\n",
    );
    let mut expired = server.client(&keys["expired"]);
    wait_for("the key has expired", || {
        expired.get("/v1/journals").status == 401
    });
    wait_until("the change", SOON, || {
        let found = server.client(&keys["all"]).get("/v1/conferences/2");
        (found.status == 404).then_some(())
    });
    server.stop();
    (keys, token)
}

#[test]
#[ignore = "writes fixtures/format-5/routes.*"]
fn adds_records_of_routes() {
    let site = Site::new();
    let mut requests = wanted();
    let mut known = match fs::read(fixture("routes.json")) {
        Ok(found) => {
            unpack(&fixture("routes.redb.gz"), &site.db());
            serde_json::from_slice(&found).unwrap()
        }
        Err(_) => {
            let (keys, token) = make_database(&site);
            pack(&site.db(), &fixture("routes.redb.gz"));
            for more in ["", "&resync=diff", "&limit=1&resync=diff"] {
                requests.push(format!(
                    "narrow GET /v1/conferences/changes?since={token}{more}"
                ));
            }
            Records {
                keys,
                records: Vec::new(),
            }
        }
    };
    let server = serve(&site);
    while let Some(request) = requests.pop() {
        if known.records.iter().any(|record| record.request == request) {
            continue;
        }
        let record = ask(&server, &known.keys, &request);
        requests.extend(next_page(&record));
        known.records.push(record);
    }
    server.stop();
    let text = serde_json::to_string_pretty(&known).unwrap() + "\n";
    fs::write(fixture("routes.json"), text).unwrap();
}
