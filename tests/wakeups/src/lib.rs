//! The code by which requests wait, compiled with shuttle's locks and notifications. All else is the library's.

pub use medfeed::{api, model};

/// `src/serve` of the library, as far as it waits.
pub mod serve {
    /// `src/serve/connection`.
    pub mod connection {
        /// The limits of connections.
        pub mod limiter {
            include!(concat!(env!("OUT_DIR"), "/limiter.rs"));
        }
        /// Requests that wait for a change.
        pub mod long_polls {
            include!(concat!(env!("OUT_DIR"), "/long_polls.rs"));
        }
        /// The state of a connection.
        pub mod state {
            include!(concat!(env!("OUT_DIR"), "/state.rs"));
        }
    }
}
