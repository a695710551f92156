//! medfeed: a licensed feed of medical conference and journal records.
//!
//! All work happens when data is written; every read is a short range scan of an index that already holds the answer,
//! on one immutable snapshot. ARCHITECTURE.md tells the whole; the modules, in reading order:
//!
//! - [`model`]: the plain types and their rules.

pub mod model;
