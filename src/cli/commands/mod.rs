//! The subcommands.

pub mod database;
pub mod demo;
pub mod export;
pub mod import;
pub mod key;
pub mod license;
pub mod log;
pub mod manual;
pub mod promote;
pub mod publish;
pub mod pull;
pub mod serve;
