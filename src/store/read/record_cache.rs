//! Records' finished JSON in memory, in blocks of neighbouring rows of `log`: what first pages, filters and exports are
//! made from.
//!
//! A seq is written once in a history, so a row that was read stays right for every later state: blocks are shared by all
//! of them. Rows are checked against their hashes as they come in.
//!
//! It stands beside the answer cache for first answers: without it a feed page of 500 takes 10 times as long, a list of 100
//! 14 times (`cargo bench --bench caches`, medians, in turn).

use std::collections::BTreeMap;
use std::sync::Arc;

use redb::{ReadOnlyTable, ReadableTable};

use crate::model::{Dataset, Id};
use crate::store::StoreError;
use crate::store::format::codec::{ShortHash, hash};
use crate::store::format::tables::LogValue;
use crate::store::read::cache::{ByteCache, Cached};

/// How many seqs a block spans.
pub const BLOCK_SEQS: u64 = 64;
/// Load the whole block if at least this many of its rows are requested: the others are likely to be requested next.
const MIN_ROWS_OF_BLOCK: usize = 8;
/// What may be filled before anyone asks, of the whole capacity.
const WARM_SHARE: (u64, u64) = (3, 4);
/// What an entry takes beside the block itself, in bytes, about.
const ENTRY_BYTES: usize = 96;

/// The default size of the record cache, in bytes.
pub const DEFAULT_MAX_BYTES: u64 = 256 << 20;

/// The table that JSON is read from.
pub(in crate::store) type LogTable = ReadOnlyTable<(u8, u64), LogValue<'static>>;

/// A row of `log`: where it stands, and whose it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRef {
    /// The seq of the row.
    pub seq: u64,
    /// The record.
    pub id: Id,
}

/// The rows of neighbouring seqs, ascending.
#[derive(Debug, Default)]
pub struct Block {
    rows: Vec<BlockRow>,
    json: Vec<u8>,
}

#[derive(Debug)]
struct BlockRow {
    seq: u64,
    id: Id,
    hash: ShortHash,
    /// Where its JSON ends in the block's.
    end: usize,
}

impl Block {
    /// Appends a row; false if its bytes do not match their hash.
    fn push(&mut self, seq: u64, (id, stored, json): LogValue<'_>) -> bool {
        let Ok(id) = Id::try_from(id) else { return false };
        if hash(json) != stored {
            return false;
        }
        self.json.extend_from_slice(json);
        self.rows.push(BlockRow { seq, id, hash: stored, end: self.json.len() });
        true
    }

    /// The index of a row; most are asked for in order, so one index is tried first.
    fn find(&self, seq: u64, first: usize) -> Option<usize> {
        match self.rows.get(first) {
            Some(row) if row.seq == seq => Some(first),
            _ => self.rows.binary_search_by_key(&seq, |row| row.seq).ok(),
        }
    }
}

impl Cached for Arc<Block> {
    const EXPECTED: usize = 1024;

    fn bytes(&self) -> usize {
        ENTRY_BYTES + size_of::<Block>() + self.json.capacity() + self.rows.capacity() * size_of::<BlockRow>()
    }
}

/// The finished JSON of a record, where it lies in memory.
#[derive(Clone, Debug)]
pub struct RecordJson {
    block: Arc<Block>,
    index: usize,
}

impl RecordJson {
    fn find(block: &Arc<Block>, seq: u64, first: usize) -> Option<RecordJson> {
        block.find(seq, first).map(|index| RecordJson { block: Arc::clone(block), index })
    }

    fn row(&self) -> &BlockRow {
        &self.block.rows[self.index]
    }

    /// The JSON.
    pub fn bytes(&self) -> &[u8] {
        let start = if self.index == 0 { 0 } else { self.block.rows[self.index - 1].end };
        &self.block.json[start..self.row().end]
    }

    /// The hash of the JSON.
    pub fn hash(&self) -> &ShortHash {
        &self.row().hash
    }
}

/// The blocks in memory, by their numbers, shared by the snapshots of one history.
pub type RecordCache = ByteCache<(Dataset, u64), Arc<Block>>;

