//! Licenses, keys and restores at times that are seconds apart.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{Sample, batch, conference, conferences, everything, in_country, make_older};
use crate::model::key::KeyStatus;
use crate::model::{DatabaseId, Dataset, KeyRecord, Timestamp};
use crate::store::StoreError;
use crate::store::file::notes::PublishedNote;
use crate::store::restore::Restoration;
use crate::store::write::licensing::KeySettings;

fn at(unix_s: i64) -> Timestamp {
    Timestamp::from_unix_s(unix_s)
}

fn key(sample: &Sample, id: &str) -> KeyRecord {
    (**sample
        .snapshot()
        .list_keys()
        .into_iter()
        .find(|key| key.id == id)
        .unwrap())
    .clone()
}

#[test]
fn a_replaced_key_keeps_its_settings_and_ends_after_the_overlap() {
    let sample = Sample::new();
    let settings = KeySettings {
        label: Some("warehouse".to_owned()),
        expires_at: Some(at(9_000)),
        allowed_ips: vec!["192.0.2.0/24".parse().unwrap()],
    };
    sample.license_at(1_000, "all", everything());
    let old = sample.edit_at(2_000, |edit| edit.create_key("all", settings).unwrap().1);
    let new = sample.edit_at(3_000, |edit| edit.replace_key(&old.id, 600).unwrap().1);
    assert_eq!(
        new,
        KeyRecord {
            id: new.id.clone(),
            created_at: at(3_000),
            ..old.clone()
        }
    );
    let stored = key(&sample, &old.id);
    assert_eq!(stored.revoked_at, Some(at(3_600)));
    assert_eq!(stored.replaced_by.as_ref(), Some(&new.id));
    assert_eq!(stored.created_at, at(2_000));
    for (time, expected) in [
        (3_599, KeyStatus::Replaced),
        (3_600, KeyStatus::Revoked),
        (9_000, KeyStatus::Revoked),
    ] {
        assert_eq!(stored.status_after(at(time), at(time)), expected, "{time}");
    }
    // It is replaced once, and can be revoked before its end, but not twice.
    sample.edit_at(3_100, |edit| {
        let again = edit.replace_key(&old.id, 600).unwrap_err();
        assert!(
            matches!(
                again,
                StoreError::KeyOutOfUse {
                    status: "replaced",
                    ..
                }
            ),
            "{again}"
        );
        let revoked_at = edit.revoke_key(&old.id).unwrap().revoked_at;
        assert_eq!(revoked_at, Some(at(3_100)));
        let again = edit.revoke_key(&old.id).unwrap_err();
        assert!(
            matches!(
                again,
                StoreError::KeyOutOfUse {
                    status: "revoked",
                    ..
                }
            ),
            "{again}"
        );
    });
    sample.edit_at(9_000, |edit| {
        let expired = edit.replace_key(&new.id, 600).unwrap_err();
        assert!(
            matches!(
                expired,
                StoreError::KeyOutOfUse {
                    status: "expired",
                    ..
                }
            ),
            "{expired}"
        );
    });
}

/// The overlap would last until long after the time that the operator meant.
#[test]
fn no_overlap_begins_at_a_commit_by_a_clock_that_was_ahead() {
    let sample = Sample::new();
    let ahead = 10_000;
    let ids = sample.edit_at(ahead, |edit| {
        edit.set_license("all", everything(), None).unwrap();
        [(); 4].map(|()| edit.create_key("all", KeySettings::default()).unwrap().1.id)
    });
    let cases = [
        (121, 600, None),
        (120, 600, Some(ahead + 600)),
        (121, 0, Some(ahead)),
        (0, 600, Some(ahead + 600)),
    ];
    for (id, (behind, overlap_s, expected)) in ids.iter().zip(cases) {
        let replaced = sample.edit_at(ahead - behind, |edit| {
            edit.replace_key(id, overlap_s).map(drop)
        });
        match expected {
            None => {
                let refused = replaced.unwrap_err().to_string();
                assert!(refused.contains("121 seconds behind"), "{refused}");
                assert!(refused.contains("--overlap 0s"), "{refused}");
            }
            Some(_) => replaced.unwrap(),
        }
        let revoked_at = key(&sample, id).revoked_at;
        assert_eq!(revoked_at, expected.map(at), "{behind} s behind");
    }
    // A key expires by the clock, as for servers, and not by the time of that commit.
    let settings = KeySettings {
        expires_at: Some(at(ahead - 60)),
        ..KeySettings::default()
    };
    let id = sample.edit_at(ahead, |edit| edit.create_key("all", settings).unwrap().1.id);
    sample
        .edit_at(ahead - 121, |edit| edit.replace_key(&id, 0).map(drop))
        .unwrap();
}

