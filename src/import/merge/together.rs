//! Fields that a row of a list of others changes together: the two ISSNs, a date with its status, a start with its end,
//! and a metric with its year.

use jiff::civil::Date;

use super::listed::{ListedFields, ListedRow};
use crate::import::lint::valid_issns;
use crate::import::read::options::ISSN_COLUMNS;
use crate::import::read::statement::CellContent::{Absent, Clear, Constant, Empty, Value};
use crate::model::field::RowMember;
use crate::model::{
    ConferenceFields, DateStatus, Fields, JournalFields, OrganizationFields, TagFields, message,
};

impl ListedFields for OrganizationFields {}
impl ListedFields for TagFields {}

/// Returns the index of a column.
pub fn index_of<F: Fields>(column: &str) -> usize {
    F::table().index_of(column).unwrap_or_default()
}

/// A date of conferences: its column, its value, and its status, which is in the next column.
type DatedColumn = (
    &'static str,
    fn(&ConferenceFields) -> Option<Date>,
    fn(&mut ConferenceFields) -> &mut Option<DateStatus>,
);

const DATES: [DatedColumn; 3] = [
    (
        "start_date",
        |of| of.start_date,
        |of| &mut of.start_date_status,
    ),
    (
        "abstract_due_date",
        |of| of.abstract_due_date,
        |of| &mut of.abstract_due_date_status,
    ),
    (
        "late_breaking_due_date",
        |of| of.late_breaking_due_date,
        |of| &mut of.late_breaking_due_date_status,
    ),
];

impl ListedFields for ConferenceFields {
    fn settle(row: &mut ListedRow<Self>, stored: &Self) {
        settle_end(row, stored);
        for date in DATES {
            settle_date(row, stored, date);
        }
    }
}

/// Adjusts the status of a date to the date.
fn settle_date(
    row: &mut ListedRow<ConferenceFields>,
    stored: &ConferenceFields,
    (column, date_of, status_of): DatedColumn,
) {
    let at = index_of::<ConferenceFields>(column);
    let old = date_of(stored);
    let new = date_of(&row.fields);
    let is_new = old != new;
    let status = status_of(&mut row.fields);
    let says_not_found = *status == Some(DateStatus::NotFound);
    let content = row.contents[at];
    row.contents[at + 1] = match (content, row.contents[at + 1]) {
        // Nothing is known about the stored date.
        (Empty, _) if old.is_some() => Absent,
        (Absent, _) if old.is_some() && says_not_found => Absent,
        (Value, Constant) if !is_new => Absent,
        (Value, Constant) => Value,
        // The row does not say how sure the new date is.
        (Value | Clear, known) if is_new && known != Value => {
            *status = Some(DateStatus::Check);
            Value
        }
        (_, known) => known,
    };
    // A later match set may have found another meeting.
    const MAX_DAYS: i32 = 60;
    let moved = old
        .zip(new)
        .filter(|_| content == Value)
        .filter(|_| row.found_by.is_some_and(|set| set > 0));
    let Some((old, new)) = moved else { return };
    let days = (new - old).get_days().abs();
    if days > MAX_DAYS {
        let message = message!(
            "moves from {old} to {new}, by {days} days; is it the same meeting? If not, give the row an id, or match by {column}"
        );
        row.warnings.push((at, message));
    }
}

/// A meeting that moves keeps its length if the row has no end. Without a start, there is no end.
fn settle_end(row: &mut ListedRow<ConferenceFields>, stored: &ConferenceFields) {
    let [start, end] = ["start_date", "end_date"].map(index_of::<ConferenceFields>);
    match (
        row.contents[start],
        row.fields.start_date,
        stored.start_date,
    ) {
        (Clear, ..) => {
            row.fields.end_date = None;
            row.contents[end] = Clear;
        }
        (Value, Some(new), Some(old)) if new != old && row.contents[end] != Value => {
            let Some(last) = stored.end_date else { return };
            let Ok(moved) = new.checked_add(last - old) else {
                return;
            };
            row.fields.end_date = Some(moved);
            row.contents[end] = Value;
            let message = message!(
                "the row has no end, so the meeting keeps its length, and ends on {moved}"
            );
            row.warnings.push((end, message));
        }
        _ => {}
    }
}

