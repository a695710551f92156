//! Corrections of values that have exactly one right value (`--fix`).

use super::records::MergedRecords;
use crate::import::lint::{Respelling, fix_text};
use crate::import::report::faults::Finding;
use crate::import::rows::{ImportRow, RowEdit};
use crate::model::field::RowMember;
use crate::model::{ConferenceFields, Curated, Fields};

/// Corrects the texts that rows set. Returns the corrections.
pub(super) fn fix_texts<F: Fields>(rows: &mut [ImportRow<F>]) -> Vec<Finding> {
    let mut fixes = Vec::new();
    for ImportRow { position, edit, .. } in rows {
        let RowEdit::Set(statement) = edit else { continue };
        for (field, value) in statement.values_mut() {
            value.replace_texts(&mut |text| {
                let right = fix_text(&field.name, text)?;
                fixes.push(Finding::fixed(position, &field.name, text, right.clone()));
                Some(right)
            });
        }
    }
    fixes
}

/// Corrects words of merged conferences. Returns the corrections.
pub(super) fn fix_words(records: &mut MergedRecords<ConferenceFields>, respellings: Vec<Respelling>) -> Vec<Finding> {
    let mut fixes = Vec::new();
    for Respelling { field, word, right, rows } in respellings {
        for id in rows {
            let (Some(position), Some(Some(record))) = (records.positions.get(&id), records.rows.get(&id)) else {
                continue;
            };
            let mut fields = record.fields().clone();
            for (one, value) in ConferenceFields::table().fields.iter().zip(fields.values_mut()) {
                value.replace_texts(&mut |text| (one.name == field && text == word).then(|| Some(right.clone())));
            }
            if let Ok(record) = Curated::new(id, fields) {
                fixes.push(Finding::fixed(position, field, &word, Some(right.clone())));
                records.rows.insert(id, Some(record));
            }
        }
    }
    fixes
}
