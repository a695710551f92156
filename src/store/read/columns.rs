//! The visible records of a feed as packed columns in memory, sorted by id. Filters, `q` and reference lists read them.
//!
//! Each feed has its own columns and names. So the time of a filter does not depend on records outside the license.
//! Rows are in chunks, and newer states share unchanged chunks. Each name is stored once, and rows refer to it by a
//! small number.
//!
//! Without columns, a new filter takes 35 times as long for a year and country. For a rare text it takes 48 times as
//! long (medians of alternating runs, `cargo bench --bench caches`).

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use memchr::memmem::Finder;

use crate::model::field::{Compare, Field};
use crate::model::filter::{FieldCondition, Filter};
use crate::model::fold::fold;
use crate::model::value::{FieldValue, JsonType, ValueKind};
use crate::model::{ConferenceFields, Curated, Dataset, Id, JournalFields, RecordFields, ReferenceKind};
use crate::store::StoreError;
use crate::store::format::feed::{FeedEntry, FeedHead};
use crate::store::format::rows::read_record;
use crate::store::read::feed_index::FeedIndex;
use crate::store::read::record_cache::LogTable;

const CHUNK_ROWS: usize = 256;
/// The maximum number of rows in a chunk. Beyond it, the chunk is split.
const MAX_CHUNK_ROWS: usize = 2 * CHUNK_ROWS;
/// The number of words in a mask with a bit per row.
const MASK_WORDS: usize = MAX_CHUNK_ROWS / 64;
/// With fewer candidate rows than this, each row's text is searched, instead of the chunk's whole text.
const SEARCH_RUN_FROM: u32 = 16;
/// Ends each row's text. `q` never contains it, so no match spans two rows.
const TEXT_END: char = '\0';

/// One bit per row of a chunk.
type RowMask = [u64; MASK_WORDS];

/// Numbers values from 1.
#[derive(Clone, Debug)]
struct Interned<T> {
    values: Vec<T>,
    codes: HashMap<T, u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Interned<T> {
        Interned { values: Vec::new(), codes: HashMap::new() }
    }
}

impl<T: Hash + Eq + Clone> Interned<T> {
    fn add(&mut self, value: T) -> u32 {
        let next = u32::try_from(self.values.len() + 1).unwrap_or(u32::MAX);
        *self.codes.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            next
        })
    }
}

/// A field with a column, and the numbers of the names (texts or ids) in it.
#[derive(Clone, Debug)]
struct FieldNames {
    field: &'static Field,
    index: usize,
    texts: Interned<Box<str>>,
    ids: Interned<Id>,
}

impl FieldNames {
    /// The fields of a dataset that have filters or reference lists.
    fn of(dataset: Dataset) -> Vec<FieldNames> {
        let table = dataset.table();
        let has_column = |(index, field): &(usize, &Field)| {
            table.filters.iter().any(|filter| filter.field == *index) || matches!(field.kind, ValueKind::Links(_))
        };
        let names = |(index, field)| FieldNames { field, index, texts: Interned::default(), ids: Interned::default() };
        table.fields.iter().enumerate().filter(has_column).map(names).collect()
    }

    /// Returns the numbers of the names in a value.
    fn add<'n>(&'n mut self, value: &'n dyn FieldValue) -> impl Iterator<Item = u32> + 'n {
        let FieldNames { texts, ids, .. } = self;
        let texts = value.texts().iter().map(|text| texts.add(text.as_str().into()));
        texts.chain(value.ids().iter().map(|id| ids.add(*id)))
    }

    /// The number of a filter's value in the column; 0 if no record has it.
    fn number(&self, value: &str) -> u64 {
        let code = match self.field.kind {
            ValueKind::Text | ValueKind::Texts => self.texts.codes.get(value),
            ValueKind::Links(_) => value.parse().ok().and_then(|id: Id| self.ids.codes.get(&id)),
            ValueKind::Integer | ValueKind::Number | ValueKind::Year | ValueKind::Date => None,
            ValueKind::Flag | ValueKind::Choice(_) | ValueKind::DateStatus(_) => None,
        };
        code.map_or_else(|| (self.field.rank_of)(value), |code| u64::from(*code))
    }

    /// The approximate size in bytes. Each value is in a list and in a hash table.
    fn bytes(&self) -> usize {
        const EACH_BYTES: usize = 64;
        let texts = self.texts.values.iter().map(|text| EACH_BYTES + 2 * text.len());
        texts.sum::<usize>() + self.ids.values.len() * EACH_BYTES
    }
}

