//! Organizations and tags, the rows that records link to.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::curated::{Curated, Fields, forbid_separator, require, row};
use super::field::fields;
use super::message::message;
pub use super::value::ReferenceKind;
use super::value::json::push_list;
use super::value::text::{join_items, split_items};
use super::value::{FieldValue, JsonType, LinkTexts, ValueKind, ValueReader};
use super::{Id, json};

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

row!(
    OrganizationFields,
    "organizations",
    |organization, faults| {
        require("name", &organization.name, faults);
        forbid_separator("name", organization.name(), "; ", faults);
    }
);

row!(TagFields, "tags", |tag, faults| {
    require("type", &tag.kind, faults);
    require("name", &tag.name, faults);
    let kind = tag.kind.as_deref().unwrap_or_default();
    forbid_separator("type", kind, "; ", faults);
    forbid_separator("type", kind, ": ", faults);
    forbid_separator("name", tag.name(), "; ", faults);
});

/// The fields of a kind of row that records link to.
pub trait ReferenceFields: Fields + Serialize {
    /// The kind of row.
    const KIND: ReferenceKind;

    /// Returns the text that identifies the row in CSV lists and imports: the name; for a tag `Type: Name`.
    fn label(&self) -> String;

    /// Returns the fields of a row that has only this label. Returns `None` if it is none of a tag.
    fn of_label(label: &str) -> Option<Self>;
}

impl ReferenceFields for OrganizationFields {
    const KIND: ReferenceKind = ReferenceKind::Organization;

    fn label(&self) -> String {
        self.name().to_owned()
    }

    fn of_label(label: &str) -> Option<OrganizationFields> {
        Some(OrganizationFields {
            name: Some(label.to_owned()),
            ..OrganizationFields::default()
        })
    }
}

impl ReferenceFields for TagFields {
    const KIND: ReferenceKind = ReferenceKind::Tag;

    fn label(&self) -> String {
        format!(
            "{}: {}",
            self.kind.as_deref().unwrap_or_default(),
            self.name()
        )
    }

    fn of_label(label: &str) -> Option<TagFields> {
        let (kind, name) = label.split_once(": ")?;
        Some(TagFields {
            kind: Some(kind.to_owned()),
            name: Some(name.to_owned()),
            ..TagFields::default()
        })
    }
}

/// A row that records link to, with its two texts in them.
pub struct Referenced<F> {
    /// The row.
    pub row: Curated<F>,
    /// Its JSON object within records.
    pub json: Vec<u8>,
    /// Its text in CSV lists.
    pub label: String,
}

impl<F: ReferenceFields> Referenced<F> {
    /// Renders the row.
    pub fn new(row: Curated<F>) -> Referenced<F> {
        Referenced {
            json: json::render_reference(&row),
            label: row.fields().label(),
            row,
        }
    }
}

/// All organizations and tags of one state of the database.
#[derive(Default)]
pub struct References {
    /// All organizations.
    pub organizations: BTreeMap<Id, Referenced<OrganizationFields>>,
    /// All tags.
    pub tags: BTreeMap<Id, Referenced<TagFields>>,
}

impl LinkTexts for References {
    fn find(&self, kind: ReferenceKind, id: Id) -> Option<(&[u8], &str)> {
        match kind {
            ReferenceKind::Organization => self
                .organizations
                .get(&id)
                .map(|found| (&*found.json, &*found.label)),
            ReferenceKind::Tag => self
                .tags
                .get(&id)
                .map(|found| (&*found.json, &*found.label)),
        }
    }
}

/// Links to rows with the fields `R`: their ids, ordered, without duplicates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links<R> {
    ids: Vec<Id>,
    linked: PhantomData<R>,
}

/// Reads the objects of linked rows in a record's JSON.
impl<'de, R> Deserialize<'de> for Links<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Links<R>, D::Error> {
        #[derive(Deserialize)]
        struct Linked {
            id: Id,
        }
        let linked: Vec<Linked> = Deserialize::deserialize(deserializer)?;
        Ok(linked
            .into_iter()
            .map(|linked| linked.id)
            .collect::<Vec<Id>>()
            .into())
    }
}

impl<R> Deref for Links<R> {
    type Target = Vec<Id>;

    fn deref(&self) -> &Vec<Id> {
        &self.ids
    }
}

impl<R> From<Vec<Id>> for Links<R> {
    fn from(ids: Vec<Id>) -> Links<R> {
        Links {
            ids,
            linked: PhantomData,
        }
    }
}

impl<R: ReferenceFields> FieldValue for Links<R> {
    fn kind() -> ValueKind {
        ValueKind::Links(R::KIND)
    }

    fn ids(&self) -> &[Id] {
        self
    }

    fn set_ids(&mut self, ids: Vec<Id>) {
        self.ids = ids;
    }

    fn write_json(&self, out: &mut Vec<u8>, links: &dyn LinkTexts) {
        push_list(out, self, |out, id| {
            out.extend_from_slice(links.find(R::KIND, *id).map_or(b"null", |(json, _)| json));
        });
    }

    fn to_csv<'a>(&'a self, links: &'a dyn LinkTexts) -> Cow<'a, str> {
        let labels: Vec<&str> = self
            .iter()
            .map(|id| links.find(R::KIND, *id).map_or("", |(_, label)| label))
            .collect();
        join_items(&labels)
    }

    fn read_json(&mut self, json: Value, reader: &mut dyn ValueReader) {
        let expected = match R::KIND {
            ReferenceKind::Organization => {
                "write a list whose items are ids, names or full objects, such as [\"ASCO\"]"
            }
            ReferenceKind::Tag => {
                "write a list whose items are ids, texts `Type: Name` or full objects"
            }
        };
        match json {
            Value::Array(items) => reader.links(R::KIND, items),
            other => reader.fault(
                &other.to_string(),
                message!("is {}; {expected}", JsonType::of(&other)),
            ),
        }
    }

    fn read_csv(&mut self, cell: &str, reader: &mut dyn ValueReader) {
        match split_items(cell) {
            Ok(labels) => reader.links(R::KIND, labels.map(Value::from).collect()),
            Err(message) => reader.fault(cell, message),
        }
    }

    fn normalize(&mut self) {
        self.ids.sort_unstable();
        self.ids.dedup();
    }
}
