//! The copy in a PostgreSQL database: a schema of its own.
//!
//! - [`address`]: the URL of a copy, and how it is connected to.
//! - [`password`]: passwords, from where `psql` takes them.
//! - [`failure`]: errors, by what can be done about them.
//! - [`dialect`]: PostgreSQL's words in the statements of a copy.
//! - [`cells`]: cells as parameters, in results, and as the JSON of many rows.
//! - [`session`]: a connection that holds the copy's lock.
//! - [`open`]: which schemas are taken.

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
pub mod password;
pub mod session;

pub use address::PostgresAddress;

/// A copy in PostgreSQL.
pub type PostgresCopy = SqlCopy<Session>;

impl PostgresCopy {
    /// Opens the copy of a service's content, or creates one, as [`SqlCopy::at`] does. Certificates are checked against
    /// `ca_file`, unless the address names a file itself.
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
