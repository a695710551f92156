//! `medfeed demo`: serves real records from a temporary database, with licenses and keys, while a curator edits them.
//!
//! The curator makes a small edit every few seconds. The edits cycle through the sample's conferences and undo each other, so a demo can run for days: records that left
//! the narrow license enter it again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use tokio::net::TcpListener;

use crate::api::{Settings, SnapshotSource};
use crate::cli::arguments::parse_listen;
use crate::cli::commands::serve::{LogArgs, NO_RUNTIME, cannot_listen};
use crate::cli::common::Common;
use crate::cli::output::print_line;
use crate::explorer::{Demo, DemoEdit, DemoLicense};
use crate::import::{self, MergeOptions, ReadOptions, Source, SourceOptions};
use crate::model::{ConferenceFields, Curated, Dataset, Id, Joined, PerDataset, Scope, ShellWord};
use crate::query::sync_token;
use crate::serve::connection::address::TrustedProxies;
use crate::serve::watching::background::BackgroundTask;
use crate::serve::{Limits, Setup, StopSignals, Watcher, run_to_end, serve};
use crate::store::write::licensing::KeySettings;
use crate::store::{Batch, Writer};
use crate::token::Sealer;
use crate::view::View;

/// Arguments of `medfeed demo`.
#[derive(Args)]
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
        let introduction = introduce(&url, &database, &sample, !args.quiet_data)?;
        // The curator ends with the server, before the folder is removed.
        let _curating = if args.quiet_data {
            None
        } else {
            let curator = Curator {
                database,
                wait: common.wait,
                narrow: sample.narrow,
                others: sample.others,
                turn: 0,
            };
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
            print_line(&format!("listening on {url}\n{introduction}"))
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
    match requested {
        Some(address) => TcpListener::bind(address)
            .await
            .map_err(|error| cannot_listen(address, error)),
        None => {
            let addresses = [8080, 0].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
            TcpListener::bind(&addresses[..])
                .await
                .context("cannot listen on any port of 127.0.0.1")
        }
    }
}

/// The first lines of a demo: requests to paste into a shell. URLs, keys and tokens contain no quotes.
fn introduce(url: &str, database: &Path, sample: &DemoData, curating: bool) -> Result<String> {
    let DemoData {
        full_key,
        narrow_key,
        records,
        conference_id,
        token,
        ..
    } = sample;
    let [program, database] = [&*std::env::current_exe()?, database]
        .map(|path| ShellWord(&path.to_string_lossy()).to_string());
    let curator = if curating {
        ", while a curator edits the data"
    } else {
        ""
    };
    Ok(format!(
        "
Open {url}/ in a browser: two licenses side by side{curator}.

Serving {} conferences and {} journals from a temporary database. Try in another terminal:

  # the size of the datasets (no key needed)
  curl '{url}/v1/status'

  # the first two conferences of 2026 in the United States
  curl -H 'Authorization: Bearer {full_key}' '{url}/v1/conferences?year=2026&country=United%20States&limit=2'

  # one record
  curl -H 'Authorization: Bearer {full_key}' '{url}/v1/conferences/{conference_id}'

  # journals with \"oncol\" in their name
  curl -H 'X-API-Key: {full_key}' '{url}/v1/journals?q=oncol&limit=3'

  # a full export, and the sync token to continue from
  curl -H 'X-API-Key: {full_key}' -D headers.txt -o conferences.jsonl.gz '{url}/v1/exports/conferences'
  grep -i x-sync-token headers.txt

  # the change feed: everything that changed since a sync token; the answer contains the next one
  curl -H 'X-API-Key: {full_key}' '{url}/v1/conferences/changes?since={token}'

  # everything that changed since a date
  curl -H 'X-API-Key: {full_key}' '{url}/v1/conferences/changes?updated_since=2020-01-01&limit=2'

  # another license, which shows only {NARROW_AREA}
  curl -H 'X-API-Key: {narrow_key}' '{url}/v1/reference/therapy-areas'

The API reference is at {url}/docs. Change the data while it is served, then request the feed again:

  echo '{{\"id\": {conference_id}, \"venue\": \"Hall 7\"}}' |
    {program} --db {database} import --dataset conferences -

Ctrl-C stops the server and removes the database.",
        records.conferences, records.journals
    ))
}

