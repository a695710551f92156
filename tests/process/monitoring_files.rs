//! The dashboard and the alerts in `deploy/monitoring`: servers have all metrics that they use.

use std::collections::BTreeSet;

use serde_json::Value;

use super::https::{Authority, site_with};
use super::manuals;
use super::monitoring::serve_watched;
use super::site::{Site, assert_contains};

fn read(name: &str) -> String {
    manuals::read(&format!("deploy/monitoring/{name}"))
}

/// The names of metrics in a text.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words
        .filter(|word| word.starts_with("medfeed_") || word.starts_with("process_"))
        .collect()
}

/// The names of the samples of a server after requests of every counted kind, of a server with a certificate, and of a
/// replica.
fn samples() -> BTreeSet<String> {
    let (site, key) = Site::open(3);
    let (server, mut admin) = serve_watched(&site, &[]);
    let mut client = server.client(&key);
    let token = client.token("conferences");
    assert_eq!(
        client
            .get(&format!("/v1/conferences/changes?since={token}"))
            .status,
        200
    );
    let text = String::from_utf8(admin.get("/metrics").body).unwrap();
    server.stop();
    let site = site_with(&Authority::new().pair());
    let (server, mut admin) =
        serve_watched(&site, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let text = text + &String::from_utf8(admin.get("/metrics").body).unwrap();
    server.stop();
    let (origin, _) = super::replicas::origin();
    let place = origin.replica();
    let (replica, mut admin) = super::replicas::serve(&place, "");
    let text = text + &String::from_utf8(admin.get("/metrics").body).unwrap();
    replica.stop();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split([' ', '{']).next())
        .map(str::to_owned)
        .collect()
}

/// The names of all samples that a program may have.
fn all_samples() -> BTreeSet<String> {
    let mut samples = samples();
    samples.extend(super::publishing_watched::samples());
    samples
}

#[test]
fn every_metric_of_dashboard_alerts_and_manuals_exists() {
    let samples = all_samples();
    let (alerts, tests, dashboard) = (
        read("alerts.yml"),
        read("alerts_test.yml"),
        read("dashboard.json"),
    );
    for (file, text, least) in [
        ("alerts.yml", &alerts, 8),
        ("alerts_test.yml", &tests, 8),
        ("dashboard", &dashboard, 20),
    ] {
        let named = metrics_in(text);
        assert!(named.len() >= least, "{file}: {named:?}");
        let unknown = named.iter();
        let unknown: Vec<_> = unknown.filter(|name| !samples.contains(**name)).collect();
        assert!(
            unknown.is_empty(),
            "{file} asks for {unknown:?}, which no program has: {samples:#?}"
        );
    }
    // Each metric in the manuals' tables of alerts has an alert, and each alert is tested.
    let watched = metrics_in(&alerts);
    for manual in ["docs/operate.md", "docs/replicas.md"] {
        let text = manuals::read(manual);
        let unknown = metrics_in(&text).into_iter();
        let unknown: Vec<_> = unknown.filter(|name| !samples.contains(*name)).collect();
        assert!(
            unknown.is_empty(),
            "{manual} names {unknown:?}, which no program has"
        );
        let (_, worth) = text
            .split_once("\n### Alerts\n")
            .expect("the manual lists alerts");
        let rows = worth.lines();
        let rows: String = rows.filter(|line| line.starts_with("| `")).collect();
        let named = metrics_in(&rows);
        assert!(named.len() >= 4, "{manual}: {named:?}");
        for name in named {
            assert!(watched.contains(name), "{name} has no alert");
        }
    }
    for line in alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
    {
        assert!(
            tests.contains(&format!("alertname: {line}\n        exp_alerts:\n")),
            "{line} is not tried"
        );
    }
}

#[test]
fn a_key_is_behind_only_where_no_server_saw_a_later_token() {
    // Each server of a file, and each replica, knows the tokens that it was sent.
    let newest = "min by (license, key, dataset) (medfeed_feed_behind_seconds";
    for (file, uses) in [("alerts.yml", 1), ("dashboard.json", 2)] {
        let text = read(file);
        let found =
            ["medfeed_feed_behind_seconds", newest].map(|asked| text.matches(asked).count());
        assert_eq!(found, [uses, uses], "{file}");
    }
}

#[test]
fn the_dashboard_can_be_imported() {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let expected = (&"datasource".into(), &"datasource".into());
    assert_eq!((&variables[0]["name"], &variables[0]["type"]), expected);
    let panels = dashboard["panels"].as_array().unwrap();
    let ids = panels.iter();
    let ids: BTreeSet<u64> = ids.map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "ids of panels");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        // No data source of a single installation.
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            let asked = target["expr"].as_str().unwrap();
            assert_contains(asked, "job=~\"$job\",instance=~\"$instance\"");
        }
        let place = &panel["gridPos"];
        assert!(
            place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24,
            "{panel}"
        );
    }
}
