//! The code by which requests wait, compiled with shuttle's locks and notifications. All else is the library's.

pub use medfeed::{api, model};

/// `src/serve` of the library, as far as it waits.
pub mod serve {
    /// `src/serve/connection`.
    pub mod connection {
        /// The connections.
        pub mod limits {
            include!(concat!(env!("OUT_DIR"), "/limits.rs"));
        }
        /// Requests that wait for a change.
        pub mod long_polls {
            include!(concat!(env!("OUT_DIR"), "/long_polls.rs"));
        }
    }
}
