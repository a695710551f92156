//! The endpoints, and the body of `/status`. All support `GET`, and `HEAD` at the same cost.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use http::StatusCode;
use serde::Serialize;

use super::codes::Code::{
    self, InvalidCursor, InvalidSyncToken, NotFound, RecordNotFound, ResyncRequired,
};
use super::codes::{CODES, CodeInfo, CodeScope};
use super::parameters::{
    ChangesParameters, DATASET, ExportParameters, ID, IF_NONE_MATCH, IF_RANGE, ListParameters,
    Parameter, RANGE, ReferenceParameters,
};
use crate::model::Dataset::{self, Conferences, Journals};
use crate::model::{PerDataset, Timestamp};

/// An endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The path, with `{name}` for a parameter. Logs and metrics use it as the endpoint's name.
    pub pattern: &'static str,
    /// The content of the endpoint.
    pub resource: Resource,
    /// The name in generated clients.
    pub operation: &'static str,
    /// The purpose, in one line without a full stop.
    pub summary: &'static str,
    /// Further paragraphs in Markdown. Backticks are the only markup.
    pub description: &'static str,
    /// The query parameters.
    pub parameters: &'static [Parameter],
    /// The codes with [`CodeScope::Named`] that the endpoint returns.
    pub codes: &'static [Code],
}

/// The content of an endpoint.
#[allow(missing_docs, reason = "the names explain the other variants")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A page of records.
    List(Dataset),
    Record(Dataset),
    /// A page of a change feed.
    Changes(Dataset),
    Export,
    TherapyAreas,
    Tags,
    Organizations,
    Status,
    /// A page of the documentation, outside `/v1`.
    Docs,
    /// The explorer, outside `/v1`.
    Explorer,
}

impl Resource {
    /// Whether callers need a key.
    pub const fn needs_key(self) -> bool {
        !matches!(self, Resource::Status | Resource::Docs | Resource::Explorer)
    }

    /// Whether responses have an `ETag` and `If-None-Match` is supported.
    pub const fn is_revalidatable(self) -> bool {
        self.needs_key() && !matches!(self, Resource::Changes(_))
    }

    /// Whether `Range` is supported.
    pub const fn is_file(self) -> bool {
        matches!(self, Resource::Export)
    }
}

impl Endpoint {
    /// Returns the path below the base address, which ends in `/v1`.
    pub fn path(&self) -> &'static str {
        self.pattern.strip_prefix("/v1").unwrap_or(self.pattern)
    }

    /// Returns the parameters in the path, the query and the headers.
    pub fn all_parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        let names: Vec<&str> = self.pattern.split('/').filter_map(placeholder).collect();
        let in_path = [&DATASET, &ID]
            .into_iter()
            .filter(move |parameter| names.contains(&parameter.name));
        let header = self.resource.is_revalidatable().then_some(&IF_NONE_MATCH);
        let of_file = [&RANGE, &IF_RANGE]
            .into_iter()
            .filter(|_| self.resource.is_file());
        in_path.chain(self.parameters).chain(header).chain(of_file)
    }
}

