//! Columns: the values that filters and reference lists read, one number per record.
//!
//! Each name (a text or an id) is stored once, and columns contain its number. So a comparison of a country with those
//! of all records compares numbers that are next to each other in memory.

use std::collections::HashMap;
use std::ops::Range;

use crate::model::Dataset;
use crate::model::field::{Compare, Field};
use crate::model::value::{FieldValue, ValueKind};

/// The place of a record in memory.
pub type Slot = u32;

/// The number of a name that no record has.
const NO_NAME: u32 = u32::MAX;

/// A field with a column, and the names in it (texts, or ids in digits), which are numbered from 1.
#[derive(Clone, Debug)]
pub(super) struct FieldNames {
    pub field: &'static Field,
    /// The index of the field in its table.
    pub index: usize,
    names: Vec<Box<str>>,
    codes: HashMap<Box<str>, u32>,
}

impl FieldNames {
    /// The fields of a dataset that have filters or reference lists.
    pub fn of(dataset: Dataset) -> Vec<FieldNames> {
        let table = dataset.table();
        let has_column = |(index, field): &(usize, &Field)| {
            table.filters.iter().any(|filter| filter.field == *index) || matches!(field.kind, ValueKind::Links(_))
        };
        let names = |(index, field)| FieldNames { field, index, names: Vec::new(), codes: HashMap::new() };
        table.fields.iter().enumerate().filter(has_column).map(names).collect()
    }

    /// Returns the numbers of the names in a value.
    fn add<'n>(&'n mut self, value: &'n dyn FieldValue) -> impl Iterator<Item = u32> + 'n {
        let FieldNames { names, codes, .. } = self;
        let texts = value.texts().iter().map(|text| Box::from(text.as_str()));
        let ids = value.ids().iter().map(|id| id.to_string().into());
        texts.chain(ids).map(|name: Box<str>| {
            let next = u32::try_from(names.len() + 1).unwrap_or(NO_NAME);
            *codes.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                next
            })
        })
    }

    /// The name with a number.
    pub fn get(&self, code: u32) -> Option<&str> {
        self.names.get((code as usize).checked_sub(1)?).map(AsRef::as_ref)
    }

    /// The number of a filter's value in the column. A name that no record has gets a number too, so that it takes as
    /// long as one that hidden records have.
    pub fn number(&self, value: &str) -> u64 {
        match self.field.kind {
            ValueKind::Text | ValueKind::Texts | ValueKind::Links(_) => {
                self.codes.get(value).copied().unwrap_or(NO_NAME).into()
            }
            _ => (self.field.rank_of)(value),
        }
    }
}

/// One list per record, concatenated.
#[derive(Debug)]
pub(super) struct ListColumn {
    /// The start of each list in `values`, and the end of the last one.
    starts: Vec<u32>,
    values: Vec<u32>,
}

impl ListColumn {
    fn push(&mut self, list: impl Iterator<Item = u32>) {
        self.values.extend(list);
        self.starts.push(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
    }

    fn copy(&mut self, from: &ListColumn, slots: Range<usize>) {
        let (first, last) = (from.starts[slots.start] as usize, from.starts[slots.end] as usize);
        let own = self.values.len();
        self.values.extend_from_slice(&from.values[first..last]);
        let moved = |end: &u32| u32::try_from(*end as usize - first + own).unwrap_or(u32::MAX);
        self.starts.extend(from.starts[slots.start + 1..=slots.end].iter().map(moved));
    }

    /// The list of a record.
    pub fn get(&self, slot: Slot) -> &[u32] {
        let slot = slot as usize;
        &self.values[self.starts[slot] as usize..self.starts[slot + 1] as usize]
    }
}

/// The values of a field: one number per record, or one list. 0 means null, and sorts first.
#[derive(Debug)]
pub(super) enum Column {
    Numbers(Vec<u64>),
    Lists(ListColumn),
}

impl Column {
    pub fn of(kind: ValueKind) -> Column {
        match kind {
            ValueKind::Texts | ValueKind::Links(_) => Column::Lists(ListColumn { starts: vec![0], values: Vec::new() }),
            _ => Column::Numbers(Vec::new()),
        }
    }

    /// Appends the value of a record; `None` for a slot without one.
    pub fn push(&mut self, value: Option<&dyn FieldValue>, names: &mut FieldNames) {
        let mut codes = value.map(|value| names.add(value)).into_iter().flatten();
        match self {
            Column::Numbers(column) => {
                column.push(codes.next().map_or_else(|| value.map_or(0, |value| value.rank()), u64::from));
            }
            Column::Lists(lists) => lists.push(codes),
        }
    }

    /// Appends values of an earlier column of the same field.
    pub fn copy(&mut self, from: &Column, slots: Range<usize>) {
        match (self, from) {
            (Column::Numbers(column), Column::Numbers(from)) => column.extend_from_slice(&from[slots]),
            (Column::Lists(lists), Column::Lists(from)) => lists.copy(from, slots),
            _ => debug_assert!(false, "columns of one field are of one type"),
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
                slots.retain(|slot| lists.get(*slot).contains(&code));
            }
        }
    }
}
