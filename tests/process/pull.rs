//! `medfeed pull`: the first load, the feed, and the contents that a person finds in the copy.

use std::collections::BTreeMap;
use std::process::Stdio;

use serde_json::{Value, json};

use super::postgres_server::Cluster;
use super::pulled::{Pulled, exported, held};
use super::site::{Process, SOON, STATUSES, Site, conferences_of_version, wait_for, wait_until};
use crate::properties::feeds::apply;

pub const JOURNALS: &str = r#"{"id":1,"name":"Journal of Öpen Things","publisher":"P","publishing":{"access":"open","apc_usd":1200.5},"impact_factor":3}
{"id":2,"name":"Closed Letters","publishing":{"access":"subscription"},"organizations":[{"id":9,"name":"Shared Society","abbv":null,"type":null,"url":null}]}
"#;

/// More records than a pull reads from PostgreSQL at once, and than a page of the feed has.
pub const RECORDS: u64 = 520;

/// A conference with links, dates and a deadline in `due_in_days` days.
pub fn linked_conference(id: u64, due_in_days: i64) -> String {
    let due = jiff::Zoned::now()
        .with_time_zone(jiff::tz::TimeZone::UTC)
        .date();
    let due = due.saturating_add(jiff::Span::new().days(due_in_days));
    format!(
        "{{\"id\":{id},\"name\":\"Congress of Zürich {id}\",\"year\":2027,\"venue\":\"Alzheimer\u{2bc}s COVID\u{2011}19 Hall\",\
         \"therapy_areas\":[\"Oncology\",\"Rare {id}\"],\
         \"organizations\":[{{\"id\":7,\"name\":\"Society\",\"abbv\":null,\"type\":\"society\",\"url\":null}},9],\
         \"tags\":[{{\"id\":3,\"type\":\"Audience\",\"name\":\"Doctors\",\"category\":null}}],\"formats\":{{\"oral\":true,\"encore\":false}},\
         \"start_date\":\"2099-05-01\",\"start_date_status\":\"confirmed\",\"abstract_due_date\":\"{due}\",\
         \"abstract_due_date_status\":\"estimated\",\"late_breaking_due_date_status\":\"not_found\"}}\n"
    )
}

pub fn site_with_both(conferences: u64) -> Site {
    let site = Site::with(conferences);
    site.import("journals.jsonl", JOURNALS);
    site
}

#[test]
fn a_copy_of_each_kind_is_loaded_and_follows_the_feed() {
    let cluster = Cluster::shared();
    let mut pulled = Pulled::new(site_with_both(1200));
    // Cells that a spreadsheet would take for formulas, numbers or dates, in the CSV of a folder.
    pulled.import(
        "journals.jsonl",
        "{\"id\":1,\"name\":\"=Formula, \\\"quoted\\\"\",\"impact_factor\":12.50,\
         \"timelines\":{\"accept_to_print\":{\"max_weeks\":1e-7}}}\n",
    );
    let places = pulled.places(cluster.as_ref());
    for place in &places {
        pulled.copy.clone_from(place);
        let expected = "conferences: 1200 records loaded\njournals: 2 records loaded\n";
        assert_eq!(pulled.pull("").stdout, expected, "{place:?}");
        for dataset in ["conferences", "journals"] {
            pulled.assert_equal(dataset);
        }
        let none = "conferences: nothing new, 1200 records\njournals: nothing new, 2 records\n";
        assert_eq!(pulled.pull("").stdout, none, "{place:?}");
    }
    // Three pages, including removals.
    let removals: String = (1101..=1200)
        .map(|id| format!("{{\"id\":{id},\"deleted\":true}}\n"))
        .collect();
    pulled.site.import(
        "conferences.jsonl",
        conferences_of_version(1100, 1) + &removals,
    );
    for place in &places {
        pulled.copy.clone_from(place);
        let done = pulled.settle("conferences", "");
        let told =
            "conferences: 1200 changes applied, 1100 records\njournals: nothing new, 2 records\n";
        assert_eq!(done.stdout, told, "{place:?}");
        pulled.assert_equal("conferences");
        let count = pulled.pull("--verify").count("equal to the service's");
        assert_eq!(count, 2, "{place:?}");
    }
    assert!(
        pulled
            .site
            .files()
            .iter()
            .all(|name| !name.ends_with("-wal")),
        "{:?}",
        pulled.site.files()
    );
}

