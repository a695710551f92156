//! Files that are replaced before a write, or before another file is renamed over them.

use super::*;
use crate::store::tests::make_older;

/// Renames another database over a file, as `mv` does.
fn replace(origin: &TestOrigin, path: &Path) {
    let other = origin.at("other.redb");
    std::fs::copy(origin.path(), &other).unwrap();
    std::fs::rename(&other, path).unwrap();
}

fn is_replaced<T: std::fmt::Debug>(done: &Result<T, StoreError>) -> bool {
    matches!(done, Err(StoreError::Replaced { .. }))
}

#[test]
fn writing_into_a_replaced_file_is_an_error() {
    let origin = TestOrigin::new();
    let writer = origin.writer();
    replace(&origin, &origin.path());
    let done = writer.mark_published();
    assert!(is_replaced(&done), "{done:?}");
    drop(writer);
    assert_eq!(origin.view().id().unwrap(), None);
    origin.writer().mark_published().unwrap();

    type Write = fn(ReplicaWriter) -> Result<Writer, StoreError>;
    let writes: [(&str, Write); 2] = [
        ("promote", ReplicaWriter::promote),
        ("start over", |replica| {
            replica.start_over("file:///srv/feed")
        }),
    ];
    for (what, write) in writes {
        let replica = origin.replica();
        replace(&origin, &origin.at("replica.redb"));
        let done = write(replica);
        assert!(is_replaced(&done), "{what}: {done:?}");
        std::fs::remove_file(origin.at("replica.redb")).unwrap();
    }
}

#[test]
fn a_loaded_replica_replaces_the_file_that_was_opened_and_no_other() {
    type Replace = Box<dyn FnOnce(LoadedDraft) -> Result<ReplicaWriter, StoreError>>;
    for is_older in [false, true] {
        let origin = TestOrigin::published();
        let path = origin.at("replica.redb");
        let open = || -> Replace {
            let _ = std::fs::remove_file(&path);
            drop(origin.replica());
            if is_older {
                make_older(&path);
                let old = ReplicaWriter::open_older(&path).unwrap();
                return Box::new(|draft| draft.persist(Some(old)));
            }
            let old = ReplicaWriter::open(&path).unwrap();
            Box::new(|draft| draft.persist(Some(old)))
        };
        let persist = open();
        std::fs::hard_link(&path, origin.at("second.redb")).unwrap();
        let message = persist(origin.draft()).unwrap_err().to_string();
        assert!(message.contains("it has 2 names (hard links)"), "{message}");
        let persist = open();
        replace(&origin, &path);
        let done = persist(origin.draft());
        assert!(is_replaced(&done), "{done:?}");
        let head = open()(origin.draft()).unwrap().head().unwrap().head();
        assert_eq!(head, origin.head());
    }
}
