//! The causes of errors.

use std::error::Error;

/// The innermost cause of an error. Outer errors only describe the operation that failed.
pub fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(next) = cause_of(cause) {
        cause = next;
    }
    cause
}

/// The cause of an error. For an I/O error, this is its inner error, which `source()` skips.
pub fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
    wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped))
}
