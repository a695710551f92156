//! An authenticated caller.

use std::sync::Arc;

use super::answers::CachedAnswer;
use super::problem::{Code, Problem};
use crate::model::{Dataset, License, Witness};
use crate::store::Snapshot;
use crate::view::View;

/// The snapshot and license of a request with a usable key.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub snapshot: Arc<Snapshot>,
    pub license: Arc<License>,
}

impl Caller {
    /// Whether an answer for the caller's license is still current. It must not read the disk: the cache calls it under
    /// its lock.
    pub fn is_current(&self, answer: &CachedAnswer) -> bool {
        let Some((dataset, witness)) = &answer.depends_on else { return true };
        self.has_witness(*dataset, witness)
    }

    /// Whether a witness is the current one. It does not read the disk.
    pub fn has_witness(&self, dataset: Dataset, witness: &Witness) -> bool {
        let view = View::open(&self.snapshot, &self.license, dataset).ok();
        view.and_then(|view| view.known_witness()).as_ref() == Some(witness)
    }

    /// The caller's view of a dataset. Returns a 403 if it is not licensed.
    pub fn view(&self, dataset: Dataset) -> Result<View<'_>, Problem> {
        View::open(&self.snapshot, &self.license, dataset).map_err(|_| {
            Problem::new(
                Code::DatasetNotLicensed,
                format!("The license of this API key does not include the dataset `{dataset}`. Ask the operator for a license that does."),
            )
        })
    }
}
