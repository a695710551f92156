//! All integration tests, in one binary.

mod process;
mod properties;