/// The JSON of rows of `log`, in the order of the references.
pub(in crate::store) fn read(
    cache: &RecordCache,
    log: &LogTable,
    dataset: Dataset,
    refs: &[LogRef],
) -> Result<Vec<RecordJson>, StoreError> {
    let mut found = Vec::with_capacity(refs.len());
    let mut missing: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let (mut number, mut block, mut next) = (u64::MAX, None, 0);
    for (position, log_ref) in refs.iter().enumerate() {
        if log_ref.seq / BLOCK_SEQS != number {
            number = log_ref.seq / BLOCK_SEQS;
            (block, next) = (cache.get(&(dataset, number)), 0);
        }
        let json = block.as_ref().and_then(|block| RecordJson::find(block, log_ref.seq, next));
        match &json {
            Some(json) => next = json.index + 1,
            None => missing.entry(number).or_default().push(position),
        }
        found.push(json);
    }
    for (number, positions) in missing {
        let mut seqs: Vec<u64> = positions.iter().map(|position| refs[*position].seq).collect();
        seqs.sort_unstable();
        let block = if seqs.len() < MIN_ROWS_OF_BLOCK {
            Arc::new(read_rows(log, dataset, &seqs)?)
        } else {
            load(cache, log, dataset, number, &seqs)?
        };
        for position in positions {
            found[position] = RecordJson::find(&block, refs[position].seq, 0);
        }
    }
    let checked = refs.iter().zip(found).map(|(log_ref, json)| {
        let json = json.ok_or_else(|| damaged(dataset, *log_ref, "there is no row"))?;
        // The index that led here carries no hash.
        if json.row().id == log_ref.id { Ok(json) } else { Err(damaged(dataset, *log_ref, "the row is not that")) }
    });
    checked.collect()
}

/// Reads a whole block. Only those who ask for a hash_mismatch row hear of it.
fn load(
    cache: &RecordCache,
    log: &LogTable,
    dataset: Dataset,
    number: u64,
    seqs: &[u64],
) -> Result<Arc<Block>, StoreError> {
    let (code, first) = (dataset.code(), number * BLOCK_SEQS);
    let mut block = Block::default();
    for entry in log.range((code, first)..=(code, first + (BLOCK_SEQS - 1)))? {
        let (key, value) = entry?;
        let seq = key.value().1;
        if !block.push(seq, value.value()) && seqs.contains(&seq) {
            return Err(hash_mismatch(dataset, seq));
        }
    }
    block.json.shrink_to_fit();
    block.rows.shrink_to_fit();
    let block = Arc::new(block);
    cache.insert((dataset, number), Arc::clone(&block));
    Ok(block)
}

/// Reads blocks before anyone asks for them, newest first, while there is room and `go_on` says so.
pub(in crate::store) fn warm(
    cache: &RecordCache,
    log: &LogTable,
    dataset: Dataset,
    newest_seq: u64,
    go_on: &dyn Fn() -> bool,
) -> Result<(), StoreError> {
    let room = cache.capacity() / WARM_SHARE.1 * WARM_SHARE.0;
    let code = dataset.code();
    let mut below = newest_seq.saturating_add(1);
    while go_on() && cache.weight() < room {
        // The next block that holds a row: where most records changed since, whole stretches are empty.
        let Some(entry) = log.range((code, 0)..(code, below))?.next_back() else { return Ok(()) };
        let number = entry?.0.value().1 / BLOCK_SEQS;
        below = number * BLOCK_SEQS;
        if !cache.contains_key(&(dataset, number)) {
            load(cache, log, dataset, number, &[])?;
        }
    }
    Ok(())
}

/// Reads single rows, ascending.
fn read_rows(log: &LogTable, dataset: Dataset, seqs: &[u64]) -> Result<Block, StoreError> {
    let mut block = Block::default();
    for seq in seqs {
        if let Some(value) = log.get((dataset.code(), *seq))?
            && !block.push(*seq, value.value())
        {
            return Err(hash_mismatch(dataset, *seq));
        }
    }
    Ok(block)
}

fn damaged(dataset: Dataset, LogRef { seq, id }: LogRef, what: &str) -> StoreError {
    StoreError::damaged("log", format!("{what} of {dataset} {id} at seq {seq}"))
}

fn hash_mismatch(dataset: Dataset, seq: u64) -> StoreError {
    StoreError::damaged("log", format!("the row of {dataset} at seq {seq} does not match its hash"))
}
