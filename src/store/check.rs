//! The full check: compares all indexes, hashes and counts with the records, then verifies the checksums of all pages.
//!
//! It has its own code for reading tables, so that it finds faults in the code used elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use redb::{ReadTransaction, ReadableTable};
use serde::Serialize;

use super::file::open::{OpenOptions, ReadFile, Writer};
use super::format::feed::{FeedEntry, FeedSum};
use super::format::meta::{find_mark, read_secret, stored_digest};
use super::format::outbox::{digest_of, next_header, read_changes};
use super::format::rows::{
    CLOCK_TOLERANCE_S, RecordRow, StoredCommit, expect_count, load_references, load_rows,
    optional_table, unseal, unseal_commit, unseal_under,
};
use super::format::tables::{
    COMMITS, FEED_ENTRIES, FEED_RECORDS, FEEDS, KEYS, LICENSES, LINKS, LOG, META, ORGANIZATIONS,
    OUTBOX, RECORDS, TAGS, TOMBSTONE, keys_from,
};
use super::panics::{self, guard};
use super::{Result, StoreError};
use crate::model::{
    ConferenceFields, Dataset, FeedId, JournalFields, KeyRecord, License, RecordFields,
    ReferenceKind, References, Subscription, json, now,
};

/// The maximum number of listed findings. All are counted.
const MAX_LISTED: usize = 100;
/// The number of examples of findings that are alike.
const MAX_EXAMPLES: usize = 3;

/// Damage found in the file.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct CheckFinding {
    /// The damaged table.
    pub table: &'static str,
    /// The damage.
    pub detail: String,
}

/// Findings in one table whose details differ in digits only.
pub struct FindingKind {
    /// The damaged table.
    pub table: &'static str,
    /// The detail without digits.
    form: String,
    /// The number of these findings.
    pub count: u64,
    /// The details of the first findings.
    pub examples: Vec<String>,
}

