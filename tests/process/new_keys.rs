//! Keys that a replica does not know yet.

use std::time::Instant;

use medfeed::model::key::ApiKey;
use medfeed::replicate::layout;

use super::origin::Replica;
use super::replicas::{mirror, origin, serve};
use super::s3::{Fault, S3};
use super::site::{SOON, Site, wait_until};

fn made_up() -> String {
    ApiKey::generate().unwrap().reveal().to_owned()
}

#[test]
fn a_new_key_has_the_replica_look() {
    let (mut origin, _) = origin();
    let replica = origin.replica();
    let (server, _) = serve(&replica, "--poll 1h");
    let refused = |key: &str| {
        let answer = server.client(key).get("/v1/conferences");
        assert_eq!((answer.status, answer.problem().as_str()), (401, "invalid_api_key"));
    };
    let (_, new) = origin.site.key("all", &[]);
    refused(&new);
    origin.publish();
    assert_eq!(server.client(&new).get("/v1/conferences").status, 200);
    for key in [made_up().as_str(), "mfk_none", &new[..20]] {
        refused(key);
    }
    server.stop();
}

#[test]
fn made_up_keys_drive_no_requests_and_hold_nobody_up() {
    const CALLERS: usize = 24;
    let (origin, key) = origin();
    let store = S3::start();
    mirror(&origin, &store);
    let replica = Replica { site: Site::new(), url: store.url.clone() };
    let mut command = replica.site.serve_command(&replica.options("--poll 1h"));
    command.envs(store.environment());
    let server = replica.site.start(command);
    let name = layout::log(origin.slot + 1);
    let looks = || store.requests().iter().filter(|request| request.contains(&name)).count();
    let (before, begun) = (looks(), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                for _ in 0..3 {
                    assert_eq!(server.client(&made_up()).get("/v1/conferences").problem(), "invalid_api_key");
                }
            });
        }
    });
    let (made, most) = (looks() - before, begun.elapsed().as_secs() + 1);
    assert!((1..=most).contains(&u64::try_from(made).unwrap()), "{made} looks where {most} may be");
    // What cannot be a key is not worth one.
    let before = looks();
    for key in ["mfk_none", "Bearer", "x"] {
        assert_eq!(server.client(key).get("/v1/conferences").problem(), "invalid_api_key");
    }
    assert_eq!(looks(), before);

    // While the bucket does not answer, good callers are answered.
    store.fail("GET", &name, Fault::Held, 1);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.client(&made_up()).get("/v1/conferences").status);
        wait_until("a look that is held", SOON, || (looks() > before).then_some(()));
        for _ in 0..20 {
            assert_eq!(server.client(&key).get("/v1/conferences").status, 200);
        }
        assert_eq!(waiting.join().unwrap(), 401);
    });
    store.release();
    server.stop();
}
