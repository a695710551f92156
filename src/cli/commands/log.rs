//! `medfeed log`: the commits, with who changed what. And `medfeed show`: one record, when it changed, and which
//! licenses show it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::change::NamedRecord;
use crate::cli::commands::license::why_hidden;
use crate::cli::common::Common;
use crate::cli::output::{table, unknown_name};
use crate::import::findings::cut;
use crate::model::{
    Curated, Dataset, Id, Joined, Printable, RecordFields, References, Timestamp, first_of,
    json as record_json, match_form, parse_time, with_fields,
};
use crate::store::{ImportCounts, RowCounts, Snapshot, StoreError, StoredCommit};

/// The most records of a commit that the text names.
const MAX_NAMED: usize = 3;

/// Arguments of `medfeed log`.
#[derive(Args)]
pub struct CommitLogArgs {
    /// Show only commits of one record of this dataset, given by ID: its last change, and when it entered or left
    /// licenses
    #[arg(requires = "id")]
    dataset: Option<Dataset>,
    /// The record's id
    id: Option<Id>,
    /// Show only commits that changed this license or its keys
    #[arg(long, value_name = "NAME")]
    license: Option<String>,
    /// The most commits to show, newest first
    #[arg(long, value_name = "N", default_value = "20")]
    limit: usize,
    /// Show only commits from this time on: a date, or a time such as 2026-03-15T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Show only commits before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
}

/// A commit in JSON. That of an import has the counts of `medfeed import --json`.
fn commit_json(commit: &StoredCommit) -> Value {
    let counts = json!(commit.imported);
    json!({
        "seq": commit.last_seq,
        "time": commit.time.to_string(),
        "who": commit.who,
        "what": commit.what,
        "note": commit.note,
        "datasets": counts["datasets"],
        "organizations": counts["organizations"],
        "tags": counts["tags"],
    })
}

/// Whether a description is of a command that changed this license or its keys.
fn is_of_license(what: &str, name: &str) -> bool {
    let of_key = what
        .strip_prefix("key ")
        .and_then(|key| key.split_once("license "));
    what.starts_with(&format!("license set {name}: datasets "))
        || what == format!("license remove {name}")
        || of_key.is_some_and(|(_, of)| of == name)
}

/// The records of a dataset that a commit changed or hid from a license, without those that changed again later.
#[derive(Serialize)]
struct CommitRecords {
    dataset: Dataset,
    changed_count: usize,
    /// All in JSON, the first few as text.
    changed: Vec<NamedRecord>,
    /// Records that left a license by this commit, and do not exist now. A later commit may have removed them.
    removed: BTreeSet<Id>,
}

/// A commit, and its records in each dataset that has some.
type LoggedCommit = (StoredCommit, Vec<CommitRecords>);

pub fn run(common: &Common, args: &CommitLogArgs) -> Result<ExitCode> {
    let reader = common.open_reader()?;
    let snapshot = reader.newest();
    let of_record = match (args.dataset, args.id) {
        (Some(dataset), Some(id)) => Some(seqs_of(snapshot, dataset, id)?),
        _ => None,
    };
    let is_shown = |commit: &StoredCommit| {
        args.since.is_none_or(|since| commit.time >= since)
            && args.until.is_none_or(|until| commit.time < until)
            && args
                .license
                .as_ref()
                .is_none_or(|name| is_of_license(&commit.what, name))
            && of_record.as_ref().is_none_or(|seqs| {
                let mut own = seqs.range(commit.first_seq..=commit.last_seq);
                own.next().is_some()
            })
    };
    let most = if common.json { usize::MAX } else { MAX_NAMED };
    let all = snapshot.list_commits(0, usize::MAX)?.into_iter();
    let mut commits = Vec::new();
    for commit in all.filter(is_shown).take(args.limit) {
        let mut records = Vec::new();
        for dataset in Dataset::ALL {
            let touched = with_fields!(dataset, F => touched::<F>(snapshot, &commit, most)?);
            if touched.changed_count > 0 || !touched.removed.is_empty() {
                records.push(touched);
            }
        }
        commits.push((commit, records));
    }
    let text = match commits.is_empty() {
        true if snapshot.commit().seq == 0 => "There are no commits yet.".to_owned(),
        true => "No commit matches.".to_owned(),
        false => describe(&commits),
    };
    let commits = commits.iter().map(|(commit, records)| {
        let mut json = commit_json(commit);
        json["records"] = json!(records);
        json
    });
    common.result(&json!({ "commits": commits.collect::<Vec<_>>() }), text)
}