/// One list per row, concatenated.
#[derive(Debug, Default)]
struct ListColumn {
    ends: Vec<u32>,
    values: Vec<u32>,
}

impl ListColumn {
    fn push(&mut self, list: impl Iterator<Item = u32>) {
        self.values.extend(list);
        self.ends.push(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
    }

    fn get(&self, position: usize) -> &[u32] {
        let start = if position == 0 { 0 } else { self.ends[position - 1] };
        &self.values[start as usize..self.ends[position] as usize]
    }
}

/// The values of a field, one number per row, as wide as necessary. 0 means null, and sorts first.
#[derive(Debug)]
enum PackedColumn {
    Short(Vec<u16>),
    Medium(Vec<u32>),
    Long(Vec<u64>),
    Lists(ListColumn),
}

impl PackedColumn {
    fn of(kind: ValueKind) -> PackedColumn {
        match kind {
            ValueKind::Year | ValueKind::Flag => PackedColumn::Short(Vec::new()),
            ValueKind::Choice(_) | ValueKind::DateStatus(_) => PackedColumn::Short(Vec::new()),
            ValueKind::Date | ValueKind::Text => PackedColumn::Medium(Vec::new()),
            ValueKind::Integer | ValueKind::Number => PackedColumn::Long(Vec::new()),
            ValueKind::Texts | ValueKind::Links(_) => PackedColumn::Lists(ListColumn::default()),
        }
    }

    fn push(&mut self, value: &dyn FieldValue, names: &mut FieldNames) {
        let mut codes = names.add(value);
        let mut number = || codes.next().map_or_else(|| value.rank(), u64::from);
        match self {
            PackedColumn::Short(column) => column.push(u16::try_from(number()).unwrap_or_default()),
            PackedColumn::Medium(column) => column.push(u32::try_from(number()).unwrap_or_default()),
            PackedColumn::Long(column) => column.push(number()),
            PackedColumn::Lists(lists) => lists.push(codes),
        }
    }

    /// Appends a row from another chunk's column of the same field.
    fn copy(&mut self, from: &PackedColumn, position: usize) {
        match (self, from) {
            (PackedColumn::Short(column), PackedColumn::Short(from)) => column.push(from[position]),
            (PackedColumn::Medium(column), PackedColumn::Medium(from)) => column.push(from[position]),
            (PackedColumn::Long(column), PackedColumn::Long(from)) => column.push(from[position]),
            (PackedColumn::Lists(lists), PackedColumn::Lists(from)) => lists.push(from.get(position).iter().copied()),
            _ => debug_assert!(false, "columns of one field are of one type"),
        }
    }

    /// Clears the bits of rows whose values do not satisfy the comparison.
    fn retain(&self, mask: &mut RowMask, compare: Compare, number: u64) {
        match self {
            PackedColumn::Short(column) => retain_number(mask, column, compare, number),
            PackedColumn::Medium(column) => retain_number(mask, column, compare, number),
            PackedColumn::Long(column) => retain_number(mask, column, compare, number),
            PackedColumn::Lists(lists) => {
                let code = u32::try_from(number).unwrap_or_default();
                Chunk::retain(mask, |position| lists.get(position).contains(&code));
            }
        }
    }

    fn bytes(&self) -> usize {
        size_of::<PackedColumn>()
            + match self {
                PackedColumn::Short(column) => size_of_val(column.as_slice()),
                PackedColumn::Medium(column) => size_of_val(column.as_slice()),
                PackedColumn::Long(column) => size_of_val(column.as_slice()),
                PackedColumn::Lists(lists) => size_of_val(lists.ends.as_slice()) + size_of_val(lists.values.as_slice()),
            }
    }
}

/// Implements [`PackedColumn::retain`] for single values.
fn retain_number<T: Copy + Ord + Default + TryFrom<u64>>(
    mask: &mut RowMask,
    column: &[T],
    compare: Compare,
    number: u64,
) {
    let (null, number) = (T::default(), T::try_from(number).unwrap_or_default());
    match compare {
        Compare::Equal => Chunk::retain_equal(mask, column, number),
        Compare::From => Chunk::retain(mask, |position| column[position] >= number),
        Compare::To => Chunk::retain(mask, |position| column[position] != null && column[position] <= number),
    }
}

/// Rows with neighboring ids, as columns.
#[derive(Debug)]
struct Chunk {
    ids: Vec<Id>,
    log_seqs: Vec<u64>,
    /// In the order of the [`FieldNames`].
    columns: Vec<PackedColumn>,
    /// The folded texts that `q` searches, each followed by [`TEXT_END`].
    text: String,
    text_ends: Vec<usize>,
}

impl Chunk {
    fn new(names: &[FieldNames]) -> Chunk {
        let columns = names.iter().map(|names| PackedColumn::of(names.field.kind)).collect();
        Chunk { ids: Vec::new(), log_seqs: Vec::new(), columns, text: String::new(), text_ends: Vec::new() }
    }

