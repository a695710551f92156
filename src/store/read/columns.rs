//! What filters, `q` and reference lists run over: the visible records of a feed in packed columns, in memory, sorted by
//! id.
//!
//! Each feed has columns of its own, with names of its own: what a filter reads depends on the records that the license
//! sees alone, so its time does not tell of others. Rows lie in chunks that newer states share with older ones, so that
//! advancing them costs what changed. Each name is held once, and rows refer to it by a small number.
//!
//! They stand beside the answer cache for filters that were not asked for before: to look at the records instead takes 35
//! times as long for a year and country, 48 times for a rare text (`cargo bench --bench caches`, medians, in turn).

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use jiff::civil::Date;
use memchr::memmem::Finder;
use redb::ReadOnlyTable;

use crate::model::fold::fold;
use crate::model::{ConferenceFields, Curated, Dataset, Id, JournalFields, RecordFields};
use crate::store::StoreError;
use crate::store::format::codec::RecordRow;
use crate::store::format::feed::{FeedEntry, FeedHead};
use crate::store::format::rows::find_record;
use crate::store::read::feed_index::FeedIndex;

/// Rows per chunk when chunks are built.
const CHUNK_ROWS: usize = 256;
/// The rows to which a chunk may grow before it is split.
const MAX_CHUNK_ROWS: usize = 2 * CHUNK_ROWS;
/// Words of a mask with a bit per row of a chunk.
const MASK_WORDS: usize = MAX_CHUNK_ROWS / 64;
/// With fewer candidate rows, their texts are searched one by one instead of the chunk's whole text.
const SEARCH_RUN_FROM: u32 = 16;
/// Ends each folded text. No `q` holds it, so that none is found across an end.
const TEXT_END: char = '\0';
/// Stands for a country that is null.
const NO_CODE: u32 = u32::MAX;
/// Stands for a year that is null.
const NO_YEAR: u16 = 0;
/// Stands for a date that is null; before all others.
const NO_DAY: i32 = i32::MIN;

/// The table of records.
type Records = ReadOnlyTable<(u8, u64), &'static [u8]>;

/// A bit per row of a chunk.
type Mask = [u64; MASK_WORDS];

/// A date as a number in the order of dates.
fn day(date: Date) -> i32 {
    i32::from(date.year()) * 10_000 + i32::from(date.month()) * 100 + i32::from(date.day())
}

/// Values, each with a small number.
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
        let next = u32::try_from(self.values.len()).unwrap_or(NO_CODE);
        *self.codes.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            next
        })
    }
}

/// The names that rows hold as numbers.
#[derive(Clone, Debug, Default)]
struct Names {
    countries: Interned<Box<str>>,
    therapy_areas: Interned<Box<str>>,
    organizations: Interned<Id>,
    tags: Interned<Id>,
}

impl Names {
    /// What they take in memory, in bytes, about: each value stands in a list and in a hash table.
    fn bytes(&self) -> usize {
        const EACH_BYTES: usize = 64;
        let texts = self.countries.values.iter().chain(&self.therapy_areas.values);
        let ids = self.organizations.values.len() + self.tags.values.len();
        texts.map(|text| EACH_BYTES + 2 * text.len()).sum::<usize>() + ids * EACH_BYTES
    }
}

/// A record's values in the columns.
#[derive(Clone, Debug)]
struct Row {
    id: Id,
    log_seq: u64,
    year: u16,
    start_day: i32,
    country: u32,
    therapy_areas: Vec<u32>,
    organizations: Vec<u32>,
    tags: Vec<u32>,
    /// Name and abbreviation, folded, each with [`TEXT_END`] behind it.
    text: String,
}

impl Row {
    fn of<F: RecordFields>(record: &Curated<F>, log_seq: u64, names: &mut Names) -> Row {
        let fields = record.fields();
        let mut text = fold(fields.name());
        text.push(TEXT_END);
        text.push_str(&fold(fields.abbv().unwrap_or_default()));
        text.push(TEXT_END);
        Row {
            id: record.id(),
            log_seq,
            year: NO_YEAR,
            start_day: NO_DAY,
            country: NO_CODE,
            therapy_areas: Vec::new(),
            organizations: fields.organizations().iter().map(|id| names.organizations.add(*id)).collect(),
            tags: fields.tags().iter().map(|id| names.tags.add(*id)).collect(),
            text,
        }
    }

