//! The changes that a row of a list of others makes in a stored row (docs/recipes.md).

use super::match_set::meaning;
use super::report::ListCounts;
use crate::import::lint::{Lintable, comparable_word, fix_text};
use crate::import::read::statement::CellContent::{self, Absent, Clear, Constant, Empty, Value};
use crate::import::read::statement::Statement;
use crate::import::rows::ListOptions;
use crate::model::{Field, FieldValue, Fields, Message, ValueKind, match_form};

/// A kind of row that lists of others may change.
pub trait ListedFields: Lintable {
    /// Adjusts the values and effects of a row to the stored row, so that fields that belong together stay together.
    fn settle(_row: &mut ListedRow<Self>, _stored: &Self) {}

    /// Removes constants that say nothing in a new row.
    fn settle_new(_row: &mut ListedRow<Self>) {}
}

/// The values of a row, and how they change a stored row.
pub struct ListedRow<F> {
    /// The values of the row.
    pub fields: F,
    /// The content that counts in each field of the table.
    pub contents: Vec<CellContent>,
    /// Whether `update` names these fields: their lists are replaced, and their spellings are taken.
    is_update: bool,
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
    /// Creates a row from what it states. In a list of others, only the fields count that the recipe updates.
    pub fn new(
        statement: &Statement<F>,
        list: Option<&ListOptions>,
        found_by: Option<usize>,
    ) -> ListedRow<F> {
        let update = list.and_then(|list| list.update.as_ref());
        let contents = F::table().fields.iter().zip(statement.contents()).map(
            |(field, content)| match content {
                _ if update.is_some_and(|update| !update.contains(&field.column)) => Absent,
                Empty if list.is_some_and(|list| list.clear.contains(&field.column)) => Clear,
                content => content,
            },
        );
        let set = list.zip(found_by).map(|(list, set)| &list.matching[set]);
        ListedRow {
            fields: statement.fields().clone(),
            contents: contents.collect(),
            is_update: update.is_some(),
            found_by,
            is_found_without_issn: set
                .is_some_and(|set| !set.iter().any(|name| name.starts_with("issn"))),
            warnings: Vec::new(),
            is_respelled: false,
        }
    }

    /// Returns the stored fields with all values of the row.
    pub fn replace_in(&mut self, mut stored: F) -> F {
        let mut is_set = self.contents.iter().map(|content| *content != Absent);
        stored.replace_named(std::mem::take(&mut self.fields), &mut is_set);
        stored
    }

    /// Returns the stored fields with the values that the row may change.
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
                Constant => taken[at] = old.is_null(),
                Value if are_equal(old, new) => {}
                Value if is_damaged_copy(field, old, new) => is_respelled = true,
                Value if field.kind.is_list() && !self.is_update => {
                    let added = new_items(field, old, new);
                    is_respelled |= field.kind == ValueKind::Texts && added.is_empty();
                    let list = &mut fields.values_mut()[at];
                    list.add_texts(added);
                    list.set_ids([old.ids(), new.ids()].concat());
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

/// Returns the fields of a record after a row, for matching.
pub fn merged_fields<F: ListedFields>(
    statement: &Statement<F>,
    stored: Option<F>,
    list: &ListOptions,
) -> F {
    ListedRow::new(statement, Some(list), None)
        .merge_into(&stored.unwrap_or_default(), &mut ListCounts::default())
}

/// Returns the fields in which two rows differ: their indexes, and both values.
pub fn differences<'a, F: Fields>(
    one: &'a F,
    other: &'a F,
) -> impl Iterator<Item = (usize, &'a dyn FieldValue, &'a dyn FieldValue)> {
    let pairs = one
        .values()
        .into_iter()
        .zip(other.values())
        .enumerate()
        .map(|(at, (one, other))| (at, one, other));
    pairs.filter(|(_, one, other)| one.to_csv(&()) != other.to_csv(&()))
}

fn are_equal(old: &dyn FieldValue, new: &dyn FieldValue) -> bool {
    old.rank() == new.rank() && old.texts() == new.texts() && old.ids() == new.ids()
}

/// Returns true if a text is the stored one with damage that has one correction, such as `&amp;` for `&`.
fn is_damaged_copy(field: &Field, old: &dyn FieldValue, new: &dyn FieldValue) -> bool {
    let ([old], [new]) = (old.texts(), new.texts()) else {
        return false;
    };
    let right = fix_text(&field.name, new).filter(|right| !right.is_empty());
    field.kind == ValueKind::Text
        && right.is_some_and(|right| match_form(&right) == match_form(old))
}

/// Returns true if two texts differ only in case, marks and blanks, or are names of one country.
fn mean_the_same(field: &Field, old: &dyn FieldValue, new: &dyn FieldValue) -> bool {
    field.kind == ValueKind::Text && meaning(field, old) == meaning(field, new)
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
    pub fn count_removed<F: Fields>(&mut self, stored: &F, fields: &F) {
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
