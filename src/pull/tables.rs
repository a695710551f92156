//! The tables of a copy that all kinds of databases share.

use std::sync::LazyLock;

use serde_json::Value;

use super::columns::{Column, columns, value_of};
use crate::model::reference::LinkTarget;
use crate::model::value::{JsonType, ReferenceKind, ValueKind};
use crate::model::{Dataset, Fields, OrganizationFields, TagFields};

/// A kind of row that records link to: organizations, tags, or the items of a list of texts.
#[derive(Debug)]
pub struct LinkedKind {
    /// Its table.
    pub table: &'static str,
    /// The column of link tables that holds its key.
    pub key: &'static str,
    /// The kind of reference; `None` for the items of the list field with the table's name.
    kind: Option<ReferenceKind>,
    /// Its columns besides the key, which is `id` (or `name` when there are none).
    pub columns: Vec<&'static str>,
}

/// All kinds of linked rows.
pub fn linked() -> &'static [LinkedKind] {
    fn rows<F: Fields + LinkTarget>() -> LinkedKind {
        let columns = F::table().fields.iter().map(|field| field.column.as_str()).collect();
        let key = match F::KIND {
            ReferenceKind::Organization => "organization_id",
            ReferenceKind::Tag => "tag_id",
        };
        LinkedKind { table: F::STEM, key, kind: Some(F::KIND), columns }
    }
    fn texts(dataset: Dataset) -> impl Iterator<Item = LinkedKind> {
        let table = dataset.table();
        let lists = table.fields.iter().enumerate().filter(|(_, field)| field.kind == ValueKind::Texts);
        lists.map(|(at, field)| {
            let filter = table.filters.iter().find(|filter| filter.field == at);
            let key = filter.map_or("item", |filter| filter.name.as_str());
            LinkedKind { table: &field.column, key, kind: None, columns: Vec::new() }
        })
    }
    static LINKED: LazyLock<Vec<LinkedKind>> = LazyLock::new(|| {
        let mut linked = vec![rows::<OrganizationFields>(), rows::<TagFields>()];
        linked.extend(Dataset::ALL.into_iter().flat_map(texts));
        linked.dedup_by_key(|linked| linked.table);
        linked
    });
    &LINKED
}

impl LinkedKind {
    /// The key column of its own table.
    pub fn own_key(&self) -> &'static str {
        if self.columns.is_empty() { "name" } else { "id" }
    }

    /// Whether a column contains links to such rows.
    fn is_listed_in(&self, column: &Column) -> bool {
        match self.kind {
            Some(kind) => column.kind == ValueKind::Links(kind),
            None => column.column == self.table,
        }
    }

    /// The name of a dataset's link table; `None` if its records have no such links.
    pub fn link_table(&self, dataset: Dataset) -> Option<String> {
        let has_links = columns(dataset).iter().any(|column| self.is_listed_in(column));
        has_links.then(|| format!("{}_{}", id_column(dataset).trim_end_matches("_id"), self.table))
    }
}

/// The kinds of rows that a dataset's records link to, each with its link table.
pub fn links(dataset: Dataset) -> Vec<(&'static LinkedKind, String)> {
    linked().iter().filter_map(|kind| Some((kind, kind.link_table(dataset)?))).collect()
}

/// The items of a record's lists that link to rows of a kind.
pub fn items_of<'a>(columns: &[Column], kind: &LinkedKind, record: &'a Value) -> impl Iterator<Item = &'a Value> {
    let lists: Vec<&Value> =
        columns.iter().filter(|column| kind.is_listed_in(column)).map(|column| value_of(column, record)).collect();
    lists.into_iter().filter_map(Value::as_array).flatten()
}

/// An SQL condition: no record links to the row with the key `key`, which is an SQL expression.
pub fn no_link(kind: &LinkedKind, key: &str) -> String {
    let tables = Dataset::ALL.into_iter().filter_map(|dataset| kind.link_table(dataset));
    tables.map(|table| format!(" AND NOT EXISTS (SELECT 1 FROM {table} WHERE {} = {key})", kind.key)).collect()
}

/// The column of link tables that holds a record's id.
pub fn id_column(dataset: Dataset) -> &'static str {
    match dataset {
        Dataset::Conferences => "conference_id",
        Dataset::Journals => "journal_id",
    }
}

/// The columns in the full-text index: lists, searched or filtered texts, and fields marked as indexed.
pub fn searched(dataset: Dataset) -> Vec<&'static str> {
    let table = dataset.table();
    let is_searched = |(at, field): &(usize, &Column)| {
        let is_filtered = || table.filters.iter().any(|filter| filter.field == *at);
        field.uses.indexed
            || field.uses.searched.is_some()
            || field.kind.json_type() == JsonType::List
            || field.kind == ValueKind::Text && is_filtered()
    };
    table.fields.iter().enumerate().filter(is_searched).map(|(_, field)| field.column.as_str()).collect()
}
