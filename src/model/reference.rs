//! Organizations and tags, the rows that records link to.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Id;
use super::curated::{Curated, Fields, forbid_separator, require, row};
use super::field::fields;
use super::json;
use super::value::LinkTexts;
pub use super::value::{LinkTarget, ReferenceKind};

/// An organization that follows all rules.
pub type Organization = Curated<OrganizationFields>;

/// A tag that follows all rules.
pub type Tag = Curated<TagFields>;

fields! {
    /// The fields of an organization, apart from its id.
    #[derive(Serialize)]
    pub struct OrganizationFields {
        /// Name; no two organizations share one
        pub name: Option<String>,
        /// Abbreviation
        pub abbv: Option<String>,
        /// Kind of organization
        pub kind: Option<String> as "type",
        /// Website
        pub url: Option<String>,
    }
}

fields! {
    /// The fields of a tag, apart from its id.
    #[derive(Serialize)]
    pub struct TagFields {
        /// Kind of tag, for example a topic area, an audience or an attendee geography
        pub kind: Option<String> as "type",
        /// Name; no two tags share both type and name
        pub name: Option<String>,
        /// Group within the type
        pub category: Option<String>,
    }
}

row!(OrganizationFields, "organizations", |organization, faults| {
    require("name", &organization.name, faults);
    forbid_separator("name", organization.name(), "; ", faults);
});

row!(TagFields, "tags", |tag, faults| {
    require("type", &tag.kind, faults);
    require("name", &tag.name, faults);
    let kind = tag.kind.as_deref().unwrap_or_default();
    forbid_separator("type", kind, "; ", faults);
    forbid_separator("type", kind, ": ", faults);
    forbid_separator("name", tag.name(), "; ", faults);
});

/// The fields of a kind of row that records link to.
pub trait ReferenceFields: Fields + LinkTarget + Serialize {
    /// Returns the text that identifies the row in CSV lists and imports: the name; for a tag `Type: Name`.
    fn label(&self) -> String;

    /// Returns the fields of a row that has only this label. Returns `None` if it is none of a tag.
    fn of_label(label: &str) -> Option<Self>;
}

impl LinkTarget for OrganizationFields {
    const KIND: ReferenceKind = ReferenceKind::Organization;
}

impl ReferenceFields for OrganizationFields {
    fn label(&self) -> String {
        self.name().to_owned()
    }

    fn of_label(label: &str) -> Option<OrganizationFields> {
        Some(OrganizationFields { name: Some(label.to_owned()), ..OrganizationFields::default() })
    }
}

impl LinkTarget for TagFields {
    const KIND: ReferenceKind = ReferenceKind::Tag;
}

impl ReferenceFields for TagFields {
    fn label(&self) -> String {
        format!("{}: {}", self.kind.as_deref().unwrap_or_default(), self.name())
    }

    fn of_label(label: &str) -> Option<TagFields> {
        let (kind, name) = label.split_once(": ")?;
        Some(TagFields { kind: Some(kind.to_owned()), name: Some(name.to_owned()), ..TagFields::default() })
    }
}

/// A row that records link to, with its two texts in them.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Clone, Debug)]
pub struct Referenced<F> {
    pub row: Curated<F>,
    /// Its JSON object within records.
    pub json: Vec<u8>,
    /// Its text in CSV lists.
    pub label: String,
}

impl<F: ReferenceFields> Referenced<F> {
    /// Renders the row.
    pub fn new(row: Curated<F>) -> Referenced<F> {
        Referenced { json: json::render_reference(&row), label: row.fields().label(), row }
    }
}

/// All organizations and tags of one state of the database.
#[allow(missing_docs, reason = "the names explain the fields")]
#[derive(Clone, Debug, Default)]
pub struct References {
    pub organizations: BTreeMap<Id, Referenced<OrganizationFields>>,
    pub tags: BTreeMap<Id, Referenced<TagFields>>,
}

impl References {
    fn find(&self, kind: ReferenceKind, id: Id) -> Option<(&[u8], &str)> {
        match kind {
            ReferenceKind::Organization => self.organizations.get(&id).map(|found| (&*found.json, &*found.label)),
            ReferenceKind::Tag => self.tags.get(&id).map(|found| (&*found.json, &*found.label)),
        }
    }
}

impl LinkTexts for References {
    fn json(&self, kind: ReferenceKind, id: Id) -> &[u8] {
        self.find(kind, id).map_or(b"null", |(json, _)| json)
    }

    fn label(&self, kind: ReferenceKind, id: Id) -> &str {
        self.find(kind, id).map_or("", |(_, label)| label)
    }
}
