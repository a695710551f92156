//! `medfeed completions SHELL` and `medfeed man`.

use std::io::{Write, stdout};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

/// Arguments of `medfeed completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: CompletionsArgs, mut program: Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "medfeed", &mut script);
    stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual pages of the program and of its subcommands.
pub(super) fn print_manual(mut program: Command) -> anyhow::Result<ExitCode> {
    fn render(command: &Command, name: &str, out: &mut Vec<u8>) -> std::io::Result<()> {
        let page = command.clone().name(name.to_owned()).display_name(name.to_owned());
        clap_mangen::Man::new(page).render(out)?;
        for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
            render(subcommand, &format!("{name}-{}", subcommand.get_name()), out)?;
        }
        Ok(())
    }
    program.build();
    let mut pages = Vec::new();
    render(&program, "medfeed", &mut pages)?;
    stdout().write_all(&pages)?;
    Ok(ExitCode::SUCCESS)
}
