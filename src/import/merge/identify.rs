//! Rows without ids: the match sets find their records (docs/recipes.md). The steps are those of [`identify`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::listed::{ListedFields, differences, mean_the_same, merged_fields};
use super::match_set::{Choices, MatchSet, column_indexes, is_begun, is_complete};
use super::report::{FreeIds, Report};
use crate::import::findings::{FilePosition, Finding, shortened};
use crate::import::lint::valid_issn;
use crate::import::read::options::ISSN_COLUMNS;
use crate::import::rows::{ImportRow, ListOptions};
use crate::model::fold::is_blank;
use crate::model::{Curated, FieldValue, Id, Joined, Message, RecordFields, first_of, message};
use crate::store::{Snapshot, StoreError};

/// Finds the records of rows without ids. The sets are tried one after the other over all rows, and a later set finds
/// only records that no row found by an earlier one. Rows without a record get the next free ids, or are left out.
pub(super) fn identify<F: RecordFields + ListedFields>(
    rows: &mut Vec<ImportRow<F>>,
    list: &ListOptions,
    state: &Snapshot,
    report: &mut Report,
) -> Result<(), StoreError> {
    if rows.iter().all(|row| row.id.is_some()) {
        return Ok(());
    }
    let mut identifier = Identifier::new(rows, list, state, report)?;
    if list.is_list {
        identifier.collect_choices();
        identifier.index_records()?;
        for set in 0..identifier.sets.len() {
            identifier.find_by(set)?;
        }
    }
    identifier.number_newcomers()?;
    // The other rows are left out, or refused. The links of bad ones still count.
    let withdrawn = &report.withdrawn;
    rows.retain(|row| row.id.is_some() || row.is_bad && !withdrawn.contains(&row.position));
    Ok(())
}

/// A row that means a record, and the set that found it. `None` for a row with an id, also a new one.
struct Claim {
    row: usize,
    set: Option<usize>,
}

/// The state of the search.
struct Identifier<'a, F> {
    rows: &'a mut [ImportRow<F>],
    list: &'a ListOptions,
    state: &'a Snapshot,
    report: &'a mut Report,
    sets: Vec<MatchSet<'a>>,
    /// For each row, its values in each set. Empty for rows with ids.
    choices: Vec<Vec<Choices>>,
    claims: HashMap<Id, Claim>,
    /// The rows that are refused, left out or repeated.
    closed: HashSet<usize>,
    ids: FreeIds,
}

