//! The faults of one row while it is read, and the unknown names of its file.

use std::fmt;

use crate::import::findings::{FilePosition, Findings, shortened};
use crate::import::read::options::{OptionEffect, OptionEffects};
use crate::model::{Fault, Message, Remedy, first_of, message, nearest};

/// The unknown names of a file. The first [`UnknownNames::MAX`] are kept.
#[derive(Debug, Default)]
pub struct UnknownNames {
    /// Whether they are ignored, with a warning.
    are_ignored: bool,
    /// Each name, and the most similar known one. A search for each row would be slow.
    names: Vec<(String, Option<String>)>,
}

impl UnknownNames {
    const MAX: usize = 1_000;

    /// Creates a list without names.
    pub fn new(are_ignored: bool) -> UnknownNames {
        UnknownNames {
            are_ignored,
            names: Vec::new(),
        }
    }

    /// Adds a name. Returns the most similar known one.
    fn add(&mut self, path: &str, name: &str, known: &[&str]) -> Option<String> {
        if let Some((_, near)) = self.names.iter().find(|(other, _)| other == path) {
            return near.clone();
        }
        if self.names.len() == UnknownNames::MAX {
            return None;
        }
        let near = nearest(name, known.iter().copied()).map(str::to_owned);
        self.names.push((path.to_owned(), near.clone()));
        near
    }

    /// Returns the warning about ignored names, if there are some. `what` is the kind of the names.
    pub fn ignored(&self, what: &str) -> Option<Message> {
        const MAX_SHOWN: usize = 20;
        if !self.are_ignored || self.names.is_empty() {
            return None;
        }
        let count = self.names.len();
        let quoted = self
            .names
            .iter()
            .map(|(name, _)| format!("`{}`", shortened(name)));
        let names = first_of(quoted, count, MAX_SHOWN);
        Some(if count == 1 {
            message!("the unknown {what} {names} is ignored")
        } else {
            message!("the unknown {what}s {names} are ignored")
        })
    }
}

/// The findings in a file beside its faults.
pub struct FileLog<'a> {
    pub unknown: &'a mut UnknownNames,
    pub warnings: &'a mut Findings,
    pub effects: &'a mut OptionEffects,
}

/// Collects the faults of one row.
pub struct RowFaults<'a> {
    position: &'a FilePosition,
    bad: &'a mut Findings,
    /// The log of the file, while it is read.
    of_file: Option<FileLog<'a>>,
    /// The number of faults of the run before this row.
    before: usize,
}

impl<'a> RowFaults<'a> {
    pub fn new(position: &'a FilePosition, bad: &'a mut Findings) -> RowFaults<'a> {
        RowFaults {
            position,
            before: bad.total(),
            bad,
            of_file: None,
        }
    }

    /// Adds the log of the file.
    pub fn of_file(self, log: FileLog<'a>) -> RowFaults<'a> {
        RowFaults {
            of_file: Some(log),
            ..self
        }
    }

    /// Returns the effects of the options, while a file is read.
    pub fn effects(&mut self) -> Option<&mut OptionEffects> {
        self.of_file.as_mut().map(|log| &mut *log.effects)
    }

    /// Counts an effect of the options on the row or a cell, while a file is read.
    pub fn count(&mut self, effect: OptionEffect) {
        if let Some(effects) = self.effects() {
            effects.count(effect);
        }
    }

    /// Adds a warning about a value that was changed while reading. It does not make the row bad.
    pub fn warn_value(
        &mut self,
        field: &dyn fmt::Display,
        value: &str,
        message: impl Into<Message>,
    ) {
        if let Some(log) = &mut self.of_file {
            log.warnings.push(
                self.position,
                Some(&field.to_string()),
                Some(value),
                message,
            );
        }
    }

    /// Reports a fault of the whole row.
    pub fn push_row(&mut self, value: Option<&str>, message: impl Into<Message>) {
        self.bad.push(self.position, None, value, message);
    }

    /// Reports a fault of a field without a value.
    pub fn push(&mut self, field: &dyn fmt::Display, message: impl Into<Message>) {
        self.bad
            .push(self.position, Some(&field.to_string()), None, message);
    }

    /// Reports a fault of a field's value.
    pub fn push_value(
        &mut self,
        field: &dyn fmt::Display,
        value: &str,
        message: impl Into<Message>,
    ) {
        self.bad.push(
            self.position,
            Some(&field.to_string()),
            Some(value),
            message,
        );
    }

    /// Reports or ignores a name that is none of the known ones. `what` is its kind. `parent` contains the names of the
    /// objects around it, each with a dot.
    pub fn push_unknown(&mut self, what: &str, parent: &str, name: &str, known: &[&str]) {
        let path = shortened(&format!("{parent}{name}"));
        let mut near = None;
        if let Some(log) = &mut self.of_file {
            near = log.unknown.add(&path, name, known);
            if log.unknown.are_ignored {
                return;
            }
        }
        let name = shortened(name);
        // `--map` applies to names at the top level only.
        let message = match near {
            Some(near) if parent.is_empty() => {
                message!("unknown {what}; did you mean `{near}`? Then rename it, or add --map '{name}={near}'")
                    .with(Remedy::OfValue)
            }
            Some(near) => message!("unknown {what}; did you mean `{near}`?").with(Remedy::OfValue),
            None => {
                let mut remedy = format!("known names are `{}`", known.join("`, `"));
                if parent.is_empty() {
                    remedy += "; use --map 'NAME=FIELD' if a field has another name, or --ignore-unknown \
                               to ignore the rest";
                }
                message!("unknown {what}; {remedy}").with(Remedy::OfAllFields)
            }
        };
        self.push(&path, message);
    }

    /// Reports broken rules of a row, or of an object in the field `parent`.
    pub fn push_faults(&mut self, parent: Option<&dyn fmt::Display>, faults: Vec<Fault>) {
        for Fault {
            field,
            value,
            message,
        } in faults
        {
            let within = parent.map(|parent| format!("{parent}.{field}"));
            self.bad.push(
                self.position,
                Some(within.as_deref().unwrap_or(field)),
                value.as_deref(),
                message,
            );
        }
    }

    /// Returns true if a search among `known` names is affordable. Every fault shrinks the budget, so a file with a
    /// fault in every row stays fast.
    pub fn may_search(&self, known: usize) -> bool {
        const MAX_COMPARISONS: usize = 100_000;
        (self.bad.total() + 1).saturating_mul(known) <= MAX_COMPARISONS
    }

    /// The number of faults of the run so far.
    pub fn total(&self) -> usize {
        self.bad.total()
    }

    /// Returns true if this row has a fault.
    pub fn has_fault(&self) -> bool {
        self.bad.total() > self.before
    }
}
