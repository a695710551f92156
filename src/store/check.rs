//! The full check: every index, hash and count compared with the records, then every page with its checksum.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redb::{ReadTransaction, ReadableDatabase, ReadableTable};
use serde::Serialize;

use super::codec::{CommitRow, RecordRow, hash, unseal};
use super::file::Writer;
use super::load::{load_references, load_rows};
use super::panics::guard;
use super::tables::{self, GONE};
use super::{StoreError, panics};
use crate::model::{
    ConferenceFields, Dataset, FeedId, Follows, JournalFields, KeyRecord, License, RecordFields, ReferenceKind,
    References, json,
};

/// Findings listed at most; more are counted.
const MOST_LISTED: usize = 100;

/// Something in the file that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The table.
    pub table: &'static str,
    /// What does not fit.
    pub detail: String,
}

/// What a check looked at and found.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Records checked, per dataset.
    pub records: BTreeMap<Dataset, u64>,
    /// Commits checked.
    pub commits: u64,
    /// Licenses checked.
    pub licenses: u64,
    /// Rows of license feeds checked.
    pub feed_rows: u64,
    /// Keys checked.
    pub keys: u64,
    /// How many things do not fit.
    pub damages: u64,
    /// The first of them.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Takes down something that does not fit.
    pub fn add(&mut self, table: &'static str, detail: impl Into<String>) {
        self.damages += 1;
        if self.findings.len() < MOST_LISTED {
            self.findings.push(Finding { table, detail: detail.into() });
        }
    }

    fn expect(&mut self, holds: bool, table: &'static str, detail: impl FnOnce() -> String) {
        if !holds {
            self.add(table, detail());
        }
    }

    /// The report of a file that cannot be looked at, for what is wrong with it.
    pub fn of_damage(table: &'static str, detail: String) -> Report {
        let mut report = Report::default();
        report.add(table, detail);
        report
    }

    /// One step of the check. That it cannot read on, or panics, is a finding, so that the check goes on with the next.
    fn step<T>(&mut self, table: &'static str, check: impl FnOnce(&mut Report) -> Result<T, StoreError>) -> Option<T> {
        let checked = guard(|| check(self));
        self.note(table, checked)
    }

    /// Takes down a failure to read as a finding, so that the check goes on with the next table.
    fn note<T>(&mut self, table: &'static str, read: Result<T, StoreError>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(StoreError::Damaged { table, detail }) => {
                self.add(table, detail);
                None
            }
            Err(error) => {
                self.add(table, error.to_string());
                None
            }
        }
    }
}

/// Checks the whole file. The writer's lock is held meanwhile, so nothing changes under the check.
///
/// # Errors
/// When the check itself cannot be made; damage is in the report.
pub fn check(writer: &mut Writer) -> Result<Report, StoreError> {
    let mut report = Report::default();
    let panics_before = panics::count();
    report.step("(pages)", |report| {
        let transaction = writer.database_mut().begin_read()?;
        check_rows(&transaction, report);
        Ok(())
    });
    if panics::count() != panics_before {
        // The engine's check repairs what it can, and an engine that panicked is not to write.
        return Ok(report);
    }
    report.step("(pages)", |report| {
        match writer.database_mut().check_integrity() {
            Ok(true) => {}
            Ok(false) => {
                report.add("(pages)", "the engine found pages that do not match their checksums, and repaired them")
            }
            Err(error) => report.add("(pages)", format!("the engine's own check failed: {error}")),
        }
        Ok(())
    });
    Ok(report)
}

