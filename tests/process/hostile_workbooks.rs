//! Workbooks made to do harm, or damaged, are refused in little memory and time, with a message that names the reason.

use super::bounds::refuse;
use super::site::{Random, noise};
use super::workbook_parts::{HEADER, Parts};

const SHEET: &str = "xl/worksheets/sheet1.xml";
const TEXTS: &str = "xl/sharedStrings.xml";

/// The title of a case, the file's content, and a piece of the expected message.
type Case = (&'static str, Vec<u8>, &'static str);

/// A sheet with rows, and with more elements after them.
fn sheet(rows: &str, behind: &str) -> String {
    format!("{HEADER}{rows}</sheetData>{behind}</worksheet>")
}

const ROW: &str =
    r#"<row r="2"><c r="A2"><v>1</v></c><c r="B2" t="inlineStr"><is><t>ESMO</t></is></c></row>"#;

fn good() -> Parts {
    Parts::of_sheet(sheet(ROW, ""))
}

/// Puts a number into the first record with this signature.
fn patched(mut book: Vec<u8>, magic: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let record = book.windows(4).rposition(|window| window == magic).unwrap();
    book[record + at..record + at + value.len()].copy_from_slice(value);
    book
}

fn damaged() -> Vec<Case> {
    let book = good().pack();
    let half = book[..book.len() / 2].to_vec();
    let changed =
        |from: &str, to: &str| good().changed(SHEET, |text| text.replace(from, to)).pack();
    let text = "t=\"inlineStr\"><is><t>ESMO</t></is>";
    Vec::from(cases![
        "cut in half", half, "its zip archive is damaged: ";
        "wrong checksum", patched(book.clone(), b"PK\x01\x02", 16, &[1, 2, 3, 4]), "Invalid checksum; save it again";
        "wrong size", patched(book.clone(), b"PK\x01\x02", 24, &[1, 0]), "larger than its declared";
        "encrypted", patched(book, b"PK\x01\x02", 8, &[1]), "it has a password; save it without one";
        "no sheet", good().without(SHEET).pack(), "Worksheet 'organizations' not found; save it again";
        "no workbook", good().without("xl/workbook.xml").pack(),
            "it is not a workbook: the list of its sheets is missing; save it again";
        "no relationships", good().without("_rels/.rels").pack(), "it is not an Excel workbook; save it as .xlsx";
        "a binary workbook", good().with("xl/workbook.bin", "").pack(),
            "it is a binary workbook (.xlsb), which is not read; save it as .xlsx, or as CSV in UTF-8";
        "a text document", good().with("mimetype", "application/vnd.oasis").pack(), "it is not an Excel workbook";
        "no end", changed("</sheetData></worksheet>", ""), "expecting '</sheetData>'";
        "ends that differ", changed("</row>", "</rows>"), "is damaged: ";
        "an unknown entity", changed("ESMO", "&esmo;"), "after the cell A2: Xml error: at 0..0: unrecognized entity";
        "no UTF-8", good().with(TEXTS, [&b"<sst><si><t>"[..], b"\xff</t></si></sst>"].concat()).pack(),
            "its part `xl/sharedstrings.xml` is damaged: cannot decode input using UTF-8";
        "a row too far", changed("r=\"2\"", "r=\"4294967297\""), "no sheet has the cells `4294967297`; save it again";
        "a text that is not there", changed(text, "t=\"s\"><v>7</v>"),
            "its sheet `organizations` cannot be read after the cell A2: Cell string index not found in shared strings table";
        "a text before all others", changed(text, "t=\"s\"><v> 0 </v>"),
            "the cell B2 has a value that cannot be read; save it again";
        "a text and a half", changed(text, "t=\"s\"><v>0.5</v>"),
            "the cell B2 has a value that cannot be read";
        "a text with a sign", changed(text, "t=\"s\"><v>-0</v>"),
            "the cell B2 has a value that cannot be read";
        "a text with letters, in a cell without a name",
            changed("r=\"B2\" t=\"inlineStr\"><is><t>ESMO</t></is>", "t=\"s\"><v>first</v>"),
            "a cell of row 2 has a value that cannot be read";
        "a text beyond all numbers", changed(text, "t=\"s\"><v>99999999999999999999999</v>"),
            "the cell B2 has a value that cannot be read";
        "a number in two pieces", changed("<v>1</v>", "<v>1<!-- of -->2</v>"),
            "the cell A2 has a value that cannot be read";
        "a number with an entity", changed("<v>1</v>", "<v>1&#48;</v>"),
            "the cell A2 has a value that cannot be read";
        "a text of a formula in a section", changed(text, "t=\"str\"><v><![CDATA[ESMO]]></v>"),
            "the cell B2 has a value that cannot be read";
        "a text that is not inline", changed("<is><t>ESMO</t></is>", "<v>ESMO</v>"),
            "the cell B2 has a value that cannot be read";
        "neither true nor false", changed(text, "t=\"b\"><v>perhaps</v>"), "Unrecognized";
        "a format that is no number", changed("r=\"B2\"", "r=\"B2\" s=\"bold\""),
            "the cell B2 has a format that cannot be read";
        "a format with a blank", changed("r=\"B2\"", "r=\"B2\" s=\" 1\""),
            "the cell B2 has a format that cannot be read";
        "a format with an entity", changed("r=\"B2\"", "r=\"B2\" s=\"&#49;\""),
            "the cell B2 has a format that cannot be read";
        "another calendar",
            good()
                .changed("xl/workbook.xml", |text| {
                    text.replace("<sheets>", "<workbookPr date1904=\"yes\"/><sheets>")
                })
                .pack(),
            "its `workbookPr` cannot be read; save it again";
        "a number format without a number",
            good().with("xl/styles.xml", "<styleSheet><cellXfs><xf numFmtId=\"0x0e\"/></cellXfs></styleSheet>").pack(),
            "its part `xl/styles.xml` is damaged: its `xf` cannot be read; save it again";
        "an unknown error", changed(text, "t=\"e\"><v>#SPILL!</v>"),
            "contains the spreadsheet error `#SPILL!` after the cell A2; correct or clear that cell";
        "a number that is none", changed("<v>1</v>", "<v>1e999</v>"),
            "organizations]:2: id: `inf` - the cell A2 contains a value that cannot be read; enter it again";
    ])
}

