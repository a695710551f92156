//! Files that are replaced at a certain moment: the second checks after a lock and after a commit.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[path = "../../../tests/power/disk/observed.rs"]
mod observed;

use self::observed::open_observed;
use super::{Sample, everything, make_older, snapshot};
use crate::disk::{DiskEvent, DiskObserver, observe, observer};
use crate::store::file::notes::WriterNote;
use crate::store::file::open::open_databases_by;
use crate::store::file::replace::compact;
use crate::store::format::tables::SCHEMA;
use crate::store::restore::{Restoration, upgrade};
use crate::store::{StoreError, Writer};

/// Runs `action` at the first event that fits, and `run` meanwhile.
pub(super) fn at_moment<T>(
    fits: impl Fn(&DiskEvent<'_>) -> bool + Send + Sync + 'static,
    action: impl Fn() + Send + Sync + 'static,
    run: impl FnOnce() -> T,
) -> T {
    let is_done = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_done);
    observe(Some(Arc::new(move |event| {
        if fits(&event) && !seen.swap(true, Ordering::SeqCst) {
            action();
        }
    })));
    open_databases_by(open_observed);
    let done = run();
    observe(None);
    assert!(is_done.load(Ordering::SeqCst), "the moment came");
    done
}

fn is_file(file: &File, path: &Path) -> bool {
    let (one, other) = (file.metadata().unwrap(), fs::metadata(path).unwrap());
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Renames a file over another, as `mv` does.
fn moving(from: &Path, to: &Path) -> impl Fn() + Send + Sync + use<> {
    let (from, to) = (from.to_owned(), to.to_owned());
    move || fs::rename(&from, &to).unwrap()
}

fn is_replaced<T: std::fmt::Debug>(done: Result<T, StoreError>, path: &Path) {
    assert!(
        matches!(&done, Err(StoreError::Replaced { path: of }) if of == path),
        "{done:?}"
    );
}

/// A database with a license, and another one of more commits that is to be moved to its place.
fn two() -> (Sample, PathBuf) {
    let sample = Sample::new();
    sample.license("all", everything());
    let earlier = sample.copy_to("earlier.redb");
    sample.license("newer", everything());
    let newer = sample.copy_to("newer.redb");
    fs::rename(earlier, sample.path()).unwrap();
    (sample, newer)
}

fn licenses(path: &Path) -> Vec<String> {
    snapshot(path)
        .list_licenses()
        .iter()
        .map(|license| license.name.clone())
        .collect()
}

#[test]
fn a_commit_into_a_file_that_was_replaced_meanwhile_is_an_error() {
    let (sample, newer) = two();
    let path = sample.path();
    let writer = sample.writer();
    let mut edit = writer.begin().unwrap();
    edit.set_license("lost", everything(), None).unwrap();
    let is_sync = |event: &DiskEvent<'_>| matches!(event, DiskEvent::Sync { .. });
    drop(edit);
    drop(writer);
    // The observer must be set when the file is opened. So only the syncs of the commit match.
    let armed = Arc::new(AtomicBool::new(false));
    let is_armed = Arc::clone(&armed);
    let fits = move |event: &DiskEvent<'_>| is_armed.load(Ordering::SeqCst) && is_sync(event);
    let done = at_moment(fits, moving(&newer, &path), || {
        let writer = sample.writer();
        let mut edit = writer.begin().unwrap();
        edit.set_license("lost", everything(), None).unwrap();
        armed.store(true, Ordering::SeqCst);
        edit.commit()
    });
    is_replaced(done, &path);
    assert_eq!(licenses(&path), ["all", "newer"]);
}

#[test]
fn a_writer_opens_the_file_that_replaced_another_before_it_was_locked() {
    let (sample, newer) = two();
    let path = sample.path();
    let opens = |event: &DiskEvent<'_>| matches!(event, DiskEvent::Open { .. });
    let writer = at_moment(opens, moving(&newer, &path), || sample.writer());
    let mut edit = writer.begin().unwrap();
    edit.set_license("written", everything(), None).unwrap();
    edit.commit().unwrap();
    drop(writer);
    assert_eq!(licenses(&path), ["all", "newer", "written"]);
}

#[test]
fn a_compaction_does_not_replace_a_file_that_came_meanwhile() {
    let (sample, newer) = two();
    let path = sample.path();
    let of = path.clone();
    let copies = move |event: &DiskEvent<'_>| matches!(event, DiskEvent::Write { file, .. } if !is_file(file, &of));
    let done = at_moment(copies, moving(&newer, &path), || {
        compact(&path, Duration::ZERO)
    });
    is_replaced(done, &path);
    assert_eq!(licenses(&path), ["all", "newer"]);
}

#[test]
fn an_upgrade_does_not_replace_a_file_that_came_meanwhile() {
    let (sample, newer) = two();
    let path = sample.path();
    make_older(&path);
    let writes = |event: &DiskEvent<'_>| matches!(event, DiskEvent::Write { .. });
    let done = at_moment(writes, moving(&newer, &path), || {
        upgrade(&path, Duration::ZERO)
    });
    is_replaced(done, &path);
    assert_eq!(licenses(&path), ["all", "newer"]);
    assert!(!sample.at(&format!("medfeed.redb.format-{SCHEMA}")).exists());
}

/// A waiting writer opens the new file as soon as it has the name.
#[test]
fn the_next_writer_keeps_its_note_when_the_file_is_replaced() {
    let restore = |path: &Path, backup: &Path| {
        Restoration::prepare(path, backup, Duration::ZERO, None)
            .unwrap()
            .finish()
            .unwrap();
    };
    type Case<'c> = (&'c str, bool, &'c dyn Fn(&Path, &Path));
    let cases: [Case<'_>; 4] = cases![
        "compact", false, &|path, _| { assert!(compact(path, Duration::ZERO).is_ok()) };
        "restore", false, &restore;
        "restore over an old file", true, &restore;
        "upgrade", true, &|path, _| { assert!(upgrade(path, Duration::ZERO).is_ok()) };
    ];
    for (what, is_old, replace) in cases {
        let sample = Sample::new();
        let (path, backup) = (sample.path(), sample.copy_to("backup.redb"));
        if is_old {
            make_older(&path);
        }
        let next = Arc::new(Mutex::new(None));
        let (of, opened) = (path.clone(), Arc::clone(&next));
        let has_name =
            move |event: &DiskEvent<'_>| matches!(event, DiskEvent::Name { to, .. } if *to == of);
        let of = path.clone();
        let opens =
            move || *opened.lock().unwrap() = Some(Writer::open(&of, Duration::ZERO).unwrap());
        at_moment(has_name, opens, || replace(&path, &backup));
        assert!(WriterNote::read(&path).starts_with("process "), "{what}");
        next.lock().unwrap().take();
        assert!(
            !sample.at("medfeed.redb.writer").exists(),
            "{what}: it removes the note itself"
        );
    }
}

/// Between the two steps of a restore, the operator is asked.
#[test]
fn a_restore_does_not_replace_a_file_that_came_meanwhile() {
    for (what, is_there, is_old) in [
        ("a database", true, false),
        ("an old file", true, true),
        ("none", false, false),
    ] {
        let (sample, newer) = two();
        let (path, backup) = (sample.path(), sample.copy_to("backup.redb"));
        if is_old {
            make_older(&path);
        }
        if !is_there {
            fs::remove_file(&path).unwrap();
        }
        let restoration = Restoration::prepare(&path, &backup, Duration::ZERO, None).unwrap();
        moving(&newer, &path)();
        is_replaced(restoration.finish(), &path);
        assert_eq!(licenses(&path), ["all", "newer"], "{what}");
    }
}
