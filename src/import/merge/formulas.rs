//! Names that a spreadsheet would compute.

use crate::import::report::{Finding, MAX_WARNINGS, Position};
use crate::model::flat::looks_like_formula;
use crate::model::{Curated, Fields};

/// Warns of a new name that a spreadsheet would compute.
pub(super) fn warn_of_formulas<F: Fields>(
    position: &Position,
    field: &str,
    before: Option<&Curated<F>>,
    after: &Curated<F>,
    warnings: &mut Vec<Finding>,
) {
    let name = after.fields().name();
    if looks_like_formula(name)
        && warnings.len() < MAX_WARNINGS
        && before.is_none_or(|before| before.fields().name() != name)
    {
        let message = "starts like a formula; the CSV export puts a `'` before it. Check that the name is meant so";
        warnings.push(Finding::new(position, Some(field), Some(name), message));
    }
}
