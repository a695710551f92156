//! The full check: compares all indexes, hashes and counts with the records, then verifies the checksums of all pages.
//!
//! It has its own code for reading tables, so that it finds faults in the code used elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use redb::{ReadTransaction, ReadableTable};
use serde::Serialize;

use crate::model::reference::Referenced;
use crate::model::time::now;
use crate::model::{
    ConferenceFields, Dataset, FeedId, Id, JournalFields, KeyRecord, License, RecordFields,
    ReferenceKind, References, json,
};
use crate::store::file::open::{OpenOptions, ReadFile, Writer};
use crate::store::format::feed::{FeedEntry, FeedSum};
use crate::store::format::meta::{find_mark, read_secret, stored_digest};
use crate::store::format::outbox::{digest_of, next_header, read_changes};
use crate::store::format::rows::{
    CLOCK_TOLERANCE_S, RecordRow, StoredCommit, TableCounts, expect_count, load_references,
    load_rows, optional_table, unseal, unseal_commit, unseal_under,
};
use crate::store::format::tables::{self, TOMBSTONE};
use crate::store::panics::{self, guard};
use crate::store::{Result, StoreError};

/// The maximum number of listed findings. All are counted.
const MAX_LISTED: usize = 100;
/// The number of examples of findings that are alike.
const MAX_EXAMPLES: usize = 3;

/// Damage found in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "a table, and the damage in it")]
pub struct CheckFinding {
    pub table: &'static str,
    pub detail: String,
}

/// Findings in one table whose details differ in digits only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names explain the other fields")]
pub struct FindingKind {
    pub table: &'static str,
    /// The detail without digits.
    form: String,
    pub count: u64,
    /// The details of the first findings.
    pub examples: Vec<String>,
}

/// The result of a check: the numbers of checked rows, and the findings.
#[derive(Debug, Default, Serialize)]
#[allow(missing_docs, reason = "described above")]
pub struct CheckReport {
    pub records: BTreeMap<Dataset, u64>,
    pub commits: u64,
    pub licenses: u64,
    /// Feed entries, including those of baselines.
    pub feed_rows: u64,
    pub keys: u64,
    /// Notes that are no damage.
    pub warnings: Vec<String>,
    pub damages: u64,
    /// The first ones. `damages` counts all.
    pub findings: Vec<CheckFinding>,
    /// The kinds of the findings, as people read them.
    #[serde(skip)]
    pub kinds: Vec<FindingKind>,
}

impl CheckReport {
    /// Adds a finding.
    pub fn add(&mut self, table: &'static str, detail: impl Into<String>) {
        self.damages += 1;
        let detail = detail.into();
        self.add_to_kind(table, &detail);
        if self.findings.len() < MAX_LISTED {
            self.findings.push(CheckFinding { table, detail });
        }
    }

    fn add_to_kind(&mut self, table: &'static str, detail: &str) {
        let form = detail.replace(|letter: char| letter.is_ascii_digit(), "");
        let kind = self
            .kinds
            .iter()
            .position(|kind| kind.table == table && kind.form == form);
        let at = kind.unwrap_or(self.kinds.len());
        if at == MAX_LISTED {
            return;
        }
        if kind.is_none() {
            self.kinds.push(FindingKind {
                table,
                form,
                count: 0,
                examples: Vec::new(),
            });
        }
        let kind = &mut self.kinds[at];
        kind.count += 1;
        if kind.examples.len() < MAX_EXAMPLES {
            kind.examples.push(detail.to_owned());
        }
    }

    fn expect(&mut self, holds: bool, table: &'static str, detail: impl FnOnce() -> String) {
        if !holds {
            self.add(table, detail());
        }
    }

    /// Runs one step of the check. An error or panic becomes a finding, and the check continues.
    fn step<T>(
        &mut self,
        table: &'static str,
        check: impl FnOnce(&mut CheckReport) -> Result<T>,
    ) -> Option<T> {
        let checked = guard(|| check(self));
        self.note(table, checked)
    }

