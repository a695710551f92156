//! Code that several targets use.
//!
//! - [`seeds`]: writes the first inputs of a target.
//! - [`database`]: a database with the records of `fixtures`.
//! - [`imports`]: imports a file.
//! - [`words`]: the words that libFuzzer inserts.

pub mod database;
pub mod imports;
pub mod seeds;
pub mod words;
