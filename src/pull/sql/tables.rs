//! The tables of a copy: which there are, with their columns.
//!
//! The column `json` holds a record as the service sent it. All other columns and tables are derived from it.

use std::iter::once;
use std::sync::LazyLock;

use serde_json::Value;

use crate::model::value::ReferenceKind;
use crate::model::{
    Dataset, Joined, JsonType, OrganizationFields, PerDataset, ReferenceFields, TagFields,
    ValueKind,
};
use crate::pull::columns::{Cell, Column, columns, value_of};

/// A row of a table or of a query's result.
pub type Row = Vec<Cell>;

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as what they hold")]
pub enum Type {
    Integer,
    Number,
    Flag,
    Date,
    Text,
    Time,
    /// A record as the service sent it.
    Json,
}

impl From<ValueKind> for Type {
    fn from(kind: ValueKind) -> Type {
        match kind {
            ValueKind::Integer | ValueKind::Year => Type::Integer,
            ValueKind::Number => Type::Number,
            ValueKind::Flag => Type::Flag,
            ValueKind::Date => Type::Date,
            ValueKind::Text | ValueKind::Choice(_) | ValueKind::DateStatus(_) => Type::Text,
            ValueKind::Texts | ValueKind::Links(_) => Type::Text,
        }
    }
}

/// A table that rows are written to.
pub struct SqlTable {
    /// Its name.
    pub name: String,
    /// The names and types of its columns, primary key first.
    pub columns: Vec<(&'static str, Type)>,
    /// The number of columns of the primary key.
    pub keys: usize,
}

impl SqlTable {
    /// The names of its columns, separated by commas.
    pub fn names(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).joined(", ")
    }

    /// The columns besides the key.
    pub fn values(&self) -> &[(&'static str, Type)] {
        &self.columns[self.keys..]
    }

    /// A statement that writes the rows of `source`, a clause of SQL. It does not touch rows that are equal, of which
    /// `compared` spells the columns. Unlike `INSERT OR REPLACE`, it deletes no row because of a unique index that
    /// others added.
    pub fn upsert(&self, source: &str, compared: impl Fn(&str, Type) -> String) -> String {
        let table = &self.name;
        let keys = self.columns[..self.keys].iter().map(|(name, _)| name);
        let keys = keys.joined(", ");
        let sets = self.values().iter();
        let sets = sets
            .map(|(name, _)| format!("{name} = excluded.{name}"))
            .joined(", ");
        let differs = self.values().iter().map(|(name, kind)| {
            let [old, new] =
                [table, "excluded"].map(|row| compared(&format!("{row}.{name}"), *kind));
            format!("{old} IS DISTINCT FROM {new}")
        });
        let action = match differs.joined(" OR ") {
            differs if differs.is_empty() => "NOTHING".to_owned(),
            differs => format!("UPDATE SET {sets} WHERE {differs}"),
        };
        let names = self.names();
        format!("INSERT INTO {table} ({names}) {source} ON CONFLICT ({keys}) DO {action}")
    }
}

/// A kind of row that records link to: organizations, tags, or the items of a list of texts.
pub struct LinkedKind {
    /// The linked rows. Their key is `id`, or `name` for texts, which have no other column.
    pub rows: SqlTable,
    /// The column of link tables that holds their key.
    pub key: &'static str,
    /// The kind of reference; `None` for the items of the list field with the table's name.
    kind: Option<ReferenceKind>,
}

/// All kinds of linked rows.
pub fn linked() -> &'static [LinkedKind] {
    fn references<F: ReferenceFields>() -> LinkedKind {
        let values = F::table()
            .fields
            .iter()
            .map(|field| (field.column.as_str(), Type::Text));
        let columns = once(("id", Type::Integer)).chain(values).collect();
        let key = match F::KIND {
            ReferenceKind::Organization => "organization_id",
            ReferenceKind::Tag => "tag_id",
        };
        LinkedKind {
            rows: SqlTable {
                name: F::STEM.to_owned(),
                columns,
                keys: 1,
            },
            key,
            kind: Some(F::KIND),
        }
    }
    fn texts(dataset: Dataset) -> impl Iterator<Item = LinkedKind> {
        let table = dataset.table();
        let lists = table
            .fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.kind == ValueKind::Texts);
        lists.map(|(at, field)| {
            let filter = table.filters.iter().find(|filter| filter.field == at);
            let key = filter.map_or("item", |filter| filter.name.as_str());
            let rows = SqlTable {
                name: field.column.clone(),
                columns: vec![("name", Type::Text)],
                keys: 1,
            };
            LinkedKind {
                rows,
                key,
                kind: None,
            }
        })
    }
    static LINKED: LazyLock<Vec<LinkedKind>> = LazyLock::new(|| {
        let mut linked = vec![
            references::<OrganizationFields>(),
            references::<TagFields>(),
        ];
        linked.extend(Dataset::ALL.into_iter().flat_map(texts));
        linked.dedup_by(|one, other| one.rows.name == other.rows.name);
        linked
    });
    &LINKED
}

