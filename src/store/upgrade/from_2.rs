//! From format 2 to format 3.
//!
//! Format 2 stored a record twice: in `records`, and as finished JSON in `log`. Its rows were MessagePack arrays, whose
//! members have no names, and datasets stood in arrays of two. Format 3 keeps the JSON alone, and names what its rows hold.
//!
//! The types here are those of format 2. They never change.

use std::collections::BTreeSet;

use ipnet::IpNet;
use redb::{ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::model::{DatabaseId, Head, Timestamp};
use crate::store::StoreError;
use crate::store::file::copy::copy_table;
use crate::store::file::older::{Each, OldReplica};
use crate::store::file::open::create_tables;
use crate::store::format::codec::{hash, seal, unseal};
use crate::store::format::tables::{self, LogValue};
use crate::store::read::snapshot::CommitPoint;

/// The version that this step ends with.
const TO: u32 = 3;

/// Records as format 2 had them: sealed.
pub(super) const RECORDS: TableDefinition<(u8, u64), &[u8]> = TableDefinition::new("records");

/// The fields of rows when format 3 was new.
pub(super) const FIELDS: &str = include_str!("fields_3.txt");

/// A value for each of the two datasets. It was an array.
#[derive(Serialize, Deserialize)]
struct PerDataset<T> {
    conferences: T,
    journals: T,
}

#[derive(Serialize, Deserialize)]
struct Commit {
    time: Timestamp,
    lineage: [u8; 16],
    first_seq: u64,
    last_seq: u64,
    records: PerDataset<u64>,
    changed_at: PerDataset<Option<Timestamp>>,
    references_seq: u64,
    counts: Counts,
    who: String,
    what: String,
}

#[derive(Serialize, Deserialize)]
struct Counts {
    organizations: u64,
    tags: u64,
    licenses: u64,
    keys: u64,
    feeds: u64,
}

#[derive(Serialize, Deserialize)]
struct Row<F> {
    id: u64,
    fields: F,
}

#[derive(Serialize, Deserialize)]
struct Organization {
    name: Option<String>,
    abbv: Option<String>,
    r#type: Option<String>,
    url: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Tag {
    r#type: Option<String>,
    name: Option<String>,
    category: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct License {
    id: u64,
    name: String,
    scope: Scope,
    rate_limit: u32,
    scope_seq: u64,
    subscriptions: PerDataset<Option<Subscription>>,
    created_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Scope {
    datasets: BTreeSet<String>,
    therapy_areas: Option<BTreeSet<String>>,
    countries: Option<BTreeSet<String>>,
    years: Option<BTreeSet<u16>>,
}

#[derive(Serialize, Deserialize)]
struct Subscription {
    feed: Option<u64>,
    joined_at: u64,
    baseline: u64,
}

#[derive(Serialize, Deserialize)]
struct Key {
    id: String,
    label: Option<String>,
    license: u64,
    license_name: String,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    allowed_ips: Vec<IpNet>,
    revoked_at: Option<Timestamp>,
    replaced_by: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct FeedHead {
    feed: u64,
    dataset: String,
    entries: u64,
    live: u64,
    newest_seq: u64,
    digest: u64,
}

#[derive(Serialize, Deserialize)]
struct LastCommit {
    seq: u64,
    lineage: [u8; 16],
}

#[derive(Deserialize)]
struct ReplicaMark {
    url: String,
    id: [u8; 16],
    _slot: u64,
    _hash: [u8; 32],
    _digest: [u64; 4],
}

/// A record as `records` held it.
#[derive(Deserialize)]
struct Record<F> {
    seq: u64,
    _updated_at: i64,
    record: Row<F>,
}

/// A record's fields, from the array in `records` or from the object in `log`.
#[derive(PartialEq, Deserialize)]
struct Conference {
    name: Option<String>,
    abbv: Option<String>,
    year: Option<u16>,
    start_date: Option<String>,
    start_date_status: Option<String>,
    end_date: Option<String>,
    abstract_due_date: Option<String>,
    abstract_due_date_status: Option<String>,
    late_breaking_due_date: Option<String>,
    late_breaking_due_date_status: Option<String>,
    country: Option<String>,
    city: Option<String>,
    venue: Option<String>,
    url: Option<String>,
    therapy_areas: Vec<String>,
    organizations: Vec<Link>,
    tags: Vec<Link>,
    formats: Formats,
}

#[derive(PartialEq, Deserialize)]
struct Formats {
    oral: Option<bool>,
    poster: Option<bool>,
    e_poster: Option<bool>,
    published_abstract: Option<bool>,
    encore: Option<bool>,
}

#[derive(PartialEq, Deserialize)]
struct Journal {
    name: Option<String>,
    abbv: Option<String>,
    issn_print: Option<String>,
    issn_online: Option<String>,
    publisher: Option<String>,
    url: Option<String>,
    impact_factor: Option<f64>,
    impact_factor_year: Option<u64>,
    citescore: Option<f64>,
    sjr: Option<f64>,
    h_index: Option<u64>,
    publishing: Publishing,
    timelines: Timelines,
    organizations: Vec<Link>,
    tags: Vec<Link>,
}

#[derive(PartialEq, Deserialize)]
struct Publishing {
    access: Option<String>,
    content_license: Option<String>,
    apc_usd: Option<f64>,
    embargo_months: Option<u64>,
}

#[derive(PartialEq, Deserialize)]
struct Timelines {
    submit_to_first_decision: Weeks,
    online_submit_to_accept: Weeks,
    accept_to_online: Weeks,
    accept_to_print: Weeks,
}

#[derive(PartialEq, Deserialize)]
struct Weeks {
    min_weeks: Option<f64>,
    max_weeks: Option<f64>,
}

/// A link: an id in `records`, an object with an id in `log`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Link {
    Id(u64),
    Object { id: u64 },
}

impl PartialEq for Link {
    fn eq(&self, other: &Link) -> bool {
        let id = |link: &Link| match link {
            Link::Id(id) | Link::Object { id } => *id,
        };
        id(self) == id(other)
    }
}

/// Writes all rows of a file of format 2 to an empty one, as rows of format 3. The names, the outbox and the digest that a
/// published file keeps are left out.
pub(super) fn step(from: &ReadTransaction, to: &WriteTransaction, each: Each<'_>) -> Result<(), StoreError> {
    create_tables(to)?;
    let mut meta = to.open_table(tables::META)?;
    for entry in from.open_table(tables::META)?.iter()? {
        let (name, value) = entry?;
        match name.value() {
            tables::META_SCHEMA | tables::META_PUBLISH => {}
            tables::META_RESTORED => {
                let resealed = reseal::<LastCommit>("meta", value.value())?;
                meta.insert(tables::META_RESTORED, resealed.as_slice())?;
            }
            other => drop(meta.insert(other, value.value())?),
        }
    }
    meta.insert(tables::META_SCHEMA, TO.to_le_bytes().as_slice())?;
    meta.insert(tables::META_FIELDS, FIELDS.as_bytes())?;
    copy(from, to, tables::COMMITS, reseal::<Commit>)?;
    copy(from, to, tables::ORGANIZATIONS, reseal::<Row<Organization>>)?;
    copy(from, to, tables::TAGS, reseal::<Row<Tag>>)?;
    copy(from, to, tables::LICENSES, reseal::<License>)?;
    copy(from, to, tables::KEYS, reseal::<Key>)?;
    copy(from, to, tables::FEEDS, reseal::<FeedHead>)?;
    copy_table(from, to, tables::LINKS)?;
    copy_table(from, to, tables::FEED_ENTRIES)?;
    copy_table(from, to, tables::FEED_RECORDS)?;
    copy_table(from, to, tables::LOG)?;
    copy_records(from, to, each)
}

/// The row with its members named.
fn reseal<T: Serialize + DeserializeOwned>(table: &'static str, row: &[u8]) -> Result<Vec<u8>, StoreError> {
    seal(&unseal::<T>(table, row)?)
}

type Reseal = fn(&'static str, &[u8]) -> Result<Vec<u8>, StoreError>;

fn copy<K: redb::Key + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'static, K, &'static [u8]>,
    reseal: Reseal,
) -> Result<(), StoreError>
where
    for<'a> K::SelfType<'a>: std::borrow::Borrow<K::SelfType<'a>>,
{
    use redb::TableHandle;
    let mut target = to.open_table(table)?;
    let name = tables::code_of(table.name()).map_or("(local)", |code| tables::TABLES[usize::from(code)]);
    for entry in from.open_table(table)?.iter()? {
        let (key, row) = entry?;
        target.insert(key.value(), reseal(name, row.value())?.as_slice())?;
    }
    Ok(())
}

/// Copies the seqs of records, and compares each record with its JSON: from now on there is nothing else to compare it with.
fn copy_records(from: &ReadTransaction, to: &WriteTransaction, each: Each<'_>) -> Result<(), StoreError> {
    let log = from.open_table(tables::LOG)?;
    let mut target = to.open_table(tables::RECORDS)?;
    let mut cursor = target.upper_bound_mut(std::ops::Bound::<(u8, u64)>::Unbounded)?;
    for entry in from.open_table(RECORDS)?.iter()? {
        let (key, row) = entry?;
        let (dataset, id) = key.value();
        let seq = match dataset {
            1 => compare::<Conference>(&log, dataset, id, row.value()),
            2 => compare::<Journal>(&log, dataset, id, row.value()),
            other => Err(StoreError::damaged("records", format!("there is no dataset {other}"))),
        }?;
        cursor.insert_before((dataset, id), seq)?;
        each()?;
    }
    Ok(cursor.close()?)
}

/// Fails unless a record is the one that stands at its seq in `log`. Returns the seq.
fn compare<F: DeserializeOwned + PartialEq>(
    log: &impl ReadableTable<(u8, u64), LogValue<'static>>,
    dataset: u8,
    id: u64,
    row: &[u8],
) -> Result<u64, StoreError> {
    let Record { seq, record, .. } = unseal::<Record<F>>("records", row)?;
    let differs = || StoreError::damaged("log", format!("the row at seq {seq} is not that of record {id}"));
    let found = log.get((dataset, seq))?.ok_or_else(differs)?;
    let (of, stored, text) = found.value();
    if (of, record.id) != (id, id) || stored != hash(text) {
        return Err(differs());
    }
    let rendered: F = serde_json::from_slice(text).map_err(|_| differs())?;
    if rendered == record.fields { Ok(seq) } else { Err(differs()) }
}

/// The last commit of a file.
pub(super) fn last_commit(commits: &impl ReadableTable<u64, &'static [u8]>) -> Result<CommitPoint, StoreError> {
    let Some((seq, row)) = commits.last()? else { return Ok(CommitPoint::EMPTY) };
    let Commit { time, lineage, .. } = unseal("commits", row.value())?;
    Ok(CommitPoint { seq: seq.value(), time, lineage })
}

/// The numbers of records after the last commit.
pub(super) fn count_records(from: &ReadTransaction) -> Result<crate::model::PerDataset<u64>, StoreError> {
    let commits = from.open_table(tables::COMMITS)?;
    let last = commits.last()?.map(|(_, row)| unseal::<Commit>("commits", row.value())).transpose()?;
    Ok(last.map_or_else(Default::default, |Commit { records: PerDataset { conferences, journals }, .. }| {
        crate::model::PerDataset { conferences, journals }
    }))
}

/// The origin that a file follows; `None` if it is no replica.
pub(super) fn find_replica(from: &ReadTransaction) -> Result<Option<OldReplica>, StoreError> {
    let Some(table) = crate::store::format::rows::if_there(from.open_table(tables::REPLICA))? else { return Ok(None) };
    let Some(row) = table.get(tables::REPLICA_KEY)? else { return Ok(None) };
    let ReplicaMark { url, id, .. } = unseal("replica", row.value())?;
    let LastCommit { seq, lineage } = {
        let CommitPoint { seq, lineage, .. } = last_commit(&from.open_table(tables::COMMITS)?)?;
        LastCommit { seq, lineage }
    };
    Ok(Some(OldReplica { url, id: DatabaseId(id), head: Head { seq, lineage } }))
}
