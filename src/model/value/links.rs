//! Links of a record to organizations or tags.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer};

use super::cell::{join_items, split_items};
use super::json::{Json, push_list};
use super::kind::{FieldValue, LinkTexts, ReferenceKind, ValueKind, ValueReader};
use crate::model::id::Id;
use crate::model::message::message;

/// The fields of a kind of row that records can link to.
pub trait LinkTarget: Send + Sync {
    /// The kind of row.
    const KIND: ReferenceKind;
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
        Ok(linked.into_iter().map(|linked| linked.id).collect::<Vec<Id>>().into())
    }
}

impl<R> Deref for Links<R> {
    type Target = Vec<Id>;

    fn deref(&self) -> &Vec<Id> {
        &self.ids
    }
}

impl<R> DerefMut for Links<R> {
    fn deref_mut(&mut self) -> &mut Vec<Id> {
        &mut self.ids
    }
}

impl<R> From<Vec<Id>> for Links<R> {
    fn from(ids: Vec<Id>) -> Links<R> {
        Links { ids, linked: PhantomData }
    }
}

impl<R: LinkTarget> FieldValue for Links<R> {
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
        push_list(out, self, |out, id| out.extend_from_slice(links.json(R::KIND, *id)));
    }

    fn to_csv<'a>(&'a self, links: &'a dyn LinkTexts) -> Cow<'a, str> {
        let labels: Vec<&str> = self.iter().map(|id| links.label(R::KIND, *id)).collect();
        join_items(&labels)
    }

    fn read_json(&mut self, json: Json<'_>, reader: &mut dyn ValueReader) {
        let expected = match R::KIND {
            ReferenceKind::Organization => {
                "write a list whose items are ids, names or full objects, such as [\"ASCO\"]"
            }
            ReferenceKind::Tag => "write a list whose items are ids, texts `Type: Name` or full objects",
        };
        match json {
            Json::List(items) => reader.links(R::KIND, items),
            other => reader.fault(&other.to_string(), message!("is {}; {expected}", other.json_type())),
        }
    }

    fn read_csv(&mut self, cell: &str, reader: &mut dyn ValueReader) {
        match split_items(cell) {
            Ok(labels) => reader.links(R::KIND, labels.map(|label| Json::Text(label.into())).collect()),
            Err(message) => reader.fault(cell, message),
        }
    }

    fn normalize(&mut self) {
        self.sort_unstable();
        self.dedup();
    }
}
