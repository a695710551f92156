//! The upgrade from format 2 to format 3.
//!
//! Format 2 stored a record twice: in `records`, and as JSON in `log`. Its rows were MessagePack arrays without names.
//! A value per dataset was an array of two. Format 3 stores only the JSON, and the names of members.
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
use crate::store::file::older::{OnRecord, ReplicaOrigin};
use crate::store::file::open::create_tables;
use crate::store::format::codec::{hash, seal, seal_under, unseal};
use crate::store::format::secret;
use crate::store::format::tables::{self, LogValue};
use crate::store::read::snapshot::CommitPoint;

/// The format after this step.
const TO: u32 = 3;

pub(super) const RECORDS: TableDefinition<(u8, u64), &[u8]> = TableDefinition::new("records");

/// The fields of rows when format 3 was new.
pub(super) const FIELDS: &str = include_str!("fields_3.txt");

#[derive(Serialize, Deserialize)]
struct PerDatasetV2<T> {
    conferences: T,
    journals: T,
}

#[derive(Serialize, Deserialize)]
struct CommitV2 {
    time: Timestamp,
    lineage: [u8; 16],
    first_seq: u64,
    last_seq: u64,
    records: PerDatasetV2<u64>,
    changed_at: PerDatasetV2<Option<Timestamp>>,
    references_seq: u64,
    counts: CountsV2,
    who: String,
    what: String,
}

#[derive(Serialize, Deserialize)]
struct CountsV2 {
    organizations: u64,
    tags: u64,
    licenses: u64,
    keys: u64,
    feeds: u64,
}

#[derive(Serialize, Deserialize)]
struct RowV2<F> {
    id: u64,
    fields: F,
}

