//! The changes that a row of a list of others makes in a stored row (docs/recipes.md).

use super::match_set::comparable_value;
use super::report::{ListCounts, Report};
use crate::import::lint::{comparable_word, fix_text};
use crate::import::read::statement::CellContent::{self, Absent, Clear, Constant, Empty, Value};
use crate::import::read::statement::Statement;
use crate::import::row_faults::RowFaults;
use crate::import::rows::{ImportRow, ListOptions};
use crate::model::{Curated, Field, FieldValue, Fields, Message, ValueKind, match_form};

/// A kind of row that lists of others may change.
pub(in crate::import) trait ListedFields: Fields {
    /// Adjusts the values and effects of a row to the stored row, so that fields that belong together stay together.
    fn settle(_row: &mut ListedRow<Self>, _stored: &Self) {}

    /// Removes constants that say nothing in a new row.
    fn settle_new(&mut self, _is_constant: &dyn Fn(usize) -> bool) {}
}

/// A row of a list of others that means a stored row.
pub(super) struct ListedRow<F> {
    /// The values of the row.
    pub fields: F,
    /// The content that counts in each field of the table: only fields that the recipe updates are not absent.
    pub contents: Vec<CellContent>,
    /// Whether `update` names these fields: their lists are replaced, and their spellings are taken.
    pub is_update: bool,
    /// The index of the match set that found the record.
    pub found_by: Option<usize>,
    /// Whether a set without an ISSN found the record.
    pub is_found_without_issn: bool,
    /// The indexes of fields, with warnings about their new values.
    pub warnings: Vec<(usize, Message)>,
    /// Whether a value has another spelling than the stored one, which stays.
    pub is_respelled: bool,
}

impl<F: ListedFields> ListedRow<F> {
    pub fn new(
        fields: &F,
        contents: impl Iterator<Item = CellContent>,
        list: &ListOptions,
        found_by: Option<usize>,
    ) -> ListedRow<F> {
        let update = list.update.as_ref();
        let contents = F::table().fields.iter().zip(contents);
        let contents = contents.map(|(field, content)| match content {
            _ if update.is_some_and(|update| !update.contains(&field.column)) => Absent,
            Empty if list.clear.contains(&field.column) => Clear,
            content => content,
        });
        let set = found_by.map(|set| &list.matching[set]);
        ListedRow {
            fields: fields.clone(),
            contents: contents.collect(),
            is_update: update.is_some(),
            found_by,
            is_found_without_issn: set
                .is_some_and(|set| !set.iter().any(|name| name.starts_with("issn"))),
            warnings: Vec::new(),
            is_respelled: false,
        }
    }

    /// Returns the stored fields with the values that the row may change. Links are resolved later.
    pub fn merge_into(&mut self, stored: &F, counts: &mut ListCounts) -> F {
        F::settle(self, stored);
        let mut fields = stored.clone();
        let mut taken = vec![false; self.contents.len()];
        let mut is_respelled = false;
        let values = self.fields.values();
        for (at, old) in stored.values().into_iter().enumerate() {
            let field = &F::table().fields[at];
            let new = values[at];
            match self.contents[at] {
                Absent => {}
                Empty => counts.kept += u64::from(!old.is_null()),
                Clear => taken[at] = true,
                _ if matches!(field.kind, ValueKind::Links(_)) => {}
                Constant => taken[at] = old.is_null(),
                Value if are_equal(old, new) => {}
                Value if is_damaged_copy(field, old, new) => is_respelled = true,
                Value if field.kind == ValueKind::Texts && !self.is_update => {
                    let added = new_items(field, old, new);
                    is_respelled |= added.is_empty();
                    fields.values_mut()[at].add_texts(added);
                }
                Value if !self.is_update && mean_the_same(field, old, new) => is_respelled = true,
                Value => taken[at] = true,
            }
        }
        fields.replace_named(self.fields.clone(), &mut taken.into_iter());
        self.is_respelled = is_respelled;
        fields
    }
}