/// The seqs of a record: its last change, and its entries in feeds.
fn seqs_of(snapshot: &Snapshot, dataset: Dataset, id: Id) -> Result<BTreeSet<u64>, StoreError> {
    let last_change = with_fields!(dataset, F => snapshot.changed_at_seq::<F>(id)?);
    let entries = snapshot.feed_entries_of(dataset, id)?;
    Ok(entries
        .into_iter()
        .map(|entry| entry.seq)
        .chain(last_change)
        .collect())
}

fn touched<F: RecordFields>(
    snapshot: &Snapshot,
    commit: &StoredCommit,
    most: usize,
) -> Result<CommitRecords, StoreError> {
    let first = commit.first_seq;
    let last = commit.last_seq;
    let ids = snapshot.changed_between(F::DATASET, first, last)?;
    let mut changed = Vec::new();
    for id in ids.iter().take(most) {
        let record = snapshot.find_stored::<F>(*id)?;
        changed.extend(record.as_ref().map(NamedRecord::of));
    }
    Ok(CommitRecords {
        dataset: F::DATASET,
        changed_count: ids.len(),
        changed,
        removed: snapshot.removed_between(F::DATASET, first, last)?,
    })
}

/// The commits as text: one line each, and below it the first records.
fn describe(commits: &[LoggedCommit]) -> String {
    let lines = table(
        ["TIME", "SEQ", "WHO", "WHAT"],
        &commits
            .iter()
            .map(|(commit, _)| {
                let StoredCommit { who, what, .. } = commit;
                let time = commit.time.to_string();
                [time, commit.last_seq.to_string(), who.clone(), what.clone()]
            })
            .collect::<Vec<_>>(),
    );
    let mut lines = lines.lines();
    let mut text = lines.next().unwrap_or_default().to_owned();
    for (line, (commit, records)) in lines.zip(commits) {
        text += &format!("\n{line}");
        if let Some(note) = &commit.note {
            text += &format!("\n    note: {}", Printable(note));
        }
        for (name, counts) in commit.imported.iter().flat_map(ImportCounts::named) {
            if counts.differing() > 0 {
                let RowCounts {
                    added,
                    changed,
                    removed,
                    ..
                } = counts;
                text +=
                    &format!("\n    {name}: {added} added, {changed} changed, {removed} removed");
            }
        }
        for CommitRecords {
            dataset,
            changed_count,
            changed,
            removed,
        } in records
        {
            let names = changed
                .iter()
                .map(|named| format!("{} {}", named.id, Printable(&cut(&named.name, 40))));
            if *changed_count > 0 {
                let names = first_of(names, *changed_count, MAX_NAMED);
                text += &format!("\n    {dataset} last changed: {names}");
            }
            if !removed.is_empty() {
                let ids = first_of(removed, removed.len(), MAX_NAMED);
                text += &format!("\n    {dataset} that left licenses and are removed now: {ids}");
            }
        }
    }
    text
}

/// Shows one record, when it changed, and which licenses show it. Without an id, finds it by its name.
pub fn show(
    common: &Common,
    dataset: Dataset,
    id: Option<Id>,
    name: Option<String>,
) -> Result<ExitCode> {
    let reader = common.open_reader()?;
    let snapshot = reader.newest();
    let name = name.unwrap_or_default();
    with_fields!(dataset, F => match id {
        Some(id) => show_record::<F>(common, snapshot, id),
        None => show_named::<F>(common, snapshot, &name),
    })
}

