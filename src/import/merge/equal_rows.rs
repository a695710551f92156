//! Rows that are equal in everything that is read of them.

use std::collections::HashMap;

use crate::import::report::faults::{FilePosition, Finding};
use crate::import::rows::{ImportRow, RowEdit};
use crate::model::Fields;
use crate::model::message::message;

/// Returns the rows without those that equal an earlier one, with a warning for each of these. Bad rows stay, since their
/// faults are about each.
pub(super) fn drop_equal_rows<F: Fields>(rows: Vec<ImportRow<F>>, warnings: &mut Vec<Finding>) -> Vec<ImportRow<F>> {
    // Only rows that share their id and their digest are equal.
    let mut first: HashMap<blake3::Hash, FilePosition> = HashMap::with_capacity(rows.len());
    let mut content = Vec::new();
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows {
        content.clear();
        content.extend_from_slice(&row.id.map_or(0, |id| id.get()).to_be_bytes());
        match &row.edit {
            RowEdit::Set(statement) => statement.write(&mut content),
            RowEdit::Remove => content.push(b'-'),
        }
        let digest = blake3::hash(&content);
        match first.get(&digest) {
            Some(position) if !row.is_bad => {
                let message = message!("equals the row at {position}, so it counts once");
                warnings.push(Finding::new(&row.position, None, None, message));
                continue;
            }
            Some(_) => {}
            None => drop(first.insert(digest, row.position.clone())),
        }
        kept.push(row);
    }
    kept
}
