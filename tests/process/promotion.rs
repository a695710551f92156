//! Promotions: the log stays one line of history, even if a promotion is killed or others write at the same time. A
//! database that is no longer the origin refuses to write. `MEDFEED_CASES` sets how many promotions are killed,
//! `MEDFEED_SEED` the moments.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use medfeed::replicate::layout;
use medfeed::store::Reader;

use super::origin::Replica;
use super::published::{Place, follow, note, rows_of, seal_key};
use super::publishing::{commit, copy_of, curated, published_in_folder, published_in_s3};
use super::s3::{Fault, S3};
use super::site::{
    Process, Random, SOON, Site, assert_contains, cases_and_seed, wait_for, wait_until,
};
use crate::harness::counted;

/// A replica that has followed the log to its end, and is not running.
pub fn replica_of(place: &Place) -> Site {
    let replica = Replica {
        site: Site::new(),
        url: place.url.clone(),
    };
    let command = replica.site.serve_command(&replica.options(""));
    let command = place.with_credentials(command);
    replica.site.start(command).stop();
    replica.site
}

/// Starts a promotion. Its messages go to the file `told`.
fn promotion(place: &Place, site: &Site) -> Process {
    let mut command = place.with_credentials(site.command(["promote", &place.url, "--yes"]));
    let told = fs::File::create(site.path("told")).unwrap();
    Process::spawn(command.stdout(Stdio::null()).stderr(told))
}

/// Starts a promotion and holds the response of its last read, which found no entry in a slot.
fn at_its_last_read(s3: &S3, place: &Place, site: &Site, slot: u64) -> Process {
    s3.fail("GET", &layout::log(slot), Fault::Held, 2);
    let promoting = promotion(place, site);
    s3.wait_for_held();
    s3.release();
    s3.wait_for_held();
    promoting
}

/// Asserts that a database is still a replica: it takes no commit.
#[track_caller]
fn assert_replica(site: &Site, text: &str) {
    let refused = site.run(["key", "create", "--license", "all"]);
    refused.assert_told(1, text);
}

/// The messages of a promotion.
fn told_to(site: &Site) -> String {
    fs::read_to_string(site.path("told")).unwrap()
}

pub fn promote(place: &Place, site: &Site) {
    let report = place.json(site, &["promote", &place.url, "--yes"]);
    assert_eq!(report["promoted"], true);
}

/// Copies the note next to a database to the one next to another.
fn copy_note(from: &Site, to: &Site) {
    let [from, to] = [from, to].map(|site| site.path("feed.redb.published"));
    fs::copy(from, to).unwrap();
}

fn ends_with(mut process: Process, code: i32, what: &str) {
    assert_eq!(process.exit_code(), Some(code), "{what}");
}

/// Checks that a database is no longer published, because another publisher took over. Each command that would write
/// reports that.
fn assert_fenced(place: &Place, site: &Site) {
    let published = place.run(site, "--once");
    assert_eq!(published.code, Some(4), "{published:?}");
    let by = note(site).fenced.expect("it is noted");
    for done in [
        published,
        site.run(["key", "create", "--license", "all"]),
        site.run(["license", "remove", "all", "--yes"]),
    ] {
        assert_eq!(done.code, Some(4), "{done:?}");
        assert!(done.stderr.contains(&by), "{by}: {done:?}");
        assert!(done.stderr.contains("medfeed export"), "{by}: {done:?}");
    }
    assert!(by.contains(" published slot ") && by.contains('@'), "{by}");
}

/// Checks that a database is the end of the log, that the log is one line, and that the next commit can be published.
fn assert_continues(place: &Place, site: &Site) {
    commit(site, 100 + note(site).slot);
    assert_eq!(place.once(site), 1, "{}", place.kind);
    let slots = place.slots(layout::LOG);
    let expected = (1..=note(site).slot).collect::<Vec<_>>();
    assert_eq!(slots, expected, "{}", place.kind);
    place.check(site);
    site.check();
}

