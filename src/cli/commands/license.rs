//! `medfeed license`: set, list, show, remove, explain.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::arguments::{parse_note, parse_plain_text, parse_text, parse_years};
use crate::cli::common::{AccessChange, Common};
use crate::cli::output::{confirm, counted, table, unknown_name};
use crate::model::country::same_country;
use crate::model::license::RuleSet;
use crate::model::{
    ConferenceFields, Curated, Dataset, Id, Joined, License, Printable, RecordFields, Rule, Scope,
    first_of, nearest, with_fields,
};
use crate::store::write::licensing::LicenseChange;
use crate::store::{Snapshot, StoreError};

/// The subcommands of `medfeed license`.
#[derive(Subcommand)]
pub enum LicenseCommand {
    /// Create a license, or replace its whole scope
    #[command(after_help = "Examples:\n  \
        medfeed license set acme --dataset conferences --dataset journals\n  \
        medfeed license set acme --dataset conferences --therapy-area Oncology --country Japan --year 2025..2027\n  \
        medfeed license set acme --dataset conferences --rate-limit 1200 --widen --dry-run")]
    Set(SetArgs),
    /// List all licenses
    #[command(after_help = "Examples:\n  \
        medfeed license list")]
    List,
    /// Show one license
    #[command(after_help = "Examples:\n  \
        medfeed license show acme")]
    Show {
        /// The name of the license
        name: String,
    },
    /// Remove a license and revoke its keys
    #[command(after_help = "Examples:\n  \
        medfeed license remove acme")]
    Remove {
        /// The name of the license
        name: String,
    },
    /// Explain why a license shows a record, or does not
    #[command(after_help = "Examples:\n  \
        medfeed license explain acme conferences 17")]
    Explain {
        /// The name of the license
        name: String,
        /// The record's dataset: conferences or journals
        dataset: Dataset,
        /// The record's id
        id: Id,
    },
}

#[derive(Args)]
pub struct SetArgs {
    /// The name of the license
    #[arg(value_parser = parse_text)]
    name: String,
    /// Show this dataset: conferences or journals; repeatable
    #[arg(long, value_name = "DATASET", required = true)]
    dataset: Vec<Dataset>,
    /// Show only conferences with this therapy area; repeatable
    #[arg(long, value_name = "AREA", value_parser = parse_text)]
    therapy_area: Vec<String>,
    /// Show only conferences in this country, spelled as in the records; repeatable
    #[arg(long, value_name = "COUNTRY", value_parser = parse_text)]
    country: Vec<String>,
    /// Show only conferences of these edition years: 2026, or 2024..2027; repeatable
    #[arg(long, value_name = "YEARS", value_parser = parse_years)]
    year: Vec<RangeInclusive<u16>>,
    /// Requests per minute and key [default: 600, or unchanged]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate_limit: Option<u32>,
    /// Create the database if there is none
    #[arg(long)]
    create: bool,
    /// Allow dropping a restriction of the license
    #[arg(long)]
    widen: bool,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Store a note for `medfeed log`, such as the reason: one line of at most 500 characters
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    note: Option<String>,
}

impl SetArgs {
    fn scope(&self) -> Scope {
        Scope {
            datasets: self.dataset.iter().copied().collect(),
            therapy_areas: given(self.therapy_area.clone()),
            countries: given(self.country.clone()),
            years: given(self.year.iter().cloned().flatten().collect()),
        }
    }
}

/// A license in JSON.
fn license_json(license: &License) -> Value {
    let mut json = json!(license.scope);
    json["name"] = json!(license.name);
    json["rate_limit"] = json!(license.rate_limit);
    json["created_at"] = json!(license.created_at.to_string());
    json
}

pub fn run(common: &Common, command: LicenseCommand) -> Result<ExitCode> {
    match command {
        LicenseCommand::Set(args) => {
            common.require_db(args.create, args.dry_run)?;
            // Asks before the writer's lock is taken, so that no other command waits for the user.
            if !args.dry_run {
                common.confirm_clock()?;
            }
            let warnings = check_values(
                common,
                &args.name,
                &args.scope(),
                common.yes || args.dry_run,
            )?;
            let access = set(common, &args, warnings, &[])?;
            if args.dry_run {
                return Ok(ExitCode::SUCCESS);
            }
            common.await_publication(access)
        }
        LicenseCommand::List => list(common),
        LicenseCommand::Show { name } => show(common, &name),
        LicenseCommand::Remove { name } => common.await_publication(remove(common, &name)?),
        LicenseCommand::Explain { name, dataset, id } => explain(common, &name, dataset, id),
    }
}

