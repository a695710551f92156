//! A bucket: named objects in an object store (S3, Google Cloud Storage, Azure) or in a folder, which can be created only once.
//! The only module that names `object_store`.
//!
//! - [`url`]: where a bucket is.
//! - [`object`]: what is read and written.
//! - [`client`]: reading and writing its objects; [`probe`]: whether its store keeps what this rests on.
//! - [`seal`]: encrypting them.
//! - [`folder`] and [`remote`]: the two kinds of stores; [`fault`]: what a store's errors mean.
//! - [`error`]: what can go wrong, by what can be done about it.

pub mod client;
pub mod error;
mod fault;
mod folder;
pub mod object;
mod probe;
mod remote;
pub mod seal;
pub mod url;

pub use client::Bucket;
pub use error::BucketError;
pub use object::{Created, Listed, Object};
pub use probe::PROBES;
pub use seal::SealKey;
pub use url::BucketUrl;
