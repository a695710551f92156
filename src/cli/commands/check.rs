//! `medfeed check`.

use std::io::ErrorKind;
use std::process::ExitCode;

use serde::Serialize;

use crate::cli::commands::from_bucket::CheckFromArgs;
use crate::cli::shared::common::Common;
use crate::cli::shared::output::counted;
use crate::model::printable::Printable;
use crate::store::check::{CheckReport, check, check_unwritable};
use crate::store::panics;
use crate::store::{StoreError, Writer};

pub(in crate::cli) fn run(common: &Common, from: &CheckFromArgs) -> anyhow::Result<ExitCode> {
    if let Some(code) = from.check(common)? {
        return Ok(code);
    }
    #[derive(Serialize)]
    struct DatabaseCheckJson {
        ok: bool,
        #[serde(flatten)]
        report: CheckReport,
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
            if matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
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
    common.output().result(&DatabaseCheckJson { ok, report }, text)?;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(common: &Common, report: &CheckReport) -> String {
    let records: Vec<String> = report.records.iter().map(|(dataset, count)| format!("{count} {dataset}")).collect();
    let counts = format!(
        "{}, {}, {} with {}, {}",
        records.join(", "),
        counted(report.commits, "commit"),
        counted(report.licenses, "license"),
        counted(report.feed_rows, "feed row"),
        counted(report.keys, "key"),
    );
    if report.damages == 0 {
        let warnings: String = report.warnings.iter().map(|warning| format!("\nwarning: {warning}")).collect();
        return format!("{} is sound: {counts}.{warnings}", common.db.display());
    }
    let mut text = if report.records.is_empty() {
        format!("{} is DAMAGED; nothing in it could be checked:", common.db.display())
    } else {
        format!("{} is DAMAGED; checked {counts}:", common.db.display())
    };
    for finding in &report.findings {
        text.push_str(&format!("\n  {}: {}", finding.table, Printable(&finding.detail)));
    }
    let listed = u64::try_from(report.findings.len()).unwrap_or(u64::MAX);
    if report.damages > listed {
        text.push_str(&format!("\n  ... and {} more", report.damages - listed));
    }
    text.push_str("\nRestore a backup. Or run `medfeed export`, and import the files into a new database.");
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_check_counts_the_findings_that_it_does_not_list() {
        let common = Common { db: "a.redb".into(), json: false, wait: Duration::ZERO, publish_wait: None };
        let mut report = CheckReport { commits: 1, licenses: 2, feed_rows: 1, keys: 0, ..CheckReport::default() };
        report.warnings.push("w".to_owned());
        let counts = ", 1 commit, 2 licenses with 1 feed row, 0 keys";
        assert_eq!(describe(&common, &report), format!("a.redb is sound: {counts}.\nwarning: w"));
        report.records.insert(crate::model::Dataset::Journals, 3);
        let text = loop {
            report.add("log", "x");
            let text = describe(&common, &report);
            assert_eq!(text.matches("\n  log: x").count(), report.findings.len());
            if report.damages > report.findings.len() as u64 {
                break text;
            }
            assert!(!text.contains("more"), "{text}");
        };
        assert!(text.starts_with(&format!("a.redb is DAMAGED; checked 3 journals{counts}:\n")), "{text}");
        assert!(text.contains("\n  ... and 1 more\nRestore a backup."), "{text}");
    }
}
