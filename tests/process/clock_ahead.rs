//! Commits from a machine whose clock is ahead: a warning after an unusual pause, and a question after a year.

use std::process::Command;

use super::clocks::Clock;
use super::site::{Done, STATUSES, Site};
use super::terminals::Terminal;

const DAY_S: i64 = 86_400;

/// A database with a license, a key, a backup and curated files. Returns the key's id, too.
fn site() -> (Site, String) {
    let site = Site::new();
    let row = |id: u32| format!("{{\"id\":{id},\"name\":\"Congress {id}\",{STATUSES}}}\n");
    site.write("same/conferences.jsonl", row(1));
    site.write("new/conferences.jsonl", row(1) + &row(2));
    site.json(["import", "same", "--create"]);
    site.license("acme", "--dataset conferences");
    let id = site.key("acme", &[]).0;
    site.backup("backup.redb");
    (site, id)
}

/// A command with a clock that is ahead by this number of days.
fn command_at(site: &Site, clock: &Clock, days: i64, line: &str) -> Command {
    // A minute more than whole days, since the commits are a little older than the command.
    clock.set(days * DAY_S + days.signum() * 60);
    let mut command = site.command(line.split_whitespace());
    clock.apply_to(&mut command);
    command
}

fn last_commit(site: &Site) -> (String, String) {
    let commit = &site.json(["log", "--limit", "1"])["commits"][0];
    let text = |name: &str| commit[name].as_str().unwrap().to_owned();
    (text("time"), text("what"))
}

#[test]
fn a_clock_that_is_ahead_is_warned_of_and_needs_a_yes_after_a_year() {
    let (site, id) = site();
    let Some(clock) = Clock::new(&site) else {
        return;
    };
    let whole = std::fs::read(site.db()).unwrap();
    let (committed, _) = last_commit(&site);
    let commands = [
        "import new",
        "import new --strict --json",
        "license set acme --dataset journals --dataset conferences",
        "license set other --dataset conferences",
        "key create --license acme",
        &format!("key revoke {id}"),
        &format!("key replace {id} --json"),
    ];
    // (how many days the clock is ahead, whether the commit needs a yes, whether it is warned of)
    let cases = [
        (0, false, false),
        (29, false, false),
        (31, false, true),
        (364, false, true),
        (367, true, true),
        (3_000, true, true),
    ];
    for line in commands {
        for (days, needs_yes, is_warned) in cases {
            let what = format!("{line}, {days} days ahead");
            std::fs::write(site.db(), &whole).unwrap();
            if needs_yes {
                let refused = Done::of(&mut command_at(&site, &clock, days, line));
                let told = format!("{}{}", refused.stdout, refused.stderr);
                let question = format!(
                    "{days} days after the last commit, which is of {committed}. If it is ahead, later commits get no earlier time. Is the clock right?"
                );
                assert_eq!(refused.code, Some(1), "{what}: {refused:?}");
                assert!(told.contains(&question), "{what}: {told}");
                assert!(told.contains("add --yes"), "{what}: {told}");
                assert_eq!(last_commit(&site).0, committed, "{what}");
            }
            let yes = if needs_yes { " --yes" } else { "" };
            let done = Done::of(&mut command_at(
                &site,
                &clock,
                days,
                &format!("{line}{yes}"),
            ));
            assert_eq!(done.code, Some(0), "{what}: {done:?}");
            let warning = format!("{days} days after the last commit, which is of {committed}");
            let stderr = done.stderr.contains(&warning);
            assert_eq!(stderr, is_warned, "{what}: {done:?}");
            assert_ne!(last_commit(&site).1, "", "{what}");
        }
    }
}

