//! A caller who passed the checks of key, address and rate.

use std::sync::Arc;

use super::problem::{Code, Problem};
use crate::model::{Dataset, License};
use crate::store::Snapshot;
use crate::view::View;

/// A caller whose key, address and rate have passed.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub snapshot: Arc<Snapshot>,
    pub license: Arc<License>,
}

impl Caller {
    /// The caller's view of a dataset.
    pub fn view(&self, dataset: Dataset) -> Result<View<'_>, Problem> {
        View::open(&self.snapshot, &self.license, dataset).map_err(|_| {
            Problem::new(
                Code::DatasetNotLicensed,
                format!("The license of this API key does not include the dataset `{dataset}`. Ask the operator for a license that does."),
            )
        })
    }
}