fn check_rows(transaction: &ReadTransaction, report: &mut Report) {
    let references = report.step("organizations", |_| {
        load_references(&transaction.open_table(tables::ORGANIZATIONS)?, &transaction.open_table(tables::TAGS)?)
    });
    let references = references.unwrap_or_default();
    check_labels(&references, report);
    let totals = report.step("commits", |report| Ok(check_commits(transaction, report))).unwrap_or_default();
    let mut links = BTreeSet::new();
    let conferences = report.step("records", |report| {
        Ok(check_records::<ConferenceFields>(transaction, &references, totals, &mut links, report))
    });
    let journals = report.step("records", |report| {
        Ok(check_records::<JournalFields>(transaction, &references, totals, &mut links, report))
    });
    let (conferences, journals) = (conferences.unwrap_or_default(), journals.unwrap_or_default());
    report.step("links", |report| check_links(transaction, &links, report));
    let licenses =
        report.step("licenses", |_| load_rows::<License>("licenses", &transaction.open_table(tables::LICENSES)?));
    let licenses = licenses.unwrap_or_default();
    report.licenses = u64::try_from(licenses.len()).unwrap_or(u64::MAX);
    report.step("feed", |report| {
        check_entries(transaction, &licenses, &conferences, report);
        Ok(())
    });
    report.step("feed", |report| {
        check_entries(transaction, &licenses, &journals, report);
        Ok(())
    });
    report.step("keys", |report| check_owners(transaction, &licenses, report));
}

/// Names of organizations are unique, and so is a tag's type and name.
fn check_labels(references: &References, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for organization in references.organizations.values() {
        let fresh = seen.insert(&organization.label);
        report.expect(fresh, "organizations", || format!("the name `{}` stands twice", organization.label));
    }
    let mut seen = BTreeSet::new();
    for tag in references.tags.values() {
        let fresh = seen.insert(&tag.label);
        report.expect(fresh, "tags", || format!("`{}` stands twice", tag.label));
    }
}

/// Commits follow each other without a gap, and their times do not descend. Returns the last one's totals.
fn check_commits(transaction: &ReadTransaction, report: &mut Report) -> [u64; 2] {
    let mut totals = [0; 2];
    let mut last_seq = 0;
    let mut last_time = None;
    let mut count = 0;
    let checked = (|| -> Result<(), StoreError> {
        for entry in transaction.open_table(tables::COMMITS)?.iter()? {
            let (seq, bytes) = entry?;
            let seq = seq.value();
            count += 1;
            let Some(row) = report.note("commits", unseal::<CommitRow>("commits", bytes.value())) else {
                last_seq = seq;
                continue;
            };
            report.expect(row.first_seq == last_seq + 1 && seq >= row.first_seq, "commits", || {
                format!("the commit {}..={seq} does not follow seq {last_seq}", row.first_seq)
            });
            report.expect(last_time.is_none_or(|time| time <= row.time), "commits", || {
                format!("the commit at seq {seq} is earlier than the one before it")
            });
            last_seq = seq;
            last_time = Some(row.time);
            totals = row.records;
        }
        Ok(())
    })();
    report.note("commits", checked);
    report.commits = count;
    let checked = (|| -> Result<(), StoreError> {
        for entry in transaction.open_table(tables::REMOVALS)?.iter()? {
            let (dataset, seq) = entry?.0.value();
            report.expect(Dataset::from_code(dataset).is_some() && seq <= last_seq, "removals", || {
                format!("dataset {dataset}, seq {seq} is of no commit")
            });
        }
        Ok(())
    })();
    report.note("removals", checked);
    totals
}

type Link = (u8, u64, u8, u64);

