//! A bucket with sealed objects: every command works with its key, and is refused without it.

use std::fs;

use medfeed::replicate::layout;

use super::monitoring::start_watched;
use super::origin::Replica;
use super::promotion::replica_of;
use super::published::{Place, rows_of, seal_key};
use super::publishing::{commit, curated};
use super::replicas::readyz;
use super::site::{Site, wait_for};

/// Checks that the folder's objects contain no known text.
fn assert_opaque(site: &Site, place: &Place, words: &[&str]) {
    for folder in [layout::LOG, layout::STATES, layout::PARTS] {
        for object in place.bucket.list(folder, None).unwrap() {
            let stored = fs::read(site.path("sealed").join(&object.name)).unwrap();
            assert!(stored.starts_with(b"medfeed sealed 1\n"), "{}", object.name);
            let text = String::from_utf8_lossy(&stored);
            assert!(
                words.iter().all(|word| !text.contains(word)),
                "{}",
                object.name
            );
        }
    }
}

#[test]
fn a_sealed_bucket_serves_all_commands_that_have_its_key() {
    let site = curated();
    let place = Place::sealed_folder(&site);
    place.once(&site);
    let replica = replica_of(&place);
    for version in 1..=3 {
        commit(&site, version);
        place.once_with(&site, "--state-every 0s");
    }
    assert_opaque(
        &site,
        &place,
        &[
            "Conference",
            "all",
            "blake",
            &site.path("").display().to_string(),
        ],
    );
    let (backup, url) = (site.path("backup.redb"), place.url.as_str());
    place.json(&site, &["backup", backup.to_str().unwrap(), "--from", url]);
    assert!(site.conferences_in(&backup) == site.conferences_in(&site.db()));
    assert_eq!(place.json(&site, &["check", "--from", url])["slot"], 7);
    let server = replica.start(place.serve_command(&replica, "--log info"));
    wait_for("it has caught up", || {
        rows_of(&replica.db()) == rows_of(&site.db())
    });
    let logged = server.logged();
    assert!(!logged.contains("not sealed"), "{logged}");
    server.stop();
    place.json(&replica, &["promote", url, "--yes"]);
    commit(&replica, 4);
    assert_eq!(place.once(&replica), 1);
    assert_eq!(place.check(&replica).slot, 9);
    assert_eq!(place.run(&site, "--once").code, Some(4));
}

#[test]
fn a_sealed_bucket_is_refused_without_its_key() {
    let site = curated();
    let place = Place::sealed_folder(&site);
    place.once(&site);
    let (replica, fresh) = (replica_of(&place), Site::new());
    let wrong = seal_key(&site, "other-key", 100).display().to_string();
    let url = place.url.as_str();
    let (no_key, other_key): (&[&str], &[&str]) = (&[], &["--seal-key", &wrong]);
    let commands: [(&Site, &[&str]); 6] = cases![
        &fresh, &["serve", "--listen", "127.0.0.1:0", "--from", url];
        &fresh, &["backup", "copy.redb", "--from", url];
        &fresh, &["backup", "copy.redb", "--from", url, "--at", "2030-01-01"];
        &fresh, &["check", "--from", url];
        &replica, &["promote", url, "--yes"];
        &site, &["publish", url, "--once"];
    ];
    for (site, command) in commands {
        for (key, expected) in cases![
            no_key, "is sealed; give the file of its key with --seal-key";
            other_key, "it was sealed with another key or under another name, or its bytes were changed";
        ] {
            let done = site.ends([command, key].concat());
            done.assert_told(1, expected);
        }
    }
    assert!(fresh.files().is_empty(), "{:?}", fresh.files());

    // An existing replica neither continues without the key nor with another key.
    let follow = ["serve", "--listen", "127.0.0.1:0", "--from", url];
    let done = replica.ends(follow);
    done.assert_told(1, "is sealed; give the file");
    let replica = Replica {
        site: replica,
        url: url.to_owned(),
    };
    let options = replica.options(&format!("--seal-key {wrong}"));
    let (server, mut admin) = start_watched(&replica.site, replica.site.serve_command(&options));
    let (status, told) = readyz(&mut admin);
    assert!(status == 503, "{told}");
    assert!(told.contains("sealed with another key"), "{told}");
    assert_eq!(server.client("any key").get("/v1/conferences").status, 503);
    server.stop();

    // A key for a bucket that is not sealed.
    let other = curated();
    let plain = Place::folder(&other);
    plain.once(&other);
    let done = other.ends(["check", "--from", &plain.url, "--seal-key", &wrong]);
    done.assert_told(1, "it is not sealed, though --seal-key is given");
    place.once(&site);
    place.check(&site);
}
