//! The copy in a PostgreSQL database: a schema of its own.
//!
//! - [`address`]: the URL of a copy, and its connection settings.
//! - [`failure`]: the errors of PostgreSQL.
//! - [`dialect`]: PostgreSQL's SQL.
//! - [`cells`]: converts cells to parameters and JSON, and results to cells.
//! - [`session`]: a connection that holds the copy's lock.
//! - [`open`]: opens the schema of a copy, or creates one.

use std::path::Path;

use super::error::PullError;
use super::server_url::ServerUrl;
use super::sql::SqlCopy;
use session::Session;

pub mod address;
pub mod cells;
pub mod database;
pub mod dialect;
pub mod failure;
pub mod open;
pub mod session;

pub use address::PostgresAddress;

/// A copy in PostgreSQL.
pub type PostgresCopy = SqlCopy<Session>;

impl PostgresCopy {
    /// Opens a copy like [`SqlCopy::at`]. Certificates are checked against `ca_file`, unless the URL names another
    /// file.
    pub fn open(
        mut address: PostgresAddress,
        server: &ServerUrl,
        ca_file: Option<&Path>,
        reload: bool,
    ) -> Result<PostgresCopy, PullError> {
        address.trust(ca_file);
        SqlCopy::at(address, server, reload)
    }
}
