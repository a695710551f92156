//! `medfeed backup`, `medfeed restore`, `medfeed compact`, `medfeed upgrade` and `medfeed check`.

use std::fmt::Write;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde_json::json;

use crate::bucket::BucketUrl;
use crate::cli::arguments::{parse_note, path_parser};
use crate::cli::common::{AccessChange, Common, SealArgs, require_folder, warn_of_pause};
use crate::cli::output::{can_ask, confirm, counted, note, warn};
use crate::model::{Dataset, Joined, PerDataset, Printable, Timestamp, now, parse_time};
use crate::replicate::replica::StateLoader;
use crate::replicate::replica::audit::audit;
use crate::store::check::{CheckReport, check, check_unwritable};
use crate::store::file::replace::{self, BackupReport, CompactReport, check_target};
use crate::store::restore::{
    Restoration, RestoreDifferences, SCHEMA, UpgradePlan, plan_upgrade, upgrade as upgrade_file,
};
use crate::store::{StoreError, Writer, panics};

/// Arguments of `medfeed backup`.
#[derive(Args)]
pub struct BackupArgs {
    /// The file to write; replaces an older backup with this name, but no replica and no published database
    #[arg(value_parser = path_parser())]
    file: PathBuf,
    /// Back up the database that `medfeed publish` published into this bucket, instead of --db: s3://BUCKET/PREFIX,
    /// gs://, az:// or file:///FOLDER
    #[arg(long, value_name = "URL")]
    from: Option<BucketUrl>,
    /// Back up the database as it was at this time, instead of the newest state: 2026-12-31T18:00:00Z, or a date (its
    /// beginning, UTC)
    #[arg(long, value_name = "TIME", requires = "from", value_parser = parse_moment)]
    at: Option<Timestamp>,
    #[command(flatten)]
    seal: SealArgs,
}

fn parse_moment(text: &str) -> Result<Timestamp, String> {
    parse_time(text)
        .map_err(|_| "write a date with a time, such as 2026-12-31T18:00:00Z, or a date".to_owned())
}

/// Arguments of `medfeed restore`.
#[derive(Args)]
pub struct RestoreArgs {
    /// The backup, which is not changed
    #[arg(value_parser = path_parser())]
    file: PathBuf,
    /// Store a note for `medfeed log`, such as the reason: one line of at most 500 characters
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    note: Option<String>,
}

pub fn backup(common: &Common, args: &BackupArgs) -> Result<ExitCode> {
    let BackupReport {
        records,
        last_commit_at,
        bytes,
    } = match &args.from {
        Some(url) => backup_from(url, common, args)?,
        None => {
            let reader = common.open_reader()?;
            require_folder(&args.file)?;
            replace::backup(&reader, &args.file)?
        }
    };
    let file = args.file.display().to_string();
    let text = format!(
        "{file}: {}, as of {}; {bytes} bytes, checked.",
        describe_counts(Dataset::ALL.map(|dataset| (dataset, records[dataset]))),
        last_commit_at.as_deref().unwrap_or("the beginning")
    );
    common.result(&json!({ "file": file, "records": records, "last_commit_at": last_commit_at, "bytes": bytes }), text)
}

fn describe_counts(records: impl IntoIterator<Item = (Dataset, u64)>) -> String {
    let counts = records.into_iter();
    counts
        .map(|(dataset, count)| format!("{count} {dataset}"))
        .joined(", ")
}

/// Writes a backup from a bucket.
fn backup_from(url: &BucketUrl, common: &Common, args: &BackupArgs) -> Result<BackupReport> {
    require_folder(&args.file)?;
    check_target(&common.resolved_db(), &args.file)?;
    let log = args.seal.open_log(url)?;
    if args.at.is_some_and(|at| at > now()) {
        warn("--at is in the future: the backup has no commit that is made until then");
    }
    let load = StateLoader {
        until: args.at,
        must_confirm: true,
        ..StateLoader::new(&log, &args.file, &|| true)
    };
    let loaded = load.newest().map_err(|error| match load.reached.get() {
        Some(reached) => {
            anyhow!(
                "{error}. The newest state that can be had is that of {reached}: add --at {reached}"
            )
        }
        None => error.into(),
    })?;
    Ok(loaded.draft.write_backup(&args.file)?)
}

