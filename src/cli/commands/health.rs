//! `medfeed health`: the health check of a container or a systemd unit.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use crate::cli::commands::serve::DEFAULT_LISTEN;
use crate::cli::shared::arguments::parse_listen;
use crate::cli::shared::common::Common;
use crate::serve::operators::health::Probe;

/// How long to wait for the answer: less than the health checks of containers and units allow.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Arguments of `medfeed health`. They are named as those of `serve`.
#[derive(Debug, Args)]
pub(in crate::cli) struct HealthArgs {
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

pub(in crate::cli) fn run(common: &Common, args: HealthArgs) -> anyhow::Result<ExitCode> {
    let probe = match args.admin_listen {
        Some(address) => Probe { address, path: "/readyz", certificate: None, timeout: TIMEOUT },
        None => Probe { address: args.listen, path: "/v1/status", certificate: args.tls_cert, timeout: TIMEOUT },
    };
    if probe.address.port() == 0 {
        bail!("with port 0 the server picks a port itself; name the port that it listens on");
    }
    probe.ask()?;
    common.output().result(&serde_json::json!({ "healthy": true }), "ok")
}
