//! The subcommands.

pub(in crate::cli) mod check;
pub(in crate::cli) mod demo;
pub(in crate::cli) mod export;
pub(in crate::cli) mod import;
pub(in crate::cli) mod key;
pub(in crate::cli) mod license;
pub(in crate::cli) mod log;
pub(in crate::cli) mod manual;
pub(in crate::cli) mod promote;
pub(in crate::cli) mod publish;
pub(in crate::cli) mod pull;
pub(in crate::cli) mod replace;
pub(in crate::cli) mod serve;
pub(in crate::cli) mod template;
