//! Workbooks that are made to hurt, or damaged, are refused in little memory and time, with a message that says why.

use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::site::{Random, Site};
use super::workbook_parts::{HEADER, Parts};

/// The most address space that an import of any of them may take, in KiB. The program itself maps half of it.
const MEMORY_KIB: u32 = 200_000;

/// The time within which each is refused, by a program that is not optimized on a machine that does other things too.
const SOON: Duration = Duration::from_secs(60);

const SHEET: &str = "xl/worksheets/sheet1.xml";
const TEXTS: &str = "xl/sharedStrings.xml";

/// The title of a case, the file's content, and a piece of the expected message.
type Case = (&'static str, Vec<u8>, &'static str);

/// A sheet with rows, and with more behind them.
fn sheet(rows: &str, behind: &str) -> String {
    format!("{HEADER}{rows}</sheetData>{behind}</worksheet>")
}

const ROW: &str = r#"<row r="2"><c r="A2"><v>1</v></c><c r="B2" t="inlineStr"><is><t>ESMO</t></is></c></row>"#;

fn good() -> Parts {
    Parts::of_sheet(sheet(ROW, ""))
}

/// Letters that hardly compress.
fn noise(bytes: usize) -> String {
    let mut random = Random::new(7);
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        write!(text, "{:016x}", random.next()).unwrap();
    }
    text
}

/// Puts a number into the first record with this signature.
fn patched(mut book: Vec<u8>, magic: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let record = book.windows(4).rposition(|window| window == magic).unwrap();
    book[record + at..record + at + value.len()].copy_from_slice(value);
    book
}

/// An archive whose directory names so many parts.
fn many_parts(count: u32) -> Vec<u8> {
    let mut book = b"PK\x03\x04".to_vec();
    book.resize(30, 0);
    let directory_at = u32::try_from(book.len()).unwrap();
    for index in 0..count {
        let mut entry = [0; 46];
        entry[..4].copy_from_slice(b"PK\x01\x02");
        entry[28] = 8;
        book.extend(entry);
        book.extend(format!("{index:08x}").bytes());
    }
    let directory_bytes = u32::try_from(book.len()).unwrap() - directory_at;
    let end64_at = book.len();
    let mut end64 = [0; 56];
    end64[..4].copy_from_slice(b"PK\x06\x06");
    end64[32..36].copy_from_slice(&count.to_le_bytes());
    end64[40..44].copy_from_slice(&directory_bytes.to_le_bytes());
    end64[48..52].copy_from_slice(&directory_at.to_le_bytes());
    book.extend(end64);
    let mut locator = [0; 20];
    locator[..4].copy_from_slice(b"PK\x06\x07");
    locator[8..16].copy_from_slice(&u64::try_from(end64_at).unwrap().to_le_bytes());
    book.extend(locator);
    let mut end = [0; 22];
    end[..4].copy_from_slice(b"PK\x05\x06");
    end[10..20].fill(0xff);
    book.extend(end);
    book
}