#[test]
fn keys_are_listed_oldest_first() {
    let sample = Sample::new();
    sample.license_at(1_000, "all", everything());
    // Their ids are random, so eight keys are hardly ever in the order of their ids.
    let create = |unix_s| {
        sample.edit_at(unix_s, |edit| {
            edit.create_key("all", KeySettings::default()).unwrap().1.id
        })
    };
    let created: Vec<String> = (2_000..2_008).map(create).collect();
    let listed: Vec<String> = sample
        .snapshot()
        .list_keys()
        .iter()
        .map(|key| key.id.clone())
        .collect();
    assert_eq!(listed, created);
}

#[test]
fn a_license_is_as_old_as_its_first_scope() {
    let sample = Sample::new();
    for (unix_s, scope, rate_limit) in [
        (1_000, conferences(), None),
        (2_000, in_country("Spain"), None),
        (3_000, everything(), Some(7)),
    ] {
        sample.edit_at(unix_s, |edit| {
            edit.set_license("acme", scope, rate_limit).unwrap()
        });
        let snapshot = sample.snapshot();
        let created_at = snapshot.find_license_named("acme").unwrap().created_at;
        assert_eq!(created_at, at(1_000), "at {unix_s}");
    }
}

#[test]
fn removing_a_license_ends_all_its_keys() {
    let sample = Sample::new();
    let expiring = |unix_s| KeySettings {
        expires_at: Some(at(unix_s)),
        ..KeySettings::default()
    };
    sample.edit_at(1_000, |edit| {
        edit.set_license("gone", everything(), None).unwrap();
        edit.set_license("stays", everything(), None).unwrap();
    });
    let [active, overlapping, expired, revoked, other] = sample.edit_at(2_000, |edit| {
        let mut new = |license: &str, settings| edit.create_key(license, settings).unwrap().1.id;
        let plain = KeySettings::default;
        [
            new("gone", plain()),
            new("gone", plain()),
            new("gone", expiring(2_500)),
            new("gone", plain()),
            new("stays", plain()),
        ]
    });
    let new = sample.edit_at(3_000, |edit| {
        edit.revoke_key(&revoked).unwrap();
        edit.replace_key(&overlapping, 86_400).unwrap().1.id
    });
    let count = sample.edit_at(4_000, |edit| edit.remove_license("gone").unwrap());
    assert_eq!(
        count, 3,
        "the active one, the one in its overlap, and its successor"
    );
    for (id, expected) in [
        (&active, 4_000),
        (&overlapping, 4_000),
        (&new, 4_000),
        (&expired, 4_000),
        (&revoked, 3_000),
    ] {
        assert_eq!(key(&sample, id).revoked_at, Some(at(expected)), "{id}");
    }
    assert_eq!(key(&sample, &other).revoked_at, None);
}