    /// Turns an error into a finding.
    fn note<T>(&mut self, table: &'static str, read: Result<T>) -> Option<T> {
        let checked = read.map_err(|error| match error {
            StoreError::Damaged { table, detail } => self.add(table, detail),
            error => self.add(table, error.to_string()),
        });
        checked.ok()
    }
}

/// Checks the whole file. Damage is in the report. The writer's lock is held, so nothing changes.
pub fn check(writer: &mut Writer) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let panics_before = panics::caught_count();
    report.step("(pages)", |report| {
        check_rows(&writer.begin_read()?, report)
    });
    if panics::caught_count() != panics_before {
        // redb's own check repairs pages, and must not write after a panic.
        return Ok(report);
    }
    report.step("(pages)", |report| {
        match writer.database_mut().check_integrity() {
            Ok(true) => {}
            Ok(false) => report.add(
                "(pages)",
                "redb found pages that do not match their checksums, and repaired them",
            ),
            Err(error) => report.add("(pages)", format!("redb's own check failed: {error}")),
        }
        Ok(())
    });
    Ok(report)
}

/// Checks all rows of a file that this process cannot write to. The checksums of its pages are not compared.
pub fn check_unwritable(path: &Path) -> Result<CheckReport> {
    let file = ReadFile::open(path, OpenOptions::ANY_CURRENT)?;
    let mut report = CheckReport::default();
    report.step("(pages)", |report| check_rows(&file.begin_read()?, report));
    report.warnings.push(
        "every row was checked, but not redb's checksums of the pages: they need the right to write to the file"
            .to_owned(),
    );
    Ok(report)
}

fn check_rows(transaction: &ReadTransaction, report: &mut CheckReport) -> Result<()> {
    let references = report.step("organizations", |_| {
        load_references(
            &transaction.open_table(tables::ORGANIZATIONS)?,
            &transaction.open_table(tables::TAGS)?,
        )
    });
    let references = references.unwrap_or_default();
    check_labels("organizations", &references.organizations, report);
    check_labels("tags", &references.tags, report);
    let mut last = StoredCommit::default();
    report.step("commits", |report| {
        check_commits(transaction, &mut last, report)
    });
    if last.time > now().plus_s(CLOCK_TOLERANCE_S) {
        report.warnings.push(format!(
            "the last commit has the time {}, which is in the future: a clock was ahead. Until then, all commits get this time",
            last.time
        ));
    }
    let licenses = report.step("licenses", |_| {
        load_rows::<License>("licenses", &transaction.open_table(tables::LICENSES)?)
    });
    let licenses = licenses.unwrap_or_default();
    report.licenses = u64::try_from(licenses.len()).unwrap_or(u64::MAX);
    let mut links = BTreeSet::new();
    check_dataset::<ConferenceFields>(
        transaction,
        &references,
        &licenses,
        &last,
        &mut links,
        report,
    );
    check_dataset::<JournalFields>(
        transaction,
        &references,
        &licenses,
        &last,
        &mut links,
        report,
    );
    report.step("links", |report| check_links(transaction, &links, report));
    report.step("keys", |report| {
        check_owners(transaction, &licenses, report)
    });
    report.step("commits", |report| {
        check_counts(transaction, &last.counts, report)
    });
    report.step("meta", |report| check_digest(transaction, report));
    report.step("outbox", |report| check_outbox(transaction, report));
    Ok(())
}

