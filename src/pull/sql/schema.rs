//! The tables, and the statements that create them.
//!
//! A record's row has its cells and, in `json`, the bytes that the service sent. All else is derived from `json`.

use sha2::{Digest as _, Sha256};

use super::database::{Dialect, Type};
use super::views::views;
use crate::model::Dataset;
use crate::pull::columns::{Column, columns};
use crate::pull::tables::{Linked, linked, links};

/// Raised when an older program must not go on with a newer copy.
pub const FORMAT: i32 = 1;

/// A table that rows are written to.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The names and types of its columns, those of the primary key first.
    pub columns: Vec<(&'static str, Type)>,
    /// The number of columns of the primary key.
    pub keys: usize,
}

/// The tables of a dataset.
#[derive(Debug)]
pub struct Tables {
    /// The dataset.
    pub dataset: Dataset,
    /// The columns that come from the record's fields.
    pub columns: &'static [Column],
    /// One row for each record.
    pub records: Table,
    /// The links of its records.
    pub links: Vec<Links>,
}

/// A link table and the table that it links to.
#[derive(Debug)]
pub struct Links {
    /// The kind of the linked rows.
    pub kind: &'static Linked,
    /// The linked rows.
    pub rows: Table,
    /// The link table: the id of a record and the key of a linked row.
    pub pairs: Table,
}

impl Table {
    /// The names of its columns, separated by commas.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// The columns besides the key.
    pub fn values(&self) -> &[(&'static str, Type)] {
        &self.columns[self.keys..]
    }

    /// The columns as [`Cell`](crate::pull::columns::Cell)s, separated by commas.
    pub fn read<D: Dialect>(&self) -> String {
        let read: Vec<String> = self.columns.iter().map(|(name, kind)| D::read(name, *kind)).collect();
        read.join(", ")
    }
}

impl Tables {
    /// The tables of a dataset.
    pub fn new(dataset: Dataset) -> Tables {
        let columns = columns(dataset);
        let between = columns.iter().map(|column| (column.column.as_str(), Type::from(column.kind)));
        let cells = [("id", Type::Integer)].into_iter().chain(between);
        let cells = cells.chain([("updated_at", Type::Time), ("json", Type::Json)]).collect();
        Tables {
            dataset,
            columns,
            records: Table { name: dataset.to_string(), columns: cells, keys: 1 },
            links: links(dataset).into_iter().map(|(kind, table)| Links::new(dataset, kind, table)).collect(),
        }
    }
}

impl Links {
    fn new(dataset: Dataset, kind: &'static Linked, table: String) -> Links {
        let id = match dataset {
            Dataset::Conferences => "conference_id",
            Dataset::Journals => "journal_id",
        };
        let pairs = vec![(id, Type::Integer), (kind.key, key_type(kind))];
        Links { kind, rows: rows_of(kind), pairs: Table { name: table, columns: pairs, keys: 2 } }
    }
}

/// The table of a kind of linked rows.
fn rows_of(kind: &Linked) -> Table {
    let values = kind.columns.iter().map(|name| (*name, Type::Text));
    let columns = [(kind.own_key(), key_type(kind))].into_iter().chain(values).collect();
    Table { name: kind.table.to_owned(), columns, keys: 1 }
}

fn key_type(kind: &Linked) -> Type {
    if kind.columns.is_empty() { Type::Text } else { Type::Integer }
}

/// The statements that create the tables derived from records, and the views.
pub fn derived<D: Dialect>() -> String {
    let mut ddl: String = linked().iter().map(linked_ddl::<D>).collect();
    for dataset in Dataset::ALL {
        let tables = Tables::new(dataset);
        ddl.push_str(&records_ddl::<D>(&tables));
        ddl.extend(tables.links.iter().map(|links| links_ddl::<D>(dataset, links)));
    }
    ddl.extend(views::<D>().map(|(name, query)| format!("CREATE VIEW {name} AS {query};\n")));
    ddl
}

fn linked_ddl<D: Dialect>(kind: &Linked) -> String {
    let table = rows_of(kind);
    let (own, key_type) = (kind.own_key(), D::type_name(key_type(kind)));
    let cells: String = table.values().iter().map(|(name, kind)| format!(", {name} {}", D::type_name(*kind))).collect();
    let end = if kind.columns.is_empty() { D::BY_KEY } else { "" };
    let comment = D::comment(kind.table, "Those that the records of the copy name");
    format!("CREATE TABLE {} ({own} {key_type} PRIMARY KEY{cells}){end};{comment}\n", kind.table)
}

fn records_ddl<D: Dialect>(tables: &Tables) -> String {
    let dataset = tables.dataset;
    let definition = |(name, kind): &(&str, Type)| {
        let constraint = match *name {
            "id" => " PRIMARY KEY",
            "json" => " NOT NULL",
            _ => "",
        };
        format!("{name} {}{constraint}", D::type_name(*kind))
    };
    let cells: Vec<String> = tables.records.columns.iter().map(definition).collect();
    let (search, search_ddl) = (D::search_column(dataset), D::search_ddl(dataset));
    format!("CREATE TABLE {dataset} ({}{search});{search_ddl}\n", cells.join(", "))
}

// The blanks are part of the layout's digest, so they stay as they are in existing copies.
fn links_ddl<D: Dialect>(dataset: Dataset, links: &Links) -> String {
    let (table, target, key) = (&links.pairs.name, links.kind.table, links.kind.key);
    let (id, id_type) = (links.pairs.columns[0].0, D::type_name(Type::Integer));
    let (key_type, end) = (D::type_name(key_type(links.kind)), D::BY_KEY);
    let comment = D::comment(table, &format!("Which {dataset} name which {target}"));
    format!(
        "CREATE TABLE {table} ({id} {id_type} NOT NULL REFERENCES {dataset}, {key} {key_type} NOT NULL REFERENCES \
         {target}, PRIMARY KEY ({id}, {key})){end};
             CREATE INDEX {table}_by_{key} ON {table} ({key});{comment}\n"
    )
}

/// The statements that drop the views, the link tables and the linked rows.
pub fn drop_derived<D: Dialect>() -> String {
    let views = views::<D>().rev().map(|(name, _)| format!("DROP VIEW IF EXISTS {name};\n"));
    let links = Dataset::ALL.into_iter().flat_map(links).map(|(_, table)| table);
    let tables = links.chain(linked().iter().map(|kind| kind.table.to_owned()));
    views.chain(tables.map(|table| format!("DROP TABLE IF EXISTS {table};\n"))).collect()
}

/// A digest of the layout of the derived tables.
pub fn layout<D: Dialect>() -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(derived::<D>().as_bytes()))
}