pub fn restore(common: &Common, args: &RestoreArgs) -> Result<ExitCode> {
    require_folder(&common.resolved_db())?;
    let is_new = !common.db.exists();
    let restoration = Restoration::prepare(&common.db, &args.file, common.wait, args.note.clone())?;
    let differences = restoration.differences.clone();
    let missing = is_new.then_some("there is none");
    if let Some(reason) = differences.unreadable.as_deref().or(missing) {
        let lost = format!(
            "the database to replace cannot be read ({reason}); keys that were revoked since the backup would work again"
        );
        let is_asked = is_new && can_ask();
        if !common.yes && !is_asked {
            bail!("{lost}. Add --yes to restore the backup nevertheless");
        }
        warn(&lost);
    }
    if !common.json {
        note(&describe_restore(&differences));
    }
    warn_of_pause(restoration.last_commit);
    let verb = if is_new { "Create" } else { "Replace" };
    confirm(
        &format!("{verb} {}?", common.db.display()),
        common.yes,
        "restored",
    )?;
    restoration.finish()?;
    common.note_if_new(is_new);
    let done = format!(
        "{} is restored. Every older sync token gets 410.",
        common.db.display()
    );
    let mut json = json!(differences);
    json["note"] = json!(args.note);
    json["restored"] = true.into();
    common.result(&json, done)?;
    common.await_publication(AccessChange::None)
}

fn describe_restore(differences: &RestoreDifferences) -> String {
    let RestoreDifferences {
        restored_to,
        replaced_from,
        records,
        licenses,
        keys_that_stop,
        keys_that_come_back,
        keys_that_stay_revoked,
        ..
    } = differences;
    let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "-".to_owned());
    // Writing to a string cannot fail.
    let mut text = format!(
        "last commit: {} now, {} in the backup",
        time(replaced_from),
        time(restored_to)
    );
    for dataset in Dataset::ALL {
        let (before, after) = records[dataset];
        let before = before.map_or("-".to_owned(), |before| before.to_string());
        let _ = write!(text, "\n{dataset}: {before} now, {after} in the backup");
    }
    for difference in licenses {
        let _ = write!(
            text,
            "\nlicense `{}` {}",
            Printable(&difference.license),
            difference.change
        );
    }
    for (keys, fate) in [
        (keys_that_stop, "stops working"),
        (keys_that_come_back, "comes back with the backup"),
        (keys_that_stay_revoked, "stays revoked"),
    ] {
        for key in keys {
            let _ = write!(text, "\nkey {} {fate}", Printable(key));
        }
    }
    text
}

pub fn compact(common: &Common) -> Result<ExitCode> {
    let report = replace::compact(&common.db, common.wait)?;
    let CompactReport {
        bytes_before,
        bytes_after,
    } = report;
    common.result(
        &report,
        format!(
            "{}: {bytes_before} bytes before, {bytes_after} after.",
            common.db.display()
        ),
    )
}

pub fn upgrade(common: &Common, dry_run: bool, if_needed: bool) -> Result<ExitCode> {
    let db = common.db.display();
    let planned = match plan_upgrade(&common.db) {
        // A replica loads its state again when it is served.
        Err(StoreError::NotFound { .. } | StoreError::OlderReplica { .. }) if if_needed => None,
        planned => planned?,
    };
    let Some(planned) = planned else {
        if if_needed && !common.json {
            return Ok(ExitCode::SUCCESS);
        }
        let text = format!(
            "{db} has format {SCHEMA}, the format of this medfeed; there is nothing to upgrade."
        );
        return common.result(&json!({ "upgraded": false }), text);
    };
    if dry_run {
        let text = format!("{db} would be upgraded {}", describe_upgrade(&planned));
        let mut json = json!(planned);
        json["upgraded"] = false.into();
        return common.result(&json, text);
    }
    match upgrade_file(&common.db, common.wait)? {
        Some(done) => {
            let text = format!(
                "{db} is upgraded {}\nThe old file is kept as {}; remove it when you no longer need it to go back.",
                describe_upgrade(&done.plan),
                done.kept.display()
            );
            let mut json = serde_json::to_value(&done)?;
            json["upgraded"] = true.into();
            common.result(&json, text)
        }
        None => {
            let text = format!("{db} was upgraded by another process meanwhile.");
            common.result(&json!({ "upgraded": false }), text)
        }
    }
}

