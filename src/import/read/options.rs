//! Options for reading files.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::import::read::bounds::Bounds;
use crate::import::read::cells::{DateOrder, DecimalSign};
use crate::model::field::FieldTable;
use crate::model::fold::comparable;
use crate::model::value::ValueKind;
use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields};

/// The columns that the field `issn` of `--match` compares crosswise.
pub(in crate::import) const ISSN_COLUMNS: [&str; 2] = ["issn_print", "issn_online"];

/// Returns the columns that a field of `--match` compares.
pub(in crate::import) fn columns_of(field: &str) -> Vec<&str> {
    if field == "issn" { ISSN_COLUMNS.to_vec() } else { vec![field] }
}

/// Options for reading files.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The limits on the input.
    pub bounds: Bounds,
    /// Whether to ignore unknown columns and fields, with a warning.
    pub ignore_unknown: bool,
    /// The columns and fields that have other names in the files.
    pub renames: Vec<Rename>,
    /// The fields that identify records in files without ids; empty if each row must have an id.
    pub matching: Vec<String>,
    /// The decimal sign of ambiguous numbers.
    pub decimal: Option<DecimalSign>,
    /// The order of day and month in ambiguous dates.
    pub dates: Option<DateOrder>,
    /// Whether to keep all faults, not only the first [`BadRows::MAX_KEPT`](crate::import::BadRows::MAX_KEPT).
    pub all_faults: bool,
    /// The indexes of the `renames` that a file used. Updated while reading.
    pub used_renames: RefCell<BTreeSet<usize>>,
}

impl ReadOptions {
    /// Checks that the options are consistent and name known fields.
    pub fn check(&self) -> Result<(), BadReading> {
        let has = |tables: &[&FieldTable], name: &str| {
            tables.iter().any(|table| table.fields.iter().any(|field| field.column == name))
        };
        let records = [ConferenceFields::table(), JournalFields::table()];
        let all = [records[0], records[1], OrganizationFields::table(), TagFields::table()];
        let known = |to: &str| ["id", "deleted"].contains(&to) || has(&all, to);
        if let Some(Rename { from, to }) = self.renames.iter().find(|rename| !known(&rename.to)) {
            return Err(BadReading::UnknownField { from: from.clone(), to: to.clone() });
        }
        for (at, Rename { from, to }) in self.renames.iter().enumerate() {
            let twice =
                self.renames[..at].iter().find(|one| comparable(&one.from) == comparable(from) && one.to != *to);
            if let Some(other) = twice {
                return Err(BadReading::TwoFields { from: from.clone(), to: to.clone(), other: other.to.clone() });
            }
        }
        if let Some(name) = self.matching.iter().find(|name| !has(&records, columns_of(name)[0])) {
            return Err(BadReading::UnknownMatch { name: name.clone() });
        }
        let mut links =
            records.iter().flat_map(|table| &table.fields).filter(|field| matches!(field.kind, ValueKind::Links(_)));
        if let Some(field) = links.find(|field| self.matching.contains(&field.column)) {
            return Err(BadReading::MatchedLinks { name: field.column.clone() });
        }
        Ok(())
    }

    /// Returns the columns that the fields of `--match` compare.
    pub(in crate::import) fn matched_columns(&self) -> impl Iterator<Item = &str> {
        self.matching.iter().flat_map(|field| columns_of(field))
    }

    /// Returns the field that `--map` assigns to a name in a file.
    pub(in crate::import) fn renamed(&self, name: &str) -> Option<&str> {
        if self.renames.is_empty() {
            return None;
        }
        let name = comparable(name);
        let found = self.renames.iter().position(|rename| comparable(&rename.from) == name)?;
        self.used_renames.borrow_mut().insert(found);
        Some(&self.renames[found].to)
    }

    /// Checks that each rename was used, after all files are read. An unused one probably has a typo.
    pub fn check_renames_used(&self) -> Result<(), UnusedRename> {
        let used = self.used_renames.borrow();
        match self.renames.iter().enumerate().find(|(at, _)| !used.contains(at)) {
            Some((_, Rename { from, to })) => Err(UnusedRename { from: from.clone(), to: to.clone() }),
            None => Ok(()),
        }
    }
}

/// The name of a field in the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The name in the files. Comparison ignores case, blanks, `_`, `-` and `.`.
    pub from: String,
    /// The name of the column in exports.
    pub to: String,
}

/// The error of options that contradict each other or name an unknown field.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BadReading {
    #[error("--map '{from}={to}': there is no field `{to}`; `medfeed template conferences` prints the known ones")]
    UnknownField { from: String, to: String },
    #[error("--map '{from}={to}': `{from}` is already mapped to `{other}`; map each name to one field")]
    TwoFields { from: String, to: String, other: String },
    #[error(
        "--match {name}: conferences and journals have no field `{name}`; `medfeed template conferences` prints the known ones"
    )]
    UnknownMatch { name: String },
    #[error("--match {name}: links to {name} do not identify a record; choose other fields, such as `name,year`")]
    MatchedLinks { name: String },
}

/// The error of a rename that no file uses.
#[derive(Debug, thiserror::Error)]
#[error("--map '{from}={to}': no file has a column or field `{from}`; write the name as it is in the file")]
pub struct UnusedRename {
    from: String,
    to: String,
}

/// The error of a text that is not a rename.
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
    fn options_are_checked() {
        let options = |renames: &[&str], matching: &[&str]| ReadOptions {
            renames: renames.iter().map(|rename| rename.parse().unwrap()).collect(),
            matching: matching.iter().map(|name| (*name).to_owned()).collect(),
            ..ReadOptions::default()
        };
        let cases: [(&[&str], &[&str], &str); 12] = [
            (&["Website=url", "Kind=type", "No=id", "Gone=deleted"], &["name"; 8], ""),
            (&["Website=link"], &[], "there is no field `link`"),
            // A field that only the second kind of records has.
            (&["Rank=sjr"], &["issn_print"], ""),
            (&[], &["issn", "name"], ""),
            (&["ISSN=issn"], &["issn"], "there is no field `issn`"),
            (&[], &["name", "organizations"], "--match organizations: links to organizations do not identify a record"),
            (&[], &["tags"], "--match tags: links to tags do not identify a record"),
            (&[], &["category"], "conferences and journals have no field `category`"),
            (&["Web Site=url", "web-site=url"], &[], ""),
            (&["Web Site=url", "Title=name", "web-site=name"], &[], "`web-site` is already mapped to `url`"),
            (&["Title=name", "Name=name"], &[], ""),
            (&["Formats=formats.oral"], &[], "there is no field `formats.oral`"),
        ];
        for (renames, matching, expected) in cases {
            let message = options(renames, matching).check().err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(expected) && message.is_empty() == expected.is_empty(), "{renames:?}: {message}");
        }
        // Each of several renames must be used.
        let two = options(&["Website=url", "Title=name"], &[]);
        assert_eq!((two.renamed("website"), two.renamed("Web"), two.renamed("url")), (Some("url"), None, None));
        assert!(two.check_renames_used().unwrap_err().to_string().contains("Title=name"));
        assert_eq!(two.renamed("TITLE"), Some("name"));
        assert!(two.check_renames_used().is_ok());
    }

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
