//! Scopes in a short notation.

use medfeed::model::Scope;

/// Reads a scope: its datasets, then the given sets, such as `conferences journals; areas: Oncology, Breast;
/// countries: Spain; years: 2025 2026`.
pub fn scope(text: &str) -> Scope {
    let mut parts = text.split(';').map(str::trim);
    let datasets = parts.next().unwrap_or_default().split_whitespace();
    let datasets = datasets.map(|name| name.parse().unwrap()).collect();
    let mut scope = Scope {
        datasets,
        therapy_areas: None,
        countries: None,
        years: None,
    };
    for part in parts {
        let (name, values) = part
            .split_once(':')
            .unwrap_or_else(|| panic!("no set in {part:?}"));
        let texts = values.split(',').map(|value| value.trim().to_owned());
        let texts = texts.filter(|value| !value.is_empty());
        match name {
            "areas" => scope.therapy_areas = Some(texts.collect()),
            "countries" => scope.countries = Some(texts.collect()),
            "years" => {
                scope.years = Some(
                    values
                        .split_whitespace()
                        .map(|year| year.parse().unwrap())
                        .collect(),
                )
            }
            other => panic!("no set `{other}`"),
        }
    }
    scope
}
