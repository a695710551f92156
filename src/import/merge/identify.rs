//! Rows without ids: the match sets find their records (docs/recipes.md). The steps are those of [`identify`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::listed::{ListedFields, differences, merged_fields};
use super::match_set::MatchSet;
use super::report::{FreeIds, Merged};
use crate::import::findings::{FilePosition, Finding, shortened};
use crate::import::lint::{ValidIssns, valid_issns};
use crate::import::read::options::columns_of;
use crate::import::rows::{ImportRow, ListOptions};
use crate::model::{Curated, Id, Joined, Message, RecordFields, first_of, message};
use crate::store::{Snapshot, StoreError};

/// Finds the records of rows without ids. The sets are tried one after the other over all rows, and a later set finds
/// only records that no row found by an earlier one. Rows without a record get the next free ids, or are left out.
pub fn identify<F: RecordFields + ListedFields>(
    rows: &mut Vec<ImportRow<F>>,
    list: &ListOptions,
    state: &Snapshot,
    report: &mut Merged,
) -> Result<(), StoreError> {
    let mut open: Vec<usize> = (0..rows.len())
        .filter(|at| rows[*at].id.is_none())
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    let mut identifier = Identifier::new(rows, list, state, report)?;
    if list.is_list {
        open = identifier.add_rows(open);
        identifier.add_records()?;
        for set in 0..identifier.sets.len() {
            open = identifier.find_by(set, open)?;
        }
    }
    identifier.number_newcomers(open)?;
    // The other rows are left out, or refused. The links of bad ones still count.
    let withdrawn = &report.withdrawn;
    rows.retain(|row| row.id.is_some() || row.is_bad && !withdrawn.contains(&row.position));
    Ok(())
}

/// The state of the search.
struct Identifier<'a, F> {
    rows: &'a mut [ImportRow<F>],
    list: &'a ListOptions,
    state: &'a Snapshot,
    report: &'a mut Merged,
    sets: Vec<MatchSet<'a>>,
    /// The rows with ids, also new ones, by their ids. `None` for a record that a set has found.
    holders: HashMap<Id, Option<usize>>,
    ids: FreeIds,
}