#[test]
fn a_promotion_that_is_killed_is_run_again() {
    let (first, site) = (S3::start(), curated());
    let place = Place::s3(&first);
    place.once(&site);
    commit(&site, 1);
    place.once(&site);
    let replica = replica_of(&place);
    let objects = first.names().into_iter();
    let objects: Vec<_> = objects.map(|name| (first.object(&name), name)).collect();
    let asked_before = first.requests().len();
    promote(&place, &copy_of(&replica));
    let requests = first.requests().split_off(asked_before);
    // After its entry, it looks for one in the next slot.
    let put = requests.len() - 2;
    assert!(requests[put].starts_with("PUT "), "{requests:?}");
    assert!(requests.len() > 5, "{requests:?}");

    for (index, request) in requests.iter().enumerate() {
        let s3 = S3::start();
        objects
            .iter()
            .for_each(|(bytes, name)| s3.set_object(name, bytes.clone()));
        let (place, promoted, old) = (Place::s3(&s3), copy_of(&replica), copy_of(&site));
        copy_note(&site, &old);
        let (method, name) = request.split_once(' ').unwrap();
        let before = requests[..index].iter();
        let before = before.filter(|other| *other == request).count();
        s3.fail(method, name, Fault::Held, before + 1);
        let mut killed = promotion(&place, &promoted);
        for _ in 0..before {
            s3.wait_for_held();
            s3.release();
        }
        s3.wait_for_held();
        killed.kill();
        s3.heal();
        // A killed promotion leaves a replica. An entry that it wrote is followed.
        assert_replica(&promoted, "medfeed promote");
        promote(&place, &promoted);
        assert_fenced(&place, &old);
        let slot = note(&promoted).slot;
        assert_eq!(slot, if index >= put { 4 } else { 3 }, "{request}");
        assert_continues(&place, &promoted);
    }
}

#[test]
fn a_promotion_that_is_killed_at_any_moment_is_run_again() {
    let (kills, seed) = cases_and_seed(5, 20_261_126);
    let mut random = Random::new(seed);
    let (site, place) = published_in_folder();
    let mut origin = copy_of(&site);
    copy_note(&site, &origin);
    let (mut before, mut between, mut after) = (0, 0, 0);
    for _ in 0..kills {
        let replica = replica_of(&place);
        let slot = note(&origin).slot;
        let mut killed = promotion(&place, &replica);
        killed.ended_within(random.part_of(Duration::from_millis(70)));
        killed.kill();
        let is_put = place.bucket.get(&layout::log(slot + 1)).unwrap().is_some();
        let again = place.ends(&replica, &["promote", &place.url, "--yes"]);
        match again.code {
            Some(0) if is_put => between += 1,
            Some(0) => before += 1,
            _ => {
                let told = "is not a replica";
                again.assert_told(1, told);
                after += 1;
            }
        }
        assert_fenced(&place, &origin);
        assert_continues(&place, &replica);
        origin = replica;
    }
    println!(
        "killed before it was put {before}, before it was promoted {between}, after it {after}"
    );
    counted(kills, "kills");
}

#[test]
fn an_overtaken_promotion_leaves_one_history() {
    for by_promotion in [false, true] {
        let (s3, site, place) = published_in_s3();
        let [replica, other] = [replica_of(&place), replica_of(&place)];
        // Its last read finds nothing, and the response arrives only after another entry was written.
        let promoting = at_its_last_read(&s3, &place, &replica, 2);
        if by_promotion {
            promote(&place, &other);
        } else {
            commit(&site, 1);
            assert_eq!(place.once(&site), 1);
        }
        s3.release();
        if by_promotion {
            // The other one is the origin now. This one can still be promoted if that one is lost too.
            ends_with(promoting, 1, "the promotion");
            for piece in words![
                "another replica was made the origin at 20" "promoted in place of s3://" "run this command again"
            ] {
                assert_contains(&told_to(&replica), piece);
            }
            assert_replica(&replica, "is a replica of");
            assert_continues(&place, &other);
            assert_fenced(&place, &site);
            promote(&place, &replica);
            assert_fenced(&place, &other);
        } else {
            ends_with(promoting, 0, "the promotion");
            let slot = note(&replica).slot;
            assert_eq!(slot, 3, "after the entry of another publisher");
        }
        assert_fenced(&place, &site);
        assert_continues(&place, &replica);
    }
}

#[test]
fn an_overtaken_promotion_ignores_earlier_promotions() {
    let (s3, _site, place) = published_in_s3();
    let [other, away] = [replica_of(&place), replica_of(&place)];
    promote(&place, &other);
    commit(&other, 1);
    assert_eq!(place.once(&other), 1);
    // The promotion in slot 2 is passed over, because its origin has published since. That origin then writes another
    // entry first.
    let promoting = at_its_last_read(&s3, &place, &away, 4);
    commit(&other, 2);
    assert_eq!(place.once(&other), 1);
    s3.release();
    ends_with(promoting, 0, "the promotion");
    assert_eq!(note(&away).slot, 5, "after the entry of another publisher");
    assert_fenced(&place, &other);
    assert_continues(&place, &away);
}