/// The parts of a scope as text; `None` if a part restricts nothing.
fn sets(scope: &Scope) -> [(String, Option<String>); 4] {
    let [areas, countries, years] = Rule::ALL.map(|rule| {
        let words = scope.set(rule).map(|set| match set {
            RuleSet::Texts(_) => set.values().join(", "),
            RuleSet::Years(years) => in_ranges(years),
        });
        (rule.to_string(), words)
    });
    [
        (
            "datasets".to_owned(),
            Some(scope.datasets.iter().joined(", ")),
        ),
        areas,
        countries,
        years,
    ]
}

/// Years as on the command line: `2024, 2026..2028`.
fn in_ranges(years: &BTreeSet<u16>) -> String {
    let years: Vec<u16> = years.iter().copied().collect();
    let ranges = years.chunk_by(|one, next| one + 1 == *next);
    let texts = ranges.map(|range| match range {
        [first, .., last] => format!("{first}..{last}"),
        single => single.iter().joined(""),
    });
    texts.joined(", ")
}

fn given<T: Ord>(values: Vec<T>) -> Option<BTreeSet<T>> {
    (!values.is_empty()).then(|| values.into_iter().collect())
}

/// Sets a license. `accepted` are the losses that the user was asked about. Returns the effect of the commit.
fn set(
    common: &Common,
    args: &SetArgs,
    warnings: Vec<String>,
    accepted: &[String],
) -> Result<AccessChange> {
    let scope = args.scope();
    let writer = common.open_to_change(args.create, args.dry_run)?;
    let mut edit = writer.begin()?;
    match edit.find_license(&args.name) {
        Some(license) => check_widening(&args.name, &license.scope, &scope, args.widen)?,
        None => drop(
            parse_plain_text(&args.name).map_err(|rule| anyhow!("the license's name: {rule}"))?,
        ),
    }
    let what = format!("license set {}: {}", args.name, scope_in_words(&scope));
    let change = edit.set_license(&args.name, scope, args.rate_limit)?;
    if !common.yes && !args.dry_run && !change.losses.is_empty() && change.losses != accepted {
        drop(edit);
        drop(writer);
        let question = format!(
            "{} will leave license `{}`. Continue?",
            change.losses.join(" and "),
            args.name
        );
        confirm(&question, false, "changed")?;
        return set(common, args, warnings, &change.losses);
    }
    let license = edit.find_license(&args.name).map(license_json);
    let tokens_end = change.scope_changed && !change.created;
    let text = describe(&args.name, &change, args.dry_run);
    if !args.dry_run {
        edit.set_note(args.note.clone());
        common.commit(edit, what)?;
    }
    let is_narrower = change.effects.iter().any(|effect| effect.leaving > 0);
    let mut json = json!(change);
    json["committed"] = json!(!args.dry_run);
    json["tokens_end"] = json!(tokens_end);
    json["license"] = json!(license);
    json["note"] = json!(args.note);
    json["warnings"] = json!(warnings);
    common.result(&json, text)?;
    Ok(match is_narrower {
        true => AccessChange::Narrowed,
        false => AccessChange::None,
    })
}

/// The scope in the words of `medfeed log`.
fn scope_in_words(scope: &Scope) -> String {
    let sets = sets(scope)
        .into_iter()
        .filter_map(|(name, set)| Some(format!("{name} {}", set?)));
    sets.joined("; ")
}

/// Refuses to drop a restriction without `--widen`, since it was probably forgotten on the command line.
fn check_widening(name: &str, before: &Scope, after: &Scope, widen: bool) -> Result<()> {
    let dropped = Rule::ALL
        .into_iter()
        .filter(|rule| before.set(*rule).is_some() && after.set(*rule).is_none());
    let options = dropped.map(|rule| match rule {
        Rule::TherapyAreas => "--therapy-area",
        Rule::Countries => "--country",
        Rule::Years => "--year",
    });
    let options = options.joined(" and ");
    if !widen && !options.is_empty() {
        bail!(
            "the license is restricted by {options}, which this command leaves out; repeat the restriction, or add --widen to drop \
             it. Now `{name}` shows: {}. It would show: {}",
            scope_in_words(before),
            scope_in_words(after)
        );
    }
    Ok(())
}

