//! Each kind of damage is found by the check, in its table.

use std::borrow::Borrow;

use redb::{Key, ReadableTable, TableDefinition, Value, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    Sample, batch, conference, everything, id, in_country, organization, removal, snapshot, tag,
};
use crate::model::time::now;
use crate::model::{Dataset, FeedId, KeyRecord, License, LicenseId, Organization, Timestamp};
use crate::store::check::{CheckReport, check};
use crate::store::format::feed::FeedSum;
use crate::store::format::rows::{StoredCommit, hash, seal, seal_under, unseal, unseal_under};
use crate::store::format::tables::{self, TOMBSTONE};
use crate::store::{Batch, Reader, StoreError};

type Rows = TableDefinition<'static, u64, &'static [u8]>;

const CONFERENCES: u8 = Dataset::Conferences as u8;

/// A published database: `all` and `same` share their feeds, `moved` was of Spain and is of France.
fn sample() -> Sample {
    let sample = Sample::new();
    let of = |country: &'static str| {
        move |fields: &mut crate::model::ConferenceFields| {
            fields.country = Some(country.to_owned());
        }
    };
    let first = conference(1, |fields| {
        fields.country = Some("Spain".to_owned());
        fields.organizations = vec![id(1)].into();
        fields.tags = vec![id(1)].into();
    });
    let rows = [
        first,
        conference(2, of("France")),
        conference(3, of("Spain")),
        conference(4, of("France")),
    ];
    sample.edit_at(1_000, |edit| {
        let organizations = [organization(1, "One"), organization(2, "Two")];
        let tags = [tag(1, "One"), tag(2, "Two")];
        let all = Batch {
            organizations: organizations
                .into_iter()
                .map(|row| (row.id(), Some(row)))
                .collect(),
            tags: tags.into_iter().map(|row| (row.id(), Some(row))).collect(),
            ..batch(rows)
        };
        edit.apply(&all).unwrap();
    });
    for (name, scope) in [
        ("all", everything()),
        ("same", everything()),
        ("moved", in_country("Spain")),
    ] {
        sample.license(name, scope);
    }
    sample.license("moved", in_country("France"));
    sample.edit(|edit| edit.create_key("all", Default::default()).unwrap());
    sample.writer().mark_published().unwrap();
    sample.edit(|edit| {
        edit.apply(&batch([
            conference(2, of("France")),
            conference(5, of("Italy")),
        ]))
        .unwrap()
    });
    sample.edit(|edit| edit.apply(&removal([5])).unwrap());
    sample
}

fn examine(sample: &Sample) -> CheckReport {
    check(&mut sample.writer()).unwrap()
}

fn row<T: DeserializeOwned>(tx: &WriteTransaction, table: Rows, key: u64) -> T {
    unseal(
        "row",
        tx.open_table(table)
            .unwrap()
            .get(key)
            .unwrap()
            .unwrap()
            .value(),
    )
    .unwrap()
}

fn put<T: Serialize>(tx: &WriteTransaction, table: Rows, key: u64, row: &T) {
    insert(tx, table, key, seal(row).unwrap().as_slice());
}

fn insert<'k, 'v, K: Key + 'static, V: Value + 'static>(
    tx: &WriteTransaction,
    table: TableDefinition<'static, K, V>,
    key: impl Borrow<K::SelfType<'k>>,
    value: impl Borrow<V::SelfType<'v>>,
) {
    tx.open_table(table).unwrap().insert(key, value).unwrap();
}

fn remove<'k, K: Key + 'static, V: Value + 'static>(
    tx: &WriteTransaction,
    table: TableDefinition<'static, K, V>,
    key: impl Borrow<K::SelfType<'k>>,
) {
    tx.open_table(table).unwrap().remove(key).unwrap();
}

/// The first organization and the first tag have one name.
fn name_of_first(tx: &WriteTransaction) -> String {
    let one: Organization = row(tx, tables::ORGANIZATIONS, 1);
    one.fields().name.clone().unwrap()
}

fn license(tx: &WriteTransaction, name: &str) -> License {
    let licenses = tx.open_table(tables::LICENSES).unwrap();
    let rows = licenses.iter().unwrap();
    let mut rows = rows.map(|row| unseal("licenses", row.unwrap().1.value()).unwrap());
    rows.find(|license: &License| license.name == name).unwrap()
}

fn change_license(tx: &WriteTransaction, name: &str, change: impl FnOnce(&mut License)) {
    let mut license = license(tx, name);
    change(&mut license);
    put(tx, tables::LICENSES, license.id.0, &license);
}

fn feed(tx: &WriteTransaction, name: &str) -> u64 {
    license(tx, name).feed(Dataset::Conferences).unwrap().0
}

