//! Creates the tables, and replaces those of another version.

use super::database::{Database, Search};
use super::rows::Writer;
use super::schema::{Tables, derived, drop_derived, layout};
use crate::model::Dataset;
use crate::pull::entry::MAX_ID;
use crate::pull::error::PullError;

/// Creates all tables of a new copy, within a transaction.
pub fn create<D: Database>(database: &mut D) -> Result<(), PullError> {
    let (common, derived, layout) = (D::common(), derived::<D>(), layout::<D>());
    database.batch(&format!("{common}{derived}INSERT INTO copy VALUES ('layout', '{layout}');"))
}

/// Returns a value of the table `copy`.
pub fn value_of<D: Database>(database: &mut D, name: &str) -> Result<Option<String>, PullError> {
    // The table may be somebody else's, with any types.
    let query = "SELECT CAST(value AS text) FROM copy WHERE CAST(name AS text) = $1";
    let row = database.first(query, &[name.into()])?;
    Ok(row.and_then(|row| row[0].text().map(str::to_owned)))
}

/// Creates the derived tables again if another version of the program has created them otherwise.
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

/// Writes the records that were set aside into the new tables.
fn take_back<D: Database>(database: &mut D, dataset: Dataset) -> Result<(), PullError> {
    let tables = Tables::new(dataset);
    let mut writer = Writer::new(&tables, Search::Rebuilt);
    let old = format!("old_{dataset}");
    database.read_all("id, json", &old, 1, &mut |database, rows| {
        for row in rows {
            // Other ids are not the service's.
            if let (Some(id @ ..=MAX_ID), Some(json)) = (row[0].integer(), row[1].text()) {
                writer.put(database, id, json.into())?;
            }
        }
        Ok(true)
    })?;
    writer.finish(database)?;
    database.rebuild_search(dataset)?;
    database.batch(&format!("DROP TABLE {old}"))
}
