//! `GET /reference/therapy-areas`, `/reference/tags` and `/reference/organizations`.

use std::sync::Arc;

use serde::Serialize;

use super::caller::Caller;
use super::content::{Content, Document};
use super::deferred::{Outcome, Wait};
use super::etag::ETag;
use super::problem::Problem;
use super::response::Response;
use crate::contract::Query;
use crate::contract::parameters::{NoParameters, ReferenceParameters};
use crate::model::{Dataset, LicenseId};
use crate::query::recent::Recent;
use crate::query::reference::{list_organizations, list_tags, list_therapy_areas};
use crate::store::StoreError;
use crate::view::{View, Witness};

/// What the lists that are kept may take in memory, in bytes.
const KEPT_BYTES_MOST: usize = 32 << 20;

/// Which list it is.
type Key = (LicenseId, Dataset, List);

/// What a list takes in memory beside its texts: its row, in a table of which more than half may be empty, and what stands
/// around each text.
const LIST_BYTES: usize = size_of::<(Key, (Made, usize))>() * 16 / 7 + size_of::<Document>() + 128;

/// What a key holds beside its row: tag types are the caller's own words.
fn heap_bytes(key: &Key) -> usize {
    match &key.2 {
        List::Tags(Some(kind)) => kind.capacity(),
        List::TherapyAreas | List::Tags(None) | List::Organizations => 0,
    }
}

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
    kept: Recent<Key, Made>,
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
    pub fn therapy_areas(&self, caller: &Caller, query: &Query<'_>, patience: Wait) -> Result<Outcome, Problem> {
        let view = caller.view(Dataset::Conferences)?;
        query.parse::<NoParameters>()?;
        Ok(self.answer(&view, List::TherapyAreas, patience)?)
    }

    /// Tags of a dataset's records in the license.
    pub fn tags(&self, caller: &Caller, query: &Query<'_>, patience: Wait) -> Result<Outcome, Problem> {
        let (view, kind) = view_of_parameter(caller, query)?;
        Ok(self.answer(&view, List::Tags(kind), patience)?)
    }

    /// Organizations of a dataset's records in the license.
    pub fn organizations(&self, caller: &Caller, query: &Query<'_>, patience: Wait) -> Result<Outcome, Problem> {
        let (view, _) = view_of_parameter(caller, query)?;
        Ok(self.answer(&view, List::Organizations, patience)?)
    }

    fn answer(&self, view: &View<'_>, list: List, patience: Wait) -> Result<Outcome, StoreError> {
        if patience < Wait::Reading && !view.is_ready() {
            return Ok(Outcome::Later(Wait::Reading));
        }
        let witness = view.witness()?;
        let key = (view.license().id, view.dataset(), list);
        let made = match self.kept.get(&key).filter(|made| made.witness == witness) {
            Some(made) => made,
            None => {
                let wait = if view.has_columns() { Wait::Reading } else { Wait::Building };
                if patience < wait {
                    return Ok(Outcome::Later(wait));
                }
                self.make(view, key, witness)?
            }
        };
        Ok(Response::revalidatable(Content::Document(made.document), made.etag).into())
    }

    fn make(&self, view: &View<'_>, key: Key, witness: Witness) -> Result<Made, StoreError> {
        let body = match &key.2 {
            List::TherapyAreas => json(list_therapy_areas(view)?),
            List::Tags(kind) => json(list_tags(view, kind.as_deref())?),
            List::Organizations => json(list_organizations(view)?),
        };
        let etag = ETag::of("reference", [body.as_slice()]);
        let bytes = body.len();
        let made = Made { witness, document: Arc::new(Document::new(body)), etag };
        self.keep(key, made.clone(), bytes);
        Ok(made)
    }

    fn keep(&self, key: Key, made: Made, body_bytes: usize) {
        // Beside the body comes its compressed form, once somebody takes it so.
        let bytes = LIST_BYTES + heap_bytes(&key) + body_bytes + body_bytes / 3;
        self.kept.put(key, made, bytes);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_long_types_stay_within_their_bound() {
        for length in [1, 300, 4_000] {
            let lists = ReferenceLists::default();
            for number in 0..80_000_000 / (400 + length) {
                let mut kind = String::with_capacity(length + 8);
                kind.push_str(&format!("{number:08}"));
                kind.extend(std::iter::repeat_n('x', length));
                let body = json::<u8>(Vec::new());
                let etag = ETag::of("reference", [body.as_slice()]);
                let witness = Witness { seq: 1, lineage: [0; 16] };
                let key: Key = (LicenseId(1), Dataset::Journals, List::Tags(Some(kind)));
                lists.keep(key, Made { witness, document: Arc::new(Document::new(body)), etag }, 11);
            }
            let mut bytes = lists.kept.places() * (size_of::<(Key, (Made, usize))>() + 1);
            lists.kept.for_each(|(_, _, list), _| {
                let List::Tags(Some(kind)) = list else { panic!("{list:?} was not made") };
                // The type; the document, its text and its tag, each rounded as allocators do it.
                bytes += kind.capacity().next_multiple_of(16) + 16 + size_of::<Document>() + 32 + 32 + 48;
            });
            assert!(bytes <= KEPT_BYTES_MOST, "types of {length} letters: {bytes} bytes are kept");
            assert!(bytes >= KEPT_BYTES_MOST / 4, "types of {length} letters: only {bytes} bytes are kept");
        }
    }
}
