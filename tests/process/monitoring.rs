//! Metrics and health checks.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, ErrorKind, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use medfeed::model::Id;
use medfeed::model::time::now;
use medfeed::store::{Batch, Writer};
use serde_json::json;

use super::client::{Client, connect, read_answer};
use super::site::{
    SOON, Server, Site, conferences_of_version, wait_for, wait_until, wait_until_every,
};
use crate::harness::{World, conference};

const DAY_S: i64 = 86_400;

/// Serves with a monitoring listener. Also returns a client of it.
pub fn serve_watched(site: &Site, more: &[&str]) -> (Server, Client) {
    serve_on(site, "127.0.0.1:0", more)
}

fn serve_on(site: &Site, address: &str, more: &[&str]) -> (Server, Client) {
    let args = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        address,
    ];
    start_watched(site, site.command([&args, more].concat()))
}

/// Starts a command with a monitoring listener.
pub fn start_watched(site: &Site, command: Command) -> (Server, Client) {
    let server = site.start(command);
    let admin = wait_until("the log names the address of monitoring", SOON, || {
        admin_address(&server.logged())
    });
    (server, Client::new(admin, None))
}

/// A server, and a caller that has loaded the export.
pub struct Loader {
    pub server: Server,
    pub admin: Client,
    pub client: Client,
    /// The key's id.
    pub id: String,
    /// The export's token.
    pub token: String,
}

/// Serves three conferences to a caller that has loaded them.
pub fn serve_a_loader(site: &Site) -> Loader {
    site.import("conferences.jsonl", conferences_of_version(3, 0));
    site.license("all", "--dataset conferences");
    let (id, key) = site.key("all", &[]);
    let (server, admin) = serve_watched(site, &[]);
    let mut client = server.client(&key);
    let token = client.token("conferences");
    Loader {
        server,
        admin,
        client,
        id,
        token,
    }
}

/// The address of monitoring in a log.
pub fn admin_address(log: &str) -> Option<SocketAddr> {
    let (_, told) = log.split_once("listening for monitoring on http://")?;
    told.split(|letter: char| !letter.is_ascii_digit() && !".:[]".contains(letter))
        .next()?
        .parse()
        .ok()
}

/// The samples of a scrape. Checks the form of every line.
pub fn scrape(admin: &mut Client) -> BTreeMap<String, f64> {
    let answer = accepting(admin, "application/openmetrics-text").get("/metrics");
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type").unwrap();
    assert!(
        kind.starts_with("application/openmetrics-text; version=1.0.0"),
        "{kind}"
    );
    let text = String::from_utf8(answer.body).unwrap();
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    assert!(text.matches("# EOF").count() == 1, "{text}");
    let (mut samples, mut family) = (BTreeMap::new(), "");
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            match words[..] {
                ["HELP", name, help] => {
                    let is_known = name.starts_with("medfeed_") || name.starts_with("process_");
                    assert!(is_known && !help.is_empty(), "{line}");
                    family = name;
                }
                ["TYPE", name, "counter" | "gauge" | "histogram" | "info"] => {
                    assert_eq!(name, family, "{line}")
                }
                ["UNIT", name, unit] => assert!(name == family && name.ends_with(unit), "{line}"),
                ["EOF"] => {}
                _ => panic!("{line}"),
            }
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        assert!(!family.is_empty(), "{line} in {family}");
        assert!(name.starts_with(family), "{line} in {family}");
        if let Some((_, labels)) = name.split_once('{') {
            assert!(labels.ends_with("\"}"), "{line}");
        }
        let value: f64 = value
            .parse()
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        let found = samples.insert(name.to_owned(), value);
        assert_eq!(found, None, "{line} comes twice");
    }
    samples
}

/// A client of the same listener that accepts some formats.
fn accepting(admin: &Client, formats: &str) -> Client {
    Client::new(admin.address(), None).with_header("accept", formats)
}

