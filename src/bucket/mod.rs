//! A bucket: named objects in an object store (S3, Google Cloud Storage, Azure) or in a folder. An object's name can be
//! created only once. The only module that uses `object_store`.
//!
//! - [`url`]: the URL of a bucket.
//! - [`object`]: the types of objects.
//! - [`client`]: reading and writing objects. [`probe`]: testing the store.
//! - [`seal`]: encrypting objects.
//! - [`folder`] and [`remote`]: the two kinds of stores. [`fault`]: mapping a store's errors.
//! - [`error`]: the errors of a bucket.

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
pub use object::{BucketObject, Created, ListedObject};
pub use seal::SealKey;
pub use url::BucketUrl;
