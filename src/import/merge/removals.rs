//! The limit on removals in an import.

use std::fmt;

use crate::import::lint::Extent;
use crate::model::Dataset;

/// The options for merging.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeOptions {
    /// Whether to remove the records that are missing in the files, in each dataset that the files contain.
    pub replace: bool,
    /// The maximum number of removed records per dataset, if that is more than the default allows.
    pub allow_removals: Option<u64>,
    /// The rows that lint reports.
    pub extent: Extent,
}

/// The datasets that would lose more than ten records and more than a tenth of their records.
#[derive(Debug)]
pub struct TooManyRemovals(pub(super) Vec<Removals>);

/// The number of records of a dataset that an import removes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removals {
    pub dataset: Dataset,
    pub removed: usize,
    pub stored: usize,
}

impl Removals {
    /// Returns true if the removals need no permission.
    pub fn is_small(self) -> bool {
        self.removed <= 10 || self.removed.saturating_mul(10) <= self.stored
    }
}

impl TooManyRemovals {
    /// The smallest `--allow-removals` that permits the import.
    pub fn needed(&self) -> usize {
        self.0.iter().map(|removals| removals.removed).max().unwrap_or_default()
    }
}

impl fmt::Display for TooManyRemovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the import would remove ")?;
        for (at, Removals { dataset, removed, stored }) in self.0.iter().enumerate() {
            write!(f, "{}{removed} of {stored} {dataset}", if at > 0 { " and " } else { "" })?;
        }
        write!(f, "; to allow that, add `--allow-removals {}`", self.needed())
    }
}