/// Returns the name within `{name}`.
pub(super) fn placeholder(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

const LIST: Endpoint = Endpoint {
    description: "Records ordered by `id`, a page at a time. Filters combine with AND. Pass `next_cursor` as `cursor`, \
                  with the same filters, until `has_more` is false.",
    codes: &[InvalidCursor],
    ..PLAIN
};

const CHANGES: Endpoint = Endpoint {
    description: "Every record that was added, changed or removed after the token: each once, in its current state, \
                  oldest change first. For each entry, replace the local copy of this id by the entry, or delete it \
                  if the entry is a tombstone. Apply the page, save `next_sync_token`, and call again at once while \
                  `has_more` is true.\n\nWith neither `since` nor `updated_since`, `data` is empty and \
                  `next_sync_token` marks the present moment. A record can occasionally be delivered twice. When an \
                  organization or a tag changes, the records with it are delivered again.\n\nWith `resync=diff` the \
                  feed continues after a change of the license, instead of answering 410. 410 then remains for tokens \
                  of another license, and of a state of the data that no longer exists.\n\nWith `wait=30`, the answer \
                  waits up to 30 seconds for an entry; more than 45 means 45. It may come early and empty if too \
                  many callers wait, so leave a second between two empty pages. A change of the license, or the end \
                  of the key, is answered at once. Without `since` and `updated_since` there is no waiting.",
    parameters: ChangesParameters::ALL,
    codes: &[InvalidSyncToken, ResyncRequired],
    ..PLAIN
};

const RECORD: Endpoint = Endpoint {
    description: "A record outside the license, or a removed one, is answered like one that never existed.",
    codes: &[RecordNotFound, NotFound],
    ..PLAIN
};

const PLAIN: Endpoint = Endpoint {
    pattern: "",
    resource: Resource::Docs,
    operation: "",
    summary: "",
    description: "",
    parameters: &[],
    codes: &[],
};

pub(super) static DOCS: Endpoint = Endpoint {
    pattern: "/docs",
    ..PLAIN
};

pub(super) const DOC_PATTERNS: [&str; 6] = [
    "/openapi.json",
    "/docs",
    "/docs/page.js",
    "/docs/follow.py",
    "/docs/errors",
    "/docs/errors/{code}",
];

/// The explorer, with its page and files.
pub(super) static EXPLORER: Endpoint = Endpoint {
    pattern: "/",
    resource: Resource::Explorer,
    ..PLAIN
};

pub(super) const EXPLORER_PATTERNS: [&str; 7] = [
    "/",
    "/explorer/{file}",
    "/favicon.ico",
    "/favicon.svg",
    "/worker.js",
    "/forget",
    "/demo.json",
];

/// The endpoints under `/v1`. The parameters of lists are added in [`CONTRACT`].
const ENDPOINTS: [Endpoint; 11] = [
    Endpoint {
        pattern: "/v1/conferences",
        resource: Resource::List(Conferences),
        operation: "listConferences",
        summary: "A page of conferences",
        ..LIST
    },
    Endpoint {
        pattern: "/v1/conferences/changes",
        resource: Resource::Changes(Conferences),
        operation: "listConferenceChanges",
        summary: "Changes of conferences since a sync token",
        ..CHANGES
    },
    Endpoint {
        pattern: "/v1/conferences/{id}",
        resource: Resource::Record(Conferences),
        operation: "getConference",
        summary: "One of the conferences by its id",
        ..RECORD
    },
    Endpoint {
        pattern: "/v1/exports/{dataset}",
        resource: Resource::Export,
        operation: "exportDataset",
        summary: "A whole dataset as one file",
        description: "All visible records of the dataset as one file. `jsonl` is a gzip file of JSON Lines, one \
                      record per line in the form of the lists. `csv` is one flat table (UTF-8 with a byte-order \
                      mark, `formats.oral` as the column `formats_oral`, list items separated by `; `, booleans \
                      `TRUE` or `FALSE`), sent with `Content-Encoding: gzip`, which clients must accept.\n\nAfter \
                      loading the file, continue the change feed with `since` set to the header `X-Sync-Token`.\n\nA \
                      download that was interrupted can be resumed. The answer has a strong `ETag`. Send `Range` with \
                      the missing bytes, and the ETag in `If-Range`. Every answer, also 206 and 304, has the \
                      `X-Sync-Token` of the file.\n\nTwo headers verify a file or a copy (an extension). \
                      `Repr-Digest` is the SHA-256 of the file as it is sent. `X-Records-Digest` is the SHA-256 of \
                      its decompressed content. A client that stores each record's JSON unchanged can compute the \
                      latter: over all records in the order of ids, each followed by a line feed. `HEAD` returns \
                      both, and the sync token of that state, without the file.",
        parameters: ExportParameters::ALL,
        ..PLAIN
    },
    Endpoint {
        pattern: "/v1/journals",
        resource: Resource::List(Journals),
        operation: "listJournals",
        summary: "A page of journals",
        ..LIST
    },
    Endpoint {
        pattern: "/v1/journals/changes",
        resource: Resource::Changes(Journals),
        operation: "listJournalChanges",
        summary: "Changes of journals since a sync token",
        ..CHANGES
    },
    Endpoint {
        pattern: "/v1/journals/{id}",
        resource: Resource::Record(Journals),
        operation: "getJournal",
        summary: "One of the journals by its id",
        ..RECORD
    },
    Endpoint {
        pattern: "/v1/reference/organizations",
        resource: Resource::Organizations,
        operation: "listOrganizations",
        summary: "Organizations that visible records of a dataset are linked to",
        description: "Ordered by name.",
        parameters: ReferenceParameters::ALL.split_at(1).0,
        ..PLAIN
    },
    Endpoint {
        pattern: "/v1/reference/tags",
        resource: Resource::Tags,
        operation: "listTags",
        summary: "Tags that visible records of a dataset carry",
        description: "Ordered by type, then by name.",
        parameters: ReferenceParameters::ALL,
        ..PLAIN
    },
    Endpoint {
        pattern: "/v1/reference/therapy-areas",
        resource: Resource::TherapyAreas,
        operation: "listTherapyAreas",
        summary: "Therapy areas of the visible conferences",
        description: "Alphabetical. Needs the dataset `conferences` in the license.",
        ..PLAIN
    },
    Endpoint {
        pattern: "/v1/status",
        resource: Resource::Status,
        operation: "getStatus",
        summary: "Whether the service is up, and how large and recent the datasets are",
        description: "Needs no key, and does not count as a request of a key. The counts are those of the whole \
                      service, not of a license.",
        ..PLAIN
    },
];

/// The declaration of a service.
#[derive(Clone, Copy)]
pub struct Contract {
    /// The endpoints. A path belongs to the first one that it matches.
    pub endpoints: &'static [Endpoint],
    /// The error codes, by status.
    pub codes: &'static [CodeInfo],
}

/// The contract of this service. Only tests use other ones.
pub static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let mut endpoints = ENDPOINTS;
    for endpoint in &mut endpoints {
        if let Resource::List(dataset) = endpoint.resource {
            endpoint.parameters = ListParameters::of(dataset).leak();
        }
    }
    Contract {
        endpoints: endpoints.to_vec().leak(),
        codes: &CODES,
    }
});

