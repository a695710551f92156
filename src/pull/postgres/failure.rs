//! Maps PostgreSQL's errors to a [`PullError`].

use std::error::Error as _;
use std::io;

use postgres::Error;
use postgres::error::SqlState;

use crate::pull::error::PullError;
use crate::transport::trust;

/// Maps an error of a statement.
pub fn failure(shown: &str, error: &Error) -> PullError {
    let message = message_of(error);
    if is_lost(error) {
        return PullError::failed(format!("the connection to {shown} broke: {message}"));
    }
    let Some(code) = error.code() else {
        return PullError::Unusable(format!("{shown}: {message}"));
    };
    match *code {
        SqlState::DISK_FULL => {
            PullError::Unwritable(format!("{shown}: no space is left on the server's disk; make room and run again"))
        }
        SqlState::INSUFFICIENT_PRIVILEGE => PullError::Unwritable(format!(
            "{shown}: {message}; the copy needs a schema of its own: have one made by `CREATE SCHEMA name AUTHORIZATION user`, and \
             name it with ?schema=name"
        )),
        SqlState::READ_ONLY_SQL_TRANSACTION => PullError::Unwritable(format!(
            "{shown}: {message}; the server is read-only; give the address of the primary server"
        )),
        SqlState::LOCK_NOT_AVAILABLE => PullError::Unwritable(format!(
            "{shown}: another session holds a lock on the copy's tables ({message}); end it, or run again later"
        )),
        SqlState::IO_ERROR => {
            PullError::Unwritable(format!("{shown}: {message}; check the server's disk and its space, and run again"))
        }
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST => PullError::Unusable(format!(
            "{shown}: this version creates the copy's tables again, but other objects depend on them ({message}); drop those, run \
             again, and create them again"
        )),
        _ if matches!(&code.code()[..2], "40" | "53" | "57") => PullError::failed(format!("{shown}: {message}")),
        _ => PullError::Rejected {
            copy: shown.to_owned(),
            reason: message,
            remedy: "drop the schema, and the next pull makes a new copy",
        },
    }
}

/// Whether an error means that the connection broke or the server has closed it.
pub fn is_lost(error: &Error) -> bool {
    let is_ended = |code: &SqlState| {
        matches!(*code, SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN | SqlState::CANNOT_CONNECT_NOW)
            || code.code().starts_with("08")
            || matches!(code.code(), "57P05" | "25P03")
    };
    error.is_closed() || error.code().map_or_else(|| is_io(error), is_ended)
}

/// Maps an error of an attempt to connect.
pub fn unconnected(shown: &str, error: &Error) -> PullError {
    if let Some(reason) = trust::reason_in(error) {
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
            Some(code) if *code == SqlState::INVALID_CATALOG_NAME => "make the database first, by `createdb`",
            Some(code) if code.code().starts_with("28") => "check user and password, and the server's pg_hba.conf",
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => "ask for the right to connect",
            _ => return PullError::failed(format!("{shown} cannot be reached: {message}")),
        },
    };
    PullError::Unusable(format!("{shown}: {message}; {hint}"))
}

/// Whether the network is the cause. TLS errors are I/O errors too, with the kind `InvalidData`.
fn is_io(error: &Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| !matches!(cause.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput))
}

/// The server's message, or the error with its causes.
fn message_of(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        let detail = error.detail().map(|detail| format!(": {}", detail.replace('\n', "; "))).unwrap_or_default();
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