/// Checks a scrape with promtool, if it is installed.
pub fn check_with_promtool(admin: &Client) {
    let text = accepting(admin, "text/plain;version=0.0.4")
        .get("/metrics")
        .body;
    let mut command = Command::new("promtool");
    command
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut promtool = match command.spawn() {
        Ok(promtool) => promtool,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return eprintln!("/metrics is not checked by promtool, which is not installed");
        }
        Err(error) => panic!("promtool: {error}"),
    };
    promtool.stdin.take().unwrap().write_all(&text).unwrap();
    let done = promtool.wait_with_output().unwrap();
    let told =
        String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && told.is_empty(),
        "{told}\n{}",
        String::from_utf8_lossy(&text)
    );
}

#[test]
fn a_scrape_has_the_format_that_it_asks_for() {
    let site = Site::new();
    let Loader {
        server,
        admin,
        mut client,
        token,
        ..
    } = serve_a_loader(&site);
    // A name that needs escapes in a label.
    site.license("a \\ \"quoted\" name # {x=\"1\"}", "--dataset conferences");
    let quoted = site.key("a \\ \"quoted\" name # {x=\"1\"}", &[]).1;
    client.get(&format!("/v1/conferences/changes?since={token}"));
    for key in [&quoted, "mfk_none"] {
        server.client(key).get("/v1/conferences/changes");
    }
    let plain = "text/plain; version=0.0.4; charset=utf-8";
    let open = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let cases = cases![
        "*/*", plain;
        "text/plain;version=0.0.4", plain;
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1", open;
    ];
    let names = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples
            .map(|line| line.rsplit_once(' ').unwrap().0.to_owned())
            .collect()
    };
    let expected = names(&accepting(&admin, open).get("/metrics").body);
    assert!(
        expected
            .iter()
            .any(|name| name.contains(r#"license="a \\ \"quoted\" name # {x=\"1\"}""#)),
        "{expected:?}"
    );
    for (accept, kind) in cases {
        let answer = accepting(&admin, accept).get("/metrics");
        assert_eq!(answer.status, 200, "{accept}");
        assert_eq!(answer.header("content-type"), Some(kind), "{accept}");
        assert_eq!(answer.header("vary"), Some("accept"));
        let text = String::from_utf8(answer.body).unwrap();
        assert_eq!(text.contains("# EOF"), kind == open, "{accept}");
        assert_eq!(text.contains("# UNIT"), kind == open, "{accept}");
        let found = names(text.as_bytes());
        assert_eq!(found, expected, "{accept}: the same samples");
    }
    let default = Client::new(admin.address(), None).get("/metrics");
    assert_eq!(default.header("content-type"), Some(plain));
    check_with_promtool(&admin);
    server.stop();
}

/// The value of a sample, or 0 if there is none.
fn value(samples: &BTreeMap<String, f64>, name: &str) -> f64 {
    samples.get(name).copied().unwrap_or_default()
}

fn requests(route: &str, status: u16, license: &str) -> String {
    format!("medfeed_requests_total{{route=\"{route}\",status=\"{status}\",license=\"{license}\"}}")
}

#[test]
fn counters_rise_by_the_requests() {
    let (site, key) = Site::open(10);
    site.json("license set tight --yes --dataset conferences --rate-limit 3".split(' '));
    let tight = site.key("tight", &[]).1;
    let elsewhere = site.key("all", &["--allow-ip", "192.0.2.1"]).1;
    let ended = site.expired_key("all").1;
    let (id, revoked) = site.key("all", &[]);
    site.json(["key", "revoke", &id]);
    let (server, mut admin) = serve_watched(&site, &[]);
    let before = scrape(&mut admin);

    // The key, the target, the number of requests, and the status.
    let asked: [(&str, &str, u32, u16); 12] = [
        (&key, "/v1/conferences", 3, 200),
        (&key, "/v1/conferences?year=2025", 2, 200),
        (&key, "/v1/conferences?nothing=1", 2, 400),
        (&key, "/v1/conferences/4", 4, 200),
        (&key, "/v1/conferences/99", 1, 404),
        (&key, "/v1/exports/conferences", 2, 200),
        (&tight, "/v1/conferences", 3, 200),
        (&tight, "/v1/conferences", 5, 429),
        ("mfk_nonsense", "/v1/conferences", 2, 401),
        (&ended, "/v1/conferences", 1, 401),
        (&revoked, "/v1/conferences", 3, 401),
        (&elsewhere, "/v1/conferences", 2, 403),
    ];
    for (key, target, times, status) in asked {
        let mut client = server.client(key);
        for _ in 0..times {
            assert_eq!(client.get(target).status, status, "{target}");
        }
    }
    let after = scrape(&mut admin);
    let rise = |name: &str| value(&after, name) - value(&before, name);
    let expected = cases![
        requests("/v1/conferences", 200, "all"), 5.0;
        requests("/v1/conferences", 400, "all"), 2.0;
        requests("/v1/conferences/{id}", 200, "all"), 4.0;
        requests("/v1/conferences/{id}", 404, "all"), 1.0;
        requests("/v1/exports/{dataset}", 200, "all"), 2.0;
        requests("/v1/conferences", 200, "tight"), 3.0;
        requests("/v1/conferences", 429, "tight"), 5.0;
        "medfeed_rate_limited_total".to_owned(), 5.0;
        "medfeed_internal_errors_total".to_owned(), 0.0;
        "medfeed_refused_keys_total{code=\"invalid_api_key\"}".to_owned(), 2.0;
        "medfeed_refused_keys_total{code=\"expired_api_key\"}".to_owned(), 1.0;
        "medfeed_refused_keys_total{code=\"revoked_api_key\"}".to_owned(), 3.0;
        "medfeed_refused_keys_total{code=\"ip_not_allowed\"}".to_owned(), 2.0;
        "medfeed_connections_opened_total".to_owned(), 12.0;
        "medfeed_request_duration_seconds_count{route=\"/v1/conferences/{id}\"}".to_owned(), 5.0;
    ];
    for (name, by) in expected {
        assert_eq!(rise(&name), by, "{name}: {after:#?}");
    }
    let all: f64 = after
        .keys()
        .filter(|name| name.starts_with("medfeed_requests_total"))
        .map(|name| rise(name))
        .sum();
    assert_eq!(all, 30.0, "{after:#?}");
    server.stop();
}

#[test]
fn metrics_contain_version_and_process_figures() {
    let (site, key) = Site::open(10);
    let (server, mut admin) = serve_watched(&site, &[]);
    let version = site.run(["--version"]).stdout;
    let version = version.trim().trim_start_matches("medfeed ");
    let before = scrape(&mut admin);
    assert_eq!(
        before[&format!("medfeed_build_info{{version=\"{version}\"}}")],
        1.0
    );
    let clock = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let clock = clock.as_secs_f64();
    let started = before["process_start_time_seconds"];
    assert!((clock - 60.0..=clock).contains(&started), "{before:#?}");
    let resident = before["process_resident_memory_bytes"];
    let addressed = before["process_virtual_memory_bytes"];
    assert!((1e6..1e9).contains(&resident), "{resident}");
    assert!(addressed > resident, "{resident} {addressed}");
    assert!(before["process_threads"] >= 2.0, "{before:#?}");
    let has_room = before["process_max_fds"] > before["process_open_fds"];
    assert!(has_room, "{before:#?}");
    // Connections are open files, and work takes processor time.
    let mut clients: Vec<Client> = (0..5).map(|_| server.client(&key)).collect();
    for client in &mut clients {
        assert_eq!(client.get("/v1/status").status, 200);
    }
    let during = scrape(&mut admin);
    assert!(
        during["process_open_fds"] >= before["process_open_fds"] + 5.0,
        "{during:#?}"
    );
    assert_eq!(before["medfeed_connections"], 0.0);
    assert_eq!(during["medfeed_connections"], 5.0);
    wait_for("time on the processor", || {
        clients[0].get("/v1/conferences");
        scrape(&mut admin)["process_cpu_seconds_total"] > before["process_cpu_seconds_total"]
    });
    drop(clients);
    wait_for("no connection", || {
        scrape(&mut admin)["medfeed_connections"] == 0.0
    });
    server.stop();
}

#[test]
fn metrics_show_a_feed_that_falls_behind() {
    let site = Site::new();
    let Loader {
        server,
        mut admin,
        mut client,
        id,
        token,
    } = serve_a_loader(&site);
    let labels = format!("{{license=\"all\",key=\"{id}\",dataset=\"conferences\"}}");
    let (position, behind) = (
        format!("medfeed_feed_position{labels}"),
        format!("medfeed_feed_behind_seconds{labels}"),
    );
    let samples = scrape(&mut admin);
    assert!(
        !samples.contains_key(&position) && !samples.contains_key(&behind),
        "before a feed call: {samples:#?}"
    );

    assert!(client.get(&since(&token)).items().is_empty());
    let samples = scrape(&mut admin);
    assert_eq!((samples[&position] > 0.0, samples[&behind]), (true, 0.0));
    let stood = samples[&position];
    site.import("conferences.jsonl", conferences_of_version(3, 1));
    wait_for("a feed that is behind", || {
        scrape(&mut admin)[&behind] >= 1.0
    });
    // A response to HEAD has no entries.
    let head = client.request(&since(&token)).replacen("GET", "HEAD", 1);
    let mut connection = BufReader::new(connect(server.address).unwrap());
    connection.get_mut().write_all(head.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut connection, true).unwrap().status, 200);
    assert!(scrape(&mut admin)[&behind] >= 1.0);
    // The first of three entries.
    let page = client.get(&format!("{}&limit=1", since(&token))).json();
    assert_eq!(page["has_more"], true, "{page}");
    assert!(scrape(&mut admin)[&behind] >= 1.0, "two entries are left");
    let page = client.get(&since(&token)).json();
    let newest = page["next_sync_token"].as_str().unwrap();
    let samples = scrape(&mut admin);
    assert_eq!(
        (samples[&position], samples[&behind]),
        (stood, 0.0),
        "with the last page fetched, the lag is 0"
    );
    client.get(&since(newest));
    let samples = scrape(&mut admin);
    assert!(samples[&position] > stood, "{samples:#?}");
    assert!(samples[&behind] == 0.0, "{samples:#?}");
    assert_eq!(scrape(&mut admin)["medfeed_database_followed"], 1.0);
    // A revoked key has no lag, also if the clock was set back since.
    let writer = Writer::open(&site.db(), SOON).unwrap();
    let mut edit = writer.begin_at(now().plus_s(DAY_S)).unwrap();
    edit.revoke_key(&id).unwrap();
    edit.commit().unwrap();
    wait_for("no figure of the revoked key", || {
        scrape(&mut admin).keys().all(|name| !name.contains(&id))
    });
    server.stop();
}