/// The formats, the number of records, and what customers notice.
fn describe_upgrade(plan: &UpgradePlan) -> String {
    let UpgradePlan {
        from,
        to,
        records: PerDataset {
            conferences,
            journals,
        },
        fields,
        ..
    } = plan;
    let formats = if from == to {
        format!("within format {to}")
    } else {
        format!("from format {from} to format {to}")
    };
    let noticed = if !fields.is_empty() {
        format!(
            "Licenses, keys and sync tokens stay. Rows get the new fields {}: records with these fields appear once in the change \
             feed, with `updated_at` as before.",
            fields.join(", ")
        )
    } else if from == to {
        "Licenses, keys and sync tokens stay. The fields of records are in another order: such records appear once in the change \
         feed, with `updated_at` as before."
            .to_owned()
    } else {
        "Customers notice nothing: licenses, keys and sync tokens stay, and no record changes."
            .to_owned()
    };
    format!("{formats}: {conferences} conferences, {journals} journals.\n{noticed}")
}

/// Arguments of `medfeed check`.
#[derive(Args)]
pub struct CheckArgs {
    /// Check the bucket of `medfeed publish`, instead of --db: the chain of entries, every hash, and whether the oldest
    /// state plus all entries gives each later state and a sound database
    #[arg(long, value_name = "URL")]
    from: Option<BucketUrl>,
    #[command(flatten)]
    seal: SealArgs,
}

pub fn run_check(common: &Common, args: &CheckArgs) -> Result<ExitCode> {
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
    let text = describe_report(common, &report);
    let mut json = json!(report);
    json["ok"] = ok.into();
    common.result(&json, text)?;
    Ok(ExitCode::from(u8::from(!ok)))
}

/// Checks a bucket.
fn check_bucket(url: &BucketUrl, common: &Common, args: &CheckArgs) -> Result<ExitCode> {
    let log = args.seal.open_log(url)?;
    let folder =
        tempfile::tempdir().context("cannot create a temporary folder for the database")?;
    let audit = audit(&log, &folder.path().join("checked.redb"))?;
    // The first and last slots of the gaps before whole states.
    let gaps = audit.given_up.iter();
    let gaps: Vec<[u64; 2]> = gaps.map(|slots| [*slots.start(), *slots.end()]).collect();
    let checked = json!({
        "ok": true,
        "states": audit.states.len(),
        "entries": audit.entries,
        "slot": audit.slot,
        "seq": audit.seq,
        "given_up": gaps,
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
    for [first, last] in gaps {
        text.push_str(&format!(
            "\nEntries or whole states are missing from slot {first} to slot {last}, before the whole state at slot {}: the times of these slots cannot be restored.",
            last + 1
        ));
    }
    common.result(&checked, text)
}

fn describe_report(common: &Common, report: &CheckReport) -> String {
    let counts = format!(
        "{}, {}, {} with {}, {}",
        describe_counts(report.records.clone()),
        counted(report.commits, "commit"),
        counted(report.licenses, "license"),
        counted(report.feed_rows, "feed row"),
        counted(report.keys, "key"),
    );
    let db = common.db.display();
    if report.damages == 0 {
        let warnings: String = report
            .warnings
            .iter()
            .map(|warning| format!("\nwarning: {warning}"))
            .collect();
        return format!("{db} is sound: {counts}.{warnings}");
    }
    let mut text = match report.records.is_empty() {
        true => format!("{db} is DAMAGED; nothing in it could be checked:"),
        false => format!("{db} is DAMAGED; checked {counts}:"),
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
mod check_tests {
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
            describe_report(&common, &report),
            format!("a.redb is sound: {counts}.\nwarning: w")
        );
        report.records.insert(Dataset::Journals, 3);
        // Findings of each kind: the table, the detail of the first, and how many.
        let kinds = [("log", "row", 1), ("log", "hash", 3), ("feeds", "row", 250)];
        for (table, detail, count) in kinds {
            for at in 0..count {
                report.add(table, format!("{detail} {}", at * 37));
            }
        }
        let expected = "\n  log: row 0\n  log: hash 0\n  log: hash 37\n  log: hash 74\n  feeds: row 0\n  feeds: row 37\n  \
                        feeds: row 74\n    ... and 247 more like these\nRestore a backup.";
        let text = describe_report(&common, &report);
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
        let text = describe_report(&common, &report);
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