/// The records, with what depends on them alone: their log rows, links and number.
fn check_records<F: RecordFields>(
    transaction: &ReadTransaction,
    references: &References,
    totals: [u64; 2],
    links: &mut BTreeSet<Link>,
    report: &mut Report,
) -> BTreeMap<u64, RecordRow<F>> {
    let dataset = F::DATASET;
    let code = dataset.code();
    let mut rows = BTreeMap::new();
    let checked = (|| -> Result<(), StoreError> {
        let log = transaction.open_table(tables::LOG)?;
        for entry in transaction.open_table(tables::RECORDS)?.range((code, 0)..=(code, u64::MAX))? {
            let (key, bytes) = entry?;
            let id = key.value().1;
            let read = unseal::<RecordRow<F>>("records", bytes.value());
            let Some(row) = report.note("records", read) else { continue };
            report.expect(row.record.id().get() == id, "records", || {
                format!("{dataset} {id} holds the record {}", row.record.id())
            });
            match log.get((code, row.seq))? {
                None => report.add("log", format!("{dataset} {id} has no row at seq {}", row.seq)),
                Some(found) => {
                    let (of, stored, text) = found.value();
                    let rendered = json::render_record(&row.record, row.updated_at, references);
                    report.expect(of == id && stored == hash(text) && text == rendered.as_slice(), "log", || {
                        format!("the row of {dataset} at seq {} does not match record {id}", row.seq)
                    });
                }
            }
            let fields = row.record.fields();
            for organization in fields.organizations() {
                report.expect(references.organizations.contains_key(organization), "records", || {
                    format!("{dataset} {id} links to organization {organization}, which is not there")
                });
                links.insert((ReferenceKind::Organization.code(), organization.get(), code, id));
            }
            for tag in fields.tags() {
                report.expect(references.tags.contains_key(tag), "records", || {
                    format!("{dataset} {id} links to tag {tag}, which is not there")
                });
                links.insert((ReferenceKind::Tag.code(), tag.get(), code, id));
            }
            rows.insert(id, row);
        }
        let logged = log.range((code, 0)..=(code, u64::MAX))?.count();
        report.expect(logged == rows.len(), "log", || format!("{logged} rows of {dataset} for {} records", rows.len()));
        Ok(())
    })();
    report.note("records", checked);
    let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    report.expect(totals[dataset.index()] == count, "commits", || {
        format!("the last commit counts {} {dataset}, there are {count}", totals[dataset.index()])
    });
    report.records.insert(dataset, count);
    rows
}

fn check_links(
    transaction: &ReadTransaction,
    expected: &BTreeSet<Link>,
    report: &mut Report,
) -> Result<(), StoreError> {
    let mut stored = BTreeSet::new();
    for entry in transaction.open_table(tables::LINKS)?.iter()? {
        stored.insert(entry?.0.value());
    }
    for link in expected.symmetric_difference(&stored) {
        let what = if stored.contains(link) { "is not in the record" } else { "is missing" };
        report.add("links", format!("the link {link:?} (kind, reference, dataset, record) {what}"));
    }
    Ok(())
}

fn check_entries<F: RecordFields>(
    transaction: &ReadTransaction,
    licenses: &[License],
    rows: &BTreeMap<u64, RecordRow<F>>,
    report: &mut Report,
) {
    let feeds = check_feeds(transaction, licenses, rows, report);
    let feeds = report.note("feed", feeds).unwrap_or_default();
    let checked = check_standings(transaction, licenses, rows, &feeds, report);
    report.note("license_feed", checked);
}

