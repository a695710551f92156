//! The tables and views of a copy.
//!
//! A record's row has its cells and, in `json`, the bytes that the service sent. All else is derived from `json`.

use std::fmt::Write;
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

use crate::model::{Dataset, Fields, OrganizationFields, TagFields};
use crate::pull::columns::{Column, Kind, columns};

/// `PRAGMA application_id` of a copy: "mfcp".
pub const APPLICATION_ID: i32 = 0x6d66_6370;

/// `PRAGMA user_version`: raised when an older program must not go on with a newer copy.
pub const FORMAT: i32 = 1;

/// What is the same in every copy.
const COMMON: &str = "
    -- Of what this is a copy: the service's address and the layout of the tables.
    CREATE TABLE copy (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    -- Where it stands: the sync token, and when it was loaded, last changed, last compared with the service. Times are UTC.
    CREATE TABLE sync (dataset TEXT PRIMARY KEY, token TEXT NOT NULL, records INTEGER NOT NULL,
        loaded_at TEXT NOT NULL, changed_at TEXT NOT NULL, checked_at TEXT NOT NULL, verified_at TEXT);
";

/// Views for the usual questions. Days are those of UTC.
const VIEWS: [(&str, &str); 6] = [
    (
        "upcoming_conferences",
        "SELECT id, name, abbv, start_date, start_date_status, end_date, city, country, therapy_areas, url FROM conferences
         WHERE coalesce(end_date, start_date) >= date('now') ORDER BY start_date, id",
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
        "SELECT *, CAST(julianday(due_date) - julianday(date('now')) AS INTEGER) AS days_left FROM deadlines
         WHERE due_date BETWEEN date('now') AND date('now', '+90 days') ORDER BY due_date, conference_id, kind",
    ),
    (
        "dates_to_confirm",
        "SELECT id AS conference_id, name, abbv, start_date, start_date_status, abstract_due_date_status,
            late_breaking_due_date_status, url FROM conferences
         WHERE (start_date IS NULL OR start_date >= date('now')) AND (start_date_status <> 'confirmed'
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

/// A kind of row that records link to.
#[derive(Debug)]
pub struct Linked {
    /// Its table.
    pub table: &'static str,
    /// The column of link tables that holds its key.
    pub key: &'static str,
    /// Which column of a record lists it.
    pub kind: Kind,
    /// Its columns besides the key, which is `id` (or `name` when there are none).
    pub columns: Vec<&'static str>,
}

/// The kinds of rows that records link to.
pub fn linked() -> &'static [Linked; 3] {
    fn names<F: Fields>() -> Vec<&'static str> {
        F::table().fields.iter().map(|field| field.column.as_str()).collect()
    }
    static LINKED: LazyLock<[Linked; 3]> = LazyLock::new(|| {
        let organizations = names::<OrganizationFields>();
        let tags = names::<TagFields>();
        [
            Linked {
                table: "organizations",
                key: "organization_id",
                kind: Kind::Organizations,
                columns: organizations,
            },
            Linked { table: "tags", key: "tag_id", kind: Kind::Tags, columns: tags },
            Linked { table: "therapy_areas", key: "therapy_area", kind: Kind::Texts, columns: Vec::new() },
        ]
    });
    &LINKED
}

impl Linked {
    /// The name of its key in its own table.
    pub fn own_key(&self) -> &'static str {
        if self.columns.is_empty() { "name" } else { "id" }
    }

    /// The table of a dataset's links to it; none where its records have no such links.
    pub fn link_table(&self, dataset: Dataset) -> Option<String> {
        let has_links = columns(dataset).iter().any(|column| column.kind == self.kind);
        has_links.then(|| format!("{}_{}", one(dataset), self.table))
    }

    fn ddl(&self) -> String {
        if self.columns.is_empty() {
            return format!("CREATE TABLE {} (name TEXT PRIMARY KEY) WITHOUT ROWID;\n", self.table);
        }
        let cells: String = self.columns.iter().map(|name| format!(", {name} TEXT")).collect();
        format!("CREATE TABLE {} (id INTEGER PRIMARY KEY{cells});\n", self.table)
    }
}

/// What a record of the dataset is called.
pub fn one(dataset: Dataset) -> &'static str {
    match dataset {
        Dataset::Conferences => "conference",
        Dataset::Journals => "journal",
    }
}

/// The columns in the full-text index.
pub fn searched(dataset: Dataset) -> &'static [&'static str] {
    match dataset {
        Dataset::Conferences => &["name", "abbv", "city", "country", "venue", "therapy_areas", "organizations", "tags"],
        Dataset::Journals => &["name", "abbv", "publisher", "organizations", "tags"],
    }
}

/// The statements that make the tables derived from records, and the views.
pub fn derived() -> String {
    let mut ddl: String = linked().iter().map(Linked::ddl).collect();
    for dataset in Dataset::ALL {
        push_dataset(&mut ddl, dataset);
    }
    for (name, query) in VIEWS {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(ddl, "CREATE VIEW {name} AS {query};");
    }
    ddl
}

fn push_dataset(ddl: &mut String, dataset: Dataset) {
    let cells: String =
        columns(dataset).iter().map(|column| format!(", {} {}", column.name, sql_type(column))).collect();
    let _ = writeln!(
        ddl,
        "CREATE TABLE {dataset} (id INTEGER PRIMARY KEY{cells}, updated_at TEXT, json TEXT NOT NULL);
         CREATE VIRTUAL TABLE {dataset}_search USING fts5({}, content='{dataset}', content_rowid='id',
            tokenize='unicode61 remove_diacritics 2');",
        searched(dataset).join(", ")
    );
    for kind in linked() {
        let (key, target) = (kind.key, kind.table);
        if let Some(table) = kind.link_table(dataset) {
            let one = one(dataset);
            let key_type = if kind.columns.is_empty() { "TEXT" } else { "INTEGER" };
            let _ = writeln!(
                ddl,
                "CREATE TABLE {table} ({one}_id INTEGER NOT NULL REFERENCES {dataset}, {key} {key_type} NOT NULL REFERENCES \
                 {target}, PRIMARY KEY ({one}_id, {key})) WITHOUT ROWID;
                 CREATE INDEX {table}_by_{key} ON {table} ({key});"
            );
        }
    }
}

fn sql_type(column: &Column) -> &'static str {
    match column.kind {
        Kind::Integer => "INTEGER",
        Kind::Number => "REAL",
        Kind::Flag => "BOOLEAN",
        Kind::Date => "DATE",
        Kind::Text | Kind::Texts | Kind::Organizations | Kind::Tags => "TEXT",
    }
}

/// The statements that make a new copy.
pub fn all() -> String {
    format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};\n{COMMON}{}", derived())
}

/// The statements that remove what [`derived`] makes, but for the records.
pub fn undo_derived() -> String {
    let mut ddl: String = VIEWS.iter().rev().map(|(name, _)| format!("DROP VIEW IF EXISTS {name};\n")).collect();
    for dataset in Dataset::ALL {
        let _ = writeln!(ddl, "DROP TABLE IF EXISTS {dataset}_search;");
        for table in linked().iter().filter_map(|kind| kind.link_table(dataset)) {
            let _ = writeln!(ddl, "DROP TABLE IF EXISTS {table};");
        }
    }
    for kind in linked() {
        let _ = writeln!(ddl, "DROP TABLE IF EXISTS {};", kind.table);
    }
    ddl
}

/// What tells one layout of the derived tables from another.
pub fn layout() -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(derived().as_bytes()))
}
