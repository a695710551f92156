//! The interface of a monitored program.

use std::fmt::Debug;

/// A monitored program. [`Monitored::unready`] and [`Monitored::warning`] must not block.
pub trait Monitored: Debug + Send + Sync + 'static {
    /// The reason why it is not ready; `None` if it is.
    fn unready(&self) -> Option<String>;

    /// A warning for the operator of a ready program.
    fn warning(&self) -> Option<String> {
        None
    }

    /// The OpenMetrics text of a scrape.
    fn scrape(&self) -> String;

    /// The operators' page, or an error message; `None` for a program without a page.
    fn page(&self) -> Option<Result<String, String>>;
}
