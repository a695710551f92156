//! The changes that a row of a list of others makes in a stored row (docs/recipes.md).

use super::match_set::comparable_value;
use super::report::{ListCounts, Report};
use crate::import::lint::{comparable_word, fix_text};
use crate::import::read::statement::{CellContent, Statement};
use crate::import::row_faults::RowFaults;
use crate::import::rows::{ImportRow, ListOptions};
use crate::model::field::Field;
use crate::model::fold::match_form;
use crate::model::value::{FieldValue, ValueKind};
use crate::model::{Curated, Fields, Message};

/// A kind of row that lists of others may change.
pub(in crate::import) trait ListedFields: Fields {
    /// Adjusts the values and effects of a row to the stored row, so that fields that belong together stay together.
    fn settle(_row: &mut ListedRow<Self>, _stored: &Self) {}

    /// Removes constants that say nothing in a new row.
    fn settle_new(&mut self, _is_constant: &dyn Fn(usize) -> bool) {}
}

/// The effect of a row on a field of a stored row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The row does not contain the field, or the recipe does not update it.
    Absent,
    /// An empty cell keeps the stored value.
    Empty,
    /// A constant of the recipe fills an empty field.
    Constant,
    /// The row has a value.
    Value,
    /// The stored value is cleared.
    Clear,
}

/// The rule of the recipe for a field.
#[derive(Clone, Copy, Debug)]
struct FieldRule {
    is_taken: bool,
    /// Whether `update` names the field: its list is replaced, and its spelling is taken.
    is_named: bool,
    is_cleared: bool,
}

impl FieldRule {
    fn of(list: &ListOptions, field: &Field) -> FieldRule {
        let is_in = |columns: &[String]| columns.contains(&field.column);
        FieldRule {
            is_taken: list.update.as_ref().is_none_or(|update| is_in(update)),
            is_named: list.update.as_ref().is_some_and(|update| is_in(update)),
            is_cleared: is_in(&list.clear),
        }
    }
}

/// A row of a list of others that means a stored row.
pub(super) struct ListedRow<F> {
    /// The values of the row.
    pub fields: F,
    /// The effect on each field of the table.
    pub effects: Vec<Effect>,
    rules: Vec<FieldRule>,
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
        statement: &Statement<F>,
        list: &ListOptions,
        found_by: Option<usize>,
    ) -> ListedRow<F> {
        let contents = statement.contents().collect();
        let mut row = ListedRow::of_contents(statement.fields().clone(), contents, list);
        row.found_by = found_by;
        let has_issn = |set: &usize| {
            list.matching[*set]
                .iter()
                .any(|name| name.starts_with("issn"))
        };
        row.is_found_without_issn = found_by.is_some_and(|set| !has_issn(&set));
        row
    }

    /// Creates a row of the values of a whole object.
    pub fn of_object(fields: &F, list: &ListOptions) -> ListedRow<F> {
        let content = |value: &dyn FieldValue| match value.is_null() {
            true => CellContent::Empty,
            false => CellContent::Value,
        };
        let contents = fields.values().into_iter().map(content).collect();
        ListedRow::of_contents(fields.clone(), contents, list)
    }

    fn of_contents(fields: F, contents: Vec<CellContent>, list: &ListOptions) -> ListedRow<F> {
        let rules: Vec<FieldRule> = F::table()
            .fields
            .iter()
            .map(|field| FieldRule::of(list, field))
            .collect();
        let effect = |(content, rule): (CellContent, &FieldRule)| match content {
            _ if !rule.is_taken => Effect::Absent,
            CellContent::Absent => Effect::Absent,
            CellContent::Empty if rule.is_cleared => Effect::Clear,
            CellContent::Empty => Effect::Empty,
            CellContent::Constant => Effect::Constant,
            CellContent::Value => Effect::Value,
        };
        ListedRow {
            fields,
            effects: contents.into_iter().zip(&rules).map(effect).collect(),
            rules,
            found_by: None,
            is_found_without_issn: false,
            warnings: Vec::new(),
            is_respelled: false,
        }
    }

    /// Returns the stored fields with the values that the row may change. Links are resolved later.
    pub fn merge_into(&mut self, stored: &F, counts: &mut ListCounts) -> F {
        F::settle(self, stored);
        let mut fields = stored.clone();
        let mut taken = vec![false; self.effects.len()];
        let mut is_respelled = false;
        let values = self.fields.values();
        for (at, old) in stored.values().into_iter().enumerate() {
            let field = &F::table().fields[at];
            let new = values[at];
            let rule = self.rules[at];
            match self.effects[at] {
                Effect::Absent => {}
                Effect::Empty => counts.kept += u64::from(!old.is_null()),
                Effect::Clear => taken[at] = true,
                _ if matches!(field.kind, ValueKind::Links(_)) => {}
                Effect::Constant => taken[at] = old.is_null(),
                Effect::Value if are_equal(old, new) => {}
                Effect::Value if is_damaged_copy(field, old, new) => is_respelled = true,
                Effect::Value if field.kind == ValueKind::Texts && !rule.is_named => {
                    let added = new_items(field, old, new);
                    is_respelled |= added.is_empty();
                    fields.values_mut()[at].add_texts(added);
                }
                Effect::Value if !rule.is_named && mean_the_same(field, old, new) => {
                    is_respelled = true
                }
                Effect::Value => taken[at] = true,
            }
        }
        fields.replace_named(self.fields.clone(), &mut taken.into_iter());
        self.is_respelled = is_respelled;
        fields
    }

    /// Returns true if `update` names the field of links at this index, so that they replace the stored ones.
    pub fn replaces_links(&self, at: usize) -> bool {
        self.rules[at].is_named
    }
}

