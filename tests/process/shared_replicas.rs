//! One server follows with a replica's file. Other servers are refused, and so are commands.

use medfeed::replicate::layout;

use super::origin::{Origin, Replica};
use super::replicas::{COUNT, origin, serve, wait_for_seq};
use super::site::{Done, Server, conferences_of_version};

fn try_serve(replica: &Replica) -> Result<Server, Done> {
    replica
        .site
        .try_start(replica.site.serve_command(&replica.options("--poll 20ms")))
}

fn publish(origin: &mut Origin, version: u64) {
    origin
        .site
        .import("conferences.jsonl", conferences_of_version(COUNT, version));
    origin.publish();
}

#[test]
fn a_second_server_of_a_file_is_refused() {
    let (mut origin, key) = origin();
    let replica = origin.replica();
    for is_killed in [false, true] {
        let (mut first, mut admin) = serve(&replica, "--poll 20ms");
        let refused = try_serve(&replica).map(drop).unwrap_err();
        let expected = [
            format!("process {}", first.process.id()),
            "one server follows with a file".to_owned(),
        ];
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            expected
                .iter()
                .all(|expected| refused.stderr.contains(expected)),
            "{expected:?}: {refused:?}"
        );
        // This changes nothing for the first one.
        publish(&mut origin, u64::from(is_killed) + 1);
        wait_for_seq(&origin, &mut admin);
        if is_killed {
            first.process.kill();
        } else {
            first.stop();
        }
    }
    let (next, mut admin) = serve(&replica, "--poll 20ms");
    wait_for_seq(&origin, &mut admin);
    assert_eq!(
        next.client(&key).get("/v1/conferences/1").json()["data"]["venue"],
        "version 2"
    );
    next.stop();
    replica.site.check();
}

#[test]
fn only_one_of_several_replicas_that_load_into_one_file_runs() {
    let (mut origin, key) = origin();
    let replica = origin.replica();
    let started: Vec<Result<Server, Done>> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| try_serve(&replica)))
            .collect();
        starting
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    publish(&mut origin, 1);
    let (servers, refused): (Vec<_>, Vec<_>) = started.into_iter().partition(Result::is_ok);
    assert_eq!((servers.len(), refused.len()), (1, 2));
    for refused in refused {
        let refused = refused.map(drop).unwrap_err();
        assert!(refused.stderr.contains("is in use by"), "{refused:?}");
    }
    for server in servers.into_iter().flatten() {
        assert_eq!(server.client(&key).get("/v1/conferences/1").status, 200);
        server.stop();
    }
    let left = replica.site.files().into_iter();
    let left: Vec<String> = left.filter(|name| name.contains("draft")).collect();
    assert!(left.is_empty(), "{left:?}");
    replica.site.check();
}

#[test]
fn a_served_replica_is_not_promoted() {
    let (origin, _) = origin();
    let replica = origin.replica();
    let (server, _) = serve(&replica, "");
    let done = replica.site.ends(["promote", &origin.url(), "--yes"]);
    done.assert_told(1, "stop all servers of this file");
    assert!(
        origin
            .bucket()
            .get(&layout::log(origin.slot + 1))
            .unwrap()
            .is_none()
    );
    server.stop();
}