fn baseline(tx: &WriteTransaction, name: &str) -> u64 {
    license(tx, name).subscriptions[Dataset::Conferences]
        .unwrap()
        .baseline
        .0
}

fn change_commit(tx: &WriteTransaction, change: impl FnOnce(&mut StoredCommit)) {
    let commits = tx.open_table(tables::COMMITS).unwrap();
    let last = commits.last().unwrap().unwrap().0.value();
    drop(commits);
    let mut commit: StoredCommit = row(tx, tables::COMMITS, last);
    change(&mut commit);
    put(tx, tables::COMMITS, last, &commit);
}

fn change_key(tx: &WriteTransaction, change: impl FnOnce(&mut KeyRecord)) {
    let mut keys = tx.open_table(tables::KEYS).unwrap();
    let (hash, mut key) = {
        let (hash, bytes) = keys.first().unwrap().unwrap();
        (
            hash.value(),
            unseal_under::<KeyRecord>("keys", &hash.value(), bytes.value()).unwrap(),
        )
    };
    change(&mut key);
    keys.insert(hash, seal_under(&hash, &key).unwrap().as_slice())
        .unwrap();
}

/// Changes a bit of a key's hash, by which the key is found.
fn change_key_hash(tx: &WriteTransaction) {
    let mut keys = tx.open_table(tables::KEYS).unwrap();
    let (mut hash, row) = {
        let (hash, row) = keys.first().unwrap().unwrap();
        (hash.value(), row.value().to_vec())
    };
    keys.remove(hash).unwrap();
    hash[31] ^= 0x20;
    keys.insert(hash, row.as_slice()).unwrap();
}

/// The seq of a conference's log row.
fn log_seq(tx: &WriteTransaction, number: u64) -> u64 {
    tx.open_table(tables::RECORDS)
        .unwrap()
        .get((CONFERENCES, number))
        .unwrap()
        .unwrap()
        .value()
}

/// Writes an entry into both tables of a feed, replacing the existing one.
fn put_entry(tx: &WriteTransaction, feed: u64, number: u64, seq: u64, log_seq: u64) {
    let mut by_id = tx.open_table(tables::FEED_RECORDS).unwrap();
    let mut by_seq = tx.open_table(tables::FEED_ENTRIES).unwrap();
    let old = by_id.insert((feed, number), (seq, log_seq)).unwrap();
    let old = old.map(|old| old.value().0);
    if let Some(old) = old {
        by_seq.remove((feed, old)).unwrap();
    }
    by_seq.insert((feed, seq), (number, log_seq)).unwrap();
}

fn entry(tx: &WriteTransaction, feed: u64, number: u64) -> (u64, u64) {
    tx.open_table(tables::FEED_RECORDS)
        .unwrap()
        .get((feed, number))
        .unwrap()
        .unwrap()
        .value()
}

/// Changes the entry of a record in the feed of the license `moved`, or in its baseline.
fn change_entry(
    tx: &WriteTransaction,
    of: fn(&WriteTransaction, &str) -> u64,
    number: u64,
    change: impl FnOnce((u64, u64)) -> (u64, u64),
) {
    let feed = of(tx, "moved");
    let (seq, log_seq) = change(entry(tx, feed, number));
    put_entry(tx, feed, number, seq, log_seq);
}

/// The key of a record's entry in the feed of the license `moved`.
fn of_moved(tx: &WriteTransaction, number: u64) -> (u64, u64) {
    let feed = feed(tx, "moved");
    (feed, entry(tx, feed, number).0)
}

fn change_head(tx: &WriteTransaction, feed: u64, change: impl FnOnce(&mut FeedSum)) {
    let mut head: FeedSum = row(tx, tables::FEEDS, feed);
    change(&mut head);
    put(tx, tables::FEEDS, feed, &head);
}

fn join_too_late(license: &mut License) {
    let subscription = &mut license.subscriptions[Dataset::Conferences];
    subscription.as_mut().unwrap().joined_at = license.scope_seq + 1;
}

fn change_log_hash(tx: &WriteTransaction) {
    let key = (CONFERENCES, log_seq(tx, 3));
    insert(tx, tables::LOG, key, (3, hash(b"other"), &b"{}"[..]));
}

fn change_secret(tx: &WriteTransaction) {
    let mut meta = tx.open_table(tables::META).unwrap();
    let secret = meta.get(tables::META_SECRET).unwrap().unwrap();
    let mut row = secret.value().to_vec();
    drop(secret);
    row[40] ^= 1;
    meta.insert(tables::META_SECRET, row.as_slice()).unwrap();
}

