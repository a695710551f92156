//! All records of a dataset in one state, in memory. All licenses share them, and answers are made from them.
//!
//! A record has a *slot*, which it keeps as long as it exists. A feed lists the slots of the records that it shows
//! ([`FeedIndex`](super::feed_index::FeedIndex)). Filters, `q` and reference lists walk such a list. So the time of an
//! answer does not depend on records outside the license.
//!
//! The records are read once, and each is compared with its hash. Each commit then changes a copy: unchanged records
//! and lists are shared, and columns of numbers are copied.
//!
//! *Columns* hold the values that filters and reference lists read, one number per record. Each name (a text or an
//! id) is stored once, and columns contain its number. So a comparison of a country with those
//! of all records compares numbers that are next to each other in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use indexmap::IndexSet;
use memchr::memmem::Finder;
use redb::{ReadOnlyTable, ReadableTable};

use crate::model::field::Compare;
use crate::model::filter::{FieldCondition, Filter};
use crate::model::{
    Curated, Dataset, Field, FieldValue, Id, JsonType, RecordFields, ReferenceKind, Timestamp,
    ValueKind, fold, with_fields,
};
use crate::store::format::rows::{RecordRow, ShortHash, missing_record, read_id};
use crate::store::format::tables::{LogValue, keys_from};
use crate::store::{Result, StoreError};

/// The number of records that a filter tests at once.
const BATCH: usize = 256;
/// Ends each searched text. `q` never contains it, so no match spans two texts.
const TEXT_END: char = '\0';

pub type LogTable = ReadOnlyTable<(u8, u64), LogValue<'static>>;

/// The pairs of neighboring bytes in a text, as bits of a hash. A text contains another one only if it has all pairs of
/// it. So a search compares few whole texts.
type Pairs = [u64; 4];

fn pairs_of(text: &str) -> Pairs {
    let mut pairs = Pairs::default();
    for pair in text.as_bytes().windows(2) {
        let bit = pair[0].wrapping_mul(37).wrapping_add(pair[1]);
        pairs[usize::from(bit / 64)] |= 1 << (bit % 64);
    }
    pairs
}

/// A record as it is stored and sent.
#[derive(Debug)]
pub struct StoredRecord {
    pub id: Id,
    /// The seq of its last change.
    pub seq: u64,
    /// The hash of the JSON.
    pub hash: ShortHash,
    /// The JSON object, as it is sent.
    pub json: Box<[u8]>,
    /// The folded texts that `q` searches, each followed by [`TEXT_END`].
    text: Box<str>,
}

impl StoredRecord {
    /// Decodes the fields and `updated_at`. Fails if it is of another dataset.
    pub fn decode<F: RecordFields>(&self) -> Result<(Curated<F>, Timestamp)> {
        let row = RecordRow::open(self.seq, (self.id.get(), self.hash, &self.json))?;
        Ok((row.record, row.updated_at))
    }
}

/// The records of a dataset in one state.
#[derive(Clone)]
pub struct Records {
    dataset: Dataset,
    /// By slot. A slot is not used again after its record was removed.
    ids: Vec<Id>,
    /// By slot; `None` for a record that was removed, or whose row is damaged.
    rows: Vec<Option<Arc<StoredRecord>>>,
    /// The faults of rows that could not be read, by slot.
    damaged: BTreeMap<Slot, String>,
    slots: HashMap<Id, Slot>,
    /// In the order of `columns`.
    names: Vec<FieldNames>,
    columns: Vec<Column>,
    /// The pairs of each searched text, by slot.
    pairs: Vec<Pairs>,
}

impl Records {
    /// Reads all records of a dataset. A record whose row is damaged has a slot too.
    pub fn load(
        dataset: Dataset,
        records: &impl ReadableTable<(u8, u64), u64>,
        log: &LogTable,
    ) -> Result<Records> {
        let names = FieldNames::of(dataset);
        let columns = names
            .iter()
            .map(|names| Column::of(names.field.kind))
            .collect();
        let mut loaded = Records {
            dataset,
            ids: Vec::new(),
            rows: Vec::new(),
            damaged: BTreeMap::new(),
            slots: HashMap::new(),
            names,
            columns,
            pairs: Vec::new(),
        };
        for row in records.range(keys_from(dataset.code(), 0))? {
            let (key, seq) = row?;
            loaded.change(read_id("records", key.value().1)?, Some(seq.value()), log)?;
        }
        Ok(loaded)
    }

