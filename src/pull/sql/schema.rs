//! Creates the tables and views of a copy, and replaces those of another version.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::database::{Database, Reader};
use super::rows::RecordWriter;
use super::tables::{DatasetTables, LinkTable, LinkedKind, SqlTable, Type, link_table, linked};
use crate::model::{Dataset, Joined};
use crate::pull::columns::Cell;
use crate::pull::error::Result;
use crate::pull::export::MAX_ID;

/// The format of a copy. It changes if older versions must not use newer copies.
pub const FORMAT: i32 = 1;

/// Views for common questions. The expressions in braces come from [`Database::VIEW_WORDS`]. Days are in UTC.
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

/// Creates all tables of a new copy, within a transaction.
pub fn create<D: Database>(database: &mut D) -> Result<()> {
    let common = D::common();
    let derived = derived::<D>();
    let layout = layout::<D>();
    database.batch(&format!(
        "{common}{derived}INSERT INTO copy VALUES ('layout', '{layout}');"
    ))
}

/// Fails if a table or a column is missing.
pub fn find_missing<D: Database>(database: &mut D) -> Result<()> {
    let mut probes = "SELECT name, value FROM copy LIMIT 0;
        SELECT dataset, token, records, loaded_at, changed_at, checked_at, verified_at FROM sync LIMIT 0;"
        .to_owned();
    for tables in Dataset::ALL.map(DatasetTables::of) {
        for table in tables.all() {
            probes += &format!("SELECT {} FROM {} LIMIT 0;", table.names(), table.name);
        }
    }
    database.batch(&probes)
}

/// Makes missing tables and columns again, with their indexes and views. The others stay, with all that hangs on them.
/// The next pull loads everything.
pub fn repair<D: Database>(database: &mut D) -> Result<()> {
    let mut ddl = String::new();
    for tables in Dataset::ALL.map(DatasetTables::of) {
        for table in tables.all() {
            for (column, kind) in table.values() {
                let kind = D::type_name(*kind);
                ddl += &format!("ALTER TABLE {} ADD COLUMN {column} {kind};\n", table.name);
            }
        }
        let column = D::search(tables.dataset).0.replacen(',', "", 1);
        ddl += &format!("ALTER TABLE {} ADD COLUMN {column};\n", tables.dataset);
    }
    ddl += &(D::common() + &derived::<D>());
    for statement in ddl.split(";\n") {
        // Most fail, because what they make is there.
        let _ = database.batch(statement);
    }
    database.batch("UPDATE sync SET token = ''")
}

/// Returns a value of the table `copy`.
pub fn saved_value<D: Database>(database: &mut D, name: &str) -> Result<Option<String>> {
    // The table may belong to another program, with other types.
    let query = "SELECT CAST(value AS text) FROM copy WHERE CAST(name AS text) = $1";
    let row = database.query(query, &[name.into()])?.pop();
    Ok(row.and_then(|row| row[0].text().map(str::to_owned)))
}

/// Creates the derived tables again if their layout is that of another version.
pub fn renew<D: Database>(database: &mut D) -> Result<()> {
    let wanted = layout::<D>();
    if saved_value(database, "layout")?.as_deref() == Some(&*wanted) {
        return Ok(());
    }
    database.in_transaction(|database| {
        database.batch(&drop_derived::<D>())?;
        for dataset in Dataset::ALL {
            database.batch(&D::set_aside(dataset))?;
        }
        database.batch(&derived::<D>())?;
        for dataset in Dataset::ALL {
            take_back(database, dataset)?;
        }
        database.query(
            "UPDATE copy SET value = $1 WHERE name = 'layout'",
            &[wanted.into()],
        )?;
        Ok(())
    })
}

