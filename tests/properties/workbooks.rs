//! Workbooks with bytes that were changed at random: each is read or refused, without a panic and within a time limit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use medfeed::import::{ReadOptions, Source, SourceOptions, read_sources};
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook};

use super::variable;
use crate::process::site::Random;
use crate::process::workbook_parts::Parts;

const CASES: u64 = 600;

/// The time limit for reading one of them. They have a few KiB.
const SOON: Duration = Duration::from_secs(10);

/// Bytes with a meaning in XML or in zip archives.
const TELLING: &[u8] = b"<>\"'&;/=:!-0123456789AZaz \x00\x01\x7f\x80\xff";

/// A workbook with each kind of cell.
fn book() -> Vec<u8> {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet().set_name("journals").unwrap();
    for (column, name) in (0..).zip(["id", "name", "url", "impact_factor", "h_index", "abbv"]) {
        sheet.write_string(0, column, name).unwrap();
    }
    for row in 1..20 {
        sheet.write_number(row, 0, row).unwrap();
        sheet
            .write_string(row, 1, format!("Journal {row} _x000D_ é😀"))
            .unwrap();
        sheet
            .write_url_with_text(
                row,
                2,
                format!("https://example.org/{row}").as_str(),
                "here",
            )
            .unwrap();
        sheet
            .write_number_with_format(
                row,
                3,
                2.5,
                &Format::new().set_num_format("#,##0.00;[Red]-0.0"),
            )
            .unwrap();
        sheet
            .write_formula(row, 4, Formula::new("=1+1").set_result("2"))
            .unwrap();
        sheet.write_boolean(row, 5, true).unwrap();
    }
    sheet
        .merge_range(20, 1, 21, 2, "merged", &Format::new())
        .unwrap();
    let sheet = workbook.add_worksheet().set_name("conferences").unwrap();
    sheet.write_string(0, 0, "id").unwrap();
    sheet.write_string(0, 1, "start_date").unwrap();
    let date = Format::new().set_num_format("[$-409]d\\-mmm\\-yyyy;@");
    sheet
        .write_datetime_with_format(1, 1, ExcelDateTime::from_ymd(2026, 3, 15).unwrap(), &date)
        .unwrap();
    workbook.save_to_buffer().unwrap()
}

/// Changes some bytes: other values, pieces left out, pieces repeated, pieces moved.
fn mutate(content: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        if content.is_empty() {
            return;
        }
        let at = random.below(content.len());
        let end = (at + 1 + random.below(40)).min(content.len());
        match random.below(6) {
            0 => content[at] ^= 1 << random.below(8),
            1 | 2 => content[at] = TELLING[random.below(TELLING.len())],
            3 => drop(content.drain(at..end)),
            4 => {
                let piece = content[at..end].repeat(1 + random.below(50));
                content.splice(at..at, piece);
            }
            _ => {
                let piece = content[at..end].to_vec();
                let to = random.below(content.len());
                content.splice(to..to, piece);
            }
        }
    }
}

/// Reads the workbook. Returns whether it could be read.
fn reads(path: &Path) -> bool {
    let sources = Source::find(&[PathBuf::from(path)], SourceOptions::default()).unwrap();
    read_sources(&sources, &ReadOptions::default()).is_ok()
}

#[test]
fn workbooks_with_changed_bytes_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("book.xlsx");
    let whole = book();
    std::fs::write(&path, &whole).unwrap();
    assert!(reads(&path));
    let parts = Parts::of(&whole);
    let names = parts.names();
    let first = variable("MEDFEED_SEED").unwrap_or(1);
    let mut read = 0;
    for seed in first..first + variable("MEDFEED_CASES").unwrap_or(CASES) {
        let mut random = Random::new(seed);
        let mut changed = if seed % 3 == 0 {
            let mut book = whole.clone();
            mutate(&mut book, &mut random);
            book
        } else {
            let name = &names[random.below(names.len())];
            let mut content = parts.get(name).to_vec();
            mutate(&mut content, &mut random);
            parts.clone().with(name, content).pack()
        };
        // A file with another beginning is not read as a workbook.
        changed.splice(..changed.len().min(4), *b"PK\x03\x04");
        std::fs::write(&path, &changed).unwrap();
        let begun = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| reads(&path)));
        assert!(done.is_ok(), "seed {seed}");
        assert!(begun.elapsed() < SOON, "seed {seed}: {:?}", begun.elapsed());
        read += u64::from(done.is_ok_and(|is_read| is_read));
    }
    println!("{read} of {CASES} workbooks with changed bytes are read, from seed {first} on");
}
