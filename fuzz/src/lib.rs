//! Code that several targets use.
//!
//! - [`seeds`]: writes the first inputs of a target.
//! - [`database`]: a database with the records of `fixtures`.
//! - [`imports`]: imports a file.
//! - [`rows`]: stored rows as text.
//! - [`words`]: the words that libFuzzer inserts.

pub mod database;
pub mod imports;
pub mod rows;
pub mod seeds;
pub mod words;
