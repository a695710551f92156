//! What all commands share: their common arguments, opening the database, and committing.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::FalseyValueParser;

use super::arguments::parse_duration;
use super::output::{Output, counted};
use crate::store::file::links::resolve;
use crate::store::{CLOCK_TOLERANCE_S, Edit, Follower, StoreError, Writer};

/// Arguments of every command.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// The database file
    #[arg(long, global = true, env = "MEDFEED_DB", value_name = "PATH", default_value = "medfeed.redb")]
    pub db: PathBuf,
    /// Print one JSON object on standard output, for scripts
    #[arg(long, global = true, env = "MEDFEED_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
    /// How long to wait for another process that is writing, such as 30s or 5m
    #[arg(long, global = true, env = "MEDFEED_WAIT", value_name = "TIME", default_value = "30s",
          value_parser = parse_duration)]
    pub wait: Duration,
}

impl Common {
    pub fn output(&self) -> Output {
        Output::new(self.json)
    }

    /// The path of the database file with links followed; its companion files stand beside it.
    pub fn resolved_db(&self) -> PathBuf {
        resolve(&self.db)
    }

    pub fn open_writer(&self) -> Result<Writer, StoreError> {
        Writer::open(&self.db, self.wait)
    }

    pub fn open_or_create_writer(&self) -> Result<Writer, StoreError> {
        Writer::open_or_create(&self.db, self.wait)
    }

    pub fn open_follower(&self) -> Result<Follower, StoreError> {
        Follower::open(&self.db)
    }

    /// Commits an edit with its description for the history.
    pub fn commit(&self, mut edit: Edit<'_>, what: impl Into<String>) -> Result<(), StoreError> {
        let behind_s = edit.clock_behind_s();
        if behind_s > CLOCK_TOLERANCE_S {
            self.output().warning(format!(
                "the clock is {} behind the last commit, so this one carries that commit's time, {}; callers who work by \
                 updated_since see both as of then. Check the clocks of machines that write",
                counted(behind_s.unsigned_abs(), "second"),
                edit.time()
            ));
        }
        edit.describe(what);
        edit.commit()
    }
}
