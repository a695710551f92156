//! The columns of a table: their names, and the fields that they contain.

use std::collections::HashMap;

use super::column_name::{column_letters, is_within};
use super::options::{Given, OptionEffect, ReadOptions, RowFilter, columns_of};
use super::table_cell::{Container, TableCell};
use crate::import::findings::shortened;
use crate::import::row_faults::RowFaults;
use crate::import::rows::ADDED_TO_RECORDS;
use crate::model::Fields;
use crate::model::field::FieldTable;
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
    /// A member of an object that is the parent of these fields. It must be null.
    Object(Vec<usize>),
    /// An accepted column without a meaning, or one that is already reported.
    Ignored,
    /// A column without a name. Its cells must be empty.
    Unnamed,
}

impl ColumnMeaning {
    /// Returns the indexes of the fields that the column contains.
    pub fn fields(&self) -> &[usize] {
        match self {
            ColumnMeaning::Fields(fields) => fields,
            _ => &[],
        }
    }

    /// Whether several columns with this meaning are joined to a list.
    pub fn is_joined(&self, table: &FieldTable) -> bool {
        let mut fields = self.fields().iter();
        fields.len() > 0 && fields.all(|at| table.fields[*at].kind.is_list())
    }

    /// Whether columns with these meanings cannot be read next to each other.
    fn overlaps(&self, other: &ColumnMeaning) -> bool {
        self == other || self.fields().iter().any(|at| other.fields().contains(at))
    }

    /// Whether the columns with this meaning have values.
    fn is_read(&self) -> bool {
        !matches!(self, ColumnMeaning::Ignored | ColumnMeaning::Unnamed)
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
        let header = comparable(header);
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
            Some((_, names)) => {
                let fields = names.iter().map(|name| table.index_of(name));
                fields.collect::<Option<_>>().map(ColumnMeaning::Fields)
            }
            None if options.only_mapped => None,
            None => own(&header),
        }
    }

    /// Returns the meaning of a member of an object that is ignored, or of one that has the fields of an object.
    fn of_object(table: &FieldTable, options: &ReadOptions, path: &str) -> Option<ColumnMeaning> {
        let mapping = |path: &str| options.find_column(&comparable(path), 1, None);
        let mut dots = path.match_indices('.');
        if dots.any(|(at, _)| matches!(mapping(&path[..at]), Some((_, [])))) {
            return Some(ColumnMeaning::Ignored);
        }
        let fields = table.fields.iter().enumerate();
        let within = fields.filter(|(_, field)| is_within(&field.name, path));
        let within: Vec<usize> = within.map(|(at, _)| at).collect();
        (!within.is_empty() && mapping(path).is_none()).then_some(ColumnMeaning::Object(within))
    }
}

/// Returns the comparable form of each name, and the number of names with it so far.
pub(in crate::import) fn numbered(names: &[String]) -> Vec<(String, usize)> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let numbered = names.iter().map(|name| {
        let name = comparable(name);
        let number = counts.entry(name.clone()).or_default();
        *number += 1;
        (name, *number)
    });
    numbered.collect()
}

/// Returns true if the columns identify rows: one is the id, or a column of a match set.
pub(in crate::import) fn identify_rows<F: Fields>(
    options: &ReadOptions,
    columns: &[ColumnMeaning],
) -> bool {
    let sets = options.match_sets(F::STEM);
    let names = sets.iter().flatten().flat_map(|name| columns_of(name));
    let identifying: Vec<usize> = names.filter_map(|name| F::table().index_of(name)).collect();
    columns.iter().any(|column| {
        let mut fields = column.fields().iter();
        *column == ColumnMeaning::Id || fields.any(|at| identifying.contains(at))
    })
}