fn no_such_feed(tx: &WriteTransaction) {
    let feed = FeedSum::empty(FeedId(777), Dataset::Conferences);
    put(tx, tables::FEEDS, 777, &feed);
}

/// Changes a file from these bytes on.
fn change(sample: &Sample, bytes: &[u8], change: impl FnOnce(&WriteTransaction)) {
    std::fs::write(sample.path(), bytes).unwrap();
    let writer = sample.writer();
    let tx = writer.begin_raw().unwrap();
    change(&tx);
    tx.commit().unwrap();
}

/// The name of the case, the damage, the table in the error, and a part of its message.
type Damage = (
    &'static str,
    fn(&WriteTransaction),
    &'static str,
    &'static str,
);

const DAMAGES: [Damage; 46] = cases![
    "two organizations of one name", |tx| put(tx, tables::ORGANIZATIONS, 2, &organization(2, &name_of_first(tx))),
        "organizations", "the name `One` occurs twice";
    "two tags of one name", |tx| put(tx, tables::TAGS, 2, &tag(2, &name_of_first(tx))), "tags", "occurs twice";
    "commits that overlap", |tx| change_commit(tx, |row| row.first_seq -= 1), "commits", "does not follow seq";
    "a commit before its predecessor", |tx| change_commit(tx, |row| row.time = Timestamp::from_unix_s(2_000)),
        "commits", "is earlier than the one before it";
    "a record without a row", |tx| insert(tx, tables::RECORDS, (CONFERENCES, 3), 9_999), "records",
        "conferences 3 has no row at seq 9999";
    "the row of another record", |tx| insert(tx, tables::RECORDS, (CONFERENCES, 3), log_seq(tx, 1)), "records",
        "is not of record 3";
    "a name that records do not show", |tx| put(tx, tables::ORGANIZATIONS, 1, &organization(1, "Another")),
        "log", "does not match its record";
    "a log row that does not match its hash", change_log_hash, "log", "does not match its hash";
    "an organization that is gone", |tx| remove(tx, tables::ORGANIZATIONS, 1), "records", "which does not exist";
    "a tag that is gone", |tx| remove(tx, tables::TAGS, 1), "records", "which does not exist";
    "a log row without a record", |tx| insert(tx, tables::LOG, (CONFERENCES, 8_888), (8, hash(b"{}"), &b"{}"[..])),
        "log", "5 rows of conferences for 4 records";
    "a wrong count of records", |tx| change_commit(tx, |row| row.records[Dataset::Conferences] += 1),
        "commits", "the last commit counts 5 conferences, there are 4";
    "a link that is missing", |tx| drop(tx.open_table(tables::LINKS).unwrap().pop_first().unwrap()), "links",
        "is missing";
    "a link too many", |tx| insert(tx, tables::LINKS, (1, 2, CONFERENCES, 1), ()), "links", "is not in the record";
    "a license of the future", |tx| change_license(tx, "all", |license| license.scope_seq = 9_999),
        "licenses", "beyond the last commit";
    "a feed without its dataset", |tx| change_license(tx, "moved", |license| license.scope.datasets.clear()),
        "licenses", "does not match its feeds: conferences";
    "a dataset without its feed",
        |tx| { change_license(tx, "moved", |license| license.scope.datasets.extend([Dataset::Journals])) },
        "licenses", "does not match its feeds: journals";
    "one feed for two scopes",
        |tx| { change_license(tx, "same", |license| { license.scope.countries = Some(["Spain".to_owned()].into()) }) },
        "licenses", "but have different scopes";
    "a license that joined later than it was changed", |tx| change_license(tx, "all", join_too_late), "licenses",
        "after it was changed last";
    "a hidden record in a baseline", |tx| change_entry(tx, baseline, 3, |(at, _)| (at, log_seq(tx, 3))),
        "feed_records", "conferences 3 is live in the baseline of license `moved`, which must not show it";
    "another log seq in a baseline", |tx| change_entry(tx, baseline, 4, |(at, _)| (at, log_seq(tx, 4) + 1)),
        "feed_records", "conferences 4 has another log seq in the baseline of license `moved`";
    "a record that a baseline lost", |tx| change_entry(tx, baseline, 4, |(at, _)| (at, TOMBSTONE)),
        "feed_records", "conferences 4 is not live in the baseline of license `moved`, which must show it";
    "a hidden record in a feed", |tx| put_entry(tx, feed(tx, "moved"), 3, log_seq(tx, 3), log_seq(tx, 3)),
        "feed_records", "conferences 3 is live in feed";
    "another seq in a feed", |tx| change_entry(tx, feed, 4, |(seq, log_seq)| (seq + 1, log_seq)),
        "feed_records", "conferences 4 has another seq in feed";
    "another log seq in a feed", |tx| change_entry(tx, feed, 4, |_| (log_seq(tx, 3), log_seq(tx, 3))),
        "feed_records", "conferences 4 has another log seq in feed";
    "a record that a feed lost", |tx| change_entry(tx, feed, 4, |(seq, _)| (seq, TOMBSTONE)),
        "feed_records", "conferences 4 is not live in feed";
    "an entry of the future", |tx| change_entry(tx, feed, 4, |_| (9_999, 9_999)), "feed_records",
        "beyond the last commit";
    "an entry that the index by id has otherwise",
        |tx| { insert(tx, tables::FEED_ENTRIES, of_moved(tx, 4), (4, of_moved(tx, 4).1 + 1)) }, "feed_entries",
        "does not match its index by id";
    "an entry that is missing", |tx| remove(tx, tables::FEED_ENTRIES, of_moved(tx, 4)), "feed_entries",
        "has no entry at seq";
    "a head that does not add up", |tx| change_head(tx, feed(tx, "moved"), |head| head.newest_seq -= 1), "feeds",
        "do not add up to its sum";
    "a feed of nobody", no_such_feed, "feeds", "no license uses feed 777";
    "entries of nobody by seq", |tx| insert(tx, tables::FEED_ENTRIES, (777, 1), (1, 1)), "feed_entries",
        "no license uses feed 777";
    "entries of nobody by id", |tx| insert(tx, tables::FEED_RECORDS, (777, 1), (1, 1)), "feed_records",
        "no license uses feed 777";
    "a key without a license", |tx| change_key(tx, |key| key.license = LicenseId(7)), "keys",
        "has a license that does not exist";
    "a key that is found by another hash", change_key_hash, "keys", "a row does not match its hash";
    "a secret with another bit", change_secret, "meta", "a row does not match its hash";
    "a secret that is cut short", |tx| insert(tx, tables::META, tables::META_SECRET, &[7; 15][..]), "meta",
        "a row is cut short";
    "a lost secret", |tx| remove(tx, tables::META, tables::META_SECRET), "meta", "the token secret is missing";
    "a wrong count of organizations", |tx| change_commit(tx, |row| row.counts.organizations += 1),
        "organizations", "the last commit counts 3";
    "a wrong count of tags", |tx| change_commit(tx, |row| row.counts.tags -= 1), "tags", "the last commit counts 1";
    "a wrong count of licenses", |tx| change_commit(tx, |row| row.counts.licenses += 1), "licenses",
        "the last commit counts 4";
    "a wrong count of keys", |tx| change_commit(tx, |row| row.counts.keys += 1), "keys", "the last commit counts 2";
    "a wrong count of feeds", |tx| change_commit(tx, |row| row.counts.feeds += 1), "feeds", "the last commit counts";
    "rows that do not add up", |tx| change_key(tx, |key| key.label = Some("changed".to_owned())), "meta",
        "do not add up to the stored digest";
    "changes in the outbox", |tx| change_outbox(tx, false), "outbox", "its changes do not match their hash";
    "later changes in the outbox", |tx| change_outbox(tx, true), "outbox", "its changes do not match their hash";
];

