//! Several servers on one replica's file: one follows the origin, the others read. When it ends, another one follows.

use medfeed::replicate::layout;

use super::client::Client;
use super::monitoring::{scrape, start_watched};
use super::origin::{Origin, Replica};
use super::replicas::{COUNT, compare, origin, serve, wait_for_seq};
use super::site::{SOON, Server, conferences_of_version, wait_until};

fn publish(origin: &mut Origin, version: u64) {
    origin.site.import("conferences.jsonl", conferences_of_version(COUNT, version));
    origin.publish();
}

/// Serves a replica on the address of a server that is there already.
fn serve_beside(first: &Server, replica: &Replica, more: &str) -> (Server, Client) {
    let options = replica.options(&format!("--reuse-port {more}"));
    let mut command = replica.site.command(["serve", "--listen", &first.address.to_string()]);
    command.args(options.split_whitespace());
    start_watched(&replica.site, command)
}

#[test]
fn servers_take_turns_in_following() {
    let (mut origin, key) = origin();
    let serving = origin.site.serve();
    let replica = origin.replica();
    let (mut server, mut admin) = serve(&replica, "--reuse-port --poll 20ms");
    for round in 1..=4 {
        let (next, mut next_admin) = serve_beside(&server, &replica, "--poll 20ms");
        next.wait_for_log("another server updates this file");
        // What one of them applies both show.
        publish(&mut origin, 10 * round);
        wait_for_seq(&origin, &mut admin);
        wait_for_seq(&origin, &mut next_admin);
        wait_until("both are ready", SOON, || {
            let ready = [&mut admin, &mut next_admin].map(|admin| admin.get("/readyz").status);
            (ready == [200, 200]).then_some(())
        });
        assert_eq!(scrape(&mut next_admin)["medfeed_replica_entries_applied_total"], 0.0, "it reads");
        match round % 2 {
            0 => server.process.kill(),
            _ => server.stop(),
        }
        (server, admin) = (next, next_admin);
        publish(&mut origin, 10 * round + 1);
        wait_for_seq(&origin, &mut admin);
        server.wait_for_log("this one updates the file now");
        wait_until("it follows", SOON, || {
            (scrape(&mut admin)["medfeed_replica_entries_applied_total"] == 1.0).then_some(())
        });
    }
    // Also when a whole state takes the file's place.
    let (other, mut other_admin) = serve_beside(&server, &replica, "--poll 20ms");
    origin.site.import("conferences.jsonl", conferences_of_version(COUNT, 99));
    origin.publish_state();
    wait_for_seq(&origin, &mut admin);
    wait_for_seq(&origin, &mut other_admin);
    server.stop();
    publish(&mut origin, 100);
    wait_for_seq(&origin, &mut other_admin);
    wait_until("the origin's server follows", SOON, || {
        let venue = serving.client(&key).get("/v1/conferences/1").json()["data"]["venue"].clone();
        (venue == "version 100").then_some(())
    });
    compare(&mut serving.client(&key), &mut other.client(&key), &[]);
    other.stop();
    serving.stop();
    replica.site.check();
}

#[test]
fn who_reads_knows_how_old_the_file_is() {
    let (mut origin, key) = origin();
    let replica = origin.replica();
    let (first, mut first_admin) = serve(&replica, "--reuse-port --poll 20ms");
    let (second, mut admin) = serve_beside(&first, &replica, "--poll 20ms --max-staleness 2s");
    assert_eq!(admin.get("/readyz").status, 200);
    // The one that follows stands still and keeps the lock: what it does not apply makes the file old.
    first.process.signal("STOP");
    publish(&mut origin, 1);
    wait_until("the file is too old", SOON, || (admin.get("/readyz").status == 503).then_some(()));
    // However often it asks for the end of the log.
    wait_until("it stays so", SOON, || (scrape(&mut admin)["medfeed_replica_stale_seconds"] >= 4.0).then_some(()));
    assert_eq!(admin.get("/readyz").status, 503);
    first.process.signal("CONT");
    wait_for_seq(&origin, &mut admin);
    wait_until("it is not", SOON, || (admin.get("/readyz").status == 200).then_some(()));
    wait_for_seq(&origin, &mut first_admin);
    first.stop();
    assert_eq!(second.client(&key).get("/v1/conferences/1").json()["data"]["venue"], "version 1");
    second.stop();
}

#[test]
fn servers_that_load_at_once_share_what_is_loaded() {
    let (mut origin, key) = origin();
    let replica = origin.replica();
    let servers: Vec<(Server, Client)> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..3).map(|_| scope.spawn(|| serve(&replica, "--poll 20ms"))).collect();
        starting.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    publish(&mut origin, 1);
    for (server, mut admin) in servers {
        wait_for_seq(&origin, &mut admin);
        assert_eq!(server.client(&key).get("/v1/conferences/1").status, 200);
        server.stop();
    }
    let left: Vec<String> = replica.site.files().into_iter().filter(|name| name.contains("draft")).collect();
    assert!(left.is_empty(), "{left:?}");
    replica.site.check();
}

#[test]
fn commands_are_told_at_once_what_a_replica_is() {
    let (origin, _) = origin();
    let replica = origin.replica();
    let (server, _) = serve(&replica, "");
    let rows = replica.site.write("conferences.jsonl", conferences_of_version(COUNT, 1));
    let commands = [
        &["license", "set", "other", "--dataset", "journals"][..],
        &["key", "create", "--license", "all"],
        &["import", rows.to_str().unwrap()],
        &["compact"],
    ];
    for command in commands {
        // Longer than a test waits.
        let done = replica.site.ends([command, &["--wait", "10m"]].concat());
        assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
        let expected = format!("feed.redb is a replica of {}; write to its origin", origin.url());
        assert!(done.stderr.contains(&expected) && done.stderr.contains("medfeed promote"), "{command:?}: {done:?}");
    }
    let done = replica.site.ends(["promote", &origin.url(), "--yes"]);
    assert!(done.code == Some(1) && done.stderr.contains("stop all servers of this file"), "{done:?}");
    assert!(origin.bucket().get(&layout::log(origin.slot + 1)).unwrap().is_none());
    server.stop();
}
