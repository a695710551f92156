//! How a run reads its files.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::bounds::Bounds;
use super::names::comparable;
use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields};

/// What a run was told about reading; the default reads strictly.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The limits of what is read.
    pub bounds: Bounds,
    /// Passes over unknown columns and fields, with a warning that names them.
    pub ignore_unknown: bool,
    /// Columns and fields that have other names in the files.
    pub renames: Vec<Rename>,
    /// Keeps every fault, not just the first [`BadRows::MAX_KEPT`](super::BadRows::MAX_KEPT).
    pub all_faults: bool,
    /// Which of `renames` a file had a name for; noted while reading.
    pub met: RefCell<BTreeSet<usize>>,
}

impl Reading {
    /// Checks that names are said to stand for known fields.
    ///
    /// # Errors
    /// When one is not.
    pub fn check(&self) -> Result<(), UnknownField> {
        let known = |to: &str| {
            [ConferenceFields::table(), JournalFields::table(), OrganizationFields::table(), TagFields::table()]
                .iter()
                .any(|table| to == "id" || table.fields.iter().any(|field| field.column == to))
        };
        match self.renames.iter().find(|rename| !known(&rename.to)) {
            Some(rename) => Err(UnknownField { from: rename.from.clone(), to: rename.to.clone() }),
            None => Ok(()),
        }
    }

    /// The field that a name in a file was said to stand for.
    pub(super) fn renamed(&self, name: &str) -> Option<&str> {
        if self.renames.is_empty() {
            return None;
        }
        let name = comparable(name);
        let found = self.renames.iter().position(|rename| comparable(&rename.from) == name)?;
        self.met.borrow_mut().insert(found);
        Some(&self.renames[found].to)
    }

    /// Checks, once all files are read, that each name that was said to stand for a field is in one of them.
    ///
    /// # Errors
    /// When one is not: most likely it is misspelt.
    pub fn check_renames_met(&self) -> Result<(), UnmetRename> {
        let met = self.met.borrow();
        match self.renames.iter().enumerate().find(|(at, _)| !met.contains(at)) {
            Some((_, Rename { from, to })) => Err(UnmetRename { from: from.clone(), to: to.clone() }),
            None => Ok(()),
        }
    }
}

/// A name in the files and the column that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The name in the files; case, blanks, `_`, `-` and `.` do not count.
    pub from: String,
    /// The column, as exports name it.
    pub to: String,
}

/// A name is said to stand for a field that there is not.
#[derive(Debug, thiserror::Error)]
#[error("--map '{from}={to}': there is no field `{to}`; `medfeed template conferences` prints the known ones")]
pub struct UnknownField {
    from: String,
    to: String,
}

/// A name is said to stand for a field, and no file has it.
#[derive(Debug, thiserror::Error)]
#[error("--map '{from}={to}': no file has a column or field `{from}`; write the name as it stands there")]
pub struct UnmetRename {
    from: String,
    to: String,
}

/// The text is no renaming.
#[derive(Debug, thiserror::Error)]
#[error("write the name in the file, `=` and the field, such as 'Website=url'")]
pub struct NotARename;

impl std::str::FromStr for Rename {
    type Err = NotARename;

    fn from_str(text: &str) -> Result<Rename, NotARename> {
        // A name may contain `=`, a field does not.
        let (from, to) = text.rsplit_once('=').ok_or(NotARename)?;
        let (from, to) = (from.trim().to_owned(), to.trim().to_owned());
        if from.is_empty() || to.is_empty() { Err(NotARename) } else { Ok(Rename { from, to }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames_are_read() {
        let cases = [
            ("Website=url", Some(("Website", "url"))),
            (" a=b = url ", Some(("a=b", "url"))),
            ("Website", None),
            ("=url", None),
            ("Website=", None),
        ];
        for (text, expected) in cases {
            let read = text.parse::<Rename>().ok();
            assert_eq!(read.as_ref().map(|rename| (&*rename.from, &*rename.to)), expected, "{text:?}");
        }
    }
}