/// Checks the records of a dataset, and the feeds that show them. Collects the links of the records.
fn check_dataset<F: RecordFields>(
    transaction: &ReadTransaction,
    references: &References,
    licenses: &[License],
    last: &StoredCommit,
    links: &mut BTreeSet<LinkRow>,
    report: &mut CheckReport,
) {
    let mut rows = BTreeMap::new();
    report.step("records", |report| {
        check_records::<F>(transaction, references, links, &mut rows, report)
    });
    let dataset = F::DATASET;
    let count = rows.len() as u64;
    let counted = last.records[dataset];
    report.expect(counted == count, "commits", || {
        format!("the last commit counts {counted} {dataset}, there are {count}")
    });
    report.records.insert(dataset, count);
    report.step("feed", |report| {
        check_feeds(transaction, licenses, &rows, last.last_seq, report)
    });
}

/// Compares all rows with the digest that published databases and replicas store.
fn check_digest(transaction: &ReadTransaction, report: &mut CheckReport) -> Result<()> {
    let kept = stored_digest(&transaction.open_table(tables::META)?)?;
    let expected = [
        ("meta", kept),
        ("replica", find_mark(transaction)?.map(|mark| mark.digest)),
    ];
    if expected.iter().all(|(_, digest)| digest.is_none()) {
        return Ok(());
    }
    let found = digest_of(transaction)?;
    for (table, digest) in expected {
        report.expect(digest.is_none_or(|digest| digest == found), table, || {
            "the rows of all tables do not add up to the stored digest".to_owned()
        });
    }
    Ok(())
}

/// Compares the changes in the outbox with their hashes.
fn check_outbox(transaction: &ReadTransaction, report: &mut CheckReport) -> Result<()> {
    let Some(outbox) = optional_table(transaction.open_table(tables::OUTBOX))? else {
        return Ok(());
    };
    let mut last = 0;
    while let Some(header) = next_header(&outbox, last)? {
        report.note("outbox", read_changes(&outbox, &header));
        last = header.commit.last_seq;
    }
    Ok(())
}

/// Checks that names of organizations are unique, and tags by type and name.
fn check_labels<F>(
    table: &'static str,
    rows: &BTreeMap<Id, Referenced<F>>,
    report: &mut CheckReport,
) {
    let mut seen = BTreeSet::new();
    for row in rows.values() {
        report.expect(seen.insert(&row.label), table, || {
            format!("the name `{}` occurs twice", row.label)
        });
    }
}

/// Checks that the seqs of commits have no gaps, and that their times never decrease. `last` becomes the last readable
/// one, with the last seq.
fn check_commits(
    transaction: &ReadTransaction,
    last: &mut StoredCommit,
    report: &mut CheckReport,
) -> Result<()> {
    for entry in transaction.open_table(tables::COMMITS)?.iter()? {
        let (seq, bytes) = entry?;
        let seq = seq.value();
        report.commits += 1;
        let Some(row) = report.note("commits", unseal_commit(seq, bytes.value())) else {
            last.last_seq = seq;
            continue;
        };
        report.expect(row.first_seq == last.last_seq + 1, "commits", || {
            format!(
                "the commit {}..={seq} does not follow seq {}",
                row.first_seq, last.last_seq
            )
        });
        report.expect(last.time <= row.time, "commits", || {
            format!("the commit at seq {seq} is earlier than the one before it")
        });
        *last = row;
    }
    Ok(())
}

/// Checks the row counts in the last commit.
fn check_counts(
    transaction: &ReadTransaction,
    counted: &TableCounts,
    report: &mut CheckReport,
) -> Result<()> {
    let found = [
        (
            "organizations",
            transaction
                .open_table(tables::ORGANIZATIONS)?
                .iter()?
                .count(),
            counted.organizations,
        ),
        (
            "tags",
            transaction.open_table(tables::TAGS)?.iter()?.count(),
            counted.tags,
        ),
        (
            "licenses",
            transaction.open_table(tables::LICENSES)?.iter()?.count(),
            counted.licenses,
        ),
        (
            "keys",
            transaction.open_table(tables::KEYS)?.iter()?.count(),
            counted.keys,
        ),
        (
            "feeds",
            transaction.open_table(tables::FEEDS)?.iter()?.count(),
            counted.feeds,
        ),
    ];
    for (table, found, counted) in found {
        report.note(table, expect_count(table, found, counted));
    }
    Ok(())
}