/// Merges a row with its stored values, and checks it. `list` is given for a row of a list of others. `link` sets the
/// links. A bad row is reported.
pub(super) fn merge_row<F: ListedFields>(
    row: &ImportRow<F>,
    stored: Option<&F>,
    list: Option<&ListOptions>,
    report: &mut Report,
    link: impl FnOnce(&mut F, Option<&ListedRow<F>>, &mut RowFaults<'_>),
) -> Option<Curated<F>> {
    let statement = &row.edit.statement;
    let mut faults = RowFaults::new(&row.position, &mut report.bad);
    let mut fields = stored.cloned().unwrap_or_default();
    let mut listed = None;
    if let (Some(stored), Some(list)) = (stored, list) {
        let contents = statement.contents();
        let row = ListedRow::new(statement.fields(), contents, list, row.found_by);
        fields = listed.insert(row).merge_into(stored, &mut report.counts);
    } else {
        statement.apply_to(&mut fields);
        if list.is_some() {
            fields.settle_new(&|at| statement.is_constant(at));
        }
    }
    link(&mut fields, listed.as_ref(), &mut faults);
    // Rules about whole rows need complete rows. Otherwise one mistake would be reported twice.
    if row.is_bad || faults.has_fault() {
        return None;
    }
    let merged = Curated::new(row.id?, fields)
        .map_err(|broken| faults.push_faults(None, broken))
        .ok()?;
    if let Some(stored) = stored {
        report.counts.count_removed(stored, merged.fields());
    }
    if let Some(listed) = listed {
        let is_unchanged = stored == Some(merged.fields());
        report.counts.respelled += u64::from(is_unchanged && listed.is_respelled);
        for (at, message) in listed.warnings {
            let column = &F::table().fields[at].column;
            report.warn(&row.position, Some(column), message);
        }
    }
    Some(merged)
}

/// Returns the fields of a record after a row, for matching.
pub(super) fn merged_fields<F: ListedFields>(
    statement: &Statement<F>,
    stored: Option<F>,
    list: &ListOptions,
) -> F {
    let stored = stored.unwrap_or_default();
    let mut row = ListedRow::new(statement.fields(), statement.contents(), list, None);
    row.merge_into(&stored, &mut ListCounts::default())
}

/// Returns the fields in which two rows differ: their indexes, and both values.
pub(super) fn differences<'a, F: Fields>(
    one: &'a F,
    other: &'a F,
) -> impl Iterator<Item = (usize, &'a dyn FieldValue, &'a dyn FieldValue)> {
    let pairs = one.values().into_iter().zip(other.values()).enumerate();
    let pairs = pairs.map(|(at, (one, other))| (at, one, other));
    pairs.filter(|(_, one, other)| one.to_csv(&()) != other.to_csv(&()))
}

fn are_equal(old: &dyn FieldValue, new: &dyn FieldValue) -> bool {
    old.rank() == new.rank() && old.texts() == new.texts() && old.ids() == new.ids()
}

/// Returns true if a text is the stored one with damage that has one correction, such as `&amp;` for `&`.
fn is_damaged_copy(field: &Field, old: &dyn FieldValue, new: &dyn FieldValue) -> bool {
    if field.kind != ValueKind::Text {
        return false;
    }
    let texts = old.texts().first().zip(new.texts().first());
    texts.is_some_and(|(old, new)| {
        fix_text(&field.name, new)
            .is_some_and(|right| !right.is_empty() && match_form(&right) == match_form(old))
    })
}

/// Returns true if two values differ only in case, marks and blanks, or are names of one country.
pub(super) fn mean_the_same(field: &Field, old: &dyn FieldValue, new: &dyn FieldValue) -> bool {
    if field.kind != ValueKind::Text {
        return false;
    }
    let values = [old, new].map(|value| comparable_value(field, value));
    let words = [old, new].map(|value| {
        let text = value.texts().first();
        text.map(|text| comparable_word(&field.name, text))
    });
    !values[0].is_empty() && values[0] == values[1] || words[0].is_some() && words[0] == words[1]
}

/// Returns the items of a list that the stored list does not have in any spelling.
fn new_items(field: &Field, old: &dyn FieldValue, new: &dyn FieldValue) -> Vec<String> {
    let form = |text: &String| comparable_word(&field.name, text);
    let mut known: Vec<String> = old.texts().iter().map(form).collect();
    let mut added = Vec::new();
    for text in new.texts() {
        let form = form(text);
        if !known.contains(&form) {
            known.push(form);
            added.push(text.clone());
        }
    }
    added
}

impl ListCounts {
    /// Counts the values and items of a stored row that it does not have after the import.
    fn count_removed<F: Fields>(&mut self, stored: &F, fields: &F) {
        let values = stored.values().into_iter().zip(fields.values());
        for (field, (old, new)) in F::table().fields.iter().zip(values) {
            if old.is_null() {
                continue;
            }
            if new.is_null() {
                self.cleared += 1;
            } else if field.kind.is_list() {
                let ids = old.ids().iter().filter(|id| !new.ids().contains(id));
                let texts = new_items(field, new, old);
                self.removed_items += (ids.count() + texts.len()) as u64;
            }
        }
    }
}