/// Records that are ten days old, and a caller that has loaded those of Oncology from a server.
struct OldSite {
    site: Site,
    id: String,
    key: String,
    token: String,
    /// The ids of conferences that the caller sees, and of others.
    visible: Vec<u64>,
    hidden: Vec<u64>,
}

impl OldSite {
    fn new() -> (OldSite, Server, Client) {
        let (site, world) = (Site::new(), World::small());
        world.pass_s(10 * DAY_S);
        fs::copy(world.database(), site.db()).unwrap();
        let key = world.key("onco");
        let visible = world.get("onco", "/v1/conferences").ids();
        let mut hidden = world.get("full", "/v1/conferences").ids();
        hidden.retain(|id| !visible.contains(id));
        let (server, admin) = serve_watched(&site, &[]);
        let mut client = server.client(&key.text);
        let token = client.token("conferences");
        assert!(client.get(&since(&token)).items().is_empty());
        (
            OldSite {
                site,
                id: key.id,
                key: key.text,
                token,
                visible,
                hidden,
            },
            server,
            admin,
        )
    }

    /// Removes a conference in a commit of `days` days ago.
    fn remove(&self, id: u64, days: i64) {
        let writer = Writer::open(&self.site.db(), SOON).unwrap();
        let mut edit = writer.begin_at(now().plus_s(-days * DAY_S)).unwrap();
        edit.apply(&Batch {
            conferences: [(Id::try_from(id).unwrap(), None)].into(),
            ..Batch::default()
        })
        .unwrap();
        edit.commit().unwrap();
    }

