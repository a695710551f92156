//! `GET /reference/therapy-areas`, `/reference/tags` and `/reference/organizations`.

use std::sync::Arc;

use serde::Serialize;

use super::caller::Caller;
use super::content::{Content, Document};
use super::etag::ETag;
use super::params::Params;
use super::problem::Problem;
use super::response::Response;
use crate::model::{Dataset, LicenseId};
use crate::query::recent::Recent;
use crate::query::reference::{list_organizations, list_tags, list_therapy_areas};
use crate::store::StoreError;
use crate::view::{View, Witness};

/// What the lists that are kept may take, in bytes of JSON.
const KEPT_BYTES_MOST: usize = 32 << 20;

/// One of the lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum List {
    TherapyAreas,
    Tags(Option<String>),
    Organizations,
}

/// A list as a license gets it, and what it rests on: while that is the same, so is the list.
#[derive(Clone, Debug)]
struct Made {
    witness: Witness,
    document: Arc<Document>,
    etag: ETag,
}

/// The lists that were made.
#[derive(Debug)]
pub(super) struct ReferenceLists {
    kept: Recent<(LicenseId, Dataset, List), Made>,
}

impl Default for ReferenceLists {
    fn default() -> ReferenceLists {
        ReferenceLists { kept: Recent::new(KEPT_BYTES_MOST) }
    }
}

#[derive(Serialize)]
struct Envelope<T> {
    data: Vec<T>,
}

fn json<T: Serialize>(data: Vec<T>) -> Vec<u8> {
    // Structs of texts and numbers always become JSON.
    serde_json::to_vec(&Envelope { data }).unwrap_or_default()
}

impl ReferenceLists {
    /// Therapy areas of the license's conferences.
    pub fn therapy_areas(&self, caller: &Caller, params: &Params<'_>) -> Result<Response, Problem> {
        let view = caller.view(Dataset::Conferences)?;
        params.allow(&[])?;
        Ok(self.answer(&view, List::TherapyAreas)?)
    }

    /// Tags of a dataset's records in the license.
    pub fn tags(&self, caller: &Caller, params: &Params<'_>) -> Result<Response, Problem> {
        let view = view_of_parameter(caller, params, &["dataset", "type"])?;
        Ok(self.answer(&view, List::Tags(params.text("type")?))?)
    }

    /// Organizations of a dataset's records in the license.
    pub fn organizations(&self, caller: &Caller, params: &Params<'_>) -> Result<Response, Problem> {
        let view = view_of_parameter(caller, params, &["dataset"])?;
        Ok(self.answer(&view, List::Organizations)?)
    }

    fn answer(&self, view: &View<'_>, list: List) -> Result<Response, StoreError> {
        let Made { document, etag, .. } = self.find(view, list)?;
        Ok(Response::revalidatable(Content::Document(document), etag))
    }

    fn find(&self, view: &View<'_>, list: List) -> Result<Made, StoreError> {
        let witness = view.witness()?;
        let key = (view.license().id, view.dataset(), list);
        if let Some(made) = self.kept.get(&key).filter(|made| made.witness == witness) {
            return Ok(made);
        }
        let body = match &key.2 {
            List::TherapyAreas => json(list_therapy_areas(view)?),
            List::Tags(kind) => json(list_tags(view, kind.as_deref())?),
            List::Organizations => json(list_organizations(view)?),
        };
        let etag = ETag::of("reference", [body.as_slice()]);
        // What a key and its row take counts too: tag types are the caller's own words.
        let bytes = body.len() + 512;
        let made = Made { witness, document: Arc::new(Document::new(body)), etag };
        self.kept.put(key, made.clone(), bytes);
        Ok(made)
    }
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
