//! `GET /status`: needs no key.

use serde::Serialize;

use super::problem::{Code, Problem};
use super::representation::Representation;
use crate::contract::Query;
use crate::contract::parameters::NoParameters;
use crate::model::{Dataset, Timestamp};
use crate::store::Snapshot;

#[derive(Serialize)]
struct Status {
    status: &'static str,
    api_version: &'static str,
    time: String,
    datasets: Datasets,
}

#[derive(Serialize)]
struct Datasets {
    conferences: DatasetStatus,
    journals: DatasetStatus,
}

#[derive(Serialize)]
struct DatasetStatus {
    records: u64,
    last_change_at: Option<String>,
}

/// How large the whole datasets are, whatever any license shows of them.
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
        DatasetStatus { records: state.records, last_change_at: state.last_change_at.map(|time| time.to_string()) }
    };
    let status = Status {
        status: "ok",
        api_version: "v1",
        time: now.to_string(),
        datasets: Datasets { conferences: of(Dataset::Conferences), journals: of(Dataset::Journals) },
    };
    // A struct of texts and numbers always becomes JSON.
    let body = serde_json::to_vec(&status).unwrap_or_default();
    Ok(Representation::json(body))
}
