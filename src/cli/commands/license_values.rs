//! Warnings about values of a scope that no conference has. They are probably typing errors.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{IsTerminal, stdin};

use anyhow::bail;

use crate::cli::shared::common::Common;
use crate::cli::shared::output::{confirm, note};
use crate::model::country::same_country;
use crate::model::nearest::nearest;
use crate::model::printable::Printable;
use crate::model::{ConferenceFields, Scope};
use crate::store::StoreError;

/// Asks about each new value that looks like a misspelt known one, and warns of all other unknown values. With `yes` it
/// only warns. Values that the license already has count as accepted. Returns the warnings.
///
/// # Errors
/// When the answer is no, or there is no terminal to ask on.
pub(in crate::cli) fn check(common: &Common, license: &str, scope: &Scope, yes: bool) -> anyhow::Result<Vec<String>> {
    let (mut areas, mut countries, mut before) = (BTreeSet::new(), BTreeSet::new(), None);
    let is_restricted = scope.therapy_areas.is_some() || scope.countries.is_some();
    if is_restricted && common.db.exists() {
        let follower = common.open_follower()?;
        before = follower.newest().find_license_named(license).map(|license| license.scope.clone());
        follower.newest().for_each_record::<ConferenceFields, StoreError>(|record, _, _| {
            let fields = record.into_fields();
            areas.extend(fields.therapy_areas);
            countries.extend(fields.country);
            Ok(())
        })?;
    }
    let accepted = before.unwrap_or_else(|| Scope { therapy_areas: None, countries: None, ..scope.clone() });
    let sets = [
        ("has the therapy area", &scope.therapy_areas, accepted.therapy_areas, areas),
        ("is in the country", &scope.countries, accepted.countries, countries),
    ];
    let mut warnings = Vec::new();
    for (what, stated, accepted, known) in &sets {
        for given in stated.iter().flatten().filter(|given| !known.contains(*given)) {
            let is_new = accepted.as_ref().is_none_or(|accepted| !accepted.contains(given));
            let near = if is_new { same_or_near(given, known) } else { None };
            let value = UnknownValue { what, given, near, known };
            let warning = value.to_string();
            match value.near {
                Some(near) if !yes => ask_about(given, near, &warning)?,
                _ => common.output().warning(&warning),
            }
            warnings.push(warning);
        }
    }
    Ok(warnings)
}

/// A value of a scope that no conference has.
struct UnknownValue<'a> {
    /// The words after `no conference`, such as `is in the country`.
    what: &'static str,
    given: &'a str,
    /// The known value that was probably meant.
    near: Option<&'a str>,
    known: &'a BTreeSet<String>,
}

impl fmt::Display for UnknownValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        let UnknownValue { what, given, near, known } = self;
        write!(f, "no conference {what} `{given}`")?;
        match near {
            Some(near) => write!(f, "; did you mean `{near}`?")?,
            None => f.write_str(" yet, so no conference matches it")?,
        }
        if known.is_empty() {
            return Ok(());
        }
        let shown: Vec<String> = known.iter().take(SHOWN).map(|known| format!("`{known}`")).collect();
        write!(f, " (the data contains {}", shown.join(", "))?;
        match known.len().saturating_sub(SHOWN) {
            0 => f.write_str(")"),
            more => write!(f, " and {more} more)"),
        }
    }
}

/// The known value with the same meaning as the given one, or with a similar spelling.
fn same_or_near<'a>(given: &str, known: &'a BTreeSet<String>) -> Option<&'a str> {
    let same = known.iter().map(String::as_str).find(|known| same_country(given, known));
    same.or_else(|| nearest(given, known.iter().map(String::as_str)))
}

/// Asks whether to accept a value that looks misspelt.
fn ask_about(given: &str, near: &str, warning: &str) -> anyhow::Result<()> {
    if !stdin().is_terminal() {
        bail!("{warning}; nothing was changed. Write `{near}`, or add --yes to accept `{given}`");
    }
    note(&format!("warning: {}", Printable(warning)));
    confirm(&format!("Accept `{given}` nevertheless?"), false, "changed")
}