impl<'a, F: RecordFields + ListedFields> Identifier<'a, F> {
    fn new(
        rows: &'a mut [ImportRow<F>],
        list: &'a ListOptions,
        state: &'a Snapshot,
        report: &'a mut Report,
    ) -> Result<Identifier<'a, F>, StoreError> {
        let mut claims: HashMap<Id, Claim> = HashMap::new();
        for (row, id) in rows.iter().map(|row| row.id).enumerate() {
            let Some(id) = id else { continue };
            claims.entry(id).or_insert(Claim { row, set: None });
        }
        let imported = claims.keys().max().copied();
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
            choices: Vec::new(),
            claims,
            closed: HashSet::new(),
            ids,
        })
    }

    /// Returns the rows that have no record yet.
    fn open_rows(&self) -> Vec<usize> {
        let rows = self.rows.iter().enumerate();
        let open = rows.filter(|(at, row)| row.id.is_none() && !self.closed.contains(at));
        open.map(|(at, _)| at).collect()
    }

    fn refuse(&mut self, at: usize, field: Option<&str>, message: impl Into<Message>) {
        let position = &self.rows[at].position;
        self.report.bad.push(position, field, None, message);
        self.closed.insert(at);
    }

    /// Collects the values of all rows. A row without a value in any set is a fault.
    fn collect_choices(&mut self) {
        for at in 0..self.rows.len() {
            let row = &self.rows[at];
            if row.id.is_some() {
                self.choices.push(Vec::new());
                continue;
            }
            let values = row.edit.statement.values();
            let mut choices = Vec::with_capacity(self.sets.len());
            for set in &mut self.sets {
                let of_set = set.choices::<F>(&values);
                set.want(&of_set);
                choices.push(of_set);
            }
            let is_bad = row.is_bad;
            let is_begun = choices.iter().any(is_begun);
            self.choices.push(choices);
            // The fault of a bad row is already reported.
            if !is_begun && is_bad {
                self.closed.insert(at);
            } else if !is_begun {
                self.refuse(at, Some("id"), self.missing_fields());
            }
        }
    }

    fn missing_fields(&self) -> Message {
        let names = self.sets.iter().map(|set| set.names(&|_| true));
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
    fn index_records(&mut self) -> Result<(), StoreError> {
        let state = self.state;
        for at in 0..self.rows.len() {
            let row = &self.rows[at];
            let Some(id) = row.id.filter(|_| !row.edit.is_removal) else {
                continue;
            };
            let stored = state.find_stored::<F>(id)?.map(Curated::into_fields);
            let fields = merged_fields(&row.edit.statement, stored, self.list);
            self.index(id, &fields);
        }
        state.for_each_record::<F, StoreError>(|record, _, _| {
            if !self.claims.contains_key(&record.id()) {
                self.index(record.id(), record.fields());
            }
            Ok(())
        })
    }

    fn index(&mut self, id: Id, fields: &F) {
        let values = fields.values();
        for set in &mut self.sets {
            let choices = set.choices::<F>(&values);
            set.add(id, &choices);
        }
    }

    /// Finds records by one set.
    fn find_by(&mut self, set: usize) -> Result<(), StoreError> {
        let mut hits: BTreeMap<Id, Vec<usize>> = BTreeMap::new();
        for at in self.open_rows() {
            let equal = self.find_equal(at, set);
            match (equal.first(), equal.last()) {
                (Some(one), Some(other)) if one != other => {
                    let message = message!(
                        "is missing, and {} match both {one} and {other} of {}; give the id, or --match more fields",
                        self.sets[set].names(&|_| true),
                        F::DATASET
                    );
                    self.refuse(at, Some("id"), message);
                }
                (Some(id), _) => hits.entry(*id).or_default().push(at),
                _ if set + 1 == self.sets.len() => drop(self.refuse_partial(at)?),
                _ => {}
            }
        }
        for (id, rows) in hits {
            self.claim(id, rows, set)?;
        }
        Ok(())
    }

    /// Returns the records and new rows that a row equals in a set, unless an earlier set found them.
    fn find_equal(&self, at: usize, set: usize) -> BTreeSet<Id> {
        let choices = &self.choices[at][set];
        let is_last = set + 1 == self.sets.len();
        let set = &self.sets[set];
        let mut equal = set.find_equal(choices);
        if equal.is_empty() && is_last {
            equal = set.find_same_gaps(choices);
        }
        equal.retain(|id| self.claims.get(id).is_none_or(|claim| claim.set.is_none()));
        equal
    }

    /// Gives a record to the row that means it. Several such rows are bad.
    fn claim(&mut self, id: Id, mut rows: Vec<usize>, set: usize) -> Result<(), StoreError> {
        let first = rows[0];
        rows.retain(|at| *at == first || !self.drop_if_repeated(*at, first));
        let claimed = self.claims.get(&id).map(|claim| claim.row);
        let all: Vec<usize> = claimed.into_iter().chain(rows).collect();
        let [at] = all[..] else {
            for (number, at) in all.iter().enumerate() {
                let other = all[usize::from(number == 0)];
                self.refuse_same(*at, other, set);
            }
            return Ok(());
        };
        if let Some((own, other)) = self.contradiction(at, id)? {
            if self.list.leaves_out_new {
                self.report.counts.left_out += 1;
                self.report.counts.contradicting += 1;
                self.closed.insert(at);
                return Ok(());
            }
            let message = message!(
                "is missing, and {} match {}, but its ISSN is {other} and the row has {own}; write {id} as the id if \
                 the row means it, or a new id",
                self.sets[set].names(&|_| true),
                self.described(id)?.unwrap_or_default()
            );
            self.refuse(at, Some("id"), message);
            return Ok(());
        }
        let row = &mut self.rows[at];
        row.id = Some(id);
        row.found_by = Some(self.sets[set].number);
        let set = Some(set);
        self.claims.insert(id, Claim { row: at, set });
        Ok(())
    }

    /// Returns the ISSNs of a row and of its record, if they contradict each other.
    fn contradiction(&self, at: usize, id: Id) -> Result<Option<(String, String)>, StoreError> {
        let own = valid_issns::<F>(&self.rows[at].edit.statement.values());
        let record = self.state.find_stored::<F>(id)?;
        Ok(record
            .and_then(|record| contradiction(&own, &valid_issns::<F>(&record.fields().values()))))
    }

    /// Describes a stored record by its id and name.
    fn described(&self, id: Id) -> Result<Option<String>, StoreError> {
        let record = self.state.find_stored::<F>(id)?;
        Ok(record.map(|record| {
            let name = shortened(record.fields().name());
            format!("{} {id} `{name}`", one::<F>())
        }))
    }

    /// Refuses a row that agrees in some fields of the last set with a record or a new row. Returns whether it does.
    fn refuse_partial(&mut self, at: usize) -> Result<bool, StoreError> {
        let Some(message) = self.partial_agreement(at)? else {
            return Ok(false);
        };
        self.refuse(at, Some("id"), message);
        Ok(true)
    }

    fn partial_agreement(&self, at: usize) -> Result<Option<Message>, StoreError> {
        let own = &self.choices[at];
        let last = own.len() - 1;
        let mut partial = self.sets[last].find_partial(&own[last]);
        let meant = partial.find(|(_, id, _)| match self.claims.get(id) {
            None => true,
            Some(Claim { row, set }) => {
                set.is_none() && !are_distinct(own, &self.choices[*row], last)
            }
        });
        let Some((values, id, others)) = meant else {
            return Ok(None);
        };
        let gaps = gaps(&self.sets[last], values, others);
        Ok(Some(match (self.described(id)?, self.claims.get(&id)) {
            (None, Some(claim)) => message!(
                "is missing, and the row may mean the same as {}: {gaps}; write ids in both rows, or fill in what is missing",
                self.rows[claim.row].position
            ),
            (described, _) => message!(
                "is missing, and the row may mean {}: {gaps}; write {id} as the id if it does, or a new id, or fill in what is missing",
                described.unwrap_or_default()
            ),
        }))
    }

    /// Leaves out a row that differs from an earlier one only in spelling. Returns whether it does.
    fn drop_if_repeated(&mut self, at: usize, earlier: usize) -> bool {
        let row = &self.rows[at];
        let first = &self.rows[earlier];
        let is_repeated = !row.is_bad && !first.is_bad && repeats(row, first);
        if is_repeated {
            let message = message!(
                "differs from the row at {} only in spelling, so it counts once, as it is spelled there",
                first.position
            );
            self.report.warn(&row.position, None, message);
            self.closed.insert(at);
        }
        is_repeated
    }

    /// Refuses a row that means the same record as another row, and differs from it.
    fn refuse_same(&mut self, at: usize, other: usize, set: usize) {
        if self.closed.contains(&at) {
            return;
        }
        let set = &self.sets[set];
        let row = &self.rows[at];
        let other = &self.rows[other];
        let position = &other.position;
        let one = one::<F>();
        let shared = shown_values(row, set);
        let matched = set.columns();
        let is_removal = row.edit.is_removal || other.edit.is_removal;
        let fields = [row, other].map(|row| row.edit.statement.fields());
        let mut differing: Vec<_> = differences(fields[0], fields[1])
            .filter(|(at, ..)| !is_removal && !matched.contains(at))
            .collect();
        // Those that one row lacks are last.
        differing.sort_by_key(|(_, one, other)| one.is_null() || other.is_null());
        let names = differing
            .iter()
            .map(|(at, ..)| format!("`{}`", F::table().fields[*at].column));
        let message = match names.clone().next() {
            Some(first) => message!(
                "means the same {one} as the row at {position}: both have {shared}, but their {} differ; keep one of them, \
                 correct one, or match by {first} too",
                first_of(names, differing.len(), 3)
            ),
            None => message!(
                "means the same {one} as the row at {position}: both have {shared}, but are not equal; keep one of them, or \
                 correct one"
            ),
        };
        self.refuse(at, None, message);
    }

    /// Gives new ids to the rows that match no record, or leaves them out.
    fn number_newcomers(&mut self) -> Result<(), StoreError> {
        let unmatched = self.rows_with_bad_match_fields();
        for at in self.open_rows() {
            let row = &self.rows[at];
            // The fault of a bad row is already reported.
            if row.is_bad && (!self.list.leaves_out_new || unmatched.contains(&row.position)) {
                continue;
            }
            if row.edit.is_removal && !self.list.is_list {
                let message = "is missing; a row that removes a record needs its id, or --match";
                self.refuse(at, Some("id"), message);
            } else if self.report.is_new(row, self.list) {
                self.number(at)?;
            } else {
                self.closed.insert(at);
            }
        }
        Ok(())
    }

    /// Returns the rows with a fault in a field of a match set. Whether they have a record is unknown.
    fn rows_with_bad_match_fields(&self) -> HashSet<FilePosition> {
        let columns: Vec<usize> = self.sets.iter().flat_map(MatchSet::columns).collect();
        let faults = self.report.bad.kept().iter();
        let matched = faults.filter(|found| match &found.field {
            Some(name) => {
                let at = F::table().index_of(name);
                at.is_some_and(|at| columns.contains(&at))
            }
            None => true,
        });
        matched.filter_map(Finding::position).collect()
    }

    /// Gives the next free id to a row, unless it means the same record as another new row.
    fn number(&mut self, at: usize) -> Result<(), StoreError> {
        let has_name = !self.rows[at].edit.statement.fields().name().is_empty();
        // A row without a name is bad, whatever it means, so no other row is compared with it.
        let is_compared = has_name && self.list.is_list;
        let sets = 0..if is_compared { self.sets.len() } else { 0 };
        for set in sets.clone() {
            let equal = self.find_equal(at, set);
            let claims = equal.iter().filter_map(|id| self.claims.get(id));
            let mut rows = claims.map(|claim| claim.row);
            let own = &self.choices[at];
            if let Some(other) = rows.find(|row| !are_distinct(own, &self.choices[*row], set)) {
                if !self.drop_if_repeated(at, other) {
                    self.refuse_same(other, at, set);
                    self.refuse_same(at, other, set);
                }
                return Ok(());
            }
        }
        if is_compared && self.refuse_partial(at)? {
            return Ok(());
        }
        let position = &self.rows[at].position;
        let Some(id) = self.ids.assign(position, None, self.report) else {
            return Ok(());
        };
        if !self.list.is_list {
            let message = "has no id, so it is a new record; it was not compared with the others, as --match does";
            self.report.warn(position, Some("id"), message);
        }
        for set in sets {
            self.sets[set].add(id, &self.choices[at][set]);
        }
        self.claims.insert(id, Claim { row: at, set: None });
        self.rows[at].id = Some(id);
        Ok(())
    }
}

