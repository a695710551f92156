//! Upgrades. A file whose rows lack fields of this program is copied, and one more commit renders the rows again. The
//! copy is checked, and replaces the file by rename. The old file gets a second name.
//!
//! - [`replace`]: upgrading the file of a database.
//!
//! The first change of the format after a release adds a step here, which copies the rows of the older format.

pub mod replace;

use std::path::Path;

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use crate::store::file::copy::{LocalRows, check_file, copy_tables};
use crate::store::file::draft::Draft;
use crate::store::file::older::OnRecord;
use crate::store::file::open::{fill_new, new_draft};
pub use crate::store::format::tables::SCHEMA;
use crate::store::format::tables::{META, META_FIELDS, META_PUBLISH};
use crate::store::format::version::{FieldDifference, Version, known_fields};
use crate::store::{StoreError, Writer};

/// Copies an older file into the version of this program, and checks the copy. Commits keep their seqs. One commit is
/// added, by which records get the new fields. If the file is published, so is the copy, but with an empty outbox: a
/// whole state is published next.
pub(in crate::store) fn upgrade_copy(
    from: &ReadTransaction,
    version: &Version,
    target: &Path,
    each: OnRecord<'_>,
) -> Result<Draft, StoreError> {
    version.check_format(target)?;
    let draft = new_draft(target)?;
    let is_published = from.open_table(META)?.get(META_PUBLISH)?.is_some();
    fill_new(draft.path(), |to| {
        copy_tables(from, to, LocalRows::Copy)?;
        store_field_names(to)
    })?;
    if let FieldDifference::Added(added) = version.field_difference() {
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

/// Stores the names of this program's fields, and removes the stored digest.
fn store_field_names(to: &WriteTransaction) -> Result<(), StoreError> {
    let mut meta = to.open_table(META)?;
    meta.remove(META_PUBLISH)?;
    meta.insert(META_FIELDS, known_fields().as_bytes())?;
    Ok(())
}
