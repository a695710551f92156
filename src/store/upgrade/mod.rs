//! Upgrades. An older file is copied into the format of this program. The copy is checked, and replaces the file by
//! rename. The old file gets a second name.
//!
//! - `from_2`: the step from format 2 to format 3. Each step has its own file, whose types never change.
//! - [`replace`]: upgrading the file of a database.
//!
//! Steps form a chain. If records then lack fields of this program, one more commit renders them again.

mod from_2;
pub mod replace;

use std::path::Path;

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use crate::model::{Head, PerDataset, Timestamp};
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

/// The oldest format that can be upgraded.
pub const OLDEST: u32 = 2;

/// Runs an action on the table with a code, as defined in format `schema`. Returns false if there is none.
pub(in crate::store) fn visit_table<A: TableVisitor>(schema: u32, code: u8, action: &mut A) -> Result<bool, A::Error> {
    if schema == 2 && tables::code_of("records") == Some(code) {
        return action.table(from_2::RECORDS).map(|()| true);
    }
    tables::visit_table(code, action)
}

pub(in crate::store) fn last_point(
    schema: u32,
    commits: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<CommitPoint, StoreError> {
    if schema == 2 {
        return from_2::last_commit(commits);
    }
    Ok(last_commit(commits)?.map_or(CommitPoint::EMPTY, |(point, _)| point))
}

/// The last commit at or before a time, if it is after `base` and `base` is a commit of this history.
pub(in crate::store) fn last_point_after(
    schema: u32,
    commits: &impl ReadableTable<u64, &'static [u8]>,
    base: Head,
    until: Timestamp,
) -> Result<Option<CommitPoint>, StoreError> {
    let point_of = |seq, row: &[u8]| match schema {
        2 => from_2::point_of(seq, row),
        _ => unseal_commit(seq, row).map(|row| CommitPoint { seq, time: row.time, lineage: row.lineage }),
    };
    let mut last = None;
    for row in commits.range(base.seq..)?.rev() {
        let (seq, row) = row?;
        let point = point_of(seq.value(), row.value())?;
        if point.head() == base {
            return Ok(last);
        }
        if point.time <= until && last.is_none() {
            last = Some(point);
        }
    }
    Ok(None)
}

/// The origin of a replica; `None` if the file is not a replica.
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

/// The fields that an upgrade adds to a file's rows.
pub(in crate::store) fn fields_added(version: &Version) -> Vec<String> {
    let after_steps =
        if version.schema == 2 { Some(from_2::FIELDS.as_bytes().to_vec()) } else { version.fields.clone() };
    match (Version { schema: SCHEMA, fields: after_steps }).field_difference() {
        FieldDifference::Added(added) => added,
        FieldDifference::None | FieldDifference::Unknown(_) => Vec::new(),
    }
}

/// Copies an older file into the format of this program, and checks the copy. Commits keep their seqs. If records get
/// new fields, one commit is added. If the file is published, so is the copy, but with an empty outbox: a whole state
/// is published next.
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
        added = store_field_names(to)?;
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

/// Stores the names of this program's fields, and removes the stored digest. Returns the fields that the rows lack;
/// `None` if the rows have exactly this program's fields.
fn store_field_names(to: &WriteTransaction) -> Result<Option<Vec<String>>, StoreError> {
    let mut meta = to.open_table(META)?;
    let change = Version::read(&meta)?.map_or(FieldDifference::None, |version| version.field_difference());
    meta.remove(META_PUBLISH)?;
    meta.insert(META_FIELDS, known_fields().as_bytes())?;
    match change {
        FieldDifference::Added(added) => Ok(Some(added)),
        FieldDifference::None | FieldDifference::Unknown(_) => Ok(None),
    }
}