/// Shows the record with a name or an abbreviation, or lists those that have it.
fn show_named<F: RecordFields>(
    common: &Common,
    snapshot: &Snapshot,
    name: &str,
) -> Result<ExitCode> {
    let wanted = match_form(name);
    let columns = ["name", "abbv"].into_iter();
    let columns: Vec<usize> = columns
        .filter_map(|column| F::table().index_of(column))
        .collect();
    let mut found = Vec::new();
    let mut names = Vec::new();
    snapshot.for_each_record::<F, StoreError>(|record, _, _| {
        let values = record.fields().values();
        let mut texts = columns.iter().flat_map(|at| values[*at].texts());
        if texts.any(|text| match_form(text) == wanted) {
            found.push(NamedRecord::of(&record));
        }
        names.push(record.fields().name().to_owned());
        Ok(())
    })?;
    match &*found {
        [] => {
            let problem = format!("no record of {} is named `{name}`", F::DATASET);
            let names = names.iter().map(String::as_str);
            let remedy = "check its spelling, or give its id";
            Err(unknown_name(problem, name, names, remedy))
        }
        [one] => show_record::<F>(common, snapshot, one.id),
        several => {
            let lines = several
                .iter()
                .map(|record| format!("{} {}: {}", F::DATASET, record.id, Printable(&record.name)));
            let text = lines.joined("\n");
            common.result(&json!({ "dataset": F::DATASET, "records": several }), text)
        }
    }
}

fn show_record<F: RecordFields>(common: &Common, snapshot: &Snapshot, id: Id) -> Result<ExitCode> {
    let (Some((record, updated_at)), Some(seq)) = (
        snapshot.find_record::<F>(id)?,
        snapshot.changed_at_seq::<F>(id)?,
    ) else {
        return missing(snapshot, F::DATASET, id);
    };
    let references = snapshot.references()?;
    let licenses = snapshot.list_licenses();
    // Each license, and why it does not show the record.
    let licenses = licenses.iter().map(|license| {
        (
            &license.name,
            why_hidden(&license.scope, Some(record.fields())),
        )
    });
    let licenses: Vec<(&String, Vec<String>)> = licenses.collect();
    let last_change = snapshot.stored_commit_of(seq)?;
    let text = describe_fields(&record, references) + &describe_views(seq, &last_change, &licenses);
    let in_api = record_json::render_record(&record, updated_at, &**references);
    let licenses = licenses.iter().map(
        |(name, reasons)| json!({ "license": name, "visible": reasons.is_empty(), "reasons": reasons }),
    );
    let json = json!({
        "dataset": F::DATASET,
        "record": serde_json::from_slice::<Value>(&in_api)?,
        "last_change": commit_json(&last_change),
        "licenses": licenses.collect::<Vec<_>>(),
    });
    common.result(&json, text)
}

/// A record as text: a line for each field.
fn describe_fields<F: RecordFields>(record: &Curated<F>, references: &References) -> String {
    // Writing to a string cannot fail.
    let mut text = format!("{} {}\n", F::DATASET, record.id());
    let fields = &F::table().fields;
    let width = fields
        .iter()
        .map(|field| field.name.len())
        .max()
        .unwrap_or_default();
    for (field, value) in fields.iter().zip(record.fields().values()) {
        let value = match &*value.to_csv(references) {
            "" => "-".to_owned(),
            cell => Printable(cell).to_string(),
        };
        let _ = writeln!(text, "  {:<width$}  {value}", field.name);
    }
    text
}

