//! A PostgreSQL schema as the database of a copy.

use postgres::types::ToSql;

use super::address::PostgresAddress;
use super::cells::{cells, json_of, upsert};
use super::open::open;
use super::session::Session;
use crate::pull::columns::Cell;
use crate::pull::error::PullError;
use crate::pull::sql::database::Database;
use crate::pull::sql::dialect::{Records, Row, Type};
use crate::pull::sql::rows::{list, listed};
use crate::pull::sql::schema::{DatasetTables, SqlTable};

impl Database for Session {
    type Location = PostgresAddress;

    const OTHER_LOCATION: &str = "name another schema (?schema=NAME), or give";

    fn open(address: &PostgresAddress) -> Result<Session, PullError> {
        open(address)
    }

    fn is_lost(&self) -> bool {
        self.is_lost || self.client.is_closed()
    }

    fn shown(&self) -> String {
        self.shown.clone()
    }

    fn batch(&mut self, sql: &str) -> Result<(), PullError> {
        let done = self.client.batch_execute(sql);
        done.map_err(|error| self.fail(&error))
    }

    fn query(&mut self, sql: &str, params: &[Cell]) -> Result<Vec<Row>, PullError> {
        let statement = self.statement(sql)?;
        let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|cell| cell as &(dyn ToSql + Sync)).collect();
        let rows = self.client.query(&statement, &params);
        Ok(rows.map_err(|error| self.fail(&error))?.iter().map(cells).collect())
    }

    fn write_rows(&mut self, table: &SqlTable, rows: Vec<Row>) -> Result<(), PullError> {
        if !rows.is_empty() {
            self.query(&upsert(table), &[json_of(table, &rows)])?;
        }
        Ok(())
    }

    /// PostgreSQL maintains the full-text index.
    fn write_records(
        &mut self,
        tables: &DatasetTables,
        records: Records,
        _updates_search: bool,
    ) -> Result<(), PullError> {
        let removed: Vec<i64> = records.iter().filter(|(_, row)| row.is_none()).map(|(id, _)| *id).collect();
        self.write_rows(&tables.records, records.into_values().flatten().collect())?;
        if !removed.is_empty() {
            let ids = listed::<Session>("$1", &[Type::Integer]);
            let delete = format!("DELETE FROM {} WHERE id IN ({ids})", tables.dataset);
            self.query(&delete, &[list(removed)])?;
        }
        Ok(())
    }

    /// Updates the planner's statistics. Errors are ignored: the server does this later anyway.
    fn after_load(&mut self, tables: &DatasetTables) {
        let others: String =
            tables.links.iter().map(|links| format!(", {}, {}", links.pairs.name, links.rows.name)).collect();
        let _ = self.batch(&format!("ANALYZE {}{others}", tables.dataset));
    }
}
