//! `medfeed serve`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::Common;
use super::arguments::{parse_duration, parse_text};
use super::output::print_line;
use crate::api::{Service, Settings};
use crate::serve::{Follow, Limits, Server};

/// Arguments of `medfeed serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Where to listen; port 0 picks a free one
    #[arg(long, env = "MEDFEED_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Serve plain HTTP on an address that other machines can reach: only behind a proxy that speaks HTTPS
    #[arg(long, env = "MEDFEED_PLAIN_HTTP", value_parser = clap::builder::FalseyValueParser::new())]
    plain_http: bool,
    /// The URL that callers see, without /v1 [default: the listen address]
    #[arg(long, env = "MEDFEED_PUBLIC_URL", value_name = "URL", value_parser = parse_url)]
    public_url: Option<String>,
    /// Where the error pages are: URL/errors/CODE [default: this server's own, PUBLIC_URL/docs]
    #[arg(long, env = "MEDFEED_DOCS_URL", value_name = "URL", value_parser = parse_url)]
    docs_url: Option<String>,
    /// Hold new commits back until none has come for this long, so that a mistake can be corrected first
    #[arg(long, env = "MEDFEED_CHANGE_DELAY", value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    change_delay: Duration,
    #[command(flatten)]
    log: LogArgs,
}

/// How a server logs.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// How log lines look
    #[arg(long, env = "MEDFEED_LOG_FORMAT", value_name = "FORMAT", default_value = "pretty")]
    log_format: LogFormat,
    /// What is logged: error, warn, info, debug, or a tracing filter [default: info; demo: warn]
    #[arg(long, env = "MEDFEED_LOG", value_name = "FILTER", value_parser = parse_text)]
    log: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// For people
    Pretty,
    /// One JSON object per line
    Json,
}

impl LogArgs {
    /// Sends log lines to standard error from now on.
    pub(super) fn start(&self, default: &str) -> anyhow::Result<()> {
        let filter = EnvFilter::try_new(self.log.as_deref().unwrap_or(default)).context("--log is no filter")?;
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
        match self.log_format {
            LogFormat::Pretty => lines.init(),
            LogFormat::Json => lines.json().flatten_event(true).init(),
        }
        Ok(())
    }
}

fn parse_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains([' ', '?', '#', '"', '<']) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err("write an absolute URL without query, such as https://feed.example.org".to_owned()),
    }
}

pub(super) fn run(common: &Common, args: ServeArgs) -> anyhow::Result<ExitCode> {
    args.log.start("info")?;
    if !args.listen.ip().is_loopback() && !args.plain_http {
        bail!(
            "{} can be reached from other machines, and keys must not travel in plain text; listen on 127.0.0.1 behind a proxy that speaks HTTPS, or accept plain HTTP with --plain-http",
            args.listen
        );
    }
    let follow = Arc::new(Follow::open(&common.db, args.change_delay)?);
    runtime()?.block_on(async {
        let listener = TcpListener::bind(args.listen)
            .await
            .with_context(|| format!("{} cannot be listened on; is another server running there?", args.listen))?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut settings = Settings::of(args.public_url.as_deref().unwrap_or(&url));
        if let Some(docs_url) = args.docs_url {
            settings.docs_url = docs_url;
        }
        serve(listener, follow, settings, || print_line(&format!("listening on {url}"))).await
    })
}

pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("the runtime could not be started")
}

/// Serves until SIGTERM or Ctrl-C; calls `ready` once connections are taken.
pub(super) async fn serve(
    listener: TcpListener,
    follow: Arc<Follow>,
    settings: Settings,
    ready: impl FnOnce(),
) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let _following = follow.start()?;
    let service = Arc::new(Service::new(settings, follow));
    let server = Server::new(listener, service, Limits::default());
    ready();
    let cut_off = server
        .run(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping: finishing what is in flight");
        })
        .await;
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "the drain time is over; connections were cut off");
    }
    Ok(ExitCode::SUCCESS)
}
