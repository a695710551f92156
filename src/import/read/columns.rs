//! The columns of a table: their names, and the fields that they contain.

use std::collections::HashMap;

use crate::import::findings::shortened;
use crate::import::read::cells::TableCell;
use crate::import::read::options::{
    FieldFilter, Given, ReadOptions, column_letters, columns_of, is_same,
};
use crate::import::row_faults::RowFaults;
use crate::import::rows::ADDED_TO_RECORDS;
use crate::model::field::{Field, FieldTable};
use crate::model::fold::{comparable, is_blank};
use crate::model::message::{Message, message};

/// The meaning of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) enum ColumnMeaning {
    Id,
    /// Whether to remove the row.
    Deleted,
    /// The fields with these indexes in their table. Several share a cell.
    Fields(Vec<usize>),
    /// An accepted column without a meaning, or one that is already reported.
    Ignored,
    /// A column without a name. Its cells must be empty.
    Unnamed,
}

impl ColumnMeaning {
    /// Whether several columns with this meaning are joined to a list.
    pub fn is_joined(&self, table: &FieldTable) -> bool {
        let ColumnMeaning::Fields(fields) = self else {
            return false;
        };
        fields.iter().all(|at| table.fields[*at].kind.is_list())
    }

    /// Returns the meaning of a header; `None` for an unknown one. `number` counts the columns with this header so far,
    /// from 1. Case, blanks, `_`, `-` and `.` are ignored.
    pub fn find(
        table: &FieldTable,
        options: &ReadOptions,
        header: &str,
        number: usize,
        index: Option<usize>,
    ) -> Option<ColumnMeaning> {
        // No column name is that long.
        let header = if header.len() <= 256 {
            comparable(header)
        } else {
            String::new()
        };
        let own = |name: &str| {
            // Columns are lower case, so that only `_` has to be left out.
            let is = |column: &str| column.bytes().filter(|byte| *byte != b'_').eq(name.bytes());
            match () {
                () if is("id") => Some(ColumnMeaning::Id),
                () if is("deleted") => Some(ColumnMeaning::Deleted),
                () if ADDED_TO_RECORDS.into_iter().any(is) => Some(ColumnMeaning::Ignored),
                () => Some(ColumnMeaning::Fields(vec![
                    table.fields.iter().position(|field| is(&field.column))?,
                ])),
            }
        };
        match options.find_column(&header, number, index) {
            Some([]) => Some(ColumnMeaning::Ignored),
            Some([name]) => own(&comparable(name)).or_else(|| own(&header)),
            Some(names) => field_indexes(table, names).map(ColumnMeaning::Fields),
            None if options.only_mapped => None,
            None => own(&header),
        }
    }
}

/// Returns the indexes of the fields with these names, if the table has all.
pub(in crate::import) fn field_indexes(table: &FieldTable, names: &[String]) -> Option<Vec<usize>> {
    names
        .iter()
        .map(|name| table.fields.iter().position(|field| field.column == *name))
        .collect()
}

/// Returns true if the columns identify rows: one is the id, or a column of a match set.
pub(in crate::import) fn identify_rows<'m>(
    table: &FieldTable,
    sets: &[Vec<&str>],
    mut columns: impl Iterator<Item = &'m ColumnMeaning>,
) -> bool {
    let identifies = |field: &Field| {
        sets.iter()
            .flatten()
            .any(|name| columns_of(name).contains(&field.column.as_str()))
    };
    columns.any(|column| match column {
        ColumnMeaning::Id => true,
        ColumnMeaning::Fields(fields) => fields.iter().any(|at| identifies(&table.fields[*at])),
        _ => false,
    })
}