fn change_outbox(tx: &WriteTransaction, is_last: bool) {
    let mut outbox = tx.open_table(tables::OUTBOX).unwrap();
    let keys = outbox.iter().unwrap();
    let mut keys: Vec<(u64, u32)> = keys.map(|row| row.unwrap().0.value()).collect();
    keys.retain(|(_, part)| *part == 1);
    assert_eq!(keys.len(), 2);
    let key = keys[usize::from(is_last)];
    let mut bytes = outbox.get(key).unwrap().unwrap().value().to_vec();
    bytes[0] ^= 1;
    outbox.insert(key, bytes.as_slice()).unwrap();
}

#[test]
fn each_damage_is_found() {
    let sound = sample();
    let report = examine(&sound);
    assert_eq!(report.damages, 0, "{:?}", report.findings);
    assert_eq!(report.licenses, 3, "{:?}", report.findings);
    assert_eq!(report.keys, 1, "{:?}", report.findings);
    let rows = {
        let writer = sound.writer();
        let read = writer.begin_read().unwrap();
        read.open_table(tables::FEED_RECORDS)
            .unwrap()
            .iter()
            .unwrap()
            .count()
    };
    assert_eq!(
        report.feed_rows, rows as u64,
        "baselines are counted too, and shared feeds once"
    );
    let bytes = std::fs::read(sound.path()).unwrap();
    for (what, damage, table, text) in DAMAGES {
        change(&sound, &bytes, damage);
        let found = examine(&sound).findings;
        let is_told = found
            .iter()
            .any(|found| found.table == table && found.detail.contains(text));
        assert!(is_told, "{what}: {found:?}");
    }
}