impl<'a, F: RecordFields + ListedFields> Identifier<'a, F> {
    fn new(
        rows: &'a mut [ImportRow<F>],
        list: &'a ListOptions,
        state: &'a Snapshot,
        report: &'a mut Merged,
    ) -> Result<Identifier<'a, F>, StoreError> {
        let mut holders = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            if let Some(id) = row.id {
                holders.entry(id).or_insert(Some(at));
            }
        }
        let imported = holders.keys().max().copied();
        let ids = FreeIds {
            kind: F::STEM,
            largest: state.largest_id(F::DATASET)?.max(imported),
        };
        Ok(Identifier {
            rows,
            list,
            state,
            report,
            sets: MatchSet::all::<F>(&list.matching),
            holders,
            ids,
        })
    }

    /// Reports that a row needs an id.
    fn refuse(&mut self, at: usize, message: impl Into<Message>) {
        let position = &self.rows[at].position;
        self.report.bad.push(position, Some("id"), None, message);
    }

    /// Adds the values of rows to the sets. Returns the rows with a value in any set. Another row is a fault.
    fn add_rows(&mut self, open: Vec<usize>) -> Vec<usize> {
        let mut begun = Vec::with_capacity(open.len());
        for at in open {
            let row = &self.rows[at];
            let values = row.edit.statement.values();
            let mut is_begun = false;
            for set in &mut self.sets {
                is_begun |= set.add_row::<F>(at, &values);
            }
            if is_begun {
                begun.push(at);
            } else if !row.is_bad {
                // The fault of a bad row is already reported.
                self.refuse(at, self.missing_fields());
            }
        }
        begun
    }

    fn missing_fields(&self) -> Message {
        let names = self.sets.iter().map(|set| set.names(|_| true));
        let valid = if self.sets.iter().any(MatchSet::has_issn) {
            "; only a valid ISSN counts"
        } else {
            ""
        };
        message!(
            "is missing, and so are the fields of --match ({}); fill them in{valid}",
            names.joined(" or ")
        )
    }

    /// Adds the records that share a value with a row to the sets, with their values after the run.
    fn add_records(&mut self) -> Result<(), StoreError> {
        for row in self.rows.iter().filter(|row| !row.edit.is_removal) {
            let Some(id) = row.id else { continue };
            let stored = self.state.find_stored::<F>(id)?.map(Curated::into_fields);
            let fields = merged_fields(&row.edit.statement, stored, self.list);
            add_to(&mut self.sets, id, &fields);
        }
        self.state.for_each_record::<F, StoreError>(|record, _, _| {
            if !self.holders.contains_key(&record.id()) {
                add_to(&mut self.sets, record.id(), record.fields());
            }
            Ok(())
        })
    }

    /// Finds records by one set. Returns the rows without a record.
    fn find_by(&mut self, set: usize, open: Vec<usize>) -> Result<Vec<usize>, StoreError> {
        let is_last = set + 1 == self.sets.len();
        let mut hits: BTreeMap<Id, Vec<usize>> = BTreeMap::new();
        let mut rest = Vec::new();
        for at in open {
            let equal = self.find_equal(at, set);
            match (equal.first(), equal.last()) {
                (Some(one), Some(other)) if one != other => {
                    let message = message!(
                        "is missing, and {} match both {one} and {other} of {}; give the id, or --match more fields",
                        self.sets[set].names(|_| true),
                        F::DATASET
                    );
                    self.refuse(at, message);
                }
                (Some(id), _) => hits.entry(*id).or_default().push(at),
                _ if is_last && self.refuse_partial(at)? => {}
                _ => rest.push(at),
            }
        }
        for (id, rows) in hits {
            self.claim(id, &rows, set)?;
        }
        Ok(rest)
    }

    /// Returns the records and new rows that a row equals in a set, unless an earlier set found them.
    fn find_equal(&self, at: usize, set: usize) -> BTreeSet<Id> {
        let mut equal = self.sets[set].find_equal(at);
        if equal.is_empty() && set + 1 == self.sets.len() {
            equal.extend(self.sets[set].find_same_gaps(at));
        }
        equal.retain(|id| self.holders.get(id) != Some(&None));
        equal
    }

    /// Gives a record to the row that means it. Several such rows are bad.
    fn claim(&mut self, id: Id, rows: &[usize], set: usize) -> Result<(), StoreError> {
        let first = self.holders.get(&id).copied().flatten().unwrap_or(rows[0]);
        let mut others = rows.iter().filter(|at| **at != first).peekable();
        if others.peek().is_some() {
            others.for_each(|at| self.refuse_same(first, *at, set));
            return Ok(());
        }
        if let Some(record) = self.state.find_stored::<F>(id)? {
            let own = valid_issns(self.rows[first].edit.statement.fields());
            let theirs = valid_issns(record.fields());
            if let Some((own, other)) = contradiction(&own, &theirs) {
                if self.list.leaves_out_new {
                    self.report.counts.left_out += 1;
                    self.report.counts.contradicting += 1;
                    return Ok(());
                }
                let message = message!(
                    "is missing, and {} match {}, but its ISSN is {other} and the row has {own}; write {id} as the id if \
                     the row means it, or a new id",
                    self.sets[set].names(|_| true),
                    describe(&record)
                );
                self.refuse(first, message);
                return Ok(());
            }
        }
        let row = &mut self.rows[first];
        row.id = Some(id);
        row.found_by = Some(self.sets[set].number);
        self.holders.insert(id, None);
        Ok(())
    }

    /// Refuses a row that agrees in some fields of the last set with a record or a new row. Returns whether it does.
    fn refuse_partial(&mut self, at: usize) -> Result<bool, StoreError> {
        let last = self.sets.len() - 1;
        let set = &self.sets[last];
        let meant = set
            .find_partial(at)
            .find(|(id, _)| match self.holders.get(id) {
                None => true,
                Some(row) => row.is_some_and(|row| !self.are_distinct(at, row, last)),
            });
        let Some((id, others)) = meant else {
            return Ok(false);
        };
        let gaps = set.describe_gaps(at, others);
        let record = self.state.find_stored::<F>(*id)?;
        let message = match (record, self.holders.get(id)) {
            (None, Some(Some(row))) => message!(
                "is missing, and the row may mean the same as {}: {gaps}; write ids in both rows, or fill in what is missing",
                self.rows[*row].position
            ),
            (record, _) => message!(
                "is missing, and the row may mean {}: {gaps}; write {id} as the id if it does, or a new id, or fill in what is missing",
                record.iter().map(describe).joined("")
            ),
        };
        self.refuse(at, message);
        Ok(true)
    }

    /// Refuses two rows that mean the same record and differ.
    fn refuse_same(&mut self, one: usize, other: usize, set: usize) {
        let set = &self.sets[set];
        let rows = [one, other].map(|at| &self.rows[at]);
        let fields = rows.map(|row| row.edit.statement.fields());
        let matched = set.columns();
        let are_removals = rows.map(|row| row.edit.is_removal);
        let mut differing: Vec<_> = differences(fields[0], fields[1])
            .filter(|(at, ..)| are_removals == [false; 2] && !matched.contains(at))
            .collect();
        // Those that one row lacks are last.
        differing.sort_by_key(|(_, one, other)| one.is_null() || other.is_null());
        let names: Vec<String> = differing
            .iter()
            .map(|(at, ..)| format!("`{}`", F::table().fields[*at].column))
            .collect();
        let kind = one_of::<F>();
        let message = |other: usize| {
            let position = &rows[other].position;
            // A row that removes a record by its id has no values.
            let shown = if are_removals[1 - other] {
                1
            } else {
                1 - other
            };
            let shared = set.describe_values(&fields[shown].values());
            match names.first() {
                Some(first) => message!(
                    "means the same {kind} as the row at {position}: both have {shared}, but their {} differ; keep one of them, \
                     correct one, or match by {first} too",
                    first_of(&names, names.len(), 3)
                ),
                None => message!(
                    "means the same {kind} as the row at {position}: both have {shared}, but are not equal; keep one of them, or \
                     correct one"
                ),
            }
        };
        let positions = rows.map(|row| &row.position);
        self.report.refuse_both(positions, None, None, message);
    }

    /// Gives new ids to the rows that match no record, or leaves them out.
    fn number_newcomers(&mut self, open: Vec<usize>) -> Result<(), StoreError> {
        let unmatched = self.rows_with_bad_match_fields();
        for at in open {
            let row = &self.rows[at];
            // The fault of a bad row is already reported.
            if row.is_bad && (!self.list.leaves_out_new || unmatched.contains(&row.position)) {
                continue;
            }
            if row.edit.is_removal && !self.list.is_list {
                let message = "is missing; a row that removes a record needs its id, or --match";
                self.refuse(at, message);
            } else if self.report.is_new(row, self.list) && !self.refuse_twin(at)? {
                self.number(at);
            }
        }
        Ok(())
    }

    /// Returns the rows with a fault in a field of a match set. Whether they have a record is unknown.
    fn rows_with_bad_match_fields(&self) -> HashSet<FilePosition> {
        let fields = self.list.matching.iter().flatten();
        let columns: Vec<&str> = fields.flat_map(|name| columns_of(name)).collect();
        self.report
            .bad
            .kept()
            .iter()
            .filter(|found| {
                let field = found.field.as_deref();
                field.is_none_or(|field| columns.contains(&field))
            })
            .filter_map(Finding::position)
            .collect()
    }

    /// Refuses a row that means, or may mean, the same record as another new row. Returns whether it does.
    fn refuse_twin(&mut self, at: usize) -> Result<bool, StoreError> {
        // A row without a name is bad, whatever it means.
        let name = self.rows[at].edit.statement.fields().name();
        if !self.list.is_list || name.is_empty() {
            return Ok(false);
        }
        for set in 0..self.sets.len() {
            let other = self
                .find_equal(at, set)
                .iter()
                .filter_map(|id| *self.holders.get(id)?)
                .find(|row| !self.are_distinct(at, *row, set));
            if let Some(other) = other {
                self.refuse_same(other, at, set);
                return Ok(true);
            }
        }
        self.refuse_partial(at)
    }

    /// Returns true if a set before `end` tells two rows apart.
    fn are_distinct(&self, one: usize, other: usize, end: usize) -> bool {
        self.sets[..end]
            .iter()
            .any(|set| set.distinguishes(one, other))
    }

    /// Gives the next free id to a row.
    fn number(&mut self, at: usize) {
        let row = &mut self.rows[at];
        row.id = self.ids.assign(&row.position, None, self.report);
        let Some(id) = row.id else { return };
        let fields = row.edit.statement.fields();
        if !self.list.is_list {
            let message = "has no id, so it is a new record; it was not compared with the others, as --match does";
            self.report.warn(&row.position, Some("id"), message);
        } else if !fields.name().is_empty() {
            add_to(&mut self.sets, id, fields);
        }
        self.holders.insert(id, Some(at));
    }
}

