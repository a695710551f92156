//! Rows without ids: the match sets find their records (docs/recipes.md). The steps are those of [`identify`].

use std::collections::{BTreeMap, HashMap, HashSet};

use super::listed::{ListedFields, mean_the_same, merged_fields};
use super::match_set::{Choices, MatchSet, column_indexes, is_begun, is_complete};
use super::report::Report;
use crate::import::findings::{FilePosition, Finding, shortened};
use crate::import::lint::valid_issn;
use crate::import::read::options::ISSN_COLUMNS;
use crate::import::rows::{ImportRow, ListOptions, MAY_BE_NOTE, RowEdit};
use crate::model::fold::is_blank;
use crate::model::message::{Message, first_of, message};
use crate::model::value::FieldValue;
use crate::model::{Curated, Id, RecordFields};
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
        for at in 0..identifier.sets.len() {
            identifier.find_by(at)?;
        }
    }
    identifier.number_newcomers();
    let dropped = identifier.dropped;
    let mut at = 0;
    rows.retain(|_| {
        at += 1;
        !dropped.contains(&(at - 1))
    });
    Ok(())
}

/// A row that means a record, and the set that found it. `None` for a row with an id.
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
    /// The valid ISSNs of the indexed records, by edition.
    issns: HashMap<Id, Vec<Option<String>>>,
    /// The rows with a fault of the search.
    refused: HashSet<usize>,
    /// The rows that change nothing: those that are left out, and removals of unknown records.
    dropped: HashSet<usize>,
    /// The largest id so far.
    largest: u64,
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
        let largest = state.largest_id(F::DATASET)?.max(imported);
        Ok(Identifier {
            rows,
            list,
            state,
            report,
            sets: MatchSet::all::<F>(&list.matching),
            choices: Vec::new(),
            claims,
            issns: HashMap::new(),
            refused: HashSet::new(),
            dropped: HashSet::new(),
            largest: largest.map_or(0, Id::get),
        })
    }

    /// Returns true if a row has no record yet, and no fault of the search.
    fn is_open(&self, at: usize) -> bool {
        self.rows[at].id.is_none() && !self.refused.contains(&at) && !self.dropped.contains(&at)
    }

    fn open_rows(&self) -> Vec<usize> {
        let all = 0..self.rows.len();
        all.filter(|at| self.is_open(*at)).collect()
    }

    fn refuse(&mut self, at: usize, field: Option<&str>, message: Message) {
        let position = &self.rows[at].position;
        self.report.bad.push(position, field, None, message);
        self.refused.insert(at);
    }

    /// Collects the values of all rows. A row without a value in any set is a fault.
    fn collect_choices(&mut self) {
        self.choices.reserve(self.rows.len());
        for at in 0..self.rows.len() {
            let row = &self.rows[at];
            let statement = row.edit.statement().filter(|_| row.id.is_none());
            let Some(statement) = statement else {
                self.choices.push(Vec::new());
                continue;
            };
            let values = statement.values();
            let of_set = |set: &MatchSet<'_>| set.choices::<F>(&values);
            let choices: Vec<Choices> = self.sets.iter().map(of_set).collect();
            for (set, choices) in self.sets.iter_mut().zip(&choices) {
                set.want(choices);
            }
            let is_bad = row.is_bad;
            if choices.iter().any(is_begun) {
                self.choices.push(choices);
                continue;
            }
            self.choices.push(Vec::new());
            // The fault of a bad row is already reported.
            if is_bad {
                self.refused.insert(at);
            } else {
                self.refuse(at, Some("id"), self.missing_fields());
            }
        }
    }

    fn missing_fields(&self) -> Message {
        let names: Vec<String> = self.sets.iter().map(|set| set.names(&|_| true)).collect();
        let valid = if self.sets.iter().any(MatchSet::has_issn) {
            "; only a valid ISSN counts"
        } else {
            ""
        };
        message!(
            "is missing, and so are the fields of --match ({}); fill them in{valid}",
            names.join(" or ")
        )
    }

    /// Adds the records that share a value with a row to the sets, with their values after the run.
    fn index_records(&mut self) -> Result<(), StoreError> {
        let state = self.state;
        for at in 0..self.rows.len() {
            let row = &self.rows[at];
            let (Some(id), RowEdit::Set(statement)) = (row.id, &row.edit) else {
                continue;
            };
            let stored = state.find_stored::<F>(id)?.map(Curated::into_fields);
            let fields = merged_fields(statement, stored, self.list);
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
        let mut is_indexed = false;
        for set in &mut self.sets {
            let choices = set.choices::<F>(&values);
            if set.is_wanted(&choices) {
                set.add(id, choices);
                is_indexed = true;
            }
        }
        if is_indexed {
            self.issns.insert(id, valid_issns::<F>(&values));
        }
    }

    /// Finds records by one set.
    fn find_by(&mut self, set: usize) -> Result<(), StoreError> {
        let is_last = set + 1 == self.sets.len();
        let mut hits: BTreeMap<Id, Vec<usize>> = BTreeMap::new();
        for at in self.open_rows() {
            let choices = &self.choices[at][set];
            let mut equal = self.sets[set].find_equal(choices);
            if equal.is_empty() && is_last {
                equal = self.sets[set].find_same_gaps(choices);
            }
            equal.retain(|id| self.is_free(*id));
            match (equal.first().copied(), equal.last().copied()) {
                (Some(one), Some(other)) if one != other => {
                    let message = message!(
                        "is missing, and {} match both {one} and {other} of {}; give the id, or --match more fields",
                        self.sets[set].names(&|_| true),
                        F::DATASET
                    );
                    self.refuse(at, Some("id"), message);
                }
                (Some(id), _) => hits.entry(id).or_default().push(at),
                _ if is_last => self.refuse_partial(at)?,
                _ => {}
            }
        }
        for (id, rows) in hits {
            self.claim(id, rows, set)?;
        }
        Ok(())
    }

    /// Returns true if no earlier set found the record.
    fn is_free(&self, id: Id) -> bool {
        self.claims.get(&id).is_none_or(|claim| claim.set.is_none())
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
        let row_issns = self.rows[at].edit.statement();
        let row_issns = row_issns.map(|statement| valid_issns::<F>(&statement.values()));
        let of_record = self.issns.get(&id).cloned().unwrap_or_default();
        if let Some((own, other)) = contradiction(&row_issns.unwrap_or_default(), &of_record) {
            return self.refuse_contradiction(at, id, set, (own, other));
        }
        let row = &mut self.rows[at];
        row.id = Some(id);
        row.found_by = Some(self.sets[set].number);
        if matches!(row.edit, RowEdit::RemoveMatch(_)) {
            row.edit = RowEdit::Remove;
        }
        let claim = Claim {
            row: at,
            set: Some(set),
        };
        self.claims.insert(id, claim);
        Ok(())
    }

    /// Refuses a row whose ISSN contradicts that of its record, or leaves it out.
    fn refuse_contradiction(
        &mut self,
        at: usize,
        id: Id,
        set: usize,
        (own, other): (String, String),
    ) -> Result<(), StoreError> {
        if self.list.leaves_out_new {
            self.report.counts.left_out += 1;
            self.report.counts.contradicting += 1;
            self.dropped.insert(at);
            return Ok(());
        }
        let message = message!(
            "is missing, and {} match {}, but its ISSN is {other} and the row has {own}; write {id} as the id if \
             the row means it, or a new id",
            self.sets[set].names(&|_| true),
            self.described(id)?
        );
        self.refuse(at, Some("id"), message);
        Ok(())
    }

    /// Describes a record by its id and name.
    fn described(&self, id: Id) -> Result<String, StoreError> {
        let record = self.state.find_stored::<F>(id)?;
        let name = record.map(|record| shortened(record.fields().name()));
        Ok(format!(
            "{} {id} `{}`",
            one::<F>(),
            name.unwrap_or_default()
        ))
    }

    /// Refuses a row that agrees in part with a record.
    fn refuse_partial(&mut self, at: usize) -> Result<(), StoreError> {
        if let Some(message) = self.partial_agreement(at)? {
            self.refuse(at, Some("id"), message);
        }
        Ok(())
    }

    /// Returns the fault of a row that agrees with a record in some fields of the last set, if there is one.
    fn partial_agreement(&self, at: usize) -> Result<Option<Message>, StoreError> {
        let Some((set, choices)) = self.sets.last().zip(self.choices[at].last()) else {
            return Ok(None);
        };
        let mut partial = set.find_partial(choices);
        let Some((values, id, others)) = partial.find(|(_, id, _)| self.is_free(*id)) else {
            return Ok(None);
        };
        let claim = self.claims.get(&id);
        let position = claim.map(|claim| &self.rows[claim.row].position);
        let is_stored = self.state.find_stored::<F>(id)?.is_some();
        Ok(Some(match position.filter(|_| !is_stored) {
            Some(position) => may_mean_row(set, values, others, position),
            None => message!(
                "is missing, and the row may mean {}: {}; write {id} as the id if it does, or a new id, or fill in what is missing",
                self.described(id)?,
                gaps(set, values, others)
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
            let warnings = &mut self.report.lint.findings;
            warnings.push(&row.position, None, None, message);
            self.dropped.insert(at);
        }
        is_repeated
    }

    /// Refuses a row that means the same record as another row, and differs from it.
    fn refuse_same(&mut self, at: usize, other: usize, set: usize) {
        if self.refused.contains(&at) {
            return;
        }
        let set = &self.sets[set];
        let position = &self.rows[other].position;
        let one = one::<F>();
        let shared = shown_values(&self.rows[at], set);
        let matched: Vec<usize> = set
            .fields
            .iter()
            .flat_map(|(_, columns)| columns.clone())
            .collect();
        let differing = differing_columns(&self.rows[at], &self.rows[other], &matched);
        let message = match differing.first() {
            Some(first) => message!(
                "means the same {one} as the row at {position}: both have {shared}, but their {} differ; keep one of them, \
                 correct one, or match by {first} too",
                first_of(&differing, differing.len(), 3)
            ),
            None => message!(
                "means the same {one} as the row at {position}: both have {shared}, but are not equal; keep one of them, or \
                 correct one"
            ),
        };
        self.refuse(at, None, message);
    }

    /// Gives new ids to the rows that match no record, or leaves them out.
    fn number_newcomers(&mut self) {
        let mut newcomers = Newcomers {
            sets: MatchSet::all::<F>(&self.list.matching),
            rows: HashMap::new(),
        };
        let unmatched = self.rows_with_bad_match_fields();
        for at in self.open_rows() {
            let row = &self.rows[at];
            // The fault of a bad row is already reported.
            if row.is_bad && (!self.list.leaves_out_new || unmatched.contains(&row.position)) {
                continue;
            }
            let is_removal = matches!(row.edit, RowEdit::RemoveMatch(_));
            match () {
                () if is_removal && !self.list.is_list => {
                    let message =
                        "is missing; a row that removes a record needs its id, or --match";
                    self.refuse(at, Some("id"), message.into());
                }
                () if is_removal => {
                    self.report.count_absent();
                    self.dropped.insert(at);
                }
                () if self.list.leaves_out_new => {
                    self.report.leave_out_unknown(row);
                    self.dropped.insert(at);
                }
                () if row.may_be_note => self.refuse(at, None, MAY_BE_NOTE.into()),
                () => self.number(at, &mut newcomers),
            }
        }
    }

    /// Returns the rows with a fault in a field of a match set. Whether they have a record is unknown.
    fn rows_with_bad_match_fields(&self) -> HashSet<FilePosition> {
        let sets = self.sets.iter().flat_map(|set| &set.fields);
        let columns: Vec<usize> = sets.flat_map(|(_, columns)| columns.clone()).collect();
        let is_matched = |name: &str| {
            columns
                .iter()
                .any(|at| F::table().fields[*at].column == name)
        };
        let faults = self.report.bad.kept().iter();
        let matched = faults.filter(|found| found.field.as_deref().is_none_or(is_matched));
        matched.filter_map(Finding::position).collect()
    }

    /// Gives the next free id to a row, unless it means the same record as another new row.
    fn number(&mut self, at: usize, newcomers: &mut Newcomers<'_>) {
        let statement = self.rows[at].edit.statement();
        let has_name = statement.is_some_and(|values| !values.fields().name().is_empty());
        // A row without a name is bad, whatever it means, so no other row is compared with it.
        let choices = self.choices.get(at).filter(|_| has_name);
        let choices = choices.cloned().unwrap_or_default();
        for set in 0..choices.len() {
            if let Some(other) = newcomers.find_same(&choices, set, &self.choices) {
                if self.drop_if_repeated(at, other) {
                    return;
                }
                self.refuse_same(other, at, set);
                self.refuse_same(at, other, set);
                return;
            }
        }
        if let Some((set, values, others, other)) = newcomers.find_partial(&choices, &self.choices)
        {
            let message = may_mean_row(set, values, others, &self.rows[other].position);
            self.refuse(at, Some("id"), message);
            return;
        }
        let id = match Id::try_from(self.largest + 1) {
            Ok(id) => id,
            Err(error) => {
                self.refuse(at, Some("id"), message!("no id is free: {error}"));
                return;
            }
        };
        self.largest = id.get();
        newcomers.add(id, at, choices);
        let row = &mut self.rows[at];
        row.id = Some(id);
        let assigned = Finding::assigned(&row.position, F::STEM, id, None);
        self.report.assigned.push(assigned);
        if !self.list.is_list {
            let message = "has no id, so it is a new record; it was not compared with the others, as --match does";
            let warnings = &mut self.report.lint.findings;
            warnings.push(&row.position, Some("id"), None, message);
        }
    }
}

/// The rows that match no record.
struct Newcomers<'a> {
    sets: Vec<MatchSet<'a>>,
    /// The indexes of the rows with these new ids.
    rows: HashMap<Id, usize>,
}

impl<'s> Newcomers<'s> {
    fn add(&mut self, id: Id, row: usize, choices: Vec<Choices>) {
        for (set, choices) in self.sets.iter_mut().zip(choices) {
            set.add(id, choices);
        }
        self.rows.insert(id, row);
    }

    /// Returns the row that is equal in a set, unless an earlier set distinguishes the two.
    fn find_same(&self, choices: &[Choices], set: usize, all: &[Vec<Choices>]) -> Option<usize> {
        let mut equal = self.sets[set].find_equal(&choices[set]);
        if equal.is_empty() && set + 1 == self.sets.len() {
            equal = self.sets[set].find_same_gaps(&choices[set]);
        }
        let rows = equal.iter().filter_map(|id| self.rows.get(id));
        let mut rows = rows.filter(|row| !are_distinct(choices, &all[**row], set));
        rows.next().copied()
    }

    /// Returns the row that agrees in part with the values of a row in the last set, with the values of both.
    fn find_partial<'r>(
        &'r self,
        choices: &'r [Choices],
        all: &[Vec<Choices>],
    ) -> Option<(&'r MatchSet<'s>, &'r [String], &'r [String], usize)> {
        let set = self.sets.last()?;
        let values = choices.last()?;
        let partial = set.find_partial(values);
        let mut partial = partial.filter_map(|(values, id, others)| {
            let row = *self.rows.get(&id)?;
            let is_distinct = are_distinct(choices, &all[row], choices.len() - 1);
            (!is_distinct).then_some((set, values, others, row))
        });
        partial.next()
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
    format!(
        "{agreeing} agrees, but {}",
        lacking.collect::<Vec<_>>().join(", and ")
    )
}

fn may_mean_row(
    set: &MatchSet<'_>,
    values: &[String],
    others: &[String],
    position: &FilePosition,
) -> Message {
    message!(
        "is missing, and the row may mean the same as {position}: {}; write ids in both rows, or fill in what is missing",
        gaps(set, values, others)
    )
}

/// Returns the fields of a set with the values of a row. Values of blanks alone are escaped.
fn shown_values<F: RecordFields + ListedFields>(row: &ImportRow<F>, set: &MatchSet<'_>) -> String {
    let Some(statement) = row.edit.statement() else {
        return format!("{} the same", set.names(&|_| true));
    };
    let values = statement.values();
    let shown = |(name, columns): &(&str, Vec<usize>)| {
        let texts = columns.iter().map(|at| values[*at].to_csv(&()));
        let filled: Vec<String> = texts
            .filter(|text| !text.is_empty())
            .map(|text| visible(&text))
            .collect();
        format!("`{name}` `{}`", filled.join(", "))
    };
    let fields: Vec<String> = set.fields.iter().map(shown).collect();
    fields.join(", ")
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
    let (RowEdit::Set(one), RowEdit::Set(other)) = (&row.edit, &other.edit) else {
        return false;
    };
    let values = one.values().into_iter().zip(other.values());
    let mut fields = F::table().fields.iter().zip(values);
    one.has_links_of(other)
        && fields.all(|(field, (one, other))| {
            one.to_csv(&()) == other.to_csv(&()) || mean_the_same(field, one, other)
        })
}

/// Returns the quoted names of other columns in which two rows have different values. Those that one row lacks are last.
fn differing_columns<F: RecordFields + ListedFields>(
    row: &ImportRow<F>,
    other: &ImportRow<F>,
    matched: &[usize],
) -> Vec<String> {
    let (Some(one), Some(other)) = (row.edit.statement(), other.edit.statement()) else {
        return Vec::new();
    };
    let ones = one.values();
    let others = other.values();
    let fields = F::table().fields.iter().enumerate();
    let differs = |(at, _): &(usize, _)| {
        !matched.contains(at) && ones[*at].to_csv(&()) != others[*at].to_csv(&())
    };
    let mut differing: Vec<_> = fields.filter(differs).collect();
    differing.sort_by_key(|(at, _)| ones[*at].is_null() || others[*at].is_null());
    differing
        .into_iter()
        .map(|(_, field)| format!("`{}`", field.column))
        .collect()
}

/// Returns the valid ISSN of each edition of a journal.
fn valid_issns<F: RecordFields + ListedFields>(values: &[&dyn FieldValue]) -> Vec<Option<String>> {
    let columns = column_indexes::<F>(&ISSN_COLUMNS);
    let valid = |at: &usize| valid_issn(&F::table().fields[*at].column, &values[*at].to_csv(&()));
    columns.iter().map(valid).collect()
}

/// Returns two valid ISSNs of the same edition that differ, unless one of the journals has all ISSNs of the other.
fn contradiction(one: &[Option<String>], other: &[Option<String>]) -> Option<(String, String)> {
    let has_all = |of: &[Option<String>], issns: &[Option<String>]| {
        let mut issns = issns.iter().flatten();
        issns.all(|issn| of.contains(&Some(issn.clone())))
    };
    if has_all(one, other) || has_all(other, one) {
        return None;
    }
    let editions = one.iter().zip(other);
    let mut filled = editions.filter_map(|(one, other)| Some((one.clone()?, other.clone()?)));
    filled.find(|(one, other)| one != other)
}