    /// The records after later commits: `since` is the last seq of these records, and `records` has all ids.
    pub fn advance(
        self: &Arc<Self>,
        since: u64,
        records: &impl ReadableTable<(u8, u64), u64>,
        log: &LogTable,
        count: u64,
    ) -> Result<Arc<Records>> {
        let code = self.dataset.code();
        let mut changes = Vec::new();
        for row in log.range(keys_from(code, since.saturating_add(1)))? {
            let (key, value) = row?;
            changes.push((read_id("log", value.value().0)?, Some(key.value().1)));
        }
        let new = changes
            .iter()
            .filter(|(id, _)| !self.slots.contains_key(id))
            .count();
        if (self.slots.len() + new) as u64 != count {
            // Removed records have no rows in `log`.
            for id in self.slots.keys() {
                if records.get((code, id.get()))?.is_none() {
                    changes.push((*id, None));
                }
            }
        }
        if changes.is_empty() {
            return Ok(Arc::clone(self));
        }
        let mut next = Records::clone(self);
        changes
            .into_iter()
            .try_for_each(|(id, seq)| next.change(id, seq, log))?;
        Ok(Arc::new(next))
    }

    /// Adds, changes or removes a record. `seq` is that of its row; `None` if it was removed.
    fn change(&mut self, id: Id, seq: Option<u64>, log: &LogTable) -> Result<()> {
        let slot = self
            .slots
            .get(&id)
            .map_or(self.ids.len(), |slot| *slot as usize);
        let number = Slot::try_from(slot).unwrap_or(Slot::MAX);
        self.damaged.remove(&number);
        let read = seq.map_or(
            Ok(None),
            |seq| with_fields!(self.dataset, F => self.read::<F>(log, id, seq, slot).map(Some)),
        );
        let row = match read {
            // Requests that need it report it.
            Err(StoreError::Damaged { detail, .. }) => {
                self.damaged.insert(number, detail);
                None
            }
            read => read?,
        };
        match seq {
            Some(_) => drop(self.slots.insert(id, number)),
            None => drop(self.slots.remove(&id)),
        }
        if row.is_none() {
            self.columns
                .iter_mut()
                .zip(&mut self.names)
                .for_each(|(column, names)| column.put(slot, None, names));
        }
        put(&mut self.ids, slot, id);
        put(
            &mut self.pairs,
            slot,
            row.as_ref()
                .map_or_else(Pairs::default, |row| pairs_of(&row.text)),
        );
        put(&mut self.rows, slot, row.map(Arc::new));
        Ok(())
    }

    /// Reads the row of a record, and puts its values into the columns.
    fn read<F: RecordFields>(
        &mut self,
        log: &LogTable,
        id: Id,
        seq: u64,
        slot: usize,
    ) -> Result<StoredRecord> {
        let missing = || missing_record(F::DATASET, id, seq);
        let found = log.get((F::DATASET.code(), seq))?.ok_or_else(missing)?;
        let (_, hash, json) = found.value();
        let RecordRow { record, .. } = RecordRow::<F>::open(seq, found.value())?;
        if record.id() != id {
            return Err(missing());
        }
        let values = record.fields().values();
        for (column, names) in self.columns.iter_mut().zip(&mut self.names) {
            column.put(slot, Some(values[names.index]), names);
        }
        let mut text = String::new();
        let searched = F::table()
            .fields
            .iter()
            .zip(&values)
            .filter(|(field, _)| field.uses.searched.is_some());
        for found in searched.flat_map(|(_, value)| value.texts()) {
            text.push_str(&fold(found));
            text.push(TEXT_END);
        }
        Ok(StoredRecord {
            id,
            seq,
            hash,
            json: json.into(),
            text: text.into(),
        })
    }

    /// Whether most slots are empty, so that reading all records anew saves memory.
    pub fn is_sparse(&self) -> bool {
        self.ids.len() > 2 * self.slots.len() + BATCH
    }

    /// The id of the record that has or had a slot.
    pub fn id(&self, slot: Slot) -> Id {
        self.ids[slot as usize]
    }