/// Adds a record to the sets.
fn add_to<F: RecordFields>(sets: &mut [MatchSet<'_>], id: Id, fields: &F) {
    let values = fields.values();
    for set in sets {
        set.add::<F>(id, &values);
    }
}

/// Returns the name of one record of a dataset.
fn one_of<F: RecordFields>() -> &'static str {
    F::STEM.trim_end_matches('s')
}

/// Describes a record by its id and name.
fn describe<F: RecordFields>(record: &Curated<F>) -> String {
    let name = shortened(record.fields().name());
    format!("{} {} `{name}`", one_of::<F>(), record.id())
}

/// Returns two valid ISSNs of the same edition that differ, unless one of the journals has all ISSNs of the other.
fn contradiction<'a>(one: &'a ValidIssns, other: &'a ValidIssns) -> Option<(&'a str, &'a str)> {
    let lacks = |of: &ValidIssns, issns: &ValidIssns| {
        issns
            .iter()
            .filter(|issn| issn.is_some())
            .any(|issn| !of.contains(issn))
    };
    if !lacks(one, other) || !lacks(other, one) {
        return None;
    }
    one.iter().zip(other).find_map(|(one, other)| {
        one.as_deref()
            .zip(other.as_deref())
            .filter(|(one, other)| one != other)
    })
}