/// The last change of a record, and the licenses, each with why it does not show the record.
fn describe_views(
    seq: u64,
    last_change: &StoredCommit,
    licenses: &[(&String, Vec<String>)],
) -> String {
    let StoredCommit {
        time, who, what, ..
    } = last_change;
    let mut text = format!(
        "last changed {time}, seq {seq}, by {}: {}\n",
        Printable(who),
        Printable(what)
    );
    if licenses.is_empty() {
        let _ = writeln!(text, "there are no licenses yet, so nobody can see it");
    }
    for (license, reasons) in licenses {
        let license = Printable(license);
        let _ = match reasons.is_empty() {
            true => writeln!(text, "license `{license}` shows it"),
            false => writeln!(text, "license `{license}` does not show it:"),
        };
        for reason in reasons {
            let _ = writeln!(text, "  {}", Printable(reason));
        }
    }
    text
}

/// The error for a record that does not exist: when it was removed, if a feed knows it.
fn missing(snapshot: &Snapshot, dataset: Dataset, id: Id) -> Result<ExitCode> {
    let entries = snapshot.feed_entries_of(dataset, id)?;
    match entries.iter().rev().find(|entry| !entry.is_live()) {
        None => bail!(
            "there is no record {id} of {dataset}, and none of the present licenses has shown one"
        ),
        Some(entry) => {
            let StoredCommit {
                time, who, what, ..
            } = snapshot.stored_commit_of(entry.seq)?;
            bail!(
                "record {id} of {dataset} was removed; it left the last license that showed it at {time}, seq {}, by {who}: {what}",
                entry.seq
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_names_its_first_records() {
        let id = |number| Id::try_from(number).unwrap();
        let logged = |changed: u64, removed: u64| {
            let named = |number| NamedRecord {
                id: id(number),
                name: format!("N{number}"),
            };
            let records = CommitRecords {
                dataset: Dataset::Journals,
                changed_count: usize::try_from(changed).unwrap(),
                changed: (1..=changed.min(3)).map(named).collect(),
                removed: (1..=removed).map(id).collect(),
            };
            let commit = StoredCommit {
                first_seq: 1234,
                last_seq: 1234,
                time: parse_time("2026-11-22T12:00:00Z").unwrap(),
                who: "é".to_owned(),
                what: "a\nb".to_owned(),
                ..StoredCommit::default()
            };
            describe(&[(commit, vec![records])])
        };
        let head = "TIME                  SEQ   WHO  WHAT\n2026-11-22T12:00:00Z  1234  é    a\\nb";
        let cases = cases![
            0, 0, "";
            1, 0, "\n    journals last changed: 1 N1";
            3, 0, "\n    journals last changed: 1 N1, 2 N2, 3 N3";
            4, 0, "\n    journals last changed: 1 N1, 2 N2, 3 N3 and 1 more";
            1003, 0, "\n    journals last changed: 1 N1, 2 N2, 3 N3 and 1,000 more";
            0, 3, "\n    journals that left licenses and are removed now: 1, 2, 3";
            0, 4, "\n    journals that left licenses and are removed now: 1, 2, 3 and 1 more";
            1, 1, "\n    journals last changed: 1 N1\n    journals that left licenses and are removed now: 1";
        ];
        for (changed, removed, expected) in cases {
            assert_eq!(logged(changed, removed), format!("{head}{expected}"));
        }
    }

    #[test]
    fn commits_of_a_license_are_recognized() {
        // (the description, the license that it is of)
        let cases = outcomes![
            "license set acme: datasets conferences"
            "license set acme: datasets journals; years 2026" "license remove acme"
            "key create key_1 --license acme" "key revoke key_1 of license acme" => Some("acme");
            "license set acme: eu: datasets journals"
            "key replace key_1 by key_2 of license acme: eu" => Some("acme: eu");
            "license set acme eu: datasets journals" "license remove acme eu"
            "key create key_1 --license acme eu" => Some("acme eu");
            "key create key_1 --license of license acme" => Some("of license acme");
            "import license set acme: datasets journals.csv" "import acme"
            "restored from a backup of acme" "" => None;
        ];
        for (what, expected) in cases {
            for name in words!["acme" "acme eu" "acme: eu" "of license acme" "acm" "eu" "Acme" ""] {
                let is_expected = expected == Some(name);
                assert_eq!(is_of_license(what, name), is_expected, "{what}: {name}");
            }
        }
    }
}