    /// The record in a slot. Fails if its row is damaged.
    pub fn get(&self, slot: Slot) -> Result<&StoredRecord> {
        self.rows[slot as usize].as_deref().ok_or_else(|| {
            let damage = self.damaged.get(&slot).cloned();
            let damage =
                damage.unwrap_or_else(|| format!("there is no {} {}", self.dataset, self.id(slot)));
            StoreError::damaged("log", damage)
        })
    }

    /// Finds the slot of a record whose last change is at a seq.
    pub fn slot_at(&self, id: Id, seq: u64) -> Result<Slot> {
        let slot = self.slots.get(&id).copied().filter(|slot| {
            let row = self.rows[*slot as usize].as_ref();
            row.is_none_or(|record| record.seq == seq)
        });
        slot.ok_or_else(|| missing_record(self.dataset, id, seq))
    }

    /// Fails if the row of a record in a list of slots is damaged: its values are not known.
    fn check(&self, shown: &[Slot]) -> Result<()> {
        if self.damaged.is_empty() {
            return Ok(());
        }
        shown
            .iter()
            .try_for_each(|slot| self.get(*slot).map(|_| ()))
    }

    /// Finds the records of a list of slots that match a filter, in its order. Ignores the filter's `updated_since`.
    pub fn find<'r>(
        &'r self,
        shown: &'r [Slot],
        filter: &Filter,
    ) -> Result<impl Iterator<Item = Slot> + 'r> {
        if filter.text.is_some() || !filter.conditions.is_empty() {
            self.check(shown)?;
        }
        let text = filter.text.as_deref().map(fold);
        let columns = || self.names.iter().enumerate();
        let conditions = filter
            .conditions
            .iter()
            .filter_map(|FieldCondition { filter, value }| {
                let (column, names) = columns().find(|(_, names)| names.index == filter.field)?;
                Some((
                    names.field.kind.json_type() == JsonType::List,
                    filter.compare,
                    column,
                    names.number(value),
                ))
            });
        let mut conditions: Vec<_> = conditions.collect();
        // Fast comparisons first.
        conditions.sort();
        // A value without a rank matches no record. A text of diacritics alone folds to an empty text, and matches
        // none.
        let none = conditions.iter().any(|(.., number)| *number == 0)
            || text.as_deref().is_some_and(str::is_empty);
        let searched =
            text.map(|text| (pairs_of(&text), Finder::new(text.as_bytes()).into_owned()));
        let shown = if none { &[] } else { shown };
        Ok(shown.chunks(BATCH).flat_map(move |batch| {
            let mut slots = batch.to_vec();
            for (_, compare, column, number) in &conditions {
                self.columns[*column].retain(&mut slots, *compare, *number);
            }
            if let Some((pairs, finder)) = &searched {
                slots.retain(|slot| {
                    self.pairs[*slot as usize]
                        .iter()
                        .zip(pairs)
                        .all(|(all, some)| all & some == *some)
                });
                slots.retain(|slot| {
                    let record = self.rows[*slot as usize].as_deref();
                    record.is_some_and(|record| finder.find(record.text.as_bytes()).is_some())
                });
            }
            slots
        }))
    }

    /// The number of records of a list of slots for each text in a field with a list of texts.
    pub fn count_texts(&self, shown: &[Slot], field: &str) -> Result<Vec<(&str, u64)>> {
        self.count(shown, |names| names.field.name == field)
    }

    /// The number of records of a list of slots that link to each organization or tag.
    pub fn count_links(&self, shown: &[Slot], kind: ReferenceKind) -> Result<Vec<(Id, u64)>> {
        let counts = self.count(shown, |names| names.field.kind == ValueKind::Links(kind))?;
        Ok(counts
            .into_iter()
            .filter_map(|(id, count)| Some((id.parse().ok()?, count)))
            .collect())
    }

    /// Counts names that occur in a list of slots. The time does not depend on other names.
    fn count(
        &self,
        shown: &[Slot],
        is_counted: impl Fn(&FieldNames) -> bool,
    ) -> Result<Vec<(&str, u64)>> {
        self.check(shown)?;
        let counted = self
            .names
            .iter()
            .zip(&self.columns)
            .find(|(names, _)| is_counted(names));
        let Some((names, Column::Lists(lists))) = counted else {
            return Ok(Vec::new());
        };
        let mut counts: HashMap<u32, u64> = HashMap::new();
        for code in shown.iter().flat_map(|slot| &*lists[*slot as usize]) {
            *counts.entry(*code).or_default() += 1;
        }
        Ok(counts
            .into_iter()
            .filter_map(|(code, count)| Some((names.get(code)?, count)))
            .collect())
    }
}

