//! The causes of errors.

use std::error::Error;

/// The innermost cause of an error. The outer ones only describe the operation.
pub fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(next) = cause_of(cause) {
        cause = next;
    }
    cause
}

/// The cause of an error. For I/O errors it is the inner error, which `source` would skip.
pub fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
    wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped))
}
