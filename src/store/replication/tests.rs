//! Cases that the properties of random histories do not cover: limits, notes, gaps, replaced files.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::ReadableTable;

use super::*;
use crate::model::{CommitInfo, Head, License, RowDigest, Scope};
use crate::store::check::check;
use crate::store::file::metadata::resolve;
use crate::store::file::replace::{backup, compact};
use crate::store::format::outbox::digest_of;
use crate::store::format::rows::{seal, unseal};
use crate::store::format::tables;
use crate::store::restore::Restoration;
use crate::store::write::licensing::KeySettings;
use crate::store::{Reader, StoreError, Writer};

mod replaced;

/// An origin in a folder, with one license.
struct TestOrigin {
    folder: tempfile::TempDir,
}

impl TestOrigin {
    fn new() -> TestOrigin {
        let origin = TestOrigin {
            folder: tempfile::tempdir().unwrap(),
        };
        let writer = Writer::open_or_create(&origin.path(), Duration::ZERO).unwrap();
        let mut edit = writer.begin().unwrap();
        edit.set_license("all", Scope::nothing(), None).unwrap();
        edit.commit().unwrap();
        origin
    }

    fn published() -> TestOrigin {
        let origin = TestOrigin::new();
        origin.writer().mark_published().unwrap();
        origin
    }

    fn at(&self, name: &str) -> PathBuf {
        resolve(&self.folder.path().join(name))
    }

    fn path(&self) -> PathBuf {
        self.at("origin.redb")
    }

    fn writer(&self) -> Writer {
        Writer::open(&self.path(), Duration::ZERO).unwrap()
    }

    fn view(&self) -> OriginView {
        view(&self.path())
    }

    /// Adds a commit with about `bytes` of changes.
    fn commit(&self, bytes: usize) -> Head {
        commit(&self.writer(), bytes)
    }

    fn head(&self) -> Head {
        self.view().head().unwrap().head()
    }

    /// A note which says that everything up to now is published.
    fn note(&self) -> PublishedNote {
        let Head { seq, lineage } = self.head();
        let id = self.view().id().unwrap().unwrap();
        PublishedNote {
            url: "file:///srv".to_owned(),
            id,
            slot: 1,
            seq,
            lineage,
            hash: [0; 32],
            fenced: None,
            fenced_at: None,
        }
    }

    /// Writes a backup of a file to `backup.redb`.
    fn backup(&self, name: &str) {
        let reader = Reader::open(&self.at(name)).unwrap();
        backup(&reader, &self.at("backup.redb")).unwrap();
    }

    fn replica(&self) -> ReplicaWriter {
        self.draft().persist(None).unwrap()
    }

    fn draft(&self) -> LoadedDraft {
        let mut draft = ReplicaDraft::create_for(&self.at("replica.redb")).unwrap();
        let view = self.view();
        let digest = view.dump::<StoreError>(100, &mut |part| {
            draft.add_part(&part).unwrap();
            Ok(())
        });
        draft
            .finish(&mark(&view, digest.unwrap()), self.head())
            .unwrap()
    }
}

fn restore(path: &Path, from: &Path) {
    Restoration::prepare(path, from, Duration::ZERO, None)
        .unwrap()
        .finish()
        .unwrap();
}

fn view(path: &Path) -> OriginView {
    Reader::open(path).unwrap().origin().unwrap()
}

fn mark(view: &OriginView, digest: RowDigest) -> ReplicaMark {
    let id = view.id().unwrap().unwrap();
    ReplicaMark {
        url: "file:///srv/feed".to_owned(),
        id,
        slot: 1,
        hash: [0; 32],
        digest,
    }
}

fn commit(writer: &Writer, bytes: usize) -> Head {
    let mut edit = writer.begin().unwrap();
    let settings = KeySettings {
        label: Some("x".repeat(bytes)),
        ..KeySettings::default()
    };
    edit.create_key("all", settings).unwrap();
    edit.commit().unwrap();
    writer.snapshot().unwrap().commit().head()
}

/// The last seqs of the outbox's commits after a commit; `None` for a gap.
fn waiting(view: &OriginView, end: Head, max_bytes: u64) -> Option<Vec<u64>> {
    let commits = view.pending_after(end, max_bytes).unwrap()?;
    Some(commits.iter().map(|commit| commit.last_seq).collect())
}

