//! `medfeed serve`, and `medfeed health`: the health check of a container or a systemd unit.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use ipnet::IpNet;
use tokio::net::TcpListener;
use tracing_subscriber::EnvFilter;

use crate::api::Settings;
use crate::api::answers::DEFAULT_MAX_BYTES;
use crate::api::browsers::{Cors, Origin};
use crate::bucket::BucketUrl;
use crate::cli::arguments::{
    parse_contact, parse_duration, parse_filter, parse_interval, parse_listen, parse_public_url,
    parse_switch, parse_text, parse_url,
};
use crate::cli::common::{Common, SealArgs, require_folder};
use crate::cli::output::{can_draw, print_line};
use crate::model::{Printable, ShellWord, parse_network};
use crate::replicate::replica::{Replica, ReplicaStatus};
use crate::serve::connection::address::TrustedProxies;
use crate::serve::connection::tls::Tls;
use crate::serve::connection::{listen, resources};
use crate::serve::operators::admin::AdminSetup;
use crate::serve::operators::health::Probe;
use crate::serve::operators::log::Log;
use crate::serve::operators::usage::Usage;
use crate::serve::{Limits, Setup, StopSignals, Watcher, run_to_end, serve};
use crate::store::StoreError;
use crate::store::replication::read_replica;

/// The default address of a server.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// Arguments of `medfeed serve`.
#[derive(Args)]
pub struct ServeArgs {
    /// The address to listen on. A port alone means 127.0.0.1, port 0 picks a free port. A socket passed by systemd
    /// takes precedence [default: 127.0.0.1:8080]
    #[arg(long, env = "MEDFEED_LISTEN", value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    listen: Option<SocketAddr>,
    /// The certificate chain for HTTPS, in PEM; reloaded when it changes, or on SIGHUP
    #[arg(
        long,
        env = "MEDFEED_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key"
    )]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(
        long,
        env = "MEDFEED_TLS_KEY",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    tls_key: Option<PathBuf>,
    /// Serve plain HTTP on an address that other machines can reach: only behind a proxy that speaks HTTPS
    #[arg(long, env = "MEDFEED_PLAIN_HTTP", value_parser = parse_switch)]
    plain_http: bool,
    /// Start next to an older server on the same address, for a restart without downtime; both need this option
    #[arg(long, env = "MEDFEED_REUSE_PORT", value_parser = parse_switch)]
    reuse_port: bool,
    /// The URL that callers see, without /v1 [default: the listen address]
    #[arg(long, env = "MEDFEED_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    public_url: Option<String>,
    /// The URL of the documentation; its error pages are URL/errors/CODE [default: this server's, PUBLIC_URL/docs]
    #[arg(long, env = "MEDFEED_DOCS_URL", value_name = "URL", value_parser = parse_url)]
    docs_url: Option<String>,
    /// Where customers reach the operator: a mail address, or the URL of a page. The documentation, the OpenAPI document
    /// and the page at / show it
    #[arg(long, env = "MEDFEED_CONTACT", value_name = "MAIL|URL", value_parser = parse_contact)]
    contact: Option<String>,
    /// Trust the proxy with this address or CIDR to name the caller's address; repeatable
    #[arg(long, env = "MEDFEED_TRUSTED_PROXY", value_name = "CIDR", value_delimiter = ',', value_parser = |text: &str| parse_network(text.trim()))]
    trusted_proxy: Vec<IpNet>,
    /// Allow browser applications of this origin (scheme, host and port) to call the API, or * for all; repeatable
    /// [default: none]
    #[arg(long, env = "MEDFEED_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',', value_parser = |text: &str| text.trim().parse::<Origin>())]
    cors_origin: Vec<Origin>,
    /// The header in which trusted proxies name the caller: X-Forwarded-For, or Forwarded (RFC 7239). The other one is
    /// ignored
    #[arg(long, env = "MEDFEED_FORWARDED_HEADER", value_name = "HEADER", default_value = X_FORWARDED_FOR,
          value_parser = [X_FORWARDED_FOR, FORWARDED])]
    forwarded_header: String,
    #[command(flatten)]
    admin: AdminArgs,
    /// Hold back new commits until none has arrived for this long, so that you can correct a mistake first. Commits
    /// that follow each other are held back for at most five times as long
    #[arg(long, env = "MEDFEED_CHANGE_DELAY", value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    change_delay: Duration,
    /// Answer 503 when a replica has not seen the end of the log for this long, or when another publisher took over
    /// this long ago. Keys may have been revoked meanwhile
    #[arg(long, env = "MEDFEED_MAX_STALENESS", value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
    max_staleness: Duration,
    /// Create an empty database if there is none, so that the server can start before the first import
    #[arg(long, env = "MEDFEED_CREATE", value_parser = parse_switch)]
    create: bool,
    /// How long open requests may take after SIGTERM or Ctrl-C
    #[arg(long, env = "MEDFEED_DRAIN_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    drain_timeout: Duration,
    /// The most memory for finished answers, exports included, in bytes. Others are made again on demand
    #[arg(long, env = "MEDFEED_CACHE_BYTES", value_name = "N", default_value_t = DEFAULT_MAX_BYTES)]
    cache_bytes: u64,
    #[command(flatten)]
    log: LogArgs,
    /// Serve a replica of the database that `medfeed publish` publishes into this bucket: s3://BUCKET/PREFIX, gs://,
    /// az:// or file:///FOLDER. --db is the replica's file, created if it does not exist
    #[arg(
        long,
        env = "MEDFEED_FROM",
        value_name = "URL",
        help_heading = "Replica"
    )]
    from: Option<BucketUrl>,
    /// How often to look for new commits in the bucket. At least 10ms
    #[arg(long, env = "MEDFEED_POLL", value_name = "TIME", default_value = "1s", value_parser = parse_interval,
          help_heading = "Replica")]
    poll: Duration,
    #[command(flatten, next_help_heading = "Replica")]
    seal: SealArgs,
}