type LinkRow = (u8, u64, u8, u64);

/// Checks the records of a dataset with their log rows and links, and collects them.
fn check_records<F: RecordFields>(
    transaction: &ReadTransaction,
    references: &References,
    links: &mut BTreeSet<LinkRow>,
    rows: &mut BTreeMap<u64, RecordRow<F>>,
    report: &mut CheckReport,
) -> Result<()> {
    let dataset = F::DATASET;
    let code = dataset.code();
    let log = transaction.open_table(tables::LOG)?;
    for entry in transaction
        .open_table(tables::RECORDS)?
        .range((code, 0)..=(code, u64::MAX))?
    {
        let (key, seq) = entry?;
        let id = key.value().1;
        let seq = seq.value();
        let Some(found) = log.get((code, seq))? else {
            report.add("records", format!("{dataset} {id} has no row at seq {seq}"));
            continue;
        };
        let (of, _, text) = found.value();
        report.expect(of == id, "records", || {
            format!("the row of {dataset} at seq {seq} is not of record {id}")
        });
        let Some(row) = report.note("log", RecordRow::<F>::open(seq, found.value())) else {
            continue;
        };
        let rendered = json::render_record(&row.record, row.updated_at, references);
        report.expect(text == rendered.as_slice(), "log", || {
            format!("the JSON of {dataset} at seq {seq} does not match its record")
        });
        let fields = row.record.fields();
        for (kind, link) in ReferenceKind::ALL
            .iter()
            .flat_map(|kind| fields.links(*kind).iter().map(move |id| (kind, id)))
        {
            let is_there = match kind {
                ReferenceKind::Organization => references.organizations.contains_key(link),
                ReferenceKind::Tag => references.tags.contains_key(link),
            };
            report.expect(is_there, "records", || {
                format!("{dataset} {id} links to {kind} {link}, which does not exist")
            });
            links.insert((kind.code(), link.get(), code, id));
        }
        rows.insert(id, row);
    }
    let logged = log.range((code, 0)..=(code, u64::MAX))?.count();
    report.expect(logged == rows.len(), "log", || {
        format!("{logged} rows of {dataset} for {} records", rows.len())
    });
    Ok(())
}

fn check_links(
    transaction: &ReadTransaction,
    expected: &BTreeSet<LinkRow>,
    report: &mut CheckReport,
) -> Result<()> {
    let mut stored = BTreeSet::new();
    for entry in transaction.open_table(tables::LINKS)?.iter()? {
        stored.insert(entry?.0.value());
    }
    for link in expected.symmetric_difference(&stored) {
        let what = if stored.contains(link) {
            "is not in the record"
        } else {
            "is missing"
        };
        report.add(
            "links",
            format!("the link {link:?} (kind, reference, dataset, record) {what}"),
        );
    }
    Ok(())
}

/// A feed's entries by id: seq and log seq.
type EntriesById = BTreeMap<u64, (u64, u64)>;