#[test]
fn records_enter_a_license_in_the_order_of_their_last_changes() {
    let sample = Sample::new();
    let spanish = |number| conference(number, |fields| fields.country = Some("Spain".to_owned()));
    sample.edit_at(1_000, |edit| edit.apply(&batch([spanish(5)])).unwrap());
    sample.edit_at(2_000, |edit| {
        edit.apply(&batch([spanish(3), spanish(9)])).unwrap()
    });
    sample.edit_at(3_000, |edit| edit.apply(&batch([spanish(1)])).unwrap());
    sample.license_at(4_000, "spain", in_country("France"));
    let change = sample.license_at(5_000, "spain", in_country("Spain"));
    assert_eq!(
        change
            .effects
            .iter()
            .map(|effect| effect.entering)
            .collect::<Vec<_>>(),
        [4]
    );
    let snapshot = sample.snapshot();
    let license = snapshot.find_license_named("spain").unwrap();
    let entries = snapshot.entries(license, Dataset::Conferences, 0).unwrap();
    let order: Vec<u64> = entries.after(0).map(|entry| entry.id.get()).collect();
    assert_eq!(order, [5, 3, 9, 1]);
}

#[test]
fn licenses_share_a_feed_until_the_last_one_leaves_it() {
    let sample = Sample::new();
    sample.edit(|edit| {
        edit.apply(&batch((1..4).map(|number| conference(number, |_| {}))))
            .unwrap()
    });
    sample.license("one", conferences());
    let new = sample.edit(|edit| edit.set_license("two", conferences(), Some(7)).unwrap());
    assert!(
        new.created && new.scope_changed && !new.rate_limit_changed,
        "it had no limit before"
    );
    let feed = |name: &str| {
        let snapshot = sample.snapshot();
        snapshot
            .find_license_named(name)
            .and_then(|license| license.feed(Dataset::Conferences))
    };
    let shared = feed("one").unwrap();
    assert_eq!(feed("two"), Some(shared));
    let count = sample.snapshot().feeds.len();
    assert_eq!(count, 3, "the shared feed and two baselines");
    let seqs = |name: &str| {
        let snapshot = sample.snapshot();
        (
            snapshot.commit().seq,
            snapshot.find_license_named(name).unwrap().scope_seq,
        )
    };
    let before = seqs("two");
    let change = sample.edit(|edit| edit.set_license("two", conferences(), Some(8)).unwrap());
    assert!(!change.scope_changed && change.rate_limit_changed && !change.created);
    assert_eq!(seqs("two"), (before.0 + 1, before.1), "tokens stay valid");
    let same = sample.license("two", conferences());
    assert!(!same.scope_changed && !same.rate_limit_changed);
    assert_eq!(seqs("two").0, before.0 + 1, "nothing is changed");
    sample.license("one", in_country("Spain"));
    let expected = (Some(shared), false);
    assert_eq!((feed("two"), feed("one") == Some(shared)), expected);
    assert!(sample.snapshot().feeds.contains_key(&shared));
    sample.edit(|edit| edit.remove_license("two").unwrap());
    let feeds = sample.snapshot().feeds.len();
    assert_eq!(
        feeds, 2,
        "the feed and the baseline of the license that is left"
    );
}

#[test]
fn a_revocation_that_a_restore_keeps_is_as_old_as_the_restored_state() {
    let sample = Sample::new();
    let [now_revoked, overlapping, sooner, kept] = sample.edit_at(1_000, |edit| {
        edit.set_license("all", everything(), None).unwrap();
        [(); 4].map(|()| edit.create_key("all", KeySettings::default()).unwrap().1.id)
    });
    sample.edit_at(1_500, |edit| edit.replace_key(&sooner, 100).unwrap());
    sample.copy_to("backup.redb");
    // Far in the future, as by a clock that was ahead. Commit times never decrease, so it counts.
    let ahead = crate::model::time::now().plus_s(10_000).unix_s();
    sample.edit_at(ahead, |edit| {
        edit.revoke_key(&now_revoked).unwrap();
        edit.revoke_key(&sooner).unwrap_err();
        edit.replace_key(&overlapping, 5_000).unwrap();
    });
    let restoration = Restoration::prepare(
        &sample.path(),
        &sample.at("backup.redb"),
        Duration::ZERO,
        None,
    )
    .unwrap();
    let differences = &restoration.differences;
    assert_eq!(
        differences.keys_that_stay_revoked,
        std::slice::from_ref(&now_revoked)
    );
    assert_eq!(
        differences.keys_that_stop.len(),
        1,
        "the successor of the replaced key"
    );
    restoration.finish().unwrap();
    assert_eq!(
        key(&sample, &now_revoked).revoked_at,
        Some(at(1_500)),
        "revoked whatever the clock says"
    );
    let replaced = key(&sample, &overlapping);
    assert_eq!(
        replaced.revoked_at,
        Some(at(ahead + 5_000)),
        "its overlap is not cut short"
    );
    assert!(replaced.replaced_by.is_some());
    let revoked_at = key(&sample, &sooner).revoked_at;
    assert_eq!(revoked_at, Some(at(1_500)), "its overlap is over");
    assert_eq!(key(&sample, &kept).revoked_at, None);
}

