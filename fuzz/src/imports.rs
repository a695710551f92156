//! Imports a file into a database. An accepted file passes the check of the store, and a second import of it changes
//! nothing. A refused file gets a message.

use std::fs;
use std::path::Path;
use std::time::Duration;

use medfeed::import::{
    self, Bounds, DateOrder, DecimalSign, Findings, Given, MergeOptions, Merged, ReadOptions, Source, SourceOptions,
};
use medfeed::store::check::check;
use medfeed::store::{Edit, Writer};

use crate::database::{Database, time};

/// One of this many accepted files is also committed and checked. The content of the file selects it.
const CHECKED: u8 = 4;

/// The names of files, and of the kinds of their rows.
const KINDS: [&str; 4] = ["conferences", "journals", "organizations", "tags"];

/// The number of bytes before the content: the options, and the kind of the rows.
const HEAD_BYTES: usize = 2;

pub struct Importer(Database);

impl Importer {
    #[allow(clippy::new_without_default, reason = "it makes files")]
    pub fn new() -> Importer {
        Importer(Database::filled())
    }

    /// Imports a file with this ending. The first bytes of the input are the options and the kind.
    pub fn import(&self, input: &[u8], ending: &str) {
        let Some((&[options, kind], content)) = input.split_first_chunk::<HEAD_BYTES>() else { return };
        let name = KINDS[usize::from(kind) % KINDS.len()];
        self.import_with(&read_options(options), &format!("{name}.{ending}"), content);
    }

    /// Imports a file.
    pub fn import_with(&self, options: &ReadOptions, name: &str, content: &[u8]) {
        let path = self.0.folder().join(name);
        fs::write(&path, content).expect("the file is written");
        let mut edit = self.0.writer.begin_at(time()).expect("a transaction");
        let merged = match read(&path, options, &edit) {
            Ok(merged) => merged,
            Err(refusal) => {
                assert!(!refusal.trim().is_empty(), "a refusal has a message");
                return;
            }
        };
        edit.apply(&merged.batch).expect("an accepted file is applied");
        let again = read(&path, options, &edit).unwrap_or_else(|refusal| panic!("refused the second time: {refusal}"));
        assert!(again.assigned.is_empty(), "the second import assigns ids: {:?}", again.assigned);
        let outcome = edit.apply(&again.batch).expect("it is applied again");
        let datasets = [&outcome.rows.datasets.conferences, &outcome.rows.datasets.journals];
        for counts in datasets.into_iter().chain([&outcome.rows.organizations, &outcome.rows.tags]) {
            assert_eq!((counts.added, counts.changed, counts.removed), (0, 0, 0), "the second import: {:?}", outcome.rows);
        }
        drop(edit);
        if blake3::hash(content).as_bytes()[0] % CHECKED == 0 {
            self.commit_and_check(&merged);
        }
    }

    /// Commits a batch in a copy of the database, and checks the copy.
    fn commit_and_check(&self, merged: &Merged) {
        let copy = self.0.folder().join("copy.redb");
        fs::copy(self.0.path(), &copy).expect("a copy");
        let mut writer = Writer::open(&copy, Duration::ZERO).expect("the copy opens");
        let mut edit = writer.begin_at(time()).expect("a transaction");
        edit.apply(&merged.batch).expect("the batch is applied");
        edit.commit().expect("the commit");
        let report = check(&mut writer).expect("the check runs");
        assert_eq!(report.damages, 0, "{:?}", report.findings);
    }
}

fn read(path: &Path, options: &ReadOptions, edit: &Edit<'_>) -> Result<Merged, String> {
    let sources = Source::find(&[path.to_owned()], SourceOptions::default()).map_err(|error| error.to_string())?;
    let rows = import::read_sources(&sources, options).map_err(|error| error.to_string())?;
    let removals = MergeOptions { allow_removals: Some(u64::MAX), ..MergeOptions::default() };
    import::merge(rows, &edit.base().expect("a state"), &removals).map_err(|refusal| {
        if let import::Refusal::BadRows(bad) = &refusal {
            assert_ne!(bad.total(), 0, "a refusal counts its rows");
            assert!(bad.kept().len() <= Findings::MAX_KEPT, "the list of faults is bounded");
        }
        refusal.to_string()
    })
}

/// The options that the bits of a byte select. A zero selects the defaults.
pub fn read_options(bits: u8) -> ReadOptions {
    let small = Bounds { line_bytes: 400, columns: 12, rows: 12, file_bytes: 3000 };
    let named = Given { value: vec!["name".to_owned(), "year".to_owned()], origin: "--match name,year".to_owned() };
    ReadOptions {
        bounds: if bits & 1 == 0 { Bounds::default() } else { small },
        ignore_unknown: bits & 2 != 0,
        matching: if bits & 4 == 0 { Vec::new() } else { vec![named] },
        decimal: [None, Some(DecimalSign::Point), Some(DecimalSign::Comma), None][usize::from(bits >> 3) % 4],
        dates: [None, Some(DateOrder::Dmy), Some(DateOrder::Mdy), None][usize::from(bits >> 5) % 4],
        has_recipe: bits & 128 != 0,
        ..ReadOptions::default()
    }
}