fn large() -> Vec<Case> {
    const MIB: usize = 1 << 20;
    let numbered =
        |count: usize, row: &dyn Fn(usize) -> String| (2..count + 2).map(row).collect::<String>();
    let merged = |count: usize| {
        let regions = numbered(count, &|row| format!("<mergeCell ref=\"A{row}:B{row}\"/>"));
        let rows = numbered(count, &|row| {
            format!("<row r=\"{row}\"><c r=\"A{row}\"><v>{row}</v></c></row>")
        });
        Parts::of_sheet(sheet(&rows, &format!("<mergeCells>{regions}</mergeCells>"))).pack()
    };
    let picture = |mib: usize| {
        good()
            .with("xl/media/image1.png", vec![0; mib * MIB])
            .pack()
    };
    Vec::from(cases![
        "a bomb", picture(257), "the file is too large: it has more than 268435456 bytes, decompressed; split it";
        "more than its directory says", patched(picture(1), b"PK\x01\x02", 24, &[1, 0, 0, 0]),
            "its part `xl/media/image1.png` is damaged: ";
        "a cell of 8 MiB",
            Parts::of_sheet(sheet(&ROW.replace("ESMO", &noise(&mut Random::new(7), 8 * MIB)), "")).pack(),
            "organizations]:2: the line is longer than 4194304 bytes; correct it";
        "5,000 merged columns",
            Parts::of_sheet(sheet(
                ROW,
                &format!(
                    "<mergeCells>{}</mergeCells>",
                    (1..=5_000)
                        .map(|row| format!("<mergeCell ref=\"C{row}:D1048576\"/>"))
                        .collect::<String>()
                ),
            ))
            .pack(),
            "organizations]:2: the cells C1:D1048576 are merged, so that only the first has a value";
        "50,000 merged rows", merged(50_000), "and 49,997 more: the cells A2:B2 are merged";
        "100,000 bad cells",
            Parts::of_sheet(sheet(
                &numbered(100_000, &|row| {
                    format!("<row r=\"{row}\"><c t=\"e\"><v>#N/A</v></c></row>")
                }),
                "",
            ))
            .pack(),
            "and 99,997 more: id: `#N/A` - the cell A2 contains a spreadsheet error; correct or clear it";
    ])
}

fn check(cases: Vec<Case>) {
    for (what, content, expected) in cases {
        refuse(what, "book.xlsx", &content, expected, 3_000);
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
