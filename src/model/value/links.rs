//! Links of a record to organizations or tags.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Schema, json};

use super::cell::{join_items, split_items};
use super::json::{Json, push_list};
use super::kind::{FieldValue, LinkTexts, ReferenceKind, ValueReader};
use crate::model::id::Id;

/// The fields of rows that can be linked.
pub trait LinkTarget: Send + Sync {
    /// Which kind of row.
    const KIND: ReferenceKind;
}

/// Links to rows with the fields `R`: their ids, ordered, each once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct Links<R> {
    ids: Vec<Id>,
    #[serde(skip)]
    linked: PhantomData<R>,
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
    fn type_name(&self) -> &'static str {
        match R::KIND {
            ReferenceKind::Organization => "list of organizations",
            ReferenceKind::Tag => "list of tags",
        }
    }

    fn schema(&self) -> Schema {
        let items = match R::KIND {
            ReferenceKind::Organization => "#/components/schemas/Organization",
            ReferenceKind::Tag => "#/components/schemas/Tag",
        };
        json!({"type": "array", "items": {"$ref": items}, "uniqueItems": true})
    }

    fn is_list(&self) -> bool {
        true
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
            other => reader.fault(&other.to_string(), format!("is {}; {expected}", other.json_type())),
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
