//! The tables and views that a copy in a database has, whatever the database.

use std::sync::LazyLock;

use serde_json::Value;

use super::columns::{Column, columns, value_of};
use crate::model::value::{JsonType, LinkTarget, ReferenceKind, ValueKind};
use crate::model::{Dataset, Fields, OrganizationFields, TagFields};

/// How a database words what differs between databases in the views.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Today, in UTC.
    pub today: &'static str,
    /// The day 90 days later.
    pub in_90_days: &'static str,
    /// The days from today until `due_date`.
    pub days_left: &'static str,
}

/// Views for the usual questions, with words in braces that [`Dialect`] explains. Days are those of UTC.
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

/// A kind of row that records link to.
#[derive(Debug)]
pub struct Linked {
    /// Its table.
    pub table: &'static str,
    /// The column of link tables that holds its key.
    pub key: &'static str,
    /// Which rows; `None` for the texts of the field that the table is named after.
    kind: Option<ReferenceKind>,
    /// Its columns besides the key, which is `id` (or `name` when there are none).
    pub columns: Vec<&'static str>,
}

/// The kinds of rows that records link to: organizations, tags, and the texts of each list.
pub fn linked() -> &'static [Linked] {
    fn rows<F: Fields + LinkTarget>() -> Linked {
        let columns = F::table().fields.iter().map(|field| field.column.as_str()).collect();
        let key = match F::KIND {
            ReferenceKind::Organization => "organization_id",
            ReferenceKind::Tag => "tag_id",
        };
        Linked { table: F::STEM, key, kind: Some(F::KIND), columns }
    }
    fn texts(dataset: Dataset) -> impl Iterator<Item = Linked> {
        let table = dataset.table();
        let lists = table.fields.iter().enumerate().filter(|(_, field)| field.kind == ValueKind::Texts);
        lists.map(|(at, field)| {
            let filter = table.filters.iter().find(|filter| filter.field == at);
            let key = filter.map_or("item", |filter| filter.name.as_str());
            Linked { table: &field.column, key, kind: None, columns: Vec::new() }
        })
    }
    static LINKED: LazyLock<Vec<Linked>> = LazyLock::new(|| {
        let mut linked = vec![rows::<OrganizationFields>(), rows::<TagFields>()];
        linked.extend(Dataset::ALL.into_iter().flat_map(texts));
        linked.dedup_by_key(|linked| linked.table);
        linked
    });
    &LINKED
}

impl Linked {
    /// The name of its key in its own table.
    pub fn own_key(&self) -> &'static str {
        if self.columns.is_empty() { "name" } else { "id" }
    }

    /// Whether a column lists such rows.
    fn is_listed_in(&self, column: &Column) -> bool {
        match self.kind {
            Some(kind) => column.kind == ValueKind::Links(kind),
            None => column.column == self.table,
        }
    }

    /// The table of a dataset's links to it; none where its records have no such links.
    pub fn link_table(&self, dataset: Dataset) -> Option<String> {
        let has_links = columns(dataset).iter().any(|column| self.is_listed_in(column));
        has_links.then(|| format!("{}_{}", one(dataset), self.table))
    }
}

/// The views: their names and queries, in an order in which each uses earlier ones only.
pub fn views(dialect: Dialect) -> impl DoubleEndedIterator<Item = (&'static str, String)> {
    VIEWS.into_iter().map(move |(name, query)| {
        let query = query.replace("{today}", dialect.today).replace("{in_90_days}", dialect.in_90_days);
        (name, query.replace("{days_left}", dialect.days_left))
    })
}

/// The kinds of rows that a dataset's records link to, each with its link table.
pub fn links(dataset: Dataset) -> Vec<(&'static Linked, String)> {
    linked().iter().filter_map(|kind| Some((kind, kind.link_table(dataset)?))).collect()
}

/// The lists of a record that link to rows of a kind.
pub fn items_of<'a>(columns: &[Column], kind: &Linked, record: &'a Value) -> impl Iterator<Item = &'a Value> {
    let lists: Vec<&Value> =
        columns.iter().filter(|column| kind.is_listed_in(column)).map(|column| value_of(column, record)).collect();
    lists.into_iter().filter_map(Value::as_array).flatten()
}

/// A condition that no record links to the row whose key the text stands for.
pub fn no_link(kind: &Linked, key: &str) -> String {
    let tables = Dataset::ALL.into_iter().filter_map(|dataset| kind.link_table(dataset));
    tables.map(|table| format!(" AND NOT EXISTS (SELECT 1 FROM {table} WHERE {} = {key})", kind.key)).collect()
}

/// What a record of the dataset is called.
pub fn one(dataset: Dataset) -> &'static str {
    match dataset {
        Dataset::Conferences => "conference",
        Dataset::Journals => "journal",
    }
}

/// The columns in the full-text index: lists, texts that are searched or filtered, and those that say so in their line.
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
