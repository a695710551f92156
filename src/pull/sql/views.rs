//! The queries of the views.

use super::database::Dialect;

/// Views for the usual questions, with the names of a [`Dialect`]'s words in braces. Days are those of UTC.
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

/// The names and queries of the views. Each uses earlier ones only.
pub fn views<D: Dialect>() -> impl DoubleEndedIterator<Item = (&'static str, String)> {
    VIEWS.into_iter().map(|(name, query)| {
        let query = query.replace("{today}", D::TODAY).replace("{in_90_days}", D::IN_90_DAYS);
        (name, query.replace("{days_left}", D::DAYS_LEFT))
    })
}
