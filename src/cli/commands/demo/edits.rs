//! The sample data of a demo, and its curator: a small edit every few seconds, through the same code as `medfeed import`.
//!
//! The edits cycle through the sample's conferences and undo each other, so a demo can run for days: records that left
//! the narrow license enter it again, removed records are added again, names change back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::civil::Date;
use serde_json::{Value, json};

use crate::api::SnapshotSource;
use crate::cli::shared::output::print_line;
use crate::explorer::Demo;
use crate::explorer::demo::{DemoEdit, DemoLicense};
use crate::import::{self, MergeOptions, ReadOptions, Source, SourceOptions};
use crate::model::{Conference, ConferenceFields, Dataset, DateStatus, Id, ReferenceKind, Scope};
use crate::query::feed::token_now;
use crate::serve::Watcher;
use crate::serve::watching::background::BackgroundTask;
use crate::store::write::licensing::KeySettings;
use crate::store::{Snapshot, StoreError, Writer};
use crate::token::Sealer;
use crate::view::View;

/// The sample data of the folder `data`, embedded in the program.
pub(super) const SAMPLE: [(&str, &[u8]); 4] = [
    ("organizations.csv", include_bytes!("../../../../data/organizations.csv")),
    ("tags.csv", include_bytes!("../../../../data/tags.csv")),
    ("journals.csv", include_bytes!("../../../../data/journals.csv")),
    ("conferences.jsonl", include_bytes!("../../../../data/conferences.jsonl")),
];

/// The therapy area of the second, narrower license.
pub(super) const NARROW_AREA: &str = "Oncology";

const FULL_LICENSE: &str = "demo";
const NARROW_LICENSE: &str = "demo-oncology";

/// The values in the printed commands.
pub(super) struct DemoData {
    pub full_key: String,
    pub narrow_key: String,
    pub conferences: u64,
    pub journals: u64,
    /// The conference in the printed commands.
    pub conference_id: Id,
    /// A sync token of the conferences, for the full license.
    pub token: String,
}

impl DemoData {
    /// The licenses for the explorer.
    pub fn licenses(&self) -> Vec<DemoLicense> {
        let narrow = format!("the conferences in {NARROW_AREA}, and no journal");
        [(FULL_LICENSE, "everything".to_owned(), &self.full_key), (NARROW_LICENSE, narrow, &self.narrow_key)]
            .map(|(name, shows, key)| DemoLicense { name, shows, key: key.clone() })
            .into()
    }
}

/// Creates the database, with its licenses and keys.
pub(super) fn load(folder: &Path, database: &Path, wait: Duration) -> anyhow::Result<DemoData> {
    let files = folder.join("data");
    std::fs::create_dir(&files)?;
    for (name, content) in SAMPLE {
        std::fs::write(files.join(name), content)?;
    }
    let sources = Source::find(&[files], SourceOptions::default())?;
    let rows = import::read_sources(&sources, &ReadOptions::default())?;
    let writer = Writer::open_or_create(database, wait)?;
    let mut edit = writer.begin()?;
    let merged = import::merge(rows, &edit.base()?, &MergeOptions::default())?;
    edit.apply(&merged.batch)?;
    edit.describe("the sample data");
    edit.commit()?;

    let mut edit = writer.begin()?;
    let datasets = || Dataset::ALL.into_iter().collect();
    let full = Scope { datasets: datasets(), therapy_areas: None, countries: None, years: None };
    let narrow = Scope {
        datasets: [Dataset::Conferences].into(),
        therapy_areas: Some([NARROW_AREA.to_owned()].into()),
        countries: None,
        years: None,
    };
    edit.set_license(FULL_LICENSE, full, None)?;
    edit.set_license(NARROW_LICENSE, narrow, None)?;
    let (full_key, _) = edit.create_key(FULL_LICENSE, KeySettings::default())?;
    let (narrow_key, _) = edit.create_key(NARROW_LICENSE, KeySettings::default())?;
    edit.describe("the licenses and keys of the demo");
    edit.commit()?;

    let snapshot = writer.snapshot()?;
    let mut conference_id = Id::MIN;
    snapshot.for_each_record::<ConferenceFields, StoreError>(|record, _, _| {
        if record.fields().abbv.as_deref() == Some("ASCO") {
            conference_id = record.id();
        }
        Ok(())
    })?;
    let license = snapshot.find_license_named(FULL_LICENSE).context("the demo's license does not exist")?;
    let Ok(view) = View::open(&snapshot, license, Dataset::Conferences) else {
        bail!("the demo's license shows nothing")
    };
    let token = Sealer::new(snapshot.secret()).seal_sync_token(&token_now(&view)?);
    Ok(DemoData {
        full_key: full_key.reveal().to_owned(),
        narrow_key: narrow_key.reveal().to_owned(),
        conferences: snapshot.totals().records[Dataset::Conferences],
        journals: snapshot.totals().records[Dataset::Journals],
        conference_id,
        token,
    })
}