    /// Builds a chunk from rows of other chunks.
    fn of(rows: &[(&Chunk, usize)], names: &[FieldNames]) -> Chunk {
        let mut chunk = Chunk::new(names);
        for &(from, position) in rows {
            chunk.ids.push(from.ids[position]);
            chunk.log_seqs.push(from.log_seqs[position]);
            chunk.columns.iter_mut().zip(&from.columns).for_each(|(column, from)| column.copy(from, position));
            chunk.text.push_str(from.text(position));
            chunk.text_ends.push(chunk.text.len());
        }
        chunk.text.shrink_to_fit();
        chunk
    }

    fn push<F: RecordFields>(&mut self, record: &Curated<F>, log_seq: u64, names: &mut [FieldNames]) {
        let values = record.fields().values();
        self.ids.push(record.id());
        self.log_seqs.push(log_seq);
        for (column, names) in self.columns.iter_mut().zip(names) {
            column.push(values[names.index], names);
        }
        let searched = F::table().fields.iter().zip(&values).filter(|(field, _)| field.uses.searched.is_some());
        for text in searched.flat_map(|(_, value)| value.texts()) {
            self.text.push_str(&fold(text));
            self.text.push(TEXT_END);
        }
        self.text_ends.push(self.text.len());
    }

    /// Reads a record, and appends its row.
    fn load(
        &mut self,
        log: &LogTable,
        dataset: Dataset,
        (id, log_seq): (Id, u64),
        names: &mut [FieldNames],
    ) -> Result<(), StoreError> {
        match dataset {
            Dataset::Conferences => {
                self.push::<ConferenceFields>(&read_record(log, id, log_seq)?.record, log_seq, names);
            }
            Dataset::Journals => self.push::<JournalFields>(&read_record(log, id, log_seq)?.record, log_seq, names),
        }
        Ok(())
    }

    fn text(&self, position: usize) -> &str {
        let start = if position == 0 { 0 } else { self.text_ends[position - 1] };
        &self.text[start..self.text_ends[position]]
    }

    fn bytes(&self) -> usize {
        size_of::<Chunk>()
            + size_of_val(self.ids.as_slice())
            + size_of_val(self.log_seqs.as_slice())
            + size_of_val(self.text_ends.as_slice())
            + self.text.len()
            + self.columns.iter().map(PackedColumn::bytes).sum::<usize>()
    }

    /// A mask with the bits of all rows.
    fn all(&self) -> RowMask {
        let mut mask = RowMask::default();
        for (index, word) in mask.iter_mut().enumerate() {
            let rows = self.ids.len().saturating_sub(index * 64).min(64);
            *word = if rows == 64 { u64::MAX } else { (1 << rows) - 1 };
        }
        mask
    }

