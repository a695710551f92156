//! The protocol: load the export, then apply page after page of the change feed, each saved with its token. After a change of
//! the license the feed tells the difference; only what it does not lead back from is loaded anew.

use super::client::{Changes, Client};
use super::error::PullError;
use super::target::{Events, Target};
use crate::model::Dataset;

/// What a catch-up did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Entries of the feed that were applied.
    pub entries: u64,
    /// Whether the export was loaded.
    pub is_loaded: bool,
}

/// Brings the copy of a dataset to the present; when it is there already, the service may wait for news for `wait_s` seconds.
/// `done` counts on, also when an error ends it.
///
/// # Errors
/// When the service or the copy fails; what was applied till then stays, and the next call goes on from there.
pub fn catch_up(
    server: &Client,
    copy: &mut dyn Target,
    dataset: Dataset,
    wait_s: u64,
    events: &dyn Events,
    done: &mut Done,
) -> Result<(), PullError> {
    loop {
        let Some(position) = copy.position(dataset)? else {
            // A copy that has no token, or one that cannot be gone on with, begins with the export.
            return load(server, copy, dataset, true, events, done);
        };
        let page = match server.changes(dataset, &position.token, wait_s)? {
            Changes::Page(page) => page,
            // 410: the license changed, or the service went back in time. What a change of the license brings and takes is
            // told by pages as well, unless the service is too old for that.
            Changes::ResyncRequired => match server.difference(dataset, &position.token)? {
                Changes::Page(page) => {
                    events.note(&format!("{dataset}: the license changed; taking what entered and left"));
                    page
                }
                Changes::ResyncRequired => {
                    events.note(&format!(
                        "{dataset}: the license changed, or the service was restored from a backup; loading the export"
                    ));
                    return load(server, copy, dataset, false, events, done);
                }
            },
        };
        copy.apply(dataset, &page, events)?;
        done.entries += page.entries.len() as u64;
        if !page.has_more {
            return Ok(());
        }
    }
}

/// Makes the copy equal to the export.
///
/// # Errors
/// When the export does not come whole, or the copy cannot be written; it is unchanged then.
pub fn load(
    server: &Client,
    copy: &mut dyn Target,
    dataset: Dataset,
    anew: bool,
    events: &dyn Events,
    done: &mut Done,
) -> Result<(), PullError> {
    let note = |text: &str| events.note(text);
    let mut export = server.export(dataset, &note)?;
    copy.load(dataset, &mut export, anew, events)?;
    done.is_loaded = true;
    Ok(())
}