/// Checks that the stored digest is that of the rows.
fn adds_up(path: &Path) {
    let reader = Reader::open(path).unwrap();
    let expected = digest_of(&reader.file.begin_read().unwrap()).unwrap();
    assert_eq!(reader.origin().unwrap().digest().unwrap(), expected);
    let report = check(&mut Writer::open_any(path, Duration::ZERO).unwrap()).unwrap();
    assert_eq!(report.damages, 0, "{:?}", report.findings);
}

#[test]
fn only_a_published_database_keeps_changes() {
    let origin = TestOrigin::new();
    let base = origin.head();
    origin.commit(1);
    assert_eq!(origin.view().id().unwrap(), None);
    assert_eq!(waiting(&origin.view(), base, u64::MAX), None);
    let id = origin.writer().mark_published().unwrap();
    assert_eq!(origin.view().id().unwrap(), Some(id));
    let found = waiting(&origin.view(), base, u64::MAX);
    assert_eq!(found, None, "what came before is not kept");
    let from = origin.head();
    assert_eq!(waiting(&origin.view(), from, u64::MAX), Some(Vec::new()));
    let next = origin.commit(1);
    let expected = Some(vec![next.seq]);
    assert_eq!(waiting(&origin.view(), from, u64::MAX), expected);
    adds_up(&origin.path());
}

#[test]
fn an_unpublished_database_records_nothing() {
    for (origin, is_published) in [(TestOrigin::new(), false), (TestOrigin::published(), true)] {
        let writer = origin.writer();
        let mut edit = writer.begin().unwrap();
        assert_eq!(edit.tx.stop_recording().1.is_some(), is_published);
        drop(edit);
        drop(writer);
        // The note of a database that is not published is not read.
        std::fs::write(origin.at("origin.redb.published"), "no note").unwrap();
        assert_eq!(origin.writer().begin().is_err(), is_published);
    }
}

#[test]
fn a_published_database_without_its_id_is_not_written() {
    let origin = TestOrigin::published();
    let writer = origin.writer();
    let tx = writer.begin_raw().unwrap();
    tx.open_table(tables::META)
        .unwrap()
        .remove(tables::META_DATABASE)
        .unwrap();
    tx.commit().unwrap();
    let message = writer.begin().unwrap_err().to_string();
    assert!(
        message.contains("the id of the published database is missing"),
        "{message}"
    );
}

#[test]
fn pending_commits_are_in_order_and_limited() {
    let origin = TestOrigin::published();
    let from = origin.head();
    let heads = [10, 2_000_000, 10].map(|bytes| origin.commit(bytes));
    // The second commit exceeds a quarter of the file. So the outbox is dropped, but the file grows.
    assert_eq!(waiting(&origin.view(), from, u64::MAX), None);
    let expected = Some(vec![heads[2].seq]);
    assert_eq!(waiting(&origin.view(), heads[1], u64::MAX), expected);
    adds_up(&origin.path());
    let from = origin.head();
    let heads = [100_000; 5].map(|bytes| origin.commit(bytes));
    let seqs = heads.map(|head| head.seq);
    let view = origin.view();
    assert_eq!(waiting(&view, from, u64::MAX), Some(seqs.to_vec()));
    assert_eq!(waiting(&view, from, 250_000), Some(seqs[..2].to_vec()));
    let expected = Some(seqs[2..3].to_vec());
    assert_eq!(waiting(&view, heads[1], 1), expected, "one at least");
    assert!(heads.iter().all(|head| view.holds(*head).unwrap()));
    let mixed = Head {
        seq: seqs[0],
        ..heads[1]
    };
    assert!(!view.holds(mixed).unwrap() && view.holds(Head::default()).unwrap());
    let commits = view
        .pending_after(from, u64::MAX)
        .unwrap()
        .expect("they wait");
    assert_eq!(commits[0].base, from);
    assert_eq!(commits[1].base, heads[0]);
    assert_eq!(
        view.changes(&commits[4]).unwrap().len() as u64,
        commits[4].bytes
    );
    adds_up(&origin.path());
}

#[test]
fn a_full_outbox_is_dropped() {
    let origin = TestOrigin::published();
    let from = origin.head();
    let mut emptied = 0;
    for _ in 0..30 {
        let before = origin.head();
        origin.commit(150_000);
        emptied += usize::from(waiting(&origin.view(), before, u64::MAX).is_none());
    }
    assert!((1..10).contains(&emptied), "{emptied} of 30 commits");
    assert_eq!(waiting(&origin.view(), from, u64::MAX), None);
    adds_up(&origin.path());
}