#[derive(Serialize, Deserialize)]
struct OrganizationV2 {
    name: Option<String>,
    abbv: Option<String>,
    r#type: Option<String>,
    url: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct TagV2 {
    r#type: Option<String>,
    name: Option<String>,
    category: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct LicenseV2 {
    id: u64,
    name: String,
    scope: ScopeV2,
    rate_limit: u32,
    scope_seq: u64,
    subscriptions: PerDatasetV2<Option<SubscriptionV2>>,
    created_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct ScopeV2 {
    datasets: BTreeSet<String>,
    therapy_areas: Option<BTreeSet<String>>,
    countries: Option<BTreeSet<String>>,
    years: Option<BTreeSet<u16>>,
}

#[derive(Serialize, Deserialize)]
struct SubscriptionV2 {
    feed: Option<u64>,
    joined_at: u64,
    baseline: u64,
}

#[derive(Serialize, Deserialize)]
struct KeyV2 {
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
struct FeedHeadV2 {
    feed: u64,
    dataset: String,
    entries: u64,
    live: u64,
    newest_seq: u64,
    digest: u64,
}

#[derive(Serialize, Deserialize)]
struct LastCommitV2 {
    seq: u64,
    lineage: [u8; 16],
}

#[derive(Deserialize)]
struct ReplicaMarkV2 {
    url: String,
    id: [u8; 16],
    _slot: u64,
    _hash: [u8; 32],
    _digest: [u64; 4],
}

#[derive(Deserialize)]
struct RecordV2<F> {
    seq: u64,
    _updated_at: i64,
    record: RowV2<F>,
}

/// The fields of a record: an array in `records`, an object in `log`.
#[derive(PartialEq, Deserialize)]
struct ConferenceV2 {
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
    organizations: Vec<LinkV2>,
    tags: Vec<LinkV2>,
    formats: FormatsV2,
}

#[derive(PartialEq, Deserialize)]
struct FormatsV2 {
    oral: Option<bool>,
    poster: Option<bool>,
    e_poster: Option<bool>,
    published_abstract: Option<bool>,
    encore: Option<bool>,
}

#[derive(PartialEq, Deserialize)]
struct JournalV2 {
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
    publishing: PublishingV2,
    timelines: TimelinesV2,
    organizations: Vec<LinkV2>,
    tags: Vec<LinkV2>,
}

#[derive(PartialEq, Deserialize)]
struct PublishingV2 {
    access: Option<String>,
    content_license: Option<String>,
    apc_usd: Option<f64>,
    embargo_months: Option<u64>,
}

#[derive(PartialEq, Deserialize)]
struct TimelinesV2 {
    submit_to_first_decision: WeeksV2,
    online_submit_to_accept: WeeksV2,
    accept_to_online: WeeksV2,
    accept_to_print: WeeksV2,
}

#[derive(PartialEq, Deserialize)]
struct WeeksV2 {
    min_weeks: Option<f64>,
    max_weeks: Option<f64>,
}

/// A link: an id in `records`, an object in `log`.
#[derive(Deserialize)]
#[serde(untagged)]
enum LinkV2 {
    Id(u64),
    Object { id: u64 },
}

impl PartialEq for LinkV2 {
    fn eq(&self, other: &LinkV2) -> bool {
        let id = |link: &LinkV2| match link {
            LinkV2::Id(id) | LinkV2::Object { id } => *id,
        };
        id(self) == id(other)
    }
}

/// Writes all rows of a file of format 2 to an empty file of format 3. Omits the index of names, outbox and digest.
pub(super) fn step(from: &ReadTransaction, to: &WriteTransaction, each: OnRecord<'_>) -> Result<(), StoreError> {
    create_tables(to)?;
    let mut meta = to.open_table(tables::META)?;
    for entry in from.open_table(tables::META)?.iter()? {
        let (name, value) = entry?;
        match name.value() {
            tables::META_SCHEMA | tables::META_PUBLISH => {}
            tables::META_RESTORED => {
                let resealed = reseal::<LastCommitV2>("meta", value.value())?;
                meta.insert(tables::META_RESTORED, resealed.as_slice())?;
            }
            // Written below.
            tables::META_SECRET => {}
            other => drop(meta.insert(other, value.value())?),
        }
    }
    meta.insert(tables::META_SCHEMA, TO.to_le_bytes().as_slice())?;
    meta.insert(tables::META_FIELDS, FIELDS.as_bytes())?;
    let secret = secret::read(&from.open_table(tables::META)?)?;
    meta.insert(tables::META_SECRET, secret::encode(&secret).as_slice())?;
    copy(from, to, tables::COMMITS, reseal::<CommitV2>)?;
    copy(from, to, tables::ORGANIZATIONS, reseal::<RowV2<OrganizationV2>>)?;
    copy(from, to, tables::TAGS, reseal::<RowV2<TagV2>>)?;
    copy(from, to, tables::LICENSES, reseal::<LicenseV2>)?;
    copy_keys(from, to)?;
    copy(from, to, tables::FEEDS, reseal::<FeedHeadV2>)?;
    copy_table(from, to, tables::LINKS)?;
    copy_table(from, to, tables::FEED_ENTRIES)?;
    copy_table(from, to, tables::FEED_RECORDS)?;
    copy_table(from, to, tables::LOG)?;
    copy_records(from, to, each)
}

/// Encodes keys again. The hash of a row covers the key's hash too.
fn copy_keys(from: &ReadTransaction, to: &WriteTransaction) -> Result<(), StoreError> {
    let mut target = to.open_table(tables::KEYS)?;
    for entry in from.open_table(tables::KEYS)?.iter()? {
        let (hash, row) = entry?;
        let key = unseal::<KeyV2>("keys", row.value())?;
        target.insert(hash.value(), seal_under(&hash.value(), &key)?.as_slice())?;
    }
    Ok(())
}

/// Encodes a row again, with the names of its members.
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

/// Copies the seqs of records. Compares each record with its JSON for the last time, because only the JSON is kept.
fn copy_records(from: &ReadTransaction, to: &WriteTransaction, each: OnRecord<'_>) -> Result<(), StoreError> {
    let log = from.open_table(tables::LOG)?;
    let mut target = to.open_table(tables::RECORDS)?;
    let mut cursor = target.upper_bound_mut(std::ops::Bound::<(u8, u64)>::Unbounded)?;
    for entry in from.open_table(RECORDS)?.iter()? {
        let (key, row) = entry?;
        let (dataset, id) = key.value();
        let seq = match dataset {
            1 => compare::<ConferenceV2>(&log, dataset, id, row.value()),
            2 => compare::<JournalV2>(&log, dataset, id, row.value()),
            other => Err(StoreError::damaged("records", format!("there is no dataset {other}"))),
        }?;
        cursor.insert_before((dataset, id), seq)?;
        each()?;
    }
    Ok(cursor.close()?)
}

/// Compares a record with the JSON at its seq in `log`. Returns the seq.
fn compare<F: DeserializeOwned + PartialEq>(
    log: &impl ReadableTable<(u8, u64), LogValue<'static>>,
    dataset: u8,
    id: u64,
    row: &[u8],
) -> Result<u64, StoreError> {
    let RecordV2 { seq, record, .. } = unseal::<RecordV2<F>>("records", row)?;
    let differs = || StoreError::damaged("log", format!("the row at seq {seq} is not that of record {id}"));
    let found = log.get((dataset, seq))?.ok_or_else(differs)?;
    let (of, stored, text) = found.value();
    if (of, record.id) != (id, id) || stored != hash(text) {
        return Err(differs());
    }
    let rendered: F = serde_json::from_slice(text).map_err(|_| differs())?;
    if rendered == record.fields { Ok(seq) } else { Err(differs()) }
}

pub(super) fn last_commit(commits: &impl ReadableTable<u64, &'static [u8]>) -> Result<CommitPoint, StoreError> {
    let Some((seq, row)) = commits.last()? else { return Ok(CommitPoint::EMPTY) };
    point_of(seq.value(), row.value())
}

pub(super) fn point_of(seq: u64, row: &[u8]) -> Result<CommitPoint, StoreError> {
    let CommitV2 { time, lineage, .. } = unseal("commits", row)?;
    Ok(CommitPoint { seq, time, lineage })
}

pub(super) fn count_records(from: &ReadTransaction) -> Result<crate::model::PerDataset<u64>, StoreError> {
    let commits = from.open_table(tables::COMMITS)?;
    let last = commits.last()?.map(|(_, row)| unseal::<CommitV2>("commits", row.value())).transpose()?;
    Ok(last.map_or_else(Default::default, |CommitV2 { records: PerDatasetV2 { conferences, journals }, .. }| {
        crate::model::PerDataset { conferences, journals }
    }))
}

/// The origin of a replica; `None` if the file is not a replica.
pub(super) fn find_replica(from: &ReadTransaction) -> Result<Option<ReplicaOrigin>, StoreError> {
    let Some(table) = crate::store::format::rows::optional_table(from.open_table(tables::REPLICA))? else {
        return Ok(None);
    };
    let Some(row) = table.get(tables::REPLICA_KEY)? else { return Ok(None) };
    let ReplicaMarkV2 { url, id, .. } = unseal("replica", row.value())?;
    let LastCommitV2 { seq, lineage } = {
        let CommitPoint { seq, lineage, .. } = last_commit(&from.open_table(tables::COMMITS)?)?;
        LastCommitV2 { seq, lineage }
    };
    Ok(Some(ReplicaOrigin { url, id: DatabaseId(id), head: Head { seq, lineage } }))
}
