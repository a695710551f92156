//! The monitoring of a publisher: its metrics, its readiness, and its notifications to systemd.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use medfeed::replicate::layout;
use medfeed::store::Reader;

use super::monitoring::{check_with_promtool, scrape};
use super::operators_page::get_from;
use super::published::{Place, Watched, note};
use super::publishing::{commit, copy_of, curated, in_folder, in_s3, published_in_folder};
use super::replicas::readyz;
use super::s3::Fault;
use super::site::{SOON, wait_for, wait_until};

/// The names of the samples of a publisher.
pub fn samples() -> Vec<String> {
    let site = curated();
    let mut publisher = Place::folder(&site).watch(&site, "");
    scrape(&mut publisher.admin)
        .into_keys()
        .map(|name| name.split('{').next().unwrap().to_owned())
        .collect()
}

#[test]
fn metrics_show_the_progress_of_publishing() {
    let (s3, site, place) = in_s3();
    let mut publisher = place.watch(&site, "--every 0s --heartbeat 50ms");
    publisher.wait_for("slot", |slot| slot == 1.0);
    commit(&site, 1);
    publisher.wait_for("slot", |slot| slot == 2.0);
    let second = place.run(&site, "--once");
    let expected = format!("is already published by process {}", publisher.process.id());
    second.assert_told(1, &expected);
    publisher.wait_for("behind_seconds", |behind| behind == 0.0);
    let samples = scrape(&mut publisher.admin);
    let expected = cases![
        "seq", Reader::open(&site.db()).unwrap().newest().commit().seq as f64;
        "waiting_commits", 0.0;
        "outbox_bytes", 0.0;
        "entries_total", 2.0;
        "states_total", 1.0;
        "bucket_failures_total", 0.0;
        "lost_objects_total", 0.0;
        "trouble_seconds", 0.0;
        "fenced", 0.0;
    ];
    for (name, expected) in expected {
        assert_eq!(
            samples[&format!("medfeed_publish_{name}")],
            expected,
            "{name}"
        );
    }
    assert!(
        samples
            .keys()
            .any(|name| name.starts_with("medfeed_build_info{"))
    );
    // While the publisher waits for the bucket, the metrics still count the waiting commits.
    s3.fail("PUT", "", Fault::Status(503), usize::MAX);
    for version in 2..=4 {
        commit(&site, version);
    }
    publisher.wait_for("waiting_commits", |commits| commits == 3.0);
    publisher.wait_for("outbox_bytes", |bytes| bytes > 1000.0);
    publisher.wait_for("behind_seconds", |behind| behind >= 1.0);
    publisher.wait_for("bucket_failures_total", |failures| failures > 1.0);
    publisher.wait_for("trouble_seconds", |trouble| trouble >= 1.0);
    assert_eq!(
        publisher.admin.get("/readyz").status,
        200,
        "that may be over in a moment"
    );
    s3.heal();
    publisher.wait_for("waiting_commits", |commits| commits == 0.0);
    publisher.wait_for("trouble_seconds", |trouble| trouble == 0.0);
    let logged = publisher.logged();
    assert!(logged.contains("publishing continues after "), "{logged}");
    let slot = scrape(&mut publisher.admin)["medfeed_publish_slot"];
    wait_for("it is noted", || note(&site).slot as f64 == slot);
    // A heartbeat that fails counts as a failure too, although the requests before it succeed.
    s3.fail("PUT", "/alive", Fault::Status(503), usize::MAX);
    publisher.wait_for("trouble_seconds", |trouble| trouble >= 1.0);
    s3.heal();
    publisher.wait_for("trouble_seconds", |trouble| trouble == 0.0);
    // The newest state is lost: it is counted, and another one is written.
    s3.set_object(&format!("some/prefix/{}", layout::state(1)), None);
    publisher.wait_for("lost_objects_total", |lost| lost >= 1.0);
    let told = "was published from here and is gone or damaged";
    assert!(publisher.logged().contains(told), "{}", publisher.logged());
    publisher.wait_for("states_total", |states| states == 2.0);
    check_with_promtool(&publisher.admin);
    for (target, status) in [
        ("/livez", 200),
        ("/readyz", 200),
        ("/", 404),
        ("/nothing", 404),
    ] {
        assert_eq!(publisher.admin.get(target).status, status, "{target}");
    }
    // It ends with exit code 0 on SIGTERM.
    publisher.process.signal("TERM");
    assert_eq!(publisher.process.exit_code(), Some(0));
    place.check(&site);
}

