//! Columns: the values that filters and reference lists read, one number per record.
//!
//! Each name (a text or an id) is stored once, and columns contain its number. So a comparison of a country with those
//! of all records compares numbers that are next to each other in memory.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use crate::model::field::{Compare, Field};
use crate::model::value::{FieldValue, ValueKind};
use crate::model::{Dataset, Id};

/// The place of a record in memory.
pub type Slot = u32;

/// The number of a name that no record has.
const NO_NAME: u32 = u32::MAX;

/// Numbers values from 1.
#[derive(Clone, Debug)]
pub(super) struct Interned<T> {
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
        let next = u32::try_from(self.values.len() + 1).unwrap_or(NO_NAME);
        *self.codes.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            next
        })
    }

    /// The value with a number.
    pub fn get(&self, code: u32) -> Option<&T> {
        self.values.get((code as usize).checked_sub(1)?)
    }
}

/// A field with a column, and the numbers of the names (texts or ids) in it.
#[derive(Clone, Debug)]
pub(super) struct FieldNames {
    pub field: &'static Field,
    /// The index of the field in its table.
    pub index: usize,
    pub texts: Interned<Box<str>>,
    pub ids: Interned<Id>,
}

impl FieldNames {
    /// The fields of a dataset that have filters or reference lists.
    pub fn of(dataset: Dataset) -> Vec<FieldNames> {
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

    /// The number of a filter's value in the column. A name that no record has gets a number too, so that it takes as
    /// long as one that hidden records have.
    pub fn number(&self, value: &str) -> u64 {
        let code = match self.field.kind {
            ValueKind::Text | ValueKind::Texts => self.texts.codes.get(value),
            ValueKind::Links(_) => value.parse().ok().and_then(|id: Id| self.ids.codes.get(&id)),
            ValueKind::Integer | ValueKind::Number | ValueKind::Year | ValueKind::Date => None,
            ValueKind::Flag | ValueKind::Choice(_) | ValueKind::DateStatus(_) => None,
        };
        let is_name = matches!(self.field.kind, ValueKind::Text | ValueKind::Texts | ValueKind::Links(_));
        match code {
            Some(code) => u64::from(*code),
            None if is_name => u64::from(NO_NAME),
            None => (self.field.rank_of)(value),
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
    fn empty() -> ListColumn {
        ListColumn { starts: vec![0], values: Vec::new() }
    }

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

/// The values of a field, one number per record, as wide as necessary. 0 means null, and sorts first.
#[derive(Debug)]
pub(super) enum PackedColumn {
    Short(Vec<u16>),
    Medium(Vec<u32>),
    Long(Vec<u64>),
    Lists(ListColumn),
}

impl PackedColumn {
    pub fn of(kind: ValueKind) -> PackedColumn {
        match kind {
            ValueKind::Year | ValueKind::Flag => PackedColumn::Short(Vec::new()),
            ValueKind::Choice(_) | ValueKind::DateStatus(_) => PackedColumn::Short(Vec::new()),
            ValueKind::Date | ValueKind::Text => PackedColumn::Medium(Vec::new()),
            ValueKind::Integer | ValueKind::Number => PackedColumn::Long(Vec::new()),
            ValueKind::Texts | ValueKind::Links(_) => PackedColumn::Lists(ListColumn::empty()),
        }
    }

    /// Appends the value of a record; `None` for a slot without one.
    pub fn push(&mut self, value: Option<&dyn FieldValue>, names: &mut FieldNames) {
        let mut codes = value.map(|value| names.add(value)).into_iter().flatten();
        let mut number = || codes.next().map_or_else(|| value.map_or(0, |value| value.rank()), u64::from);
        match self {
            PackedColumn::Short(column) => column.push(u16::try_from(number()).unwrap_or_default()),
            PackedColumn::Medium(column) => column.push(u32::try_from(number()).unwrap_or_default()),
            PackedColumn::Long(column) => column.push(number()),
            PackedColumn::Lists(lists) => lists.push(codes),
        }
    }

    /// Appends values of an earlier column of the same field.
    pub fn copy(&mut self, from: &PackedColumn, slots: Range<usize>) {
        match (self, from) {
            (PackedColumn::Short(column), PackedColumn::Short(from)) => column.extend_from_slice(&from[slots]),
            (PackedColumn::Medium(column), PackedColumn::Medium(from)) => column.extend_from_slice(&from[slots]),
            (PackedColumn::Long(column), PackedColumn::Long(from)) => column.extend_from_slice(&from[slots]),
            (PackedColumn::Lists(lists), PackedColumn::Lists(from)) => lists.copy(from, slots),
            _ => debug_assert!(false, "columns of one field are of one type"),
        }
    }

    /// Keeps the slots whose values satisfy a comparison.
    pub fn retain(&self, slots: &mut Vec<Slot>, compare: Compare, number: u64) {
        match self {
            PackedColumn::Short(column) => retain(slots, column, compare, number),
            PackedColumn::Medium(column) => retain(slots, column, compare, number),
            PackedColumn::Long(column) => retain(slots, column, compare, number),
            PackedColumn::Lists(lists) => {
                let code = u32::try_from(number).unwrap_or(NO_NAME);
                slots.retain(|slot| lists.get(*slot).contains(&code));
            }
        }
    }
}

/// Implements [`PackedColumn::retain`] for single values.
fn retain<T: Copy + Ord + Default + TryFrom<u64>>(slots: &mut Vec<Slot>, column: &[T], compare: Compare, number: u64) {
    let (null, number) = (T::default(), T::try_from(number).unwrap_or_default());
    slots.retain(|slot| {
        let value = column[*slot as usize];
        match compare {
            Compare::Equal => value == number,
            Compare::From => value >= number,
            Compare::To => value != null && value <= number,
        }
    });
}
