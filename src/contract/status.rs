//! The body of `/status`.

use serde::Serialize;

use crate::model::Timestamp;

/// What `/status` says, its members in their order (the contract, "GET /status").
#[derive(Clone, Debug, Serialize)]
pub struct StatusBody {
    /// `ok` when the API is up.
    pub status: &'static str,
    /// The version in every path.
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

/// How large and how recent a dataset is.
#[derive(Clone, Debug, Serialize)]
pub struct DatasetBody {
    /// How many records it has.
    pub records: u64,
    /// When its content last changed.
    pub last_change_at: Option<String>,
}

impl StatusBody {
    /// The status of a service that is up.
    pub fn up(now: Timestamp, datasets: DatasetsBody) -> StatusBody {
        StatusBody { status: "ok", api_version: "v1", time: now.to_string(), datasets }
    }
}

impl DatasetBody {
    /// A dataset of so many records.
    pub fn new(records: u64, last_change_at: Option<Timestamp>) -> DatasetBody {
        DatasetBody { records, last_change_at: last_change_at.map(|time| time.to_string()) }
    }
}
