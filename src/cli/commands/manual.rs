//! `medfeed man` and `medfeed completions`: the manual pages of the commands, and completion scripts for shells.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Command;
use clap::builder::Resettable;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::output::{at, print_file, print_line};

/// The exit codes of commands whose description lists none.
const EXIT_STATUS: [(&str, &str); 5] = [
    ("0", "Done."),
    (
        "1",
        "Refused or failed; nothing was changed. After check: the database is damaged. After lint: there are findings.",
    ),
    ("2", "The command line is wrong."),
    (
        "3",
        "Done here, but not published in time: replicas do not have the change yet.",
    ),
    (
        "4",
        "Another publisher took over this database. The change was refused, or is only in this file; the message says which.",
    ),
];

const FILES: [(&str, &str); 6] = [
    (
        "medfeed.redb",
        "The database, unless --db or MEDFEED_DB names another file. It contains licenses, hashes of keys, and the secret \
         of sync tokens, so only its owner can read it.",
    ),
    (
        "medfeed.redb.writer",
        "The command that is writing to the database.",
    ),
    (
        "medfeed.redb.published",
        "The commit up to which `medfeed publish` has published, or the publisher that took over.",
    ),
    (
        "medfeed.redb.publisher",
        "The lock of `medfeed publish`, and the name by which it recognizes its own entries.",
    ),
    (
        "medfeed.redb.usage-*",
        "When keys were last used. Each running server writes one.",
    ),
    (
        ".medfeed-draft-*",
        "A draft that a killed command left, on file systems without unnamed files. The next writing command removes it.",
    ),
];

const ENVIRONMENT: [(&str, &str); 2] = [
    (
        "MEDFEED_...",
        "Options that configure have a variable, MEDFEED_ and the option's name, which the page of their command names. \
         Options that select what one call does have none. In the variable of an option that may be repeated, commas \
         separate the values. The variable of a switch is true, 1, yes or on, or false, 0, no or off.",
    ),
    (
        "NO_COLOR",
        "Turns off the colors of log lines. So does TERM=dumb, which turns off progress bars, too.",
    ),
];

pub fn completions(shell: Shell, mut program: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "medfeed", &mut script);
    print_file(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual pages, or writes them into a folder.
pub fn pages(folder: Option<PathBuf>, program: Command) -> Result<ExitCode> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    collect(&program, &mut pages)?;
    let Some(folder) = &folder else {
        let pages: Vec<Vec<u8>> = pages.into_iter().map(|(_, page)| page).collect();
        print_file(&pages.concat())?;
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(folder).map_err(at(folder))?;
    for (name, page) in &pages {
        let file = folder.join(name);
        std::fs::write(&file, page).map_err(at(&file))?;
    }
    print_line(&format!(
        "{}: {} pages; `man -l {0}/medfeed.1` shows the first.",
        folder.display(),
        pages.len()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Collects the pages of a command and its subcommands, each with the name of its file.
fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    // The examples have a section of another name.
    let man = Man::new(command.clone().after_help(Resettable::Reset));
    let man = man.source(concat!("medfeed ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    man.render(&mut page)?;
    further_sections(command).to_writer(&mut page)?;
    pages.push((man.get_filename(), page));
    command
        .get_subcommands()
        .try_for_each(|below| collect(below, pages))
}

/// The sections that clap does not know.
fn further_sections(command: &Command) -> Roff {
    let mut page = Roff::new();
    let about = command.get_long_about();
    if !about.is_some_and(|about| about.to_string().contains("Exit codes: ")) {
        add_section(&mut page, "EXIT STATUS", &EXIT_STATUS);
    }
    if command.get_name() == "medfeed" {
        add_section(&mut page, "FILES", &FILES);
        add_section(&mut page, "ENVIRONMENT", &ENVIRONMENT);
    }
    if let Some(help) = command.get_after_help().map(ToString::to_string) {
        let lines = help.replace("Examples:\n  ", "").replace("\n  ", "\n");
        page.control("SH", ["EXAMPLES"]).control("nf", []);
        page.text([roman(lines)]).control("fi", []);
    }
    page
}

fn add_section(page: &mut Roff, title: &str, items: &[(&str, &str)]) {
    page.control("SH", [title]);
    for (term, text) in items {
        page.control("TP", []).text([bold(*term)]);
        page.text([roman(*text)]);
    }
}