/// Checks the shared feeds of a dataset, and the baselines of licenses.
fn check_feeds<F: RecordFields>(
    transaction: &ReadTransaction,
    licenses: &[License],
    rows: &BTreeMap<u64, RecordRow<F>>,
    last_seq: u64,
    report: &mut CheckReport,
) -> Result<()> {
    let dataset = F::DATASET;
    let mut shared: BTreeMap<FeedId, (&License, EntriesById)> = BTreeMap::new();
    for license in licenses {
        let name = &license.name;
        report.expect(license.scope_seq <= last_seq, "licenses", || {
            format!(
                "license `{name}` was changed at seq {}, beyond the last commit",
                license.scope_seq
            )
        });
        let feed = license.feed(dataset);
        report.expect(feed.is_some() == license.scope.datasets.contains(&dataset), "licenses", || {
            format!("the scope of license `{name}` does not match its feeds: {dataset} is missing in one of the two")
        });
        if let Some(feed) = feed {
            match shared.get(&feed) {
                Some((other, _)) => {
                    report.expect(other.scope.shows_same(&license.scope, dataset), "licenses", || {
                        format!(
                            "licenses `{name}` and `{}` share feed {} of {dataset}, but have different scopes",
                            other.name, feed.0
                        )
                    });
                }
                None => {
                    let read = read_feed(transaction, feed, dataset, last_seq, report);
                    let entries = report.note("feed_entries", read).unwrap_or_default();
                    check_live(license, feed, &entries, rows, report);
                    shared.insert(feed, (license, entries));
                }
            }
        }
        let Some(subscription) = license.subscriptions[dataset] else {
            continue;
        };
        let joined_at = subscription.joined_at;
        report.expect(joined_at <= license.scope_seq, "licenses", || {
            format!("license `{name}` joined its feed of {dataset} at seq {joined_at}, after it was changed last")
        });
        let read = read_feed(
            transaction,
            subscription.baseline,
            dataset,
            joined_at,
            report,
        );
        let baseline = report.note("feed_entries", read).unwrap_or_default();
        let newer = |id: &u64| {
            let entry = feed.and_then(|feed| shared.get(&feed)?.1.get(id).copied());
            entry.filter(|(seq, _)| *seq > joined_at)
        };
        // The baseline must show the records that the shared feed showed when the license joined it.
        let before = feed
            .and_then(|feed| shared.get(&feed))
            .into_iter()
            .flat_map(|(_, entries)| entries);
        let mut live: BTreeSet<u64> = before
            .filter(|(_, (seq, log_seq))| *seq <= joined_at && *log_seq != TOMBSTONE)
            .map(|(id, _)| *id)
            .collect();
        for (id, (_, log_seq)) in &baseline {
            if *log_seq == TOMBSTONE || newer(id).is_some() {
                continue;
            }
            report.expect(live.remove(id), "feed_records", || {
                format!("{dataset} {id} is live in the baseline of license `{name}`, which must not show it")
            });
            report.expect(rows.get(id).is_some_and(|row| row.seq == *log_seq), "feed_records", || {
                format!("{dataset} {id} has another log seq in the baseline of license `{name}` than in its record")
            });
        }
        for id in live {
            let detail = format!(
                "{dataset} {id} is not live in the baseline of license `{name}`, which must show it"
            );
            report.add("feed_records", detail);
        }
    }
    Ok(())
}

/// Checks that the live entries of a shared feed are the visible records, at their log seqs.
fn check_live<F: RecordFields>(
    license: &License,
    feed: FeedId,
    entries: &EntriesById,
    rows: &BTreeMap<u64, RecordRow<F>>,
    report: &mut CheckReport,
) {
    let dataset = F::DATASET;
    let feed = feed.0;
    let visible = rows
        .iter()
        .filter(|(_, row)| row.record.fields().is_in(&license.scope));
    let mut visible: BTreeSet<u64> = visible.map(|(id, _)| *id).collect();
    for (id, (seq, log_seq)) in entries
        .iter()
        .filter(|(_, (_, log_seq))| *log_seq != TOMBSTONE)
    {
        report.expect(visible.remove(id), "feed_records", || {
            format!("{dataset} {id} is live in feed {feed}, whose licenses must not show it")
        });
        report.expect(
            seq == log_seq && rows.get(id).is_some_and(|row| row.seq == *seq),
            "feed_records",
            || format!("{dataset} {id} has another seq in feed {feed} than in its record"),
        );
    }
    for id in visible {
        let detail =
            format!("{dataset} {id} is not live in feed {feed}, whose licenses must show it");
        report.add("feed_records", detail);
    }
}