fn damaged() -> Vec<Case> {
    let book = good().pack();
    let half = book[..book.len() / 2].to_vec();
    let rename = |from: &'static str, to: &'static str| move |text: &str| text.replace(from, to);
    vec![
        ("cut in half", half, "the end of the zip archive is missing"),
        ("wrong checksum", patched(book.clone(), b"PK\x01\x02", 16, &[1, 2, 3, 4]), "its checksum is wrong"),
        ("wrong size", patched(book.clone(), b"PK\x01\x02", 24, &[1, 0]), "its size differs from"),
        ("encrypted", patched(book.clone(), b"PK\x01\x02", 8, &[1]), "it has a password; save it without one"),
        (
            "unknown compression",
            patched(book.clone(), b"PK\x01\x02", 10, &[99]),
            "its compression method 99 is unknown",
        ),
        (
            "no directory",
            patched(book.clone(), b"PK\x05\x06", 16, &[9, 0, 0]),
            "the directory of the zip archive cannot",
        ),
        (
            "more parts than there are",
            patched(book, b"PK\x05\x06", 10, &[0, 9]),
            "the directory of the zip archive cannot",
        ),
        ("no sheet", good().without(SHEET).pack(), "its part `xl/worksheets/sheet1.xml` is missing"),
        ("no workbook", good().without("xl/workbook.xml").pack(), "its part `xl/workbook.xml` is missing"),
        ("no relationships", good().without("_rels/.rels").pack(), "the part that lists its sheets is missing"),
        (
            "no relationships of the workbook",
            good().without("xl/_rels/workbook.xml.rels").pack(),
            "the part of its sheet `organizations` is missing",
        ),
        (
            "the workbook as its own sheet",
            good().changed("xl/_rels/workbook.xml.rels", rename("worksheets/sheet1.xml", "workbook.xml")).pack(),
            "its part `xl/workbook.xml` contains no worksheet",
        ),
        (
            "relationships as the workbook",
            good().changed("_rels/.rels", rename("xl/workbook.xml", "_rels/.rels")).pack(),
            "its part `_rels/.rels` contains no workbook",
        ),
        (
            "a binary workbook",
            good().changed("_rels/.rels", rename("xl/workbook.xml", "xl/workbook.bin")).pack(),
            "it is a binary workbook (.xlsb); save it as .xlsx, or as CSV in UTF-8",
        ),
        ("a text document", good().with("mimetype", "application/vnd.oasis").pack(), "it is not an Excel workbook"),
        ("a part twice", good().with("XL/Workbook.xml", "x").pack(), "it has the part `XL/Workbook.xml` twice"),
        ("no end", good().changed(SHEET, rename("</worksheet>", "")).pack(), "it ends within an element"),
        ("ends that differ", good().changed(SHEET, rename("</row>", "</rows>")).pack(), "is damaged: "),
        ("an unknown entity", good().changed(SHEET, rename("ESMO", "&esmo;")).pack(), "it has an unknown entity"),
        (
            "a document type",
            good().changed(TEXTS, rename("<sst/>", "<!DOCTYPE sst [<!ENTITY a \"b\">]><sst/>")).pack(),
            "its part `xl/sharedStrings.xml` is damaged: it declares a document type (DOCTYPE)",
        ),
        (
            "no UTF-8",
            good().with(TEXTS, [&b"<sst><si><t>"[..], b"\xff</t></si></sst>"].concat()).pack(),
            "it is not UTF-8",
        ),
        (
            "UTF-16",
            good().with(TEXTS, "\u{feff}<sst/>".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()).pack(),
            "its part `xl/sharedStrings.xml` ",
        ),
        (
            "rows out of order",
            Parts::of_sheet(sheet(&format!("{ROW}{}", ROW.replace('2', "1")), "")).pack(),
            "its rows are not in order; save it again",
        ),
        ("a cell twice", good().changed(SHEET, rename("r=\"B2\"", "r=\"A2\"")).pack(), "it has the cell A2 twice"),
        (
            "a cell of another row",
            good().changed(SHEET, rename("r=\"B2\"", "r=\"B3\"")).pack(),
            "its row 2 has a cell `B3`",
        ),
        ("a row too far", good().changed(SHEET, rename("r=\"2\"", "r=\"1048577\"")).pack(), "it has a row `1048577`"),
        ("a column too far", good().changed(SHEET, rename("r=\"B2\"", "r=\"XFE2\"")).pack(), "has a cell `XFE2`"),
        (
            "a text that is not there",
            good().changed(SHEET, rename("t=\"inlineStr\"><is><t>ESMO</t></is>", "t=\"s\"><v>7</v>")).pack(),
            "organizations]:2: name: `7` - the cell B2 contains a value that cannot be read; enter it again",
        ),
        (
            "a number that is none",
            good().changed(SHEET, rename("<v>1</v>", "<v>1e999</v>")).pack(),
            "organizations]:2: id: `1e999` - the cell A2 contains a value that cannot be read; enter it again",
        ),
    ]
}

