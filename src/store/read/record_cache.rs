//! The JSON of records in memory, in blocks of neighboring rows of `log`. Feed pages, lists and exports read it.
//!
//! A seq is written only once in a history, so all later states share the blocks. The hash of a row is checked when the
//! row is loaded.
//!
//! Without this cache, the first response takes 10 times as long for a feed page of 500. For a list of 100 it takes 14
//! times as long (medians of alternating runs, `cargo bench --bench caches`).

use std::collections::BTreeMap;
use std::sync::Arc;

use redb::{ReadOnlyTable, ReadableTable};

use crate::model::{Dataset, Id};
use crate::store::StoreError;
use crate::store::format::codec::{ShortHash, hash};
use crate::store::format::tables::LogValue;
use crate::store::read::cache::{ByteCache, Cached};

/// The number of seqs in a block.
pub const BLOCK_SEQS: u64 = 64;
/// If at least this many rows of a block are requested, load all of it: the others are likely to be requested next.
const MIN_ROWS_OF_BLOCK: usize = 8;
/// The share of the capacity that [`warm`] may fill.
const WARM_SHARE: (u64, u64) = (3, 4);
/// The approximate overhead of an entry, in bytes.
const ENTRY_BYTES: usize = 96;

/// The default size of the record cache, in bytes.
pub const DEFAULT_MAX_BYTES: u64 = 256 << 20;

pub(in crate::store) type LogTable = ReadOnlyTable<(u8, u64), LogValue<'static>>;

/// The seq of a row of `log`, and the id of the record that it must contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "described above")]
pub struct LogRef {
    pub seq: u64,
    pub id: Id,
}

/// Rows with ascending neighboring seqs.
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
    /// The end of its JSON in the block.
    end: usize,
}

impl Block {
    /// Appends a row. Returns false if its bytes do not match their hash.
    fn push(&mut self, seq: u64, (id, stored, json): LogValue<'_>) -> bool {
        let Ok(id) = Id::try_from(id) else { return false };
        if hash(json) != stored {
            return false;
        }
        self.json.extend_from_slice(json);
        self.rows.push(BlockRow { seq, id, hash: stored, end: self.json.len() });
        true
    }

    /// The index of a row. Most rows are requested in order, so the index `first` is tried first.
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

/// The JSON of a record, in a block.
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

/// The blocks in memory, by number, shared by the snapshots of one history.
pub type RecordCache = ByteCache<(Dataset, u64), Arc<Block>>;

/// The JSON of a row of `log`, if it is in memory.
pub(crate) fn find(cache: &RecordCache, dataset: Dataset, log_ref: LogRef) -> Option<RecordJson> {
    let block = cache.get(&(dataset, log_ref.seq / BLOCK_SEQS))?;
    RecordJson::find(&block, log_ref.seq, 0)
}

/// Reads the JSON of rows of `log`, in the order of `refs`.
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
        // The table that led to this row has no hashes, so compare the id.
        if json.row().id == log_ref.id { Ok(json) } else { Err(damaged(dataset, *log_ref, "the row is not the one")) }
    });
    checked.collect()
}

/// Loads a whole block. Fails only if one of the rows `seqs` is damaged.
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

/// Loads blocks in advance, newest first, while there is room and `should_continue` returns true.
pub(in crate::store) fn warm(
    cache: &RecordCache,
    log: &LogTable,
    dataset: Dataset,
    newest_seq: u64,
    should_continue: &dyn Fn() -> bool,
) -> Result<(), StoreError> {
    let room = cache.capacity() / WARM_SHARE.1 * WARM_SHARE.0;
    let code = dataset.code();
    let mut below = newest_seq.saturating_add(1);
    while should_continue() && cache.weight() < room {
        // Skip blocks without rows. There are many if most records have changed since.
        let Some(entry) = log.range((code, 0)..(code, below))?.next_back() else { return Ok(()) };
        let number = entry?.0.value().1 / BLOCK_SEQS;
        below = number * BLOCK_SEQS;
        if !cache.contains_key(&(dataset, number)) {
            load(cache, log, dataset, number, &[])?;
        }
    }
    Ok(())
}

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
