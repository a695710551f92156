//! A server with smaller limits than the program's constants: the same code in a process of its own, started from the
//! binary of the tests.

use std::process::{Command, ExitCode};

use medfeed::serve::Limits;

use super::site::{Server, Site};

/// The variables with the limits and the arguments of such a server.
const LIMITS: &str = "LIMITED_SERVER";
const ARGUMENTS: &str = "LIMITED_SERVER_ARGUMENTS";
/// Separates arguments.
const SEPARATOR: char = '\u{1f}';

/// Parses limits such as `connections=8 request=300ms`. The others have the program's values.
fn limits_of(text: &str) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in text
        .split_whitespace()
        .map(|limit| limit.split_once('=').expect("NAME=VALUE"))
    {
        let number = || value.parse::<usize>().expect("a number");
        let time = || humantime::parse_duration(value).expect("a time");
        match name {
            "connections" => limits.connections = number(),
            "per-address" => limits.connections_per_address = number(),
            "long-polls" => {
                (limits.long_polls, limits.long_polls_per_key) = (number(), number().div_ceil(4))
            }
            "exports" => limits.exports = number(),
            "poll-grace" => limits.long_poll_grace = time(),
            "request" => limits.request = time(),
            "response" => limits.response = time(),
            _ => panic!("no limit is named {name}"),
        }
    }
    limits
}

/// The command that serves the database on a free port with these limits and further options, separated by blanks.
pub fn command(site: &Site, limits: &str, options: &str) -> Command {
    limits_of(limits);
    let serve = site.serve_command(options);
    let arguments: Vec<_> = serve
        .get_args()
        .map(|argument| argument.to_str().expect("UTF-8"))
        .collect();
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = site.command_of(program.to_str().expect("UTF-8"));
    command
        .args("process::limited::serves --exact --ignored --nocapture --test-threads=2".split(' '));
    command
        .env(LIMITS, limits)
        .env(ARGUMENTS, arguments.join(&SEPARATOR.to_string()));
    command
}

/// Serves the database with these limits and further options, separated by blanks.
pub fn serve(site: &Site, limits: &str, options: &str) -> Server {
    site.start(command(site, limits, options))
}

#[test]
#[ignore = "the server of other tests, not a test"]
fn serves() -> ExitCode {
    let (Ok(limits), Ok(arguments)) = (std::env::var(LIMITS), std::env::var(ARGUMENTS)) else {
        return ExitCode::SUCCESS;
    };
    let arguments = std::iter::once("medfeed").chain(arguments.split(SEPARATOR));
    let arguments = arguments.map(Into::into).collect();
    medfeed::cli::run(arguments, limits_of(&limits))
}
