//! The body of `/status`.

use serde::Serialize;

use crate::model::Timestamp;

/// The body of `/status`, its members in the order of the JSON (contract, "GET /status").
#[derive(Clone, Debug, Serialize)]
pub struct StatusBody {
    /// `ok` if the API is up.
    pub status: &'static str,
    /// The API version in all paths.
    pub api_version: &'static str,
    /// The present time.
    pub time: String,
    /// The datasets, by name.
    pub datasets: DatasetsBody,
}

/// The datasets of the whole service.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "named by the contract")]
pub struct DatasetsBody {
    pub conferences: DatasetBody,
    pub journals: DatasetBody,
}

/// The size and age of a dataset.
#[derive(Clone, Debug, Serialize)]
pub struct DatasetBody {
    /// The number of records.
    pub records: u64,
    /// The time of the last change.
    pub last_change_at: Option<String>,
}

impl StatusBody {
    /// Returns the body for a service that is up.
    pub fn up(now: Timestamp, datasets: DatasetsBody) -> StatusBody {
        StatusBody { status: "ok", api_version: "v1", time: now.to_string(), datasets }
    }
}

impl DatasetBody {
    /// Builds the member of a dataset.
    pub fn new(records: u64, last_change_at: Option<Timestamp>) -> DatasetBody {
        DatasetBody { records, last_change_at: last_change_at.map(|time| time.to_string()) }
    }
}