/// Returns true if two rows fill a set before `end`, and differ in it.
fn are_distinct(one: &[Choices], other: &[Choices], end: usize) -> bool {
    let filled = |choices: &Choices| choices.iter().all(|values| is_complete(values));
    let sets = one.iter().zip(other).take(end);
    let mut sets = sets.filter(|(one, other)| filled(one) && filled(other));
    sets.any(|(one, other)| one.iter().all(|values| !other.contains(values)))
}

/// Returns the name of one record of a dataset.
fn one<F: RecordFields + ListedFields>() -> &'static str {
    F::STEM.trim_end_matches('s')
}

/// Describes which fields agree, and which are missing on either side.
fn gaps(set: &MatchSet<'_>, values: &[String], others: &[String]) -> String {
    let agreeing = set.names(&|at| !values[at].is_empty() && !others[at].is_empty());
    let sides = [("the row has no", values), ("the other has no", others)];
    let lacking = sides.into_iter().filter(|(_, values)| !is_complete(values));
    let lacking =
        lacking.map(|(who, values)| format!("{who} {}", set.names(&|at| values[at].is_empty())));
    format!("{agreeing} agrees, but {}", lacking.joined(", and "))
}

/// Returns the fields of a set with the values of a row. Values of blanks alone are escaped. A row that removes a record
/// by its id has no values.
fn shown_values<F: RecordFields + ListedFields>(row: &ImportRow<F>, set: &MatchSet<'_>) -> String {
    let values = row.edit.statement.values();
    if set.columns().iter().all(|at| values[*at].is_null()) {
        return format!("{} the same", set.names(&|_| true));
    }
    let fields = set.fields.iter().map(|(name, columns)| {
        let texts = columns.iter().map(|at| values[*at].to_csv(&()));
        let filled = texts.filter(|text| !text.is_empty());
        format!(
            "`{name}` `{}`",
            filled.map(|text| visible(&text)).joined(", ")
        )
    });
    fields.joined(", ")
}