fn describe(name: &str, change: &LicenseChange, dry_run: bool) -> String {
    let name = Printable(name);
    let (is, get) = if dry_run {
        ("would be", "would get")
    } else {
        ("is", "get")
    };
    let mut text = match (
        change.created,
        change.scope_changed,
        change.rate_limit_changed,
    ) {
        (true, ..) => format!("License `{name}` {is} created."),
        (_, true, _) => {
            format!(
                "License `{name}` {is} changed. Older sync tokens {get} 410: clients continue with `resync=diff`, or load the export."
            )
        }
        (_, _, true) => {
            format!("Only the rate limit of license `{name}` {is} changed. Sync tokens stay valid.")
        }
        _ => format!("License `{name}` already has this scope and rate limit; nothing to change."),
    };
    for effect in &change.effects {
        text += &format!(
            "\n  {}: records entering: {}, leaving: {}",
            effect.dataset, effect.entering, effect.leaving
        );
    }
    if dry_run && !change.losses.is_empty() {
        let losses = change.losses.join(" and ");
        text += &format!("\nThis asks first, or needs --yes: {losses} would leave.");
    }
    text
}

fn list(common: &Common) -> Result<ExitCode> {
    let reader = common.open_reader()?;
    let licenses = reader.newest().list_licenses();
    let text = if licenses.is_empty() {
        "There are no licenses yet; create one with `medfeed license set NAME --dataset conferences`.".to_owned()
    } else {
        let rows = licenses.iter().map(|license| {
            let [datasets, areas, countries, years] =
                sets(&license.scope).map(|(_, set)| set.unwrap_or_else(|| "all".to_owned()));
            [
                license.name.clone(),
                datasets,
                areas,
                countries,
                years,
                format!("{}/min", license.rate_limit),
            ]
        });
        table(
            [
                "NAME",
                "DATASETS",
                "THERAPY AREAS",
                "COUNTRIES",
                "YEARS",
                "RATE LIMIT",
            ],
            &rows.collect::<Vec<_>>(),
        )
    };
    let json: Vec<Value> = licenses
        .iter()
        .map(|license| license_json(license))
        .collect();
    common.result(&json!({ "licenses": json }), text)
}

/// Finds a license by its name. The error suggests a similar name.
pub fn find_license<'s>(snapshot: &'s Snapshot, name: &str) -> Result<&'s License> {
    let found = snapshot.find_license_named(name);
    found.map(|license| &**license).ok_or_else(|| {
        let problem = format!("there is no license `{name}`");
        let licenses = snapshot.list_licenses().into_iter();
        let names = licenses.map(|license| &*license.name);
        unknown_name(problem, name, names, "`medfeed license list` lists all")
    })
}

fn show(common: &Common, name: &str) -> Result<ExitCode> {
    let reader = common.open_reader()?;
    let license = find_license(reader.newest(), name)?;
    let sets = sets(&license.scope).map(|(name, set)| {
        format!(
            "  {name:<13}  {}\n",
            Printable(set.as_deref().unwrap_or("all"))
        )
    });
    let limit = format!(
        "  rate limit     {} requests per minute and key",
        license.rate_limit
    );
    common.result(
        &license_json(license),
        format!("{}\n{}{limit}", Printable(&license.name), sets.concat()),
    )
}

fn remove(common: &Common, name: &str) -> Result<AccessChange> {
    let question = format!("Remove license `{}` and revoke its keys?", Printable(name));
    find_license(common.open_reader()?.newest(), name)?;
    // Asks before the writer's lock is taken, so that no other command waits for the user.
    confirm(&question, common.yes, "removed")?;
    common.confirm_clock()?;
    let writer = common.open_writer()?;
    let mut edit = writer.begin()?;
    let revoked_keys = edit.remove_license(name)?;
    common.commit(edit, format!("license remove {name}"))?;
    let keys = counted(revoked_keys, "key");
    let text = format!("License `{}` is removed; {keys} revoked.", Printable(name));
    common.result(
        &json!({ "removed": name, "revoked_keys": revoked_keys }),
        text,
    )?;
    Ok(AccessChange::Revoked)
}

