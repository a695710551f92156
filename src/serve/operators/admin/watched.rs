//! What operators and their monitoring may ask of a program.

use std::fmt::Debug;

/// A program that is watched. It is asked in threads that may wait, but for [`Watched::unready`] and
/// [`Watched::remark`].
pub trait Watched: Debug + Send + Sync + 'static {
    /// Why it is not ready; `None` if it is.
    fn unready(&self) -> Option<String>;

    /// What the operator should know of a program that is ready.
    fn remark(&self) -> Option<String> {
        None
    }

    /// The OpenMetrics text of a scrape.
    fn scrape(&self) -> String;

    /// The page for operators, or why it cannot be made; `None` for a program without one.
    fn page(&self) -> Option<Result<String, String>>;
}
