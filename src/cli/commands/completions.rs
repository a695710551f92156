//! `medfeed completions SHELL`.

use std::io::{Write, stdout};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

/// Arguments of `medfeed completions`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(in crate::cli) fn run(args: CompletionsArgs, mut program: Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "medfeed", &mut script);
    stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