    fn of_conference(record: &Curated<ConferenceFields>, log_seq: u64, names: &mut Names) -> Row {
        let fields = record.fields();
        Row {
            year: fields.year.unwrap_or(NO_YEAR),
            start_day: fields.start_date.map_or(NO_DAY, day),
            country: fields.country.as_deref().map_or(NO_CODE, |country| names.countries.add(country.into())),
            therapy_areas: fields
                .therapy_areas
                .iter()
                .map(|area| names.therapy_areas.add(area.as_str().into()))
                .collect(),
            ..Row::of(record, log_seq, names)
        }
    }

    /// The row of a visible record.
    fn load(records: &Records, dataset: Dataset, id: Id, log_seq: u64, names: &mut Names) -> Result<Row, StoreError> {
        fn load<F: RecordFields>(records: &Records, id: Id, log_seq: u64) -> Result<RecordRow<F>, StoreError> {
            let found = find_record::<F>(records, id)?.filter(|row| row.seq == log_seq);
            found.ok_or_else(|| {
                StoreError::damaged("records", format!("there is no {} {id} of seq {log_seq}", F::DATASET))
            })
        }
        Ok(match dataset {
            Dataset::Conferences => Row::of_conference(&load(records, id, log_seq)?.record, log_seq, names),
            Dataset::Journals => Row::of::<JournalFields>(&load(records, id, log_seq)?.record, log_seq, names),
        })
    }
}

/// A list per row, one after the other.
#[derive(Debug, Default)]
struct Lists {
    ends: Vec<u32>,
    values: Vec<u32>,
}

impl Lists {
    fn push(&mut self, list: &[u32]) {
        self.values.extend_from_slice(list);
        self.ends.push(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
    }

    fn get(&self, position: usize) -> &[u32] {
        let start = if position == 0 { 0 } else { self.ends[position - 1] };
        &self.values[start as usize..self.ends[position] as usize]
    }
}

/// Neighbouring rows, column by column.
#[derive(Debug, Default)]
struct Chunk {
    ids: Vec<Id>,
    log_seqs: Vec<u64>,
    years: Vec<u16>,
    start_days: Vec<i32>,
    countries: Vec<u32>,
    therapy_areas: Lists,
    organizations: Lists,
    tags: Lists,
    text: String,
    text_ends: Vec<usize>,
}

impl Chunk {
    fn of(rows: &[Row]) -> Chunk {
        let mut chunk = Chunk::default();
        for row in rows {
            chunk.ids.push(row.id);
            chunk.log_seqs.push(row.log_seq);
            chunk.years.push(row.year);
            chunk.start_days.push(row.start_day);
            chunk.countries.push(row.country);
            chunk.therapy_areas.push(&row.therapy_areas);
            chunk.organizations.push(&row.organizations);
            chunk.tags.push(&row.tags);
            chunk.text.push_str(&row.text);
            chunk.text_ends.push(chunk.text.len());
        }
        chunk.text.shrink_to_fit();
        chunk
    }

    fn row(&self, position: usize) -> Row {
        Row {
            id: self.ids[position],
            log_seq: self.log_seqs[position],
            year: self.years[position],
            start_day: self.start_days[position],
            country: self.countries[position],
            therapy_areas: self.therapy_areas.get(position).to_vec(),
            organizations: self.organizations.get(position).to_vec(),
            tags: self.tags.get(position).to_vec(),
            text: self.text(position).to_owned(),
        }
    }

    fn text(&self, position: usize) -> &str {
        let start = if position == 0 { 0 } else { self.text_ends[position - 1] };
        &self.text[start..self.text_ends[position]]
    }

    /// What it takes in memory, in bytes.
    fn bytes(&self) -> usize {
        let lists = [&self.therapy_areas, &self.organizations, &self.tags];
        let lists = lists.iter().map(|lists| size_of_val(lists.ends.as_slice()) + size_of_val(lists.values.as_slice()));
        size_of::<Chunk>()
            + size_of_val(self.ids.as_slice())
            + size_of_val(self.log_seqs.as_slice())
            + size_of_val(self.years.as_slice())
            + size_of_val(self.start_days.as_slice())
            + size_of_val(self.countries.as_slice())
            + size_of_val(self.text_ends.as_slice())
            + self.text.len()
            + lists.sum::<usize>()
    }

    /// A bit for each row.
    fn all(&self) -> Mask {
        let mut mask = Mask::default();
        for (index, word) in mask.iter_mut().enumerate() {
            let rows = self.ids.len().saturating_sub(index * 64).min(64);
            *word = if rows == 64 { u64::MAX } else { (1 << rows) - 1 };
        }
        mask
    }

