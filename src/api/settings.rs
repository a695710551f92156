//! The settings of a service.

use std::sync::Arc;

use super::answers;
use super::browsers::Cors;
use crate::explorer::Demo;

/// The settings of a service.
#[derive(Debug)]
pub struct Settings {
    /// The URL for callers, without a trailing slash and without `/v1`.
    pub public_url: String,
    /// The base URL of error pages: `{docs_url}/errors/<code>`.
    pub docs_url: String,
    /// The URL where callers reach the operator.
    pub contact: Option<String>,
    /// The capacity of the answer cache, in bytes.
    pub answer_cache_bytes: u64,
    /// The web applications that may call the API.
    pub cors: Cors,
    /// The data of the explorer in `medfeed demo`.
    pub demo: Option<Arc<Demo>>,
}

impl Settings {
    /// The defaults for a public URL.
    pub fn of(public_url: &str) -> Settings {
        let public_url = public_url.trim_end_matches('/').to_owned();
        Settings {
            docs_url: format!("{public_url}/docs"),
            public_url,
            contact: None,
            answer_cache_bytes: answers::DEFAULT_MAX_BYTES,
            cors: Cors::default(),
            demo: None,
        }
    }
}
