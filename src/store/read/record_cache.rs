//! Records' finished JSON in memory, so that a page is put together from few large pieces and checks no hash.
//!
//! The texts of [`BLOCK_SEQS`] following seqs of `log` lie in one *block*, one after the other with a comma behind each:
//! neighbours in a page are neighbours here, and are sent as they lie. A seq is written once in a history, so a row that
//! was read stays right for every later state of it: blocks are shared by all of them. Rows are checked against their
//! hashes as they come in. Blocks are read when they are asked for, and dropped, those not used lately first, when they
//! take more than they may.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use redb::{ReadOnlyTable, ReadableTable};

use crate::model::{Dataset, Id};
use crate::store::StoreError;
use crate::store::format::codec::{Hash, hash};
use crate::store::format::tables::LogValue;
use crate::store::read::rope::RopeWriter;

/// How many seqs a block spans.
pub const BLOCK_SEQS: u64 = 64;
/// With so many rows of a block asked for at once, all of it is read: its other rows are likely to be asked for next.
const WHOLE_FROM: usize = 8;
/// What may be filled before anyone asks, of what may be filled at all.
const WARM_PART: (usize, usize) = (3, 4);

/// What texts may take in memory, in bytes, unless something else is said.
pub const DEFAULT_MOST_BYTES: usize = 256 << 20;

/// The table that texts are read from.
pub(in crate::store) type Log = ReadOnlyTable<(u8, u64), LogValue<'static>>;

/// A row of `log` that is asked for: where it stands, and whose it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The seq of the row.
    pub seq: u64,
    /// The record.
    pub id: Id,
}

/// The texts of rows that stand near each other.
#[derive(Debug)]
struct Block {
    rows: Vec<BlockRow>,
    /// The JSON of each row, with a comma behind it.
    text: Bytes,
}

#[derive(Clone, Copy, Debug)]
struct BlockRow {
    seq: u64,
    id: Id,
    hash: Hash,
    start: usize,
    end: usize,
}

impl Block {
    fn find(&self, seq: u64, near: usize) -> Option<usize> {
        if self.rows.get(near).is_some_and(|row| row.seq == seq) {
            return Some(near);
        }
        self.rows.binary_search_by_key(&seq, |row| row.seq).ok()
    }

    /// What it takes in memory.
    fn bytes(&self) -> usize {
        self.text.len() + std::mem::size_of_val(self.rows.as_slice())
    }
}

/// Where a block is, or would be.
#[derive(Debug, Default)]
struct Slot {
    block: Option<Arc<Block>>,
    used: AtomicBool,
    /// A bit for each of its seqs whose row no newer state has.
    dead: u64,
}

#[derive(Debug, Default)]
struct Slots {
    /// By dataset, then by the number of the block.
    of: [Vec<Slot>; 2],
    bytes: usize,
    /// Where the search for a block to drop goes on.
    hand: (usize, usize),
}

/// The finished texts that are in memory.
#[derive(Debug)]
pub struct Bodies {
    slots: RwLock<Slots>,
    most_bytes: AtomicUsize,
}

impl Default for Bodies {
    fn default() -> Bodies {
        Bodies { slots: RwLock::default(), most_bytes: AtomicUsize::new(DEFAULT_MOST_BYTES) }
    }
}

impl Bodies {
    /// How many bytes may be held.
    pub fn most_bytes(&self) -> usize {
        self.most_bytes.load(Ordering::Relaxed)
    }