/// The result of a check: the numbers of checked rows, and the findings.
#[derive(Default, Serialize)]
pub struct CheckReport {
    /// Records of each dataset.
    pub records: BTreeMap<Dataset, u64>,
    /// Commits of the history.
    pub commits: u64,
    /// Licenses.
    pub licenses: u64,
    /// Feed entries, including those of baselines.
    pub feed_rows: u64,
    /// Keys, also revoked ones.
    pub keys: u64,
    /// Notes that are no damage.
    pub warnings: Vec<String>,
    /// The number of all findings.
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
            .iter_mut()
            .find(|kind| kind.table == table && kind.form == form);
        if let Some(kind) = kind {
            kind.count += 1;
            if kind.examples.len() < MAX_EXAMPLES {
                kind.examples.push(detail.to_owned());
            }
        } else if self.kinds.len() < MAX_LISTED {
            self.kinds.push(FindingKind {
                table,
                form,
                count: 1,
                examples: vec![detail.to_owned()],
            });
        }
    }

    fn expect(&mut self, holds: bool, table: &'static str, detail: fmt::Arguments<'_>) {
        if !holds {
            self.add(table, detail.to_string());
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

/// Checks all rows. An error or panic within a step becomes a finding, and the other steps continue.
fn check_rows(transaction: &ReadTransaction, report: &mut CheckReport) -> Result<()> {
    let references = report.step("organizations", |_| {
        load_references(
            &transaction.open_table(ORGANIZATIONS)?,
            &transaction.open_table(TAGS)?,
        )
    });
    let mut check = RowCheck {
        transaction,
        references: references.unwrap_or_default(),
        licenses: Vec::new(),
        last: StoredCommit::default(),
        links: BTreeSet::new(),
        report,
    };
    check.check_labels();
    check.step("commits", RowCheck::check_commits);
    check.check_clock();
    check.step("licenses", RowCheck::load_licenses);
    check.check_dataset::<ConferenceFields>();
    check.check_dataset::<JournalFields>();
    check.step("links", RowCheck::check_links);
    check.step("keys", RowCheck::check_owners);
    check.step("commits", RowCheck::check_counts);
    check.step("meta", RowCheck::check_digest);
    check.step("outbox", RowCheck::check_outbox);
    Ok(())
}

type LinkRow = (u8, u64, u8, u64);

/// The records of a dataset by id.
type RecordsById<F> = BTreeMap<u64, RecordRow<F>>;

/// A feed's entries by id: seq and log seq.
type EntriesById = BTreeMap<u64, (u64, u64)>;

/// The rows that later steps compare with, and the report.
struct RowCheck<'t> {
    transaction: &'t ReadTransaction,
    references: References,
    licenses: Vec<License>,
    /// The last readable commit, with the last seq.
    last: StoredCommit,
    /// The links of the records.
    links: BTreeSet<LinkRow>,
    report: &'t mut CheckReport,
}

impl RowCheck<'_> {
    fn step(&mut self, table: &'static str, check: impl FnOnce(&mut Self) -> Result<()>) {
        let checked = guard(|| check(self));
        self.report.note(table, checked);
    }

    /// Checks that names of organizations are unique, and tags by type and name.
    fn check_labels(&mut self) {
        let References {
            organizations,
            tags,
        } = &self.references;
        let organizations = organizations.values().map(|row| &row.label);
        expect_unique("organizations", organizations, self.report);
        expect_unique("tags", tags.values().map(|row| &row.label), self.report);
    }

    /// Checks that the seqs of commits have no gaps, and that their times never decrease.
    fn check_commits(&mut self) -> Result<()> {
        for entry in self.transaction.open_table(COMMITS)?.iter()? {
            let (seq, bytes) = entry?;
            let seq = seq.value();
            self.report.commits += 1;
            let last = &mut self.last;
            let Some(row) = self
                .report
                .note("commits", unseal_commit(seq, bytes.value()))
            else {
                last.last_seq = seq;
                continue;
            };
            self.report.expect(
                row.first_seq == last.last_seq + 1,
                "commits",
                format_args!(
                    "the commit {}..={seq} does not follow seq {}",
                    row.first_seq, last.last_seq
                ),
            );
            self.report.expect(
                last.time <= row.time,
                "commits",
                format_args!("the commit at seq {seq} is earlier than the one before it"),
            );
            *last = row;
        }
        Ok(())
    }

    fn check_clock(&mut self) {
        let last = self.last.time;
        if last > now().plus_s(CLOCK_TOLERANCE_S) {
            self.report.warnings.push(format!(
                "the last commit has the time {last}, which is in the future: a clock was ahead. Until then, all commits get this time"
            ));
        }
    }

    fn load_licenses(&mut self) -> Result<()> {
        self.licenses = load_rows("licenses", &self.transaction.open_table(LICENSES)?)?;
        self.report.licenses = self.licenses.len() as u64;
        Ok(())
    }

    /// Checks the records of a dataset, and the feeds that show them.
    fn check_dataset<F: RecordFields>(&mut self) {
        let dataset = F::DATASET;
        let mut records = RecordsById::<F>::new();
        self.step("records", |check| check.check_records(&mut records));
        let count = records.len() as u64;
        let counted = self.last.records[dataset];
        self.report.expect(
            counted == count,
            "commits",
            format_args!("the last commit counts {counted} {dataset}, there are {count}"),
        );
        self.report.records.insert(dataset, count);
        self.step("feeds", |check| check.check_feeds(&records));
    }

    /// Checks the records of a dataset with their log rows and links, and collects them.
    fn check_records<F: RecordFields>(&mut self, records: &mut RecordsById<F>) -> Result<()> {
        let dataset = F::DATASET;
        let code = dataset.code();
        let log = self.transaction.open_table(LOG)?;
        for entry in self
            .transaction
            .open_table(RECORDS)?
            .range(keys_from(code, 0))?
        {
            let (key, seq) = entry?;
            let id = key.value().1;
            let seq = seq.value();
            let Some(found) = log.get((code, seq))? else {
                let detail = format!("{dataset} {id} has no row at seq {seq}");
                self.report.add("records", detail);
                continue;
            };
            let (of, _, text) = found.value();
            self.report.expect(
                of == id,
                "records",
                format_args!("the row of {dataset} at seq {seq} is not of record {id}"),
            );
            let opened = RecordRow::<F>::open(seq, found.value());
            let Some(row) = self.report.note("log", opened) else {
                continue;
            };
            let rendered = json::render_record(&row.record, row.updated_at, &self.references);
            self.report.expect(
                text == rendered.as_slice(),
                "log",
                format_args!("the JSON of {dataset} at seq {seq} does not match its record"),
            );
            self.check_references(id, row.record.fields());
            records.insert(id, row);
        }
        let logged = log.range(keys_from(code, 0))?.count();
        self.report.expect(
            logged == records.len(),
            "log",
            format_args!("{logged} rows of {dataset} for {} records", records.len()),
        );
        Ok(())
    }

    /// Checks that the rows exist that a record links to, and collects its links.
    fn check_references<F: RecordFields>(&mut self, id: u64, fields: &F) {
        let dataset = F::DATASET;
        for kind in ReferenceKind::ALL {
            for link in fields.links(kind) {
                let is_there = match kind {
                    ReferenceKind::Organization => self.references.organizations.contains_key(link),
                    ReferenceKind::Tag => self.references.tags.contains_key(link),
                };
                self.report.expect(
                    is_there,
                    "records",
                    format_args!("{dataset} {id} links to {kind} {link}, which does not exist"),
                );
                self.links
                    .insert((kind.code(), link.get(), dataset.code(), id));
            }
        }
    }

    fn check_links(&mut self) -> Result<()> {
        let mut stored = BTreeSet::new();
        for entry in self.transaction.open_table(LINKS)?.iter()? {
            stored.insert(entry?.0.value());
        }
        for link in self.links.symmetric_difference(&stored) {
            let what = if stored.contains(link) {
                "is not in the record"
            } else {
                "is missing"
            };
            let detail = format!("the link {link:?} (kind, reference, dataset, record) {what}");
            self.report.add("links", detail);
        }
        Ok(())
    }

    /// Checks the shared feeds of a dataset, and the baselines of licenses.
    fn check_feeds<F: RecordFields>(&mut self, records: &RecordsById<F>) -> Result<()> {
        let dataset = F::DATASET;
        let licenses = self.licenses.clone();
        let mut shared: BTreeMap<FeedId, (&License, EntriesById)> = BTreeMap::new();
        for license in &licenses {
            self.check_license(license, dataset);
            let mut entries = &EntriesById::new();
            if let Some(feed) = license.feed(dataset) {
                let (other, read) = &*shared.entry(feed).or_insert_with(|| {
                    let read = self.read_feed(feed, dataset, self.last.last_seq);
                    self.check_shared(license, feed, &read, records);
                    (license, read)
                });
                let is_same = other.scope.shows_same(&license.scope, dataset);
                self.report.expect(is_same, "licenses", format_args!(
                        "licenses `{}` and `{}` share feed {} of {dataset}, but have different scopes",
                        license.name, other.name, feed.0
                    ));
                entries = read;
            }
            if let Some(subscription) = license.subscriptions[dataset] {
                self.check_baseline(license, subscription, entries, records);
            }
        }
        Ok(())
    }

    fn check_license(&mut self, license: &License, dataset: Dataset) {
        let License {
            name, scope_seq, ..
        } = license;
        let is_in_history = *scope_seq <= self.last.last_seq;
        self.report.expect(
            is_in_history,
            "licenses",
            format_args!("license `{name}` was changed at seq {scope_seq}, beyond the last commit"),
        );
        let is_licensed = license.scope.datasets.contains(&dataset);
        self.report.expect(license.feed(dataset).is_some() == is_licensed, "licenses", format_args!("the scope of license `{name}` does not match its feeds: {dataset} is missing in one of the two"));
    }

    /// Checks that a baseline shows the records that the shared feed showed when the license joined it. `shared` has the
    /// entries of that feed.
    fn check_baseline<F: RecordFields>(
        &mut self,
        license: &License,
        subscription: Subscription,
        shared: &EntriesById,
        records: &RecordsById<F>,
    ) {
        let dataset = F::DATASET;
        let License {
            name, scope_seq, ..
        } = license;
        let joined_at = subscription.joined_at;
        self.report.expect(joined_at <= *scope_seq, "licenses", format_args!("license `{name}` joined its feed of {dataset} at seq {joined_at}, after it was changed last"));
        let mut baseline = self.read_feed(subscription.baseline, dataset, joined_at);
        baseline.retain(|id, _| shared.get(id).is_none_or(|(seq, _)| *seq <= joined_at));
        let live = shared
            .iter()
            .filter(|(_, (seq, log_seq))| *seq <= joined_at && *log_seq != TOMBSTONE);
        let live = live.map(|(id, _)| *id).collect();
        let feed = format!("the baseline of license `{name}`");
        self.check_live(&feed, &baseline, live, records);
    }

    /// Checks that the live entries of a feed are those of some records, at their log seqs.
    fn check_live<F: RecordFields>(
        &mut self,
        feed: &str,
        entries: &EntriesById,
        mut expected: BTreeSet<u64>,
        records: &RecordsById<F>,
    ) {
        let dataset = F::DATASET;
        for (id, (_, log_seq)) in entries {
            if *log_seq == TOMBSTONE {
                continue;
            }
            self.report.expect(
                expected.remove(id),
                "feed_records",
                format_args!("{dataset} {id} is live in {feed}, which must not show it"),
            );
            let is_at = records.get(id).is_some_and(|row| row.seq == *log_seq);
            self.report.expect(
                is_at,
                "feed_records",
                format_args!("{dataset} {id} has another log seq in {feed} than in its record"),
            );
        }
        for id in expected {
            let detail = format!("{dataset} {id} is not live in {feed}, which must show it");
            self.report.add("feed_records", detail);
        }
    }

    /// Checks that a shared feed shows the records in a license's scope, each at its own seq.
    fn check_shared<F: RecordFields>(
        &mut self,
        license: &License,
        feed: FeedId,
        entries: &EntriesById,
        records: &RecordsById<F>,
    ) {
        let visible = records
            .iter()
            .filter(|(_, row)| row.record.fields().is_in(&license.scope));
        let visible = visible.map(|(id, _)| *id).collect();
        let name = format!("feed {}", feed.0);
        self.check_live(&name, entries, visible, records);
        for (id, (seq, log_seq)) in entries {
            let is_at = *log_seq == TOMBSTONE || seq == log_seq;
            self.report.expect(
                is_at,
                "feed_records",
                format_args!(
                    "{} {id} has another seq in {name} than in its record",
                    F::DATASET
                ),
            );
        }
    }

    /// Reads a feed, as far as it can be read. Checks that its two tables agree, and match its sum.
    fn read_feed(&mut self, feed: FeedId, dataset: Dataset, last_seq: u64) -> EntriesById {
        let read = self.try_read_feed(feed, dataset, last_seq);
        self.report.note("feed_entries", read).unwrap_or_default()
    }

    fn try_read_feed(
        &mut self,
        feed: FeedId,
        dataset: Dataset,
        last_seq: u64,
    ) -> Result<EntriesById> {
        let number = feed.0;
        let all = keys_from(number, 0);
        let mut sum = FeedSum::empty(feed, dataset);
        let mut entries = EntriesById::new();
        let mut by_seq = BTreeMap::new();
        let feed_records = self.transaction.open_table(FEED_RECORDS)?;
        for row in feed_records.range(all.clone())? {
            let (key, value) = row?;
            let id = key.value().1;
            let (seq, log_seq) = value.value();
            self.report.feed_rows += 1;
            sum.add(&FeedEntry::of_row("feed_records", seq, id, log_seq)?);
            entries.insert(id, (seq, log_seq));
            by_seq.insert(seq, (id, log_seq));
            self.report.expect(seq <= last_seq, "feed_records", format_args!("{dataset} {id} has seq {seq} in feed {number}, beyond the last commit at {last_seq}"));
        }
        let feed_entries = self.transaction.open_table(FEED_ENTRIES)?;
        for row in feed_entries.range(all)? {
            let (key, value) = row?;
            let seq = key.value().1;
            let is_same = by_seq.remove(&seq) == Some(value.value());
            self.report.expect(is_same, "feed_entries", format_args!("the entry of feed {number} of {dataset} at seq {seq} does not match its index by id"));
        }
        for seq in by_seq.into_keys() {
            let detail = format!("feed {number} of {dataset} has no entry at seq {seq}");
            self.report.add("feed_entries", detail);
        }
        let feeds = self.transaction.open_table(FEEDS)?;
        let sealed: Option<FeedSum> = feeds
            .get(number)?
            .map(|bytes| unseal("feeds", bytes.value()))
            .transpose()?;
        self.report.expect(
            sealed == Some(sum),
            "feeds",
            format_args!("the entries of feed {number} of {dataset} do not add up to its sum"),
        );
        Ok(entries)
    }

    /// Checks that a license uses each feed, and that each key that is not revoked has a license.
    fn check_owners(&mut self) -> Result<()> {
        let subscriptions = self.licenses.iter();
        let used: BTreeSet<u64> = subscriptions
            .flat_map(|license| license.subscriptions.values().flatten())
            .flat_map(|subscription| [subscription.feed, Some(subscription.baseline)])
            .flatten()
            .map(|feed| feed.0)
            .collect();
        let mut expect_used = |table, feed: u64| {
            self.report.expect(
                used.contains(&feed),
                table,
                format_args!("no license uses feed {feed}"),
            );
        };
        for entry in self.transaction.open_table(FEEDS)?.iter()? {
            expect_used("feeds", entry?.0.value());
        }
        for (name, definition) in [
            ("feed_entries", FEED_ENTRIES),
            ("feed_records", FEED_RECORDS),
        ] {
            let table = self.transaction.open_table(definition)?;
            let mut next = Some(0);
            while let Some(from) = next {
                let Some(entry) = table.range((from, 0)..)?.next() else {
                    break;
                };
                let feed = entry?.0.value().0;
                expect_used(name, feed);
                // Keys on a damaged page can have any order.
                next = feed.max(from).checked_add(1);
            }
        }
        let known: BTreeSet<u64> = self.licenses.iter().map(|license| license.id.0).collect();
        for entry in self.transaction.open_table(KEYS)?.iter()? {
            self.report.keys += 1;
            let (hash, row) = entry?;
            let read = unseal_under::<KeyRecord>("keys", &hash.value(), row.value());
            if let Some(key) = self.report.note("keys", read) {
                let has_license = known.contains(&key.license.0);
                self.report.expect(
                    key.revoked_at.is_some() || has_license,
                    "keys",
                    format_args!("key {} has a license that does not exist", key.id),
                );
            }
        }
        let secret = read_secret(&self.transaction.open_table(META)?);
        self.report.note("meta", secret);
        Ok(())
    }

    /// Checks the row counts in the last commit.
    fn check_counts(&mut self) -> Result<()> {
        let counted = self.last.counts;
        for (name, definition, counted) in [
            ("organizations", ORGANIZATIONS, counted.organizations),
            ("tags", TAGS, counted.tags),
            ("licenses", LICENSES, counted.licenses),
            ("feeds", FEEDS, counted.feeds),
        ] {
            let found = self.transaction.open_table(definition)?.iter()?.count();
            self.report.note(name, expect_count(name, found, counted));
        }
        let keys = self.transaction.open_table(KEYS)?.iter()?.count();
        self.report
            .note("keys", expect_count("keys", keys, counted.keys));
        Ok(())
    }

    /// Compares all rows with the digest that published databases and replicas store.
    fn check_digest(&mut self) -> Result<()> {
        let transaction = self.transaction;
        let kept = stored_digest(&transaction.open_table(META)?)?;
        let mark = find_mark(transaction)?.map(|mark| mark.digest);
        if kept.or(mark).is_none() {
            return Ok(());
        }
        let found = digest_of(transaction)?;
        for (table, digest) in [("meta", kept), ("replica", mark)] {
            let is_same = digest.is_none_or(|digest| digest == found);
            self.report.expect(
                is_same,
                table,
                format_args!("the rows of all tables do not add up to the stored digest"),
            );
        }
        Ok(())
    }

    /// Compares the changes in the outbox with their hashes.
    fn check_outbox(&mut self) -> Result<()> {
        let Some(outbox) = optional_table(self.transaction.open_table(OUTBOX))? else {
            return Ok(());
        };
        let mut last = 0;
        while let Some(header) = next_header(&outbox, last)? {
            self.report.note("outbox", read_changes(&outbox, &header));
            last = header.commit.last_seq;
        }
        Ok(())
    }
}

fn expect_unique<'a>(
    table: &'static str,
    labels: impl Iterator<Item = &'a String>,
    report: &mut CheckReport,
) {
    let mut seen = BTreeSet::new();
    for label in labels {
        report.expect(
            seen.insert(label),
            table,
            format_args!("the name `{label}` occurs twice"),
        );
    }
}