impl LinkedKind {
    /// The name and type of the rows' key.
    pub fn own_key(&self) -> (&'static str, Type) {
        self.rows.columns[0]
    }

    /// Whether a column contains links to such rows.
    fn is_listed_in(&self, column: &Column) -> bool {
        match self.kind {
            Some(kind) => column.kind == ValueKind::Links(kind),
            None => column.column == self.rows.name,
        }
    }

    /// The items of a record's lists that link to such rows.
    pub fn items_of<'a>(
        &self,
        columns: &[Column],
        record: &'a Value,
    ) -> impl Iterator<Item = &'a Value> {
        let lists = columns
            .iter()
            .filter(|column| self.is_listed_in(column))
            .map(|column| value_of(column, record));
        lists
            .collect::<Vec<_>>()
            .into_iter()
            .filter_map(Value::as_array)
            .flatten()
    }

    /// An SQL condition: no record links to the row with the key `key`, which is an SQL expression.
    pub fn no_link(&self, key: &str) -> String {
        let tables = Dataset::ALL
            .into_iter()
            .filter_map(|dataset| link_table(dataset, self));
        tables
            .map(|table| {
                format!(
                    " AND NOT EXISTS (SELECT 1 FROM {table} WHERE {} = {key})",
                    self.key
                )
            })
            .collect()
    }
}

/// The name of a dataset's table of links to rows of a kind; `None` if its records have no such links.
pub fn link_table(dataset: Dataset, kind: &LinkedKind) -> Option<String> {
    let has_links = columns(dataset)
        .iter()
        .any(|column| kind.is_listed_in(column));
    has_links.then(|| {
        format!(
            "{}_{}",
            id_column(dataset).trim_end_matches("_id"),
            kind.rows.name
        )
    })
}

/// The column of link tables that holds a record's id.
fn id_column(dataset: Dataset) -> &'static str {
    match dataset {
        Dataset::Conferences => "conference_id",
        Dataset::Journals => "journal_id",
    }
}

/// The tables of a dataset.
pub struct DatasetTables {
    /// The dataset.
    pub dataset: Dataset,
    /// The columns that come from the record's fields.
    pub columns: &'static [Column],
    /// One row for each record.
    pub records: SqlTable,
    /// The links of its records.
    pub links: Vec<LinkTable>,
}

/// A link table: the id of a record and the key of a linked row.
pub struct LinkTable {
    /// The kind of the linked rows.
    pub kind: &'static LinkedKind,
    /// The table.
    pub pairs: SqlTable,
}

impl DatasetTables {
    /// The tables, with those of linked rows.
    pub fn all(&self) -> impl Iterator<Item = &SqlTable> {
        let links = self.links.iter();
        once(&self.records).chain(links.flat_map(|links| [&links.pairs, &links.kind.rows]))
    }

    /// The tables of a dataset.
    pub fn of(dataset: Dataset) -> &'static DatasetTables {
        static TABLES: LazyLock<PerDataset<DatasetTables>> =
            LazyLock::new(|| PerDataset::of(DatasetTables::new));
        &TABLES[dataset]
    }

    fn new(dataset: Dataset) -> DatasetTables {
        let columns = columns(dataset);
        let between = columns
            .iter()
            .map(|column| (column.column.as_str(), Type::from(column.kind)));
        let cells = once(("id", Type::Integer)).chain(between);
        let cells = cells
            .chain([("updated_at", Type::Time), ("json", Type::Json)])
            .collect();
        let links = linked().iter().filter_map(|kind| {
            let pairs = vec![
                (id_column(dataset), Type::Integer),
                (kind.key, kind.own_key().1),
            ];
            Some(LinkTable {
                kind,
                pairs: SqlTable {
                    name: link_table(dataset, kind)?,
                    columns: pairs,
                    keys: 2,
                },
            })
        });
        DatasetTables {
            dataset,
            columns,
            records: SqlTable {
                name: dataset.to_string(),
                columns: cells,
                keys: 1,
            },
            links: links.collect(),
        }
    }
}

/// The columns in the full-text index: lists, searched or filtered texts, and fields marked as indexed.
pub fn searched(dataset: Dataset) -> Vec<&'static str> {
    let table = dataset.table();
    table
        .fields
        .iter()
        .enumerate()
        .filter(|(at, field)| {
            let is_filtered = table.filters.iter().any(|filter| filter.field == *at);
            field.uses.indexed
                || field.uses.searched.is_some()
                || field.kind.json_type() == JsonType::List
                || field.kind == ValueKind::Text && is_filtered
        })
        .map(|(_, field)| field.column.as_str())
        .collect()
}
