//! Warnings about values of a scope that no conference has. They are probably typing errors.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::bail;

use crate::cli::shared::common::Common;
use crate::cli::shared::output::{can_ask, confirm, warn};
use crate::model::country::same_country;
use crate::model::fold::nearest;
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
    if !can_ask() {
        bail!("{warning}; nothing was changed. Write `{near}`, or add --yes to accept `{given}`");
    }
    warn(warning);
    confirm(&format!("Accept `{given}` nevertheless?"), false, "changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_value_is_told_with_the_first_known_ones() {
        let known = |count: usize| -> BTreeSet<String> { (0..count).map(|at| format!("C{at:02}")).collect() };
        let told = |count, near| {
            let known = known(count);
            UnknownValue { what: "is in the country", given: "O'Land", near, known: &known }.to_string()
        };
        let start = "no conference is in the country `O'Land`";
        assert_eq!(told(0, None), format!("{start} yet, so no conference matches it"));
        assert_eq!(told(0, Some("C00")), format!("{start}; did you mean `C00`?"));
        assert_eq!(told(2, Some("C01")), format!("{start}; did you mean `C01`? (the data contains `C00`, `C01`)"));
        for (count, end) in [(11, "`C10`)"), (12, "`C11`)"), (13, "`C11` and 1 more)"), (20, "`C11` and 8 more)")] {
            assert!(told(count, None).ends_with(end), "{}", told(count, None));
        }
    }

    #[test]
    fn a_country_in_another_spelling_is_the_same() {
        let known: BTreeSet<String> = ["Germany", "United States", "Niger"].map(str::to_owned).into();
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
