//! What filters and `q` run over: a packed row per record, in memory, sorted by id.
//!
//! Rows lie in chunks that newer states share with older ones, so bringing them forward costs what changed.

use std::sync::Arc;

use jiff::civil::Date;

use super::{Snapshot, StoreError};
use crate::model::fold::fold;
use crate::model::{ConferenceFields, Curated, Dataset, Id, JournalFields, RecordFields};

/// Rows per chunk when chunks are built; one grows to twice that before it is split.
const CHUNK_ROWS: usize = 256;

/// What filters and reference lists ask of a record.
#[derive(Clone, Debug)]
pub struct ColumnRow {
    /// The record.
    pub id: Id,
    /// Edition year.
    pub year: Option<u16>,
    /// Start of the meeting.
    pub start_date: Option<Date>,
    /// Host country.
    pub country: Option<Box<str>>,
    /// Therapy areas.
    pub therapy_areas: Box<[Box<str>]>,
    /// Linked organizations.
    pub organizations: Box<[Id]>,
    /// Linked tags.
    pub tags: Box<[Id]>,
    /// The name, folded.
    pub folded_name: Box<str>,
    /// The abbreviation, folded.
    pub folded_abbv: Box<str>,
}

impl ColumnRow {
    fn of<F: RecordFields>(record: &Curated<F>) -> ColumnRow {
        let fields = record.fields();
        ColumnRow {
            id: record.id(),
            year: None,
            start_date: None,
            country: None,
            therapy_areas: Box::default(),
            organizations: fields.organizations().into(),
            tags: fields.tags().into(),
            folded_name: fold(fields.name()).into(),
            folded_abbv: fold(fields.abbv().unwrap_or_default()).into(),
        }
    }

    fn of_conference(record: &Curated<ConferenceFields>) -> ColumnRow {
        let fields = record.fields();
        ColumnRow {
            year: fields.year,
            start_date: fields.start_date,
            country: fields.country.as_deref().map(Box::from),
            therapy_areas: fields.therapy_areas.iter().map(|area| Box::from(area.as_str())).collect(),
            ..ColumnRow::of(record)
        }
    }

    fn find(snapshot: &Snapshot, dataset: Dataset, id: Id) -> Result<Option<ColumnRow>, StoreError> {
        Ok(match dataset {
            Dataset::Conferences => {
                snapshot.find_record::<ConferenceFields>(id)?.map(|(record, _)| ColumnRow::of_conference(&record))
            }
            Dataset::Journals => snapshot.find_record::<JournalFields>(id)?.map(|(record, _)| ColumnRow::of(&record)),
        })
    }
}

/// The packed rows of a dataset.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Chunks in the order of ids, none empty.
    chunks: Vec<Arc<Vec<ColumnRow>>>,
}

impl Columns {
    /// Reads all records of a dataset.
    pub(super) fn build(snapshot: &Snapshot, dataset: Dataset) -> Result<Columns, StoreError> {
        let mut rows = Vec::new();
        match dataset {
            Dataset::Conferences => snapshot.for_each_record::<ConferenceFields, StoreError>(|record, _, _| {
                rows.push(ColumnRow::of_conference(&record));
                Ok(())
            })?,
            Dataset::Journals => snapshot.for_each_record::<JournalFields, StoreError>(|record, _, _| {
                rows.push(ColumnRow::of(&record));
                Ok(())
            })?,
        }
        let mut chunks = Vec::with_capacity(rows.len().div_ceil(CHUNK_ROWS));
        let mut rows = rows.into_iter();
        loop {
            let chunk: Vec<ColumnRow> = rows.by_ref().take(CHUNK_ROWS).collect();
            if chunk.is_empty() {
                return Ok(Columns { chunks });
            }
            chunks.push(Arc::new(chunk));
        }
    }

    /// The rows as of a newer state: first without what was removed since, then with what was changed.
    pub(super) fn brought_forward(
        &self,
        newer: &Snapshot,
        dataset: Dataset,
        since: u64,
    ) -> Result<Columns, StoreError> {
        let mut columns = self.clone();
        for id in newer.removed_after(dataset, since)? {
            columns.remove(id);
        }
        for id in newer.changed_after(dataset, since)? {
            if let Some(row) = ColumnRow::find(newer, dataset, id)? {
                columns.put(row);
            }
        }
        Ok(columns)
    }

    /// The chunk in which an id stands or would stand.
    fn chunk_of(&self, id: Id) -> usize {
        self.chunks.partition_point(|chunk| chunk.first().is_some_and(|first| first.id <= id)).saturating_sub(1)
    }

    fn put(&mut self, row: ColumnRow) {
        let at = self.chunk_of(row.id);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(Arc::new(vec![row]));
            return;
        };
        let rows = Arc::make_mut(chunk);
        match rows.binary_search_by_key(&row.id, |stored| stored.id) {
            Ok(place) => rows[place] = row,
            Err(place) => {
                rows.insert(place, row);
                if rows.len() > 2 * CHUNK_ROWS {
                    let upper = rows.split_off(CHUNK_ROWS);
                    self.chunks.insert(at + 1, Arc::new(upper));
                }
            }
        }
    }

    fn remove(&mut self, id: Id) {
        let at = self.chunk_of(id);
        let Some(chunk) = self.chunks.get_mut(at) else { return };
        let Ok(place) = chunk.binary_search_by_key(&id, |stored| stored.id) else { return };
        let rows = Arc::make_mut(chunk);
        rows.remove(place);
        if rows.is_empty() {
            self.chunks.remove(at);
        }
    }

    /// A reader that is asked for ascending ids.
    pub fn cursor(&self) -> ColumnCursor<'_> {
        ColumnCursor { chunks: &self.chunks, rows: &[] }
    }
}

/// Walks the rows beside another list of ascending ids, so that each look-up is a step and not a search.
#[derive(Debug)]
pub struct ColumnCursor<'a> {
    chunks: &'a [Arc<Vec<ColumnRow>>],
    rows: &'a [ColumnRow],
}

impl<'a> ColumnCursor<'a> {
    /// The row of an id, which must be larger than those asked for before.
    pub fn seek(&mut self, id: Id) -> Option<&'a ColumnRow> {
        if self.rows.last().is_none_or(|last| last.id < id) {
            let skipped = self.chunks.partition_point(|chunk| chunk.last().is_some_and(|last| last.id < id));
            let (chunk, rest) = self.chunks.get(skipped..)?.split_first()?;
            self.rows = chunk;
            self.chunks = rest;
        }
        // Most often the next row is the one.
        let near = self.rows.iter().take(4).position(|row| row.id >= id);
        let at = near.unwrap_or_else(|| self.rows.partition_point(|row| row.id < id));
        self.rows = &self.rows[at..];
        self.rows.first().filter(|row| row.id == id)
    }
}
