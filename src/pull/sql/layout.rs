//! Creates the tables, and replaces those of another version.

use super::database::{Database, Reader};
use super::rows::RecordWriter;
use super::schema::{DatasetTables, derived, drop_derived, layout};
use crate::model::Dataset;
use crate::pull::columns::Cell;
use crate::pull::entry::MAX_ID;
use crate::pull::error::PullError;

/// Creates all tables of a new copy, within a transaction.
pub fn create<D: Database>(database: &mut D) -> Result<(), PullError> {
    let (common, derived, layout) = (D::common(), derived::<D>(), layout::<D>());
    database.batch(&format!("{common}{derived}INSERT INTO copy VALUES ('layout', '{layout}');"))
}

/// Returns a value of the table `copy`.
pub fn value_of<D: Database>(database: &mut D, name: &str) -> Result<Option<String>, PullError> {
    // The table may belong to another program, with other types.
    let query = "SELECT CAST(value AS text) FROM copy WHERE CAST(name AS text) = $1";
    let row = database.query(query, &[name.into()])?.pop().unwrap_or_default();
    Ok(if let [Cell::Text(value)] = &row[..] { Some(value.clone()) } else { None })
}

/// Creates the derived tables again if their layout is that of another version.
pub fn renew<D: Database>(database: &mut D) -> Result<(), PullError> {
    let wanted = layout::<D>();
    if value_of(database, "layout")?.as_deref() == Some(&*wanted) {
        return Ok(());
    }
    database.in_transaction(|database| {
        database.batch(&drop_derived::<D>())?;
        for dataset in Dataset::ALL {
            database.batch(&D::set_aside(dataset))?;
        }
        database.batch(&derived::<D>())?;
        for dataset in Dataset::ALL {
            take_back(database, dataset)?;
        }
        database.query("UPDATE copy SET value = $1 WHERE name = 'layout'", &[wanted.into()])?;
        Ok(())
    })
}

/// Writes the records of `old_DATASET` into the new tables.
fn take_back<D: Database>(database: &mut D, dataset: Dataset) -> Result<(), PullError> {
    let tables = DatasetTables::new(dataset);
    let mut writer = RecordWriter::new(&tables, false);
    let old = format!("old_{dataset}");
    // Skips invalid ids.
    let mut reader = Reader::new("id, json", &old, 1);
    while let Some(row) = reader.next_until(database, MAX_ID)? {
        if let [Cell::Integer(id), Cell::Text(json)] = &row[..] {
            writer.add(database, *id, Some(json.as_str().into()))?;
        }
    }
    writer.finish(database)?;
    database.rebuild_search(dataset)?;
    database.batch(&format!("DROP TABLE {old}"))
}
