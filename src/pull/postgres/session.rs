//! A connection to PostgreSQL that holds the copy's lock, and its errors.

use std::collections::HashMap;
use std::error::Error as _;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fmt, io};

use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::{Client, Error, NoTls, Statement};
use sha2::{Digest as _, Sha256};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::PostgresAddress;
use crate::pull::columns::Cell;
use crate::pull::error::{PullError, Result};
use crate::pull::sql::database::Database;
use crate::transport::tls;

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
        f.debug_struct("Session")
            .field("shown", &self.shown)
            .field("is_lost", &self.is_lost)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Connects, and takes the copy's lock.
    pub fn connect(address: &PostgresAddress) -> Result<Session> {
        let shown = address.shown.clone();
        let mut config = address.config.clone();
        if let Ok(password) = env::var("PGPASSWORD") {
            config.password(password);
        }
        let client = if config.get_ssl_mode() == SslMode::Disable {
            config.connect(NoTls)
        } else {
            let tls = tls::trust_authorities(address.roots.as_deref());
            let tls = tls.map_err(|message| PullError::Unusable(format!("{shown}: {message}")))?;
            config.connect(MakeRustlsConnect::new(tls))
        };
        let client = client.map_err(|error| unconnected(&shown, &error))?;
        let mut session = Session {
            client,
            statements: HashMap::new(),
            shown,
            is_lost: false,
        };
        session.batch(SETTINGS)?;
        session.batch(&format!("SET search_path TO \"{}\"", address.schema))?;
        session.check_server()?;
        session.lock(&address.schema)?;
        Ok(session)
    }

    fn check_server(&mut self) -> Result<()> {
        let query = "SELECT current_setting('server_version_num')::bigint, current_setting('server_version'),
            current_setting('server_encoding'), (SELECT CASE WHEN pg_is_in_recovery()
                    THEN 'it is a standby server, which is read-only; give the address of the primary server'
                    ELSE 'new transactions are read-only by the setting default_transaction_read_only, which comes from: '
                        || source || '; give a role and a database that may write, or have the setting taken back, such as by '
                        || '`ALTER ROLE ' || current_user || ' RESET default_transaction_read_only`' END FROM pg_settings
                WHERE name = 'default_transaction_read_only' AND current_setting('transaction_read_only') = 'on')";
        let row = self.query(query, &[])?.pop().unwrap_or_default();
        let [
            Cell::Integer(number),
            Cell::Text(version),
            Cell::Text(encoding),
            read_only,
        ] = &row[..]
        else {
            return Err(PullError::failed(format!(
                "{}: the server does not report its version",
                self.shown
            )));
        };
        if *number < OLDEST_SERVER {
            return Err(PullError::Unusable(format!(
                "{} is PostgreSQL {version}; a copy needs PostgreSQL 13 or newer",
                self.shown
            )));
        }
        if let Cell::Text(reason) = read_only {
            return Err(PullError::Unwritable(format!("{}: {reason}", self.shown)));
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
    fn lock(&mut self, schema: &str) -> Result<()> {
        let digest = Sha256::digest(format!("medfeed pull {schema}"));
        let key = digest
            .iter()
            .take(8)
            .fold(0_i64, |key, byte| (key << 8) | i64::from(*byte));
        let begun = Instant::now();
        while self.query("SELECT pg_try_advisory_lock($1)", &[Cell::Integer(key)])?
            != [[Cell::Flag(true)]]
        {
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

    pub(super) fn statement(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let prepared = self.client.prepare(sql);
        let statement = prepared.map_err(|error| self.fail(&error))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) fn fail(&mut self, error: &Error) -> PullError {
        self.is_lost |= is_lost(error);
        failure(&self.shown, error)
    }
}

/// Maps an error of a statement.
fn failure(shown: &str, error: &Error) -> PullError {
    let message = message_of(error);
    if is_lost(error) {
        return PullError::failed(format!("the connection to {shown} broke: {message}"));
    }
    let Some(code) = error.code() else {
        return PullError::Unusable(format!("{shown}: {message}"));
    };
    match *code {
        SqlState::DISK_FULL => PullError::Unwritable(format!(
            "{shown}: no space is left on the server's disk; make room and run again"
        )),
        SqlState::INSUFFICIENT_PRIVILEGE => PullError::Unwritable(format!(
            "{shown}: {message}; the copy needs a schema of its own: have one made by `CREATE SCHEMA name AUTHORIZATION user`, and \
             name it with ?schema=name"
        )),
        SqlState::READ_ONLY_SQL_TRANSACTION => PullError::Unwritable(format!(
            "{shown}: {message}; the server is read-only; give the address of the primary server, or a role that may write"
        )),
        SqlState::LOCK_NOT_AVAILABLE => PullError::Unwritable(format!(
            "{shown}: another session holds a lock on the copy's tables ({message}); end it, or run again later"
        )),
        SqlState::PROGRAM_LIMIT_EXCEEDED => PullError::Unusable(format!(
            "{shown}: the service sent a value that is too long for PostgreSQL ({message}); copy to an SQLite file or a folder, or \
             ask the service's operator to shorten it"
        )),
        SqlState::IO_ERROR => PullError::Unwritable(format!(
            "{shown}: {message}; check the server's disk and its space, and run again"
        )),
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST => PullError::Unusable(format!(
            "{shown}: this version creates the copy's tables again, but other objects depend on them ({message}); drop those, run \
             again, and create them again"
        )),
        _ if matches!(&code.code()[..2], "40" | "53" | "57") => {
            PullError::failed(format!("{shown}: {message}"))
        }
        _ => PullError::Rejected {
            copy: shown.to_owned(),
            reason: message,
            other_location: Session::OTHER_LOCATION,
        },
    }
}

/// Whether an error means that the connection broke or the server has closed it.
fn is_lost(error: &Error) -> bool {
    error.is_closed()
        || error.code().map_or_else(
            || is_io(error),
            |code: &SqlState| {
                matches!(
                    *code,
                    SqlState::ADMIN_SHUTDOWN
                        | SqlState::CRASH_SHUTDOWN
                        | SqlState::CANNOT_CONNECT_NOW
                ) || code.code().starts_with("08")
                    || matches!(code.code(), "57P05" | "25P03")
            },
        )
}

/// Maps an error of an attempt to connect.
fn unconnected(shown: &str, error: &Error) -> PullError {
    if let Some(reason) = tls::reason_in(error) {
        return PullError::Unusable(format!(
            "{shown}: {reason}; ?sslrootcert= also names this file; ?sslmode=disable turns TLS off, for networks where nobody can \
             listen in"
        ));
    }
    let message = message_of(error);
    let hint = match error.to_string().as_str() {
        // The client's messages: its errors have no public kind.
        "error performing TLS handshake" if !is_io(error) => {
            "give the PEM file of the server's authority with --ca-file or ?sslrootcert=, or ?sslmode=disable in a network where \
             nobody can listen in"
        }
        "invalid configuration" if message.contains("password") => "set PGPASSWORD",
        "invalid configuration" | "authentication error" => "check the address",
        _ => match error.code() {
            Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
                "make the database first, by `createdb`"
            }
            Some(code) if code.code().starts_with("28") => {
                "check user and password, and the server's pg_hba.conf"
            }
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                "ask for the right to connect"
            }
            _ => return PullError::failed(format!("{shown} cannot be reached: {message}")),
        },
    };
    PullError::Unusable(format!("{shown}: {message}; {hint}"))
}

/// Whether the network is the cause. TLS errors are I/O errors too, with the kind `InvalidData`.
fn is_io(error: &Error) -> bool {
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| {
        !matches!(
            cause.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
        )
    })
}

/// The server's message, or the error with its causes.
fn message_of(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        let detail = error
            .detail()
            .map(|detail| format!(": {}", detail.replace('\n', "; ")))
            .unwrap_or_default();
        return format!("{}{detail}", error.message());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