fn explain(common: &Common, name: &str, dataset: Dataset, id: Id) -> Result<ExitCode> {
    let reader = common.open_reader()?;
    let snapshot = reader.newest();
    let scope = &find_license(snapshot, name)?.scope;
    let (exists, reasons) = with_fields!(dataset, F => {
        let record = snapshot.find_stored::<F>(id)?;
        (record.is_some(), why_hidden(scope, record.as_ref().map(Curated::fields)))
    });
    let visible = reasons.is_empty();
    let shown = Printable(name);
    let mut text = if visible {
        format!("Record {id} of {dataset} is visible to license `{shown}`: every rule matches.")
    } else {
        format!("Record {id} of {dataset} is not visible to license `{shown}`:")
    };
    for reason in &reasons {
        text.push_str(&format!("\n  {}", Printable(reason)));
    }
    let json = json!({
        "license": name, "dataset": dataset, "id": id, "exists": exists, "visible": visible, "reasons": reasons
    });
    common.result(&json, text)
}

/// Why a license does not show a record; nothing if it does. `fields` are `None` if there is no such record.
pub fn why_hidden<F: RecordFields>(scope: &Scope, fields: Option<&F>) -> Vec<String> {
    let mut reasons = Vec::new();
    if !scope.datasets.contains(&F::DATASET) {
        let dataset = F::DATASET;
        reasons.push(format!(
            "the license does not include the dataset `{dataset}`"
        ));
    }
    let Some(fields) = fields else {
        reasons.push("there is no such record".to_owned());
        return reasons;
    };
    for (rule, value) in fields.blocking_rules(scope) {
        let has = match value.texts() {
            [] => value.to_csv(&()),
            texts => texts.join(", ").into(),
        };
        let has = if has.is_empty() { "none" } else { &has };
        let allows = values_of(scope, rule).join(", ");
        reasons.push(format!(
            "{rule}: the record has {has}, the license allows {allows}"
        ));
    }
    reasons
}

fn values_of(scope: &Scope, rule: Rule) -> Vec<String> {
    scope.set(rule).map(RuleSet::values).unwrap_or_default()
}

/// Asks about each new value that looks like a misspelt known one, and warns of all other unknown values. With `yes` it
/// only warns. Values that the license already has count as accepted. Returns the warnings.
/// Fails if the answer is no, or if there is no terminal to ask on.
fn check_values(common: &Common, license: &str, scope: &Scope, yes: bool) -> Result<Vec<String>> {
    let mut areas = BTreeSet::new();
    let mut countries = BTreeSet::new();
    let mut accepted = Scope::nothing();
    let is_restricted = scope.therapy_areas.is_some() || scope.countries.is_some();
    if is_restricted && common.db.exists() {
        let reader = common.open_reader()?;
        let snapshot = reader.newest();
        if let Some(license) = snapshot.find_license_named(license) {
            accepted.clone_from(&license.scope);
        }
        snapshot.for_each_record::<ConferenceFields, StoreError>(|record, _, _| {
            let fields = record.into_fields();
            areas.extend(fields.therapy_areas);
            countries.extend(fields.country);
            Ok(())
        })?;
    }
    let mut warnings = Vec::new();
    for (what, rule, known) in [
        ("has the therapy area", Rule::TherapyAreas, &areas),
        ("is in the country", Rule::Countries, &countries),
    ] {
        let [given, accepted] = [scope, &accepted].map(|scope| values_of(scope, rule));
        for given in given.iter().filter(|given| !known.contains(*given)) {
            let is_new = !accepted.contains(given);
            let mut parts = given.split([',', ';']).map(str::trim);
            if is_new && !yes && parts.all(|part| known.contains(part)) {
                bail!("`{given}` names several values; repeat the option for each of them");
            }
            let near = same_or_near(given, known).filter(|_| is_new);
            let warning = describe_unknown(what, given, near, known);
            match near {
                Some(_) if !yes => confirm(
                    &format!("{warning}. Accept `{given}` nevertheless?"),
                    false,
                    "changed",
                )?,
                _ => common.warning(&warning),
            }
            warnings.push(warning);
        }
    }
    Ok(warnings)
}

/// The warning about a value of a scope that no conference has. `what` are the words after `no conference`, such as `is
/// in the country`, and `near` is the known value that was probably meant.
fn describe_unknown(
    what: &str,
    given: &str,
    near: Option<&str>,
    known: &BTreeSet<String>,
) -> String {
    const SHOWN: usize = 12;
    let remedy = match near {
        Some(near) => format!("; did you mean `{near}`?"),
        None => " yet, so no conference matches it".to_owned(),
    };
    let quoted = known.iter().map(|known| format!("`{known}`"));
    let known = match first_of(quoted, known.len(), SHOWN) {
        none if none.is_empty() => none,
        known => format!(" (the data contains {known})"),
    };
    format!("no conference {what} `{given}`{remedy}{known}")
}

