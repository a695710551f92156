//! `medfeed pull`: keeps a copy of the records that a license shows.

use std::io::{ErrorKind, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::arguments::{parse_interval, path_parser};
use crate::cli::common::Common;
use crate::cli::output::{counted, note, print_error, print_line};
use crate::model::{Dataset, Printable, printable_json};
use crate::pull::body::ReadLimits;
use crate::pull::catch_up::{Plan, Pull, Report, Verdict};
use crate::pull::client::key_in;
use crate::pull::location::{CopyLocation, ServerUrl};
use crate::pull::{
    Events, FolderCopy, PostgresCopy, PullClient, PullError, PullTarget, SqliteCopy,
};

/// Arguments of `medfeed pull`.
#[derive(Args)]
pub struct PullArgs {
    /// The address of the service: scheme and host, such as `https://feed.example.org`
    #[arg(value_name = "URL")]
    server: ServerUrl,
    /// The copy, created if it does not exist: an SQLite file ending .sqlite, .sqlite3 or .db; a folder for JSON lines
    /// and CSV, with a slash at the end; or a schema in PostgreSQL, postgres://user@host/database?schema=NAME [default
    /// schema: medfeed]. Only you can read new files. The password for PostgreSQL comes from PGPASSWORD
    #[arg(long, value_name = "PATH", value_parser = path_parser())]
    to: PathBuf,
    /// Copy only this dataset; repeatable [default: all datasets of the license]
    #[arg(long, value_name = "DATASET")]
    dataset: Vec<Dataset>,
    /// The file with the API key; without it the key comes from the variable MEDFEED_KEY
    #[arg(long, env = "MEDFEED_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Trust the certificates in this PEM file instead of the system's, also for PostgreSQL: authorities, or the
    /// server's own self-signed certificate
    #[arg(long, env = "MEDFEED_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Send the key over plain HTTP to another machine: only in a network where nobody can listen in
    #[arg(long)]
    plain_http: bool,
    /// Keep running and follow the changes, instead of catching up once
    #[arg(long)]
    follow: bool,
    /// How often --follow asks for changes. If the service supports waiting, a change arrives sooner: at once with one
    /// dataset, and with two within half of this time, 45 s at most. At least 10ms
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_interval)]
    every: Duration,
    /// Compare the copy with the service, and repair it; --follow does this once a day
    #[arg(long)]
    verify: bool,
    /// Load everything again; this also replaces a copy of another service, and makes missing tables and columns again
    #[arg(long)]
    reload: bool,
}

pub fn run(common: &Common, args: PullArgs) -> Result<ExitCode> {
    let (place, client) =
        match CopyLocation::of(&args.to).and_then(|place| Ok((place, client(&args)?))) {
            Ok(both) => both,
            Err(message) => {
                print_error(common.json, &message);
                return Ok(ExitCode::from(2));
            }
        };
    let Err(error) = pull(common, &args, place, &client) else {
        return Ok(ExitCode::SUCCESS);
    };
    print_error(common.json, &error.to_string());
    Ok(ExitCode::from(error.exit_code()))
}

/// Builds the client from the arguments.
fn client(args: &PullArgs) -> Result<PullClient, String> {
    if args.server.is_exposed() && !args.plain_http {
        return Err(format!(
            "{} is plain HTTP, and the key must not travel in plain text; use an https address, or accept plain HTTP with \
             --plain-http (the variable MEDFEED_PLAIN_HTTP is for servers, and does not permit it)",
            args.server
        ));
    }
    let key = match (&args.key_file, std::env::var("MEDFEED_KEY")) {
        (Some(file), _) => key_in(file)?,
        (None, Ok(key)) if !key.is_empty() => key.trim().to_owned(),
        _ => {
            return Err(
                "there is no API key: the variable `MEDFEED_KEY` is empty or not set; set it, or add --key-file".to_owned(),
            );
        }
    };
    PullClient::new(
        args.server.clone(),
        &key,
        args.ca_file.as_deref(),
        ReadLimits::default(),
    )
}

fn pull(
    common: &Common,
    args: &PullArgs,
    place: CopyLocation,
    client: &PullClient,
) -> Result<(), PullError> {
    let server = client.server();
    let reload = args.reload;
    let mut copy: Box<dyn PullTarget> = match place {
        CopyLocation::Postgres(mut address) => {
            address.trust(args.ca_file.as_deref());
            Box::new(PostgresCopy::open(*address, server, reload)?)
        }
        CopyLocation::Folder(folder) => Box::new(FolderCopy::open(&folder, server, reload)?),
        CopyLocation::Sqlite(file) => Box::new(SqliteCopy::open(file, server, reload)?),
    };
    let are_named = !args.dataset.is_empty();
    let mut datasets = Dataset::ALL.to_vec();
    datasets.retain(|dataset| !are_named || args.dataset.contains(dataset));
    let plan = Plan {
        datasets,
        are_named,
        verify: args.verify,
    };
    let bar = common.progress_bar();
    if let Ok(style) = ProgressStyle::with_template("loading {msg} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    let reporter = PullReporter {
        json: common.json,
        bar,
    };
    let mut report = |report: Report| reporter.report(&report, args.follow);
    let mut pull = Pull {
        server: client,
        copy: &mut *copy,
        events: &reporter,
    };
    if args.follow {
        match pull.follow(&plan, args.every, &mut report)? {}
    } else {
        pull.once(&plan, &mut report)
    }
}

/// Prints text, progress and notes for people, or changes as JSON for scripts.
struct PullReporter {
    json: bool,
    /// It is drawn only on a terminal.
    bar: ProgressBar,
}

impl PullReporter {
    fn report(&self, report: &Report, follows: bool) {
        let Report {
            dataset,
            done,
            verdict,
            records,
        } = report;
        let records = counted(*records, "record");
        let mut text = match (done.is_loaded, done.entries) {
            (true, _) => format!("{dataset}: {records} loaded"),
            (false, 0) if follows && verdict.is_none() => return,
            (false, 0) => format!("{dataset}: nothing new, {records}"),
            (false, entries) => format!(
                "{dataset}: {} applied, {records}",
                counted(entries, "change")
            ),
        };
        text += match verdict {
            Some(Verdict::Sound) => "; equal to the service's",
            Some(Verdict::Repaired(_)) => "; repaired, and equal to the service's now",
            None => "",
        };
        if !self.json {
            print_line(&text);
        }
    }
}

impl Events for PullReporter {
    fn takes_changes(&self) -> bool {
        self.json
    }

    fn change(&self, dataset: Dataset, json: &str) -> Result<(), PullError> {
        if !self.json {
            return Ok(());
        }
        let line = format!(
            "{{\"dataset\":\"{dataset}\",\"entry\":{}}}\n",
            printable_json(json)
        );
        let written = stdout().lock().write_all(line.as_bytes());
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => PullError::OutputClosed,
            _ => PullError::Unwritable(format!(
                "cannot write to standard output ({error}); changes that were not printed are not saved"
            )),
        })
    }

    fn progress(&self, dataset: Dataset, records: u64, of: u64) {
        // A finished bar draws nothing more.
        if self.bar.is_finished() {
            self.bar.reset();
        }
        self.bar.set_message(dataset.as_str());
        self.bar.set_length(of);
        self.bar.set_position(records);
        if records >= of {
            self.bar.finish_and_clear();
        }
    }

    fn note(&self, text: &str) {
        note(&Printable(text).to_string());
    }
}
