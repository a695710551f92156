//! What the page is told in a demo: throwaway keys, and the curator's edits in words. Records it gets from `/v1`, with these
//! keys, like everybody.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::model::Dataset;

/// The most edits that are told: a page that was away longer goes on with the newest.
const MAX_TOLD: usize = 50;

/// A demo's licenses, and what happened in it of late.
pub struct Demo {
    licenses: Vec<DemoLicense>,
    curating: bool,
    told: Mutex<VecDeque<DemoEdit>>,
}

/// A license of a demo.
#[derive(Clone, Serialize)]
pub struct DemoLicense {
    /// Its name.
    pub name: &'static str,
    /// What it shows, in words.
    pub shows: String,
    /// A key of it.
    pub key: String,
}

/// A curator's edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DemoEdit {
    /// Counts edits from 1.
    pub number: u64,
    /// When it was committed, as the API writes times.
    pub at: String,
    /// What it did.
    pub words: String,
    /// The dataset of the records that it touched.
    pub dataset: Dataset,
    /// The ids of the records that it touched.
    pub ids: Vec<u64>,
}

impl std::fmt::Debug for Demo {
    /// Without the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Demo").finish_non_exhaustive()
    }
}

impl Demo {
    /// A demo of these licenses, in which nothing has happened yet. `curating` says whether anything will by itself.
    pub fn new(licenses: Vec<DemoLicense>, curating: bool) -> Demo {
        Demo { licenses, curating, told: Mutex::default() }
    }

    /// Tells of an edit that readers can see already.
    pub fn tell(&self, edit: DemoEdit) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() == MAX_TOLD {
            told.pop_front();
        }
        told.push_back(edit);
    }

    /// The licenses and the latest edits, oldest first, as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::json!({ "licenses": self.licenses, "curating": self.curating, "edits": *told })
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
            demo.tell(DemoEdit {
                number,
                at: "2026-03-15T09:30:00Z".to_owned(),
                words,
                dataset: Dataset::Conferences,
                ids: vec![number],
            });
        }
        let told: serde_json::Value = serde_json::from_slice(&demo.to_json()).unwrap();
        let edits = told["edits"].as_array().unwrap();
        assert_eq!((edits.len(), &edits[0]["number"], &edits[49]["ids"][0]), (50, &11.into(), &60.into()));
        assert_eq!((&told["licenses"][0]["key"], &edits[0]["dataset"]), (&"mfk_secret".into(), &"conferences".into()));
        assert!(!format!("{demo:?}").contains("mfk_"));
    }
}