#[test]
fn published_commits_leave_the_outbox() {
    let origin = TestOrigin::published();
    let from = origin.head();
    origin.commit(10);
    let note = origin.note();
    let others = [
        PublishedNote {
            lineage: [9; 16],
            ..note.clone()
        },
        PublishedNote {
            id: crate::model::DatabaseId([9; 16]),
            ..note.clone()
        },
    ];
    for other in others {
        other.write(&origin.path()).unwrap();
        origin.commit(10);
        assert_eq!(
            waiting(&origin.view(), from, u64::MAX).unwrap()[0],
            note.seq,
            "{other:?}"
        );
    }
    note.write(&origin.path()).unwrap();
    let last = origin.commit(10);
    assert_eq!(waiting(&origin.view(), from, u64::MAX), None);
    assert_eq!(
        waiting(&origin.view(), note.head(), u64::MAX)
            .unwrap()
            .len(),
        3
    );
    origin.note().write(&origin.path()).unwrap();
    let next = origin.commit(10);
    let expected = Some(vec![next.seq]);
    assert_eq!(waiting(&origin.view(), last, u64::MAX), expected);
}

#[test]
fn published_commits_do_not_count_for_the_limit_of_the_outbox() {
    let origin = TestOrigin::published();
    origin.commit(100_000);
    // The publisher is always one commit behind, so the outbox is never empty. 3 MB pass through it, three times its
    // limit.
    for turn in 0..30 {
        let (published, waits) = (origin.note(), origin.head());
        origin.commit(100_000);
        published.write(&origin.path()).unwrap();
        assert!(
            waiting(&origin.view(), waits, u64::MAX).is_some(),
            "commit {turn}"
        );
    }
    adds_up(&origin.path());
}

#[test]
fn a_commit_that_the_outbox_lost_is_a_gap() {
    let origin = TestOrigin::published();
    let from = origin.head();
    let lost = origin.commit(10);
    let next = origin.commit(10);
    let writer = origin.writer();
    let tx = writer.begin_raw().unwrap();
    tx.open_table(tables::OUTBOX)
        .unwrap()
        .retain_in((lost.seq, 0)..=(lost.seq, u32::MAX), |_, _| false)
        .unwrap();
    tx.commit().unwrap();
    drop(writer);
    assert_eq!(waiting(&origin.view(), from, u64::MAX), None);
    let expected = Some(vec![next.seq]);
    assert_eq!(waiting(&origin.view(), lost, u64::MAX), expected);
}

#[test]
fn copies_keep_the_id() {
    let origin = TestOrigin::published();
    let (id, from) = (origin.view().id().unwrap(), origin.head());
    let next = origin.commit(10);
    origin.backup("origin.redb");
    compact(&origin.path(), Duration::ZERO).unwrap();
    assert_eq!(origin.view().id().unwrap(), id);
    assert_eq!(waiting(&origin.view(), next, u64::MAX), Some(Vec::new()));
    let found = waiting(&origin.view(), from, u64::MAX);
    assert_eq!(found, None, "a compact file has no outbox");
    adds_up(&origin.path());
    let copy = view(&origin.at("backup.redb"));
    assert_eq!(copy.id().unwrap(), id);
    let found = waiting(&copy, from, u64::MAX);
    assert_eq!(found, None, "a backup is not published");
    assert_eq!(copy.digest().unwrap(), origin.view().digest().unwrap());
    // A backup of a replica is an ordinary database.
    drop(origin.replica());
    origin.backup("replica.redb");
    commit(
        &Writer::open(&origin.at("backup.redb"), Duration::ZERO).unwrap(),
        10,
    );
}

