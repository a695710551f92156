//! Another spelling of a country already in use: licenses and filters compare countries exactly, so two spellings
//! split what belongs together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::records::MergedRecords;
use crate::import::report::{Finding, MAX_WARNINGS, Position, shortened};
use crate::model::ConferenceFields;
use crate::model::fold::fold;

/// Names of one country that do not look alike, in their [`comparable`] form.
const ALIASES: &[&[&str]] = &[
    &["unitedstates", "unitedstatesofamerica", "us", "usa"],
    &["unitedkingdom", "unitedkingdomofgreatbritainandnorthernireland", "uk", "greatbritain", "gb"],
    &["southkorea", "korea", "republicofkorea", "korearepublicof", "koreasouth", "rok"],
    &["unitedarabemirates", "uae"],
    &["china", "peoplesrepublicofchina", "prc", "prchina"],
    &["hongkong", "hongkongsar", "hongkongsarchina", "hongkongchina"],
    &["macau", "macao", "macaosar"],
    &["czechia", "czechrepublic"],
    &["netherlands", "holland"],
    &["turkey", "turkiye"],
    &["russia", "russianfederation"],
    &["vietnam", "socialistrepublicofvietnam"],
    &["iran", "iranislamicrepublicof", "islamicrepublicofiran"],
    &["syria", "syrianarabrepublic"],
    &["moldova", "republicofmoldova", "moldovarepublicof"],
    &["tanzania", "unitedrepublicoftanzania", "tanzaniaunitedrepublicof"],
    &["bolivia", "plurinationalstateofbolivia", "boliviaplurinationalstateof"],
    &["venezuela", "bolivarianrepublicofvenezuela", "venezuelabolivarianrepublicof"],
    &["laos", "laopeoplesdemocraticrepublic", "laopdr"],
    &["brunei", "bruneidarussalam"],
    &["ivorycoast", "cotedivoire"],
    &["capeverde", "caboverde"],
    &["northmacedonia", "macedonia"],
    &["eswatini", "swaziland"],
    &["myanmar", "burma"],
    &["saudiarabia", "kingdomofsaudiarabia", "ksa"],
    &["ireland", "republicofireland"],
    &["germany", "deutschland", "federalrepublicofgermany"],
    &["bosniaandherzegovina", "bosnia"],
];

/// A country's name without what people write differently.
fn comparable(country: &str) -> String {
    let folded = fold(country).replace('&', " and ");
    let folded = folded.trim_start().strip_prefix("the ").unwrap_or(&folded);
    let letters: String = folded.chars().filter(|letter| letter.is_alphanumeric()).collect();
    match ALIASES.iter().find(|names| names.contains(&letters.as_str())) {
        Some(names) => names[0].to_owned(),
        None => letters,
    }
}

/// Whether two spellings mean one country.
pub fn same_country(one: &str, other: &str) -> bool {
    comparable(one) == comparable(other)
}

/// Warns of each new spelling of a country that is in use already, or that the run itself spells in two ways.
pub(super) fn warn_of_spellings(
    conferences: &MergedRecords<ConferenceFields>,
    in_use: &BTreeSet<String>,
    warnings: &mut Vec<Finding>,
) {
    let mut new: BTreeMap<&str, (usize, Option<&Position>)> = BTreeMap::new();
    for (id, row) in &conferences.rows {
        let country = row.as_ref().and_then(|row| row.fields().country.as_deref());
        if let Some(country) = country.filter(|country| !in_use.contains(*country)) {
            new.entry(country).or_insert((0, conferences.positions.get(id))).0 += 1;
        }
    }
    let mut known: HashMap<String, &str> =
        in_use.iter().rev().map(|known| (comparable(known), known.as_str())).collect();
    // Among new spellings the most frequent one is taken for the right one.
    let mut new: Vec<_> = new.into_iter().collect();
    new.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (country, (count, position)) in new {
        let key = comparable(country);
        match (known.get(&key), position) {
            (Some(_), Some(_)) if warnings.len() >= MAX_WARNINGS => return,
            (Some(other), Some(position)) => {
                let rows = if count == 1 { "1 row".to_owned() } else { format!("{count} rows, the first is here") };
                let message = format!(
                    "is another spelling of `{}` ({rows}); licenses and filters tell them apart",
                    shortened(other)
                );
                warnings.push(Finding::new(position, Some("country"), Some(country), &message));
            }
            _ => {
                known.insert(key, country);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_country_compare_equal() {
        let cases = [
            ("USA", "United States", true),
            ("U.S.A.", "the United States of America", true),
            ("US", "usa", true),
            ("UK", "United Kingdom", true),
            ("South Korea", "Republic of Korea", true),
            ("Korea, Republic of", "Korea", true),
            ("Türkiye", "Turkey", true),
            ("Viet Nam", "Vietnam", true),
            ("The Netherlands", "Netherlands", true),
            ("Côte d'Ivoire", "Ivory Coast", true),
            ("Bosnia & Herzegovina", "Bosnia and Herzegovina", true),
            ("españa", "España", true),
            ("日本", "日本 ", true),
            ("Austria", "Australia", false),
            ("Niger", "Nigeria", false),
            ("North Korea", "South Korea", false),
            ("日本", "中国", false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(comparable(one) == comparable(other), expected, "{one:?} and {other:?}");
        }
    }

    #[test]
    fn aliases_are_in_their_comparable_form_and_stand_once() {
        let mut seen = BTreeSet::new();
        for name in ALIASES.iter().copied().flatten() {
            assert!(name.chars().all(|letter| letter.is_ascii_lowercase()), "{name}");
            assert!(seen.insert(name), "{name}");
        }
    }
}