/// The sample data of the folder `data`, embedded in the program.
const SAMPLE: [(&str, &[u8]); 4] = [
    (
        "organizations.csv",
        include_bytes!("../../../../data/organizations.csv"),
    ),
    ("tags.csv", include_bytes!("../../../../data/tags.csv")),
    (
        "journals.csv",
        include_bytes!("../../../../data/journals.csv"),
    ),
    (
        "conferences.jsonl",
        include_bytes!("../../../../data/conferences.jsonl"),
    ),
];

/// The therapy area of the second, narrower license.
const NARROW_AREA: &str = "Oncology";

const FULL_LICENSE: &str = "demo";
const NARROW_LICENSE: &str = "demo-oncology";

/// A conference with its therapy areas.
type Edited = (Id, Vec<String>);

/// The values in the printed commands, and the conferences to edit.
struct DemoData {
    full_key: String,
    narrow_key: String,
    records: PerDataset<u64>,
    /// The conference in the printed commands, which is never edited.
    conference_id: Id,
    /// A sync token of the conferences, for the full license.
    token: String,
    /// The conferences to edit, split into those of the narrow license and the others.
    narrow: Vec<Edited>,
    others: Vec<Edited>,
}

impl DemoData {
    /// The licenses for the explorer.
    fn licenses(&self) -> Vec<DemoLicense> {
        let narrow = format!("the conferences in {NARROW_AREA}, and no journal");
        [
            (FULL_LICENSE, "everything".to_owned(), &self.full_key),
            (NARROW_LICENSE, narrow, &self.narrow_key),
        ]
        .map(|(name, shows, key)| DemoLicense {
            name,
            shows,
            key: key.clone(),
        })
        .into()
    }
}

/// Creates the database, with its licenses and keys.
fn load(folder: &Path, database: &Path, wait: Duration) -> Result<DemoData> {
    let files = folder.join("data");
    std::fs::create_dir(&files)?;
    for (name, content) in SAMPLE {
        std::fs::write(files.join(name), content)?;
    }
    let sources = Source::find(&[files], SourceOptions::default())?;
    let rows = import::read_sources(&sources, &ReadOptions::default())?;
    let writer = Writer::open_or_create(database, wait)?;
    let mut edit = writer.begin()?;
    let batch = import::merge(rows, &edit.base()?, &MergeOptions::default())?.batch;
    edit.apply(&batch)?;
    edit.describe("the sample data");
    edit.commit()?;

    let mut edit = writer.begin()?;
    let full = Scope {
        datasets: Dataset::ALL.into(),
        ..Scope::nothing()
    };
    let narrow = Scope {
        datasets: [Dataset::Conferences].into(),
        therapy_areas: Some([NARROW_AREA.to_owned()].into()),
        ..Scope::nothing()
    };
    edit.set_license(FULL_LICENSE, full, None)?;
    edit.set_license(NARROW_LICENSE, narrow, None)?;
    let full_key = edit.create_key(FULL_LICENSE, KeySettings::default())?.0;
    let narrow_key = edit.create_key(NARROW_LICENSE, KeySettings::default())?.0;
    edit.describe("the licenses and keys of the demo");
    edit.commit()?;

    let snapshot = writer.snapshot()?;
    let license = snapshot
        .find_license_named(FULL_LICENSE)
        .context("the demo's license does not exist")?;
    let Ok(view) = View::open(&snapshot, license, Dataset::Conferences) else {
        bail!("the demo's license shows nothing")
    };
    let conferences = batch.conferences.values().flatten();
    let conference_id = conferences
        .clone()
        .rfind(|conference| conference.fields().abbv.as_deref() == Some("ASCO"))
        .map_or(Id::MIN, Curated::id);
    // Messages need a short name.
    let edited = conferences.filter(|conference| {
        conference.id() != conference_id && conference.fields().abbv.is_some()
    });
    let (narrow, others) = edited
        .map(|conference| (conference.id(), conference.fields().therapy_areas.to_vec()))
        .partition(|(_, areas)| areas.iter().any(|area| area == NARROW_AREA));
    Ok(DemoData {
        full_key: full_key.reveal().to_owned(),
        narrow_key: narrow_key.reveal().to_owned(),
        records: snapshot.totals().records,
        conference_id,
        token: Sealer::new(snapshot.secret()).seal_sync_token(&sync_token(&view, None)?),
        narrow,
        others,
    })
}

/// The time between two edits, long enough to read the last one.
const EDIT_EVERY: Duration = Duration::from_secs(4);

const EDITS_PER_ROUND: usize = 4;

/// Makes the edits.
struct Curator {
    database: PathBuf,
    wait: Duration,
    narrow: Vec<Edited>,
    others: Vec<Edited>,
    /// The number of edits so far.
    turn: usize,
}

