//! `medfeed publish`.

use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use sd_notify::NotifyState;
use serde_json::json;

use crate::bucket::BucketUrl;
use crate::cli::arguments::{parse_duration, parse_interval, parse_switch};
use crate::cli::commands::serve::{AdminArgs, LogArgs, NO_RUNTIME};
use crate::cli::common::{Common, NOT_PUBLISHED, SealArgs};
use crate::cli::output::{counted, describe_error, print_error, print_line};
use crate::model::{Joined, Printable};
use crate::replicate::entry::EntryHeader;
use crate::replicate::publisher::lock::user_part;
use crate::replicate::publisher::progress::{PublisherProgress, PublisherStatus};
use crate::replicate::publisher::publication_status::{PublicationStatus, Waiting};
use crate::replicate::publisher::{PublishError, PublishSettings, Publisher};
use crate::serve::operators::admin;
use crate::serve::publishing::MonitoredPublisher;
use crate::serve::{StopSignals, notify, run_to_end};
use crate::store::panics::{self, CaughtPanic};

/// How long a fenced publisher keeps running, so that monitoring can see its status.
const FENCED_GRACE: Duration = Duration::from_secs(120);

/// Arguments of `medfeed publish`.
#[derive(Debug, Args)]
pub struct PublishArgs {
    /// The bucket: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER. Credentials and
    /// endpoints come from the environment (AWS_*, GOOGLE_*, AZURE_*), else from the machine's role
    #[arg(value_name = "URL", env = "MEDFEED_PUBLISH_URL")]
    bucket: BucketUrl,
    /// Publish the commits that wait, then exit; --admin-listen is not served
    #[arg(long, conflicts_with = "status")]
    once: bool,
    /// The shortest time between two entries of the log; commits within this time become one entry
    #[arg(long, env = "MEDFEED_EVERY", value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    every: Duration,
    /// How far back any point in time can be restored from the bucket; older objects are deleted. At least a day is
    /// kept
    #[arg(long, env = "MEDFEED_KEEP", value_name = "TIME", default_value = "30d", value_parser = parse_duration)]
    keep: Duration,
    /// Write a whole state, from which replicas start, at least this often if there are commits, and sooner if there
    /// are many
    #[arg(long, env = "MEDFEED_STATE_EVERY", value_name = "TIME", default_value = "24h", value_parser = parse_duration)]
    state_every: Duration,
    /// How often to write the heartbeat, which shows replicas where the log ends. Twice as often, the publisher checks
    /// whether another one took over. At least 10ms
    #[arg(long, env = "MEDFEED_HEARTBEAT", value_name = "TIME", default_value = "40s", value_parser = parse_interval)]
    heartbeat: Duration,
    #[command(flatten)]
    seal: SealArgs,
    /// Continue a log whose end this database does not contain, with the whole state of the database; commits that only
    /// the log has are lost
    #[arg(long, conflicts_with = "status")]
    start_over: bool,
    /// Show the end of the log, the newest states, and waiting commits; publish nothing
    #[arg(long)]
    status: bool,
    #[command(flatten)]
    admin: AdminArgs,
    /// Allow an --admin-listen address that other machines can reach
    #[arg(long, env = "MEDFEED_PLAIN_HTTP", value_parser = parse_switch)]
    plain_http: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub fn run(common: &Common, args: PublishArgs) -> Result<ExitCode> {
    let log = args.seal.open_log(&args.bucket)?;
    if args.status {
        return match PublicationStatus::read(&common.db, &log) {
            Ok(status) => show(common, &args.bucket, &status),
            Err(error) => fail(common, error),
        };
    }
    let is_once = args.once;
    let admin = if is_once {
        AdminArgs::default()
    } else {
        args.admin
    };
    admin.refuse_plain_http(args.plain_http)?;
    let _log = args.log.start(if is_once { "warn" } else { "info" })?;
    let settings = PublishSettings {
        once: is_once,
        every: args.every,
        keep: args.keep,
        state_every: args.state_every,
        heartbeat: args.heartbeat,
        start_over: args.start_over,
        wait: common.wait,
    };
    let db = common.db.clone();
    let begun = format!("publishing {} to {}", db.display(), args.bucket);
    let bucket = Arc::clone(&log.bucket);
    let status = Arc::new(PublisherStatus::default());
    let publishing = MonitoredPublisher::new(&db, Arc::clone(&status));
    let work = move || {
        let mut publisher = Publisher::start(&db, bucket, settings, status)?;
        if is_once {
            return publisher.run(|| ());
        }
        print_line(&begun);
        publisher.run(|| notify(&[NotifyState::Ready]))
    };
    match run_to_end(publish(work, publishing, admin)).context(NO_RUNTIME)?? {
        Some(Ok(Ok(progress))) => done(common, &progress),
        Some(Ok(Err(error))) => fail(common, error),
        Some(Err(CaughtPanic { message, .. })) => {
            Err(anyhow!("publishing ended: {message}; start it again"))
        }
        None if is_once => Ok(ExitCode::from(NOT_PUBLISHED)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The end of a publisher.
type Ended = Result<Result<PublisherProgress, PublishError>, CaughtPanic>;

/// Publishes until the end of `work`; `None` after a signal.
async fn publish(
    work: impl FnOnce() -> Result<PublisherProgress, PublishError> + Send + 'static,
    publishing: MonitoredPublisher,
    admin: AdminArgs,
) -> Result<Option<Ended>> {
    let mut stopped = pin!(StopSignals::of_service()?.received());
    let admin = admin.listen().await?;
    let is_monitored = admin.is_some();
    if let Some(admin) = admin {
        tokio::spawn(admin::run(Arc::new(publishing), admin));
    }
    let (sender, ended) = tokio::sync::oneshot::channel();
    // A thread of its own, since calls of a bucket block. The process may end at any moment.
    thread::Builder::new()
        .name("publisher".to_owned())
        .spawn(move || {
            // After a signal there is no receiver.
            let _ = sender.send(panics::catch(work));
        })?;
    let ended = tokio::select! {
        ended = ended => ended.ok(),
        () = &mut stopped => None,
    };
    if let Some(Ok(Err(error))) = ended.as_ref().filter(|_| is_monitored)
        && error.is_fenced()
    {
        tracing::error!(
            "{error}. Exiting in {} s, so that monitoring can see this",
            FENCED_GRACE.as_secs()
        );
        // A signal ends it at once.
        let _ = tokio::time::timeout(FENCED_GRACE, stopped).await;
    }
    notify(&[NotifyState::Stopping]);
    Ok(ended)
}

fn done(common: &Common, progress: &PublisherProgress) -> Result<ExitCode> {
    let (slot, seq) = progress
        .log_end
        .map_or((0, 0), |(_, end)| (end.slot, end.head.seq));
    let entries = progress.entries;
    let what = match entries {
        0 => "Nothing new to publish".to_owned(),
        entries => format!("{} published", counted(entries, "entry")),
    };
    common.result(
        &json!({ "slot": slot, "seq": seq, "entries": entries }),
        format!("{what}; the log ends at slot {slot}, seq {seq}."),
    )
}

fn fail(common: &Common, error: PublishError) -> Result<ExitCode> {
    let code = error.exit_code();
    let error = match error {
        // Reported as for every command.
        PublishError::Store(error) => return Err(error.into()),
        error => anyhow::Error::new(error),
    };
    print_error(common.json, &describe_error(&error));
    Ok(ExitCode::from(code))
}

fn show(common: &Common, url: &BucketUrl, status: &PublicationStatus) -> Result<ExitCode> {
    let end = status.end.as_ref().map(|end| {
        json!({
            "database": end.id.to_string(),
            "slot": end.slot,
            "seq": end.seq,
            "at": end.at.to_string(),
            "who": user_part(&end.who),
            "entries_since_state": status.entries_since_state,
        })
    });
    let states = status
        .states
        .iter()
        .map(|(slot, at)| json!({ "slot": slot, "at": at.to_string() }));
    let json = json!({
        "url": url.to_string(),
        "end": end,
        "states": states.collect::<Vec<_>>(),
        "alive_at": status.alive_at.map(|at| at.to_string()),
        // `null` without the database.
        "published": status.waiting.map(|waiting| waiting == Waiting::Nothing),
        // `null` if a whole state is published next.
        "waiting_commits": match status.waiting {
            Some(Waiting::Nothing) => Some(0),
            Some(Waiting::Commits { count, .. }) => Some(count),
            _ => None,
        },
        "behind_s": status.waiting.and_then(Waiting::behind_s),
        "fenced": status.fenced,
        "unusable": status.unusable,
    });
    common.result(&json, text(common, url, status))
}

fn text(common: &Common, url: &BucketUrl, status: &PublicationStatus) -> String {
    let mut lines = match &status.end {
        None => vec![format!("Nothing is published in {url}.")],
        Some(end) => describe_log(url, status, end),
    };
    let db = common.db.display();
    lines.push(match status.waiting {
        None => format!("There is no database at {db} to compare with."),
        Some(Waiting::Nothing) => format!("Everything in {db} is published."),
        Some(Waiting::Commits { count, since, .. }) => {
            format!(
                "{db}: {} published yet; the oldest is from {since}.",
                match count {
                    1 => "1 commit is not".to_owned(),
                    count => format!("{count} commits are not"),
                }
            )
        }
        Some(Waiting::State) => format!("{db}: its whole state is not published yet."),
        Some(Waiting::Elsewhere) => {
            format!("{db} does not contain this end: it is another database, or another copy of it was published.")
        }
    });
    if let Some(by) = &status.fenced {
        lines.push(format!(
            "{db} is no longer published from here: {}.",
            Printable(by)
        ));
    }
    lines.extend(
        status
            .unusable
            .iter()
            .map(|reason| format!("{}.", Printable(reason))),
    );
    lines.join("\n")
}

/// Describes the end of the log, its heartbeat and its states.
fn describe_log(url: &BucketUrl, status: &PublicationStatus, end: &EntryHeader) -> Vec<String> {
    let EntryHeader {
        id, slot, seq, at, ..
    } = end;
    let who = Printable(user_part(&end.who));
    let since = counted(status.entries_since_state, "entry");
    let states = status.states.iter();
    let states = states
        .map(|(slot, at)| format!("slot {slot} at {at}"))
        .joined(", ");
    vec![
        format!(
            "{url} ends at slot {slot}, seq {seq}, published at {at} by {who}; database {id}."
        ),
        match &status.alive_at {
            Some(at) => format!("The publisher's last heartbeat: {at}."),
            None => "The publisher has left no heartbeat that can be read.".to_owned(),
        },
        match states.is_empty() {
            true => "There is no whole state, so new replicas cannot start; the next `medfeed publish` writes one."
                .to_owned(),
            false => format!("States, newest first: {states}; {since} since."),
        },
    ]
}
