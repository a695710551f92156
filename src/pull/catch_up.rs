//! The protocol: load the export, then apply the pages of the change feed, each saved with its token. After a change of
//! the license, the feed sends the difference. If the feed cannot continue from the token, load the export again.

use super::client::{ChangesResponse, PullClient};
use super::digest::ContentDigest;
use super::entry::FeedPage;
use super::error::PullError;
use super::target::{Events, PullTarget};
use crate::model::Dataset;

const MAX_EMPTY_PAGES: u32 = 100;

/// The progress of a catch-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The number of feed entries that were applied.
    pub entries: u64,
    /// Whether the export was loaded.
    pub is_loaded: bool,
}

/// Brings the copy of a dataset up to date. If it is up to date already, the service may long-poll for `wait_s`
/// seconds. Adds the progress to `done`, also before an error. Each applied page is kept, so the next call continues
/// after it.
pub fn catch_up(
    server: &PullClient,
    copy: &mut dyn PullTarget,
    dataset: Dataset,
    wait_s: u64,
    events: &dyn Events,
    done: &mut Done,
) -> Result<(), PullError> {
    let mut budget = CatchUpBudget { left: server.limits().catch_up_items, empty_pages: 0 };
    loop {
        let Some(position) = copy.position(dataset)? else {
            return load(server, copy, dataset, true, events, done).map(|_| ());
        };
        let page = match server.changes(dataset, &position.token, wait_s)? {
            ChangesResponse::Page(page) => page,
            // 410: the license changed, or the service was restored from a backup. After a change of the license, newer
            // services send the difference as pages.
            ChangesResponse::ResyncRequired => match server.difference(dataset, &position.token)? {
                ChangesResponse::Page(page) => {
                    events.note(&format!("{dataset}: the license changed; applying the difference"));
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
            budget.check(&page, &position.token)?;
        }
        copy.apply(dataset, &page, events)?;
        done.entries += page.entries.len() as u64;
        if !page.has_more {
            return Ok(());
        }
    }
}

/// The work that a catch-up may still do.
struct CatchUpBudget {
    /// The number of entries plus pages.
    left: u64,
    empty_pages: u32,
}

impl CatchUpBudget {
    /// Rejects a page with `has_more` that makes no progress or exceeds the budget.
    fn check(&mut self, page: &FeedPage, asked: &str) -> Result<(), PullError> {
        let fault = if page.token == asked {
            "it has more pages, but returns the sync token of the request".to_owned()
        } else if page.entries.is_empty() && self.empty_pages == MAX_EMPTY_PAGES {
            format!("it sends more than {MAX_EMPTY_PAGES} pages without entries in a row")
        } else if self.left <= page.entries.len() as u64 {
            "it sends more changes than any dataset can have".to_owned()
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

/// Makes the copy equal to the export. Returns the export's digest.
pub fn load(
    server: &PullClient,
    copy: &mut dyn PullTarget,
    dataset: Dataset,
    rewrite_all: bool,
    events: &dyn Events,
    done: &mut Done,
) -> Result<ContentDigest, PullError> {
    let note = |text: &str| events.note(text);
    let mut export = server.export(dataset, &note)?;
    copy.load(dataset, &mut export, rewrite_all, events)?;
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
        let mut budget = CatchUpBudget { left: 10, empty_pages: 0 };
        let error = budget.check(&page(1, "a"), "a").unwrap_err();
        assert!(error.to_string().contains("the sync token of the request"), "{error}");
        budget.check(&page(4, "b"), "a").unwrap();
        budget.check(&page(4, "c"), "b").unwrap();
        let error = budget.check(&page(0, "d"), "c").unwrap_err();
        assert!(error.to_string().contains("more changes than any dataset can have"), "{error}");

        let mut budget = CatchUpBudget { left: 1000, empty_pages: 0 };
        for _ in 0..MAX_EMPTY_PAGES {
            budget.check(&page(0, "b"), "a").unwrap();
        }
        let error = budget.check(&page(0, "b"), "a").unwrap_err();
        assert!(error.to_string().contains("more than 100 pages without entries"), "{error}");
        budget.check(&page(1, "b"), "a").unwrap();
        budget.check(&page(0, "b"), "a").unwrap();
    }
}
