//! The traits of a copy and of its observers, and the changes of an export, held back until it is proved.

use std::io::{self, BufRead, BufReader, Seek, Write};

use tempfile::SpooledTempFile;

use super::error::{PullError, Result};
use super::export::{ContentDigest, Export, FeedPage};
use crate::model::{Dataset, Timestamp, parse_time};

/// Changes of up to this many bytes stay in memory. Others go to an unnamed file in the folder for temporary files.
const IN_MEMORY: usize = 4 << 20;

/// The progress is reported after every so many records.
const PROGRESS_EVERY: u64 = 1000;

/// The position of a copy in the feed of a dataset.
#[derive(Debug, PartialEq, Eq)]
pub struct Position {
    /// The sync token of the last applied page or load.
    pub token: String,
    /// The number of records in the copy.
    pub records: u64,
    /// The Unix time, in seconds, when the copy last equaled the service's content; 0 for never.
    pub verified_at: i64,
    /// The address of the copy's service, if it is another one.
    pub other_server: Option<String>,
}

/// The Unix time, in seconds, of the time that a copy stores; 0 if there is none.
pub fn verified_s(stored: Option<&str>) -> i64 {
    let time = stored.and_then(|text| parse_time(text).ok());
    time.map_or(0, Timestamp::unix_s)
}

/// A copy of the datasets of one license. In a database, each method is one transaction of token and rows: after an
/// error or a crash, it has either taken effect or changed nothing. A folder replaces its files one after the other,
/// the token last.
pub trait PullTarget {
    /// The position of the copy; `None` if the export must be loaded.
    fn position(&mut self, dataset: Dataset) -> Result<Option<Position>>;

    /// The number of records that the copy holds of the service's dataset, also if the export must be loaded; `None` if
    /// it was never loaded.
    fn records(&mut self, dataset: Dataset) -> Result<Option<u64>>;

    /// Applies a page and saves its token.
    fn apply(&mut self, dataset: Dataset, page: &FeedPage, events: &dyn Events) -> Result<()>;

    /// Makes the copy equal to an export and saves its token. Readers see the old content until then. Also
    /// writes the tables derived from the records again. Reports only records that differ.
    fn load(
        &mut self,
        dataset: Dataset,
        export: &mut Export<'_>,
        events: &dyn Events,
    ) -> Result<()>;

    /// Removes the records of a dataset together with its position, and returns their number. Each one is reported as a
    /// tombstone.
    fn clear(&mut self, dataset: Dataset, events: &dyn Events) -> Result<u64>;

    /// The digest of the copy's records.
    fn digest(&mut self, dataset: Dataset) -> Result<ContentDigest>;

    /// Compares all derived tables and files with the records. Returns a description of the first fault.
    fn find_fault(&mut self, dataset: Dataset) -> Result<Option<String>>;

    /// Saves the address of the service, and the time at which the copy equaled its content: now.
    fn set_verified(&mut self, dataset: Dataset) -> Result<()>;

    /// Fails if the copy's path was removed or now leads to another file.
    fn check_location(&self) -> Result<()>;
}

/// Observes a pull.
pub trait Events {
    /// Whether [`change`](Self::change) does anything with an entry.
    fn takes_changes(&self) -> bool {
        true
    }

    /// Receives a changed entry of a page or an export that has come whole, before the entry is saved: at least once,
    /// and twice after a crash. After an error, it is not saved.
    fn change(&self, _dataset: Dataset, _json: &str) -> Result<()> {
        Ok(())
    }

    /// Receives the number of records read from an export of `of` records.
    fn progress(&self, _dataset: Dataset, _records: u64, _of: u64) {}

    /// Receives a message for the user.
    fn note(&self, text: &str);
}

/// Entries that nobody has received yet. Those of a load that fails are dropped.
pub struct Changes<'a> {
    dataset: Dataset,
    events: &'a dyn Events,
    /// One entry per line.
    lines: SpooledTempFile,
}

impl<'a> Changes<'a> {
    /// No entries.
    pub fn new(dataset: Dataset, events: &'a dyn Events) -> Changes<'a> {
        Changes {
            dataset,
            events,
            lines: SpooledTempFile::new(IN_MEMORY),
        }
    }

    /// Adds an entry as JSON without line breaks.
    pub fn add(&mut self, json: &str) -> Result<()> {
        if !self.events.takes_changes() {
            return Ok(());
        }
        self.lines
            .write_all(json.as_bytes())
            .and_then(|()| self.lines.write_all(b"\n"))
            .map_err(|error| failure(&error))
    }

    /// Passes the entries on, in their order.
    pub fn send(&mut self) -> Result<()> {
        self.lines.rewind().map_err(|error| failure(&error))?;
        for line in BufReader::new(&mut self.lines).lines() {
            self.events
                .change(self.dataset, &line.map_err(|error| failure(&error))?)?;
        }
        Ok(())
    }
}

/// Reports the progress of a load, every thousand records and after the last one.
pub fn report(dataset: Dataset, export: &Export<'_>, events: &dyn Events) {
    let received = export.received();
    let all = export.announced.records;
    if received.is_multiple_of(PROGRESS_EVERY) || received == all {
        events.progress(dataset, received, all);
    }
}

/// The tombstone of a record that left at an unknown time.
pub fn tombstone(id: i64) -> String {
    format!("{{\"id\":{id},\"deleted\":true,\"changed_at\":null}}")
}

fn failure(error: &io::Error) -> PullError {
    let folder = std::env::temp_dir();
    PullError::Unwritable(format!(
        "cannot keep the changes of the export in {} until it is whole ({error}); free some space, or set TMPDIR to another \
         folder",
        folder.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    struct Receiver {
        takes: bool,
        received: RefCell<Vec<String>>,
    }

    impl Events for Receiver {
        fn takes_changes(&self) -> bool {
            self.takes
        }

        fn change(&self, dataset: Dataset, json: &str) -> Result<()> {
            assert_eq!(dataset, Dataset::Journals);
            self.received.borrow_mut().push(json.to_owned());
            Ok(())
        }

        fn note(&self, _: &str) {}
    }

    #[test]
    fn changes_are_passed_on_in_their_order_however_many_they_are() {
        let large = format!("{{\"id\":2,\"name\":\"{}\"}}", "x".repeat(IN_MEMORY));
        for takes in [true, false] {
            let receiver = Receiver {
                takes,
                received: RefCell::default(),
            };
            let mut changes = Changes::new(Dataset::Journals, &receiver);
            changes.add("{\"id\":1}").unwrap();
            changes.add(&large).unwrap();
            changes.add(&tombstone(3)).unwrap();
            assert!(receiver.received.borrow().is_empty(), "held back");
            changes.send().unwrap();
            let expected = [
                "{\"id\":1}",
                &large,
                "{\"id\":3,\"deleted\":true,\"changed_at\":null}",
            ];
            let expected = if takes { expected.to_vec() } else { Vec::new() };
            assert_eq!(receiver.received.into_inner(), expected);
        }
    }
}