/// Takes a minute, so it runs only if `MEDFEED_CASES` is set.
#[test]
fn a_publisher_is_unready_after_a_minute_without_its_bucket() {
    if std::env::var_os("MEDFEED_CASES").is_none() {
        return;
    }
    let (s3, site, place) = in_s3();
    let mut publisher = place.watch(&site, "--every 0s");
    publisher.wait_for("slot", |slot| slot == 1.0);
    s3.fail("PUT", "", Fault::Status(503), usize::MAX);
    commit(&site, 1);
    let (_, told) = wait_until("it is unready", 4 * SOON, || {
        Some(readyz(&mut publisher.admin)).filter(|(status, _)| *status == 503)
    });
    assert!(told.starts_with("failing for 6"), "{told}");
    assert!(told.contains(&place.url), "{told}");
    s3.heal();
    wait_until("it is ready again", 3 * SOON, || {
        (publisher.admin.get("/readyz").status == 200).then_some(())
    });
}

#[test]
fn a_fenced_publisher_keeps_running_for_monitoring() {
    let (site, place) = published_in_folder();
    let other = copy_of(&site);
    let mut publisher = place.watch(&other, "--heartbeat 20ms");
    publisher.wait_for("slot", |slot| slot == 1.0);
    commit(&site, 1);
    place.once(&site);
    publisher.wait_for("fenced", |fenced| fenced == 1.0);
    let (status, told) = readyz(&mut publisher.admin);
    assert!(
        status == 503 && told.starts_with("fenced: ") && told.contains("published slot 2 at"),
        "{told}"
    );
    // It publishes no more, and its lock is free.
    let refused = place.run(&other, "--once");
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let refused = other.run(["key", "create", "--license", "all"]);
    refused.assert_told(4, "is no longer published from here: ");
    let told = place.run(&other, "--status");
    told.assert_out("does not contain this end");
    // A copy that did not publish the last entry is too late. Its error also names the remedy.
    let third = copy_of(&other);
    let late = place.run(&third, "--once");
    for piece in words![
        "does not contain the last entry of " "slot 2 there, published by " "--start-over"
    ] {
        late.assert_told(4, piece);
    }
    assert!(!late.stderr.contains("this very file"), "{late:?}");
    let code = third.run(["key", "create", "--license", "all"]).code;
    assert_eq!(code, Some(4));
    assert_eq!(publisher.process.ended_within(Duration::ZERO), None);
    publisher.process.signal("TERM");
    assert_eq!(publisher.process.exit_code(), Some(4));
}

#[test]
fn monitoring_beyond_this_machine_needs_an_option() {
    let (site, place) = in_folder();
    let refused = place.run(&site, "--admin-listen 0.0.0.0:0");
    refused.assert_told(1, "--plain-http");
    assert!(!site.path("bucket").exists(), "nothing is published");
    let publisher = place.watch(&site, "--plain-http --admin-host feed.example");
    for (host, status) in [("feed.example", 200), ("evil.example", 421)] {
        for target in ["/metrics", "/readyz"] {
            assert_eq!(
                get_from(publisher.admin.address(), host, target).status,
                status,
                "{host} {target}"
            );
        }
    }
}

#[test]
fn systemd_is_notified_once_everything_is_published() {
    let (s3, site, place) = in_s3();
    let socket = UnixDatagram::bind(site.path("notify")).unwrap();
    let told = |wait: Duration| {
        socket.set_read_timeout(Some(wait)).unwrap();
        let mut buffer = [0; 512];
        socket
            .recv(&mut buffer)
            .map(|length| String::from_utf8(buffer[..length].to_vec()).unwrap())
    };
    s3.fail("PUT", "/log/", Fault::Status(503), usize::MAX);
    // All settings come from variables, as in a unit.
    let mut command = site.command(["publish"]);
    command
        .env("MEDFEED_PUBLISH_URL", &place.url)
        .env("NOTIFY_SOCKET", site.path("notify"))
        .envs(s3.environment());
    command.env("MEDFEED_ADMIN_LISTEN", "127.0.0.1:0");
    let mut publisher = Watched::start(&site, &mut command);
    publisher.wait_for("bucket_failures_total", |failures| failures > 0.0);
    let kind = told(Duration::from_millis(1)).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::WouldBlock, "nothing is published");
    s3.heal();
    assert_eq!(told(2 * SOON).unwrap().trim(), "READY=1");
    assert_eq!(place.check(&site).slot, 1);
    publisher.process.signal("TERM");
    assert_eq!(told(SOON).unwrap().trim(), "STOPPING=1");
    assert_eq!(publisher.process.exit_code(), Some(0));
    let logged = publisher.logged();
    assert!(!logged.contains("unknown variable"), "{logged}");
}
