//! The tables and views, and the statements that create them.
//!
//! The column `json` holds a record as the service sent it. All other columns and tables are derived from it.

use sha2::{Digest as _, Sha256};

use super::dialect::{Dialect, Type};
use crate::model::Dataset;
use crate::pull::columns::{Column, columns};
use crate::pull::tables::{LinkedKind, id_column, linked, links};

/// The format of a copy. It changes if older versions must not use newer copies.
pub const FORMAT: i32 = 1;

/// Views for common questions. The expressions in braces come from [`Dialect::VIEW_WORDS`]. Days are in UTC.
const VIEWS: [(&str, &str); 6] = [
    (
        "upcoming_conferences",
        "SELECT id, name, abbv, start_date, start_date_status, end_date, city, country, therapy_areas, url FROM conferences
         WHERE coalesce(end_date, start_date) >= {today} ORDER BY start_date, id",
    ),
    (
        "deadlines",
        "SELECT id AS conference_id, name, abbv, 'abstract' AS kind, abstract_due_date AS due_date,
            abstract_due_date_status AS status, start_date, therapy_areas, url FROM conferences
         WHERE abstract_due_date IS NOT NULL
         UNION ALL SELECT id, name, abbv, 'late-breaking', late_breaking_due_date, late_breaking_due_date_status, start_date,
            therapy_areas, url FROM conferences WHERE late_breaking_due_date IS NOT NULL",
    ),
    (
        "deadlines_next_90_days",
        "SELECT *, {days_left} AS days_left FROM deadlines
         WHERE due_date BETWEEN {today} AND {in_90_days} ORDER BY due_date, conference_id, kind",
    ),
    (
        "dates_to_confirm",
        "SELECT id AS conference_id, name, abbv, start_date, start_date_status, abstract_due_date_status,
            late_breaking_due_date_status, url FROM conferences
         WHERE (start_date IS NULL OR start_date >= {today}) AND (start_date_status <> 'confirmed'
            OR abstract_due_date_status <> 'confirmed' OR late_breaking_due_date_status <> 'confirmed')
         ORDER BY start_date IS NULL, start_date, id",
    ),
    (
        "open_access_journals",
        "SELECT id, name, abbv, publisher, publishing_apc_usd, publishing_content_license, impact_factor,
            timelines_submit_to_first_decision_max_weeks AS weeks_to_first_decision, url FROM journals
         WHERE publishing_access = 'open' ORDER BY impact_factor IS NULL, impact_factor DESC, id",
    ),
    ("copy_status", "SELECT dataset, records, loaded_at, changed_at, checked_at, verified_at FROM sync"),
];

/// A table that rows are written to.
#[derive(Debug)]
pub struct SqlTable {
    /// Its name.
    pub name: String,
    /// The names and types of its columns, primary key first.
    pub columns: Vec<(&'static str, Type)>,
    /// The number of columns of the primary key.
    pub keys: usize,
}

/// The tables of a dataset.
#[derive(Debug)]
pub struct DatasetTables {
    /// The dataset.
    pub dataset: Dataset,
    /// The columns that come from the record's fields.
    pub columns: &'static [Column],
    /// One row for each record.
    pub records: SqlTable,
    /// The links of its records.
    pub links: Vec<LinkTables>,
}

/// A link table and the table that it links to.
#[derive(Debug)]
pub struct LinkTables {
    /// The kind of the linked rows.
    pub kind: &'static LinkedKind,
    /// The linked rows.
    pub rows: SqlTable,
    /// The link table: the id of a record and the key of a linked row.
    pub pairs: SqlTable,
}

impl SqlTable {
    /// The names of its columns, separated by commas.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// The columns besides the key.
    pub fn values(&self) -> &[(&'static str, Type)] {
        &self.columns[self.keys..]
    }
}

impl DatasetTables {
    /// The tables of a dataset.
    pub fn new(dataset: Dataset) -> DatasetTables {
        let columns = columns(dataset);
        let between = columns.iter().map(|column| (column.column.as_str(), Type::from(column.kind)));
        let cells = [("id", Type::Integer)].into_iter().chain(between);
        let cells = cells.chain([("updated_at", Type::Time), ("json", Type::Json)]).collect();
        DatasetTables {
            dataset,
            columns,
            records: SqlTable { name: dataset.to_string(), columns: cells, keys: 1 },
            links: links(dataset).into_iter().map(|(kind, table)| LinkTables::new(dataset, kind, table)).collect(),
        }
    }
}

impl LinkTables {
    fn new(dataset: Dataset, kind: &'static LinkedKind, table: String) -> LinkTables {
        let pairs = vec![(id_column(dataset), Type::Integer), (kind.key, key_type(kind))];
        LinkTables { kind, rows: rows_of(kind), pairs: SqlTable { name: table, columns: pairs, keys: 2 } }
    }
}

fn rows_of(kind: &LinkedKind) -> SqlTable {
    let values = kind.columns.iter().map(|name| (*name, Type::Text));
    let columns = [(kind.own_key(), key_type(kind))].into_iter().chain(values).collect();
    SqlTable { name: kind.table.to_owned(), columns, keys: 1 }
}

fn key_type(kind: &LinkedKind) -> Type {
    if kind.columns.is_empty() { Type::Text } else { Type::Integer }
}

/// The statements that create the tables derived from records, and the views.
pub fn derived<D: Dialect>() -> String {
    let mut ddl = String::new();
    for kind in linked() {
        let comment = D::comment(kind.table, "Those that the records of the copy name");
        ddl += &format!("{}{comment}\n", create_table::<D>(&rows_of(kind), ""));
    }
    for dataset in Dataset::ALL {
        let (tables, (column, index)) = (DatasetTables::new(dataset), D::search(dataset));
        ddl += &format!("{}{index}\n", create_table::<D>(&tables.records, &column));
        ddl.extend(tables.links.iter().map(|links| create_links::<D>(dataset, links)));
    }
    ddl.extend(views::<D>().map(|(name, query)| format!("CREATE VIEW {name} AS {query};\n")));
    ddl
}

fn create_table<D: Dialect>(table: &SqlTable, more: &str) -> String {
    let (key, key_type) = table.columns[0];
    let column = |(name, kind): &(&str, Type)| {
        let constraint = match kind {
            _ if *name == key => " PRIMARY KEY",
            Type::Json => " NOT NULL",
            _ => "",
        };
        format!("{name} {}{constraint}", D::type_name(*kind))
    };
    let columns: Vec<String> = table.columns.iter().map(column).collect();
    let end = if key_type == Type::Integer { "" } else { D::BY_KEY };
    format!("CREATE TABLE {} ({}{more}){end};", table.name, columns.join(", "))
}

// The layout's digest includes the whitespace, so it must not change.
fn create_links<D: Dialect>(dataset: Dataset, links: &LinkTables) -> String {
    let (table, target, end) = (&links.pairs.name, links.kind.table, D::BY_KEY);
    let [(id, id_type), (key, key_type)] = [0, 1].map(|at| links.pairs.columns[at]);
    let (id_type, key_type) = (D::type_name(id_type), D::type_name(key_type));
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

/// The names and queries of the views. Each uses earlier ones only.
fn views<D: Dialect>() -> impl DoubleEndedIterator<Item = (&'static str, String)> {
    let spelled =
        |query: &str| D::VIEW_WORDS.iter().fold(query.to_owned(), |query, (word, sql)| query.replace(word, sql));
    VIEWS.into_iter().map(move |(name, query)| (name, spelled(query)))
}

/// A digest of the layout of the derived tables.
pub fn layout<D: Dialect>() -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(derived::<D>().as_bytes()))
}
