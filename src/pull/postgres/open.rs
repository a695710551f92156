//! Which schemas are taken.

use super::address::Address;
use super::rows::{Tables, Writer};
use super::schema::{FORMAT, all, derived, layout, undo_derived};
use super::session::Session;
use crate::model::Dataset;
use crate::pull::entry::Entry;
use crate::pull::error::PullError;

/// Connects, and opens the copy or makes one; returns of which service it is, `None` for a new one.
///
/// # Errors
/// When the schema holds something else or a copy of a newer format, is left untouched then; when another pull is at work on
/// it, or the server refuses.
pub fn open(address: &Address) -> Result<(Session, Option<String>), PullError> {
    let mut session = Session::open(address)?;
    let schema = address.schema();
    // Whatever is in a schema depends on it.
    let objects =
        "SELECT (SELECT count(*) FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid)
         FROM pg_namespace n WHERE nspname = $1::text";
    let objects: Option<i64> = session.first(objects, &[&schema])?.map(|row| row.get(0));
    if objects.is_none_or(|objects| objects == 0) {
        session.in_transaction(|session| {
            if objects.is_none() {
                session.batch(&format!("CREATE SCHEMA \"{schema}\""))?;
            }
            session.batch(&all())
        })?;
        return Ok((session, None));
    }
    let columns = "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n \
                   ON n.oid = c.relnamespace WHERE nspname = $1::text AND relname = 'copy' AND attname IN ('name', 'value')";
    let is_copy = session.one(columns, &[&schema])?.get::<_, i64>(0) == 2
        && value_of(&mut session, "made by")?.as_deref() == Some("medfeed pull");
    if !is_copy {
        return Err(PullError::Unusable(format!(
            "the schema `{schema}` of {} holds what `medfeed pull` has not made, and is left as it is; name another one at the \
             end of the address: ?schema=NAME",
            session.shown()
        )));
    }
    let format = value_of(&mut session, "format")?.unwrap_or_default();
    if format != FORMAT {
        return Err(PullError::Unusable(format!(
            "{} was written by another version of this program (format {format}; this one knows {FORMAT}); use that version, or \
             name another schema: ?schema=NAME",
            session.shown()
        )));
    }
    renew_layout(&mut session)?;
    let server = value_of(&mut session, "server")?;
    Ok((session, server))
}

/// A value of the table `copy`.
fn value_of(session: &mut Session, name: &str) -> Result<Option<String>, PullError> {
    Ok(session.first("SELECT value::text FROM copy WHERE name::text = $1", &[&name])?.map(|row| row.get(0)))
}

/// Makes the derived tables anew where another version of the program has made them otherwise.
fn renew_layout(session: &mut Session) -> Result<(), PullError> {
    let wanted = layout();
    if value_of(session, "layout")?.as_deref() == Some(&*wanted) {
        return Ok(());
    }
    session.in_transaction(|session| {
        for dataset in Dataset::ALL {
            session.batch(&format!(
                "CREATE TEMPORARY TABLE old_{dataset} ON COMMIT DROP AS SELECT id, json::text FROM {dataset}"
            ))?;
        }
        session.batch(&undo_derived())?;
        session.batch(&derived())?;
        for dataset in Dataset::ALL {
            let tables = Tables::new(dataset);
            let mut writer = Writer::new(&tables);
            session.read_all(&format!("SELECT id, json FROM old_{dataset} ORDER BY id"), &mut |session, rows| {
                let entry = |row: &postgres::Row| {
                    let json: String = row.get(1);
                    Entry { id: row.get(0), is_removal: false, json: json.into() }
                };
                let entries: Vec<Entry> = rows.iter().map(entry).collect();
                writer.write(session, &Vec::from_iter(&entries), &[])?;
                Ok(true)
            })?;
        }
        session.execute("UPDATE copy SET value = $1 WHERE name = 'layout'", &[&wanted])
    })
}