    /// Clears the bits of rows that do not match.
    fn retain(mask: &mut Mask, matches: impl Fn(usize) -> bool) {
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

    /// Like [`Chunk::retain`] for a plain column: every value is compared, without branches, many at a time.
    fn retain_equal<T: Copy + PartialEq>(mask: &mut Mask, column: &[T], expected: T) {
        for (word, values) in mask.iter_mut().zip(column.chunks(64)) {
            if *word != 0 {
                let equal = values.iter().rev().fold(0, |bits, value| (bits << 1) | u64::from(*value == expected));
                *word &= equal;
            }
        }
    }

    /// Clears the bits of rows whose texts do not contain a text.
    fn retain_found(&self, mask: &mut Mask, finder: &Finder<'_>) {
        if mask.iter().map(|word| word.count_ones()).sum::<u32>() < SEARCH_RUN_FROM {
            return Chunk::retain(mask, |position| finder.find(self.text(position).as_bytes()).is_some());
        }
        let mut found = Mask::default();
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

/// The packed records of a feed.
#[derive(Debug)]
pub struct Columns {
    /// The state that they are of.
    head: FeedHead,
    /// Chunks in the order of ids, none empty.
    chunks: Vec<Arc<Chunk>>,
    names: Arc<Names>,
    bytes: usize,
}

impl Columns {
    /// Reads all visible records of a feed.
    pub(in crate::store) fn build(records: &Records, index: &FeedIndex) -> Result<Columns, StoreError> {
        let dataset = index.head().dataset;
        let mut names = Names::default();
        let mut chunks = Vec::new();
        let mut rows = Vec::with_capacity(CHUNK_ROWS);
        for entry in (0..index.entries().len()).filter_map(|position| index.by_id(position)) {
            let Some(log_seq) = entry.log_seq else { continue };
            rows.push(Row::load(records, dataset, entry.id, log_seq.get(), &mut names)?);
            if rows.len() == CHUNK_ROWS {
                chunks.push(Arc::new(Chunk::of(&rows)));
                rows.clear();
            }
        }
        if !rows.is_empty() {
            chunks.push(Arc::new(Chunk::of(&rows)));
        }
        Ok(Columns::of(*index.head(), chunks, names))
    }

    fn of(head: FeedHead, chunks: Vec<Arc<Chunk>>, names: Names) -> Columns {
        let bytes = size_of::<Columns>() + names.bytes() + chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>();
        Columns { head, chunks, names: Arc::new(names), bytes }
    }

    /// The columns of the feed's state that an index is of.
    pub(in crate::store) fn advance(&self, records: &Records, index: &FeedIndex) -> Result<Columns, StoreError> {
        let dataset = index.head().dataset;
        let mut names = Names::clone(&self.names);
        let mut changes = BTreeMap::new();
        for FeedEntry { id, log_seq, .. } in &index.entries()[index.position_after(self.head.newest_seq)..] {
            let row = match log_seq {
                Some(log_seq) => Some(Row::load(records, dataset, *id, log_seq.get(), &mut names)?),
                None => None,
            };
            changes.insert(*id, row);
        }
        let mut chunks = Vec::with_capacity(self.chunks.len());
        let mut old = self.chunks.iter().peekable();
        if old.peek().is_none() {
            split(changes.into_values().flatten().collect(), &mut chunks);
            return Ok(Columns::of(*index.head(), chunks, names));
        }
        while let Some(chunk) = old.next() {
            // What stands before the first chunk goes into the first.
            let later = match old.peek().and_then(|next| next.ids.first()) {
                Some(next) => changes.split_off(next),
                None => BTreeMap::new(),
            };
            let own = std::mem::replace(&mut changes, later);
            if own.is_empty() {
                chunks.push(Arc::clone(chunk));
                continue;
            }
            let mut rows: BTreeMap<Id, Row> =
                (0..chunk.ids.len()).map(|position| (chunk.ids[position], chunk.row(position))).collect();
            for (id, row) in own {
                match row {
                    Some(row) => rows.insert(id, row),
                    None => rows.remove(&id),
                };
            }
            split(rows.into_values().collect(), &mut chunks);
        }
        Ok(Columns::of(*index.head(), chunks, names))
    }

    /// The state that they are of.
    pub(in crate::store) fn head(&self) -> &FeedHead {
        &self.head
    }

    /// What they take in memory, in bytes. What older states share with them counts too.
    pub(in crate::store) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rows with larger ids that match a condition, in the order of their ids.
    pub(crate) fn find<'c>(&'c self, after: u64, condition: &'c Condition) -> Matches<'c> {
        let country = condition.country.as_deref().map(|name| self.names.countries.codes.get(name).copied());
        let area = condition.therapy_area.as_deref().map(|name| self.names.therapy_areas.codes.get(name).copied());
        // A name that no record has matches none; a text of diacritics alone folds to nothing, which is found nowhere.
        let none =
            country == Some(None) || area == Some(None) || condition.folded_text.as_deref().is_some_and(str::is_empty);
        let first = if none {
            self.chunks.len()
        } else {
            self.chunks.partition_point(|chunk| chunk.ids.last().is_some_and(|last| last.get() <= after))
        };
        Matches {
            columns: self,
            condition,
            country: country.flatten(),
            area: area.flatten(),
            finder: condition.folded_text.as_ref().map(|text| Finder::new(text.as_bytes())),
            after,
            next_chunk: first,
            word: MASK_WORDS,
            mask: Mask::default(),
        }
    }

    /// How many rows have each therapy area.
    pub(crate) fn count_therapy_areas(&self) -> Vec<(&str, u64)> {
        let counts = self.count(&self.names.therapy_areas, |chunk| &chunk.therapy_areas);
        counts.map(|(name, count)| (name.as_ref(), count)).collect()
    }

    /// How many rows are linked to each organization.
    pub(crate) fn count_organizations(&self) -> Vec<(Id, u64)> {
        self.count(&self.names.organizations, |chunk| &chunk.organizations).map(|(id, count)| (*id, count)).collect()
    }

    /// How many rows carry each tag.
    pub(crate) fn count_tags(&self) -> Vec<(Id, u64)> {
        self.count(&self.names.tags, |chunk| &chunk.tags).map(|(id, count)| (*id, count)).collect()
    }

    fn count<'n, T>(
        &self,
        names: &'n Interned<T>,
        of: impl Fn(&Chunk) -> &Lists,
    ) -> impl Iterator<Item = (&'n T, u64)> {
        let mut counts = vec![0; names.values.len()];
        for code in self.chunks.iter().flat_map(|chunk| &of(chunk).values) {
            if let Some(count) = counts.get_mut(*code as usize) {
                *count += 1;
            }
        }
        names.values.iter().zip(counts).filter(|(_, count)| *count > 0)
    }
}

/// Rows as chunks, halved where they have grown too many.
fn split(rows: Vec<Row>, chunks: &mut Vec<Arc<Chunk>>) {
    if rows.len() > MAX_CHUNK_ROWS {
        rows.chunks(CHUNK_ROWS).for_each(|rows| chunks.push(Arc::new(Chunk::of(rows))));
    } else if !rows.is_empty() {
        chunks.push(Arc::new(Chunk::of(&rows)));
    }
}

/// What rows must match; every given part must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Edition year.
    pub year: Option<u16>,
    /// Starts on or after this day.
    pub start_date_from: Option<Date>,
    /// Starts on or before this day.
    pub start_date_to: Option<Date>,
    /// Host country, exactly.
    pub country: Option<String>,
    /// One therapy area, exactly.
    pub therapy_area: Option<String>,
    /// Text found anywhere in the folded name or abbreviation; folded itself.
    pub folded_text: Option<String>,
}

/// Walks the rows that match.
#[derive(Debug)]
pub struct Matches<'c> {
    columns: &'c Columns,
    condition: &'c Condition,
    country: Option<u32>,
    area: Option<u32>,
    finder: Option<Finder<'c>>,
    after: u64,
    /// The chunk after the one that `mask` is of.
    next_chunk: usize,
    word: usize,
    mask: Mask,
}

impl Matches<'_> {
    fn enter(&mut self, chunk: &Chunk) {
        let mut mask = chunk.all();
        let Condition { year, start_date_from, start_date_to, .. } = self.condition;
        if chunk.ids.first().is_some_and(|first| first.get() <= self.after) {
            let after = self.after;
            Chunk::retain(&mut mask, |index| chunk.ids[index].get() > after);
        }
        if let Some(year) = year {
            Chunk::retain_equal(&mut mask, &chunk.years, *year);
        }
        if let Some(country) = self.country {
            Chunk::retain_equal(&mut mask, &chunk.countries, country);
        }
        if let Some(from) = start_date_from.map(day) {
            Chunk::retain(&mut mask, |index| chunk.start_days[index] >= from);
        }
        if let Some(to) = start_date_to.map(day) {
            Chunk::retain(&mut mask, |index| chunk.start_days[index] != NO_DAY && chunk.start_days[index] <= to);
        }
        if let Some(area) = self.area {
            Chunk::retain(&mut mask, |index| chunk.therapy_areas.get(index).contains(&area));
        }
        if let Some(finder) = &self.finder
            && mask != Mask::default()
        {
            chunk.retain_found(&mut mask, finder);
        }
        self.mask = mask;
        self.word = 0;
    }
}

impl Iterator for Matches<'_> {
    /// The record, and the seq of its `log` row.
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
