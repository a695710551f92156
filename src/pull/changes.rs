//! The changes that an export brings. They are held back until the export is proved.

use std::io::{self, BufRead, BufReader, Seek, Write};

use tempfile::SpooledTempFile;

use super::error::PullError;
use super::target::Events;
use crate::model::Dataset;

/// Changes of up to this many bytes stay in memory. Others go to an unnamed file in the folder for temporary files.
const IN_MEMORY: usize = 4 << 20;

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
        Changes { dataset, events, lines: SpooledTempFile::new(IN_MEMORY) }
    }

    /// Adds an entry as JSON without line breaks.
    pub fn add(&mut self, json: &str) -> Result<(), PullError> {
        if !self.events.takes_changes() {
            return Ok(());
        }
        self.lines
            .write_all(json.as_bytes())
            .and_then(|()| self.lines.write_all(b"\n"))
            .map_err(|error| failure(&error))
    }

    /// Adds the tombstone of a record that the export lacks. Nobody knows when the record left.
    pub fn add_removal(&mut self, id: i64) -> Result<(), PullError> {
        self.add(&tombstone(id))
    }

    /// Passes the entries on, in their order.
    pub fn tell(&mut self) -> Result<(), PullError> {
        self.lines.rewind().map_err(|error| failure(&error))?;
        for line in BufReader::new(&mut self.lines).lines() {
            self.events.change(self.dataset, &line.map_err(|error| failure(&error))?)?;
        }
        Ok(())
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

        fn change(&self, dataset: Dataset, json: &str) -> Result<(), PullError> {
            assert_eq!(dataset, Dataset::Journals);
            self.received.borrow_mut().push(json.to_owned());
            Ok(())
        }

        fn progress(&self, _: Dataset, _: u64, _: u64) {}

        fn note(&self, _: &str) {}
    }

    #[test]
    fn changes_are_passed_on_in_their_order_however_many_they_are() {
        let large = format!("{{\"id\":2,\"name\":\"{}\"}}", "x".repeat(IN_MEMORY));
        for takes in [true, false] {
            let receiver = Receiver { takes, received: RefCell::default() };
            let mut changes = Changes::new(Dataset::Journals, &receiver);
            changes.add("{\"id\":1}").unwrap();
            changes.add(&large).unwrap();
            changes.add_removal(3).unwrap();
            assert!(receiver.received.borrow().is_empty(), "held back");
            changes.tell().unwrap();
            let expected = ["{\"id\":1}", &large, "{\"id\":3,\"deleted\":true,\"changed_at\":null}"];
            let expected = if takes { expected.to_vec() } else { Vec::new() };
            assert_eq!(receiver.received.into_inner(), expected);
        }
    }
}
