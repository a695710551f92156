//! Options and commands that people know from other programs, and what to write instead.

/// Options: the command (`*`: any), the mistaken names, and what to write.
pub(in crate::cli) const OPTIONS: &[(&str, &[&str], &str)] = &[
    ("serve", &["--port", "-p", "-P"], "write `--listen 127.0.0.1:8080`, or `--listen 8080`"),
    ("demo", &["--port", "-p", "-P"], "write `--listen 127.0.0.1:8080`, or `--listen 8080`"),
    ("serve", &["--host", "--bind", "--address"], "write `--listen 127.0.0.1:8080`"),
    ("import", &["--file", "-f", "--input"], "name the files without an option: `medfeed import conferences.csv`"),
    (
        "import",
        &["--force", "-y"],
        "`--yes` commits with warnings, without asking; `--replace` and `--allow-removals N` allow removals",
    ),
    ("export", &["--output", "-o"], "name the folder without an option: `medfeed export content`"),
    ("license set", &["--area", "--areas"], "write `--therapy-area Oncology`, once per value"),
    ("key create", &["--expiry", "--ttl"], "write `--expires 30d`, or `--expires 2026-12-31`"),
    ("*", &["--force", "-y"], "write `--yes`"),
    ("*", &["--database", "-d"], "name the database with `--db medfeed.redb`"),
    ("*", &["--config", "-c"], "there is no configuration file; write options, or set their variables (`MEDFEED_DB`)"),
    ("*", &["--verbose", "-v"], "only `serve` and `demo` log; write `--log debug` there"),
];

/// Commands: the group, the mistaken names, and what to write.
pub(in crate::cli) const COMMANDS: &[(&str, &[&str], &str)] = &[
    ("", &["start", "run", "server", "up"], "write `medfeed serve`"),
    (
        "",
        &["init", "create", "migrate", "setup"],
        "`medfeed import --create` and `medfeed license set --create` create the database",
    ),
    (
        "",
        &["add"],
        "write `medfeed import conferences.csv` for records, `medfeed license set acme --dataset conferences` for a license",
    ),
    ("", &["ls", "list", "status"], "write `medfeed license list`, `medfeed key list`, or `medfeed log`"),
    ("", &["dump"], "write `medfeed export content`"),
    (
        "",
        &["delete", "rm"],
        "write `medfeed license remove acme` or `medfeed key revoke ID`; to remove a record, import a line `{\"id\": 5, \"deleted\": true}`",
    ),
    ("", &["version"], "write `medfeed --version`"),
    ("license", &["add", "create", "update"], "write `medfeed license set acme --dataset conferences`"),
    ("license", &["delete", "rm"], "write `medfeed license remove acme`"),
    ("key", &["add", "new"], "write `medfeed key create --license acme`"),
    ("key", &["delete", "remove", "rm"], "write `medfeed key revoke ID`; `medfeed key list` shows the ids"),
    ("key", &["rotate", "renew"], "write `medfeed key replace ID --overlap 24h`"),
];
