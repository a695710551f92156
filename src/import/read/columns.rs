//! The columns of a table: their names, and the fields that they contain.

use std::collections::HashMap;

use crate::import::findings::shortened;
use crate::import::read::cells::{Container, TableCell};
use crate::import::read::options::{
    FieldFilter, Given, ReadOptions, column_letters, columns_of, is_one_of,
};
use crate::import::row_faults::RowFaults;
use crate::import::rows::ADDED_TO_RECORDS;
use crate::model::Fields;
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
            Some((_, [])) => Some(ColumnMeaning::Ignored),
            Some((_, [name])) => own(&comparable(name)).or_else(|| own(&header)),
            Some((_, names)) => field_indexes(table, names).map(ColumnMeaning::Fields),
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
pub(in crate::import) fn identify_rows<F: Fields>(
    options: &ReadOptions,
    columns: &[ColumnMeaning],
) -> bool {
    let sets = options.match_sets(F::STEM);
    let identifies = |field: &Field| {
        sets.iter()
            .flatten()
            .any(|name| columns_of(name).contains(&field.column.as_str()))
    };
    columns.iter().any(|column| match column {
        ColumnMeaning::Id => true,
        ColumnMeaning::Fields(fields) => {
            fields.iter().any(|at| identifies(&F::table().fields[*at]))
        }
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
    /// The comparable form of each header, and the number of columns with it so far.
    numbered: Vec<(String, usize)>,
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
    /// Reads a header, and reports its faults. Returns `None` if it is unusable.
    pub fn read<F: Fields>(
        header: &[TableCell<'_>],
        options: &'o ReadOptions,
        container: Container,
        faults: &mut RowFaults<'_>,
    ) -> Option<Columns<'o>> {
        let mut columns = Columns::of_header(header, options);
        if columns.names.len() > options.bounds.columns {
            faults.push_row(None, options.bounds.columns_fault());
            return None;
        }
        if let Some(fault) = header.iter().find_map(|cell| cell.fault.as_ref()) {
            faults.push_row(None, fault.clone());
            return None;
        }
        columns.find_meanings(F::table(), options, container, faults);
        columns.find_sources(F::table(), faults);
        columns.find_field_filters(F::table(), options, container, faults);
        columns.find_metric(F::table(), options);
        for given in &options.constants {
            let mut fields = F::table().fields.iter();
            let index = fields.position(|field| field.column == given.value.0);
            let constant = index.map(|index| (index, given.value.1.as_str()));
            columns.constants.extend(constant);
        }
        if identify_rows::<F>(options, &columns.meanings) {
            return Some(columns);
        }
        faults.push(&"id", missing_id(container, &options.match_sets(F::STEM)));
        None
    }

    /// Returns columns with their names, up to the last one that the header or an option names.
    fn of_header(header: &[TableCell<'_>], options: &ReadOptions) -> Columns<'o> {
        let named_width = header
            .iter()
            .rposition(|cell| !cell.is_blank())
            .map_or(0, |last| last + 1);
        let mapped = options.columns.iter().map(|given| &given.value.column);
        let filtered = options.filters.iter().map(|given| &given.value.0);
        let of_fields = options.field_filters.iter();
        let of_fields = of_fields.map(|given| &given.value.column);
        let named = mapped.chain(filtered).chain(of_fields);
        let by_letter = named.filter_map(|column| column.index);
        let by_letter = by_letter.map(|index| index + 1).max().unwrap_or(0);
        let ignored = if options.ignore_unknown {
            header.len()
        } else {
            0
        };
        let width = named_width.max(by_letter).max(ignored);
        let texts = header.iter().map(|cell| cell.text.trim_matches(is_blank));
        let mut names: Vec<String> = texts.map(str::to_owned).collect();
        names.resize(width, String::new());
        let mut counts: HashMap<String, usize> = HashMap::new();
        let numbered = names.iter().map(|name| {
            let name = comparable(name);
            let number = counts.entry(name.clone()).or_default();
            *number += 1;
            (name, *number)
        });
        Columns {
            meanings: Vec::with_capacity(width),
            named_width,
            numbered: numbered.collect(),
            names,
            sources: Vec::new(),
            filters: Vec::new(),
            field_filters: Vec::new(),
            metric: None,
            constants: Vec::new(),
        }
    }

    /// Finds the meaning of each column, and reports unknown ones.
    fn find_meanings(
        &mut self,
        table: &FieldTable,
        options: &ReadOptions,
        container: Container,
        faults: &mut RowFaults<'_>,
    ) {
        let names = table.fields.iter().map(|field| &*field.column);
        let known: Vec<&str> = std::iter::once("id").chain(names).collect();
        for (at, name) in self.names.iter().enumerate() {
            let (key, number) = &self.numbered[at];
            let meaning = ColumnMeaning::find(table, options, name, *number, Some(at));
            let of_rows = options.filters.iter().map(|given| &given.value.0);
            let of_fields = options.field_filters.iter();
            let of_fields = of_fields.map(|given| &given.value.column);
            let mut filters = of_rows.chain(of_fields);
            let is_filter = filters.any(|column| column.matches(key, *number, Some(at)));
            if meaning.is_none() && !name.is_empty() && !is_filter {
                faults.push_unknown(container.column(), "", name, &known);
            }
            let unknown = if name.is_empty() {
                ColumnMeaning::Unnamed
            } else {
                ColumnMeaning::Ignored
            };
            self.meanings.push(meaning.unwrap_or(unknown));
            if let Some(effects) = faults.effects() {
                let used = options.find_column(key, *number, Some(at));
                effects
                    .used_columns
                    .extend(used.map(|(mapping, _)| mapping));
                effects.has_columns = true;
            }
        }
    }

    /// Finds the columns whose values decide whether a row of a table is read.
    pub fn find_filters(&mut self, options: &'o ReadOptions, faults: &mut RowFaults<'_>) {
        for Given { value, origin } in &options.filters {
            let (column, values) = value;
            let mut columns = self.numbered.iter().enumerate();
            match columns.position(|(at, (name, number))| column.matches(name, *number, Some(at))) {
                Some(at) => self.filters.push((at, values)),
                None => faults.push(
                    &column,
                    message!("{origin}: the file has no column `{column}`; write its header"),
                ),
            }
        }
    }

    /// Finds the columns whose values decide whether a row has a field.
    fn find_field_filters(
        &mut self,
        table: &FieldTable,
        options: &'o ReadOptions,
        container: Container,
        faults: &mut RowFaults<'_>,
    ) {
        for Given { value, origin } in &options.field_filters {
            let FieldFilter { column, values, .. } = value;
            let mut columns = self.numbered.iter().enumerate();
            let at =
                columns.position(|(at, (name, number))| column.matches(name, *number, Some(at)));
            if at.is_none() && container != Container::Json {
                let message =
                    message!("{origin}: the file has no column `{column}`; write its header");
                faults.push(&column, message);
            }
            let mut fields = table.fields.iter();
            let field = fields.position(|field| field.column == value.field);
            let filter = field.map(|field| (field, at, values.as_slice()));
            self.field_filters.extend(filter);
        }
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
            .all(|(at, values)| is_one_of(values, text(*at)))
    }

    /// Returns true if the column with this index is read.
    pub fn is_read(&self, at: usize) -> bool {
        let meaning = self.meanings.get(at);
        !matches!(
            meaning,
            None | Some(ColumnMeaning::Ignored | ColumnMeaning::Unnamed)
        )
    }

    /// Returns the metric whose year the field is, if the columns have it. Without the metric, its year says nothing.
    pub fn metric_of(&self, year: usize) -> Option<usize> {
        self.metric
            .filter(|(of, _)| *of == year)
            .map(|(_, metric)| metric)
    }

    /// Returns true if a row may have values for a field.
    pub fn pass_filters_of(&self, field: usize, cells: &[TableCell<'_>]) -> bool {
        let mut filters = self.field_filters.iter().filter(|(of, ..)| *of == field);
        filters.all(|(_, at, values)| {
            let cell = at.and_then(|at| cells.get(at));
            let text = cell.map_or("", |cell| cell.text.trim_matches(is_blank));
            is_one_of(values, text)
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
        let meanings = self.meanings.iter();
        meanings
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
fn missing_id(container: Container, sets: &[Vec<&str>]) -> Message {
    if container == Container::Json {
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
