//! The options that say which files are read, and how.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use strum::VariantNames;

use crate::cli::arguments::one_of;
use crate::import::{
    ColumnMapping, DateOrder, DecimalSign, FileFormat, Given, ReadOptions, RowKind, Source,
    SourceOptions, Word, read_recipe,
};

/// The files to read, and how.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Files to read, or folders with such files. Without --dataset, a file or a sheet of a workbook is named
    /// conferences, journals, organizations or tags. Formats: .jsonl, .json, .csv (each also with .gz) and .xlsx. `-`
    /// reads standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Read the files as this TOML file says. `medfeed template KIND --from FILE` drafts one. The other options of
    /// this command have precedence
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
    /// The content of files with other names, or of standard input: conferences, journals, organizations or tags
    #[arg(long, value_name = "KIND", value_parser = one_of::<RowKind>(RowKind::VARIANTS))]
    dataset: Option<RowKind>,
    /// The format of the files, if neither their names nor their content show it: jsonl, json, csv or xlsx
    #[arg(long, value_name = "FORMAT", value_parser = one_of::<FileFormat>(FileFormat::VARIANTS))]
    format: Option<FileFormat>,
    /// The sheet of a workbook to read
    #[arg(long, value_name = "NAME")]
    sheet: Option<String>,
    /// Read the column or field NAME as FIELD, such as 'Website=url'; repeatable. `NAME#2` is the second column of this
    /// name, and `=D` the column D
    #[arg(long = "map", value_name = "NAME=FIELD", value_parser = |text: &str| assignment(text.rsplit_once('=')))]
    columns: Vec<(String, String)>,
    /// A value for a field of rows that have none, such as impact_factor_year=2024; repeatable
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = |text: &str| assignment(text.split_once('=')))]
    constants: Vec<(String, String)>,
    /// Read cells with exactly this text as empty, such as N/A; repeatable
    #[arg(long, value_name = "TEXT")]
    empty: Vec<String>,
    /// Match rows without ids to records by these fields, such as name,year; rows without a match get new ids. If
    /// repeated, the fields are tried one after the other. Empty cells of such files keep stored values
    #[arg(long = "match", value_name = "FIELD")]
    matching: Vec<String>,
    /// Create the unknown organizations and tags that records link to
    #[arg(long)]
    create_links: bool,
    /// The order of day and month in dates such as 3/4/2026: dmy or mdy
    #[arg(long, value_name = "ORDER", value_parser = one_of::<DateOrder>(DateOrder::VARIANTS))]
    dates: Option<DateOrder>,
    /// The decimal separator, where 3.000 or 3,000 may be 3 or 3000: point or comma
    #[arg(long, value_name = "SIGN", value_parser = one_of::<DecimalSign>(DecimalSign::VARIANTS))]
    decimal: Option<DecimalSign>,
    /// Skip unknown columns and fields, with a warning that names them
    #[arg(long)]
    ignore_unknown: bool,
    /// List each fault and warning, up to 10,000, instead of one line for each kind
    #[arg(long)]
    pub all_faults: bool,
}

/// Takes the name and the value of NAME=VALUE. `--map` splits at the last `=`, because names of columns contain it
/// (`=D`). `--set` splits at the first, because values do.
fn assignment(parts: Option<(&str, &str)>) -> Result<(String, String), &'static str> {
    let (name, value) = parts.unwrap_or_default();
    if name.trim().is_empty() || value.trim().is_empty() {
        return Err("write a name, `=` and a value, such as 'Website=url'");
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl ReadArgs {
    /// Finds the files at the paths, and returns the options for reading them.
    pub fn sources_and_options(&self) -> Result<(Vec<Source>, ReadOptions)> {
        let (mut options, of_recipe) = match &self.recipe {
            Some(path) => read_recipe(path)?,
            None => (ReadOptions::default(), None),
        };
        for (name, field) in &self.columns {
            let value = ColumnMapping {
                column: name.as_str().into(),
                fields: vec![field.clone()],
            };
            options
                .columns
                .retain(|given| given.value.column != value.column);
            options.columns.push(Given {
                value,
                origin: format!("--map '{name}={field}'"),
            });
        }
        for (field, value) in &self.constants {
            options.constants.retain(|given| given.value.0 != *field);
            let origin = format!("--set '{field}={value}'");
            options.constants.push(Given {
                value: (field.clone(), value.clone()),
                origin,
            });
        }
        if !self.matching.is_empty() {
            let set = |names: &String| Given {
                value: names
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .collect(),
                origin: format!("--match {names}"),
            };
            options.matching = self.matching.iter().map(set).collect();
        }
        let empty = self.empty.iter().map(|text| Given {
            value: Word {
                field: None,
                text: text.clone(),
                value: String::new(),
            },
            origin: format!("--empty '{text}'"),
        });
        options.words.splice(0..0, empty);
        if let Some(sheet) = &self.sheet {
            options.sheets = vec![sheet.clone()];
        }
        options.dates = self.dates.or(options.dates);
        options.decimal = self.decimal.or(options.decimal);
        options.create_links |= self.create_links;
        options.ignore_unknown |= self.ignore_unknown;
        options.check()?;
        let kind = self.dataset.or(of_recipe);
        let sources = Source::find(
            &self.paths,
            SourceOptions {
                kind,
                format: self.format,
            },
        )?;
        let kinds = sources.iter().map(|source| source.kind);
        options.check_list(kinds)?;
        Ok((sources, options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read() {
        let cases = [
            ("Website=url", Some(("Website", "url"))),
            (" a=b = url ", Some(("a=b", "url"))),
            ("=D=url", Some(("=D", "url"))),
            ("Website", None),
            ("=url", None),
            ("Website=", None),
        ];
        for (text, expected) in cases {
            let read = assignment(text.rsplit_once('=')).ok();
            assert_eq!(
                read.as_ref().map(|(name, value)| (&**name, &**value)),
                expected,
                "{text:?}"
            );
        }
        assert_eq!(
            assignment("url=https://x.org/?a=b".split_once('=')),
            Ok(("url".to_owned(), "https://x.org/?a=b".to_owned()))
        );
    }
}
