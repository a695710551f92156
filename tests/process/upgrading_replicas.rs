//! Buckets and replicas of other formats are refused. A replica whose rows lack a field of this program loads all data
//! again.

use std::fs;
use std::path::PathBuf;

use medfeed::replicate::state::{Manifest, decode_part, encode_part};
use medfeed::replicate::{entry, layout};
use medfeed::store::restore::SCHEMA;

use super::added_fields::{FIELD, has_field, take_field};
use super::origin::{Origin, Replica, copy_into, url_of};
use super::publishing::{commit, curated};
use super::replicas::{serve, wait_for_seq};
use super::site::Site;

/// A loaded replica of an older release, and the bytes of its file.
fn older_replica(origin: &Origin) -> (Replica, Vec<u8>) {
    let replica = origin.replica();
    replica.serve("").stop();
    take_field(&replica.site.db());
    let bytes = fs::read(replica.site.db()).unwrap();
    (replica, bytes)
}

/// Checks that serving a replica is refused with a text, and changes nothing.
fn is_refused(replica: &Site, url: &str, expected: &str) {
    let (files, before) = (replica.files(), fs::read(replica.db()).ok());
    let done = replica.ends(["serve", "--listen", "127.0.0.1:0", "--from", url]);
    assert!(done.code == Some(1) && done.stdout.is_empty(), "{done:?}");
    assert!(
        done.stderr.contains(expected),
        "no {expected:?} in {done:?}"
    );
    assert!(fs::read(replica.db()).ok() == before, "{done:?}");
    assert!(replica.files() == files, "{done:?}");
}

/// Changes the format of a bucket.
fn set_format(origin: &Origin, format: u32) {
    let paths = |folder: &str| -> Vec<PathBuf> {
        let listed = origin.bucket().list(folder, None).unwrap();
        listed
            .iter()
            .map(|object| origin.folder().join(&object.name))
            .collect()
    };
    for path in paths(layout::STATES) {
        let manifest = Manifest::decode(&fs::read(&path).unwrap()).unwrap();
        fs::write(
            &path,
            Manifest {
                schema: format,
                ..manifest
            }
            .encode()
            .unwrap(),
        )
        .unwrap();
    }
    for path in paths(layout::LOG) {
        let mut entry = entry::decode(&fs::read(&path).unwrap()).unwrap();
        entry.header.schema = format;
        let changes: Vec<&[u8]> = entry.changes.iter().map(Vec::as_slice).collect();
        fs::write(&path, entry::encode(&entry.header, &changes).unwrap().0).unwrap();
    }
}

#[test]
fn buckets_of_other_formats_are_refused() {
    let mut origin = Origin::new(curated());
    commit(&origin.site, 1);
    origin.publish();
    let replica = origin.replica();
    replica.serve("").stop();
    let (url, version) = (origin.url(), env!("CARGO_PKG_VERSION"));
    for (format, made) in [
        (SCHEMA - 1, "of an older medfeed"),
        (SCHEMA + 1, "made by a newer medfeed"),
    ] {
        set_format(&origin, format);
        let expected = format!(
            "the bucket has format {format}, {made}; medfeed {version} reads format {SCHEMA}"
        );
        is_refused(&Site::new(), &url, &expected);
        let site = Site::new();
        for args in [
            &["check", "--from", &url][..],
            &["backup", "copy.redb", "--from", &url],
        ] {
            let done = site.run(args);
            done.assert_told(1, &expected);
        }
        assert_eq!(site.files(), [""; 0]);
    }
}

/// The origin was upgraded: its bucket continues with a whole state of this format.
#[test]
fn a_bucket_with_states_of_an_older_format_is_checked_from_its_upgrade_on() {
    let mut origin = Origin::new(curated());
    commit(&origin.site, 1);
    origin.publish();
    set_format(&origin, SCHEMA - 1);
    let site = &origin.site;
    // The note has the hash of the last entry before this change.
    fs::remove_file(site.path("feed.redb.published")).unwrap();
    site.json(["publish", &origin.url(), "--once", "--start-over"]);
    let copy = site.path("copy.redb");
    site.json([
        "backup".as_ref(),
        copy.as_os_str(),
        "--from".as_ref(),
        origin.url().as_ref(),
    ]);
    assert_eq!(site.conferences_in(&copy), site.conferences_in(&site.db()));
    let replica = origin.replica();
    replica.serve("").stop();
    replica.site.check();
}

