//! Revoked keys stop working on replicas: with the commit, or after `--max-staleness` if the replica is cut off. The
//! replica's clock does not matter.
//!
//! `MEDFEED_CASES` sets how many keys are revoked in each way. Then `--every` and `--poll` have their defaults, and the
//! times have limits. Otherwise only the order of events is checked.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use medfeed::model::time::now;
use medfeed::store::Reader;

use super::client::Client;
use super::clocks::{Clock, wait_for_clock};
use super::monitoring::{scrape, start_watched};
use super::origin::{Replica, url_of};
use super::published::{Place, note};
use super::publishing::{curated, in_folder, published_in_folder};
use super::replicas::seq_of;
use super::site::{Random, SOON, Server, Site, wait_for, wait_until_every};
use crate::properties::variable;

const HOUR_S: i64 = 3600;
/// A request that every key of the license may make.
const TARGET: &str = "/v1/conferences?limit=1";
/// The time between two requests with a watched key.
const REQUEST_EVERY: Duration = Duration::from_millis(5);

/// A replica that reaches the bucket by its own symbolic link, and its clock.
struct LinkedReplica {
    clock: Option<Clock>,
    ahead_s: i64,
    link: PathBuf,
    away: PathBuf,
    server: Server,
    admin: Client,
    /// Keeps the replica's folder.
    _replica: Replica,
}

impl LinkedReplica {
    /// Starts a replica, with a clock of its own that is `ahead_s` seconds ahead. `None` if no clock can be shifted.
    fn start(
        place: &Place,
        site: &Site,
        ahead_s: Option<i64>,
        options: &str,
    ) -> Option<LinkedReplica> {
        let own = Site::new();
        let (link, away) = (own.path("bucket"), own.path("away"));
        std::os::unix::fs::symlink(site.path("bucket"), &link).unwrap();
        let replica = Replica {
            url: url_of(&link),
            site: own,
        };
        let mut command =
            place.with_credentials(replica.site.serve_command(&replica.options(options)));
        let clock = if ahead_s.is_some() {
            Some(Clock::new(&replica.site)?)
        } else {
            None
        };
        let ahead_s = ahead_s.unwrap_or_default();
        if let Some(clock) = &clock {
            clock.set(ahead_s);
            clock.apply_to(&mut command);
        }
        let (server, admin) = start_watched(&replica.site, command);
        wait_for("it answers", || {
            Client::new(server.address, None).get("/v1/status").status == 200
        });
        wait_for_clock(&server, ahead_s);
        Some(LinkedReplica {
            clock,
            ahead_s,
            link,
            away,
            server,
            admin,
            _replica: replica,
        })
    }

    fn cut_off(&self) {
        fs::rename(&self.link, &self.away).unwrap();
    }

    fn connect(&self) {
        fs::rename(&self.away, &self.link).unwrap();
    }

    fn wait_for_status(&self, key: &str, status: u16) {
        let mut client = self.server.client(key);
        let what = format!(
            "status {status} at the replica whose clock is {} s ahead",
            self.ahead_s
        );
        wait_until_every(REQUEST_EVERY, &what, SOON, || {
            (client.get(TARGET).status == status).then_some(())
        });
    }

    /// Waits until a key is refused. Once the replica shows the commit that revoked it, no request with it succeeds.
    /// Returns the time.
    fn wait_until_refused(
        &mut self,
        key: &str,
        begun: Instant,
        revoked: &OnceLock<u64>,
    ) -> Duration {
        let mut client = self.server.client(key);
        wait_until_every(REQUEST_EVERY, "the key is refused", SOON, || {
            let knows = revoked
                .get()
                .is_some_and(|seq| seq_of(&mut self.admin) >= *seq as f64);
            let answer = client.get(TARGET);
            match answer.status {
                401 => {
                    assert_eq!(answer.problem(), "revoked_api_key");
                    return Some(begun.elapsed());
                }
                200 => assert!(
                    !knows,
                    "clock {} s ahead: answered after the commit was there",
                    self.ahead_s
                ),
                // On a busy machine the last poll may be too long ago.
                status => assert_eq!(status, 503, "clock {} s ahead", self.ahead_s),
            }
            None
        })
    }

    /// Waits until a replica that is cut off answers 503. Then checks that a key that was revoked meanwhile never works
    /// again. Returns the time.
    fn wait_until_silent(&self, revoked: &str, sound: &str, cut: Instant) -> Duration {
        let mut client = self.server.client(revoked);
        let silent =
            wait_until_every(
                REQUEST_EVERY,
                "the staleness is too much",
                SOON,
                || match client.get(TARGET).status {
                    200 => None,
                    status => {
                        assert_eq!(status, 503, "clock {} s ahead", self.ahead_s);
                        Some(cut.elapsed())
                    }
                },
            );
        self.connect();
        wait_until_every(REQUEST_EVERY, "the key is refused", SOON, || {
            match client.get(TARGET).status {
                401 => Some(()),
                status => {
                    assert_eq!(
                        status, 503,
                        "clock {} s ahead: once silent it answers no revoked key",
                        self.ahead_s
                    );
                    None
                }
            }
        });
        self.wait_for_status(sound, 200);
        silent
    }
}