/// Returns a text, or its escaped form if it is blank.
fn visible(text: &str) -> String {
    if text
        .chars()
        .all(|sign| is_blank(sign) || !sign.is_alphanumeric() && !sign.is_ascii())
    {
        return text.escape_default().to_string();
    }
    shortened(text)
}

/// Returns true if two rows set the same values, apart from their spelling.
fn repeats<F: RecordFields>(row: &ImportRow<F>, other: &ImportRow<F>) -> bool {
    let [one, two] = [row, other].map(|row| &row.edit.statement);
    let mut differing = differences(one.fields(), two.fields());
    !row.edit.is_removal
        && !other.edit.is_removal
        && one.has_links_of(two)
        && differing.all(|(at, one, two)| mean_the_same(&F::table().fields[at], one, two))
}

/// Returns the valid ISSN of each edition of a journal.
fn valid_issns<F: RecordFields + ListedFields>(values: &[&dyn FieldValue]) -> Vec<Option<String>> {
    let columns = column_indexes::<F>(&ISSN_COLUMNS).into_iter();
    columns
        .map(|at| valid_issn(&F::table().fields[at].column, &values[at].to_csv(&())))
        .collect()
}

/// Returns two valid ISSNs of the same edition that differ, unless one of the journals has all ISSNs of the other.
fn contradiction(one: &[Option<String>], other: &[Option<String>]) -> Option<(String, String)> {
    let has_all = |of: &[Option<String>], issns: &[Option<String>]| {
        let mut issns = issns.iter();
        issns.all(|issn| issn.is_none() || of.contains(issn))
    };
    if has_all(one, other) || has_all(other, one) {
        return None;
    }
    let editions = one.iter().cloned().zip(other.iter().cloned());
    let mut filled = editions.filter_map(|(one, other)| one.zip(other));
    filled.find(|(one, other)| one != other)
}
