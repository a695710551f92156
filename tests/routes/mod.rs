//! The endpoints, then tests across all endpoints.

mod addresses;
mod auth;
mod changes;
mod clock;
mod conferences;
mod docs;
mod explorer;
mod exports;
mod hidden;
mod history;
mod http;
mod instants;
mod journals;
mod long_polls;
mod memory;
mod misses;
mod order;
mod rate;
mod reference;
mod resync;
mod servers;
mod shared_feeds;
mod status;
