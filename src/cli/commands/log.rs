//! `medfeed log`: the commits, with who changed what.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::cli::shared::arguments::parse_dataset;
use crate::cli::shared::change::{NamedRecord, cut};
use crate::cli::shared::common::Common;
use crate::import::findings::grouped;
use crate::model::printable::Printable;
use crate::model::time::parse_time;
use crate::model::{ConferenceFields, Dataset, Id, JournalFields, RecordFields, Timestamp};
use crate::store::{Snapshot, StoreError, StoredCommit};

/// The most records of a commit that the text names.
const MAX_NAMED: usize = 3;

/// Arguments of `medfeed log`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CommitLogArgs {
    /// Show only commits of one record of this dataset, given by ID: its last change, and when it entered or left
    /// licenses
    #[arg(requires = "id", value_parser = parse_dataset)]
    dataset: Option<Dataset>,
    /// The record's id
    id: Option<Id>,
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

/// A commit in JSON.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct CommitJson {
    pub seq: u64,
    pub time: String,
    pub who: String,
    pub what: String,
}

impl From<StoredCommit> for CommitJson {
    fn from(commit: StoredCommit) -> CommitJson {
        CommitJson { seq: commit.last_seq, time: commit.time.to_string(), who: commit.who, what: commit.what }
    }
}

/// The records of a dataset that a commit changed or hid from a license, without those that changed again later.
#[derive(Debug, Serialize)]
struct CommitRecords {
    dataset: Dataset,
    changed_count: usize,
    /// All in JSON, the first few as text.
    changed: Vec<NamedRecord>,
    /// Records that left a license by this commit, and do not exist now. A later commit may have removed them.
    removed: BTreeSet<Id>,
}

#[derive(Debug, Serialize)]
struct LoggedCommit {
    #[serde(flatten)]
    commit: CommitJson,
    /// Datasets without such records are left out.
    records: Vec<CommitRecords>,
}

pub(in crate::cli) fn run(common: &Common, args: &CommitLogArgs) -> anyhow::Result<ExitCode> {
    let reader = common.open_reader()?;
    let snapshot = reader.newest();
    let of_record = match (args.dataset, args.id) {
        (Some(dataset), Some(id)) => Some(seqs_of(snapshot, dataset, id)?),
        _ => None,
    };
    let is_selected = |commit: &StoredCommit| {
        args.since.is_none_or(|since| commit.time >= since)
            && args.until.is_none_or(|until| commit.time < until)
            && of_record.as_ref().is_none_or(|seqs| seqs.range(commit.first_seq..=commit.last_seq).next().is_some())
    };
    let most = if common.json { usize::MAX } else { MAX_NAMED };
    let mut commits = Vec::new();
    for commit in snapshot.list_commits(0, usize::MAX)?.into_iter().filter(is_selected).take(args.limit) {
        let mut records = Vec::new();
        for dataset in Dataset::ALL {
            let touched = match dataset {
                Dataset::Conferences => touched::<ConferenceFields>(snapshot, &commit, most)?,
                Dataset::Journals => touched::<JournalFields>(snapshot, &commit, most)?,
            };
            records.extend(Some(touched).filter(|touched| !(touched.changed.is_empty() && touched.removed.is_empty())));
        }
        commits.push(LoggedCommit { commit: commit.into(), records });
    }
    let text = match commits.is_empty() {
        true if snapshot.commit().seq == 0 => "There are no commits yet.".to_owned(),
        true => "There is no such commit.".to_owned(),
        false => table(&commits),
    };
    common.output().result(&json!({ "commits": commits }), text)
}

/// The seqs of a record: its last change, and its entries in feeds.
fn seqs_of(snapshot: &Snapshot, dataset: Dataset, id: Id) -> Result<BTreeSet<u64>, StoreError> {
    let last_change = match dataset {
        Dataset::Conferences => snapshot.changed_at_seq::<ConferenceFields>(id)?,
        Dataset::Journals => snapshot.changed_at_seq::<JournalFields>(id)?,
    };
    let entries = snapshot.feed_entries_of(dataset, id)?;
    Ok(entries.into_iter().map(|entry| entry.seq).chain(last_change).collect())
}

