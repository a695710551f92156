//! Outgoing HTTP requests, pauses between attempts, and the TLS settings of all connections.

pub mod backoff;
pub mod http;
pub mod tls;
pub mod trust;

use std::error::Error;

/// The innermost cause of an error, which says what happened; those around it say only what was being done.
pub fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(next) = inner(cause) {
        cause = next;
    }
    cause
}

/// The cause of an error. An I/O error names the cause of its inner error as its own, and skips the inner error.
pub(self) fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
    wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped))
}
