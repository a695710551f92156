//! A session as the database of a copy.

use std::collections::BTreeMap;

use super::address::Address;
use super::cells::{json_of, upsert};
use super::open::open;
use super::session::Session;
use crate::model::Dataset;
use crate::pull::columns::Cell;
use crate::pull::error::PullError;
use crate::pull::sql::database::{Database, Row, Search};
use crate::pull::sql::rows::{ids, json_ids};
use crate::pull::sql::schema::{Table, Tables};

/// The server keeps the place of a copy. Each new connection examines the schema again.
impl Database for Session {
    type Address = Address;

    const OTHER_PLACE: &str = "name another schema (?schema=NAME), or give";

    fn open(address: &Address) -> Result<Session, PullError> {
        open(address)
    }

    fn is_lost(&self) -> bool {
        self.is_gone()
    }

    fn shown(&self) -> String {
        self.address().to_owned()
    }

    fn batch(&mut self, sql: &str) -> Result<(), PullError> {
        self.execute_batch(sql)
    }

    fn query(&mut self, sql: &str, params: &[Cell]) -> Result<Vec<Row>, PullError> {
        self.rows(sql, params)
    }

    fn digests(&mut self, dataset: Dataset, from: i64, count: usize) -> Result<Vec<(i64, Vec<u8>)>, PullError> {
        let query = format!(
            "SELECT id, sha256(convert_to(json::text, 'UTF8')) FROM {dataset} WHERE id >= $1 ORDER BY id LIMIT {count}"
        );
        let rows = self.query(&query, &[Cell::Integer(from)])?;
        let digest = |row: Row| match <[Cell; 2]>::try_from(row) {
            Ok([Cell::Integer(id), Cell::Bytes(digest)]) => Some((id, digest)),
            _ => None,
        };
        Ok(rows.into_iter().filter_map(digest).collect())
    }

    fn write_rows(&mut self, table: &Table, rows: Vec<Row>) -> Result<(), PullError> {
        if !rows.is_empty() {
            self.query(&upsert(table), &[json_of(table, rows)])?;
        }
        Ok(())
    }

    /// PostgreSQL updates the full-text index by itself.
    fn write_records(
        &mut self,
        tables: &Tables,
        records: BTreeMap<i64, Option<Row>>,
        _search: Search,
    ) -> Result<(), PullError> {
        let removed: Vec<i64> = records.iter().filter(|(_, row)| row.is_none()).map(|(id, _)| *id).collect();
        self.write_rows(&tables.records, records.into_values().flatten().collect())?;
        if !removed.is_empty() {
            let delete = format!("DELETE FROM {} WHERE id IN ({})", tables.dataset, ids::<Session>());
            self.query(&delete, &[json_ids(removed)])?;
        }
        Ok(())
    }

    /// Queries are planned well from the first one on. They work without, and the server does this by itself later.
    fn after_load(&mut self, tables: &Tables) {
        let others: String =
            tables.links.iter().map(|links| format!(", {}, {}", links.pairs.name, links.rows.name)).collect();
        let _ = self.batch(&format!("ANALYZE {}{others}", tables.dataset));
    }
}
