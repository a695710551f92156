//! Workbooks built from their parts, in forms that no spreadsheet program writes.

use std::io::{Cursor, Read, Write};

use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// The parts of a workbook by their names.
#[derive(Clone)]
pub struct Parts(Vec<(String, Vec<u8>)>);

const ROOT: &str = r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#;
const LIST: &str = r#"<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="organizations" sheetId="1" r:id="rId1"/></sheets></workbook>"#;
const RELATIONS: &str = r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings" Target="sharedStrings.xml"/></Relationships>"#;

/// A header of `id` and `name`, without the end of the sheet.
pub const HEADER: &str = r#"<worksheet><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>id</t></is></c><c r="B1" t="inlineStr"><is><t>name</t></is></c></row>"#;

impl Parts {
    /// The parts of a stored workbook.
    pub fn of(book: &[u8]) -> Parts {
        let mut archive = ZipArchive::new(Cursor::new(book)).unwrap();
        let read = (0..archive.len()).map(|index| {
            let mut part = archive.by_index(index).unwrap();
            let mut content = Vec::new();
            part.read_to_end(&mut content).unwrap();
            (part.name().unwrap().to_string(), content)
        });
        Parts(read.collect())
    }

    /// A workbook of one sheet of organizations, and no shared texts.
    pub fn of_sheet(sheet: impl Into<Vec<u8>>) -> Parts {
        Parts(Vec::new())
            .with("_rels/.rels", ROOT)
            .with("xl/workbook.xml", LIST)
            .with("xl/_rels/workbook.xml.rels", RELATIONS)
            .with("xl/sharedStrings.xml", "<sst/>")
            .with("xl/worksheets/sheet1.xml", sheet)
    }

    /// Adds a part, or replaces it.
    pub fn with(mut self, name: &str, content: impl Into<Vec<u8>>) -> Parts {
        self.0.retain(|(other, _)| other != name);
        self.0.push((name.to_owned(), content.into()));
        self
    }

    /// Changes the text of a part.
    pub fn changed(self, name: &str, change: impl Fn(&str) -> String) -> Parts {
        let text = String::from_utf8(self.get(name).to_vec()).unwrap();
        let changed = change(&text);
        assert_ne!(text, changed, "{name}");
        self.with(name, changed)
    }

    pub fn without(mut self, name: &str) -> Parts {
        self.0.retain(|(other, _)| other != name);
        self
    }

    pub fn get(&self, name: &str) -> &[u8] {
        &self
            .0
            .iter()
            .find(|(other, _)| other == name)
            .unwrap_or_else(|| panic!("no {name}"))
            .1
    }

    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Packs the parts.
    pub fn pack(&self) -> Vec<u8> {
        self.pack_at(1)
    }

    /// Packs the parts at a level of compression.
    pub fn pack_at(&self, level: i64) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in &self.0 {
            archive
                .start_file(
                    name.as_str(),
                    SimpleFileOptions::default().compression_level(Some(level)),
                )
                .unwrap();
            archive.write_all(content).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }
}