#[test]
fn a_service_on_this_machine_is_reached_without_a_proxy() {
    let pulled = Pulled::with(3);
    let closed = "http://127.0.0.1:1";
    let mut command = pulled.command(&pulled.url(), "--dataset conferences");
    command.envs([
        ("http_proxy", closed),
        ("ALL_PROXY", closed),
        ("NO_PROXY", ""),
        ("no_proxy", ""),
    ]);
    let mut pull = Process::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
    assert_eq!(pull.exit_code(), Some(0));
    pulled.assert_equal("conferences");
}

#[test]
fn a_copy_has_typed_columns_links_and_search() {
    let cluster = Cluster::shared();
    let site = site_with_both(RECORDS);
    site.import(
        "conferences.jsonl",
        linked_conference(5000, 10) + &linked_conference(5001, 400),
    );
    let mut pulled = Pulled::new(site);
    // A query, and the texts of its first column.
    type Question = (&'static str, &'static [&'static str]);
    let in_both: [Question; 9] = cases![
        "SELECT year + 1 FROM conferences WHERE id = 5000", &["2028"];
        "SELECT organizations FROM conferences WHERE id = 5000", &["Society; Shared Society"];
        "SELECT tags FROM conferences WHERE id = 5000", &["Audience: Doctors"];
        "SELECT publishing_apc_usd FROM journals WHERE id = 1", &["1200.5"];
        "SELECT conference_id FROM deadlines_next_90_days", &["5000"];
        "SELECT days_left FROM deadlines_next_90_days", &["10"];
        "SELECT id FROM upcoming_conferences", &["5000", "5001"];
        "SELECT name FROM open_access_journals", &["Journal of Öpen Things"];
        "SELECT count(*) FROM organizations JOIN conference_organizations ON id = organization_id WHERE name = 'Society'",
            &["2"];
    ];
    let in_sqlite: [Question; 4] = cases![
        "SELECT formats_oral || formats_encore || (formats_poster IS NULL) FROM conferences WHERE id = 5000", &["101"];
        "SELECT typeof(impact_factor) FROM journals WHERE id = 1", &["real"];
        "SELECT rowid FROM conferences_search WHERE conferences_search MATCH 'zurich AND doctors' ORDER BY 1",
            &["5000", "5001"];
        "SELECT rowid FROM conferences_search WHERE conferences_search MATCH '\"alzheimer''s\" \"covid-19\"' ORDER BY 1",
            &["5000", "5001"];
    ];
    let in_postgres: [Question; 9] = cases![
        "SELECT formats_oral AND NOT formats_encore AND formats_poster IS NULL FROM conferences WHERE id = 5000",
            &["true"];
        "SELECT start_date + 1 FROM conferences WHERE id = 5000", &["2099-05-02"];
        "SELECT pg_typeof(updated_at) FROM conferences WHERE id = 5000", &["timestamp with time zone"];
        "SELECT json->>'name' FROM conferences WHERE id = 5000", &["Congress of Zürich 5000"];
        "SELECT pg_typeof(impact_factor) FROM journals WHERE id = 1", &["double precision"];
        "SELECT id FROM conferences WHERE search @@ websearch_to_tsquery('simple', 'alzheimer''s covid-19') ORDER BY 1",
            &["5000", "5001"];
        "SELECT id FROM conferences WHERE search @@ websearch_to_tsquery('simple', 'zurich doctors') ORDER BY 1",
            &["5000", "5001"];
        "SELECT id FROM conferences WHERE search @@ websearch_to_tsquery('simple', 'Zürich -\"rare 5001\"')", &["5000"];
        "SELECT obj_description('conferences'::regclass)",
            &["The conferences of the copy; columns as in the CSV export"];
    ];
    let database = cluster
        .as_ref()
        .map(|cluster| (cluster.url(&cluster.database()).into(), &in_postgres[..]));
    for (copy, own) in database
        .into_iter()
        .chain([(pulled.copy.clone(), &in_sqlite[..])])
    {
        pulled.copy = copy;
        pulled.pull("");
        for (sql, expected) in in_both.iter().chain(own) {
            assert_eq!(pulled.column(sql), *expected, "{sql}");
        }
    }
    // A renamed tag is found by its new name alone.
    pulled.site.import(
        "tags.jsonl",
        "{\"id\":3,\"type\":\"Audience\",\"name\":\"Nurses\"}\n",
    );
    pulled.settle("conferences", "");
    for (word, expected) in [("nurses", &["5000", "5001"][..]), ("doctors", &[])] {
        let sql = format!(
            "SELECT rowid FROM conferences_search WHERE conferences_search MATCH '{word}' ORDER BY rowid"
        );
        assert_eq!(pulled.column(&sql), expected, "{word}");
    }
    // Names that no record has any more are removed. The names of a journal stay.
    pulled.site.import(
        "conferences.jsonl",
        "{\"id\":5000,\"deleted\":true}\n{\"id\":5001,\"deleted\":true}\n",
    );
    pulled.settle("conferences", "");
    assert_eq!(
        pulled.column("SELECT name FROM organizations"),
        ["Shared Society"]
    );
    assert_eq!(pulled.column("SELECT name FROM tags"), [""; 0]);
    assert_eq!(
        pulled.column("SELECT count(*) FROM therapy_areas WHERE name LIKE 'Rare%'"),
        ["0"]
    );
    assert_eq!(
        pulled
            .column("SELECT rowid FROM conferences_search WHERE conferences_search MATCH 'nurses'"),
        [""; 0]
    );
    // A renamed organization comes back with its records.
    pulled
        .site
        .import("organizations.jsonl", "{\"id\":9,\"name\":\"Renamed\"}\n");
    pulled.settle("journals", "");
    assert_eq!(pulled.column("SELECT name FROM organizations"), ["Renamed"]);
    assert_eq!(pulled.pull("--verify").count("equal to the service's"), 2);
}

#[test]
fn a_copy_equals_the_service_after_a_license_change_and_a_restore() {
    let cluster = Cluster::shared();
    let mut pulled = Pulled::new(site_with_both(RECORDS));
    let backup = pulled.site.backup("backup.redb");
    let places = pulled.places(cluster.as_ref());
    let each = |pulled: &mut Pulled, run: &dyn Fn(&Pulled)| {
        for place in &places {
            pulled.copy.clone_from(place);
            run(pulled);
        }
    };
    each(&mut pulled, &|pulled| drop(pulled.pull("")));
    pulled.site.license(
        "all",
        "--dataset conferences --dataset journals --year 2026",
    );
    each(&mut pulled, &|pulled| {
        let done = pulled.settle("conferences", "--dataset conferences --json");
        assert!(done.stderr.contains("applying the difference"), "{done:?}");
        let told: Vec<Value> = done
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            told.len(),
            390,
            "three in four leave, and nothing else is reported"
        );
        assert!(
            told.iter()
                .all(|line| line["dataset"] == "conferences" && line["entry"]["deleted"] == true)
        );
        pulled.assert_equal("conferences");
    });
    pulled
        .site
        .import("conferences.jsonl", conferences_of_version(RECORDS, 2));
    each(&mut pulled, &|pulled| {
        drop(pulled.settle("conferences", ""))
    });
    pulled
        .site
        .json(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    each(&mut pulled, &|pulled| {
        let done = pulled.settle("conferences", "");
        assert!(done.stderr.contains("loading the export"), "{done:?}");
        for dataset in ["conferences", "journals"] {
            pulled.assert_equal(dataset);
        }
        assert_eq!(pulled.pull("--reload").count("loaded"), 2);
        pulled.assert_equal("conferences");
    });
}

#[test]
fn changes_are_printed_one_per_line() {
    let pulled = Pulled::new(site_with_both(RECORDS));
    let mut kept: BTreeMap<String, BTreeMap<u64, Value>> = BTreeMap::new();
    let mut take = |done: super::site::Done| {
        for line in done.stdout.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let copy = kept
                .entry(line["dataset"].as_str().unwrap().to_owned())
                .or_default();
            apply(copy, std::slice::from_ref(&line["entry"]));
        }
        let told: Vec<&Value> = kept["conferences"].values().collect();
        let content = exported(&mut pulled.client(), "conferences").lines;
        let expected: Vec<Value> = content
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(json!(told), json!(expected));
    };
    take(pulled.pull("--json"));
    pulled.site.import(
        "conferences.jsonl",
        conferences_of_version(505, 3) + "{\"id\":510,\"deleted\":true}\n",
    );
    take(pulled.settle("conferences", "--json"));
    pulled
        .site
        .license("all", "--dataset conferences --country Japan");
    take(pulled.settle("conferences", "--dataset conferences --json"));
    pulled.site.import(
        "conferences.jsonl",
        format!("{{\"id\":9000,\"name\":\"New\",\"country\":\"Japan\",{STATUSES}}}\n"),
    );
    take(pulled.settle("conferences", "--dataset conferences --json"));
}

#[test]
fn a_follower_ends_with_the_reader_of_its_changes() {
    let pulled = Pulled::new(site_with_both(RECORDS));
    let mut command = pulled.command(&pulled.url(), "--follow --every 10ms --json");
    let mut follower = Process::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    drop(follower.child().stdout.take());
    assert_eq!(follower.exit_code(), Some(1));
    assert!(
        held(&pulled.copy, "conferences").is_none(),
        "unprinted changes are not saved"
    );
}

#[test]
fn a_follower_continues_over_a_restart_of_the_server() {
    let mut pulled = Pulled::new(site_with_both(RECORDS));
    // Two seconds are long enough for a request that waits for news.
    for every in ["10ms", "2s"] {
        follow_over_a_restart(&mut pulled, every);
    }
}

fn follow_over_a_restart(pulled: &mut Pulled, every: &str) {
    let mut follower =
        Process::spawn(&mut pulled.command(&pulled.url(), &format!("--follow --every {every}")));
    let settled = |pulled: &Pulled, what: &str| {
        wait_until(what, SOON * 2, || {
            let found = held(&pulled.copy, "conferences")?;
            (found == exported(&mut pulled.client(), "conferences")).then_some(())
        });
    };
    let import = |pulled: &Pulled, version| {
        pulled.import("conferences.jsonl", conferences_of_version(50, version))
    };
    wait_for("loaded", || pulled.copy.exists());
    settled(pulled, "loaded");
    import(pulled, 1);
    settled(pulled, "followed");
    let address = pulled.server.address.to_string();
    let old = std::mem::replace(&mut pulled.server, pulled.site.serve());
    old.stop();
    import(pulled, 2);
    let back = pulled
        .site
        .command(["serve", "--log", "warn", "--listen", &address]);
    std::mem::replace(&mut pulled.server, pulled.site.start(back)).stop();
    settled(pulled, "followed after the restart");
    assert!(
        follower.ended_within(std::time::Duration::ZERO).is_none(),
        "the follower keeps running"
    );
    follower.kill();
    pulled.assert_equal("conferences");
}
