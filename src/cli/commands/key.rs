//! `medfeed key`: create, list, revoke, replace.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::cli::arguments::{parse_duration, parse_end, parse_plain_text};
use crate::cli::commands::license::find_license;
use crate::cli::common::{AccessChange, Common};
use crate::cli::output::{note, table, unknown_name};
use crate::model::{
    ApiKey, Dataset, KeyRecord, KeyStatus, Printable, Timestamp, now, parse_network,
};
use crate::serve::operators::usage::{FeedSeen, KeyUse, Refusal, read_all};
use crate::store::Edit;
use crate::store::write::licensing::KeySettings;

/// The subcommands of `medfeed key`.
#[derive(Subcommand)]
pub enum KeyCommand {
    /// Create a key for a license; it is shown once
    #[command(after_help = "Examples:\n  \
        medfeed key create --license acme --label \"Acme data team\"\n  \
        medfeed key create --license acme --expires 30d --allow-ip 192.0.2.0/24")]
    Create(CreateArgs),
    /// List all keys with their status and last use
    #[command(after_help = "Examples:\n  \
        medfeed key list")]
    List,
    /// Revoke a key at once
    #[command(after_help = "Examples:\n  \
        medfeed key revoke key_0123456789")]
    Revoke {
        /// The key's id, from `medfeed key list`
        id: String,
    },
    /// Replace a key with a new one that has the same settings
    #[command(after_help = "Examples:\n  \
        medfeed key replace key_0123456789 --overlap 24h")]
    Replace {
        /// The key's id, from `medfeed key list`
        id: String,
        /// How long the old key continues to work
        #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
        overlap: Duration,
    },
}

#[derive(Args)]
pub struct CreateArgs {
    /// The license that the key gives access to
    #[arg(long, value_name = "NAME")]
    license: String,
    /// A note, such as who has the key
    #[arg(long, value_name = "TEXT", value_parser = parse_plain_text)]
    label: Option<String>,
    /// When the key expires: a time from now (30d, 2w, 1y), a date (the key works until its end, UTC), or a date with a
    /// time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = parse_end)]
    expires: Option<Timestamp>,
    /// Accept the key only from this address or CIDR; repeatable [default: any address]
    #[arg(long, value_name = "CIDR", value_parser = parse_network)]
    allow_ip: Vec<IpNet>,
}

/// A key in JSON.
fn key_json(record: &KeyRecord, status: KeyStatus) -> Value {
    let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
    json!({
        "id": record.id,
        "label": record.label,
        "license": record.license_name,
        "status": status.as_str(),
        "created_at": record.created_at.to_string(),
        "expires_at": text(ends_at(record, status)),
        "allowed_ips": record.allowed_ips,
        "revoked_at": text(record.revoked_at),
        "replaced_by": record.replaced_by,
    })
}

/// When a key expires. A replaced key works until its overlap ends.
fn ends_at(record: &KeyRecord, status: KeyStatus) -> Option<Timestamp> {
    let overlap_end = record.revoked_at.filter(|_| status == KeyStatus::Replaced);
    record.expires_at.into_iter().chain(overlap_end).min()
}

/// A key's last use and its position in the feeds, as recorded by servers of this database: in JSON, and as text.
/// `lag_s` is `None` if the history was replaced, or the license lost the dataset.
fn usage(used: &KeyUse, lag_s: impl Fn(Dataset, &FeedSeen) -> Option<u64>) -> (Value, String) {
    let last_used_at = used.last_used_at.map(|time| time.to_string());
    let mut text = last_used_at
        .as_ref()
        .map_or("never".to_owned(), |time| format!("last {time}"));
    let mut json = json!({ "last_used_at": last_used_at });
    if let Some(Refusal { at, code }) = &used.last_refusal {
        text += &format!(", refused at {at}: {code}");
        json["last_refusal"] = json!({ "at": at.to_string(), "code": code });
    }
    let mut feeds = json!({});
    for (dataset, seen) in &used.feeds {
        let at = seen.at.to_string();
        let behind_s = lag_s(*dataset, seen);
        text += &match behind_s {
            Some(0) => format!(", {dataset} up to date, asked at {at}"),
            Some(behind_s) => format!(", {dataset} {behind_s} s behind, asked at {at}"),
            None => format!(
                ", {dataset} unknown since the database was replaced or the license lost it, asked at {at}"
            ),
        };
        feeds[dataset.as_str()] =
            json!({ "at": at, "position": seen.position, "behind_s": behind_s });
    }
    json["feeds"] = feeds;
    (json, text)
}

pub fn run(common: &Common, command: KeyCommand) -> Result<ExitCode> {
    if !matches!(command, KeyCommand::List) {
        common.confirm_clock()?;
    }
    let access = match command {
        KeyCommand::Create(args) => create(common, args)?,
        KeyCommand::List => return list(common),
        KeyCommand::Revoke { id } => revoke(common, &id)?,
        KeyCommand::Replace { id, overlap } => replace(common, &id, overlap)?,
    };
    common.await_publication(access)
}

fn create(common: &Common, args: CreateArgs) -> Result<AccessChange> {
    let writer = common.open_writer()?;
    let mut edit = writer.begin()?;
    find_license(&edit.base()?, &args.license)?;
    let settings = KeySettings {
        label: args.label,
        expires_at: args.expires,
        allowed_ips: args.allow_ip,
    };
    let (key, record) = edit.create_key(&args.license, settings)?;
    common.commit(
        edit,
        format!("key create {} --license {}", record.id, record.license_name),
    )?;
    show_new(common, &key, &record)?;
    Ok(AccessChange::None)
}