impl ServeArgs {
    /// Opens or loads the replica; `None` without `--from`.
    fn open_replica(&self, common: &Common) -> Result<Option<Replica>> {
        let Some(url) = &self.from else {
            return Ok(None);
        };
        require_folder(&common.resolved_db())?;
        let log = self.seal.open_log(url)?;
        if self.seal.seal_key.is_none() {
            tracing::warn!(
                "the bucket is not sealed: anyone who can read it sees all records, and anyone who can write to it can create API keys; run publisher and replicas with --seal-key FILE"
            );
        }
        let status = Arc::new(ReplicaStatus::new(self.max_staleness));
        Ok(Some(Replica::start(log, &common.db, status, &|| true)?))
    }

    /// Loads the certificate; `None` without one.
    fn tls(&self) -> Result<Option<Arc<Tls>>> {
        let (Some(certificate), Some(key)) = (self.tls_cert.clone(), self.tls_key.clone()) else {
            return Ok(None);
        };
        let tls = Tls::load(certificate, key).map_err(anyhow::Error::msg)?;
        Ok(Some(Arc::new(tls)))
    }

    /// Refuses to speak plain HTTP to other machines without `--plain-http`. Monitoring always speaks plain HTTP.
    fn refuse_plain_http(&self, listening: SocketAddr) -> Result<()> {
        if self.tls_cert.is_none() && !listening.ip().is_loopback() && !self.plain_http {
            bail!(
                "{listening} can be reached from other machines, and keys must not travel in plain text; add --tls-cert and --tls-key, listen on 127.0.0.1 behind a proxy that speaks HTTPS, or accept plain HTTP with --plain-http"
            );
        }
        self.admin.refuse_plain_http(self.plain_http)
    }

    /// Opens the database that is served. A replica exists already.
    fn open_watcher(&self, common: &Common, is_replica: bool) -> Result<Watcher> {
        if !is_replica {
            if self.create {
                create_if_missing(common)?;
            }
            refuse_replica(&common.db)?;
        }
        let opened = Watcher::open(&common.db, self.change_delay);
        let watcher = opened.map_err(|error| match error {
            StoreError::NotFound { path } => anyhow!(
                "there is no database at {}; create one with `medfeed import --create`, start with an empty one by --create, or name another with --db",
                path.display()
            ),
            error => error.into(),
        })?;
        Ok(if is_replica {
            watcher
        } else {
            watcher.with_fence(common.db.clone(), self.max_staleness)
        })
    }

    /// The settings of the API. `url` is the listen address.
    fn settings(&self, url: &str) -> Settings {
        let mut settings = Settings::of(self.public_url.as_deref().unwrap_or(url));
        settings.answer_cache_bytes = self.cache_bytes;
        settings.contact = self.contact.clone();
        settings.cors = Cors {
            origins: self.cors_origin.clone(),
        };
        if let Some(docs_url) = self.docs_url.clone() {
            settings.docs_url = docs_url;
        }
        settings
    }
}

const X_FORWARDED_FOR: &str = "x-forwarded-for";
const FORWARDED: &str = "forwarded";

