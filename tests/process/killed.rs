//! Writers killed at random moments, and two servers on one file. `MEDFEED_CASES` sets the number of kills,
//! `MEDFEED_SEED` the seed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::serving::read_whole_states;
use super::site::{
    Process, Random, SOON, Site, cases_and_seed, conferences_of_version, version_of, wait_for,
    wait_until,
};
use crate::harness::counted;

#[test]
fn a_killed_import_leaves_the_state_before_or_after() {
    const COUNT: u64 = 300;
    let (rounds, seed) = cases_and_seed(6, 20_261_121);
    let (site, key) = Site::open(COUNT);
    let begun = Instant::now();
    site.import("conferences.jsonl", conferences_of_version(COUNT, 1));
    let usual = begun.elapsed();

    let server = site.serve();
    let mut random = Random::new(seed);
    let stop = AtomicBool::new(false);
    let (mut killed, mut lost) = (0, 0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_whole_states(&mut server.client(&key), 300, &stop));
        let mut stands = 1;
        for round in 0..rounds {
            let next = stands + 1;
            let file = site.write("conferences.jsonl", conferences_of_version(COUNT, next));
            let mut import = Process::spawn(
                site.command(["import", "--json"])
                    .arg(&file)
                    .stdout(std::process::Stdio::null()),
            );
            let status = import.ended_within(random.part_of(usual.mul_f64(1.2)));
            import.kill();
            let acknowledged = status.is_some_and(|status| status.success());
            killed += u32::from(!acknowledged);

            // A server that starts now opens the file as the killed writer left it.
            let fresh = site.serve();
            let found = version_of(&fresh.client(&key).get("/v1/exports/conferences").lines());
            let allowed = if acknowledged {
                vec![next]
            } else {
                vec![stands, next]
            };
            assert!(
                allowed.contains(&found),
                "seed {seed}, round {round}: {found}, allowed {allowed:?}"
            );
            lost += u32::from(found == stands);
            stands = found;
            site.check();
            wait_for("the running server shows the commit", || {
                let seen =
                    version_of([&server.client(&key).get("/v1/conferences/1").json()["data"]]);
                seen == stands || reader.is_finished()
            });
            fresh.stop();
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().expect("the reader saw only whole states");
    });
    counted(killed, "kills");
    println!("{killed} of {rounds} imports killed, {lost} of them before their commit");
    assert!(killed > 0, "the kills came too late: no import was killed");

    // After all kills, the next writer continues.
    site.import("conferences.jsonl", conferences_of_version(COUNT, 999));
    wait_for("the last import", || {
        version_of([&server.client(&key).get("/v1/conferences/1").json()["data"]]) == 999
    });
    site.check();
    server.stop();
}

#[test]
fn a_killed_first_import_leaves_no_file_or_a_whole_one() {
    let site = Site::new();
    let file = site.write("conferences.jsonl", conferences_of_version(1000, 0));
    let mut random = Random::new(7);
    for _ in 0..6 {
        let mut import = Process::spawn(
            site.command(["import", "--create"])
                .arg(&file)
                .stdout(std::process::Stdio::null()),
        );
        import.ended_within(random.part_of(Duration::from_millis(60)));
        import.kill();
        if site.db().exists() {
            site.check();
            std::fs::remove_file(site.db()).unwrap();
        }
    }
    site.json(["import".as_ref(), file.as_os_str(), "--create".as_ref()]);
    site.check();
}

#[test]
fn a_token_of_one_server_works_at_the_other_at_once() {
    let (site, key) = Site::open(20);
    let servers = [site.serve(), site.serve()];
    let mut clients = [servers[0].client(&key), servers[1].client(&key)];
    let mut token = clients[0]
        .get("/v1/exports/conferences")
        .header("x-sync-token")
        .unwrap()
        .to_owned();
    let mut ids = BTreeSet::new();
    for version in 1..=12 {
        site.import("conferences.jsonl", conferences_of_version(20, version));
        // The first server that shows the import hands out a token, and the other one may be a moment behind.
        let first = usize::try_from(version % 2).unwrap();
        let page = wait_until("the import in the feed", SOON, || {
            let answer = clients[first].get(&format!("/v1/conferences/changes?since={token}"));
            assert_eq!(
                answer.status,
                200,
                "version {version}: {}",
                String::from_utf8_lossy(&answer.body)
            );
            Some(answer.json()).filter(|page| page["data"] != serde_json::json!([]))
        });
        token = page["next_sync_token"].as_str().unwrap().to_owned();
        let answer = clients[1 - first].get(&format!("/v1/conferences/changes?since={token}"));
        assert_eq!(
            answer.status,
            200,
            "version {version}: {}",
            String::from_utf8_lossy(&answer.body)
        );
        let expected = token.as_str();
        assert_eq!(answer.json()["next_sync_token"], expected, "nothing is new");
        for answer in [clients[0].get("/v1/status"), clients[1].get("/v1/status")] {
            assert!(
                ids.insert(answer.header("x-request-id").unwrap().to_owned()),
                "request ids are unique"
            );
        }
    }
    for server in servers {
        server.stop();
    }
}