/// Of each feed, live rows are the visible records at their log seqs; every row stands once by id and once by seq.
/// Returns the feeds' rows by id.
fn check_feeds<F: RecordFields>(
    transaction: &ReadTransaction,
    licenses: &[License],
    rows: &BTreeMap<u64, RecordRow<F>>,
    report: &mut Report,
) -> Result<BTreeMap<FeedId, FeedRows>, StoreError> {
    let dataset = F::DATASET;
    let code = dataset.code();
    let by_id = transaction.open_table(tables::FEED_RECORDS)?;
    let by_seq = transaction.open_table(tables::FEED)?;
    let last_seq = last_seq(transaction)?;
    let mut feeds: BTreeMap<FeedId, FeedRows> = BTreeMap::new();
    for license in licenses {
        let Some(Follows { feed, .. }) = license.follows[dataset.index()] else { continue };
        if feeds.contains_key(&feed) {
            let shared =
                licenses.iter().filter(|other| other.follows[dataset.index()].is_some_and(|of| of.feed == feed));
            report.expect(
                shared.into_iter().all(|other| other.scope.shows_same(&license.scope, dataset)),
                "licenses",
                || {
                    format!(
                        "license `{}` follows feed {} of {dataset}, which is of another scope",
                        license.name, feed.0
                    )
                },
            );
            continue;
        }
        let number = feed.0;
        let mut live: BTreeSet<u64> =
            rows.iter().filter(|(_, row)| row.record.fields().is_in(&license.scope)).map(|(id, _)| *id).collect();
        let mut found = FeedRows::new();
        let mut by_seq_expected = HashMap::new();
        for entry in by_id.range((number, code, 0)..=(number, code, u64::MAX))? {
            let (key, value) = entry?;
            let (id, (seq, is_live)) = (key.value().2, value.value());
            report.feed_rows += 1;
            found.insert(id, (seq, is_live));
            by_seq_expected.insert(seq, (id, is_live));
            if !is_live {
                continue;
            }
            report.expect(live.remove(&id), "feed_records", || {
                format!("{dataset} {id} is live in feed {number}, whose licenses must not see it")
            });
            report.expect(rows.get(&id).is_some_and(|row| row.seq == seq), "feed_records", || {
                format!("{dataset} {id} stands at another seq in feed {number} than in its record")
            });
        }
        for id in live {
            report.add(
                "feed_records",
                format!("{dataset} {id} is not live in feed {number}, whose licenses must see it"),
            );
        }
        for entry in by_seq.range((number, code, 0)..=(number, code, u64::MAX))? {
            let (key, value) = entry?;
            let seq = key.value().2;
            let fits = by_seq_expected.remove(&seq) == Some(value.value()) && seq <= last_seq;
            report.expect(fits, "feed", || {
                format!("the entry of feed {number} of {dataset} at seq {seq} does not match its index by id")
            });
        }
        for seq in by_seq_expected.into_keys() {
            report.add("feed", format!("feed {number} of {dataset} has no entry at seq {seq}"));
        }
        feeds.insert(feed, found);
    }
    Ok(feeds)
}

/// A feed's rows: id to seq, and whether the record is live.
type FeedRows = BTreeMap<u64, (u64, bool)>;

/// With its own rows under those of the feed that it follows, each license has one entry per record that it sees, and none
/// of others but tombstones.
fn check_standings<F: RecordFields>(
    transaction: &ReadTransaction,
    licenses: &[License],
    rows: &BTreeMap<u64, RecordRow<F>>,
    feeds: &BTreeMap<FeedId, FeedRows>,
    report: &mut Report,
) -> Result<(), StoreError> {
    let dataset = F::DATASET;
    let code = dataset.code();
    let by_id = transaction.open_table(tables::LICENSE_RECORDS)?;
    let by_seq = transaction.open_table(tables::LICENSE_FEED)?;
    let last_seq = last_seq(transaction)?;
    let nothing = FeedRows::new();
    for license in licenses {
        let (name, number) = (&license.name, license.id.0);
        let follows = license.follows[dataset.index()];
        report.expect(follows.is_some() == license.scope.datasets.contains(&dataset), "licenses", || {
            format!("license `{name}` follows no feed of a dataset that it shows, or one of another")
        });
        report.expect(license.scope_seq <= last_seq, "licenses", || {
            format!("license `{name}` was changed at seq {}, beyond the last commit", license.scope_seq)
        });
        let since = follows.map_or(license.scope_seq, |follows| follows.since);
        report.expect(since <= license.scope_seq, "licenses", || {
            format!("license `{name}` came to its feed of {dataset} at seq {since}, after it was changed last")
        });
        let feed = follows.and_then(|follows| feeds.get(&follows.feed)).unwrap_or(&nothing);
        let is_later = |id: &u64| feed.get(id).is_some_and(|(seq, _)| *seq > since);
        // What the feed said before the license came, its own rows must say.
        let mut live: BTreeSet<u64> =
            feed.iter().filter(|(_, (seq, live))| *live && *seq <= since).map(|(id, _)| *id).collect();
        let mut by_seq_expected = HashMap::new();
        for entry in by_id.range((number, code, 0)..=(number, code, u64::MAX))? {
            let (key, value) = entry?;
            let (id, (seq, log_seq)) = (key.value().2, value.value());
            report.feed_rows += 1;
            by_seq_expected.insert(seq, (id, log_seq));
            report.expect(seq <= since, "license_records", || {
                format!("{dataset} {id} stands at seq {seq} for license `{name}`, which follows a feed since {since}")
            });
            if log_seq == GONE || is_later(&id) {
                continue;
            }
            report.expect(live.remove(&id), "license_records", || {
                format!("{dataset} {id} is live for license `{name}`, which must not see it")
            });
            report.expect(rows.get(&id).is_some_and(|row| row.seq == log_seq), "license_records", || {
                format!("{dataset} {id} has another log seq for license `{name}` than in its record")
            });
        }
        for id in live {
            report
                .add("license_records", format!("{dataset} {id} is not live for license `{name}`, which must see it"));
        }
        for entry in by_seq.range((number, code, 0)..=(number, code, u64::MAX))? {
            let (key, value) = entry?;
            let seq = key.value().2;
            report.expect(by_seq_expected.remove(&seq) == Some(value.value()), "license_feed", || {
                format!("the entry of license `{name}` in {dataset} at seq {seq} does not match its index by id")
            });
        }
        for seq in by_seq_expected.into_keys() {
            report.add("license_feed", format!("license `{name}` has no entry in {dataset} at seq {seq}"));
        }
    }
    Ok(())
}

