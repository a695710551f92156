//! `medfeed check`.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use crate::bucket::BucketUrl;
use crate::cli::common::{Common, open_log};
use crate::cli::output::counted;
use crate::model::Printable;
use crate::replicate::replica::audit::audit;
use crate::store::check::{CheckReport, check, check_unwritable};
use crate::store::{StoreError, Writer, panics};

/// Arguments of `medfeed check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Check the bucket of `medfeed publish`, instead of --db: the chain of entries, every hash, and whether the oldest
    /// state plus all entries gives each later state and a sound database
    #[arg(long, value_name = "URL")]
    from: Option<BucketUrl>,
    /// The file with the seal key, which encrypts the bucket
    #[arg(long, env = "MEDFEED_SEAL_KEY", value_name = "FILE")]
    seal_key: Option<PathBuf>,
}

pub fn run(common: &Common, args: &CheckArgs) -> Result<ExitCode> {
    if let Some(url) = &args.from {
        return check_bucket(url, common, args);
    }
    let mut report = CheckReport::default();
    let checked = panics::guard(|| match Writer::open_any(&common.db, common.wait) {
        Ok(mut writer) => {
            let mut report = check(&mut writer)?;
            if let Err(StoreError::Damaged { table, detail }) = writer.close() {
                report.add(table, detail);
            }
            Ok(report)
        }
        Err(StoreError::Io { source, .. })
            if matches!(
                source.kind(),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            check_unwritable(&common.db)
        }
        Err(error) => Err(error),
    });
    match checked {
        Ok(checked) => report = checked,
        Err(StoreError::Damaged { table, detail }) => report.add(table, detail),
        Err(error) => return Err(error.into()),
    }
    let ok = report.damages == 0;
    let text = describe(common, &report);
    let mut json = json!(report);
    json["ok"] = ok.into();
    common.result(&json, text)?;
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Checks a bucket.
fn check_bucket(url: &BucketUrl, common: &Common, args: &CheckArgs) -> Result<ExitCode> {
    let log = open_log(url, args.seal_key.as_deref())?;
    let folder =
        tempfile::tempdir().context("cannot create a temporary folder for the database")?;
    let audit = audit(&log, &folder.path().join("checked.redb"))?;
    // The first and last slots of the gaps before whole states.
    let given_up = audit
        .given_up
        .iter()
        .map(|slots| [*slots.start(), *slots.end()]);
    let checked = json!({
        "ok": true,
        "states": audit.states.len(),
        "entries": audit.entries,
        "slot": audit.slot,
        "seq": audit.seq,
        "given_up": given_up.collect::<Vec<_>>(),
    });
    let mut text = format!(
        "{url} is sound: {}, {} up to slot {}; the log ends at seq {}, as of {}.",
        counted(audit.states.len(), "state"),
        counted(audit.entries, "entry"),
        audit.slot,
        audit.seq,
        audit
            .result
            .last_commit_at
            .as_deref()
            .unwrap_or("the beginning"),
    );
    for slots in &audit.given_up {
        let first = slots.start();
        let last = slots.end();
        text.push_str(&format!(
            "\nEntries or whole states are missing from slot {first} to slot {last}, before the whole state at slot {}: the times of these slots cannot be restored.",
            last + 1
        ));
    }
    common.result(&checked, text)
}

fn describe(common: &Common, report: &CheckReport) -> String {
    let records: Vec<String> = report
        .records
        .iter()
        .map(|(dataset, count)| format!("{count} {dataset}"))
        .collect();
    let counts = format!(
        "{}, {}, {} with {}, {}",
        records.join(", "),
        counted(report.commits, "commit"),
        counted(report.licenses, "license"),
        counted(report.feed_rows, "feed row"),
        counted(report.keys, "key"),
    );
    if report.damages == 0 {
        let warnings: String = report
            .warnings
            .iter()
            .map(|warning| format!("\nwarning: {warning}"))
            .collect();
        return format!("{} is sound: {counts}.{warnings}", common.db.display());
    }
    let mut text = if report.records.is_empty() {
        format!(
            "{} is DAMAGED; nothing in it could be checked:",
            common.db.display()
        )
    } else {
        format!("{} is DAMAGED; checked {counts}:", common.db.display())
    };
    let mut unlisted = report.damages;
    for kind in &report.kinds {
        for detail in &kind.examples {
            text.push_str(&format!("\n  {}: {}", kind.table, Printable(detail)));
        }
        let alike = kind.count - kind.examples.len() as u64;
        if alike > 0 {
            text.push_str(&format!("\n    ... and {alike} more like these"));
        }
        unlisted -= kind.count;
    }
    if unlisted > 0 {
        text.push_str(&format!("\n  ... and {unlisted} of other kinds"));
    }
    text.push_str("\nRestore a backup.");
    if !report.records.is_empty() {
        text.push_str(" Or run `medfeed export`, and import the files into a new database.");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_check_counts_the_findings_that_it_does_not_list() {
        let common = Common {
            yes: false,
            db: "a.redb".into(),
            json: false,
            wait: Duration::ZERO,
            publish_wait: None,
        };
        let mut report = CheckReport {
            commits: 1,
            licenses: 2,
            feed_rows: 1,
            keys: 0,
            ..CheckReport::default()
        };
        report.warnings.push("w".to_owned());
        let counts = ", 1 commit, 2 licenses with 1 feed row, 0 keys";
        assert_eq!(
            describe(&common, &report),
            format!("a.redb is sound: {counts}.\nwarning: w")
        );
        report.records.insert(crate::model::Dataset::Journals, 3);
        // Findings of each kind: the table, the detail of the first, and how many.
        let kinds = [("log", "row", 1), ("log", "hash", 3), ("feeds", "row", 250)];
        for (table, detail, count) in kinds {
            for at in 0..count {
                report.add(table, format!("{detail} {}", at * 37));
            }
        }
        let expected = "\n  log: row 0\n  log: hash 0\n  log: hash 37\n  log: hash 74\n  feeds: row 0\n  feeds: row 37\n  \
                        feeds: row 74\n    ... and 247 more like these\nRestore a backup.";
        let text = describe(&common, &report);
        assert!(
            text.starts_with(&format!(
                "a.redb is DAMAGED; checked 3 journals{counts}:{expected}"
            )),
            "{text}"
        );
        // At most 100 kinds are kept, and all findings are counted. Scripts get the first 100 of all kinds.
        for at in 0..100 {
            report.add("keys", "x".repeat(at + 1));
        }
        report.add("feeds", "row 5");
        let text = describe(&common, &report);
        assert_eq!(text.matches("\n  keys: x").count(), 97, "{text}");
        assert!(
            text.contains("\n    ... and 248 more like these\n"),
            "{text}"
        );
        assert!(
            text.contains("\n  ... and 3 of other kinds\nRestore a backup."),
            "{text}"
        );
        assert_eq!((report.damages, report.findings.len()), (355, 100));
    }
}