fn large() -> Vec<Case> {
    const MIB: usize = 1 << 20;
    let spaces = |mib: usize| " ".repeat(mib * MIB);
    let numbered = |count: usize, row: &dyn Fn(usize) -> String| (2..count + 2).map(row).collect::<String>();
    let merged = |count: usize| {
        let regions = numbered(count, &|row| format!("<mergeCell ref=\"A{row}:B{row}\"/>"));
        let rows =
            numbered(count.min(150_000), &|row| format!("<row r=\"{row}\"><c r=\"A{row}\"><v>{row}</v></c></row>"));
        Parts::of_sheet(sheet(&rows, &format!("<mergeCells>{regions}</mergeCells>"))).pack()
    };
    let links = numbered(1_001, &|row| format!("<hyperlink ref=\"A1:C{row}\" location=\"x\"/>"));
    let sheets: String =
        (0..1_001).map(|at| format!("<sheet name=\"s{at}\" sheetId=\"{at}\" r:id=\"rId1\"/>")).collect();
    let styles = |content: String| {
        good()
            .changed("xl/_rels/workbook.xml.rels", |text| {
                text.replace("relationships/sharedStrings", "relationships/styles")
            })
            .with(TEXTS, format!("<styleSheet>{content}</styleSheet>"))
            .pack()
    };
    let formats = numbered(20_000, &|id| format!("<numFmt numFmtId=\"{id}\" formatCode=\"{}\"/>", "0".repeat(100)));
    vec![
        ("4 million parts", many_parts(4_000_000), "it has more than 20000 parts, which no workbook needs"),
        ("21,000 parts", many_parts(21_000), "it has more than 20000 parts"),
        (
            "a huge workbook part of another name",
            good()
                .changed("_rels/.rels", |text| text.replace("xl/workbook.xml", "xl/list.data"))
                .with(
                    "xl/list.data",
                    format!("<workbook><sheets>{}", format!("<a>{}</a>", &noise(1000)).repeat(80_000)),
                )
                .pack(),
            "its part `xl/list.data` is implausibly large",
        ),
        (
            "a bomb",
            good().with(TEXTS, format!("<sst>{}", format!("<!--{:900}-->", "").repeat(MIB / 16))).pack_at(9),
            "its part `xl/sharedStrings.xml` is implausibly large",
        ),
        (
            "16 million texts",
            good().with(TEXTS, format!("<sst>{}", "<si/>".repeat(16 * MIB))).pack(),
            "more than 4000000 texts",
        ),
        ("spaces", good().with(TEXTS, format!("<sst>{}", spaces(64))).pack(), "longer than 1048576 bytes"),
        (
            "a cell of 8 MiB",
            Parts::of_sheet(sheet(&ROW.replace("ESMO", &noise(8 * MIB)), "")).pack(),
            "the cell B2: its part `xl/worksheets/sheet1.xml` is damaged: a tag or text in it is longer than 1048576 bytes",
        ),
        (
            "a cell of more letters than Excel allows",
            Parts::of_sheet(sheet(&ROW.replace("ESMO", &noise(32_768)), "")).pack(),
            " - the cell B2 has more than 32767 characters; shorten it",
        ),
        (
            "a shared text of many pieces",
            good()
                .with(TEXTS, format!("<sst><si>{}</si></sst>", format!("<r><t>{}</t></r>", noise(1_000)).repeat(2_000)))
                .changed(SHEET, |text| text.replace("t=\"inlineStr\"><is><t>ESMO</t></is>", "t=\"s\"><v>0</v>"))
                .pack(),
            " - the cell B2 has more than 32767 characters; shorten it",
        ),
        (
            "shared texts of 70 MiB",
            good()
                .with(TEXTS, format!("<sst>{}</sst>", format!("<si><t>{}</t></si>", noise(30_000)).repeat(2_450)))
                .pack(),
            "its cells hold more than 4000000 texts or 67108864 bytes of text; split it, or save it as CSV in UTF-8",
        ),
        ("nested tags", Parts::of_sheet(sheet(&"<a>".repeat(MIB), "")).pack(), "more than 100 elements are nested"),
        (
            "a tag of 2 MiB",
            Parts::of_sheet(sheet(&format!("<row x=\"{}\"/>", noise(2 * MIB)), "")).pack(),
            "a tag or text in it is longer than 1048576 bytes",
        ),
        ("150,000 merged rows", merged(150_000), "and 149,997 more: the cells A2:B2 are merged"),
        ("more merged rows", merged(200_001), "it has more than 200000 merged ranges"),
        (
            "wide links",
            Parts::of_sheet(sheet(ROW, &format!("<hyperlinks>{links}</hyperlinks>"))).pack(),
            "it has implausibly many hyperlinks",
        ),
        (
            "sheets",
            good().with("xl/workbook.xml", format!("<workbook><sheets>{sheets}")).pack(),
            "more than 1000 sheets",
        ),
        ("styles", styles(format!("<cellXfs>{}</cellXfs>", "<xf/>".repeat(100_001))), "more than 100000 styles"),
        ("formats", styles(format!("<numFmts>{formats}</numFmts>")), "524288 bytes of number formats"),
        (
            "half a million bad cells",
            Parts::of_sheet(sheet(
                &numbered(MIB / 2, &|row| format!("<row r=\"{row}\"><c t=\"s\"><v>{row}</v></c></row>")),
                "",
            ))
            .pack(),
            "and 524,285 more: id: `2`, `3`, `4` and more - the cell A2 contains a value that cannot be read",
        ),
        (
            "more rows than a sheet has",
            Parts::of_sheet(sheet(&format!("<row r=\"1048576\"/>{}", "<row/>".repeat(9)), "")).pack(),
            "it has more than 1048576 rows",
        ),
    ]
}

fn run(what: &str, content: &[u8]) -> (Option<i32>, String) {
    let site = Site::new();
    let file = site.write("book.xlsx", content);
    let begun = Instant::now();
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$0\" import --create \"$1\"")])
        .arg(env!("CARGO_BIN_EXE_medfeed"))
        .arg(&file)
        .env("MEDFEED_DB", site.db())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    println!("{what}: {} bytes, {:?}", content.len(), begun.elapsed());
    assert!(begun.elapsed() < SOON, "{what}: {:?}", begun.elapsed());
    assert_eq!(output.status.code() == Some(0), site.db().exists(), "{what}");
    (output.status.code(), told)
}

fn check(cases: Vec<Case>) {
    for (what, content, expected) in cases {
        let (code, told) = run(what, &content);
        assert_eq!(code, Some(1), "{what}: {told:.500}");
        assert!(told.contains(expected), "{what}: {told:.700}");
        assert!(!told.contains("bug in medfeed") && told.len() < 3_000, "{what}: {told:.3000}");
    }
}

#[test]
fn damaged_workbooks_are_refused() {
    check(damaged());
}

#[test]
fn large_workbooks_are_refused_in_little_memory() {
    check(large());
}

#[test]
fn what_a_workbook_announces_costs_nothing() {
    let texts = format!(
        "<!-- {} --><sst count=\"4000000000\" uniqueCount=\"4000000000\"><si><t>ESMO</t></si></sst>",
        noise(5_000)
    );
    let (code, told) = run("announced texts", &good().with(TEXTS, texts).pack());
    assert_eq!(code, Some(0), "{told}");
}