#[test]
fn sound_files_report_no_damage() {
    let sample = sample();
    let bytes = std::fs::read(sample.path()).unwrap();
    let ahead = |seconds: i64| {
        change(&sample, &bytes, |tx| {
            change_commit(tx, |row| row.time = now().plus_s(seconds));
            // The digest is then of another state.
            remove(tx, tables::META, tables::META_PUBLISH);
        });
        let report = examine(&sample);
        assert_eq!(report.damages, 0, "{:?}", report.findings);
        report.warnings.len()
    };
    assert_eq!(
        [ahead(0), ahead(60), ahead(180)],
        [0, 0, 1],
        "a clock that is ahead by more than two minutes"
    );

    // A key may outlive its license if it is revoked.
    change(&sample, &bytes, |tx| {
        change_key(tx, |key| {
            key.license = LicenseId(7);
            key.revoked_at = Some(Timestamp::from_unix_s(7));
        });
        remove(tx, tables::META, tables::META_PUBLISH);
    });
    assert_eq!(examine(&sample).damages, 0);
}

#[test]
fn a_feed_is_read_whole_or_refused() {
    let sample = sample();
    let writer = sample.writer();
    let tx = writer.begin_raw().unwrap();
    let mut entries = tx.open_table(tables::FEED_ENTRIES).unwrap();
    let head: FeedSum = row(&tx, tables::FEEDS, feed(&tx, "all"));
    let whole = head.read_all(&entries).unwrap();
    assert_eq!((whole.len() as u64, head.entries), (5, 5));
    for entry in &whole {
        let (key, value) = entry.row_by_seq(head.feed);
        entries.remove(key).unwrap();
        assert!(head.read_all(&entries).is_err(), "without {entry:?}");
        // An entry of another record in its place.
        entries.insert(key, (value.0 + 7, value.1)).unwrap();
        assert!(head.read_all(&entries).is_err(), "another than {entry:?}");
        entries.insert(key, value).unwrap();
    }
    assert_eq!(head.read_all(&entries).unwrap(), whole);
}

#[test]
fn a_feed_that_is_ahead_of_the_last_commit_is_not_served() {
    for ahead in [0, 1] {
        let sample = sample();
        let last = snapshot(&sample.path()).commit().seq;
        let bytes = std::fs::read(sample.path()).unwrap();
        change(&sample, &bytes, |tx| {
            change_head(tx, feed(tx, "all"), |head| head.newest_seq = last + ahead);
        });
        let opened = Reader::open(&sample.path()).map(|_| ());
        let is_refused = matches!(&opened, Err(error) if error.to_string().contains("it is ahead of the last commit"));
        assert_eq!(is_refused, ahead > 0, "{opened:?}");
    }
}

#[test]
fn a_damaged_record_fails_only_the_answers_that_need_it() {
    let sample = Sample::new();
    let rows = (1..=20).map(|number| {
        let country = if number % 2 == 0 { "Spain" } else { "France" };
        conference(number, |fields| fields.country = Some(country.to_owned()))
    });
    sample.edit(|edit| edit.apply(&batch(rows)).unwrap());
    for country in ["Spain", "France"] {
        sample.license(country, in_country(country));
    }
    let bytes = std::fs::read(sample.path()).unwrap();
    change(&sample, &bytes, |tx| {
        let key = (CONFERENCES, log_seq(tx, 7));
        insert(tx, tables::LOG, key, (7, hash(b"other"), &b"{}"[..]));
    });
    let snapshot = sample.snapshot();
    let page = |license: &str, from: usize| {
        let license = snapshot.find_license_named(license).unwrap();
        let records = snapshot.loaded(Dataset::Conferences).unwrap();
        let index = snapshot.shared_feed(license, Dataset::Conferences)?;
        index.shown()[from..]
            .iter()
            .map(|slot| records.get(*slot))
            .collect::<Result<Vec<_>, StoreError>>()
    };
    let error = page("France", 0).unwrap_err().to_string();
    assert!(error.contains("does not match its hash"), "{error}");
    assert_eq!(page("France", 4).unwrap().len(), 6, "9, 11, 13, 15, 17, 19");
    let whole = page("Spain", 0).unwrap();
    assert_eq!(whole.len(), 10);
    assert!(
        whole
            .iter()
            .all(|record| record.json.windows(7).any(|text| text == b"\"Spain\""))
    );
}