#[test]
fn a_promotion_that_is_overtaken_again_and_again_ends_with_an_error() {
    let (s3, site, place) = published_in_s3();
    let replica = replica_of(&place);
    let promoting = at_its_last_read(&s3, &place, &replica, 2);
    for slot in 2..=4 {
        s3.wait_for_held();
        commit(&site, slot);
        assert_eq!(place.once(&site), 1);
        if slot < 4 {
            s3.fail("GET", &layout::log(slot + 1), Fault::Held, 1);
        }
        s3.release();
    }
    ends_with(promoting, 1, "the promotion");
    assert_contains(&told_to(&replica), "other publishers kept writing");
    assert_contains(&told_to(&replica), "run this command again");
    assert_replica(&replica, "medfeed promote");
    assert_continues(&place, &site);
    promote(&place, &replica);
    assert_fenced(&place, &site);
    assert_continues(&place, &replica);
}

/// A method, the fault of its next requests, and their number.
type Planned = (&'static str, Fault, usize);

#[test]
fn a_promotion_finishes_or_can_run_again_after_any_store_answer() {
    let lost = ("PUT", Fault::LostAnswer, 1);
    // The faults of the request that writes the entry and of those that read it back, and a part of the error.
    let cases: [(&[Planned], Option<&str>); 6] = cases![
        &[lost], None;
        &[("PUT", Fault::Code(409, "ConditionalRequestConflict"), 1)], None;
        &[("PUT", Fault::Code(403, "AccessDenied"), 1)], Some("s3:PutObject below the prefix");
        &[lost, ("GET", Fault::Code(403, "AccessDenied"), 9)], Some("unknown whether this replica took over");
        // The put is repeated at once, and refused.
        &[lost, ("PUT", Fault::Code(403, "AccessDenied"), 9)], None;
        &[lost, ("PUT", Fault::Code(412, "PreconditionFailed"), 1), ("PUT", Fault::Code(403, "AccessDenied"), 9),
            ("GET", Fault::Code(403, "AccessDenied"), 9)],
            Some("unknown whether this replica took over");
    ];
    for (faults, refusal) in cases {
        let (s3, site, place) = published_in_s3();
        let replica = replica_of(&place);
        let name = layout::log(2);
        let promoting = at_its_last_read(&s3, &place, &replica, 2);
        for (method, fault, times) in faults {
            s3.fail(method, &name, *fault, *times);
        }
        s3.release();
        let code = i32::from(refusal.is_some());
        ends_with(promoting, code, &format!("{faults:?}"));
        s3.heal();
        if let Some(refusal) = refusal {
            assert_contains(&told_to(&replica), refusal);
            promote(&place, &replica);
        }
        assert_fenced(&place, &site);
        assert_continues(&place, &replica);
    }
}

#[test]
fn a_replica_whose_bucket_cannot_be_read_stays_one() {
    let (s3, site, place) = published_in_s3();
    let replica = replica_of(&place);
    for options in [&[][..], &["--start-over"]] {
        s3.fail("GET", "", Fault::Code(403, "AccessDenied"), usize::MAX);
        let args = [&["promote", &place.url, "--yes"], options].concat();
        let refused = place.ends(&replica, &args);
        refused.assert_told(1, "AccessDenied");
        s3.heal();
        assert_replica(&replica, "is a replica of");
    }
    commit(&site, 1);
    assert_eq!(place.once(&site), 1, "the origin is still the origin");
    promote(&place, &replica);
    assert_continues(&place, &replica);
}

#[test]
fn a_promotion_behind_a_damaged_entry_names_start_over() {
    let (site, place) = published_in_folder();
    let replica = replica_of(&place);
    commit(&site, 1);
    place.once(&site);
    let name = layout::log(2);
    place.bucket.put(&name, b"rotten").unwrap();
    let refused = place.ends(&replica, &["promote", &place.url, "--yes"]);
    refused.assert_told(1, &name);
    refused.assert_err("does not have, add --start-over");
    // It is still a replica, which no publisher takes for a fenced origin.
    let refused = place.run(&replica, "--once");
    refused.assert_told(1, "is a replica of");
    assert!(!replica.path("feed.redb.published").exists());
    let done = place.json(&replica, &["promote", &place.url, "--start-over", "--yes"]);
    let expected = (&true.into(), &3.into());
    assert_eq!((&done["promoted"], &done["slot"]), expected);
    assert_eq!(follow(&place, &Site::new().db()), (3, None));
}

#[test]
fn a_replica_does_not_start_over_in_another_bucket() {
    let (site, other) = (curated(), curated());
    let (place, sealed) = (Place::folder(&site), Place::sealed_folder(&site));
    let another = Place::folder(&other);
    place.once(&site);
    another.once(&other);
    let replica = replica_of(&place);
    sealed.once(&site);
    let wrong = seal_key(&site, "other-key", 100).display().to_string();
    let cases: [(&str, &[&str], &str); 4] = cases![
        &another.url, &[], "the bucket holds database";
        &another.url, &["--seal-key", &wrong], "it is not sealed, though --seal-key is given";
        &sealed.url, &[], "is sealed; give the file of its key with --seal-key";
        &sealed.url, &["--seal-key", &wrong], "it was sealed with another key";
    ];
    for (url, options, expected) in cases {
        let done = replica.run([&["promote", url, "--start-over", "--yes"], options].concat());
        done.assert_told(1, expected);
        assert_replica(&replica, "is a replica of");
    }
    commit(&site, 1);
    assert_eq!(place.once(&site), 1, "the origin is still the origin");
    let done = place.json(&replica, &["promote", &place.url, "--start-over", "--yes"]);
    assert_eq!(done["promoted"], true);
    assert_continues(&place, &replica);
}

#[test]
fn a_wait_for_replicas_ends_when_another_publisher_takes_over() {
    let site = curated();
    let (id, _) = site.key("all", &[]);
    let place = Place::folder(&site);
    place.once(&site);
    let replica = replica_of(&place);
    let head = || Reader::open(&site.db()).unwrap().newest().commit().seq;
    let before = head();
    let told = fs::File::create(site.path("told")).unwrap();
    let mut command = site.command(["key", "revoke", &id, "--publish-wait", "1h"]);
    let waiting = Process::spawn(command.stdout(Stdio::null()).stderr(told));
    wait_for("it is done here", || head() > before);
    promote(&place, &replica);
    assert_fenced(&place, &site);
    ends_with(waiting, 4, "the waiting command");
    let told = told_to(&site);
    assert_contains(&told, "which is no longer published: ");
    assert_contains(&told, " published slot 2 at ");
    assert_continues(&place, &replica);
}

#[test]
fn a_former_origin_returns_as_a_replica() {
    let (site, place) = published_in_folder();
    let other = replica_of(&place);
    commit(&site, 1);
    commit(&site, 2);
    let promote_other =
        |yes: &[&str]| place.ends(&other, &[&["promote", &place.url], yes].concat());
    promote_other(&[]).assert_told(1, "nothing was promoted");
    promote_other(&["--yes"]).assert_shown(0, "stop the servers of the old origin");
    promote_other(&["--yes"]).assert_told(1, "is not a replica");
    // It names the commits that only its own file has.
    let (first, last) = (note(&site).seq + 1, rows_of(&site.db()).1.seq);
    let refused = place.run(&site, "--once");
    let expected = format!("2 commits (seq {first} to {last})");
    refused.assert_told(4, &expected);
    assert_fenced(&place, &site);
    commit(&other, 1);
    place.once(&other);
    // A backup in its place is refused too. Without the note it is a database of its own.
    fs::copy(site.backup("backup.redb"), site.db()).unwrap();
    assert_fenced(&place, &site);
    assert_eq!(site.run(["license", "list"]).code, Some(0));
    let alone = copy_of(&site);
    commit(&alone, 5);
    alone.check();
    // It follows under its old name, next to its old notes.
    fs::remove_file(site.db()).unwrap();
    let command = site.serve_command(&format!("--from {}", place.url));
    site.start(place.with_credentials(command)).stop();
    commit(&other, 2);
    place.once(&other);
    promote(&place, &site);
    assert_continues(&place, &site);
    place.json(&site, &["check", "--from", &place.url]);
    assert_fenced(&place, &other);
}

/// A token of a commit that was never published is refused at once.
#[test]
fn a_promoted_replica_knows_every_published_token() {
    let site = curated();
    let (_, key) = site.key("all", &[]);
    let place = Place::folder(&site);
    place.once(&site);
    let [next, other] = [replica_of(&place), replica_of(&place)];
    let serving = site.serve();
    let mut client = serving.client(&key);
    let mut token = || {
        let export = client.get("/v1/exports/conferences");
        export.header("x-sync-token").unwrap().to_owned()
    };
    let published = token();
    commit(&site, 1);
    let lost = wait_until("the commit is shown", SOON, || {
        Some(token()).filter(|token| *token != published)
    });
    serving.stop();
    promote(&place, &next);
    let following = other.start(place.serve_command(&other, "--poll 20ms"));
    for server in [next.serve(), following] {
        let mut client = server.client(&key);
        for (token, status) in [(&published, 200), (&lost, 410)] {
            let answer = client.get(&format!("/v1/conferences/changes?since={token}"));
            assert_eq!(answer.status, status, "{token}");
        }
        server.stop();
    }
}
