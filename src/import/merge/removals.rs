//! How much of the stored data a run may remove.

use std::fmt;

use crate::import::lint::Extent;
use crate::model::Dataset;

/// What the operator allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeOptions {
    /// Remove the records of the given datasets that the files do not hold.
    pub replace: bool,
    /// Up to how many records of a dataset may be removed, where that is many.
    pub allow_removals: Option<u64>,
    /// What lint tells of.
    pub extent: Extent,
}

/// The datasets of which a run would remove more than a tenth, and more than ten records.
#[derive(Debug)]
pub struct TooManyRemovals(pub(super) Vec<Removals>);

/// How many records of a dataset a run removes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removals {
    pub dataset: Dataset,
    pub removed: usize,
    pub stored: usize,
}

impl Removals {
    /// Whether they are few enough not to look like a mistake.
    pub fn is_small(self) -> bool {
        self.removed <= 10 || self.removed.saturating_mul(10) <= self.stored
    }
}

impl TooManyRemovals {
    /// The smallest `--allow-removals` that covers the run.
    pub fn needed(&self) -> usize {
        self.0.iter().map(|removals| removals.removed).max().unwrap_or_default()
    }
}

impl fmt::Display for TooManyRemovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the run would remove ")?;
        for (at, Removals { dataset, removed, stored }) in self.0.iter().enumerate() {
            write!(f, "{}{removed} of {stored} {dataset}", if at > 0 { " and " } else { "" })?;
        }
        write!(f, "; if that is meant, give `--allow-removals {}`", self.needed())
    }
}
