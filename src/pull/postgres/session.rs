//! A connection to PostgreSQL that holds the copy's lock.

use std::collections::HashMap;
use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use postgres::types::ToSql;
use postgres::{Client, Row, Statement};
use sha2::{Digest as _, Sha256};

use super::address::Address;
use super::failure::{failure, is_lost};
use crate::pull::error::PullError;

/// The oldest server whose SQL is understood (`server_version_num`): 13, the first with `normalize`.
const OLDEST_SERVER: i32 = 130_000;

/// How long the lock of a pull that ended a moment ago is waited for: its server process may still be at work.
const ENDING: Duration = Duration::from_secs(5);

/// How often the lock is tried meanwhile.
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

/// How many rows are fetched at once where all are read.
const FETCHED: u32 = 500;

/// What a session is told first. A pull is alone with its copy, so plans are made for the values at hand, no time limit of
/// the server's applies while an export comes in, and a lock of somebody else is not waited for without end. The server asks
/// whether this side is still there, so that the lock of a machine that vanished is not kept.
const SETTINGS: &str = "SET TIME ZONE 'UTC'; SET DateStyle TO ISO; SET extra_float_digits = 1;
    SET client_min_messages = warning; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET lock_timeout = '30s'; SET plan_cache_mode = force_custom_plan; SET jit = off;
    SET default_transaction_isolation = 'read committed';
    SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3";

/// Parameters of a statement.
pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Takes some of the rows that are read; `false` ends the reading.
type TakeRows<'a> = &'a mut dyn FnMut(&mut Session, Vec<Row>) -> Result<bool, PullError>;

/// A connection that holds the copy's lock. Statements are prepared once.
pub struct Session {
    client: Client,
    statements: HashMap<String, Statement>,
    shown: String,
    is_lost: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("shown", &self.shown).field("is_lost", &self.is_lost).finish_non_exhaustive()
    }
}

impl Session {
    /// Connects, and takes the copy's lock.
    ///
    /// # Errors
    /// When there is no server or it cannot have a copy, and when another pull holds the lock.
    pub fn open(address: &Address) -> Result<Session, PullError> {
        let shown = address.shown().to_owned();
        let client = address.connect()?;
        let mut session = Session { client, statements: HashMap::new(), shown, is_lost: false };
        session.batch(SETTINGS)?;
        session.batch(&format!("SET search_path TO \"{}\"", address.schema()))?;
        session.check_server()?;
        session.lock(address.schema())?;
        Ok(session)
    }

    fn check_server(&mut self) -> Result<(), PullError> {
        let query = "SELECT current_setting('server_version_num')::int, current_setting('server_version'), \
                     current_setting('server_encoding')";
        let row = self.one(query, &[])?;
        let (number, version, encoding): (i32, String, String) = (row.get(0), row.get(1), row.get(2));
        if number < OLDEST_SERVER {
            return Err(PullError::Unusable(format!(
                "{} is PostgreSQL {version}; a copy needs PostgreSQL 13 or newer",
                self.shown
            )));
        }
        if encoding != "UTF8" {
            return Err(PullError::Unusable(format!(
                "{}: the database has the encoding {encoding}, in which not all records can be written; make one by `createdb \
                 --template=template0 --encoding=UTF8`",
                self.shown
            )));
        }
        Ok(())
    }

    /// Takes the lock that keeps a second pull away; it ends with the connection.
    fn lock(&mut self, schema: &str) -> Result<(), PullError> {
        let digest = Sha256::digest(format!("medfeed pull {schema}"));
        let key = digest.iter().take(8).fold(0_i64, |key, byte| (key << 8) | i64::from(*byte));
        let begun = Instant::now();
        while !self.one("SELECT pg_try_advisory_lock($1)", &[&key])?.get::<_, bool>(0) {
            if begun.elapsed() > ENDING {
                return Err(PullError::Unwritable(format!(
                    "another `medfeed pull` is at work on {}; let it go on, or stop it first",
                    self.shown
                )));
            }
            sleep(LOCK_INTERVAL);
        }
        Ok(())
    }

    /// The address, for messages.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether the connection is gone, and the lock with it.
    pub fn is_lost(&self) -> bool {
        self.is_lost || self.client.is_closed()
    }

    /// Runs statements without parameters.
    pub fn batch(&mut self, sql: &str) -> Result<(), PullError> {
        let done = self.client.batch_execute(sql);
        done.map_err(|error| self.fail(&error))
    }

    /// The rows of a query.
    pub fn query(&mut self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, PullError> {
        let statement = self.statement(sql)?;
        let rows = self.client.query(&statement, params);
        rows.map_err(|error| self.fail(&error))
    }

    /// The first row of a query, if it has any.
    pub fn first(&mut self, sql: &str, params: Params<'_>) -> Result<Option<Row>, PullError> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// The row of a query that has one.
    pub fn one(&mut self, sql: &str, params: Params<'_>) -> Result<Row, PullError> {
        let first = self.first(sql, params)?;
        first.ok_or_else(|| PullError::failed(format!("{}: a query has no answer: {sql}", self.shown)))
    }

    /// Runs a statement.
    pub fn execute(&mut self, sql: &str, params: Params<'_>) -> Result<(), PullError> {
        let statement = self.statement(sql)?;
        let done = self.client.execute(&statement, params);
        done.map(|_| ()).map_err(|error| self.fail(&error))
    }

    /// Does something in one transaction, or not at all.
    pub fn in_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Session) -> Result<T, PullError>,
    ) -> Result<T, PullError> {
        self.batch("BEGIN")?;
        let done = work(self).and_then(|done| self.batch("COMMIT").map(|()| done));
        if done.is_err() && !self.is_lost() {
            // The error counts that led here; where this fails, too, the connection is gone.
            let _ = self.batch("ROLLBACK");
        }
        done
    }

    /// Reads all rows of a query, a few hundred at a time, within a transaction.
    pub fn read_all(&mut self, query: &str, take: TakeRows<'_>) -> Result<(), PullError> {
        self.batch(&format!("DECLARE reading NO SCROLL CURSOR FOR {query}"))?;
        let fetch = format!("FETCH {FETCHED} FROM reading");
        loop {
            // Not kept: a cursor of the same name may have other columns the next time.
            let rows = self.client.query(&fetch, &[]);
            let rows = rows.map_err(|error| self.fail(&error))?;
            if rows.is_empty() || !take(self, rows)? {
                return self.batch("CLOSE reading");
            }
        }
    }

    fn statement(&mut self, sql: &str) -> Result<Statement, PullError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let prepared = self.client.prepare(sql);
        let statement = prepared.map_err(|error| self.fail(&error))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn fail(&mut self, error: &postgres::Error) -> PullError {
        self.is_lost |= is_lost(error);
        failure(&self.shown, error)
    }
}
