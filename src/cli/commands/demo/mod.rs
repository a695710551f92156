//! `medfeed demo`: serves real records from a temporary database, with licenses and keys, while a curator edits them.

mod edits;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use tokio::net::TcpListener;

use self::edits::{Curator, DemoData, NARROW_AREA, load};
use crate::api::Settings;
use crate::cli::arguments::parse_listen;
use crate::cli::commands::serve::{LogArgs, NO_RUNTIME, cannot_listen};
use crate::cli::common::Common;
use crate::cli::output::print_line;
use crate::explorer::Demo;
use crate::model::ShellWord;
use crate::serve::connection::address::TrustedProxies;
use crate::serve::{Limits, Setup, StopSignals, Watcher, run_to_end, serve};

/// Arguments of `medfeed demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The address to listen on [default: 127.0.0.1:8080, or a free port if that one is in use]
    #[arg(long, env = "MEDFEED_LISTEN", value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    listen: Option<SocketAddr>,
    /// Do not edit the data. Without this, a simulated curator edits a record every few seconds
    #[arg(long)]
    quiet_data: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub fn run(common: &Common, args: DemoArgs) -> Result<ExitCode> {
    let log = args.log.start("warn")?;
    run_to_end(async {
        // Caught before there is a folder, so that no signal leaves it behind.
        let stop = StopSignals::of_terminal()?;
        // The folder and its database are removed when the program ends.
        let folder = tempfile::Builder::new().prefix("medfeed-demo-").tempdir()?;
        let database = folder.path().join("demo.redb");
        let sample = load(folder.path(), &database, common.wait)?;
        let watcher = Arc::new(Watcher::open(&database, Duration::ZERO)?);
        let listener = listen(args.listen).await?;
        let url = url_of(listener.local_addr()?);
        let mut settings = Settings::of(&url);
        let demo = Arc::new(Demo::new(sample.licenses(), !args.quiet_data));
        settings.demo = Some(Arc::clone(&demo));
        let program = std::env::current_exe()?;
        let program = program.display().to_string();
        let database_path = database.display().to_string();
        let commands = format!("{} --db {}", ShellWord(&program), ShellWord(&database_path));
        // The curator ends with the server, before the folder is removed.
        let _curating = if args.quiet_data {
            None
        } else {
            let curator = Curator::new(&database, common.wait, sample.conference_id)?;
            Some(curator.start(demo, Arc::clone(&watcher))?)
        };
        let setup = Setup {
            listener,
            watcher,
            settings,
            proxies: TrustedProxies::default(),
            tls: None,
            limits: Limits::default(),
            admin: None,
            usage: None,
            lost_lines: log.lost(),
            shares_address: false,
            stop,
        };
        serve(setup, move || {
            print_line(&format!("listening on {url}"));
            print_line(&introduce(&url, &commands, &sample, !args.quiet_data));
        })
        .await?;
        Ok(ExitCode::SUCCESS)
    })
    .context(NO_RUNTIME)?
}

/// The URL of an address for a browser on this machine.
fn url_of(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("http://localhost:{}", address.port())
    } else {
        format!("http://{address}")
    }
}

async fn listen(requested: Option<SocketAddr>) -> Result<TcpListener> {
    if let Some(address) = requested {
        return TcpListener::bind(address)
            .await
            .map_err(|error| cannot_listen(address, error));
    }
    match TcpListener::bind("127.0.0.1:8080").await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind("127.0.0.1:0")
            .await
            .context("cannot listen on any port of 127.0.0.1"),
    }
}

fn introduce(url: &str, commands: &str, sample: &DemoData, curating: bool) -> String {
    let DemoData {
        full_key,
        narrow_key,
        conferences,
        journals,
        conference_id,
        token,
    } = sample;
    let quoted_url = |path: &str| ShellWord(&format!("{url}/v1/{path}")).to_string();
    let bearer = ShellWord(&format!("Authorization: Bearer {full_key}")).to_string();
    let header = ShellWord(&format!("X-API-Key: {full_key}")).to_string();
    let curator = if curating {
        ", while a curator edits the data"
    } else {
        ""
    };
    format!(
        "
Open {url}/ in a browser: two licenses side by side{curator}.

Serving {conferences} conferences and {journals} journals from a temporary database. Try in another terminal:

  # the size of the datasets (no key needed)
  curl {status}

  # the first two conferences of 2026 in the United States
  curl -H {bearer} {list}

  # one record
  curl -H {bearer} {record}

  # journals with \"oncol\" in their name
  curl -H {header} {search}

  # a full export, and the sync token to continue from
  curl -H {header} -D headers.txt -o conferences.jsonl.gz {export}
  grep -i x-sync-token headers.txt

  # the change feed: everything that changed since a sync token; the answer contains the next one
  curl -H {header} {feed}

  # everything that changed since a date
  curl -H {header} {feed_since}

  # another license, which shows only {NARROW_AREA}
  curl -H {narrow_header} {areas}

The API reference is at {url}/docs. Change the data while it is served, then request the feed again:

  echo '{{\"id\": {conference_id}, \"venue\": \"Hall 7\"}}' |
    {commands} import --dataset conferences -

Ctrl-C stops the server and removes the database.",
        status = quoted_url("status"),
        list = quoted_url("conferences?year=2026&country=United%20States&limit=2"),
        record = quoted_url(&format!("conferences/{conference_id}")),
        search = quoted_url("journals?q=oncol&limit=3"),
        export = quoted_url("exports/conferences"),
        feed = quoted_url(&format!("conferences/changes?since={token}")),
        feed_since = quoted_url("conferences/changes?updated_since=2020-01-01&limit=2"),
        areas = quoted_url("reference/therapy-areas"),
        narrow_header = ShellWord(&format!("X-API-Key: {narrow_key}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listen_address_has_a_url() {
        let cases = [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("0.0.0.0:8080", "http://localhost:8080"),
            ("[::]:8080", "http://localhost:8080"),
            ("[::1]:80", "http://[::1]:80"),
        ];
        for (address, expected) in cases {
            assert_eq!(url_of(address.parse().unwrap()), expected);
        }
    }
}