/// Lowers the limits of connections to what the limit of open files allows.
fn within_open_files(limits: Limits) -> Limits {
    let max_files = resources::raise_file_limit(limits.connections);
    if max_files < limits.connections {
        tracing::warn!(
            "the limit of open files allows {max_files} connections, fewer than {}; raise LimitNOFILE of the systemd unit \
             (elsewhere `ulimit -n`)",
            limits.connections
        );
    }
    Limits {
        connections: max_files,
        ..limits
    }
}

/// Options for monitoring.
#[derive(Clone, Debug, Default, Args)]
pub struct AdminArgs {
    /// Serve /metrics, /livez and /readyz on this address; `serve` also has a page for operators there. With port 0,
    /// the log names the chosen port [default: nowhere]
    #[arg(long, env = "MEDFEED_ADMIN_LISTEN", value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    pub admin_listen: Option<SocketAddr>,
    /// Accept this name in the Host header of --admin-listen, in addition to addresses and localhost; repeatable.
    /// /livez accepts every name
    #[arg(long, env = "MEDFEED_ADMIN_HOST", value_name = "NAME", value_delimiter = ',', value_parser = |text: &str| parse_text(text.trim()))]
    admin_host: Vec<String>,
}

impl AdminArgs {
    /// Refuses an address that other machines can reach, unless plain HTTP is accepted.
    pub fn refuse_plain_http(&self, is_accepted: bool) -> Result<()> {
        match self.admin_listen {
            Some(address) if !address.ip().is_loopback() && !is_accepted => bail!(
                "--admin-listen {address} can be reached from other machines, and monitoring speaks plain HTTP; listen on \
                 127.0.0.1, or accept that with --plain-http"
            ),
            _ => Ok(()),
        }
    }

    /// Listens for monitoring; `None` without `--admin-listen`.
    pub async fn listen(self) -> Result<Option<AdminSetup>> {
        let Some(address) = self.admin_listen else {
            return Ok(None);
        };
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| cannot_listen(address, error))?;
        // With port 0 only the log names the port: the first line of standard output is for the API.
        tracing::info!(
            "listening for monitoring on http://{}",
            listener.local_addr()?
        );
        Ok(Some(AdminSetup {
            listener,
            hosts: self.admin_host,
        }))
    }
}

/// Options of the log.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// The format of log lines: text for people (pretty), or one JSON object per line (json)
    #[arg(long, env = "MEDFEED_LOG_FORMAT", value_name = "FORMAT", default_value = "pretty",
          value_parser = ["pretty", "json"])]
    log_format: String,
    /// The log level: error, warn, info, debug, or a tracing filter [default: info; demo: warn]
    #[arg(long, env = "MEDFEED_LOG", value_name = "FILTER", value_parser = parse_filter)]
    log: Option<String>,
}

impl LogArgs {
    /// Starts logging to standard error, panics included. Logging ends when the log is dropped.
    pub fn start(&self, default: &str) -> Result<Log> {
        let filter = EnvFilter::try_new(self.log.as_deref().unwrap_or(default))
            .context("--log is not a filter")?;
        let (writer, log) = Log::to_stderr().context("standard error cannot be written to")?;
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(writer)
            .with_target(false);
        // Internal errors would be printed on standard error directly.
        let lines = lines.log_internal_errors(false);
        // Colors are for terminals, not for files and pipes. NO_COLOR turns them off by default.
        let lines = if can_draw() {
            lines
        } else {
            lines.with_ansi(false)
        };
        if self.log_format == "json" {
            lines.json().flatten_event(true).init();
        } else {
            lines.init();
        }
        Ok(log)
    }
}

pub fn run(common: &Common, args: ServeArgs, limits: Limits) -> Result<ExitCode> {
    let log = args.log.start("info")?;
    let limits = Limits {
        drain: args.drain_timeout,
        ..within_open_files(limits)
    };
    let tls = args.tls()?;
    let activated = listen::activated().context("the socket passed by systemd cannot be used")?;
    let default = parse_listen(DEFAULT_LISTEN).map_err(anyhow::Error::msg)?;
    let asked = args.listen.unwrap_or(default);
    let listening = activated
        .as_ref()
        .map_or(Ok(asked), std::net::TcpListener::local_addr)?;
    if args.listen.is_some() && asked != listening {
        tracing::warn!(
            "--listen (MEDFEED_LISTEN) {asked} is ignored: systemd passed a socket that listens on {listening}; change ListenStream of the socket unit instead"
        );
    }
    args.refuse_plain_http(listening)?;
    let replica = args.open_replica(common)?;
    let watcher = Arc::new(args.open_watcher(common, replica.is_some())?);
    let usage = Arc::new(Usage::open(&common.db));
    run_to_end(async {
        // A socket passed by systemd stays open for the next server.
        let own_socket = activated.is_none();
        let listener = match activated {
            Some(listener) => listener,
            None => {
                listen::bind(asked, args.reuse_port).map_err(|error| cannot_listen(asked, error))?
            }
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr()?);
        let settings = args.settings(&url);
        let admin = args.admin.listen().await?;
        let _recording = usage.start(&watcher)?;
        let _following = replica
            .map(|replica| watcher.follow(replica, args.poll))
            .transpose()?;
        let setup = Setup {
            listener: TcpListener::from_std(listener)?,
            watcher,
            settings,
            proxies: TrustedProxies {
                networks: args.trusted_proxy,
                use_forwarded: args.forwarded_header == FORWARDED,
            },
            tls,
            limits,
            admin,
            usage: Some(usage),
            lost_lines: log.lost(),
            shares_address: own_socket && args.reuse_port,
            stop: StopSignals::of_service()?,
        };
        serve(setup, move || print_line(&format!("listening on {url}"))).await?;
        Ok(ExitCode::SUCCESS)
    })
    .context(NO_RUNTIME)?
}

