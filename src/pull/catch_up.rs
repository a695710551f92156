//! The protocol: load the export, then apply page after page of the change feed, each saved with its token. After a change of
//! the license the feed tells the difference; only what it does not lead back from is loaded anew.

use super::client::{ChangesResponse, PullClient};
use super::digest::ContentDigest;
use super::entry::FeedPage;
use super::error::PullError;
use super::target::{Events, PullTarget};
use crate::model::Dataset;

/// The most pages without entries, one after the other, that say that there is more.
const EMPTY_PAGES: u32 = 100;

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
    server: &PullClient,
    copy: &mut dyn PullTarget,
    dataset: Dataset,
    wait_s: u64,
    events: &dyn Events,
    done: &mut Done,
) -> Result<(), PullError> {
    let mut walk = CatchUpBudget { left: server.limits().walk_items, empty_pages: 0 };
    loop {
        let Some(position) = copy.position(dataset)? else {
            // A copy that has no token, or one that cannot be gone on with, begins with the export.
            return load(server, copy, dataset, true, events, done).map(|_| ());
        };
        let page = match server.changes(dataset, &position.token, wait_s)? {
            ChangesResponse::Page(page) => page,
            // 410: the license changed, or the service went back in time. What a change of the license brings and takes is
            // told by pages as well, unless the service is too old for that.
            ChangesResponse::ResyncRequired => match server.difference(dataset, &position.token)? {
                ChangesResponse::Page(page) => {
                    events.note(&format!("{dataset}: the license changed; taking what entered and left"));
                    page
                }
                ChangesResponse::ResyncRequired => {
                    events.note(&format!(
                        "{dataset}: the license changed, or the service was restored from a backup; loading the export"
                    ));
                    return load(server, copy, dataset, false, events, done).map(|_| ());
                }
            },
        };
        if page.has_more {
            walk.check(&page, &position.token)?;
        }
        copy.apply(dataset, &page, events)?;
        done.entries += page.entries.len() as u64;
        if !page.has_more {
            return Ok(());
        }
    }
}

/// The rest of a catch-up's budget.
struct CatchUpBudget {
    /// Entries and pages.
    left: u64,
    /// Pages without entries, one after the other.
    empty_pages: u32,
}

impl CatchUpBudget {
    /// Refuses a page that says that there is more, and leads nowhere or is one too many.
    fn check(&mut self, page: &FeedPage, asked: &str) -> Result<(), PullError> {
        let fault = if page.token == asked {
            "it says that there is more, and gives the sync token that it was asked with".to_owned()
        } else if page.entries.is_empty() && self.empty_pages == EMPTY_PAGES {
            format!(
                "it sends more than {EMPTY_PAGES} pages without entries one after the other, and says that there is more"
            )
        } else if self.left <= page.entries.len() as u64 {
            "it sends more changes than any dataset can have, and says that there is more".to_owned()
        } else {
            self.left -= page.entries.len() as u64 + 1;
            self.empty_pages = if page.entries.is_empty() { self.empty_pages + 1 } else { 0 };
            return Ok(());
        };
        Err(PullError::failed(format!(
            "the service's feed does not end: {fault}; the copy stays as it was; check the address, and report it to the service's \
             operator"
        )))
    }
}

/// Makes the copy equal to the export; returns the export's digest.
///
/// # Errors
/// When the export does not come whole, or the copy cannot be written; it is unchanged then.
pub fn load(
    server: &PullClient,
    copy: &mut dyn PullTarget,
    dataset: Dataset,
    anew: bool,
    events: &dyn Events,
    done: &mut Done,
) -> Result<ContentDigest, PullError> {
    let note = |text: &str| events.note(text);
    let mut export = server.export(dataset, &note)?;
    copy.load(dataset, &mut export, anew, events)?;
    done.is_loaded = true;
    Ok(export.content())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pull::entry::Entry;

    fn page(entries: usize, token: &str) -> FeedPage {
        let entry = Entry { id: 1, is_removal: false, json: "{}".into() };
        FeedPage { entries: vec![entry; entries], has_more: true, token: token.to_owned() }
    }

    #[test]
    fn a_walk_ends() {
        let mut walk = CatchUpBudget { left: 10, empty_pages: 0 };
        let error = walk.check(&page(1, "a"), "a").unwrap_err();
        assert!(error.to_string().contains("the sync token that it was asked with"), "{error}");
        walk.check(&page(4, "b"), "a").unwrap();
        walk.check(&page(4, "c"), "b").unwrap();
        let error = walk.check(&page(0, "d"), "c").unwrap_err();
        assert!(error.to_string().contains("more changes than any dataset can have"), "{error}");

        let mut walk = CatchUpBudget { left: 1000, empty_pages: 0 };
        for _ in 0..EMPTY_PAGES {
            walk.check(&page(0, "b"), "a").unwrap();
        }
        let error = walk.check(&page(0, "b"), "a").unwrap_err();
        assert!(error.to_string().contains("more than 100 pages without entries"), "{error}");
        walk.check(&page(1, "b"), "a").unwrap();
        walk.check(&page(0, "b"), "a").unwrap();
    }
}
