//! Builds of the index of names that another command interrupts between their two commits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::moments::at_moment;
use super::{Sample, batch, conference, id, snapshot};
use crate::disk::{DiskEvent, observe};
use crate::model::Dataset;
use crate::store::write::batch::{NameChanges, WordChange};
use crate::store::write::names::build_names;
use crate::store::{Curation, StoreError, WordCount, Writer};

const VERSION: u32 = 1;
const AREAS: u8 = 1;

/// A database with two conferences, and without an index of names.
fn unindexed() -> Sample {
    let sample = Sample::new();
    sample.edit(|edit| edit.apply(&batch([1, 2].map(|number| conference(number, |_| {})))).unwrap());
    sample
}

/// The index of these conferences. A build writes it in two commits: names, then words.
fn names() -> NameChanges {
    let oncology = WordChange { records: 2, gained_by: Some(id(1)), lost_by: Vec::new() };
    NameChanges {
        version: VERSION,
        added: vec![(10, Dataset::Conferences, id(1)), (20, Dataset::Conferences, id(2))],
        words: [((AREAS, "Oncology".to_owned()), oncology)].into(),
        ..NameChanges::default()
    }
}

fn build(sample: &Sample) -> Result<bool, StoreError> {
    build_names(&sample.path(), Duration::ZERO, &sample.snapshot(), names())
}

/// Builds the index, and runs `action` between the two commits.
fn build_interrupted(sample: &Sample, action: impl Fn() + Send + Sync + 'static) -> Result<bool, StoreError> {
    let opened = AtomicUsize::new(0);
    let is_second = move |event: &DiskEvent<'_>| {
        matches!(event, DiskEvent::Open { .. }) && opened.fetch_add(1, Ordering::SeqCst) == 1
    };
    let action = move || {
        // The files that it opens are not observed.
        observe(None);
        action();
    };
    at_moment(is_second, action, || build(sample))
}

fn words(curation: &impl Curation) -> Option<Vec<WordCount>> {
    curation.words(VERSION, AREAS).unwrap()
}

/// The words of a whole index.
fn whole() -> Option<Vec<WordCount>> {
    Some(vec![WordCount { word: "Oncology".to_owned(), records: 2, record: Some(id(1)) }])
}

#[test]
fn words_are_counted_once_though_two_commands_build_the_index() {
    let sample = unindexed();
    let path = sample.path();
    let other = move || assert!(build_names(&path, Duration::ZERO, &snapshot(&path), names()).unwrap());
    assert!(!build_interrupted(&sample, other).unwrap(), "the other command has built it");
    assert_eq!(words(&*sample.snapshot()), whole());
}

#[test]
fn an_index_is_not_used_until_it_is_whole() {
    let sample = unindexed();
    let path = sample.path();
    let lock = Arc::new(Mutex::new(None));
    let held = Arc::clone(&lock);
    let takes_lock = move || *held.lock().unwrap() = Some(Writer::open(&path, Duration::ZERO).unwrap());
    let done = build_interrupted(&sample, takes_lock);
    assert!(matches!(done, Err(StoreError::Busy { .. })), "{done:?}");
    drop(lock.lock().unwrap().take());
    let half = sample.snapshot();
    assert!(!half.has_names(VERSION).unwrap());
    assert_eq!((words(&*half), half.records_named(VERSION, &[10], 1).unwrap()), (None, None));
    sample.edit(|edit| assert_eq!(words(edit), None));
    // The next import builds it anew.
    assert!(build(&sample).unwrap());
    assert!(sample.snapshot().has_names(VERSION).unwrap());
    assert_eq!(words(&*sample.snapshot()), whole());
}