    /// Clears the bits of rows that do not match.
    fn retain(mask: &mut RowMask, matches: impl Fn(usize) -> bool) {
        for (index, word) in mask.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                if !matches(index * 64 + bit as usize) {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    /// Like [`Chunk::retain`], but without branches, so that the compiler compares many values at once.
    fn retain_equal<T: Copy + PartialEq>(mask: &mut RowMask, column: &[T], expected: T) {
        for (word, values) in mask.iter_mut().zip(column.chunks(64)) {
            if *word != 0 {
                let equal = values.iter().rev().fold(0, |bits, value| (bits << 1) | u64::from(*value == expected));
                *word &= equal;
            }
        }
    }

    /// Clears the bits of rows whose texts do not contain the searched text.
    fn retain_found(&self, mask: &mut RowMask, finder: &Finder<'_>) {
        if mask.iter().map(|word| word.count_ones()).sum::<u32>() < SEARCH_RUN_FROM {
            return Chunk::retain(mask, |position| finder.find(self.text(position).as_bytes()).is_some());
        }
        let mut found = RowMask::default();
        let text = self.text.as_bytes();
        let mut from = 0;
        while let Some(at) = finder.find(&text[from..]) {
            let position = self.text_ends.partition_point(|end| *end <= from + at);
            let Some(end) = self.text_ends.get(position) else { break };
            found[position / 64] |= 1 << (position % 64);
            from = *end;
        }
        for (word, found) in mask.iter_mut().zip(found) {
            *word &= found;
        }
    }
}

/// The columns of a feed in one state.
#[derive(Debug)]
pub struct Columns {
    head: FeedHead,
    /// Non-empty chunks in the order of ids.
    chunks: Vec<Arc<Chunk>>,
    names: Arc<Vec<FieldNames>>,
    bytes: usize,
}

impl Columns {
    /// Reads all visible records of a feed.
    pub(in crate::store) fn build(log: &LogTable, index: &FeedIndex) -> Result<Columns, StoreError> {
        let dataset = index.head().dataset;
        let mut names = FieldNames::of(dataset);
        let mut chunks = Vec::new();
        let mut chunk = Chunk::new(&names);
        for entry in (0..index.entries().len()).filter_map(|position| index.by_id(position)) {
            let Some(log_seq) = entry.log_seq else { continue };
            chunk.load(log, dataset, (entry.id, log_seq.get()), &mut names)?;
            if chunk.ids.len() == CHUNK_ROWS {
                chunk.text.shrink_to_fit();
                chunks.push(Arc::new(std::mem::replace(&mut chunk, Chunk::new(&names))));
            }
        }
        if !chunk.ids.is_empty() {
            chunks.push(Arc::new(chunk));
        }
        Ok(Columns::of(*index.head(), chunks, names))
    }

    fn of(head: FeedHead, chunks: Vec<Arc<Chunk>>, names: Vec<FieldNames>) -> Columns {
        let of_chunks = chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>();
        let bytes = size_of::<Columns>() + names.iter().map(FieldNames::bytes).sum::<usize>() + of_chunks;
        Columns { head, chunks, names: Arc::new(names), bytes }
    }

    /// Updates the columns to the state of `index`.
    pub(in crate::store) fn advance(&self, log: &LogTable, index: &FeedIndex) -> Result<Columns, StoreError> {
        let dataset = index.head().dataset;
        let mut names = Vec::clone(&self.names);
        let mut newer = Chunk::new(&names);
        let mut changes = BTreeMap::new();
        for FeedEntry { id, log_seq, .. } in &index.entries()[index.position_after(self.head.newest_seq)..] {
            let position = log_seq.map(|_| newer.ids.len());
            if let Some(log_seq) = log_seq {
                newer.load(log, dataset, (*id, log_seq.get()), &mut names)?;
            }
            changes.insert(*id, position);
        }
        let mut chunks = Vec::with_capacity(self.chunks.len());
        let mut old = self.chunks.iter().peekable();
        if old.peek().is_none() {
            let rows = changes.into_values().flatten().map(|position| (&newer, position));
            split(rows.collect(), &names, &mut chunks);
            return Ok(Columns::of(*index.head(), chunks, names));
        }
        while let Some(chunk) = old.next() {
            // The first chunk also takes smaller ids.
            let later = match old.peek().and_then(|next| next.ids.first()) {
                Some(next) => changes.split_off(next),
                None => BTreeMap::new(),
            };
            let own = std::mem::replace(&mut changes, later);
            if own.is_empty() {
                chunks.push(Arc::clone(chunk));
                continue;
            }
            let older = chunk.ids.iter().enumerate().map(|(position, id)| (*id, (&**chunk, position)));
            let mut rows: BTreeMap<Id, (&Chunk, usize)> = older.collect();
            for (id, position) in own {
                match position {
                    Some(position) => rows.insert(id, (&newer, position)),
                    None => rows.remove(&id),
                };
            }
            split(rows.into_values().collect(), &names, &mut chunks);
        }
        Ok(Columns::of(*index.head(), chunks, names))
    }

    pub(in crate::store) fn head(&self) -> &FeedHead {
        &self.head
    }

    /// The size in memory, in bytes. Includes chunks that other states share.
    pub(in crate::store) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Finds the rows with larger ids that match a filter, in the order of ids. Ignores the filter's `updated_since`.
    pub(crate) fn find(&self, after: u64, filter: &Filter) -> Matches<'_> {
        let text = filter.text.as_deref().map(fold);
        let columns = || self.names.iter().enumerate();
        let conditions = filter.conditions.iter().filter_map(|FieldCondition { filter, value }| {
            let (column, names) = columns().find(|(_, names)| names.index == filter.field)?;
            Some(ColumnCondition { column, compare: filter.compare, number: names.number(value) })
        });
        let mut conditions: Vec<ColumnCondition> = conditions.collect();
        // Fast comparisons first.
        let is_list = |column: usize| self.names[column].field.kind.json_type() == JsonType::List;
        conditions.sort_by_key(|conditions| (is_list(conditions.column), conditions.compare));
        // An unknown name matches no record. A text of diacritics alone folds to an empty text, and matches none.
        let none =
            conditions.iter().any(|conditions| conditions.number == 0) || text.as_deref().is_some_and(str::is_empty);
        let first =
            self.chunks.partition_point(|chunk| none || chunk.ids.last().is_some_and(|last| last.get() <= after));
        Matches {
            columns: self,
            conditions,
            finder: text.map(|text| Finder::new(text.as_bytes()).into_owned()),
            after,
            next_chunk: first,
            word: MASK_WORDS,
            mask: RowMask::default(),
        }
    }

    pub(crate) fn count_texts(&self, field: &str) -> Vec<(&str, u64)> {
        let counts = self.count(|names| names.field.name == field, |names| &names.texts);
        counts.map(|(name, count)| (name.as_ref(), count)).collect()
    }

    pub(crate) fn count_links(&self, kind: ReferenceKind) -> Vec<(Id, u64)> {
        let counts = self.count(|names| names.field.kind == ValueKind::Links(kind), |names| &names.ids);
        counts.map(|(id, count)| (*id, count)).collect()
    }

    fn count<'n, T: 'n>(
        &'n self,
        is_counted: impl Fn(&FieldNames) -> bool,
        of: impl Fn(&'n FieldNames) -> &'n Interned<T>,
    ) -> impl Iterator<Item = (&'n T, u64)> {
        let position = self.names.iter().position(is_counted);
        let values = position.map_or(&[][..], |position| &of(&self.names[position]).values);
        let mut counts = vec![0; values.len()];
        for chunk in self.chunks.iter() {
            if let Some(PackedColumn::Lists(lists)) = position.map(|position| &chunk.columns[position]) {
                lists.values.iter().for_each(|code| counts[*code as usize - 1] += 1);
            }
        }
        values.iter().zip(counts).filter(|(_, count)| *count > 0)
    }
}

/// Appends rows as one chunk, or as several if there are too many.
fn split(rows: Vec<(&Chunk, usize)>, names: &[FieldNames], chunks: &mut Vec<Arc<Chunk>>) {
    if rows.len() > MAX_CHUNK_ROWS {
        rows.chunks(CHUNK_ROWS).for_each(|rows| chunks.push(Arc::new(Chunk::of(rows, names))));
    } else if !rows.is_empty() {
        chunks.push(Arc::new(Chunk::of(&rows, names)));
    }
}

/// A comparison of a column with a number.
#[derive(Clone, Copy, Debug)]
struct ColumnCondition {
    column: usize,
    compare: Compare,
    number: u64,
}

/// An iterator over the matching rows.
#[derive(Debug)]
pub struct Matches<'c> {
    columns: &'c Columns,
    conditions: Vec<ColumnCondition>,
    finder: Option<Finder<'static>>,
    after: u64,
    /// The index of the chunk after the one of `mask`.
    next_chunk: usize,
    word: usize,
    mask: RowMask,
}

impl Matches<'_> {
    fn enter(&mut self, chunk: &Chunk) {
        let mut mask = chunk.all();
        if chunk.ids.first().is_some_and(|first| first.get() <= self.after) {
            let after = self.after;
            Chunk::retain(&mut mask, |index| chunk.ids[index].get() > after);
        }
        for ColumnCondition { column, compare, number } in &self.conditions {
            chunk.columns[*column].retain(&mut mask, *compare, *number);
        }
        if let Some(finder) = &self.finder
            && mask != RowMask::default()
        {
            chunk.retain_found(&mut mask, finder);
        }
        self.mask = mask;
        self.word = 0;
    }
}

impl Iterator for Matches<'_> {
    /// The id of the record, and the seq of its `log` row.
    type Item = (Id, u64);

    fn next(&mut self) -> Option<(Id, u64)> {
        loop {
            while let Some(word) = self.mask.get_mut(self.word) {
                if *word == 0 {
                    self.word += 1;
                    continue;
                }
                let position = self.word * 64 + word.trailing_zeros() as usize;
                *word &= *word - 1;
                let chunk = &self.columns.chunks[self.next_chunk - 1];
                return Some((chunk.ids[position], chunk.log_seqs[position]));
            }
            let columns = self.columns;
            let chunk = columns.chunks.get(self.next_chunk)?;
            self.next_chunk += 1;
            self.enter(chunk);
        }
    }
}
