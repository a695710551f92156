//! The index of names and words: the records with a name, and the number of records with a word. Imports read it.
//!
//! The index is local and derived. Programs without this index may have written records since it was built. So it
//! stores the state of the records that it was built from, and is used only for this state.

use redb::{ReadTransaction, ReadableTable};
use serde::{Deserialize, Serialize};

use crate::model::{Dataset, Id, PerDataset};
use crate::store::StoreError;
use crate::store::format::codec::unseal;
use crate::store::format::rows::{optional_table, read_id};
use crate::store::format::tables::{self, LogValue};

/// The newest seq and the number of records of each dataset. Seqs only grow, so equal values mean equal records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct RecordsState {
    /// 0 for a dataset without records.
    newest_seq: PerDataset<u64>,
    records: PerDataset<u64>,
}

impl RecordsState {
    /// Reads the newest seqs from `log`. `records` is the number of records in each dataset.
    pub fn read(
        log: &impl ReadableTable<(u8, u64), LogValue<'static>>,
        records: PerDataset<u64>,
    ) -> Result<RecordsState, StoreError> {
        let mut newest_seq = PerDataset::default();
        for dataset in Dataset::ALL {
            let code = dataset.code();
            let last = log.range((code, 0)..=(code, u64::MAX))?.next_back().transpose()?;
            newest_seq[dataset] = last.map_or(0, |(key, _)| key.value().1);
        }
        Ok(RecordsState { newest_seq, records })
    }

    pub fn is_empty(&self) -> bool {
        self.records == PerDataset::default()
    }
}

/// Identifies a state of records, organizations and tags. Rows merged with one state fit all states with an equal
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentState {
    pub(in crate::store) records: RecordsState,
    pub(in crate::store) references_seq: u64,
}

impl ContentState {
    /// The state of an empty database.
    pub const EMPTY: ContentState = ContentState {
        records: RecordsState {
            newest_seq: PerDataset { conferences: 0, journals: 0 },
            records: PerDataset { conferences: 0, journals: 0 },
        },
        references_seq: 0,
    };
}

/// The row of `names_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct NamesState {
    /// The version of the rules that derive names and words from records.
    pub version: u32,
    /// The state of the records that the index was built from.
    pub of: RecordsState,
    /// False while the index is being built.
    pub is_whole: bool,
}

impl NamesState {
    /// Reads the row; `None` without an index.
    pub fn read(table: &impl ReadableTable<u8, &'static [u8]>) -> Result<Option<NamesState>, StoreError> {
        table.get(tables::NAMES_STATE_KEY)?.map(|row| unseal("names_state", row.value())).transpose()
    }

    /// Whether this version of the rules can use the index for these records.
    pub fn fits(&self, version: u32, of: &RecordsState) -> bool {
        self.is_whole && self.version == version && self.of == *of
    }
}

/// A row of `names`: the hash of a name, and a record with this name.
pub type NameEntry = (u64, Dataset, Id);

/// A word, and the number of records that contain it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "described above")]
pub struct WordCount {
    pub word: String,
    pub records: u64,
    /// One of the records, if known.
    pub record: Option<Id>,
}

pub(in crate::store) struct NamesTables {
    pub state: NamesState,
    pub names: redb::ReadOnlyTable<(u64, u8, u64), ()>,
    pub words: redb::ReadOnlyTable<(u8, &'static str), (u64, u64)>,
}

impl NamesTables {
    pub fn open(transaction: &ReadTransaction) -> Result<Option<NamesTables>, StoreError> {
        let Some(state) = optional_table(transaction.open_table(tables::NAMES_STATE))? else { return Ok(None) };
        let state = NamesState::read(&state)?;
        let names = optional_table(transaction.open_table(tables::NAMES))?;
        let words = optional_table(transaction.open_table(tables::WORDS))?;
        Ok(state.zip(names).zip(words).map(|((state, names), words)| NamesTables { state, names, words }))
    }
}

/// Finds the records with these names, in the order of names and ids; at most `most` of each name and dataset.
pub(in crate::store) fn records_named(
    table: &impl ReadableTable<(u64, u8, u64), ()>,
    names: &[u64],
    most: usize,
) -> Result<Vec<NameEntry>, StoreError> {
    let mut found = Vec::new();
    for (name, dataset) in names.iter().flat_map(|name| Dataset::ALL.map(|dataset| (*name, dataset))) {
        let code = dataset.code();
        for entry in table.range((name, code, 0)..=(name, code, u64::MAX))?.take(most) {
            found.push((name, dataset, read_id("names", entry?.0.value().2)?));
        }
    }
    Ok(found)
}

pub(in crate::store) fn words_of(
    words: &impl ReadableTable<(u8, &'static str), (u64, u64)>,
    vocabulary: u8,
) -> Result<Vec<WordCount>, StoreError> {
    let mut found = Vec::new();
    for entry in words.range((vocabulary, "")..)? {
        let (key, value) = entry?;
        let ((of, word), (records, record)) = (key.value(), value.value());
        if of != vocabulary {
            break;
        }
        let record = if record == 0 { None } else { Some(read_id("words", record)?) };
        found.push(WordCount { word: word.to_owned(), records, record });
    }
    Ok(found)
}
