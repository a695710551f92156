//! Relationships between the parts of a workbook.

use std::collections::HashMap;
use std::io;

use super::archive::Archive;
use super::fault::damaged_part;
use super::xml::{Xml, XmlEvent};

/// The maximum inflated size of a part with relationships.
const MAX_PART_BYTES: u64 = 64 << 20;

/// The maximum size of all targets, which stay in memory.
const MAX_HELD_BYTES: usize = 16 << 20;

/// The relationships of a part, by id.
#[derive(Default)]
pub(super) struct Relations(HashMap<String, PartRelation>);

/// A relationship to another part or to an external address.
pub(super) struct PartRelation {
    /// The last segment of the relationship type, such as `worksheet`.
    pub kind: String,
    /// The name of the part, or the external address.
    pub target: String,
    pub is_external: bool,
}

impl Relations {
    /// Reads the relationships of a part. The empty name means the whole workbook.
    pub fn read(archive: &Archive, of: &str) -> io::Result<Relations> {
        let (folder, file) = of.rsplit_once('/').unwrap_or(("", of));
        let slash = if folder.is_empty() { "" } else { "/" };
        let name = format!("{folder}{slash}_rels/{file}.rels");
        let mut found = Relations::default();
        if !archive.has(&name) {
            return Ok(found);
        }
        let mut xml = Xml::new(archive.part(&name, MAX_PART_BYTES)?);
        let mut held_bytes = 0;
        xml.root("Relationships")?;
        loop {
            match xml.next()? {
                XmlEvent::Start(tag) if tag.is("Relationship") => {
                    let (mut id, mut kind, mut target, mut is_external) = Default::default();
                    tag.attributes(|name, value| match name {
                        "Id" => id = value.into_owned(),
                        "Type" => kind = value.rsplit('/').next().unwrap_or_default().to_owned(),
                        "Target" => target = value.into_owned(),
                        "TargetMode" => is_external = value.eq_ignore_ascii_case("external"),
                        _ => {}
                    })?;
                    if !is_external {
                        target = resolved(folder, &target);
                    }
                    held_bytes += id.len() + kind.len() + target.len() + size_of::<PartRelation>();
                    if held_bytes > MAX_HELD_BYTES {
                        return Err(damaged_part(
                            &name,
                            format_args!("its links take more than {MAX_HELD_BYTES} bytes"),
                        ));
                    }
                    found.0.insert(id, PartRelation { kind, target, is_external });
                }
                XmlEvent::EndOfPart => return Ok(found),
                _ => {}
            }
        }
    }

    pub fn get(&self, id: &str) -> Option<&PartRelation> {
        self.0.get(id)
    }

    /// Returns the name of the part with a relationship of this type.
    pub fn part(&self, kind: &str) -> Option<&str> {
        self.0.values().find(|relation| relation.kind == kind && !relation.is_external).map(|found| &*found.target)
    }
}

/// Resolves the name of a part relative to a folder.
fn resolved(folder: &str, target: &str) -> String {
    let (base, target) = match target.strip_prefix('/') {
        Some(target) => ("", target),
        None => (folder, target),
    };
    let mut segments: Vec<&str> = Vec::new();
    for segment in base.split('/').chain(target.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_resolved() {
        let cases = [
            ("", "xl/workbook.xml", "xl/workbook.xml"),
            ("xl", "worksheets/sheet1.xml", "xl/worksheets/sheet1.xml"),
            ("xl/worksheets", "../styles.xml", "xl/styles.xml"),
            ("xl", "/xl/./sheet.xml", "xl/sheet.xml"),
            ("xl", "../../../x.xml", "x.xml"),
        ];
        for (folder, target, expected) in cases {
            assert_eq!(resolved(folder, target), expected, "{folder} {target}");
        }
    }
}