#[test]
fn a_restore_skips_the_lost_seqs() {
    for damaged in [false, true] {
        let origin = TestOrigin::published();
        let id = origin.view().id().unwrap();
        origin.backup("origin.redb");
        let lost = origin.commit(10);
        origin.note().write(&origin.path()).unwrap();
        if damaged {
            std::fs::write(origin.path(), "of no use").unwrap();
        }
        restore(&origin.path(), &origin.at("backup.redb"));
        let view = origin.view();
        assert_eq!(view.id().unwrap(), id);
        assert_eq!(view.restored_over().unwrap(), Some(lost));
        let other = |seq| Head {
            seq,
            lineage: [7; 16],
        };
        let heads = [
            lost,
            other(lost.seq - 1),
            other(lost.seq),
            other(lost.seq + 1),
        ];
        assert_eq!(
            heads.map(|head| view.is_restored_over(head).unwrap()),
            [true, true, false, false]
        );
        assert!(!view.holds(lost).unwrap());
        let head = origin.head();
        assert_eq!(head.seq, lost.seq + (1 << 32));
        assert_eq!(waiting(&view, lost, u64::MAX), None);
        adds_up(&origin.path());
        let next = origin.commit(10);
        let expected = Some(vec![next.seq]);
        assert_eq!(waiting(&origin.view(), head, u64::MAX), expected);
        // Restore over the restored database.
        restore(&origin.path(), &origin.at("backup.redb"));
        assert_eq!(origin.view().restored_over().unwrap(), Some(next));
        assert_eq!(origin.head().seq, next.seq + (1 << 32));
        adds_up(&origin.path());
    }
}

#[test]
fn a_restore_of_an_unpublished_database_skips_no_seqs() {
    let origin = TestOrigin::new();
    let head = origin.head();
    origin.backup("origin.redb");
    origin.commit(10);
    restore(&origin.path(), &origin.at("backup.redb"));
    // The restore itself is a commit.
    assert_eq!(origin.head().seq, head.seq + 1);
    assert_eq!(origin.view().id().unwrap(), None);
    assert_eq!(origin.view().restored_over().unwrap(), None);
    // A published database that is restored at another path is not published there.
    origin.writer().mark_published().unwrap();
    std::fs::copy(origin.path(), origin.at("copy.redb")).unwrap();
    let elsewhere = origin.at("elsewhere.redb");
    restore(&elsewhere, &origin.at("copy.redb"));
    assert_eq!(view(&elsewhere).head().unwrap().seq, head.seq + 2);
    assert_eq!(view(&elsewhere).id().unwrap(), origin.view().id().unwrap());
    let before = view(&elsewhere).head().unwrap().head();
    commit(&Writer::open(&elsewhere, Duration::ZERO).unwrap(), 1);
    assert_eq!(waiting(&view(&elsewhere), before, u64::MAX), None);
}

#[test]
fn a_replica_replaces_its_origin() {
    let origin = TestOrigin::published();
    let mut replica = origin.replica();
    let (id, base) = (origin.view().id().unwrap().unwrap(), origin.head());
    let (jump, changes) = replica.prepare_promotion("promoted").unwrap();
    let found = replica.head().unwrap().head();
    assert_eq!(found, base, "nothing is changed yet");
    assert_eq!((jump.base, jump.last_seq), (base, base.seq + (1 << 32)));
    replica
        .apply(&[(jump, &changes)], &mark(&origin.view(), jump.digest))
        .unwrap();
    let writer = replica.promote().unwrap();
    let head = writer.snapshot().unwrap().commit().head();
    assert_eq!(
        head,
        Head {
            seq: jump.last_seq,
            lineage: jump.lineage
        }
    );
    let next = commit(&writer, 10);
    drop(writer);
    let path = origin.at("replica.redb");
    assert_eq!(waiting(&view(&path), head, u64::MAX), Some(vec![next.seq]));
    assert_eq!(view(&path).id().unwrap(), Some(id));
    drop(Writer::open(&path, Duration::ZERO).unwrap());
    adds_up(&path);
}

