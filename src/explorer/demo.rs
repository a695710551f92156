//! The demo's data for the explorer: throwaway keys, and the curator's edits in words. The explorer reads records from
//! `/v1` with these keys, like any other client.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::model::Dataset;

/// The most edits kept: older ones are dropped.
const MAX_EDITS: usize = 50;

/// A demo's licenses and latest edits.
pub struct Demo {
    licenses: Vec<DemoLicense>,
    curating: bool,
    edits: Mutex<VecDeque<DemoEdit>>,
}

/// A license of a demo.
#[derive(Clone, Serialize)]
pub struct DemoLicense {
    /// Its name.
    pub name: &'static str,
    /// Its scope, in words.
    pub shows: String,
    /// One of its keys.
    pub key: String,
}

/// A curator's edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DemoEdit {
    /// The number of the edit, from 1.
    pub number: u64,
    /// The time of its commit, in the API's format.
    pub at: String,
    /// A description of the edit.
    pub words: String,
    /// The dataset of the edited records.
    pub dataset: Dataset,
    /// The ids of the edited records.
    pub ids: Vec<u64>,
}

impl std::fmt::Debug for Demo {
    /// Omits the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Demo").finish_non_exhaustive()
    }
}

impl Demo {
    /// A demo without edits. `curating` says whether it makes edits by itself.
    pub fn new(licenses: Vec<DemoLicense>, curating: bool) -> Demo {
        Demo { licenses, curating, edits: Mutex::default() }
    }

    /// Adds an edit that is committed.
    pub fn add(&self, edit: DemoEdit) {
        let mut edits = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
        if edits.len() == MAX_EDITS {
            edits.pop_front();
        }
        edits.push_back(edit);
    }

    /// The licenses and the latest edits, oldest first, as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let edits = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::json!({ "licenses": self.licenses, "curating": self.curating, "edits": *edits })
            .to_string()
            .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_edits_are_told_and_keys_are_not_logged() {
        let license = DemoLicense { name: "demo", shows: "everything".to_owned(), key: "mfk_secret".to_owned() };
        let demo = Demo::new(vec![license], true);
        for number in 1..=60 {
            let words = format!("edit {number}");
            demo.add(DemoEdit {
                number,
                at: "2026-03-15T09:30:00Z".to_owned(),
                words,
                dataset: Dataset::Conferences,
                ids: vec![number],
            });
        }
        let json: serde_json::Value = serde_json::from_slice(&demo.to_json()).unwrap();
        let edits = json["edits"].as_array().unwrap();
        assert_eq!((edits.len(), &edits[0]["number"], &edits[49]["ids"][0]), (50, &11.into(), &60.into()));
        assert_eq!((&json["licenses"][0]["key"], &edits[0]["dataset"]), (&"mfk_secret".into(), &"conferences".into()));
        assert!(!format!("{demo:?}").contains("mfk_"));
    }
}