fn last_seq(transaction: &ReadTransaction) -> Result<u64, StoreError> {
    Ok(transaction.open_table(tables::COMMITS)?.last()?.map_or(0, |(seq, _)| seq.value()))
}

/// Rows of licenses belong to a license, and keys that can be used do too.
fn check_owners(transaction: &ReadTransaction, licenses: &[License], report: &mut Report) -> Result<(), StoreError> {
    let known: BTreeSet<u64> = licenses.iter().map(|license| license.id.0).collect();
    for (name, definition) in [("license_feed", tables::LICENSE_FEED), ("license_records", tables::LICENSE_RECORDS)] {
        let table = transaction.open_table(definition)?;
        let mut next = Some(0);
        while let Some(from) = next {
            let Some(entry) = table.range((from, 0, 0)..)?.next() else { break };
            let owner = entry?.0.value().0;
            report.expect(known.contains(&owner), name, || "rows of a license that is not there".to_owned());
            next = owner.checked_add(1);
        }
    }
    let followed: BTreeSet<(u64, u8)> = licenses
        .iter()
        .flat_map(|license| Dataset::ALL.map(|dataset| (license.follows[dataset.index()], dataset.code())))
        .filter_map(|(follows, dataset)| Some((follows?.feed.0, dataset)))
        .collect();
    for (name, definition) in [("feed", tables::FEED), ("feed_records", tables::FEED_RECORDS)] {
        let table = transaction.open_table(definition)?;
        let mut next = Some((0, 0, 0));
        while let Some(from) = next {
            let Some(entry) = table.range(from..)?.next() else { break };
            let (feed, dataset, _) = entry?.0.value();
            report.expect(followed.contains(&(feed, dataset)), name, || {
                "rows of a feed that no license follows".to_owned()
            });
            next = dataset
                .checked_add(1)
                .map(|dataset| (feed, dataset, 0))
                .or(feed.checked_add(1).map(|feed| (feed, 0, 0)));
        }
    }
    for entry in transaction.open_table(tables::KEYS)?.iter()? {
        report.keys += 1;
        let read = unseal::<KeyRecord>("keys", entry?.1.value());
        if let Some(key) = report.note("keys", read) {
            report.expect(key.revoked_at.is_some() || known.contains(&key.license.0), "keys", || {
                format!("key {} opens a license that is not there", key.id)
            });
        }
    }
    let meta = transaction.open_table(tables::META)?;
    let secret = meta.get(tables::META_SECRET)?.is_some_and(|secret| secret.value().len() == 32);
    report.expect(secret, "meta", || "the token secret is missing".to_owned());
    Ok(())
}