/// Refuses a replica without `--from`, because it would miss revoked keys.
fn refuse_replica(database: &Path) -> Result<()> {
    // Opening the file reports other errors.
    let Ok((mark, _)) = read_replica(database) else {
        return Ok(());
    };
    let url = Printable(&mark.url).to_string();
    bail!(
        "{} is a replica of {url} and must follow it, because keys may be revoked there; serve it with `--from {word}`, or turn it into the origin with `medfeed promote {word}`",
        database.display(),
        word = ShellWord(&url)
    )
}

/// Creates an empty database if there is none.
fn create_if_missing(common: &Common) -> Result<()> {
    if common.db.exists() {
        return Ok(());
    }
    let writer = common.open_or_create_writer()?;
    // Another process may have created it meanwhile.
    if writer.snapshot()?.commit().seq == 0 {
        common.commit(
            writer.begin()?,
            "an empty database, created by serve --create",
        )?;
        tracing::warn!(
            "created an empty database at {}; next: `medfeed import FILES`, `medfeed license set NAME --dataset conferences`, `medfeed key create --license NAME`",
            common.resolved_db().display()
        );
    }
    Ok(())
}

/// How long `medfeed health` waits for the answer: less than the health checks of containers and units allow.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// Arguments of `medfeed health`. They are named as those of `serve`.
#[derive(Args)]
pub struct HealthArgs {
    /// The address of the server; 0.0.0.0 means this machine
    #[arg(long, env = "MEDFEED_LISTEN", value_name = "ADDRESS:PORT", default_value = DEFAULT_LISTEN,
          value_parser = parse_listen)]
    listen: SocketAddr,
    /// The server's --admin-listen address: check /readyz there instead of /v1/status
    #[arg(long, env = "MEDFEED_ADMIN_LISTEN", value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    admin_listen: Option<SocketAddr>,
    /// The server's certificate, in PEM; no other one is accepted
    #[arg(long, env = "MEDFEED_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
}

pub fn health(common: &Common, args: HealthArgs) -> Result<ExitCode> {
    let probe = match args.admin_listen {
        Some(address) => Probe {
            address,
            path: "/readyz",
            certificate: None,
            timeout: HEALTH_TIMEOUT,
        },
        None => Probe {
            address: args.listen,
            path: "/v1/status",
            certificate: args.tls_cert,
            timeout: HEALTH_TIMEOUT,
        },
    };
    if probe.address.port() == 0 {
        bail!("with port 0 the server picks a port itself; name the port that it listens on");
    }
    probe.ask().map_err(anyhow::Error::msg)?;
    common.result(&serde_json::json!({ "healthy": true }), "ok")
}

/// The context of a failure to start the runtime.
pub const NO_RUNTIME: &str = "the runtime could not be started";

/// The error for an address that cannot be listened on, with a hint.
pub fn cannot_listen(address: SocketAddr, error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "{address} is in use: another program listens there; stop it, or choose another port, such as {}. Servers share a port \
             only if all of them have --reuse-port",
            SocketAddr::new(address.ip(), address.port().wrapping_add(1).max(1024))
        ),
        ErrorKind::PermissionDenied => anyhow!(
            "cannot listen on {address}: ports below 1024 need a privilege; choose another port, such as {}",
            SocketAddr::new(address.ip(), 8080)
        ),
        ErrorKind::AddrNotAvailable => {
            anyhow!(
                "{address} is not an address of this machine; listen on 127.0.0.1, or on 0.0.0.0 for all addresses"
            )
        }
        _ => anyhow::Error::new(error).context(format!("cannot listen on {address}")),
    }
}