/// The place of a record in memory.
pub type Slot = u32;

/// The number of a name that no record has.
const NO_NAME: u32 = u32::MAX;

/// A field with a column, and the names in it (texts, or ids in digits), which are numbered from 1.
#[derive(Clone)]
struct FieldNames {
    field: &'static Field,
    /// The index of the field in its table.
    index: usize,
    names: IndexSet<Box<str>>,
}

impl FieldNames {
    /// The fields of a dataset that have filters or reference lists.
    fn of(dataset: Dataset) -> Vec<FieldNames> {
        let table = dataset.table();
        table
            .fields
            .iter()
            .enumerate()
            .filter(|(index, field)| {
                table.filters.iter().any(|filter| filter.field == *index)
                    || matches!(field.kind, ValueKind::Links(_))
            })
            .map(|(index, field)| FieldNames {
                field,
                index,
                names: IndexSet::new(),
            })
            .collect()
    }

    /// Returns the numbers of the names in a value.
    fn add<'n>(&'n mut self, value: &'n dyn FieldValue) -> impl Iterator<Item = u32> + 'n {
        let texts = value.texts().iter().map(|text| Box::from(text.as_str()));
        let ids = value.ids().iter().map(|id| id.to_string().into());
        texts
            .chain(ids)
            .map(|name: Box<str>| number_at(self.names.insert_full(name).0))
    }

    /// The name with a number.
    fn get(&self, code: u32) -> Option<&str> {
        self.names
            .get_index((code as usize).checked_sub(1)?)
            .map(AsRef::as_ref)
    }

    /// The number of a filter's value in the column. A name that no record has gets a number too, so that it takes as
    /// long as one that hidden records have.
    fn number(&self, value: &str) -> u64 {
        match self.field.kind {
            ValueKind::Text | ValueKind::Texts | ValueKind::Links(_) => self
                .names
                .get_index_of(value)
                .map_or(NO_NAME, number_at)
                .into(),
            _ => (self.field.rank_of)(value),
        }
    }
}

/// The number of the name at an index.
fn number_at(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(NO_NAME)
}

/// The values of a field by slot: one number per record, or one list. 0 means null, and sorts first.
#[derive(Clone)]
enum Column {
    Numbers(Vec<u64>),
    /// A commit changes a copy of the column, which shares the other lists.
    Lists(Vec<Arc<[u32]>>),
}

/// Sets a value, or adds it at the end.
fn put<T>(values: &mut Vec<T>, slot: usize, value: T) {
    match values.get_mut(slot) {
        Some(known) => *known = value,
        None => values.push(value),
    }
}

impl Column {
    fn of(kind: ValueKind) -> Column {
        match kind {
            ValueKind::Texts | ValueKind::Links(_) => Column::Lists(Vec::new()),
            _ => Column::Numbers(Vec::new()),
        }
    }

    /// Sets the value of a record; `None` for a slot without one.
    fn put(&mut self, slot: usize, value: Option<&dyn FieldValue>, names: &mut FieldNames) {
        let mut codes = value.map(|value| names.add(value)).into_iter().flatten();
        match self {
            Column::Numbers(column) => {
                let rank = || value.map_or(0, |value| value.rank());
                put(column, slot, codes.next().map_or_else(rank, u64::from));
            }
            Column::Lists(lists) => put(lists, slot, codes.collect()),
        }
    }

    /// Keeps the slots whose values satisfy a comparison.
    fn retain(&self, slots: &mut Vec<Slot>, compare: Compare, number: u64) {
        match self {
            Column::Numbers(column) => slots.retain(|slot| {
                let value = column[*slot as usize];
                match compare {
                    Compare::Equal => value == number,
                    Compare::From => value >= number,
                    Compare::To => value != 0 && value <= number,
                }
            }),
            Column::Lists(lists) => {
                let code = u32::try_from(number).unwrap_or(NO_NAME);
                slots.retain(|slot| lists[*slot as usize].contains(&code));
            }
        }
    }
}