#[test]
fn a_key_that_the_backup_revokes_gets_no_overlap_from_the_replaced_database() {
    let sample = Sample::new();
    let old = sample.edit_at(1_000, |edit| {
        edit.set_license("all", everything(), None).unwrap();
        edit.create_key("all", KeySettings::default()).unwrap().1.id
    });
    let overlap_s = crate::model::time::now().unix_s();
    sample.edit_at(2_000, |edit| edit.replace_key(&old, overlap_s).unwrap());
    let earlier = sample.copy_to("earlier.redb");
    sample.edit_at(3_000, |edit| edit.revoke_key(&old).unwrap());
    let backup = sample.copy_to("backup.redb");
    std::fs::rename(earlier, sample.path()).unwrap();
    assert_eq!(
        key(&sample, &old).revoked_at,
        Some(at(2_000 + overlap_s)),
        "its overlap continues"
    );
    Restoration::prepare(&sample.path(), &backup, Duration::ZERO, None)
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(key(&sample, &old).revoked_at, Some(at(3_000)));
}

#[test]
fn a_restore_is_before_the_commits_that_it_replaces_only_if_they_are_not_published() {
    for is_published in [true, false] {
        let sample = Sample::new();
        sample.license_at(1_000, "all", everything());
        if is_published {
            sample.writer().mark_published().unwrap();
        }
        let backup = sample.copy_to("backup.redb");
        // By a clock that was ahead. Replicas have this commit if it is published, and their callers its time.
        let ahead = crate::model::time::now().plus_s(10_000);
        sample.edit_at(ahead.unix_s(), |edit| {
            edit.set_license("more", everything(), None).unwrap()
        });
        Restoration::prepare(&sample.path(), &backup, Duration::ZERO, None)
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!(sample.snapshot().commit().time == ahead, is_published);
    }
}

#[test]
fn a_restore_replaces_nothing_that_another_publisher_took_over() {
    let sample = Sample::new();
    let (path, backup) = (sample.path(), sample.copy_to("backup.redb"));
    let note = PublishedNote {
        url: "file:///srv".to_owned(),
        id: DatabaseId([1; 16]),
        slot: 1,
        seq: 1,
        lineage: [0; 16],
        hash: [0; 32],
        fenced: Some("host b took over".to_owned()),
        fenced_at: None,
    };
    note.write(&path).unwrap();
    type Case = (&'static str, fn(&Path));
    let files: [Case; 4] = [
        ("of this format", |_| {}),
        ("of an older release", make_older),
        ("damaged", |path| fs::write(path, "garbage").unwrap()),
        ("missing", |path| fs::remove_file(path).unwrap()),
    ];
    for (what, make) in files {
        make(&path);
        let restored = Restoration::prepare(&path, &backup, Duration::ZERO, None);
        assert!(
            matches!(restored, Err(StoreError::Fenced { .. })),
            "{what}: {restored:?}"
        );
    }
}
