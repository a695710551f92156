//! The causes of errors.

use std::error::Error;

/// The innermost cause of an error, which says what happened; those around it say only what was being done.
pub fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(next) = cause_of(cause) {
        cause = next;
    }
    cause
}

/// The cause of an error. An I/O error names the cause of its inner error as its own, and skips the inner error.
pub fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
    wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped))
}