#[test]
fn a_late_clock_asks_only_if_something_is_committed() {
    let (site, _) = site();
    let Some(clock) = Clock::new(&site) else {
        return;
    };
    let (committed, _) = last_commit(&site);
    for line in [
        "import same",
        "import new --dry-run",
        "license set acme --dataset conferences",
        "license set acme --dataset journals --dry-run",
        "key list",
        "check",
        "backup other.redb",
        "compact",
        // The first commit of a file.
        "import new --create --db first.redb",
        "license set acme --create --dataset journals --db second.redb",
    ] {
        let done = Done::of(&mut command_at(&site, &clock, 900, line));
        assert_eq!(done.code, Some(0), "{line}: {done:?}");
        assert!(!done.stderr.contains("days after"), "{line}: {done:?}");
        assert_eq!(last_commit(&site).0, committed, "{line}");
    }
    // A clock that is behind is warned of, however far.
    let done = Done::of(&mut command_at(&site, &clock, -900, "import new"));
    done.assert_told(0, "seconds behind the last commit");
    assert_eq!(last_commit(&site).0, committed);
}

#[test]
fn a_restore_with_a_late_clock_says_so() {
    let (site, _) = site();
    let Some(clock) = Clock::new(&site) else {
        return;
    };
    let (committed, _) = last_commit(&site);
    let warning = format!("days after the last commit, which is of {committed}");
    for (days, is_warned) in [(400, true), (40, true), (20, false)] {
        std::fs::copy(site.path("backup.redb"), site.db()).unwrap();
        let line = "restore backup.redb --yes --json";
        let done = Done::of(&mut command_at(&site, &clock, days, line));
        assert_eq!(done.code, Some(0), "{done:?}");
        let stderr = done.stderr.contains(&warning);
        assert_eq!(stderr, is_warned, "{days}: {done:?}");
    }
}

#[test]
fn a_backup_ends_the_time_of_a_wrong_clock() {
    let (site, _) = site();
    let Some(clock) = Clock::new(&site) else {
        return;
    };
    let (committed, _) = last_commit(&site);
    let year = |time: &str| time[..4].parse::<u32>().unwrap();
    let import_ahead = || {
        let done = Done::of(&mut command_at(&site, &clock, 3_000, "import new --yes"));
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(year(&last_commit(&site).0) > year(&committed) + 7);
    };
    let import_again = |options: &str| {
        let line = format!("import new {options}");
        let done = site.run(line.split_whitespace());
        assert_eq!(done.code, Some(0), "{done:?}");
        done.stderr.contains("seconds behind the last commit")
    };
    import_ahead();
    site.json(["restore", "backup.redb", "--yes"]);
    assert!(!import_again(""), "the time is right again");
    // A published database keeps the time.
    let url = format!("file://{}", site.path("bucket").display());
    std::fs::copy(site.path("backup.redb"), site.db()).unwrap();
    site.json(["publish", &url, "--once"]);
    import_ahead();
    site.json(["publish", &url, "--once"]);
    site.json(["restore", "backup.redb", "--yes"]);
    assert!(import_again(""), "replicas have seen the time");
    // A new file, with another bucket, does not.
    site.json(["restore", "backup.redb", "--yes", "--db", "new.redb"]);
    assert!(!import_again("--db new.redb"));
    let other = format!("file://{}", site.path("other").display());
    site.json(["publish", &other, "--once", "--db", "new.redb"]);
}

#[test]
fn a_late_clock_is_asked_about_on_a_terminal() {
    let (site, id) = site();
    let Some(clock) = Clock::new(&site) else {
        return;
    };
    let (committed, _) = last_commit(&site);
    let question = format!(
        "500 days after the last commit, which is of {committed}. If it is ahead, later commits get no earlier time. Is the clock right? [y/N]"
    );
    // (the command, the answer, the code, a part of what is shown)
    let cases = cases![
        "import new".to_owned(), "n\n", 1, "nothing was changed";
        format!("key revoke {id}"), "\n", 1, "nothing was changed";
        "license set b --dataset journals".to_owned(), "no\n", 1, "nothing was changed";
        "key create --license acme".to_owned(), "y\n", 0, "mfk_";
    ];
    for (line, answer, code, shown) in cases {
        let inner = command_at(&site, &clock, 500, &line);
        let Some(mut terminal) = Terminal::start_command_of(&site, &inner) else {
            return;
        };
        terminal.wait_for(&question);
        terminal.answer(answer);
        let (ended, told) = terminal.end();
        assert_eq!(ended, Some(code), "{line}: {told}");
        assert!(told.contains(shown), "{line}: {told}");
        assert_eq!(last_commit(&site).0 == committed, code == 1, "{line}");
    }
}
