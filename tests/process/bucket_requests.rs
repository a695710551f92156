//! The number of requests of a publisher and a replica, counted by the store, and their price on S3. Prices per request
//! are those of Amazon S3 Standard, us-east-1: $0.005 for 1,000 puts or lists, $0.0004 for 1,000 gets; deletes are
//! free.

use medfeed::replicate::layout;

use super::published::note;
use super::publishing::{commit, curated, in_s3, published_in_s3};
use super::site::{SOON, Site, wait_for, wait_until};

const PUT_OR_LIST: f64 = 0.005 / 1000.0;
const GET: f64 = 0.0004 / 1000.0;
const MINUTES_A_MONTH: f64 = 30.0 * 24.0 * 60.0;
/// The usual seconds between two heartbeats.
const HEARTBEAT_S: f64 = 40.0;

/// Requests by kind.
#[derive(Debug, Default)]
struct Requests {
    puts: f64,
    lists: f64,
    gets: f64,
    others: f64,
}

impl Requests {
    fn of(requests: &[String]) -> Requests {
        let mut all = Requests::default();
        for request in requests {
            match request.split_once(' ').unwrap() {
                ("PUT", _) => all.puts += 1.0,
                // Further pages of a list are due to the small pages of this store.
                ("GET", target) if target.contains("continuation-token=") => {}
                ("GET", target) if target.contains("list-type=") => all.lists += 1.0,
                ("GET", _) => all.gets += 1.0,
                _ => all.others += 1.0,
            }
        }
        all
    }

    fn dollars(&self) -> f64 {
        (self.puts + self.lists) * PUT_OR_LIST + self.gets * GET
    }
}

#[test]
fn an_idle_publisher_costs_half_a_dollar_a_month() {
    const HEARTBEATS: usize = 60;
    let (s3, site, place) = published_in_s3();
    let _publisher = place.start(&site, "--every 0s --heartbeat 100ms");
    let heartbeats = || {
        s3.requests()
            .iter()
            .filter(|request| request.starts_with("PUT") && request.ends_with("/alive"))
            .count()
    };
    let begun = wait_until("the first heartbeat", SOON, || {
        Some(heartbeats()).filter(|heartbeats| *heartbeats >= 3)
    });
    let before = s3.requests().len();
    wait_for("many heartbeats", || heartbeats() >= begun + HEARTBEATS);
    let requests = s3.requests().split_off(before);
    // Each heartbeat is one put.
    let all = Requests::of(&requests);
    let heartbeats_a_minute = 60.0 / HEARTBEAT_S;
    let dollars = all.dollars() / all.puts * heartbeats_a_minute * MINUTES_A_MONTH;
    println!(
        "an idle publisher, for {} heartbeats: {all:?}; ${dollars:.2} a month",
        all.puts
    );
    assert!(all.lists <= 0.13 * all.puts, "{all:?}: {requests:?}");
    assert!(all.gets <= 4.4 * all.puts, "{all:?}: {requests:?}");
    assert!(dollars <= 0.50, "{dollars}");
}

#[test]
fn a_commit_is_one_put() {
    let (s3, site, place) = in_s3();
    let publisher = place.start(&site, "--every 0s --heartbeat 1h");
    for version in 1..=3 {
        let before = s3.requests().len();
        commit(&site, version);
        wait_for("it is noted", || note(&site).slot == version + 1);
        // The first commit also counts the requests of the start.
        if version == 1 {
            continue;
        }
        let requests = s3.requests().split_off(before);
        let expected = [
            format!("PUT feed/some/prefix/{}", layout::log(version + 1)),
            format!("GET feed/some/prefix/{}", layout::log(version)),
        ];
        assert_eq!(requests, expected);
    }
    drop(publisher);
}

#[test]
fn a_refused_start_puts_nothing_into_the_bucket() {
    let (s3, site, place) = in_s3();
    let requests_of = |site: &Site, options: &str, code: i32| {
        let before = s3.requests().len();
        let done = place.run(site, options);
        assert_eq!(done.code, Some(code), "{done:?}");
        s3.requests().split_off(before)
    };
    let first = Requests::of(&requests_of(&site, "--once", 0));
    commit(&site, 1);
    let again = requests_of(&site, "--once", 0);
    let cost = Requests::of(&again);
    println!(
        "the first start: {first:?}, ${:.5}; a further one: {cost:?}, ${:.6}",
        first.dollars(),
        cost.dollars()
    );
    // The start creates one name eight times at once.
    assert!(cost.puts <= 10.0 && cost.lists <= 4.0, "{again:?}");
    let first_put = again.iter().find(|request| request.starts_with("PUT"));
    assert!(
        first_put.is_some_and(|request| request.contains("/probe/")),
        "{again:?}"
    );
    // A refused publisher does not test the store.
    let other = curated();
    let refused = requests_of(&other, "--once", 1);
    assert!(
        !refused.iter().any(|request| request.starts_with("PUT")),
        "{refused:?}"
    );
    // A start every 10 seconds, as systemd makes them, for a month.
    let month = cost.dollars() * 6.0 * MINUTES_A_MONTH;
    println!("a publisher that ends at once and is started every 10 s: ${month:.2} a month");
    assert!(month < 20.0, "{month}");
}

#[test]
fn a_poll_of_a_replica_is_one_request() {
    const POLLS: usize = 100;
    let (s3, _site, place) = published_in_s3();
    let node = Site::new();
    let server = node.start(place.serve_command(&node, "--poll 20ms"));
    let next = layout::log(2);
    let polls = || {
        s3.requests()
            .iter()
            .filter(|request| request.ends_with(&next))
            .count()
    };
    let begun = wait_until("a poll", SOON, || Some(polls()).filter(|polls| *polls > 3));
    let before = s3.requests().len();
    wait_for("many polls", || polls() >= begun + POLLS);
    let requests = Requests::of(&s3.requests().split_off(before));
    assert!(
        requests.lists + requests.puts + requests.others == 0.0,
        "{requests:?}"
    );
    // The heartbeat is also read every 15 s, whatever the interval.
    assert!(requests.gets <= 1.03 * 100.0 + 3.0, "{requests:?}");
    server.stop();
}