#[test]
fn invalid_changes_are_rejected() {
    let origin = TestOrigin::published();
    let mut replica = origin.replica();
    let base = origin.head();
    origin.commit(10);
    let view = origin.view();
    let commits = view.pending_after(base, 1).unwrap().expect("it waits");
    let commit = commits[0];
    let changes = view.changes(&commit).unwrap();
    let with = |table: u8, key: &[u8], value: &[u8]| {
        let mut encoder = crate::store::format::changes::ChangeEncoder::default();
        encoder.put(table, key, value);
        encoder.finish()
    };
    let unordered = {
        let mut encoder = crate::store::format::changes::ChangeEncoder::default();
        encoder.run_row(3, &[9; 8], b"");
        encoder.run_row(3, &[8; 8], b"");
        encoder.finish()
    };
    let mut backwards = crate::store::format::changes::ChangeEncoder::default();
    backwards.remove_range(3, &[9; 8], &[8; 8]);
    let mut over_local_rows = crate::store::format::changes::ChangeEncoder::default();
    over_local_rows.remove_range(0, b"a", b"z");
    const OTHER: &str = "the rows are of another version of medfeed";
    let foreign: [(Vec<u8>, &str); 10] = cases![
        with(12, b"", b""), "there is no table 12";
        with(0, b"publish", b""), "a local row";
        over_local_rows.finish(), "a range that may contain a local row";
        with(0, b"schema", &(SCHEMA + 1).to_le_bytes()), OTHER;
        with(0, b"fields", b"conferences.x\n"), OTHER;
        with(0, &[0xff], b""), "an invalid key for table 0";
        with(6, &[0; 9], &[0; 23]), "an invalid value for table 6";
        unordered, "a run whose rows are not in order";
        backwards.finish(), "a range that ends before it begins";
        vec![9], "the bytes end within a change";
    ];
    for (changes, expected) in &foreign {
        let refused = replica.apply(&[(commit, changes)], &mark(&view, commit.digest));
        let message = refused.unwrap_err().to_string();
        let expected = if *expected == OTHER {
            OTHER.to_owned()
        } else {
            format!("the changes cannot be applied: {expected}")
        };
        assert_eq!(message, expected);
    }
    let other = Head {
        lineage: [9; 16],
        ..base
    };
    let wrong: [(CommitInfo, RowDigest, &str); 5] = cases![
        CommitInfo { base: other, ..commit }, commit.digest, "or of another history";
        CommitInfo { lineage: [9; 16], ..commit }, commit.digest, "or of another history";
        CommitInfo { last_seq: 99, ..commit }, commit.digest, "the commit follows seq 99";
        CommitInfo { digest: RowDigest([1; 4]), ..commit }, commit.digest, "do not add up";
        commit, RowDigest([1; 4]), "do not add up";
    ];
    for (wrong, digest, expected) in wrong {
        let message = replica
            .apply(&[(wrong, &changes)], &mark(&view, digest))
            .unwrap_err()
            .to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(replica.head().unwrap().head(), base);
    replica
        .apply(&[(commit, &changes)], &mark(&view, commit.digest))
        .unwrap();
    drop(replica);
    adds_up(&origin.at("replica.redb"));
}

#[test]
fn an_incomplete_load_gets_no_name() {
    let origin = TestOrigin::published();
    origin.commit(10);
    let view = origin.view();
    let digest = view.digest().unwrap();
    let mut parts = Vec::new();
    view.dump::<StoreError>(64, &mut |part| {
        parts.push(part);
        Ok(())
    })
    .unwrap();
    let mut duplicated = parts.clone();
    duplicated.push(parts[0].clone());
    let load = |parts: &[Vec<u8>], mark: &ReplicaMark, head: Head| {
        let mut draft = ReplicaDraft::create_for(&origin.at("replica.redb"))?;
        parts.iter().try_for_each(|part| draft.add_part(part))?;
        draft.finish(mark, head)
    };
    let (sound, head) = (mark(&view, digest), origin.head());
    let other = ReplicaMark {
        id: crate::model::DatabaseId([9; 16]),
        ..sound.clone()
    };
    let cases: [(&[Vec<u8>], &ReplicaMark, Head, &str); 4] = cases![
        &parts[1..], &sound, head, "do not add up";
        &duplicated, &sound, head, "a run whose rows are not in order";
        &parts, &sound, Head { lineage: [9; 16], ..head }, "or of another history";
        &parts, &other, head, "the rows are not those of database 0909";
    ];
    for (parts, mark, head, expected) in cases {
        let message = load(parts, mark, head).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let count = std::fs::read_dir(origin.folder.path()).unwrap().count();
    assert_eq!(count, 1, "nothing is left but the origin");
    let loaded = load(&parts, &sound, head).unwrap();
    // A file that took the name in the meantime stays.
    drop(origin.replica());
    assert!(matches!(
        loaded.persist(None),
        Err(StoreError::Replaced { .. })
    ));
    let (loaded, of_origin) = (
        load(&parts, &sound, head).unwrap(),
        ReplicaWriter {
            writer: origin.writer(),
        },
    );
    assert!(matches!(
        loaded.persist(Some(of_origin)),
        Err(StoreError::Replaced { .. })
    ));
    adds_up(&origin.path());
}

#[test]
fn a_lost_row_is_found() {
    let origin = TestOrigin::published();
    origin.commit(10);
    {
        let writer = origin.writer();
        let tx = crate::store::write_tx::WriteTx::new(writer.begin_raw().unwrap());
        let mut outbox = tx.open(tables::OUTBOX).unwrap();
        let seq = origin.head().seq;
        outbox.insert((seq, 1), b"others".as_slice()).unwrap();
        drop(outbox);
        tx.open(tables::META)
            .unwrap()
            .insert(tables::META_DATABASE, [0_u8; 16].as_slice())
            .unwrap();
        tx.commit().unwrap();
    }
    let report = check(&mut origin.writer()).unwrap();
    let found: Vec<&str> = report.findings.iter().map(|found| found.table).collect();
    assert_eq!(found, ["meta", "outbox"], "{:?}", report.findings);
}

#[test]
fn a_changed_row_of_a_replica_is_found() {
    let origin = TestOrigin::published();
    drop(origin.replica());
    let mut writer = Writer::open_any(&origin.at("replica.redb"), Duration::ZERO).unwrap();
    assert!(check(&mut writer).unwrap().findings.is_empty());
    let tx = writer.begin_raw().unwrap();
    {
        let mut licenses = tx.open_table(tables::LICENSES).unwrap();
        let (id, mut license) = {
            let (id, row) = licenses.first().unwrap().unwrap();
            (
                id.value(),
                unseal::<License>("licenses", row.value()).unwrap(),
            )
        };
        license.rate_limit += 1;
        licenses
            .insert(id, seal(&license).unwrap().as_slice())
            .unwrap();
    }
    tx.commit().unwrap();
    let report = check(&mut writer).unwrap();
    let found: Vec<&str> = report.findings.iter().map(|found| found.table).collect();
    assert_eq!(found, ["replica"], "{:?}", report.findings);
}

#[test]
fn a_whole_state_keeps_the_permissions_of_the_file_that_it_replaces() {
    let origin = TestOrigin::published();
    let path = origin.at("replica.redb");
    drop(origin.replica());
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    for expected in [0o640, 0o604] {
        std::fs::set_permissions(&path, Permissions::from_mode(expected)).unwrap();
        origin.commit(10);
        let replaced = ReplicaWriter::open(&path).unwrap();
        origin.draft().persist(Some(replaced)).unwrap();
        assert_eq!(mode(), expected, "{expected:o}");
        assert_eq!(read_replica(&path).unwrap().1.head(), origin.head());
    }
}

#[test]
fn pending_commits_fill_an_entry_to_the_byte() {
    let origin = TestOrigin::published();
    let from = origin.head();
    let seqs: Vec<u64> = (0..3).map(|_| origin.commit(1000).seq).collect();
    let view = origin.view();
    let commits = view
        .pending_after(from, u64::MAX)
        .unwrap()
        .expect("they wait");
    let two = commits[0].bytes + commits[1].bytes;
    for (max_bytes, expected) in [(two - 1, 1), (two, 2), (two + commits[2].bytes, 3)] {
        let found = waiting(&view, from, max_bytes);
        assert_eq!(found, Some(seqs[..expected].to_vec()), "{max_bytes}");
    }
    let wrong = Head {
        lineage: [1; 16],
        ..Head::default()
    };
    assert!(!view.holds(wrong).unwrap(), "seq 0 has one lineage");
    let first = from.seq + 1;
    let descriptions =
        [from.seq, seqs[1], seqs[2]].map(|seq| view.describe_commits_after(seq).unwrap());
    let expected = [
        format!("3 commits (seq {first} to {})", seqs[2]),
        format!("1 commit (seq {})", seqs[2]),
        String::new(),
    ];
    assert_eq!(descriptions, expected);
}

#[test]
fn a_promotion_counts_after_a_seq_only() {
    let origin = TestOrigin::published();
    let mut seqs = Vec::new();
    let mut replica = origin.replica();
    let mark = replica.mark().unwrap();
    for _ in 0..2 {
        let (commit, changes) = replica.prepare_promotion("file:///srv/feed").unwrap();
        replica
            .apply(
                &[(commit, &changes)],
                &ReplicaMark {
                    digest: commit.digest,
                    ..mark.clone()
                },
            )
            .unwrap();
        seqs.push(commit.last_seq);
    }
    let after = |seq| {
        replica
            .promotion_after(seq)
            .unwrap()
            .map(|commit| commit.last_seq)
    };
    assert_eq!(
        [after(0), after(seqs[0] - 1), after(seqs[0])],
        [Some(seqs[1]); 3],
        "the last one"
    );
    assert_eq!(after(seqs[1] - 1), Some(seqs[1]));
    assert_eq!(after(seqs[1]), None);
    assert_eq!(after(u64::MAX), None);
}
