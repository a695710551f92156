//! A connection to PostgreSQL that holds the copy's lock.

use std::collections::HashMap;
use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use postgres::{Client, Statement};
use sha2::{Digest as _, Sha256};

use super::address::PostgresAddress;
use super::failure::{failure, is_lost};
use crate::pull::columns::Cell;
use crate::pull::error::PullError;
use crate::pull::sql::database::Database;

/// The oldest supported `server_version_num`: PostgreSQL 13, the first with `normalize`.
const OLDEST_SERVER: i64 = 130_000;

/// The timeout for the lock. The server process of a pull that has just ended may still hold it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

const LOCK_INTERVAL: Duration = Duration::from_millis(50);

/// The settings of a session: plans for the actual parameters, no timeouts while an export arrives, but one for the
/// locks of other sessions. Keepalives release the copy's lock if this machine vanishes.
const SETTINGS: &str = "SET TIME ZONE 'UTC'; SET DateStyle TO ISO; SET extra_float_digits = 1;
    SET client_min_messages = warning; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET lock_timeout = '30s'; SET plan_cache_mode = force_custom_plan; SET jit = off;
    SET default_transaction_isolation = 'read committed';
    SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3";

/// A connection that holds the copy's lock. Statements are prepared once.
pub struct Session {
    pub(super) client: Client,
    statements: HashMap<String, Statement>,
    pub(super) shown: String,
    pub(super) is_lost: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("shown", &self.shown).field("is_lost", &self.is_lost).finish_non_exhaustive()
    }
}

impl Session {
    /// Connects, and takes the copy's lock.
    pub fn connect(address: &PostgresAddress) -> Result<Session, PullError> {
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
        let query = "SELECT current_setting('server_version_num')::bigint, current_setting('server_version'), \
                     current_setting('server_encoding')";
        let row = self.query(query, &[])?.pop().unwrap_or_default();
        let [Cell::Integer(number), Cell::Text(version), Cell::Text(encoding)] = &row[..] else {
            return Err(PullError::failed(format!("{}: the server does not report its version", self.shown)));
        };
        if *number < OLDEST_SERVER {
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

    /// Takes the copy's lock. The server releases it at the end of the connection.
    fn lock(&mut self, schema: &str) -> Result<(), PullError> {
        let digest = Sha256::digest(format!("medfeed pull {schema}"));
        let key = digest.iter().take(8).fold(0_i64, |key, byte| (key << 8) | i64::from(*byte));
        let begun = Instant::now();
        while self.query("SELECT pg_try_advisory_lock($1)", &[Cell::Integer(key)])? != [[Cell::Flag(true)]] {
            if begun.elapsed() > LOCK_TIMEOUT {
                return Err(PullError::Unwritable(format!(
                    "another `medfeed pull` is using {}; wait until it ends, or stop it",
                    self.shown
                )));
            }
            sleep(LOCK_INTERVAL);
        }
        Ok(())
    }

    pub(super) fn statement(&mut self, sql: &str) -> Result<Statement, PullError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let prepared = self.client.prepare(sql);
        let statement = prepared.map_err(|error| self.fail(&error))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) fn fail(&mut self, error: &postgres::Error) -> PullError {
        self.is_lost |= is_lost(error);
        failure(&self.shown, error)
    }
}