impl ListedFields for JournalFields {
    fn settle(row: &mut ListedRow<Self>, stored: &Self) {
        settle_issns(row, stored);
        settle_year(row, stored);
        let fields = &Self::table().fields;
        for (at, field) in fields.iter().enumerate() {
            if field.column.ends_with("min_weeks") {
                settle_pair(row, stored, [at, at + 1]);
            }
        }
    }

    fn settle_new(row: &mut ListedRow<Self>) {
        let year = index_of::<Self>("impact_factor_year");
        if row.fields.impact_factor.is_none() && row.contents[year] == Constant {
            row.contents[year] = Absent;
        }
    }
}

/// The year of a metric belongs to it. A new metric without a year empties the stored one.
fn settle_year(row: &mut ListedRow<JournalFields>, stored: &JournalFields) {
    let [factor, year] = ["impact_factor", "impact_factor_year"].map(index_of::<JournalFields>);
    let is_new = row.fields.impact_factor != stored.impact_factor;
    let has_stored = stored.impact_factor.is_some();
    row.contents[year] = match (row.contents[factor], row.contents[year]) {
        (_, Clear) => Clear,
        (Value, Constant) => Value,
        (Value, Absent | Empty) if is_new => Clear,
        (Absent, Value) => Value,
        (Absent | Empty, _) if has_stored => Absent,
        (Absent | Empty, Constant) => Absent,
        (Clear, _) => {
            row.fields.impact_factor_year = None;
            Clear
        }
        (_, known) => known,
    };
}

/// Two ends of a range are taken together. A changed end without the other one empties the stored one.
fn settle_pair(row: &mut ListedRow<JournalFields>, stored: &JournalFields, [min, max]: [usize; 2]) {
    for [at, other] in [[min, max], [max, min]] {
        let is_new = row.fields.values()[at].rank() != stored.values()[at].rank();
        if is_new && row.contents[at] == Value && matches!(row.contents[other], Absent | Empty) {
            row.contents[other] = Clear;
            return;
        }
    }
}

/// An ISSN that the record has stays in its field. Another one goes into its own field, or next to one that both have.
fn settle_issns(row: &mut ListedRow<JournalFields>, stored: &JournalFields) {
    let columns = ISSN_COLUMNS.map(index_of::<JournalFields>);
    let ours = valid_issns(stored);
    let theirs = valid_issns(&row.fields);
    let before = [&stored.issn_print, &stored.issn_online];
    let mut issns = before.map(Clone::clone);
    let shares = |field: usize| ours[field].is_some() && theirs.contains(&ours[field]);
    for at in [0, 1] {
        let content = &mut row.contents[columns[at]];
        match (*content, &theirs[at]) {
            (Empty, _) if shares(at) => *content = Absent,
            // A text that is no ISSN replaces none.
            (Value, None) if ours[at].is_some() => *content = Empty,
            (Value, None) => {
                issns[at] = [&row.fields.issn_print, &row.fields.issn_online][at].clone();
            }
            (Value, Some(issn)) => {
                *content = Absent;
                if ours.contains(&theirs[at]) {
                    continue;
                }
                let to = if shares(at) { 1 - at } else { at };
                if row.is_found_without_issn && ours[to].is_none() {
                    let message = message!(
                        "{issn} joins a record that was found by other fields; check that it is the same journal"
                    );
                    row.warnings.push((columns[to], message));
                }
                issns[to] = Some(issn.clone());
            }
            _ => {}
        }
    }
    for (at, issn) in issns.into_iter().enumerate() {
        let content = &mut row.contents[columns[at]];
        if *content == Clear {
            continue;
        }
        if issn != *before[at] {
            *content = Value;
        }
        *[&mut row.fields.issn_print, &mut row.fields.issn_online][at] = issn;
    }
}