/// Merges a row with its stored values, and checks it. `list` is given for a row of a list of others. `link` sets the
/// links. A bad row is reported.
pub(super) fn merge_row<F: ListedFields>(
    row: &ImportRow<F>,
    stored: Option<&F>,
    list: Option<&ListOptions>,
    link: impl FnOnce(&mut F, Option<&ListedRow<F>>, &mut RowFaults<'_>),
    report: &mut Report,
) -> Option<Curated<F>> {
    let statement = row.edit.statement()?;
    let mut faults = RowFaults::new(&row.position, &mut report.bad);
    let mut fields = stored.cloned().unwrap_or_default();
    let mut listed = None;
    if let (Some(stored), Some(list)) = (stored, list) {
        let listed = listed.insert(ListedRow::new(statement, list, row.found_by));
        fields = listed.merge_into(stored, &mut report.counts);
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
    let broken = |broken| faults.push_faults(None, broken);
    let merged = Curated::new(row.id?, fields).map_err(broken).ok()?;
    if let Some(stored) = stored {
        report.counts.count_removed(stored, merged.fields());
    }
    if let Some(listed) = listed {
        let is_unchanged = stored == Some(merged.fields());
        report.counts.respelled += u64::from(is_unchanged && listed.is_respelled);
        for (at, message) in listed.warnings {
            let column = &F::table().fields[at].column;
            let warnings = &mut report.lint.findings;
            warnings.push(&row.position, Some(column), None, message);
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
    ListedRow::new(statement, list, None).merge_into(&stored, &mut ListCounts::default())
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
    let one = comparable_value(field, old);
    let other = comparable_value(field, new);
    if !one.is_empty() && one == other {
        return true;
    }
    let words = |value: &dyn FieldValue| {
        value
            .texts()
            .first()
            .and_then(|text| comparable_word(&field.name, text))
    };
    words(old).is_some_and(|word| Some(word) == words(new))
}

/// Returns the items of a list that the stored list does not have in any spelling.
fn new_items(field: &Field, old: &dyn FieldValue, new: &dyn FieldValue) -> Vec<String> {
    let form = |text: &String| comparable_word(&field.name, text).unwrap_or_else(|| text.clone());
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
