//! The sample data of a demo, with its database, licenses and keys.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::explorer::demo::DemoLicense;
use crate::import::{self, MergeOptions, ReadOptions, Source, SourceOptions};
use crate::model::{ConferenceFields, Dataset, Id, Scope};
use crate::query::feed::token_now;
use crate::store::write::licensing::KeySettings;
use crate::store::{StoreError, Writer};
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
        conferences: snapshot.dataset_state(Dataset::Conferences).records,
        journals: snapshot.dataset_state(Dataset::Journals).records,
        conference_id,
        token,
    })
}
