//! Records' finished JSON in memory, in blocks of neighbouring rows of `log`: what first pages, filters and exports are
//! made from.
//!
//! A seq is written once in a history, so a row that was read stays right for every later state: blocks are shared by all
//! of them. Rows are checked against their hashes as they come in.

use std::collections::HashMap;
use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use redb::{ReadOnlyTable, ReadableTable};

use crate::model::{Dataset, Id};
use crate::store::StoreError;
use crate::store::format::codec::{Hash, hash};
use crate::store::format::tables::LogValue;

/// How many seqs a block spans.
pub const BLOCK_SEQS: u64 = 64;
/// Load the whole block if at least this many of its rows are requested: the others are likely to be requested next.
const MIN_ROWS_OF_BLOCK: usize = 8;
/// What may be filled before anyone asks, of the whole capacity.
const WARM_SHARE: (u64, u64) = (3, 4);
/// Blocks that are expected: a hint for the cache's own tables.
const EXPECTED_BLOCKS: usize = 1024;
/// What an entry takes beside the block itself, in bytes, about.
const ENTRY_BYTES: usize = 96;

/// What records' JSON may take in memory, in bytes, unless something else is said.
pub const DEFAULT_MAX_BYTES: u64 = 256 << 20;

/// The table that JSON is read from.
pub(in crate::store) type Log = ReadOnlyTable<(u8, u64), LogValue<'static>>;

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
struct Block {
    rows: Vec<Row>,
    json: Vec<u8>,
}

#[derive(Debug)]
struct Row {
    seq: u64,
    id: Id,
    hash: Hash,
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
        self.rows.push(Row { seq, id, hash: stored, end: self.json.len() });
        true
    }

    fn find(&self, seq: u64) -> Option<usize> {
        self.rows.binary_search_by_key(&seq, |row| row.seq).ok()
    }

    fn bytes(&self) -> usize {
        size_of::<Block>() + self.json.capacity() + self.rows.capacity() * size_of::<Row>()
    }
}

/// The finished JSON of a record, where it lies in memory.
#[derive(Clone, Debug)]
pub struct RecordJson {
    block: Arc<Block>,
    index: usize,
}

impl RecordJson {
    /// JSON that is no row of `log`.
    #[cfg(test)]
    pub fn of(json: &[u8]) -> RecordJson {
        let row = Row { seq: 0, id: Id::MIN, hash: hash(json), end: json.len() };
        RecordJson { block: Arc::new(Block { rows: vec![row], json: json.to_vec() }), index: 0 }
    }

    /// The JSON.
    pub fn bytes(&self) -> &[u8] {
        let start = if self.index == 0 { 0 } else { self.block.rows[self.index - 1].end };
        &self.block.json[start..self.block.rows[self.index].end]
    }

    /// The hash of the JSON.
    pub fn hash(&self) -> &Hash {
        &self.block.rows[self.index].hash
    }
}

type BlockKey = (Dataset, u64);

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<BlockKey, Arc<Block>> for Bytes {
    fn weight(&self, _key: &BlockKey, block: &Arc<Block>) -> u64 {
        u64::try_from(ENTRY_BYTES + block.bytes()).unwrap_or(u64::MAX)
    }
}

/// The blocks in memory, shared by the snapshots of one history.
#[derive(Debug)]
pub struct RecordCache(Cache<BlockKey, Arc<Block>, Bytes>);

impl Default for RecordCache {
    fn default() -> RecordCache {
        RecordCache::new(DEFAULT_MAX_BYTES)
    }
}

impl RecordCache {
    /// Room for so many bytes.
    pub fn new(max_bytes: u64) -> RecordCache {
        // One shard: else none could hold its share of the bytes where these are few.
        let options = OptionsBuilder::new()
            .estimated_items_capacity(EXPECTED_BLOCKS)
            .weight_capacity(max_bytes)
            .shards(1)
            .build();
        RecordCache(match options {
            Ok(options) => {
                Cache::with_options(options, Bytes, DefaultHashBuilder::default(), DefaultLifecycle::default())
            }
            Err(_) => Cache::with_weighter(EXPECTED_BLOCKS, max_bytes, Bytes),
        })
    }

    /// Says how many bytes may be held from now on.
    pub fn limit_to(&self, max_bytes: u64) {
        self.0.set_capacity(max_bytes);
    }

    /// How many bytes may be held.
    pub fn max_bytes(&self) -> u64 {
        self.0.capacity()
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }

    /// The JSON of rows of `log`, in the order of the references.
    pub(in crate::store) fn read(
        &self,
        log: &Log,
        dataset: Dataset,
        refs: &[LogRef],
    ) -> Result<Vec<RecordJson>, StoreError> {
        let mut seqs: HashMap<u64, Vec<u64>> = HashMap::new();
        for LogRef { seq, .. } in refs {
            seqs.entry(seq / BLOCK_SEQS).or_default().push(*seq);
        }
        let mut blocks = HashMap::with_capacity(seqs.len());
        for (number, mut seqs) in seqs {
            let cached = self.0.get(&(dataset, number));
            let complete = cached.filter(|block| seqs.iter().all(|seq| block.find(*seq).is_some()));
            let block = match complete {
                Some(block) => block,
                None if seqs.len() < MIN_ROWS_OF_BLOCK => {
                    seqs.sort_unstable();
                    Arc::new(read_rows(log, dataset, &seqs)?)
                }
                None => self.load(log, dataset, number, &seqs)?,
            };
            blocks.insert(number, block);
        }
        let found = refs.iter().map(|wanted| {
            let block = &blocks[&(wanted.seq / BLOCK_SEQS)];
            let index = block.find(wanted.seq).ok_or_else(|| damaged(dataset, *wanted, "there is no row"))?;
            if block.rows[index].id != wanted.id {
                // The index that led here carries no hash.
                return Err(damaged(dataset, *wanted, "the row is not that"));
            }
            Ok(RecordJson { block: Arc::clone(block), index })
        });
        found.collect()
    }

    /// Whether a row of `log` is in memory, so that nobody has to wait for it.
    pub fn has(&self, dataset: Dataset, wanted: LogRef) -> bool {
        let block = self.0.get(&(dataset, wanted.seq / BLOCK_SEQS));
        block.is_some_and(|block| block.find(wanted.seq).is_some())
    }

    /// Reads a whole block. Only those who ask for a rotten row hear of it.
    fn load(&self, log: &Log, dataset: Dataset, number: u64, seqs: &[u64]) -> Result<Arc<Block>, StoreError> {
        let (code, first) = (dataset.code(), number * BLOCK_SEQS);
        let mut block = Block::default();
        for entry in log.range((code, first)..=(code, first + (BLOCK_SEQS - 1)))? {
            let (key, value) = entry?;
            let seq = key.value().1;
            if !block.push(seq, value.value()) && seqs.contains(&seq) {
                return Err(rotten(dataset, seq));
            }
        }
        block.json.shrink_to_fit();
        block.rows.shrink_to_fit();
        let block = Arc::new(block);
        self.0.insert((dataset, number), Arc::clone(&block));
        Ok(block)
    }

    /// Reads blocks before anyone asks for them, newest first, while there is room and `go_on` says so.
    pub(in crate::store) fn warm(
        &self,
        log: &Log,
        dataset: Dataset,
        newest_seq: u64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), StoreError> {
        let room = self.max_bytes() / WARM_SHARE.1 * WARM_SHARE.0;
        let code = dataset.code();
        let mut below = newest_seq.saturating_add(1);
        while go_on() && self.bytes() < room {
            // The next block that holds a row: where most records changed since, whole stretches are empty.
            let Some(entry) = log.range((code, 0)..(code, below))?.next_back() else { return Ok(()) };
            let number = entry?.0.value().1 / BLOCK_SEQS;
            below = number * BLOCK_SEQS;
            if !self.0.contains_key(&(dataset, number)) {
                self.load(log, dataset, number, &[])?;
            }
        }
        Ok(())
    }
}

/// Reads single rows, ascending.
fn read_rows(log: &Log, dataset: Dataset, seqs: &[u64]) -> Result<Block, StoreError> {
    let mut block = Block::default();
    for seq in seqs {
        if let Some(value) = log.get((dataset.code(), *seq))?
            && !block.push(*seq, value.value())
        {
            return Err(rotten(dataset, *seq));
        }
    }
    Ok(block)
}

fn damaged(dataset: Dataset, LogRef { seq, id }: LogRef, what: &str) -> StoreError {
    StoreError::Damaged { table: "log", detail: format!("{what} of {dataset} {id} at seq {seq}") }
}

fn rotten(dataset: Dataset, seq: u64) -> StoreError {
    StoreError::Damaged { table: "log", detail: format!("the row of {dataset} at seq {seq} does not match its hash") }
}