/// The columns of a table.
pub(in crate::import) struct Columns<'o> {
    /// The meaning of each column.
    pub meanings: Vec<ColumnMeaning>,
    /// The number of columns up to the last one with a header.
    pub named_width: usize,
    /// The headers.
    names: Vec<String>,
    /// The meanings with a value, and the indexes of the columns that have it.
    pub sources: Vec<(ColumnMeaning, Vec<usize>)>,
    /// The indexes of columns, and the values that a row must have to be read.
    pub filters: Vec<(usize, &'o [String])>,
    /// The indexes of fields, those of columns, and the values that a row must have for the field. In an object the
    /// column may be absent.
    pub field_filters: Vec<(usize, Option<usize>, &'o [String])>,
    /// The indexes of the year of a metric and of the metric, if the recipe or the header name the metric.
    metric: Option<(usize, usize)>,
    /// The constants for fields without a value in a row, by the index of the field.
    pub constants: Vec<(usize, &'o str)>,
}

impl<'o> Columns<'o> {
    /// Reads a header, and reports its faults. Returns `None` if it is unusable. `sets` are the match sets. `is_object`
    /// says that it has the members of a JSON object.
    pub fn read(
        header: &[TableCell<'_>],
        table: &'static FieldTable,
        options: &'o ReadOptions,
        sets: &[Vec<&str>],
        is_object: bool,
        faults: &mut RowFaults<'_>,
    ) -> Option<Columns<'o>> {
        let named = header
            .iter()
            .rposition(|cell| !cell.is_blank())
            .map_or(0, |last| last + 1);
        let named_by_options = options.columns.iter().map(|given| &given.value.column);
        let named_by_options =
            named_by_options.chain(options.filters.iter().map(|given| &given.value.0));
        let named_by_options = named_by_options.chain(
            options
                .field_filters
                .iter()
                .map(|given| &given.value.column),
        );
        let by_letter = named_by_options
            .filter_map(|column| column.index)
            .map(|index| index + 1)
            .max();
        let ignored = if options.ignore_unknown {
            header.len()
        } else {
            0
        };
        let width = named.max(by_letter.unwrap_or(0)).max(ignored);
        if width > options.bounds.columns {
            faults.push_row(None, options.bounds.columns_fault());
            return None;
        }
        if let Some(fault) = header.iter().find_map(|cell| cell.fault.as_ref()) {
            faults.push_row(None, fault.clone());
            return None;
        }
        let known: Vec<&str> = std::iter::once("id")
            .chain(table.fields.iter().map(|field| &*field.column))
            .collect();
        let mut columns = Columns {
            meanings: Vec::with_capacity(width),
            named_width: named,
            names: header
                .iter()
                .map(|cell| cell.text.trim_matches(is_blank).to_owned())
                .collect(),
            sources: Vec::new(),
            filters: Vec::new(),
            field_filters: Vec::new(),
            metric: None,
            constants: Vec::new(),
        };
        columns.names.resize(width, String::new());
        // The comparable name of each column, and the number of columns with this name so far.
        let mut counts: HashMap<String, usize> = HashMap::new();
        let numbered = columns.names.iter().map(|name| {
            let name = comparable(name);
            let number = counts.entry(name.clone()).or_default();
            *number += 1;
            (name, *number)
        });
        let numbered: Vec<(String, usize)> = numbered.collect();
        // Objects pass the filters before.
        for Given {
            value: (column, values),
            origin,
        } in options.filters.iter().filter(|_| !is_object)
        {
            let mut columns_of_name = numbered.iter().enumerate();
            match columns_of_name
                .position(|(at, (name, number))| column.matches(name, *number, Some(at)))
            {
                Some(at) => columns.filters.push((at, values)),
                None => faults.push(
                    &column,
                    message!("{origin}: the file has no column `{column}`; write its header"),
                ),
            }
        }
        for Given {
            value: filter,
            origin,
        } in &options.field_filters
        {
            let FieldFilter { column, values, .. } = filter;
            let at = numbered
                .iter()
                .enumerate()
                .position(|(at, (name, number))| column.matches(name, *number, Some(at)));
            if at.is_none() && !is_object {
                let message =
                    message!("{origin}: the file has no column `{column}`; write its header");
                faults.push(&column, message);
            }
            let field = table
                .fields
                .iter()
                .position(|field| field.column == filter.field);
            columns
                .field_filters
                .extend(field.map(|field| (field, at, values.as_slice())));
        }
        for (at, name) in columns.names.iter().enumerate() {
            let meaning = ColumnMeaning::find(table, options, name, numbered[at].1, Some(at));
            let rows = options.filters.iter().map(|given| &given.value.0);
            let fields = options
                .field_filters
                .iter()
                .map(|given| &given.value.column);
            let is_filter = rows
                .chain(fields)
                .any(|column| column.matches(&numbered[at].0, numbered[at].1, Some(at)));
            if meaning.is_none() && !name.is_empty() && !is_filter {
                faults.push_unknown(if is_object { "field" } else { "column" }, "", name, &known);
            }
            let unknown = if name.is_empty() {
                ColumnMeaning::Unnamed
            } else {
                ColumnMeaning::Ignored
            };
            columns.meanings.push(meaning.unwrap_or(unknown));
        }
        options.effects.borrow_mut().has_columns = true;
        columns.find_sources(table, faults);
        columns.find_metric(table, options);
        for given in &options.constants {
            let index = table
                .fields
                .iter()
                .position(|field| field.column == given.value.0);
            columns
                .constants
                .extend(index.map(|index| (index, given.value.1.as_str())));
        }
        if identify_rows(table, sets, columns.meanings.iter()) {
            return Some(columns);
        }
        faults.push(&"id", missing_id(is_object, sets));
        None
    }

    /// Finds the impact factor and its year.
    fn find_metric(&mut self, table: &FieldTable, options: &ReadOptions) {
        let index_of = |name: &str| table.fields.iter().position(|field| field.column == name);
        let (Some(year), Some(metric)) =
            (index_of("impact_factor_year"), index_of("impact_factor"))
        else {
            return;
        };
        let mut sources = self.sources.iter();
        let is_read = sources.any(|(meaning, _)| *meaning == ColumnMeaning::Fields(vec![metric]));
        let mut mapped = options.columns.iter().flat_map(|given| &given.value.fields);
        if is_read || mapped.any(|name| name == "impact_factor") {
            self.metric = Some((year, metric));
        }
    }

    /// Collects the columns of each meaning. Several columns may have one only if they are joined to a list, or have
    /// equal headers.
    fn find_sources(&mut self, table: &FieldTable, faults: &mut RowFaults<'_>) {
        for (at, meaning) in self.meanings.iter().enumerate() {
            if matches!(meaning, ColumnMeaning::Ignored | ColumnMeaning::Unnamed) {
                continue;
            }
            let overlaps = |other: &ColumnMeaning| match (meaning, other) {
                (ColumnMeaning::Fields(these), ColumnMeaning::Fields(others)) => {
                    these.iter().any(|at| others.contains(at))
                }
                _ => meaning == other,
            };
            let Some((other, columns)) = self.sources.iter_mut().find(|(other, _)| overlaps(other))
            else {
                self.sources.push((meaning.clone(), vec![at]));
                continue;
            };
            let (first, name) = (&self.names[columns[0]], &self.names[at]);
            if other == meaning
                && (meaning.is_joined(table) || comparable(first) == comparable(name))
            {
                columns.push(at);
                continue;
            }
            let field = match meaning {
                ColumnMeaning::Fields(fields) => table.fields[fields[0]].column.as_str(),
                _ => "id",
            };
            faults.push(
                &shortened(name),
                message!(
                    "the columns `{}` and `{}` are both read as `{field}`; map or ignore one of them",
                    shortened(first),
                    shortened(name)
                ),
            );
        }
    }

    /// Returns true if a row has the values that the options demand.
    pub fn pass_filters(&self, cells: &[TableCell<'_>]) -> bool {
        let text = |at: usize| {
            cells
                .get(at)
                .map_or("", |cell| cell.text.trim_matches(is_blank))
        };
        self.filters
            .iter()
            .all(|(at, values)| values.iter().any(|value| is_same(value, text(*at))))
    }

    /// Returns the metric whose year the field is, if the columns have it. Without the metric, its year says nothing.
    pub fn metric_of(&self, year: usize) -> Option<usize> {
        self.metric
            .filter(|(of, _)| *of == year)
            .map(|(_, metric)| metric)
    }

    /// Returns true if a row may have values for a field.
    pub fn passes_filters_of(&self, field: usize, cells: &[TableCell<'_>]) -> bool {
        let text_at = |at: usize| {
            cells
                .get(at)
                .map_or("", |cell| cell.text.trim_matches(is_blank))
        };
        self.field_filters
            .iter()
            .filter(|(of, ..)| *of == field)
            .all(|(_, at, values)| {
                let text = at.map_or("", text_at);
                values.iter().any(|value| is_same(value, text))
            })
    }

    /// Returns true if a row repeats the header.
    pub fn are_names(&self, cells: &[TableCell<'_>]) -> bool {
        let is_name = |(at, name): (usize, &String)| {
            cells
                .get(at)
                .is_some_and(|cell| cell.text.trim_matches(is_blank) == name)
        };
        self.named_width > 0 && self.names.iter().enumerate().all(is_name)
    }

    /// Returns the number of columns that a header or an option names.
    pub fn named(&self) -> usize {
        self.meanings
            .iter()
            .filter(|meaning| **meaning != ColumnMeaning::Unnamed)
            .count()
    }

    /// Returns true if a row has a number as its id.
    pub fn has_id(&self, cells: &[TableCell<'_>]) -> bool {
        let at = self
            .meanings
            .iter()
            .position(|meaning| *meaning == ColumnMeaning::Id);
        at.and_then(|at| cells.get(at))
            .is_some_and(|cell| cell.text.trim().parse::<u64>().is_ok())
    }

    /// Returns the header of a column for messages.
    pub fn name(&self, at: usize) -> String {
        format!("{} (`{}`)", column_letters(at), shortened(&self.names[at]))
    }
}

/// Returns the message for a header whose columns identify no rows.
pub(in crate::import) fn missing_id(is_object: bool, sets: &[Vec<&str>]) -> Message {
    if is_object {
        return "is missing; give each row an id, or use --match to find records by other fields"
            .into();
    }
    if sets.is_empty() {
        return "the column `id` is missing; the first row must name the columns, including `id`; a file without ids needs \
                --match, or a recipe, which `medfeed template --from` drafts"
            .into();
    }
    let names: Vec<&str> = sets.iter().flatten().copied().collect();
    message!(
        "there is no column `id`, and none of the columns that identify rows without ids (`{}`)",
        names.join("`, `")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields};

    #[test]
    fn no_two_columns_of_a_kind_have_equal_comparable_names() {
        fn check<F: Fields>() {
            let mut names: Vec<String> = F::table()
                .fields
                .iter()
                .map(|field| comparable(&field.column))
                .collect();
            assert!(
                F::table()
                    .fields
                    .iter()
                    .zip(&names)
                    .all(|(field, name)| field.column.replace('_', "") == *name)
            );
            names.extend(["id", "deleted", "updatedat"].map(str::to_owned));
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count);
        }
        check::<ConferenceFields>();
        check::<JournalFields>();
        check::<OrganizationFields>();
        check::<TagFields>();
    }
}
