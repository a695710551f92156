//! Upgrades: a file of an older version becomes one of this program's by a copy, which is checked and takes its name in one
//! step. The old file keeps a second name.
//!
//! - `from_2`: the step from format 2 to format 3. There is one file per step, and its types never change.
//! - [`replace`]: upgrading the file of a database.
//!
//! Steps chain. After the last one, records whose JSON lacks fields of this program are rendered anew, in one commit.

mod from_2;
pub mod replace;

use std::path::Path;

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use crate::model::PerDataset;
use crate::store::file::copy::{check_file, copy_tables};
use crate::store::file::draft::Draft;
use crate::store::file::older::{OnRecord, ReplicaOrigin};
use crate::store::file::open::{fill_new, new_draft};
use crate::store::format::codec::unseal_commit;
pub use crate::store::format::tables::SCHEMA;
use crate::store::format::tables::{self, META, META_FIELDS, META_PUBLISH, TableVisitor};
use crate::store::format::version::{FieldDifference, Version, known_fields};
use crate::store::read::snapshot::{CommitPoint, last_commit};
use crate::store::{StoreError, Writer};

/// The oldest format that files are upgraded from.
pub const OLDEST: u32 = 2;

/// Runs an action on the table of a code as a format has it. Returns whether there is one.
pub(in crate::store) fn visit_table<A: TableVisitor>(schema: u32, code: u8, action: &mut A) -> Result<bool, A::Error> {
    if schema == 2 && tables::code_of("records") == Some(code) {
        return action.table(from_2::RECORDS).map(|()| true);
    }
    tables::visit_table(code, action)
}

/// The last commit in a table of commits.
pub(in crate::store) fn last_point(
    schema: u32,
    commits: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<CommitPoint, StoreError> {
    if schema == 2 {
        return from_2::last_commit(commits);
    }
    Ok(last_commit(commits)?.map_or(CommitPoint::EMPTY, |(point, _)| point))
}

/// The origin that a file follows; `None` if it is no replica.
pub(in crate::store) fn find_replica(
    version: &Version,
    from: &ReadTransaction,
) -> Result<Option<ReplicaOrigin>, StoreError> {
    if version.schema == 2 {
        return from_2::find_replica(from);
    }
    let Some(mark) = crate::store::format::replica::find_mark(from)? else { return Ok(None) };
    let head = last_point(version.schema, &from.open_table(tables::COMMITS)?)?.head();
    Ok(Some(ReplicaOrigin { url: mark.url, id: mark.id, head }))
}

/// How many records a file holds.
pub(in crate::store) fn count_records(
    version: &Version,
    from: &ReadTransaction,
) -> Result<PerDataset<u64>, StoreError> {
    if version.schema == 2 {
        return from_2::count_records(from);
    }
    let commits = from.open_table(tables::COMMITS)?;
    let last = commits.last()?.map(|(seq, row)| unseal_commit(seq.value(), row.value())).transpose()?;
    Ok(last.map(|row| row.records).unwrap_or_default())
}

/// The fields that the last step to this program's version adds to a file's rows.
pub(in crate::store) fn fields_added(version: &Version) -> Vec<String> {
    let after_steps =
        if version.schema == 2 { Some(from_2::FIELDS.as_bytes().to_vec()) } else { version.fields.clone() };
    match (Version { schema: SCHEMA, fields: after_steps }).field_change() {
        FieldDifference::Added(added) => added,
        FieldDifference::None | FieldDifference::Unknown(_) => Vec::new(),
    }
}

/// A checked copy of an older file, as this program writes it. Commits and what they took stay as they are; a commit more is
/// made where records get new fields. It is published as the old one was, but nothing waits: a whole state goes out.
pub(in crate::store) fn upgrade_copy(
    from: &ReadTransaction,
    version: &Version,
    target: &Path,
    each: OnRecord<'_>,
) -> Result<Draft, StoreError> {
    version.check_known(target)?;
    if version.schema < OLDEST {
        return Err(StoreError::OlderSchema { path: target.to_owned(), found: version.schema, known: SCHEMA });
    }
    let draft = new_draft(target)?;
    let is_published = from.open_table(META)?.get(META_PUBLISH)?.is_some();
    let mut added = None;
    fill_new(draft.path(), |to| {
        if version.schema == 2 {
            from_2::step(from, to, &mut *each)?;
        } else {
            copy_tables(from, to)?;
        }
        added = name_fields(to)?;
        Ok(())
    })?;
    if let Some(added) = added {
        let writer = Writer::open_draft(draft.path())?;
        let mut edit = writer.begin()?;
        edit.rerender_all(each)?;
        edit.describe(match added.as_slice() {
            [] => "upgraded: the fields of records are in another order".to_owned(),
            added => format!("upgraded: rows gained {}", added.join(", ")),
        });
        edit.commit()?;
    }
    if is_published {
        Writer::open_draft(draft.path())?.mark_published()?;
    }
    check_file(draft.path())?;
    Ok(draft)
}

/// Notes the fields of this program as those of the file, and forgets that the file is published. Returns the fields that its
/// rows lack; `None` if its rows are as this program writes them.
fn name_fields(to: &WriteTransaction) -> Result<Option<Vec<String>>, StoreError> {
    let mut meta = to.open_table(META)?;
    let change = Version::read(&meta)?.map_or(FieldDifference::None, |version| version.field_change());
    meta.remove(META_PUBLISH)?;
    meta.insert(META_FIELDS, known_fields().as_bytes())?;
    match change {
        FieldDifference::Added(added) => Ok(Some(added)),
        FieldDifference::None | FieldDifference::Unknown(_) => Ok(None),
    }
}