/// Renames a field in the list of fields of a whole state, as if another release had written it.
fn rename_field(origin: &Origin, slot: u64) {
    let path = |name: &str| origin.folder().join(name);
    let mut manifest = Manifest::decode(&fs::read(path(&layout::state(slot))).unwrap()).unwrap();
    let mut renamed = 0;
    for part in &mut manifest.parts {
        let mut changes = decode_part(part, &fs::read(path(&part.name)).unwrap()).unwrap();
        let field = format!("{FIELD}\n").into_bytes();
        if let Some(at) = changes
            .windows(field.len())
            .position(|window| window == field)
        {
            changes[at] ^= 1;
            renamed += 1;
        }
        let (bytes, changed) = encode_part(part.name.clone(), &changes).unwrap();
        fs::write(path(&part.name), bytes).unwrap();
        *part = changed;
    }
    assert_eq!(renamed, 1);
    fs::write(path(&layout::state(slot)), manifest.encode().unwrap()).unwrap();
}

/// The origin was upgraded to a release with more fields.
#[test]
fn a_bucket_with_states_of_other_fields_is_checked_from_its_upgrade_on() {
    let mut origin = Origin::new(curated());
    commit(&origin.site, 1);
    origin.publish();
    origin.publish_state();
    commit(&origin.site, 2);
    origin.publish();
    rename_field(&origin, 1);
    let (site, url) = (Site::new(), origin.url());
    site.json(["backup", "copy.redb", "--from", &url]);
    let checked = site.json(["check", "--from", &url]);
    assert_eq!(checked["states"], 1, "{checked}");
    assert_eq!(checked["entries"], 1, "{checked}");
}

#[test]
fn a_replica_that_lacks_a_field_loads_all_data_again() {
    let mut origin = Origin::new(curated());
    let (replica, _) = older_replica(&origin);
    for version in 1..=2 {
        commit(&origin.site, version);
        origin.publish();
        let (server, mut admin) = serve(&replica, "--poll 20ms");
        wait_for_seq(&origin, &mut admin);
        server.stop();
        assert!(has_field(&replica.site.db()));
        replica.site.check();
        let [here, there] =
            [&replica.site, &origin.site].map(|site| site.conferences_in(&site.db()));
        assert_eq!(here, there);
        fs::remove_dir_all(replica.site.path("exported")).unwrap();
    }
}

#[test]
fn a_replicas_file_is_not_upgraded_but_loaded_again() {
    let origin = Origin::new(curated());
    let (replica, bytes) = older_replica(&origin);
    let (replica, url) = (&replica.site, origin.url());
    let listed = replica.files();
    for args in [
        &["upgrade"][..],
        &["upgrade", "--dry-run"],
        &["upgrade", "--json"],
    ] {
        let done = replica.run(args);
        assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
        let told = format!("{}{}", done.stdout, done.stderr);
        for expected in ["feed.redb", "replica", "medfeed serve"] {
            assert!(
                told.contains(expected),
                "{args:?}: no {expected:?} in {told}"
            );
        }
    }
    assert_eq!(replica.run(["upgrade", "--if-needed"]).code, Some(0));
    for command in [
        &["promote", &url, "--yes"][..],
        &["log"],
        &["check"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let done = replica.ends(command);
        assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
    }
    let backup = origin.site.backup("backup.redb");
    let done = replica.run(["restore".as_ref(), backup.as_os_str(), "--yes".as_ref()]);
    done.assert_told(1, "is a replica of ");
    assert!(
        fs::read(replica.db()).unwrap() == bytes,
        "the replica's file changed"
    );
    assert_eq!(replica.files(), listed);
}

#[test]
fn a_replica_that_lacks_a_field_does_not_go_back_nor_to_another_database() {
    let mut origin = Origin::new(curated());
    let earlier = origin.site.path("earlier");
    fs::create_dir(&earlier).unwrap();
    copy_into(&origin.folder(), &earlier);
    commit(&origin.site, 1);
    origin.publish();
    let (replica, _) = older_replica(&origin);
    // An older copy of the same database's bucket.
    is_refused(&replica.site, &url_of(&earlier), "which never goes back");
    // Its seq is higher, because each restore of a published database skips many.
    let mut other = Origin::new(curated());
    other.publish_state();
    is_refused(&replica.site, &other.url(), "but the file is a replica of");
}