impl Curator {
    /// Edits every few seconds, and announces each edit, until the returned handle is dropped.
    fn start(mut self, demo: Arc<Demo>, watcher: Arc<Watcher>) -> std::io::Result<BackgroundTask> {
        BackgroundTask::spawn("curator", move |stopped| {
            while stopped.recv_timeout(EDIT_EVERY) == Err(RecvTimeoutError::Timeout) {
                match self.edit() {
                    Ok(None) => {}
                    Ok(Some((edit, seq))) => {
                        // An announced edit is in the feed already.
                        watcher.catch_up(Instant::now(), &|snapshot| snapshot.commit().seq >= seq);
                        print_line(&format!("{}  {}", edit.at, edit.words));
                        demo.add_edit(edit);
                    }
                    Err(error) => tracing::warn!("the demo skipped an edit: {error:#}"),
                }
            }
        })
    }

    /// Makes the next edit and returns it with the seq of its commit; `None` if another command changed the data. The
    /// first edits of a round show the most.
    fn edit(&mut self) -> Result<Option<(DemoEdit, u64)>> {
        let round = self.turn / EDITS_PER_ROUND;
        let step = self.turn % EDITS_PER_ROUND;
        self.turn += 1;
        // Adjacent conferences in the sample are editions of the same meeting, so the offsets differ.
        let (from, offset) = match step {
            0 => (&self.narrow, 2),
            2 => (&self.others, 7),
            _ => (&self.narrow, 9),
        };
        let (id, areas) = &from[(round * 5 + offset) % from.len()];
        let id = *id;
        // The lock is held for this edit only, so that the printed import does not wait.
        let writer = Writer::open(&self.database, self.wait)?;
        let mut edit = writer.begin()?;
        let Some(stored) = edit.base()?.find_stored::<ConferenceFields>(id)? else {
            return Ok(None);
        };
        let mut fields = stored.into_fields();
        let did = match step {
            0 | 2 => move_venue(&mut fields, round),
            1 => leave_area(&mut fields),
            _ => {
                fields.therapy_areas.clone_from(areas);
                format!("was filed under {NARROW_AREA} again")
            }
        };
        let year = fields.year.map(|year| year.to_string());
        let name = fields.abbv.iter().chain(&year).joined(" ");
        let words = format!("{name} {did}.");
        let edited = Curated::new(id, fields).map_err(|faults| anyhow!("{faults:?}"))?;
        edit.apply(&Batch {
            conferences: [(id, Some(edited))].into(),
            ..Batch::default()
        })?;
        if edit.is_empty() {
            return Ok(None);
        }
        edit.describe(words.clone());
        edit.commit()?;
        let commit = writer.snapshot()?.commit();
        let edit = DemoEdit {
            number: self.turn as u64,
            at: commit.time.to_string(),
            words,
            dataset: Dataset::Conferences,
            ids: vec![id.get()],
        };
        Ok(Some((edit, commit.seq)))
    }
}

/// Moves the conference to another hall.
fn move_venue(fields: &mut ConferenceFields, round: usize) -> String {
    let hall = format!("Hall {}", round % 9 + 1);
    let words = format!("moved to {hall}");
    fields.venue = Some(hall);
    words
}

/// Removes the narrow license's area from a conference.
fn leave_area(fields: &mut ConferenceFields) -> String {
    fields.therapy_areas.retain(|area| area != NARROW_AREA);
    if fields.therapy_areas.is_empty() {
        fields.therapy_areas.push("Hematology".to_owned());
    }
    format!(
        "moved from {NARROW_AREA} to {}",
        fields.therapy_areas.join(" and ")
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

#[cfg(test)]
mod edits_tests {
    use super::*;

    #[test]
    fn edits_do_not_run_out() {
        const ROUNDS: usize = 14;
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("demo.redb");
        let wait = Duration::from_secs(30);
        let sample = load(folder.path(), &database, wait).unwrap();
        let mut curator = Curator {
            database,
            wait,
            narrow: sample.narrow,
            others: sample.others,
            turn: 0,
        };
        for turn in 0..ROUNDS * EDITS_PER_ROUND {
            let (edit, _) = curator
                .edit()
                .unwrap()
                .unwrap_or_else(|| panic!("turn {turn} edits nothing"));
            assert!(
                !edit.ids.is_empty() && !edit.ids.contains(&sample.conference_id.get()),
                "turn {turn}: {edit:?}"
            );
        }
    }
}