/// The time between two edits, long enough to read the last one.
const EDIT_EVERY: Duration = Duration::from_secs(4);

const EDITS_PER_ROUND: usize = 8;

/// Tags of a few conferences, some of them in the narrow license: id, type, and two alternating names.
const TAGS: [(u64, &str, [&str; 2]); 2] = [
    (23, "Attendee geography", ["Japan", "Japan and Korea"]),
    (21, "Attendee geography", ["Asia-Pacific", "Asia and Oceania"]),
];

/// Makes the edits.
pub(super) struct Curator {
    database: PathBuf,
    /// The folder of the files to import.
    folder: PathBuf,
    wait: Duration,
    /// The original conferences, split into those of the narrow license and the others.
    narrow: Vec<(Id, Value)>,
    others: Vec<(Id, Value)>,
    /// The links of the conference that was removed last.
    removed: Option<(Id, [Vec<Id>; 2])>,
    turn: usize,
}

/// An edit that fits the current data.
struct PlannedEdit {
    words: String,
    /// The file to import, and its row.
    file: &'static str,
    row: Value,
    ids: Vec<u64>,
}

impl Curator {
    /// Creates a curator that never edits the conference `spared`, because the printed commands use it.
    pub fn new(database: &Path, folder: PathBuf, wait: Duration, spared: Id) -> anyhow::Result<Curator> {
        fs::create_dir(&folder)?;
        let lines = SAMPLE.iter().find(|(name, _)| *name == "conferences.jsonl").map_or(&b""[..], |(_, lines)| lines);
        let (mut narrow, mut others) = (Vec::new(), Vec::new());
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let row: Value = serde_json::from_slice(line)?;
            let id: Id = serde_json::from_value(row["id"].clone())?;
            // Edits confirm start dates, and messages need a short name.
            if id == spared || row["start_date"].is_null() || row["abbv"].is_null() {
                continue;
            }
            let is_narrow = row["therapy_areas"].as_array().is_some_and(|areas| areas.contains(&json!(NARROW_AREA)));
            if is_narrow { &mut narrow } else { &mut others }.push((id, row));
        }
        Ok(Curator { database: database.to_owned(), folder, wait, narrow, others, removed: None, turn: 0 })
    }

    /// Edits every few seconds, and announces each edit, until the returned handle is dropped.
    pub fn start(mut self, demo: Arc<Demo>, watcher: Arc<Watcher>) -> std::io::Result<BackgroundTask> {
        BackgroundTask::spawn("curator", move |stopped| {
            let mut number = 0;
            while stopped.recv_timeout(EDIT_EVERY) == Err(RecvTimeoutError::Timeout) {
                match self.edit() {
                    Ok(None) => {}
                    Ok(Some((edit, seq))) => {
                        number += 1;
                        // An announced edit is in the feed already.
                        watcher.catch_up(watcher.polls(), &|snapshot| snapshot.commit().seq >= seq);
                        print_line(&format!("{}  {}", edit.at, edit.words));
                        demo.add_edit(DemoEdit { number, ..edit });
                    }
                    Err(error) => tracing::warn!("the demo skipped an edit: {error:#}"),
                }
            }
        })
    }

    /// Makes the next edit and returns it with the seq of its commit; `None` if another command changed the data.
    fn edit(&mut self) -> anyhow::Result<Option<(DemoEdit, u64)>> {
        let turn = self.turn;
        self.turn += 1;
        // The lock is held for this edit only, so that the printed import does not wait.
        let writer = Writer::open(&self.database, self.wait)?;
        let mut edit = writer.begin()?;
        let state = edit.base()?;
        let Some(PlannedEdit { words, file, row, ids }) = self.plan(turn, &state)? else { return Ok(None) };
        let path = self.folder.join(file);
        fs::write(&path, format!("{row}\n"))?;
        let rows = import::read_sources(&Source::find(&[path], SourceOptions::default())?, &ReadOptions::default())?;
        let merged = import::merge(rows, &state, &MergeOptions::default())?;
        edit.apply(&merged.batch)?;
        if edit.is_empty() {
            return Ok(None);
        }
        edit.describe(words.clone());
        edit.commit()?;
        let commit = writer.snapshot()?.commit();
        let at = commit.time.to_string();
        Ok(Some((DemoEdit { number: 0, at, words, dataset: Dataset::Conferences, ids }, commit.seq)))
    }

    /// Plans the edit of a turn. The first edits of a round show the most.
    fn plan(&mut self, turn: usize, state: &Snapshot) -> anyhow::Result<Option<PlannedEdit>> {
        let (round, step) = (turn / EDITS_PER_ROUND, turn % EDITS_PER_ROUND);
        // Adjacent conferences in the sample are editions of the same meeting, so the offsets differ.
        let pick = |from: &[(Id, Value)], offset: usize| from[(round * 5 + offset) % from.len()].clone();
        let (id, sample) = match step {
            0 => pick(&self.narrow, 2),
            1 | 3 => pick(&self.narrow, 9),
            2 => pick(&self.others, 7),
            4 => return rename_tag(round, state),
            5 | 7 => pick(&self.narrow, 20),
            _ => pick(&self.others, 31),
        };
        let stored = state.find_stored::<ConferenceFields>(id)?;
        if step == 7 {
            let links = self.removed.take().filter(|(removed, _)| *removed == id && stored.is_none());
            return Ok(links.map(|(_, links)| add_again(id, sample, links)));
        }
        let Some(stored) = stored else { return Ok(None) };
        Ok(match step {
            0 | 6 => Some(confirm(&stored)),
            1 => leave_area(&stored),
            2 => Some(move_venue(&stored, round)),
            3 => enter_area(&stored, &sample),
            _ => {
                let fields = stored.fields();
                self.removed = Some((id, [fields.organizations.to_vec(), fields.tags.to_vec()]));
                Some(planned(&stored, format!("{} was removed.", label(&stored)), json!({"id": id, "deleted": true})))
            }
        })
    }
}