fn touched<F: RecordFields>(
    snapshot: &Snapshot,
    commit: &StoredCommit,
    most: usize,
) -> Result<CommitRecords, StoreError> {
    let (first, last) = (commit.first_seq, commit.last_seq);
    let ids = snapshot.changed_between(F::DATASET, first, last)?;
    let mut changed = Vec::new();
    for id in ids.iter().take(most) {
        let name = snapshot.find_record::<F>(*id)?.map(|(record, _)| record.fields().name().to_owned());
        changed.push(NamedRecord { id: *id, name: name.unwrap_or_default() });
    }
    let removed = snapshot.removed_between(F::DATASET, first, last)?;
    Ok(CommitRecords { dataset: F::DATASET, changed_count: ids.len(), changed, removed })
}

/// The commits as text: one line each, and below it the first records.
fn table(commits: &[LoggedCommit]) -> String {
    let commits: Vec<(String, String, &LoggedCommit)> = commits
        .iter()
        .map(|logged| (logged.commit.seq.to_string(), Printable(&logged.commit.who).to_string(), logged))
        .collect();
    let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or_default();
    let seq_width = width(&mut commits.iter().map(|(seq, ..)| seq.len())).max(3);
    let who_width = width(&mut commits.iter().map(|(_, who, _)| who.chars().count())).max(3);
    // Writing to a string cannot fail.
    let mut text = format!("{:<20}  {:>seq_width$}  {:<who_width$}  WHAT\n", "TIME", "SEQ", "WHO");
    for (seq, who, LoggedCommit { commit, records }) in commits {
        let CommitJson { time, what, .. } = commit;
        let _ = writeln!(text, "{time:<20}  {seq:>seq_width$}  {who:<who_width$}  {}", Printable(what));
        for CommitRecords { dataset, changed_count, changed, removed } in records {
            let names = changed.iter().map(|named| format!("{} {}", named.id, Printable(&cut(&named.name, 40))));
            push_some(&mut text, &format!("{dataset} last changed"), names, *changed_count);
            let what = format!("{dataset} that left licenses and are removed now");
            push_some(&mut text, &what, removed.iter().map(Id::to_string), removed.len());
        }
    }
    text
}

/// A line with the first items of a list, unless it is empty.
fn push_some(text: &mut String, what: &str, items: impl Iterator<Item = String>, count: usize) {
    if count == 0 {
        return;
    }
    let first = items.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    let more = match count.saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {} more", grouped(more)),
    };
    let _ = writeln!(text, "    {what}: {first}{more}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_names_its_first_records() {
        let id = |number| Id::try_from(number).unwrap();
        let logged = |changed: u64, removed: u64| {
            let named = |number| NamedRecord { id: id(number), name: format!("N{number}") };
            let records = CommitRecords {
                dataset: Dataset::Journals,
                changed_count: usize::try_from(changed).unwrap(),
                changed: (1..=changed.min(3)).map(named).collect(),
                removed: (1..=removed).map(id).collect(),
            };
            let commit = CommitJson {
                seq: 1234,
                time: "2026-11-22T12:00:00Z".to_owned(),
                who: "é".to_owned(),
                what: "a\nb".to_owned(),
            };
            table(&[LoggedCommit { commit, records: vec![records] }])
        };
        let head = "TIME                   SEQ  WHO  WHAT\n2026-11-22T12:00:00Z  1234  é    a\\nb\n";
        let cases = [
            (0, 0, ""),
            (1, 0, "    journals last changed: 1 N1\n"),
            (3, 0, "    journals last changed: 1 N1, 2 N2, 3 N3\n"),
            (4, 0, "    journals last changed: 1 N1, 2 N2, 3 N3 and 1 more\n"),
            (1003, 0, "    journals last changed: 1 N1, 2 N2, 3 N3 and 1,000 more\n"),
            (0, 3, "    journals that left licenses and are removed now: 1, 2, 3\n"),
            (0, 4, "    journals that left licenses and are removed now: 1, 2, 3 and 1 more\n"),
            (1, 1, "    journals last changed: 1 N1\n    journals that left licenses and are removed now: 1\n"),
        ];
        for (changed, removed, expected) in cases {
            assert_eq!(logged(changed, removed), format!("{head}{expected}"));
        }
    }
}