impl Contract {
    /// Returns the error codes of an endpoint.
    pub fn codes_of(&self, endpoint: &Endpoint) -> impl Iterator<Item = &'static CodeInfo> {
        self.codes.iter().filter(|info| match info.scope {
            CodeScope::Every => true,
            CodeScope::Keyed => endpoint.resource.needs_key(),
            CodeScope::WithParameters => !endpoint.parameters.is_empty(),
            CodeScope::Named => endpoint.codes.contains(&info.code),
        })
    }

    /// Returns the statuses of an endpoint, ascending.
    pub fn statuses_of(&self, endpoint: &Endpoint) -> BTreeSet<StatusCode> {
        let revalidated = endpoint
            .resource
            .is_revalidatable()
            .then_some(StatusCode::NOT_MODIFIED);
        let of_file = [
            StatusCode::PARTIAL_CONTENT,
            StatusCode::RANGE_NOT_SATISFIABLE,
        ];
        let of_file = of_file.into_iter().filter(|_| endpoint.resource.is_file());
        let errors = self.codes_of(endpoint).map(|info| info.status);
        let of_every = [
            StatusCode::OK,
            StatusCode::URI_TOO_LONG,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ];
        of_every
            .into_iter()
            .chain(revalidated)
            .chain(of_file)
            .chain(errors)
            .collect()
    }
}

/// The body of `/status`, its members in the order of the JSON (contract, "GET /status").
#[derive(Serialize)]
pub struct StatusBody {
    /// `ok` if the API is up.
    pub status: &'static str,
    /// The API version in all paths.
    pub api_version: &'static str,
    /// The present time.
    pub time: String,
    /// The datasets, by name.
    pub datasets: PerDataset<DatasetBody>,
}

/// The size and age of a dataset.
#[derive(Serialize)]
pub struct DatasetBody {
    /// The number of records.
    pub records: u64,
    /// The time of the last change.
    pub last_change_at: Option<String>,
}

impl StatusBody {
    /// Returns the body for a service that is up.
    pub fn up(now: Timestamp, datasets: PerDataset<DatasetBody>) -> StatusBody {
        StatusBody {
            status: "ok",
            api_version: "v1",
            time: now.to_string(),
            datasets,
        }
    }
}

impl DatasetBody {
    /// Builds the member of a dataset.
    pub fn new(records: u64, last_change_at: Option<Timestamp>) -> DatasetBody {
        DatasetBody {
            records,
            last_change_at: last_change_at.map(|time| time.to_string()),
        }
    }
}