/// The short name and year of a conference.
fn label(conference: &Conference) -> String {
    let fields = conference.fields();
    let name = fields.abbv.as_ref().or(fields.name.as_ref()).map_or("A conference", String::as_str);
    fields.year.map_or(name.to_owned(), |year| format!("{name} {year}"))
}

fn planned(conference: &Conference, words: String, row: Value) -> PlannedEdit {
    PlannedEdit { words, file: "conferences.jsonl", row, ids: vec![conference.id().get()] }
}

/// Confirms the start date, or puts it under review again.
fn confirm(conference: &Conference) -> PlannedEdit {
    let fields = conference.fields();
    let day = fields.start_date.map(|day: Date| day.strftime("%-d %B %Y").to_string()).unwrap_or_default();
    let (status, words) = if fields.start_date_status == Some(DateStatus::Confirmed) {
        (DateStatus::Check, format!("The start of {}, {day}, is under review again.", label(conference)))
    } else {
        (DateStatus::Confirmed, format!("The start of {}, {day}, was confirmed.", label(conference)))
    };
    planned(conference, words, json!({"id": conference.id(), "start_date_status": status}))
}

/// Moves the conference to another hall.
fn move_venue(conference: &Conference, round: usize) -> PlannedEdit {
    let halls = [round, round + 1].map(|number| format!("Hall {}", number % 9 + 1));
    let [hall, other] = &halls;
    let hall = if conference.fields().venue.as_ref() == Some(hall) { other } else { hall };
    planned(
        conference,
        format!("{} moved to {hall}.", label(conference)),
        json!({"id": conference.id(), "venue": hall}),
    )
}

