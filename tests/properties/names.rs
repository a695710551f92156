//! The index of names: imports warn of the same with it as by reading the whole database.

use std::collections::BTreeSet;

use medfeed::import::lint::Extent;
use medfeed::import::lint::name_index::{all_names, has_names};
use medfeed::import::{self, MergeOptions, ReadOptions, Source, SourceOptions};
use medfeed::model::{Curated, Dataset, Id, License, RecordFields, ReferenceKind, References};
use medfeed::store::write::names::build_names;
use medfeed::store::{Curation, Snapshot, StoreError, Writer};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::holds;

/// A state whose index is not used.
struct WithoutIndex<'s>(&'s Snapshot);

impl Curation for WithoutIndex<'_> {
    fn references(&self) -> Result<&References, StoreError> {
        Curation::references(self.0)
    }

    fn find_record<F: RecordFields>(&self, id: Id) -> Result<Option<Curated<F>>, StoreError> {
        Curation::find_record(self.0, id)
    }

    fn record_ids(&self, dataset: Dataset) -> Result<BTreeSet<Id>, StoreError> {
        self.0.record_ids(dataset)
    }

    fn largest_id(&self, dataset: Dataset) -> Result<Option<Id>, StoreError> {
        self.0.largest_id(dataset)
    }

    fn record_count(&self, dataset: Dataset) -> Result<usize, StoreError> {
        self.0.record_count(dataset)
    }

    fn linked_records(&self, kind: ReferenceKind, id: Id) -> Result<Vec<(Dataset, Id)>, StoreError> {
        self.0.linked_records(kind, id)
    }

    fn for_each_record<F: RecordFields>(&self, each: &mut dyn FnMut(Curated<F>)) -> Result<(), StoreError> {
        Curation::for_each_record::<F>(self.0, each)
    }

    fn licenses(&self) -> Vec<License> {
        Curation::licenses(self.0)
    }
}

/// A line of an import.
#[derive(Clone, Debug)]
enum Line {
    Conference { id: u64, name: &'static str, area: &'static str, city: &'static str, day: u8 },
    Journal { id: u64, name: &'static str, issn: &'static str },
    RemoveConference(u64),
    RemoveJournal(u64),
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let names = &["ESMO Congress", "Esmo congress", "ESMO Congres of Lung", "ESMO Congress of Lung", "ASCO", "Heart"];
    let areas = &["Oncology", "oncology", "Oncolgy", "Balneology", "Balneologgy", "Zzz"];
    let issns = &["0140-6736", "01406736", "1474-547X", "2049-3630"];
    let conference = (1..12_u64, select(names), select(areas), select(&["Paris", "Łódź"]), 1..4_u8)
        .prop_map(|(id, name, area, city, day)| Line::Conference { id, name, area, city, day });
    let journal = (1..8_u64, select(&["The Lancet", "the lancet.", "Chest"]), select(issns))
        .prop_map(|(id, name, issn)| Line::Journal { id, name, issn });
    let line = prop_oneof![
        6 => conference,
        3 => journal,
        1 => (1..12_u64).prop_map(Line::RemoveConference),
        1 => (1..8_u64).prop_map(Line::RemoveJournal),
    ];
    vec(line, 1..6)
}

/// The two files of an import; of two lines of one record the first counts.
fn files(lines: &[Line]) -> [(&'static str, String); 2] {
    let (mut conferences, mut journals) = (String::new(), String::new());
    let mut seen = BTreeSet::new();
    for line in lines {
        let (file, kind, id, text) = match line {
            Line::Conference { id, name, area, city, day } => {
                let text = format!(
                    "{{\"id\":{id},\"name\":\"{name}\",\"year\":2026,\"start_date\":\"2026-05-0{day}\",\"city\":\"{city}\",\
                     \"therapy_areas\":[\"{area}\",\"Hematology\"],\"start_date_status\":\"check\",\
                     \"abstract_due_date_status\":\"check\",\"late_breaking_due_date_status\":\"check\"}}\n"
                );
                (&mut conferences, 0, id, text)
            }
            Line::Journal { id, name, issn } => {
                (&mut journals, 1, id, format!("{{\"id\":{id},\"name\":\"{name}\",\"issn_print\":\"{issn}\"}}\n"))
            }
            Line::RemoveConference(id) => (&mut conferences, 0, id, format!("{{\"id\":{id},\"deleted\":true}}\n")),
            Line::RemoveJournal(id) => (&mut journals, 1, id, format!("{{\"id\":{id},\"deleted\":true}}\n")),
        };
        if seen.insert((kind, *id)) {
            file.push_str(&text);
        }
    }
    [("conferences.jsonl", conferences), ("journals.jsonl", journals)]
}

/// The warnings of a run. Of a word of the database any record that has it may be named.
fn warnings(curation: &impl Curation, sources: &[Source]) -> Vec<String> {
    let rows = import::read_sources(sources, &ReadOptions::default(), &mut |_| {}).unwrap();
    let options = MergeOptions { allow_removals: Some(1_000), extent: Extent::New, ..MergeOptions::default() };
    let merged = import::merge(rows, curation, &options).unwrap_or_else(|refusal| panic!("{refusal}"));
    let told = merged.warnings.into_iter().map(|warning| match (&warning.file, warning.rule) {
        (None, Some("area_spelling" | "area_list" | "area_unknown")) => format!("somewhere: {}", warning.message),
        _ => warning.to_string(),
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    told
}

#[test]
fn imports_warn_with_the_index_as_without() {
    // In every third history the index is thrown away once and built anew, as after a restore.
    holds(60, (vec(lines(), 1..8), 0..12_usize), |(runs, rebuilt)| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medfeed.redb");
        for (at, run) in runs.iter().enumerate() {
            let mut paths = Vec::new();
            for (name, text) in files(run) {
                std::fs::write(folder.path().join(name), text).unwrap();
                paths.push(folder.path().join(name));
            }
            let sources = Source::find(&paths, SourceOptions::default()).unwrap();
            let writer = Writer::open_or_create(&path, std::time::Duration::ZERO).unwrap();
            let snapshot = writer.snapshot().unwrap();
            assert!(at == 0 || has_names(&snapshot).unwrap(), "the index is there after {at} runs");
            let (with, without) = (warnings(&snapshot, &sources), warnings(&WithoutIndex(&snapshot), &sources));
            assert_eq!(with, without, "run {at} of {runs:?}");

            let rows = import::read_sources(&sources, &ReadOptions::default(), &mut |_| {}).unwrap();
            let mut edit = writer.begin().unwrap();
            let options = MergeOptions { allow_removals: Some(1_000), ..MergeOptions::default() };
            let merged = import::merge(rows, &edit, &options).unwrap_or_else(|refusal| panic!("{refusal}"));
            if at + 1 == rebuilt {
                edit.apply(&merged.batch).unwrap();
            } else {
                import::apply(&mut edit, &merged.batch).unwrap();
            }
            let is_new = edit.is_first() && edit.is_empty();
            edit.commit().unwrap();
            drop(writer);
            let before = snapshot.content().unwrap();
            let snapshot = medfeed::store::Follower::open(&path).unwrap();
            if at + 1 == rebuilt && snapshot.newest().content().unwrap() != before {
                assert!(
                    !has_names(snapshot.newest()).unwrap(),
                    "records changed without the index, run {at} of {runs:?}"
                );
            }
            if at + 1 == rebuilt || is_new {
                let names = all_names(snapshot.newest()).unwrap();
                build_names(&path, std::time::Duration::ZERO, snapshot.newest(), names).unwrap();
            }
        }
    });
}
