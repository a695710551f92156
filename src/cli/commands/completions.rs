//! `medfeed completions SHELL`.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::cli::shared::output::print_file;

/// Arguments of `medfeed completions`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(in crate::cli) fn run(args: CompletionsArgs, mut program: Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "medfeed", &mut script);
    print_file(&script)?;
    Ok(ExitCode::SUCCESS)
}
