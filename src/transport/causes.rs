//! The causes of errors.

use std::error::Error;
use std::io;

use rustls_pki_types::pem;

use crate::disk::describe;

/// The innermost cause of an error as text. The outer ones only describe the operation.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause_of(cause) {
        cause = next;
    }
    cause.downcast_ref::<io::Error>().map_or_else(|| cause.to_string(), describe)
}

/// Why a PEM file cannot be used.
pub fn pem_fault(error: pem::Error) -> String {
    match error {
        pem::Error::Io(error) => describe(&error),
        error => error.to_string(),
    }
}

/// The cause of an error. For I/O errors it is the inner error, which `source` would skip.
pub fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
    wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped))
}