fn show_new(common: &Common, key: &ApiKey, record: &KeyRecord) -> Result<()> {
    let mut json = key_json(record, KeyStatus::Active);
    json["key"] = key.reveal().into();
    let shown = common.result(&json, key.reveal());
    shown.with_context(|| {
        let id = &record.id;
        format!("nobody has the new key {id}: revoke it with `medfeed key revoke {id}`, and create another")
    })?;
    if !common.json {
        let end = record
            .expires_at
            .map(|end| format!(", until {end}"))
            .unwrap_or_default();
        note(&format!(
            "{} for license `{}`{end}. Store the key now: it cannot be shown again, because only its hash is stored.",
            record.id,
            Printable(&record.license_name)
        ));
    }
    Ok(())
}

fn list(common: &Common) -> Result<ExitCode> {
    let reader = common.open_reader()?;
    let newest = reader.newest();
    let at = now();
    let committed = newest.commit().time;
    let mut uses = read_all(&common.resolved_db());
    let mut keys = Vec::new();
    let mut rows = Vec::new();
    for record in newest.list_keys() {
        let status = record.status_after(at, committed);
        let used = uses.remove(&record.id).unwrap_or_default();
        let (usage, usage_text) = usage(&used, |dataset, seen| {
            seen.lag_s(dataset, record, newest, at)
        });
        rows.push([
            record.id.clone(),
            status.as_str().to_owned(),
            record.license_name.clone(),
            ends_at(record, status).map_or("never".to_owned(), |end| end.to_string()),
            record.label.clone().unwrap_or_else(|| "-".to_owned()),
            usage_text,
        ]);
        let mut json = key_json(record, status);
        json["usage"] = usage;
        keys.push(json);
    }
    let text = if rows.is_empty() {
        "There are no keys yet; create one with `medfeed key create --license NAME`.".to_owned()
    } else {
        table(
            ["ID", "STATUS", "LICENSE", "EXPIRES", "LABEL", "USE"],
            &rows,
        )
    };
    common.result(&json!({ "keys": keys }), text)
}

/// Returns an error if no key has this id, with a suggestion. A key given instead of its id is not repeated, because
/// output of scripts ends in logs.
fn require_key(edit: &Edit<'_>, id: &str) -> Result<()> {
    if id.starts_with("mfk_") {
        bail!("this is the key itself; use its id, which `medfeed key list` shows");
    }
    let snapshot = edit.base()?;
    let keys = snapshot.list_keys().into_iter();
    let ids = keys.map(|key| &*key.id);
    if ids.clone().any(|known| known == id) {
        return Ok(());
    }
    let problem = format!("there is no key `{id}`");
    Err(unknown_name(
        problem,
        id,
        ids,
        "`medfeed key list` lists all",
    ))
}

fn revoke(common: &Common, id: &str) -> Result<AccessChange> {
    let writer = common.open_writer()?;
    let mut edit = writer.begin()?;
    require_key(&edit, id)?;
    let record = edit.revoke_key(id)?;
    let license = &record.license_name;
    common.commit(edit, format!("key revoke {id} of license {license}"))?;
    let text = format!("{id} of license `{}` is revoked.", Printable(license));
    common.result(&key_json(&record, KeyStatus::Revoked), text)?;
    Ok(AccessChange::Revoked)
}

fn replace(common: &Common, id: &str, overlap: Duration) -> Result<AccessChange> {
    let writer = common.open_writer()?;
    let mut edit = writer.begin()?;
    require_key(&edit, id)?;
    let overlap_s = i64::try_from(overlap.as_secs()).unwrap_or(i64::MAX);
    let (key, record) = edit.replace_key(id, overlap_s)?;
    common.commit(
        edit,
        format!(
            "key replace {id} by {} of license {}",
            record.id, record.license_name
        ),
    )?;
    show_new(common, &key, &record)?;
    Ok(AccessChange::Revoked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Witness;

    #[test]
    fn the_use_of_a_key_is_shown_with_its_lag() {
        let witness = Witness {
            seq: 1,
            lineage: [0; 16],
        };
        let time = |minute: i64| Timestamp::from_unix_s(60 * minute);
        let told = |last_used: Option<i64>, feeds: &[(Dataset, i64, Option<u64>)]| {
            let seen = |minute| FeedSeen {
                at: time(minute),
                position: 1,
                witness,
                behind_since: None,
            };
            let found = feeds
                .iter()
                .map(|(dataset, minute, _)| (*dataset, seen(*minute)))
                .collect();
            let lag_s =
                |dataset, _: &FeedSeen| feeds.iter().find(|(of, ..)| *of == dataset).unwrap().2;
            usage(
                &KeyUse {
                    last_used_at: last_used.map(time),
                    last_refusal: last_used.map(|minute| Refusal {
                        at: time(minute + 1),
                        code: "rate_limited".to_owned(),
                    }),
                    feeds: found,
                },
                lag_s,
            )
            .1
        };
        assert_eq!(told(None, &[]), "never");
        let expected = "last 1970-01-01T00:00:00Z, refused at 1970-01-01T00:01:00Z: rate_limited";
        assert_eq!(told(Some(0), &[]), expected);
        assert_eq!(
            told(
                Some(1),
                &[
                    (Dataset::Journals, 1, Some(7)),
                    (Dataset::Conferences, 0, Some(0))
                ]
            ),
            "last 1970-01-01T00:01:00Z, refused at 1970-01-01T00:02:00Z: rate_limited, conferences up to date, asked at 1970-01-01T00:00:00Z, \
             journals 7 s behind, asked at 1970-01-01T00:01:00Z"
        );
        let lost = told(Some(1), &[(Dataset::Journals, 1, None)]);
        assert!(
            lost.ends_with(
                "journals unknown since the database was replaced or the license lost it, asked at 1970-01-01T00:01:00Z"
            )
        );
    }
}