/// Does `work` with all replicas at once.
fn each<T: Send>(
    watched: &mut [LinkedReplica],
    work: impl Fn(&mut LinkedReplica) -> T + Sync,
) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = watched
            .iter_mut()
            .map(|replica| scope.spawn(|| work(replica)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// Prints the median and the largest of some times. Returns the largest.
fn print_times(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let (median, largest) = (times[times.len() / 2], *times.last().unwrap());
    println!(
        "{what}: {} times, median {median:.2?}, largest {largest:.2?}",
        times.len()
    );
    largest
}

#[test]
fn a_revoked_key_gets_401_on_every_replica() {
    let (cases, seed) = (
        variable("MEDFEED_CASES"),
        variable("MEDFEED_SEED").unwrap_or(20_261_124),
    );
    println!("MEDFEED_SEED={seed} MEDFEED_CASES={}", cases.unwrap_or(2));
    let staleness = Duration::from_secs(if cases.is_some() { 3 } else { 1 });
    let (publishing, following) = match cases {
        Some(_) => ("", format!("--max-staleness {staleness:?}")),
        None => (
            "--every 0s",
            format!("--poll 20ms --max-staleness {staleness:?}"),
        ),
    };
    let mut random = Random::new(seed);
    let (site, place) = in_folder();
    let publisher = place.start(&site, publishing);
    let sound = site.key("all", &[]).1;
    let mut watched: Vec<LinkedReplica> = [None, Some(HOUR_S), Some(-HOUR_S)]
        .into_iter()
        .filter_map(|ahead_s| LinkedReplica::start(&place, &site, ahead_s, &following))
        .collect();
    let (mut deaths, mut silences) = (Vec::new(), Vec::new());
    for _ in 0..cases.unwrap_or(2) {
        let [connected, cut_off] = [site.key("all", &[]), site.key("all", &[])];
        let made = Reader::open(&site.db()).unwrap().newest().commit().seq;
        for replica in &mut watched {
            // Unknown keys cause only a few polls a minute.
            wait_for("the keys are known", || {
                seq_of(&mut replica.admin) >= made as f64
            });
            replica.wait_for_status(&connected.1, 200);
            replica.wait_for_status(&cut_off.1, 200);
        }
        // The publisher and the replicas poll at times of their own.
        std::thread::sleep(random.part_of(if cases.is_some() {
            Duration::from_secs(1)
        } else {
            REQUEST_EVERY
        }));
        let revoke = |id: &str| {
            let done = site.run(["key", "revoke", id]);
            assert_eq!(done.code, Some(0), "{done:?}");
            note(&site).seq
        };

        let (begun, revoked) = (Instant::now(), OnceLock::new());
        std::thread::scope(|scope| {
            let dying = scope.spawn(|| {
                each(&mut watched, |replica| {
                    replica.wait_until_refused(&connected.1, begun, &revoked)
                })
            });
            revoked.set(revoke(&connected.0)).unwrap();
            deaths.extend(dying.join().unwrap());
        });

        watched.iter().for_each(LinkedReplica::cut_off);
        let cut = Instant::now();
        revoke(&cut_off.0);
        silences.extend(each(&mut watched, |replica| {
            replica.wait_until_silent(&cut_off.1, &sound, cut)
        }));
    }
    let latest_death = print_times("a connected replica refused a revoked key after", deaths);
    let latest_silence = print_times("a replica that was cut off answered 503 after", silences);
    if cases.is_some() {
        // --every, --poll, and a second for all processes.
        assert!(latest_death <= Duration::from_secs(3), "{latest_death:?}");
        // Requests are some milliseconds apart.
        assert!(
            latest_silence <= staleness + Duration::from_millis(500),
            "{latest_silence:?}"
        );
    }
    drop(publisher);
    watched
        .into_iter()
        .for_each(|replica| replica.server.stop());
}

#[test]
fn staleness_does_not_depend_on_the_wall_clock() {
    let (site, place) = published_in_folder();
    let key = site.key("all", &[]).1;
    place.once(&site);
    // With a clock that is set ahead by an hour, the replica is not stale earlier. With one that is set back by an
    // hour, it is stale all the same.
    for (set_s, staleness, status) in [(HOUR_S, "20m", 200), (-HOUR_S, "2s", 503)] {
        let options = format!("--poll 20ms --max-staleness {staleness}");
        let Some(mut watched) = LinkedReplica::start(&place, &site, Some(0), &options) else {
            return;
        };
        watched.wait_for_status(&key, 200);
        watched.cut_off();
        wait_for("it is cut off", || {
            watched.admin.get("/readyz").body != b"ok\n"
        });
        watched.clock.as_ref().expect("its clock").set(set_s);
        wait_for_clock(&watched.server, set_s);
        watched.wait_for_status(&key, status);
        let stale_s = scrape(&mut watched.admin)["medfeed_replica_stale_seconds"];
        assert!(
            stale_s < 300.0,
            "{stale_s} s by a clock that was set by {set_s} s"
        );
        watched.server.stop();
    }
}

#[test]
fn a_key_that_was_revoked_by_a_clock_that_was_ahead_is_listed_as_revoked() {
    let site = curated();
    let (id, _) = site.key("all", &[]);
    let Some(clock) = Clock::new(&site) else {
        return;
    };
    clock.set(HOUR_S);
    let mut revoke = site.command(["key", "revoke", &id]);
    revoke.stdout(Stdio::null());
    clock.apply_to(&mut revoke);
    assert!(revoke.status().unwrap().success());
    let keys = site.json(["key", "list"])["keys"]
        .as_array()
        .unwrap()
        .clone();
    let key = keys.iter().find(|key| key["id"] == id.as_str()).unwrap();
    assert!(
        key["revoked_at"].as_str() > Some(&now().to_string()),
        "{key}"
    );
    assert_eq!(key["status"], "revoked");
    let listed = site.run(["key", "list"]).stdout;
    let line = listed.lines().find(|line| line.starts_with(&id)).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("revoked"), "{listed}");
}
