//! `medfeed show`: one record, when it changed, and which licenses show it.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;

use crate::cli::commands::license::why_hidden;
use crate::cli::commands::log::CommitJson;
use crate::cli::shared::change::{text_of, value_of};
use crate::cli::shared::common::Common;
use crate::model::printable::Printable;
use crate::model::{ConferenceFields, Dataset, Id, JournalFields, RecordFields, json};
use crate::store::Snapshot;

pub(in crate::cli) fn run(common: &Common, dataset: Dataset, id: Id) -> anyhow::Result<ExitCode> {
    let reader = common.open_reader()?;
    match dataset {
        Dataset::Conferences => show::<ConferenceFields>(common, reader.newest(), id),
        Dataset::Journals => show::<JournalFields>(common, reader.newest(), id),
    }
}

#[derive(Serialize)]
struct Shown {
    dataset: Dataset,
    /// In the form of the API.
    record: Value,
    /// The commit of its last change.
    last_change: CommitJson,
    licenses: Vec<LicenseVisibility>,
}

/// Whether a license shows the record, and why not.
#[derive(Serialize)]
struct LicenseVisibility {
    license: String,
    visible: bool,
    reasons: Vec<String>,
}

fn show<F: RecordFields>(common: &Common, snapshot: &Snapshot, id: Id) -> anyhow::Result<ExitCode> {
    let (Some((record, updated_at)), Some(seq)) = (snapshot.find_record::<F>(id)?, snapshot.changed_at_seq::<F>(id)?)
    else {
        return missing(snapshot, F::DATASET, id);
    };
    let references = snapshot.references()?;
    let licenses: Vec<LicenseVisibility> = snapshot
        .list_licenses()
        .into_iter()
        .map(|license| {
            let reasons = why_hidden(&license.scope, record.fields());
            LicenseVisibility { license: license.name.clone(), visible: reasons.is_empty(), reasons }
        })
        .collect();
    let last_change = CommitJson::from(snapshot.stored_commit_of(seq)?);

    // Writing to a string cannot fail.
    let mut text = format!("{} {id}\n", F::DATASET);
    let fields = &F::table().fields;
    let width = fields.iter().map(|field| field.name.len()).max().unwrap_or_default();
    for (field, value) in fields.iter().zip(record.fields().values()) {
        let value = text_of(&value_of(value, &**references));
        let _ = writeln!(text, "  {:<width$}  {}", field.name, Printable(value.as_deref().unwrap_or("-")));
    }
    let CommitJson { time, who, what, .. } = &last_change;
    let _ = writeln!(text, "last changed {time}, seq {seq}, by {}: {}", Printable(who), Printable(what));
    if licenses.is_empty() {
        let _ = writeln!(text, "there are no licenses yet, so nobody can see it");
    }
    for LicenseVisibility { license, visible, reasons } in &licenses {
        let license = Printable(license);
        let _ = match visible {
            true => writeln!(text, "license `{license}` shows it"),
            false => writeln!(text, "license `{license}` does not show it:"),
        };
        for reason in reasons {
            let _ = writeln!(text, "  {}", Printable(reason));
        }
    }
    let record = serde_json::from_slice(&json::render_record(&record, updated_at, &**references))?;
    common.output().result(&Shown { dataset: F::DATASET, record, last_change, licenses }, text)
}

/// The error for a record that does not exist: when it was removed, if a feed knows it.
fn missing(snapshot: &Snapshot, dataset: Dataset, id: Id) -> anyhow::Result<ExitCode> {
    let entries = snapshot.feed_entries_of(dataset, id)?;
    match entries.iter().rev().find(|entry| !entry.is_live()) {
        None => bail!("there is no record {id} of {dataset}, and none of the present licenses has shown one"),
        Some(entry) => {
            let CommitJson { time, who, what, .. } = snapshot.stored_commit_of(entry.seq)?.into();
            bail!(
                "record {id} of {dataset} was removed; it left the last license that showed it at {time}, seq {}, by {who}: {what}",
                entry.seq
            )
        }
    }
}