/// Reads a feed. Checks that its two tables agree, and match its sum.
fn read_feed(
    transaction: &ReadTransaction,
    feed: FeedId,
    dataset: Dataset,
    last_seq: u64,
    report: &mut CheckReport,
) -> Result<EntriesById> {
    let number = feed.0;
    let mut sum = FeedSum::empty(feed, dataset);
    let mut entries = EntriesById::new();
    let mut by_seq = BTreeMap::new();
    for row in transaction
        .open_table(tables::FEED_RECORDS)?
        .range((number, 0)..=(number, u64::MAX))?
    {
        let (key, value) = row?;
        let id = key.value().1;
        let (seq, log_seq) = value.value();
        report.feed_rows += 1;
        sum.add(&FeedEntry::of_row("feed_records", seq, id, log_seq)?);
        entries.insert(id, (seq, log_seq));
        by_seq.insert(seq, (id, log_seq));
        report.expect(seq <= last_seq, "feed_records", || {
            format!("{dataset} {id} has seq {seq} in feed {number}, beyond the last commit at {last_seq}")
        });
    }
    for row in transaction
        .open_table(tables::FEED_ENTRIES)?
        .range((number, 0)..=(number, u64::MAX))?
    {
        let (key, value) = row?;
        let seq = key.value().1;
        report.expect(by_seq.remove(&seq) == Some(value.value()), "feed_entries", || {
            format!("the entry of feed {number} of {dataset} at seq {seq} does not match its index by id")
        });
    }
    for seq in by_seq.into_keys() {
        report.add(
            "feed_entries",
            format!("feed {number} of {dataset} has no entry at seq {seq}"),
        );
    }
    let feeds = transaction.open_table(tables::FEEDS)?;
    let sealed: Option<FeedSum> = feeds
        .get(number)?
        .map(|bytes| unseal("feeds", bytes.value()))
        .transpose()?;
    report.expect(sealed == Some(sum), "feeds", || {
        format!("the entries of feed {number} of {dataset} do not add up to its sum")
    });
    Ok(entries)
}

/// Checks that a license uses each feed, and that each key that is not revoked has a license.
fn check_owners(
    transaction: &ReadTransaction,
    licenses: &[License],
    report: &mut CheckReport,
) -> Result<()> {
    let subscriptions = licenses
        .iter()
        .flat_map(|license| license.subscriptions.values().flatten());
    let read: BTreeSet<u64> = subscriptions
        .flat_map(|subscription| [subscription.feed, Some(subscription.baseline)])
        .flatten()
        .map(|feed| feed.0)
        .collect();
    for entry in transaction.open_table(tables::FEEDS)?.iter()? {
        let feed = entry?.0.value();
        report.expect(read.contains(&feed), "feeds", || {
            format!("no license uses feed {feed}")
        });
    }
    for (name, definition) in [
        ("feed_entries", tables::FEED_ENTRIES),
        ("feed_records", tables::FEED_RECORDS),
    ] {
        let table = transaction.open_table(definition)?;
        let mut next = Some(0);
        while let Some(from) = next {
            let Some(entry) = table.range((from, 0)..)?.next() else {
                break;
            };
            let feed = entry?.0.value().0;
            report.expect(read.contains(&feed), name, || {
                format!("no license uses feed {feed}")
            });
            // Keys on a damaged page can have any order.
            next = feed.max(from).checked_add(1);
        }
    }
    let known: BTreeSet<u64> = licenses.iter().map(|license| license.id.0).collect();
    for entry in transaction.open_table(tables::KEYS)?.iter()? {
        report.keys += 1;
        let (hash, row) = entry?;
        let read = unseal_under::<KeyRecord>("keys", &hash.value(), row.value());
        if let Some(key) = report.note("keys", read) {
            report.expect(
                key.revoked_at.is_some() || known.contains(&key.license.0),
                "keys",
                || format!("key {} has a license that does not exist", key.id),
            );
        }
    }
    report.note("meta", read_secret(&transaction.open_table(tables::META)?));
    Ok(())
}
