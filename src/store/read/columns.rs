//! Columns: the values that filters and reference lists read, one number per record.
//!
//! Each name (a text or an id) is stored once, and columns contain its number. So a comparison of a country with those
//! of all records compares numbers that are next to each other in memory.

use std::sync::Arc;

use indexmap::IndexSet;

use crate::model::field::Compare;
use crate::model::{Dataset, Field, FieldValue, ValueKind};

/// The place of a record in memory.
pub type Slot = u32;

/// The number of a name that no record has.
const NO_NAME: u32 = u32::MAX;

/// A field with a column, and the names in it (texts, or ids in digits), which are numbered from 1.
#[derive(Clone, Debug)]
pub struct FieldNames {
    pub field: &'static Field,
    /// The index of the field in its table.
    pub index: usize,
    names: IndexSet<Box<str>>,
}

impl FieldNames {
    /// The fields of a dataset that have filters or reference lists.
    pub fn of(dataset: Dataset) -> Vec<FieldNames> {
        let table = dataset.table();
        let has_column = |(index, field): &(usize, &Field)| {
            table.filters.iter().any(|filter| filter.field == *index)
                || matches!(field.kind, ValueKind::Links(_))
        };
        let names = |(index, field)| FieldNames {
            field,
            index,
            names: IndexSet::new(),
        };
        table
            .fields
            .iter()
            .enumerate()
            .filter(has_column)
            .map(names)
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
    pub fn get(&self, code: u32) -> Option<&str> {
        self.names
            .get_index((code as usize).checked_sub(1)?)
            .map(AsRef::as_ref)
    }

    /// The number of a filter's value in the column. A name that no record has gets a number too, so that it takes as
    /// long as one that hidden records have.
    pub fn number(&self, value: &str) -> u64 {
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
#[derive(Clone, Debug)]
pub enum Column {
    Numbers(Vec<u64>),
    /// A commit changes a copy of the column, which shares the other lists.
    Lists(Vec<Arc<[u32]>>),
}

/// Sets a value, or adds it at the end.
pub fn put<T>(values: &mut Vec<T>, slot: usize, value: T) {
    match values.get_mut(slot) {
        Some(known) => *known = value,
        None => values.push(value),
    }
}

impl Column {
    pub fn of(kind: ValueKind) -> Column {
        match kind {
            ValueKind::Texts | ValueKind::Links(_) => Column::Lists(Vec::new()),
            _ => Column::Numbers(Vec::new()),
        }
    }

    /// Sets the value of a record; `None` for a slot without one.
    pub fn put(&mut self, slot: usize, value: Option<&dyn FieldValue>, names: &mut FieldNames) {
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
    pub fn retain(&self, slots: &mut Vec<Slot>, compare: Compare, number: u64) {
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