    /// The days that the caller is behind, once the server shows the newest commit.
    fn behind_days(&self, admin: &mut Client) -> Option<f64> {
        let writer = Writer::open(&self.site.db(), SOON).unwrap();
        let newest = writer.snapshot().unwrap().commit().seq as f64;
        drop(writer);
        let samples = wait_until("the commit is served", SOON, || {
            Some(scrape(admin)).filter(|samples| samples["medfeed_snapshot_seq"] == newest)
        });
        let id = &self.id;
        let name = format!(
            "medfeed_feed_behind_seconds{{license=\"onco\",key=\"{id}\",dataset=\"conferences\"}}"
        );
        samples.get(&name).map(|seconds| seconds / DAY_S as f64)
    }
}

fn since(token: &str) -> String {
    format!("/v1/conferences/changes?since={token}")
}

fn is_about(lag: Option<f64>, days: f64) -> bool {
    lag.is_some_and(|lag| (days..days + 0.01).contains(&lag))
}

#[test]
fn a_client_that_died_is_behind_by_the_age_of_the_oldest_entry_that_it_lacks() {
    let (old, server, mut admin) = OldSite::new();
    old.remove(old.hidden[0], 9);
    assert_eq!(
        old.behind_days(&mut admin),
        Some(0.0),
        "its license does not show that commit"
    );
    old.remove(old.visible[0], 7);
    let lag = old.behind_days(&mut admin);
    assert!(is_about(lag, 7.0), "{lag:?}");
    wait_for("the entry is noted", || {
        let files = old.site.files().into_iter();
        let files = files.filter(|name| name.starts_with("feed.redb.usage-"));
        let texts: String = files
            .map(|name| fs::read_to_string(old.site.path(&name)).unwrap_or_default())
            .collect();
        texts.contains("behind_since") && !texts.contains("\"behind_since\":null")
    });
    // The record changes again. Its old entry is gone, and the client still lacks the record.
    let record = conference(old.visible[0], json!({"therapy_areas": ["Oncology"]}));
    old.site.import("conferences.jsonl", record);
    let lag = old.behind_days(&mut admin);
    assert!(is_about(lag, 7.0), "{lag:?}");
    server.stop();
    let (server, mut admin) = serve_watched(&old.site, &[]);
    let lag = old.behind_days(&mut admin);
    assert!(is_about(lag, 7.0), "after a restart: {lag:?}");
    // The figure is the same at all servers. This one gets no request of the client.
    let (other, mut other_admin) = serve_watched(&old.site, &[]);
    assert!(is_about(old.behind_days(&mut other_admin), 7.0));
    let mut client = server.client(&old.key);
    let page = client.get(&since(&old.token)).json();
    assert_eq!(page["data"].as_array().unwrap().len(), 1, "{page}");
    assert_eq!(old.behind_days(&mut admin), Some(0.0));
    wait_until_every(
        Duration::from_millis(50),
        "up to date at the other server",
        SOON,
        || (old.behind_days(&mut other_admin) == Some(0.0)).then_some(()),
    );
    other.stop();
    // A token that a restore ended is behind since then.
    let backup = old.site.backup("backup.redb");
    let fields = json!({"therapy_areas": ["Oncology"], "venue": "V"});
    let record = conference(old.visible[0], fields);
    old.site.import("conferences.jsonl", record);
    let later = since(page["next_sync_token"].as_str().unwrap());
    wait_for("the later commit", || client.get(&later).items().len() == 1);
    let restore = || {
        old.site
            .json(["restore", backup.to_str().unwrap(), "--yes"])
    };
    restore();
    // The restore takes one seq, so the seq of the token exists again.
    let restored = |lag: Option<f64>| lag.is_some_and(|days| days > 0.0 && days < 0.1);
    wait_for("it counts from the restore on", || {
        restored(old.behind_days(&mut admin))
    });
    assert_eq!(client.get(&later).status, 410);
    assert!(restored(old.behind_days(&mut admin)));
    let key = wait_until("the refusal is written", SOON, || {
        let listed = old.site.json(["key", "list"]);
        let keys = listed["keys"].as_array().unwrap().clone();
        let mut own = keys.into_iter().filter(|key| key["id"] == old.id.as_str());
        own.next()
            .filter(|key| key["usage"]["last_refusal"].is_object())
    });
    assert!(
        key["usage"]["feeds"]["conferences"]["behind_s"].as_u64() < Some(3600),
        "{key}"
    );
    let refusal = &key["usage"]["last_refusal"];
    assert_eq!(refusal["code"], "resync_required", "{key}");
    // It counts on after another restore and at another server, until the client has loaded the export again.
    restore();
    let (other, mut other_admin) = serve_watched(&old.site, &[]);
    assert!(restored(old.behind_days(&mut other_admin)));
    other.stop();
    // This server may not have seen the last restore yet.
    wait_until("an export of the restored database", SOON, || {
        let export = client.get("/v1/exports/conferences");
        let token = export.header("x-sync-token").unwrap();
        (client.get(&since(token)).status == 200).then_some(())
    });
    assert_eq!(old.behind_days(&mut admin), Some(0.0));
    server.stop();
}

