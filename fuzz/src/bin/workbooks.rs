//! Imports of workbooks. The input is the text of the parts of a workbook, so that changes are not lost behind checksums
//! and compression. An input that begins like a zip archive is imported as it is.
//!
//! Each part begins with a line `== NAME`. The first byte of the input selects the options, the second one how the parts
//! are stored.
#![no_main]

use std::io::{Cursor, Read, Write};

use libfuzzer_sys::fuzz_target;
use medfeed_fuzz::imports::{Importer, read_options};
use medfeed_fuzz::seeds;
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The beginning of a part.
const PART: &str = "\n== ";

/// The number of parts that are stored.
const MAX_PARTS: usize = 30;

thread_local! {
    static IMPORTER: Importer = Importer::new();
}

fuzz_target!(
    init: seeds::write_and_exit(seeds_of_workbooks),
    |input: &[u8]| {
        let Some((&[options, storage], content)) = input.split_first_chunk::<2>() else { return };
        let is_zip = content.starts_with(b"PK\x03\x04");
        let book = if is_zip { content.to_vec() } else { packed(content, storage & 1 == 0) };
        let name = ["medfeed", "journals", "conferences", "tags"][usize::from(storage >> 1) % 4];
        IMPORTER.with(|importer| importer.import_with(&read_options(options), &format!("{name}.xlsx"), &book));
    }
);

/// Stores the parts as an archive.
fn packed(text: &[u8], is_deflated: bool) -> Vec<u8> {
    let method = if is_deflated { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let options = SimpleFileOptions::default().compression_method(method).compression_level(is_deflated.then_some(1));
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for part in parts(text) {
        let end = part.iter().position(|byte| *byte == b'\n').unwrap_or(part.len());
        // Two parts of one name are refused by the writer.
        if archive.start_file(String::from_utf8_lossy(&part[..end]), options).is_ok() {
            archive.write_all(part.get(end + 1..).unwrap_or_default()).expect("the part is written");
        }
    }
    archive.finish().expect("the archive is written").into_inner()
}

fn parts(mut text: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let find = |text: &[u8]| text.windows(PART.len()).position(|window| window == PART.as_bytes());
    let Some(first) = find(text) else { return parts };
    text = &text[first + PART.len()..];
    while let Some(end) = find(text).filter(|_| parts.len() < MAX_PARTS) {
        parts.push(&text[..end]);
        text = &text[end + PART.len()..];
    }
    parts.push(text);
    parts
}

/// Two workbooks by their parts, and one of them as it is.
fn seeds_of_workbooks() -> Vec<Vec<u8>> {
    let (journals, conferences) = (journals(), conferences());
    let whole = [b"\0\0", journals.as_slice()].concat();
    vec![unpacked(&journals, b"\0\0"), unpacked(&conferences, b"\x82\x01"), whole]
}

fn unpacked(book: &[u8], head: &[u8]) -> Vec<u8> {
    let mut archive = ZipArchive::new(Cursor::new(book)).expect("an archive");
    let mut text = head.to_vec();
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).expect("a part");
        let name = part.name().expect("a name").to_string();
        // No reader needs the others.
        if name.starts_with("docProps") || name.contains("theme") || name == "[Content_Types].xml" {
            continue;
        }
        text.extend_from_slice(format!("{PART}{name}\n").as_bytes());
        part.read_to_end(&mut text).expect("the part is read");
    }
    text
}

/// A workbook with each kind of cell.
fn journals() -> Vec<u8> {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet().set_name("journals").expect("a name");
    for (column, name) in (0..).zip(["id", "name", "url", "impact_factor", "h_index", "abbv"]) {
        sheet.write_string(0, column, name).expect("a cell");
    }
    for row in 1..3 {
        sheet.write_number(row, 0, row).expect("a cell");
        sheet.write_string(row, 1, format!("Journal {row} _x000D_ é😀")).expect("a cell");
        sheet.write_url_with_text(row, 2, "https://example.org/1", "here").expect("a cell");
        let format = Format::new().set_num_format("#,##0.00;[Red]-0.0");
        sheet.write_number_with_format(row, 3, 2.5, &format).expect("a cell");
        sheet.write_formula(row, 4, Formula::new("=1+1").set_result("2")).expect("a cell");
    }
    sheet.merge_range(3, 1, 4, 2, "merged", &Format::new()).expect("cells");
    workbook.save_to_buffer().expect("a workbook")
}

fn conferences() -> Vec<u8> {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet().set_name("conferences").expect("a name");
    for (column, name) in (0..).zip(["id", "start_date", "deleted", "year", "city"]) {
        sheet.write_string(0, column, name).expect("a cell");
    }
    let date = Format::new().set_num_format("[$-409]d\\-mmm\\-yyyy;@");
    let day = ExcelDateTime::from_ymd(2026, 3, 15).expect("a date");
    sheet.write_number(1, 0, 1).expect("a cell");
    sheet.write_datetime_with_format(1, 1, &day, &date).expect("a cell");
    sheet.write_boolean(1, 2, false).expect("a cell");
    sheet.write_number_with_format(1, 3, 0.2, &Format::new().set_num_format("0%")).expect("a cell");
    sheet.write_rich_string(1, 4, &[(&Format::new(), "Mad"), (&Format::new().set_bold(), "rid")]).expect("a cell");
    workbook.add_worksheet().set_name("remarks").expect("a name");
    workbook.save_to_buffer().expect("a workbook")
}
