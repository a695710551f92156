//! Countries, whose names licenses and the filter `country` compare exactly.

use super::spellings::Vocabulary;
use crate::model::country::{self, comparable};

/// The vocabulary of countries, which licenses and the filter `country` use.
pub(super) static COUNTRIES: Vocabulary = Vocabulary {
    field: "country",
    kind: "country",
    remedy: "write the usual English name of one country, such as `Germany`, or leave the cell empty",
    rules: ["country_spelling", "country_spelling", "country_unknown"],
    comparable,
    known: &country::COUNTRIES,
    separators: &[],
    of_scope: |scope| scope.countries.as_ref(),
};
