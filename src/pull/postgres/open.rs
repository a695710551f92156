//! Opens the schema of a copy, or creates one.

use super::address::PostgresAddress;
use super::session::Session;
use crate::pull::columns::Cell;
use crate::pull::error::PullError;
use crate::pull::sql::database::Database;
use crate::pull::sql::layout::{self, value_of};
use crate::pull::sql::schema::FORMAT;

/// Connects, and opens or creates the copy. Leaves other schemas untouched.
pub fn open(address: &PostgresAddress) -> Result<Session, PullError> {
    let mut session = Session::connect(address)?;
    let schema = address.schema();
    // All objects in a schema depend on it, and so do default privileges, which readers need before the first run.
    let objects =
        "SELECT (SELECT count(*) FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid
            AND d.classid <> 'pg_default_acl'::regclass)
         FROM pg_namespace n WHERE nspname = $1::text";
    let objects = session.query(objects, &[schema.into()])?.pop().and_then(|row| row[0].integer());
    if objects.is_none_or(|objects| objects == 0) {
        session.in_transaction(|session| {
            if objects.is_none() {
                session.batch(&format!("CREATE SCHEMA \"{schema}\""))?;
            }
            layout::create(session)
        })?;
        return Ok(session);
    }
    let columns = "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n \
                   ON n.oid = c.relnamespace WHERE nspname = $1::text AND relname = 'copy' AND attname IN ('name', 'value')";
    let is_copy = session.query(columns, &[schema.into()])? == [[Cell::Integer(2)]]
        && value_of(&mut session, "made by")?.as_deref() == Some("medfeed pull");
    if !is_copy {
        return Err(PullError::Unusable(format!(
            "the schema `{schema}` of {} contains objects that `medfeed pull` did not create, and was not changed; name \
             another one at the end of the address: ?schema=NAME",
            session.shown()
        )));
    }
    let format = value_of(&mut session, "format")?.unwrap_or_default();
    if format != FORMAT.to_string() {
        return Err(PullError::Unusable(format!(
            "{} was written by another version of this program (format {format}; this one knows {FORMAT}); use that version, or \
             name another schema: ?schema=NAME",
            session.shown()
        )));
    }
    layout::renew(&mut session)?;
    Ok(session)
}
