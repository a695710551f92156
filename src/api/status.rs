//! `GET /status`, without a key.

use super::problem::{Code, Problem};
use super::representation::Representation;
use crate::contract::Query;
use crate::contract::parameters::NoParameters;
use crate::contract::{DatasetBody, StatusBody};
use crate::model::{PerDataset, Timestamp};
use crate::store::Snapshot;

/// The totals of the whole datasets, regardless of licenses.
pub(super) fn status(
    snapshot: &Snapshot,
    readable: bool,
    query: &Query<'_>,
    now: Timestamp,
) -> Result<Representation, Problem> {
    query.parse::<NoParameters>()?;
    if !readable {
        return Err(Code::Unavailable.into());
    }
    let of = |dataset| {
        let state = snapshot.dataset_state(dataset);
        DatasetBody::new(state.records, state.last_change_at)
    };
    let datasets = PerDataset::of(of);
    let status = StatusBody::up(now, datasets);
    let body = serde_json::to_vec(&status).unwrap_or_default();
    Ok(Representation::json(body))
}