/// The columns of a table.
pub(in crate::import) struct Columns<'o> {
    /// The meaning of each column.
    pub meanings: Vec<ColumnMeaning>,
    /// The number of columns up to the last one with a header.
    pub named_width: usize,
    /// The headers.
    pub names: Vec<String>,
    /// The comparable form of each header, and the number of columns with it so far.
    numbered: Vec<(String, usize)>,
    /// The meanings with a value, and the indexes of the columns that have it.
    pub sources: Vec<(ColumnMeaning, Vec<usize>)>,
    /// The filters of the options, each with the index of its column. In an object it may be absent.
    filters: Vec<(Option<usize>, &'o Given<RowFilter>)>,
    /// The constants for fields without a value in a row, by the index of the field.
    pub constants: Vec<(usize, &'o str)>,
    /// The index of the impact factor, if the header or the recipe names it. Its year as a constant needs it.
    pub metric: Option<usize>,
}

impl<'o> Columns<'o> {
    /// Returns columns with their names, up to the last one that the header or an option names.
    pub fn new(
        mut names: Vec<String>,
        options: &'o ReadOptions,
        faults: &mut RowFaults<'_>,
    ) -> Columns<'o> {
        let last_named = names.iter().rposition(|name| !name.is_empty());
        let named_width = last_named.map_or(0, |last| last + 1);
        let mapped = options.columns.iter().map(|given| &given.value.column);
        let filtered = options.filters.iter().map(|given| &given.value.column);
        let by_letter = mapped.chain(filtered).filter_map(|column| column.index);
        let width = if options.ignore_unknown {
            names.len()
        } else {
            named_width
        };
        let width = by_letter.map(|index| index + 1).fold(width, usize::max);
        names.resize(width, String::new());
        let numbered = numbered(&names);
        if let Some(effects) = faults.effects() {
            effects.has_columns |= width > 0;
            for (at, (key, number)) in numbered.iter().enumerate() {
                let used = options.find_column(key, *number, Some(at));
                effects.used_columns.extend(used.map(|(index, _)| index));
            }
        }
        let filters = options.filters.iter().map(|filter| {
            let wanted = &filter.value.column;
            let mut columns = numbered.iter().enumerate();
            let column =
                columns.position(|(at, (key, number))| wanted.matches(key, *number, Some(at)));
            (column, filter)
        });
        Columns {
            meanings: Vec::with_capacity(width),
            named_width,
            filters: filters.collect(),
            numbered,
            names,
            sources: Vec::new(),
            constants: Vec::new(),
            metric: None,
        }
    }

    /// Finds the fields of the columns, and reports the faults of the header. Returns `None` if it is unusable.
    pub fn find_fields<F: Fields>(
        &mut self,
        options: &'o ReadOptions,
        container: Container,
        faults: &mut RowFaults<'_>,
    ) -> Option<()> {
        if self.names.len() > options.bounds.columns {
            faults.push_row(None, options.bounds.columns_fault());
            return None;
        }
        self.find_meanings(F::table(), options, container, faults);
        self.find_sources(F::table(), faults);
        for (column, Given { value, origin }) in &self.filters {
            // A member may be absent.
            if column.is_none() && container != Container::Json {
                let wanted = &value.column;
                let message =
                    message!("{origin}: the file has no column `{wanted}`; write its header");
                faults.push(wanted, message);
            }
        }
        self.find_constants(F::table(), options);
        if identify_rows::<F>(options, &self.meanings) {
            return Some(());
        }
        faults.push(&"id", missing_id(container, &options.match_sets(F::STEM)));
        None
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
            let of_object = match container {
                Container::Json => ColumnMeaning::of_object(table, options, name),
                _ => None,
            };
            let meaning =
                of_object.or_else(|| ColumnMeaning::find(table, options, name, *number, Some(at)));
            let mut filters = options.filters.iter();
            let is_filter = filters.any(|given| given.value.column.matches(key, *number, Some(at)));
            if meaning.is_none() && !name.is_empty() && !is_filter {
                faults.push_unknown(container.column(), "", name, &known);
            }
            self.meanings.push(meaning.unwrap_or(match name.is_empty() {
                true => ColumnMeaning::Unnamed,
                false => ColumnMeaning::Ignored,
            }));
        }
    }

    /// Finds the fields with a constant.
    fn find_constants(&mut self, table: &FieldTable, options: &'o ReadOptions) {
        self.metric = table.index_of("impact_factor").filter(|metric| {
            let mut sources = self.sources.iter();
            let mut mapped = options.columns.iter().flat_map(|given| &given.value.fields);
            sources.any(|(meaning, _)| meaning.fields() == [*metric])
                || mapped.any(|name| name == "impact_factor")
        });
        let constants = options.constants.iter().map(|given| &given.value);
        let constants = constants.filter_map(|(name, text)| Some((table.index_of(name)?, &**text)));
        self.constants.extend(constants);
    }

    /// Collects the columns of each meaning. Several columns may have one only if they are joined to a list, or have
    /// equal headers.
    fn find_sources(&mut self, table: &FieldTable, faults: &mut RowFaults<'_>) {
        let meanings = self.meanings.iter().enumerate();
        for (at, meaning) in meanings.filter(|(_, meaning)| meaning.is_read()) {
            let mut sources = self.sources.iter_mut();
            let Some((other, columns)) = sources.find(|(other, _)| meaning.overlaps(other)) else {
                self.sources.push((meaning.clone(), vec![at]));
                continue;
            };
            let first = &self.names[columns[0]];
            let name = &self.names[at];
            if other == meaning
                && (meaning.is_joined(table) || comparable(first) == comparable(name))
            {
                columns.push(at);
                continue;
            }
            let field = meaning.fields().first();
            let field = field.map_or("id", |field| &table.fields[*field].column);
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

    /// Returns `None` for an object that is left out, and counts it.
    pub fn select(&self, cells: &[TableCell], faults: &mut RowFaults<'_>) -> Option<()> {
        if self.pass_filters(None, cells) {
            return Some(());
        }
        faults.count(OptionEffect::LeftOut);
        None
    }

    /// Returns true if a row has the values that it needs to be read, or to have this field.
    pub fn pass_filters(&self, field: Option<&str>, cells: &[TableCell]) -> bool {
        let mut filters = self.filters.iter();
        filters.all(|(column, Given { value: filter, .. })| {
            let cell = column.and_then(|at| cells.get(at));
            filter.field.as_deref() != field || filter.accepts(cell.map_or("", |cell| &cell.text))
        })
    }

    /// Returns true if the column with this index is read.
    pub fn is_read(&self, at: usize) -> bool {
        self.meanings.get(at).is_some_and(ColumnMeaning::is_read)
    }

    /// Returns true if a row repeats the header.
    pub fn are_names(&self, cells: &[TableCell]) -> bool {
        let mut names = self.names.iter().enumerate();
        let are_names = names.all(|(at, name)| {
            let cell = cells.get(at);
            cell.is_some_and(|cell| cell.text.trim_matches(is_blank) == name)
        });
        self.named_width > 0 && are_names
    }

    /// Returns the number of columns that a header or an option names.
    pub fn named(&self) -> usize {
        let meanings = self.meanings.iter();
        meanings
            .filter(|meaning| **meaning != ColumnMeaning::Unnamed)
            .count()
    }

    /// Returns true if a row has a number as its id.
    pub fn has_id(&self, cells: &[TableCell]) -> bool {
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
fn missing_id(container: Container, sets: &[Vec<String>]) -> Message {
    if container == Container::Json {
        return "is missing; give each row an id, or use --match to find records by other fields"
            .into();
    }
    if sets.is_empty() {
        return "the column `id` is missing; the first row must name the columns, including `id`; a file without ids needs \
                --match, or a recipe, which `medfeed template --from` drafts"
            .into();
    }
    message!(
        "there is no column `id`, and none of the columns that identify rows without ids (`{}`)",
        sets.concat().join("`, `")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields};

    #[test]
    fn no_two_columns_of_a_kind_have_equal_comparable_names() {
        fn check<F: Fields>() {
            let names = F::table().fields.iter();
            let mut names: Vec<String> = names.map(|field| comparable(&field.column)).collect();
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
