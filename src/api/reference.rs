//! `GET /reference/therapy-areas`, `/reference/tags` and `/reference/organizations`.

use serde::Serialize;

use super::caller::Caller;
use super::deferred::{Outcome, Wait};
use super::etag::ETag;
use super::params::Params;
use super::problem::Problem;
use super::representation::Representation;
use crate::model::Dataset;
use crate::query::reference::{list_organizations, list_tags, list_therapy_areas};
use crate::store::StoreError;
use crate::view::View;

#[derive(Serialize)]
struct Envelope<T> {
    data: Vec<T>,
}

/// Therapy areas of the license's conferences.
pub(super) fn therapy_areas(caller: &Caller, params: &Params<'_>, patience: Wait) -> Result<Outcome, Problem> {
    let view = caller.view(Dataset::Conferences)?;
    params.allow(&[])?;
    answer(&view, patience, list_therapy_areas)
}

/// Tags of a dataset's records in the license.
pub(super) fn tags(caller: &Caller, params: &Params<'_>, patience: Wait) -> Result<Outcome, Problem> {
    let view = view_of_parameter(caller, params, &["dataset", "type"])?;
    let kind = params.text("type")?;
    answer(&view, patience, |view| list_tags(view, kind.as_deref()))
}

/// Organizations of a dataset's records in the license.
pub(super) fn organizations(caller: &Caller, params: &Params<'_>, patience: Wait) -> Result<Outcome, Problem> {
    let view = view_of_parameter(caller, params, &["dataset"])?;
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

/// The view of the dataset that the parameter names. That it is not licensed is said before anything is said of the
/// other parameters.
fn view_of_parameter<'c>(caller: &'c Caller, params: &Params<'_>, allowed: &[&str]) -> Result<View<'c>, Problem> {
    let dataset = params.parsed::<Dataset>("dataset", "must be `conferences` or `journals`");
    let view = match &dataset {
        Ok(Some(dataset)) => Some(caller.view(*dataset)?),
        _ => None,
    };
    params.allow(allowed)?;
    dataset?;
    view.ok_or_else(|| Problem::invalid_parameter("dataset", "is required; send `conferences` or `journals`"))
}
