//! Options of the commands that read curated files: the files, and how to read them.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use strum::{ParseError, VariantNames};

use crate::import::{
    self, DateOrder, DecimalSign, FileFormat, ImportRows, ReadOptions, Rename, RowKind, Source, SourceOptions,
};

/// The files to read, and how.
#[derive(Debug, Args)]
pub(in crate::cli) struct ReadArgs {
    /// Files to read, or folders with such files. Without --dataset, a file or a sheet of a workbook is named
    /// conferences, journals, organizations or tags. Formats: .jsonl, .json, .csv (each also with .gz) and .xlsx. `-`
    /// reads standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The content of files with other names, or of standard input: conferences, journals, organizations or tags
    #[arg(long, value_name = "KIND", value_parser = one_of::<RowKind>())]
    dataset: Option<RowKind>,
    /// The format of the files, if neither their names nor their content show it: jsonl, json, csv or xlsx
    #[arg(long, value_name = "FORMAT", value_parser = one_of::<FileFormat>())]
    format: Option<FileFormat>,
    /// Read the column or field NAME as FIELD, such as 'Website=url'; repeatable
    #[arg(long = "map", value_name = "NAME=FIELD")]
    renames: Vec<Rename>,
    /// Match rows without ids to records by these fields, such as name,year; rows without a match get new ids
    #[arg(long = "match", value_name = "FIELD", value_delimiter = ',')]
    matching: Vec<String>,
    /// The order of day and month in dates such as 3/4/2026: dmy or mdy
    #[arg(long, value_name = "ORDER", value_parser = one_of::<DateOrder>())]
    dates: Option<DateOrder>,
    /// The decimal separator, where 3.000 or 3,000 may be 3 or 3000: point or comma
    #[arg(long, value_name = "SIGN", value_parser = one_of::<DecimalSign>())]
    decimal: Option<DecimalSign>,
    /// Skip unknown columns and fields, with a warning that names them
    #[arg(long)]
    ignore_unknown: bool,
    /// List every fault and warning, instead of one line for each kind
    #[arg(long)]
    pub all_faults: bool,
}

impl ReadArgs {
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Finds the files at the paths, and their kinds and formats.
    pub fn find_sources(&self) -> anyhow::Result<Vec<Source>> {
        let options = SourceOptions { kind: self.dataset, format: self.format };
        Ok(Source::find(&self.paths, options)?)
    }

    /// Returns the options for reading.
    pub fn options(&self) -> anyhow::Result<ReadOptions> {
        let options = ReadOptions {
            matching: self.matching.iter().map(|name| name.trim().to_owned()).collect(),
            dates: self.dates,
            decimal: self.decimal,
            ignore_unknown: self.ignore_unknown,
            renames: self.renames.clone(),
            all_faults: self.all_faults,
            ..ReadOptions::default()
        };
        options.check()?;
        Ok(options)
    }
}

/// Returns a parser of the words of an enum.
fn one_of<T>() -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = ParseError> + VariantNames + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(T::VARIANTS).try_map(|word| word.parse::<T>())
}

/// Reads all rows of the files. `progress` gets the number of bytes of each read. Merging reports errors in the rows.
pub(in crate::cli) fn read_rows(
    sources: &[Source],
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
) -> anyhow::Result<ImportRows> {
    let rows = import::read_sources(sources, options, progress)?;
    options.check_renames_used()?;
    Ok(rows)
}