/// The known value with the same meaning as the given one, or with a similar spelling.
fn same_or_near<'a>(given: &str, known: &'a BTreeSet<String>) -> Option<&'a str> {
    let known = known.iter().map(String::as_str);
    let same = known.clone().find(|known| same_country(given, known));
    same.or_else(|| nearest(given, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(areas: &[&str], countries: &[&str], years: &[u16]) -> Scope {
        let texts = |texts: &[&str]| given(texts.iter().map(|text| (*text).to_owned()).collect());
        Scope {
            datasets: [Dataset::Conferences].into(),
            therapy_areas: texts(areas),
            countries: texts(countries),
            years: given(years.to_vec()),
        }
    }

    #[test]
    fn years_are_shown_as_ranges() {
        let cases: [(&[u16], &str); 6] = [
            (&[], ""),
            (&[2026], "2026"),
            (&[2026, 2027], "2026..2027"),
            (&[2024, 2026, 2027, 2028], "2024, 2026..2028"),
            (&[1900, 1901, 2099, 2100], "1900..1901, 2099..2100"),
            (&[2024, 2026, 2028], "2024, 2026, 2028"),
        ];
        for (years, expected) in cases {
            assert_eq!(in_ranges(&years.iter().copied().collect()), expected);
        }
    }

    #[test]
    fn a_dropped_restriction_is_refused_by_its_name() {
        let whole = scope(&["Oncology"], &["Japan"], &[2026]);
        let cases = cases![
            scope(&["Oncology"], &["Japan"], &[2026]), "";
            scope(&["Cardiology"], &["Chile"], &[2030]), "";
            scope(&[], &["Japan"], &[2026]), "--therapy-area,";
            scope(&["Oncology"], &[], &[2026]), "--country,";
            scope(&["Oncology"], &["Japan"], &[]), "--year,";
            scope(&[], &[], &[2026]), "--therapy-area and --country,";
            scope(&[], &[], &[]), "--therapy-area and --country and --year,";
        ];
        for (after, expected) in cases {
            match check_widening("acme", &whole, &after, false) {
                Ok(()) => assert_eq!(expected, "", "{after:?}"),
                Err(error) => {
                    let told = error.to_string();
                    assert!(
                        !expected.is_empty() && told.contains(&format!("restricted by {expected}")),
                        "{told}"
                    );
                    let now = "Now `acme` shows: datasets conferences; therapy areas Oncology; countries Japan; years 2026.";
                    assert!(told.contains(now), "{told}");
                }
            }
            assert!(check_widening("acme", &whole, &after, true).is_ok());
            assert!(
                check_widening("acme", &scope(&[], &[], &[]), &after, false).is_ok(),
                "a new restriction"
            );
        }
    }

    #[test]
    fn an_unknown_value_is_reported_with_the_first_known_ones() {
        let known = |count: usize| -> BTreeSet<String> {
            (0..count).map(|at| format!("C{at:02}")).collect()
        };
        let told = |count, near| {
            let known = known(count);
            describe_unknown("is in the country", "O'Land", near, &known)
        };
        let start = "no conference is in the country `O'Land`";
        let expected = format!("{start} yet, so no conference matches it");
        assert_eq!(told(0, None), expected);
        let expected = format!("{start}; did you mean `C00`?");
        assert_eq!(told(0, Some("C00")), expected);
        let expected = format!("{start}; did you mean `C01`? (the data contains `C00`, `C01`)");
        assert_eq!(told(2, Some("C01")), expected);
        for (count, end) in [
            (11, "`C10`)"),
            (12, "`C11`)"),
            (13, "`C11` and 1 more)"),
            (20, "`C11` and 8 more)"),
        ] {
            assert!(told(count, None).ends_with(end), "{}", told(count, None));
        }
    }

    #[test]
    fn a_country_in_another_spelling_is_the_same() {
        let known: BTreeSet<String> = ["Germany", "United States", "Niger"]
            .map(str::to_owned)
            .into();
        let cases = [
            ("USA", Some("United States")),
            ("Germny", Some("Germany")),
            ("Deutschland", Some("Germany")),
            ("Atlantis", None),
        ];
        for (given, expected) in cases {
            assert_eq!(same_or_near(given, &known), expected, "{given}");
        }
    }
}