#[test]
fn readyz_gets_503_while_the_database_file_is_missing() {
    let (site, key) = Site::open(3);
    let (server, mut admin) = serve_watched(&site, &[]);
    let mut client = server.client(&key);
    let ready = |admin: &mut Client, status: u16, followed: f64| {
        wait_for(&format!("/readyz {status}"), || {
            admin.get("/readyz").status == status
        });
        assert_eq!(admin.get("/livez").status, 200);
        assert_eq!(scrape(admin)["medfeed_database_followed"], followed);
    };
    for _ in 0..3 {
        ready(&mut admin, 200, 1.0);
        fs::rename(site.db(), site.path("away")).unwrap();
        ready(&mut admin, 503, 0.0);
        let page = admin.get("/").body;
        assert!(
            String::from_utf8_lossy(&page).contains("cannot be followed"),
            "the operators' page reports it, too"
        );
        for target in words!["/v1/conferences" "/v1/conferences/2" "/v1/exports/conferences"] {
            assert_eq!(
                client.get(target).status,
                200,
                "{target} while the file is away"
            );
        }
        fs::rename(site.path("away"), site.db()).unwrap();
    }
    ready(&mut admin, 200, 1.0);

    let unknown = words!["/page" "/metric" "/metrics/" "/v1/status"].map(|target| (target, 404));
    for (target, status) in unknown.into_iter().chain([("/", 200), ("/livez", 200)]) {
        assert_eq!(admin.get(target).status, status, "{target}");
    }
    let address: SocketAddr = admin.address();
    for target in ["/metrics", "/livez", "/readyz", "/nothing"] {
        let mut connection = BufReader::new(connect(address).unwrap());
        let request =
            format!("POST {target} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\n\r\n");
        connection.get_mut().write_all(request.as_bytes()).unwrap();
        assert_eq!(
            read_answer(&mut connection, false).unwrap().status,
            405,
            "POST {target}"
        );
    }
    assert_eq!(
        server.client(&key).get("/metrics").status,
        404,
        "callers see no metrics"
    );
    server.stop();
}

#[test]
fn the_log_names_the_address_of_monitoring() {
    let site = Site::with(2);
    for (address, format) in [("127.0.0.1:0", "json"), ("127.0.0.2:0", "pretty")] {
        let (server, mut admin) = serve_on(&site, address, &["--log-format", format]);
        let told = admin.address();
        assert_eq!(told.ip().to_string(), address.trim_end_matches(":0"));
        assert!(told.port() != 0 && told != server.address, "{told}");
        assert_eq!(admin.get("/livez").status, 200, "{told}");
        let log = server.logged();
        let line = log
            .lines()
            .find(|line| line.contains("monitoring"))
            .unwrap();
        assert!(line.contains("INFO"), "{line}");
        server.stop();
    }
    let server = site.serve_with("--log info");
    let log = server.stop_and_read();
    assert!(
        log.contains("stopping") && !log.contains("monitoring"),
        "nothing listens for monitoring: {log}"
    );
}
