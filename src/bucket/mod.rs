//! A bucket: named objects in an object store (S3, Google Cloud Storage, Azure) or in a folder. An object's name can be
//! created only once. The only module that uses `object_store`.
//!
//! - [`url`]: the URL of a bucket.
//! - [`object`]: objects, and the errors of a bucket.
//! - [`client`]: reading and writing objects, and testing the store.
//! - [`seal`]: encrypting objects.
//! - [`folder`] and [`remote`]: the two kinds of stores. [`fault`]: mapping a store's errors.

pub mod client;
mod fault;
mod folder;
pub mod object;
mod remote;
pub mod seal;
pub mod url;

pub use client::Bucket;
pub use object::{BucketError, BucketObject, Created, ListedObject, Result};
pub use seal::SealKey;
pub use url::BucketUrl;
