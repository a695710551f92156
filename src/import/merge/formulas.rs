//! Names that a spreadsheet would compute.

use crate::import::report::{Place, Warning};
use crate::model::field::Value;
use crate::model::flat::looks_like_formula;
use crate::model::{Curated, Fields};

/// Warns of a new name that a spreadsheet would compute.
pub(super) fn warn_of_formulas<F: Fields>(
    place: &Place,
    field: &str,
    before: Option<&Curated<F>>,
    after: &Curated<F>,
    warnings: &mut Vec<Warning>,
) {
    let name_of = |row: &Curated<F>| match F::table()
        .iter()
        .find(|field| field.name == "name")
        .map(|field| (field.get)(row.fields()))
    {
        Some(Value::Text(Some(name))) => Some(name.clone()),
        _ => None,
    };
    if let Some(name) = name_of(after)
        && looks_like_formula(&name)
        && warnings.len() < Warning::KEPT
        && before.and_then(name_of).as_ref() != Some(&name)
    {
        let message = "starts like a formula; the CSV export puts a `'` before it. Check that the name is meant so";
        warnings.push(Warning::of_value(place, field, &name, message.to_owned()));
    }
}
