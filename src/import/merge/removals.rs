//! The limit on removals in an import.

use std::fmt;

use crate::model::Dataset;

/// The options for merging.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeOptions {
    /// Whether to remove the records that are missing in the files, in each dataset that the files contain.
    pub replace: bool,
    /// The maximum number of removed records per dataset, if that is more than the default allows.
    pub allow_removals: Option<u64>,
    /// Whether lint reports all values of the rows, not only changed ones.
    pub lints_all: bool,
    /// Whether values that have exactly one right value are corrected.
    pub fix: bool,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_records_or_a_tenth_may_go() {
        let cases = [
            (0, 0, true),
            (10, 10, true),
            (10, 11, true),
            (11, 11, false),
            (11, 109, false),
            (11, 110, true),
            (11, 111, true),
            (12, 119, false),
            (100, 999, false),
            (100, 1_000, true),
            (101, 1_000, false),
        ];
        for (removed, stored, expected) in cases {
            let removals = Removals { dataset: Dataset::Journals, removed, stored };
            assert_eq!(removals.is_small(), expected, "{removed} of {stored}");
        }
    }

    #[test]
    fn the_permission_covers_each_dataset() {
        let of = |dataset, removed, stored| Removals { dataset, removed, stored };
        let refused = TooManyRemovals(vec![of(Dataset::Conferences, 11, 20), of(Dataset::Journals, 30, 40)]);
        let expected = "the import would remove 11 of 20 conferences and 30 of 40 journals; to allow that, add \
                        `--allow-removals 30`";
        assert_eq!(refused.to_string(), expected);
    }
}
