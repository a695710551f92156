//! The protocol: load the export, then apply the pages of the change feed, each saved with its token. After a change of
//! the license, the feed sends the difference. If the feed cannot continue from the token, load the export again. A
//! copy is proved by the digest of the service's export at the same token.

use super::client::PullClient;
use super::entry::FeedPage;
use super::error::{PullError, Result};
use super::export::ContentDigest;
use super::target::{Events, Position, PullTarget};
use crate::model::Dataset;

const MAX_EMPTY_PAGES: u32 = 100;

/// The most comparisons while the service's content changes during each one.
const MAX_COMPARISONS: u32 = 5;

/// A pull from a service into a copy.
pub struct Pull<'a> {
    /// The service.
    pub server: &'a PullClient,
    /// The copy.
    pub copy: &'a mut dyn PullTarget,
    /// Receives changes, progress and notes.
    pub events: &'a dyn Events,
}

/// The progress of a catch-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The number of feed entries that were applied.
    pub entries: u64,
    /// Whether the export was loaded.
    pub is_loaded: bool,
}

/// The result of a comparison.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The copy is equal to the service's content.
    Sound,
    /// The copy had this fault. It was loaded again, and is equal now.
    Repaired(String),
}

impl Pull<'_> {
    /// Brings the copy of a dataset up to date. If it is up to date already, the service may long-poll for `wait_s`
    /// seconds. Adds the progress to `done`, also before an error. Each applied page is kept, so the next call
    /// continues after it.
    pub fn catch_up(&mut self, dataset: Dataset, wait_s: u64, done: &mut Done) -> Result<()> {
        let mut budget = CatchUpBudget {
            left: self.server.limits().catch_up_items,
            empty_pages: 0,
        };
        loop {
            let Some(position) = self.copy.position(dataset)? else {
                return self.load(dataset, done).map(|_| ());
            };
            let page = match self.server.changes(dataset, &position.token, wait_s)? {
                Some(page) => page,
                // The license changed, or the service was restored from a backup. After a change of the license, newer
                // services send the difference as pages.
                None => match self.server.difference(dataset, &position.token)? {
                    Some(page) => {
                        self.events.note(&format!(
                            "{dataset}: the license changed; applying the difference"
                        ));
                        page
                    }
                    None => {
                        self.events.note(&format!(
                            "{dataset}: the license changed, or the service was restored from a backup; loading the export"
                        ));
                        return self.load(dataset, done).map(|_| ());
                    }
                },
            };
            if page.has_more || !page.entries.is_empty() {
                budget.check(&page, &position.token)?;
            }
            self.copy.apply(dataset, &page, self.events)?;
            done.entries += page.entries.len() as u64;
            if !page.has_more {
                return Ok(());
            }
        }
    }

    /// Makes the copy equal to the export. Returns the export's digest.
    fn load(&mut self, dataset: Dataset, done: &mut Done) -> Result<ContentDigest> {
        let note = |text: &str| self.events.note(text);
        let mut export = self.server.export(dataset, &note)?;
        self.copy.load(dataset, &mut export, self.events)?;
        done.is_loaded = true;
        Ok(export.content())
    }

    /// Continues the copy of a service that has moved to this address. The sync token and the digest of a dataset prove
    /// that it is the same service.
    pub fn follow_move(&mut self) -> Result<()> {
        for dataset in Dataset::ALL {
            let Some(Position {
                token,
                other_server: Some(other),
                ..
            }) = self.copy.position(dataset)?
            else {
                continue;
            };
            let server = self.server.server();
            let fits = match self.server.changes(dataset, &token, 0) {
                Ok(Some(_)) => {
                    self.catch_up(dataset, 0, &mut Done::default())?;
                    self.copy.digest(dataset)? == self.server.export_digest(dataset)?.1
                }
                Err(error) if error.is_transient() => return Err(error),
                _ => false,
            };
            if !fits {
                return Err(PullError::Unusable(format!(
                    "this is a copy of {other}, not of {server}; give another location with --to, or --reload to replace its \
                     content by what {server} has"
                )));
            }
            self.copy.set_verified(dataset)?;
            self.events.note(&format!(
                "the service has moved from {other} to {server}, which knows the sync token of the copy and has the same \
                 {dataset}; the copy goes on with their changes from there"
            ));
        }
        Ok(())
    }

    /// Brings the copy up to date, and compares it with the service's export at the same token. Also compares the
    /// derived tables and files with the records. Loads a copy that differs again, and compares it once more.
    pub fn verify(&mut self, dataset: Dataset, done: &mut Done) -> Result<Verdict> {
        for _ in 0..MAX_COMPARISONS {
            self.catch_up(dataset, 0, done)?;
            let (token, theirs) = self.server.export_digest(dataset)?;
            let Some(position) = self.copy.position(dataset)? else {
                continue;
            };
            let ours = self.copy.digest(dataset)?;
            if ours != theirs && token != position.token {
                // The service's content has changed meanwhile, so the two may differ.
                continue;
            }
            let Some(fault) = self.fault(dataset, &ours, &theirs)? else {
                self.copy.set_verified(dataset)?;
                return Ok(Verdict::Sound);
            };
            self.events.note(&format!(
                "{dataset}: the copy was changed or damaged: {fault}; loading the export"
            ));
            let theirs = self.load(dataset, done)?;
            // Another program may write to the copy at the same time.
            let ours = self.copy.digest(dataset)?;
            if let Some(left) = self.fault(dataset, &ours, &theirs)? {
                return Err(PullError::Unusable(format!(
                    "{dataset}: the copy still differs after the export was loaded: {left}; another program may be writing to \
                     it, or has altered its tables: stop that, or give another location"
                )));
            }
            self.copy.set_verified(dataset)?;
            return Ok(Verdict::Repaired(fault));
        }
        Err(PullError::failed(format!(
            "{dataset}: the service's content changed again and again while it was compared; verify it at a quieter time"
        )))
    }

    /// Compares the records with the service's digest, and the derived tables and files with the records.
    fn fault(
        &mut self,
        dataset: Dataset,
        ours: &ContentDigest,
        theirs: &ContentDigest,
    ) -> Result<Option<String>> {
        if ours != theirs {
            let ours = ours.records;
            let theirs = theirs.records;
            let counts = if ours == theirs {
                String::new()
            } else {
                format!(" ({ours} records instead of {theirs})")
            };
            return Ok(Some(format!(
                "it differs from the service's content{counts}"
            )));
        }
        match self.copy.position(dataset)? {
            Some(position) if position.records != ours.records => {
                Ok(Some("its count of records was wrong".to_owned()))
            }
            _ => self.copy.find_fault(dataset),
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
    /// Rejects a page with entries or `has_more` that makes no progress or exceeds the budget.
    fn check(&mut self, page: &FeedPage, asked: &str) -> Result<()> {
        let fault = if page.token == asked {
            "it has changes or more pages, but returns the sync token of the request".to_owned()
        } else if page.entries.is_empty() && self.empty_pages == MAX_EMPTY_PAGES {
            format!("it sends more than {MAX_EMPTY_PAGES} pages without entries in a row")
        } else if self.left <= page.entries.len() as u64 {
            "it sends more changes than any dataset can have".to_owned()
        } else {
            self.left -= page.entries.len() as u64 + 1;
            self.empty_pages = if page.entries.is_empty() {
                self.empty_pages + 1
            } else {
                0
            };
            return Ok(());
        };
        Err(PullError::failed(format!(
            "the service's feed does not end: {fault}; the copy stays as it was; check the address, and report it to the service's \
             operator"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pull::entry::Entry;

    fn page(entries: usize, token: &str) -> FeedPage {
        let entry = Entry {
            id: 1,
            is_removal: false,
            json: "{}".into(),
        };
        FeedPage {
            entries: vec![entry; entries],
            has_more: true,
            token: token.to_owned(),
        }
    }

    #[test]
    fn a_walk_that_does_not_end_is_an_error() {
        let mut budget = CatchUpBudget {
            left: 10,
            empty_pages: 0,
        };
        let error = budget.check(&page(1, "a"), "a").unwrap_err();
        assert!(
            error.to_string().contains("the sync token of the request"),
            "{error}"
        );
        budget.check(&page(4, "b"), "a").unwrap();
        budget.check(&page(4, "c"), "b").unwrap();
        let error = budget.check(&page(0, "d"), "c").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("more changes than any dataset can have"),
            "{error}"
        );

        let mut budget = CatchUpBudget {
            left: 1000,
            empty_pages: 0,
        };
        for _ in 0..MAX_EMPTY_PAGES {
            budget.check(&page(0, "b"), "a").unwrap();
        }
        let error = budget.check(&page(0, "b"), "a").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("more than 100 pages without entries"),
            "{error}"
        );
        budget.check(&page(1, "b"), "a").unwrap();
        budget.check(&page(0, "b"), "a").unwrap();
    }
}
