//! A checked request: the handler to run, with its parsed parameters.

use std::time::Instant;

use super::answers::CachedAnswer;
use super::auth::Caller;
use super::changes::{self, FeedQuery};
use super::problem::Problem;
use super::records;
use super::response::accepts_gzip;
use super::source::SnapshotSource;
use crate::api::request::Request;
use crate::contract::parameters::{
    self, ExportParameters, ListParameters, NoParameters, ReferenceParameters,
};
use crate::contract::{Query, Resource, Route};
use crate::model::{Dataset, ExportFormat, Id};
use crate::query::reference::{list_organizations, list_tags, list_therapy_areas};
use crate::query::segments::SegmentCache;

/// The kind of permit that a job needs to run on a blocking thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitKind {
    Read,
    /// To poll the file or the origin for newer commits.
    CatchUp,
    Export,
}

/// A handler with its input. Running it consumes the job, so a handler runs once.
#[derive(Debug)]
pub struct Job {
    pub(super) caller: Caller,
    pattern: &'static str,
    dataset: Dataset,
    handler: Handler,
    pub(super) wants_gzip: bool,
    /// The time of the check. A poll that begins later finds every commit that the caller can have seen elsewhere.
    asked_at: Instant,
}

#[derive(Debug)]
enum Handler {
    List(ListParameters),
    Record(Option<Id>),
    Changes(FeedQuery),
    Export(ExportFormat),
    TherapyAreas,
    Tags(Option<String>),
    Organizations,
}

impl Job {
    /// Parses a request of a caller. Returns 403 for an unlicensed dataset, before it checks the parameters (400).
    pub(super) fn parse(caller: Caller, request: &Request, route: &Route) -> Result<Job, Problem> {
        let query = &Query::of(route.endpoint, request.query());
        let dataset = match route.endpoint.resource {
            Resource::List(dataset) | Resource::Record(dataset) | Resource::Changes(dataset) => {
                Some(dataset)
            }
            Resource::Export => Some(parameters::DATASET.parse(&route.value)?),
            Resource::TherapyAreas => Some(Dataset::Conferences),
            _ => query.dataset(),
        };
        if let Some(dataset) = dataset {
            caller.view(dataset)?;
        }
        let none = || query.parse::<NoParameters>();
        let handler = match route.endpoint.resource {
            Resource::List(_) => Handler::List(query.parse()?),
            Resource::Record(_) => {
                none().map(|_| Handler::Record(route.value.trim_start_matches('0').parse().ok()))?
            }
            Resource::Changes(dataset) => {
                Handler::Changes(FeedQuery::parse(&caller, dataset, query)?)
            }
            Resource::Export => Handler::Export(query.parse::<ExportParameters>()?.format),
            Resource::TherapyAreas => none().map(|_| Handler::TherapyAreas)?,
            Resource::Tags => Handler::Tags(query.parse::<ReferenceParameters>()?.r#type),
            Resource::Organizations => query
                .parse::<ReferenceParameters>()
                .map(|_| Handler::Organizations)?,
            Resource::Docs | Resource::Explorer | Resource::Status => {
                return Err(Problem::internal("it has no handler"));
            }
        };
        let dataset = dataset.ok_or_else(|| Problem::internal("a request without a dataset"))?;
        let pattern = route.endpoint.pattern;
        let wants_gzip = accepts_gzip(&request.headers);
        Ok(Job {
            caller,
            pattern,
            dataset,
            handler,
            wants_gzip,
            asked_at: Instant::now(),
        })
    }

    /// The permit that it needs; `None` if it reads only memory. Such a job takes well under a millisecond, and a
    /// thread for it would cost as much as the job.
    pub(super) fn permit(&self) -> Result<Option<PermitKind>, Problem> {
        let reads_tables = match &self.handler {
            Handler::Export(_) => return Ok(Some(PermitKind::Export)),
            Handler::Changes(query) => {
                return Ok((!query.is_poll(&self.caller)?).then_some(PermitKind::Read));
            }
            Handler::List(parameters) => parameters.updated_since.is_some(),
            Handler::Record(_) | Handler::TherapyAreas => false,
            Handler::Tags(_) | Handler::Organizations => !self.caller.snapshot.has_references(),
        };
        let is_fast = !reads_tables && self.caller.view(self.dataset)?.is_loaded();
        Ok((!is_fast).then_some(PermitKind::Read))
    }

    /// Whether its sync token, if any, is valid in the caller's snapshot. It may block.
    pub(super) fn has_valid_token(&self) -> Result<bool, Problem> {
        let Handler::Changes(query) = &self.handler else {
            return Ok(true);
        };
        Ok(query.is_valid_in(&self.caller.snapshot, &self.caller.license)?)
    }

    /// Moves the job to a newer snapshot, in which its sync token is valid.
    pub(super) fn catch_up(self, source: &dyn SnapshotSource) -> Result<Job, Problem> {
        let Handler::Changes(query) = &self.handler else {
            return Ok(self);
        };
        let caller = query.catch_up(&self.caller, source, self.asked_at)?;
        Ok(Job { caller, ..self })
    }

    /// Runs the handler. Compresses the answer if the caller accepts gzip.
    pub(super) fn run(self, segments: &SegmentCache) -> Result<CachedAnswer, Problem> {
        let Job {
            caller,
            pattern,
            dataset,
            handler,
            wants_gzip,
            ..
        } = self;
        let view = caller.view(dataset)?;
        let gzip = wants_gzip.then_some(segments);
        let representation = match handler {
            Handler::List(parameters) => records::list(&caller, dataset, parameters, gzip)?,
            Handler::Record(id) => records::single(&caller, dataset, id)?,
            Handler::Changes(query) => changes::changes(&caller, dataset, &query, gzip)?,
            Handler::Export(format) => records::export(&caller, dataset, format, segments)?,
            Handler::TherapyAreas => records::reference_list(&list_therapy_areas(&view)?),
            Handler::Tags(kind) => records::reference_list(&list_tags(&view, kind.as_deref())?),
            Handler::Organizations => records::reference_list(&list_organizations(&view)?),
        };
        if wants_gzip {
            representation.gzip();
        }
        let depends_on = Some((dataset, view.witness()?));
        Ok(CachedAnswer {
            pattern,
            depends_on,
            representation,
        })
    }
}
