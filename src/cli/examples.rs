//! Examples of commands, for their help, the manual pages, and usage errors.

use clap::Command;

/// A command such as `license set`, and its examples.
type Examples = (&'static str, &'static [&'static str]);

/// The examples of every command.
pub const EXAMPLES: &[Examples] = &[
    (
        "",
        &[
            "medfeed demo",
            "medfeed import data --create",
            "medfeed license set acme --dataset conferences --therapy-area Oncology --year 2025..2027",
            "medfeed key create --license acme --label \"Acme data team\"",
            "medfeed serve",
        ],
    ),
    ("demo", &["medfeed demo", "medfeed demo --listen 8090"]),
    (
        "serve",
        &[
            "medfeed serve",
            "medfeed serve --listen 8090 --create",
            "medfeed serve --listen 0.0.0.0:8443 --tls-cert chain.pem --tls-key key.pem",
            "medfeed serve --public-url https://feed.example.org --trusted-proxy 127.0.0.1",
            "medfeed serve --from s3://feed/prod --db replica.redb --seal-key seal.key",
        ],
    ),
    (
        "import",
        &[
            "medfeed import data --create",
            "medfeed import data --dry-run",
            "medfeed import conferences.csv journals.jsonl.gz",
            "medfeed import conferences.jsonl --replace --allow-removals 40",
            "medfeed import jcr.csv --recipe jcr.toml --dry-run",
            "medfeed import - --dataset journals --format jsonl < new.txt",
        ],
    ),
    (
        "health",
        &[
            "medfeed health",
            "medfeed health --admin-listen 127.0.0.1:9090",
        ],
    ),
    (
        "template",
        &[
            "medfeed template conferences > conferences.csv",
            "medfeed template records.xlsx",
            "medfeed template journals --from jcr.csv > jcr.toml",
        ],
    ),
    (
        "show",
        &[
            "medfeed show conferences 17",
            "medfeed show journals --name Lancet",
        ],
    ),
    ("lint", &["medfeed lint data", "medfeed lint"]),
    (
        "export",
        &[
            "medfeed export content",
            "medfeed export content --format csv",
        ],
    ),
    (
        "license set",
        &[
            "medfeed license set acme --dataset conferences --dataset journals",
            "medfeed license set acme --dataset conferences --therapy-area Oncology --country Japan --year 2025..2027",
            "medfeed license set acme --dataset conferences --rate-limit 1200 --widen --dry-run",
        ],
    ),
    ("license list", &["medfeed license list"]),
    ("license show", &["medfeed license show acme"]),
    ("license remove", &["medfeed license remove acme"]),
    (
        "license explain",
        &["medfeed license explain acme conferences 17"],
    ),
    (
        "key create",
        &[
            "medfeed key create --license acme --label \"Acme data team\"",
            "medfeed key create --license acme --expires 30d --allow-ip 192.0.2.0/24",
        ],
    ),
    ("key list", &["medfeed key list"]),
    ("key revoke", &["medfeed key revoke key_0123456789"]),
    (
        "key replace",
        &["medfeed key replace key_0123456789 --overlap 24h"],
    ),
    (
        "pull",
        &[
            "medfeed pull https://feed.example.org --to copy.sqlite --key-file key.txt",
            "medfeed pull https://feed.example.org --to copies/ --dataset journals --json",
            "medfeed pull https://feed.example.org --to copy.sqlite --key-file key.txt --follow",
            "medfeed pull https://feed.example.org --to postgres://me@db.example.org/warehouse --key-file key.txt --follow",
            "medfeed pull https://feed.example.org --to copy.sqlite --key-file key.txt --verify",
        ],
    ),
    (
        "publish",
        &[
            "medfeed publish s3://my-bucket/feed --seal-key seal.key",
            "medfeed publish file:///srv/feed --once",
            "medfeed publish s3://my-bucket/feed --status",
        ],
    ),
    (
        "log",
        &[
            "medfeed log --limit 5",
            "medfeed log conferences 17",
            "medfeed log --license acme",
        ],
    ),
    (
        "check",
        &[
            "medfeed check",
            "medfeed check --db backup.redb",
            "medfeed check --from s3://feed/prod",
        ],
    ),
    (
        "backup",
        &[
            "medfeed backup backup.redb",
            "medfeed backup backup.redb --from s3://feed/prod --at 2026-11-20T18:00:00Z",
        ],
    ),
    (
        "promote",
        &["medfeed promote s3://feed/prod --db replica.redb"],
    ),
    (
        "restore",
        &[
            "medfeed restore backup.redb",
            "medfeed restore backup.redb --yes",
        ],
    ),
    ("compact", &["medfeed compact"]),
    (
        "upgrade",
        &[
            "medfeed upgrade --dry-run",
            "medfeed upgrade",
            "medfeed upgrade --if-needed",
        ],
    ),
    (
        "completions",
        &[
            "medfeed completions bash > ~/.local/share/bash-completion/completions/medfeed",
            "medfeed completions fish > ~/.config/fish/completions/medfeed.fish",
        ],
    ),
    (
        "man",
        &[
            "medfeed man | man -l -",
            "medfeed man ~/.local/share/man/man1",
        ],
    ),
];

/// The examples of a command.
pub fn of(path: &str) -> &'static [&'static str] {
    EXAMPLES
        .iter()
        .find(|(name, _)| *name == path)
        .map_or(&[], |(_, lines)| *lines)
}

/// Adds the examples at the end of every command's help.
pub fn add(command: Command, path: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    let command = names.into_iter().fold(command, |command, name| {
        let below = if path.is_empty() {
            name.clone()
        } else {
            format!("{path} {name}")
        };
        command.mut_subcommand(name, |command| add(command, &below))
    });
    match of(path) {
        [] => command,
        lines => command.after_help(format!("Examples:\n  {}", lines.join("\n  "))),
    }
}