    /// Says how many bytes may be held from now on.
    pub fn limit_to(&self, most_bytes: usize) {
        self.most_bytes.store(most_bytes, Ordering::Relaxed);
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> usize {
        self.read().bytes
    }

    /// The texts of rows of `log`, in the order in which they are asked for.
    pub(in crate::store) fn texts(&self, log: &Log, dataset: Dataset, wanted: &[Wanted]) -> Result<Texts, StoreError> {
        let mut texts = Texts { items: Vec::with_capacity(wanted.len()), ..Texts::default() };
        let mut missing: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        {
            let slots = self.read();
            let slots = &slots.of[dataset.index()];
            let mut number = u64::MAX;
            let mut block: Option<&Arc<Block>> = None;
            let mut near = 0;
            for (place, want) in wanted.iter().enumerate() {
                if want.seq / BLOCK_SEQS != number {
                    number = want.seq / BLOCK_SEQS;
                    block = usize::try_from(number).ok().and_then(|at| slots.get(at)).and_then(|slot| {
                        slot.used.store(true, Ordering::Relaxed);
                        slot.block.as_ref()
                    });
                    if let Some(block) = block {
                        texts.blocks.push(Arc::clone(block));
                    }
                    near = 0;
                }
                match block.and_then(|block| block.find(want.seq, near)) {
                    Some(row) => {
                        texts.items.push(Item::Row { block: texts.blocks.len() - 1, row });
                        near = row + 1;
                    }
                    None => {
                        missing.entry(number).or_default().push(place);
                        texts.items.push(Item::Own(0));
                    }
                }
            }
        }
        for (number, places) in missing {
            let seqs: Vec<u64> = places.iter().map(|place| wanted[*place].seq).collect();
            texts.blocks.push(self.load(log, dataset, number, &seqs)?);
            let block = texts.blocks.len() - 1;
            for place in places {
                let row = texts.blocks[block].find(wanted[place].seq, 0);
                let row = row.ok_or_else(|| damaged(dataset, wanted[place], "there is no row"))?;
                texts.items[place] = Item::Row { block, row };
            }
        }
        for (want, item) in wanted.iter().zip(&texts.items) {
            if let Item::Row { block, row } = item
                && texts.blocks[*block].rows[*row].id != want.id
            {
                // The index that led here carries no hash.
                return Err(damaged(dataset, *want, "the row is not that"));
            }
        }
        Ok(texts)
    }

    /// Whether the texts of rows of `log` are in memory, so that nobody has to wait for them.
    pub fn have(&self, dataset: Dataset, wanted: impl Iterator<Item = Wanted>) -> bool {
        let slots = self.read();
        let slots = &slots.of[dataset.index()];
        let (mut number, mut block, mut near) = (u64::MAX, None, 0);
        for Wanted { seq, .. } in wanted {
            if seq / BLOCK_SEQS != number {
                number = seq / BLOCK_SEQS;
                let slot = usize::try_from(number).ok().and_then(|at| slots.get(at));
                (block, near) = (slot.and_then(|slot| slot.block.as_deref()), 0);
            }
            match block.and_then(|block: &Block| block.find(seq, near)) {
                Some(row) => near = row + 1,
                None => return false,
            }
        }
        true
    }

    /// Reads a block, or the rows of it that are asked for, beside what is known of it.
    fn load(&self, log: &Log, dataset: Dataset, number: u64, seqs: &[u64]) -> Result<Arc<Block>, StoreError> {
        let known = {
            let slots = self.read();
            let slot = usize::try_from(number).ok().and_then(|at| slots.of[dataset.index()].get(at));
            slot.and_then(|slot| slot.block.clone())
        };
        let code = dataset.code();
        let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
        if known.is_some() || seqs.len() >= WHOLE_FROM {
            let first = number * BLOCK_SEQS;
            for entry in log.range((code, first)..=(code, first + (BLOCK_SEQS - 1)))? {
                let (key, value) = entry?;
                let seq = key.value().1;
                match Row::read(value.value()) {
                    Some(row) => {
                        rows.insert(seq, row);
                    }
                    // Only those who ask for a rotten row hear of it.
                    None if !seqs.contains(&seq) => {}
                    None => return Err(rotten(dataset, seq)),
                }
            }
        } else {
            for seq in seqs {
                if let Some(value) = log.get((code, *seq))? {
                    let row = Row::read(value.value()).ok_or_else(|| rotten(dataset, *seq))?;
                    rows.insert(*seq, row);
                }
            }
        }
        if let Some(known) = known {
            // Those that an older state still asks for may be gone from this one.
            for row in &known.rows {
                let json = || known.text[row.start..row.end].to_vec();
                rows.entry(row.seq).or_insert_with(|| Row { id: row.id, hash: row.hash, json: json() });
            }
        }
        let block = Arc::new(Row::join(rows));
        self.insert(dataset, number, Arc::clone(&block));
        Ok(block)
    }

    fn insert(&self, dataset: Dataset, number: u64, block: Arc<Block>) {
        let Ok(at) = usize::try_from(number) else { return };
        let mut slots = self.write();
        let of = &mut slots.of[dataset.index()];
        if of.len() <= at {
            of.resize_with(at + 1, Slot::default);
        }
        let bytes = block.bytes();
        let slot = &mut of[at];
        let before = slot.block.replace(block).map_or(0, |block| block.bytes());
        slot.used.store(true, Ordering::Relaxed);
        slot.dead = 0;
        slots.bytes = slots.bytes + bytes - before;
        slots.shrink_to(self.most_bytes());
    }

    /// Rows that newer states no longer have; the same ones may come more than once. A block is dropped when half of it is
    /// that.
    pub(in crate::store) fn retire(&self, dataset: Dataset, seqs: impl Iterator<Item = u64>) {
        let mut slots = self.write();
        for seq in seqs {
            let at = usize::try_from(seq / BLOCK_SEQS).unwrap_or(usize::MAX);
            let Some(slot) = slots.of[dataset.index()].get_mut(at) else { continue };
            let Some(block) = &slot.block else { continue };
            slot.dead |= 1 << (seq % BLOCK_SEQS);
            if slot.dead.count_ones() as usize * 2 > block.rows.len() {
                let freed = slot.clear();
                slots.bytes -= freed;
            }
        }
    }

    /// Reads blocks before anyone asks for them, newest first, while there is room and `go_on` says so.
    pub(in crate::store) fn warm(
        &self,
        log: &Log,
        dataset: Dataset,
        newest_seq: u64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), StoreError> {
        let room = self.most_bytes() / WARM_PART.1 * WARM_PART.0;
        let code = dataset.code();
        let mut below = newest_seq.saturating_add(1);
        while go_on() && self.bytes() < room {
            // The next block that holds a row: where most records changed since, whole stretches are empty.
            let Some(entry) = log.range((code, 0)..(code, below))?.next_back() else { return Ok(()) };
            let number = entry?.0.value().1 / BLOCK_SEQS;
            below = number * BLOCK_SEQS;
            let known = {
                let slots = self.read();
                let slot = usize::try_from(number).ok().and_then(|at| slots.of[dataset.index()].get(at));
                slot.is_some_and(|slot| slot.block.is_some())
            };
            if !known {
                let seqs: Vec<u64> = (below..below + BLOCK_SEQS).collect();
                match self.load(log, dataset, number, &seqs) {
                    // Whoever asks for the row hears of it.
                    Ok(_) | Err(StoreError::Damaged { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Slots> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Slots> {
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Drops the block. Returns what it took.
    fn clear(&mut self) -> usize {
        self.dead = 0;
        self.block.take().map_or(0, |block| block.bytes())
    }
}

impl Slots {
    /// Drops blocks until the rest fits: going round, those that nobody used since the last round.
    fn shrink_to(&mut self, most_bytes: usize) {
        // Two rounds see every block unused.
        let mut steps = 2 * (self.of[0].len() + self.of[1].len() + 2);
        while self.bytes > most_bytes && steps > 0 {
            steps -= 1;
            let (dataset, at) = self.hand;
            match self.of[dataset].get_mut(at) {
                None => self.hand = (1 - dataset, 0),
                Some(slot) => {
                    self.hand.1 += 1;
                    if !slot.used.swap(false, Ordering::Relaxed) {
                        self.bytes -= slot.clear();
                    }
                }
            }
        }
    }
}

/// A row on its way into a block.
struct Row {
    id: Id,
    hash: Hash,
    json: Vec<u8>,
}

impl Row {
    /// The row, unless its bytes do not match their hash.
    fn read((id, stored, json): LogValue<'_>) -> Option<Row> {
        let id = Id::try_from(id).ok()?;
        (hash(json) == stored).then(|| Row { id, hash: stored, json: json.to_vec() })
    }

    fn join(rows: BTreeMap<u64, Row>) -> Block {
        let mut text = Vec::with_capacity(rows.values().map(|row| row.json.len() + 1).sum());
        let rows = rows
            .into_iter()
            .map(|(seq, Row { id, hash, json })| {
                let start = text.len();
                text.extend_from_slice(&json);
                let end = text.len();
                text.push(b',');
                BlockRow { seq, id, hash, start, end }
            })
            .collect();
        Block { rows, text: text.into() }
    }
}

fn damaged(dataset: Dataset, Wanted { seq, id }: Wanted, what: &str) -> StoreError {
    StoreError::Damaged { table: "log", detail: format!("{what} of {dataset} {id} at seq {seq}") }
}

fn rotten(dataset: Dataset, seq: u64) -> StoreError {
    StoreError::Damaged { table: "log", detail: format!("the row of {dataset} at seq {seq} does not match its hash") }
}

/// A text among others.
#[derive(Clone, Copy, Debug)]
enum Item {
    /// A row of a block.
    Row { block: usize, row: usize },
    /// A text of its own, by its place.
    Own(usize),
}

/// JSON texts in an order, most of them where they lie in memory.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    blocks: Vec<Arc<Block>>,
    items: Vec<Item>,
    own: Vec<(Hash, Vec<u8>)>,
}

impl Texts {
    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Puts a text in at a place.
    pub fn insert(&mut self, place: usize, text: Vec<u8>) {
        self.own.push((hash(&text), text));
        self.items.insert(place, Item::Own(self.own.len() - 1));
    }

    /// The hash of a text.
    pub fn hash(&self, place: usize) -> &Hash {
        match self.items[place] {
            Item::Row { block, row } => &self.blocks[block].rows[row].hash,
            Item::Own(own) => &self.own[own].0,
        }
    }

    /// The hashes of a run of texts, one after the other.
    pub fn hashes(&self, range: Range<usize>) -> Vec<u8> {
        let mut hashes = Vec::with_capacity(range.len() * size_of::<Hash>());
        range.for_each(|place| hashes.extend_from_slice(self.hash(place)));
        hashes
    }

    /// A text.
    pub fn text(&self, place: usize) -> &[u8] {
        match self.items[place] {
            Item::Row { block, row } => {
                let block = &self.blocks[block];
                &block.text[block.rows[row].start..block.rows[row].end]
            }
            Item::Own(own) => &self.own[own].1,
        }
    }

    /// The length of all texts with a separator behind each, in bytes.
    pub fn joined_len(&self) -> usize {
        (0..self.len()).map(|place| self.text(place).len() + 1).sum()
    }

    /// Appends all texts with commas between them.
    pub fn join(&self, out: &mut RopeWriter) {
        let mut place = 0;
        while place < self.items.len() {
            let (next, last) = match self.items[place] {
                Item::Own(own) => {
                    out.copy(&self.own[own].1);
                    (place + 1, None)
                }
                Item::Row { block: of, row: first } => {
                    let mut next = place + 1;
                    let mut last = first;
                    while let Some(Item::Row { block, row }) = self.items.get(next)
                        && (*block, *row) == (of, last + 1)
                    {
                        last += 1;
                        next += 1;
                    }
                    let block = &self.blocks[of];
                    let ends = next == self.items.len();
                    // The comma behind the last one lies there too.
                    let end = block.rows[last].end + usize::from(!ends);
                    out.share(&block.text, block.rows[first].start..end);
                    (next, Some(last))
                }
            };
            if last.is_none() && next < self.items.len() {
                out.copy(b",");
            }
            place = next;
        }
    }
}
