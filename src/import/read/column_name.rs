//! The names of columns in options, and the letters of columns.

use std::fmt;

use rust_xlsxwriter::{column_name_to_number, column_number_to_name};

use crate::model::fold::comparable;

/// The name of a column in an option: its header, `header#2` for the second column with this header, or `=D` for the
/// column D. In JSON, it is a key, or several that are joined by dots.
#[derive(Clone, Debug)]
pub struct ColumnName {
    pub(in crate::import) text: String,
    comparable: String,
    /// The header and its number, from 1, in `header#2`.
    numbered: Option<(String, usize)>,
    /// The index in `=D`.
    pub(in crate::import) index: Option<usize>,
}

impl From<&str> for ColumnName {
    fn from(text: &str) -> ColumnName {
        let numbered = text.rsplit_once('#').and_then(|(header, number)| {
            Some((
                comparable(header),
                number.trim().parse().ok().filter(|number| *number > 0)?,
            ))
        });
        let index = text.trim().strip_prefix('=').and_then(index_of_letters);
        ColumnName {
            text: text.to_owned(),
            comparable: comparable(text),
            numbered,
            index,
        }
    }
}

impl fmt::Display for ColumnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for ColumnName {
    fn eq(&self, other: &ColumnName) -> bool {
        self.comparable == other.comparable
    }
}

impl ColumnName {
    /// Returns true if the name means a column, by its comparable header, the number of the columns with this header so
    /// far, and its index.
    pub(in crate::import) fn matches(
        &self,
        header: &str,
        number: usize,
        index: Option<usize>,
    ) -> bool {
        self.comparable == header && !header.is_empty()
            || self
                .numbered
                .as_ref()
                .is_some_and(|(name, wanted)| name == header && *wanted == number)
            || self.index.is_some() && self.index == index
    }

    /// Returns true if the name means one column, even if there are several with its header.
    pub(in crate::import) fn is_specific(&self) -> bool {
        self.numbered.is_some() || self.index.is_some()
    }
}

/// Returns true if a path is that of a member of the object at `of`.
pub(super) fn is_within(path: &str, of: &str) -> bool {
    path.as_bytes().get(of.len()) == Some(&b'.') && path.starts_with(of)
}

/// Returns the spreadsheet name of the column with this index: `A` for 0. No spreadsheet has more than 16,384 columns.
pub(in crate::import) fn column_letters(at: usize) -> String {
    column_number_to_name(u16::try_from(at.min(16_383)).unwrap_or_default())
}

/// Returns the index of the column with this spreadsheet name: 0 for `A`.
pub(in crate::import) fn index_of_letters(letters: &str) -> Option<usize> {
    let is_name =
        (1..=3).contains(&letters.len()) && letters.bytes().all(|byte| byte.is_ascii_alphabetic());
    let letters = letters.to_ascii_uppercase();
    is_name.then(|| column_name_to_number(&letters).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_letters_of_spreadsheets() {
        for (at, expected) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA")] {
            assert_eq!(column_letters(at), expected);
            assert_eq!(index_of_letters(expected), Some(at));
        }
        assert_eq!(index_of_letters("d"), Some(3));
        assert_eq!(index_of_letters(""), None);
        assert_eq!(index_of_letters("A1"), None);
    }

    #[test]
    fn column_names_match_headers() {
        let cases = [
            ("Journal name", "journalname", 1, Some(0), true),
            ("Publisher", "publisher", 2, Some(4), true),
            ("Publisher#2", "publisher", 2, Some(4), true),
            ("Publisher#2", "publisher", 1, Some(2), false),
            // A header that has the sign itself.
            ("Society #1", "society#1", 1, Some(2), true),
            ("=D", "", 1, Some(3), true),
            ("=D", "d", 1, Some(2), false),
            ("venue.name", "venuename", 1, None, true),
            ("", "", 1, Some(0), false),
        ];
        for (name, header, number, index, expected) in cases {
            let found = ColumnName::from(name).matches(header, number, index);
            assert_eq!(found, expected, "{name} {header} {number}");
        }
    }
}
