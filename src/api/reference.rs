//! `GET /reference/therapy-areas`, `/reference/tags` and `/reference/organizations`.

use serde::Serialize;

use super::caller::Caller;
use super::deferred::{Outcome, Wait};
use super::etag::ETag;
use super::problem::Problem;
use super::representation::Representation;
use crate::contract::Query;
use crate::contract::parameters::{NoParameters, ReferenceParameters};
use crate::model::Dataset;
use crate::query::reference::{list_organizations, list_tags, list_therapy_areas};
use crate::store::StoreError;
use crate::view::View;

#[derive(Serialize)]
struct Envelope<T> {
    data: Vec<T>,
}

/// Therapy areas of the license's conferences.
pub(super) fn therapy_areas(caller: &Caller, query: &Query<'_>, patience: Wait) -> Result<Outcome, Problem> {
    let view = caller.view(Dataset::Conferences)?;
    query.parse::<NoParameters>()?;
    answer(&view, patience, list_therapy_areas)
}

/// Tags of a dataset's records in the license.
pub(super) fn tags(caller: &Caller, query: &Query<'_>, patience: Wait) -> Result<Outcome, Problem> {
    let (view, kind) = view_of_parameter(caller, query)?;
    answer(&view, patience, |view| list_tags(view, kind.as_deref()))
}

/// Organizations of a dataset's records in the license.
pub(super) fn organizations(caller: &Caller, query: &Query<'_>, patience: Wait) -> Result<Outcome, Problem> {
    let (view, _) = view_of_parameter(caller, query)?;
    answer(&view, patience, list_organizations)
}

fn answer<T: Serialize>(
    view: &View<'_>,
    patience: Wait,
    list: impl FnOnce(&View<'_>) -> Result<Vec<T>, StoreError>,
) -> Result<Outcome, Problem> {
    let wait = if view.has_columns() { Wait::Reading } else { Wait::Building };
    if patience < wait {
        return Ok(Outcome::Later(wait));
    }
    // Structs of texts and numbers always become JSON.
    let body = serde_json::to_vec(&Envelope { data: list(view)? }).unwrap_or_default();
    let etag = ETag::of("reference", [body.as_slice()]);
    Ok(Outcome::made(view, Representation::revalidatable(body, etag))?)
}

/// The view of the dataset that the parameter names, and the type. That the dataset is not licensed is said before anything
/// is said of the parameters.
fn view_of_parameter<'c>(caller: &'c Caller, query: &Query<'_>) -> Result<(View<'c>, Option<String>), Problem> {
    if let Some(dataset) = query.dataset() {
        caller.view(dataset)?;
    }
    let ReferenceParameters { dataset, r#type } = query.parse()?;
    Ok((caller.view(dataset)?, r#type))
}