/// Writes the records of `old_DATASET` into the new tables.
fn take_back<D: Database>(database: &mut D, dataset: Dataset) -> Result<()> {
    let mut writer = RecordWriter::new(DatasetTables::of(dataset));
    let old = format!("old_{dataset}");
    // Skips invalid ids and unreadable JSON, which other programs wrote. A comparison finds that records are missing.
    let mut reader = Reader::new("id, json", &old, 1);
    while let Some(row) = reader.next_until(database, MAX_ID)? {
        if let [Cell::Integer(id), Cell::Text(json)] = &row[..]
            && serde_json::from_str::<Value>(json).is_ok()
        {
            writer.add(database, *id, Some(json.as_str().into()))?;
        }
    }
    writer.finish(database)?;
    database.rebuild_search(dataset)?;
    database.batch(&format!("DROP TABLE {old}"))
}

/// The statements that create the tables derived from records, and the views.
fn derived<D: Database>() -> String {
    let mut ddl = String::new();
    for LinkedKind { rows, .. } in linked() {
        let comment = D::comment(&rows.name, "Those that the records of the copy name");
        ddl += &format!("{}{comment}\n", create_table::<D>(rows, ""));
    }
    for dataset in Dataset::ALL {
        let tables = DatasetTables::of(dataset);
        let (column, index) = D::search(dataset);
        ddl += &format!("{}{index}\n", create_table::<D>(&tables.records, &column));
        ddl.extend(
            tables
                .links
                .iter()
                .map(|links| create_links::<D>(dataset, links)),
        );
    }
    ddl.extend(views::<D>().map(|(name, query)| format!("CREATE VIEW {name} AS {query};\n")));
    ddl
}

fn create_table<D: Database>(table: &SqlTable, more: &str) -> String {
    let (key, key_type) = table.columns[0];
    let columns = table
        .columns
        .iter()
        .map(|(name, kind)| {
            let constraint = match kind {
                _ if *name == key => " PRIMARY KEY",
                Type::Json => " NOT NULL",
                _ => "",
            };
            format!("{name} {}{constraint}", D::type_name(*kind))
        })
        .joined(", ");
    let end = if key_type == Type::Integer {
        ""
    } else {
        D::BY_KEY
    };
    format!("CREATE TABLE {} ({}{more}){end};", table.name, columns)
}

// The layout's digest includes the whitespace, so it must not change.
fn create_links<D: Database>(dataset: Dataset, links: &LinkTable) -> String {
    let table = &links.pairs.name;
    let target = &links.kind.rows.name;
    let end = D::BY_KEY;
    let [(id, id_type), (key, key_type)] = [0, 1].map(|at| links.pairs.columns[at]);
    let id_type = D::type_name(id_type);
    let key_type = D::type_name(key_type);
    let comment = D::comment(table, &format!("Which {dataset} name which {target}"));
    format!(
        "CREATE TABLE {table} ({id} {id_type} NOT NULL REFERENCES {dataset}, {key} {key_type} NOT NULL REFERENCES \
         {target}, PRIMARY KEY ({id}, {key})){end};
             CREATE INDEX {table}_by_{key} ON {table} ({key});{comment}\n"
    )
}

/// The statements that drop the views, the link tables and the linked rows.
fn drop_derived<D: Database>() -> String {
    let views = views::<D>()
        .rev()
        .map(|(name, _)| format!("DROP VIEW IF EXISTS {name};\n"));
    let links = Dataset::ALL.into_iter().flat_map(|dataset| {
        linked()
            .iter()
            .filter_map(move |kind| link_table(dataset, kind))
    });
    let tables = links.chain(linked().iter().map(|kind| kind.rows.name.clone()));
    views
        .chain(tables.map(|table| format!("DROP TABLE IF EXISTS {table};\n")))
        .collect()
}

/// The names and queries of the views. Each uses earlier ones only.
fn views<D: Database>() -> impl DoubleEndedIterator<Item = (&'static str, String)> {
    VIEWS.into_iter().map(|(name, query)| {
        let words = D::VIEW_WORDS.iter();
        let query = words.fold(query.to_owned(), |query, (word, sql)| {
            query.replace(word, sql)
        });
        (name, query)
    })
}

/// A digest of the layout of the derived tables.
fn layout<D: Database>() -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(derived::<D>().as_bytes()))
}