/// Removes the narrow license's area from a conference.
fn leave_area(conference: &Conference) -> Option<PlannedEdit> {
    let areas = &conference.fields().therapy_areas;
    let mut rest: Vec<&str> = areas.iter().map(String::as_str).filter(|area| *area != NARROW_AREA).collect();
    if rest.len() == areas.len() {
        return None;
    }
    if rest.is_empty() {
        rest.push("Hematology");
    }
    let words = format!("{} moved from {NARROW_AREA} to {}.", label(conference), rest.join(" and "));
    Some(planned(conference, words, json!({"id": conference.id(), "therapy_areas": rest})))
}

/// Restores the narrow license's area of a conference.
fn enter_area(conference: &Conference, sample: &Value) -> Option<PlannedEdit> {
    if conference.fields().therapy_areas.iter().any(|area| area == NARROW_AREA) {
        return None;
    }
    let words = format!("{} was filed under {NARROW_AREA} again.", label(conference));
    Some(planned(conference, words, json!({"id": conference.id(), "therapy_areas": sample["therapy_areas"]})))
}

/// Adds a removed conference again, with the sample's fields and its former links.
fn add_again(id: Id, mut sample: Value, [organizations, tags]: [Vec<Id>; 2]) -> PlannedEdit {
    let name = sample["abbv"].as_str().unwrap_or_default();
    let words = format!("{name} {} was added again.", sample["year"]);
    sample["organizations"] = json!(organizations);
    sample["tags"] = json!(tags);
    PlannedEdit { words, file: "conferences.jsonl", row: sample, ids: vec![id.get()] }
}

/// Switches a tag to its other name, which changes all records with this tag.
fn rename_tag(round: usize, state: &Snapshot) -> anyhow::Result<Option<PlannedEdit>> {
    let (id, kind, [first, second]) = TAGS[round % TAGS.len()];
    let id = Id::try_from(id).map_err(anyhow::Error::msg)?;
    let tag = state.references()?.tags.get(&id);
    let Some(name) = tag.and_then(|tag| tag.row.fields().name.as_deref()) else { return Ok(None) };
    let other = if name == first { second } else { first };
    let linked = state.linked_records(ReferenceKind::Tag, id)?;
    let ids = linked.iter().filter(|(dataset, _)| *dataset == Dataset::Conferences).map(|(_, id)| id.get()).collect();
    let words = format!("The tag {kind}: {name} was renamed to {other}.");
    Ok(Some(PlannedEdit { words, file: "tags.jsonl", row: json!({"id": id, "name": other}), ids }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_do_not_run_out() {
        const ROUNDS: usize = 14;
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("demo.redb");
        let wait = Duration::from_secs(30);
        let sample = load(folder.path(), &database, wait).unwrap();
        let mut curator = Curator::new(&database, folder.path().join("edit"), wait, sample.conference_id).unwrap();
        for turn in 0..ROUNDS * EDITS_PER_ROUND {
            let (edit, _) = curator.edit().unwrap().unwrap_or_else(|| panic!("turn {turn} edits nothing"));
            assert!(!edit.ids.is_empty() && !edit.ids.contains(&sample.conference_id.get()), "turn {turn}: {edit:?}");
        }
        let left = Writer::open(&database, wait).unwrap().snapshot().unwrap();
        assert_eq!(left.totals().records[Dataset::Conferences], sample.conferences, "what was removed came back");
    }
}
