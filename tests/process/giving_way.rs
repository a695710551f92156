//! An import reads, checks and asks without the writer's lock, and gives way to short commands while it writes.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use medfeed::store::write::licensing::KeySettings;
use medfeed::store::{StoreError, Writer};

use super::other_users::{as_nobody, can_be_nobody, share};
use super::site::{Done, Process, SOON, STATUSES, Site, conferences_of_version, wait_until};
use super::terminals::Terminal;

/// A site with a few conferences, a license and a key; with the key's id.
fn keyed_site() -> (Site, String) {
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(5, 1));
    site.license("acme", "--dataset conferences");
    let (id, _) = site.key("acme", &[]);
    (site, id)
}

#[test]
fn a_writer_that_gives_way_hears_of_a_waiting_command() {
    let (site, _) = keyed_site();
    let batch = || medfeed::store::Batch::default();
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let path = site.db();
    // One that only waits asks for nothing.
    assert!(matches!(Writer::open(&path, Duration::ZERO), Err(StoreError::Busy { .. })));
    let waiting = std::thread::spawn(move || Writer::open_urgent(&path, SOON).map(drop));
    let rows = conferences_of_version(2_000, 2);
    let file = site.write("many/conferences.jsonl", rows);
    let sources = medfeed::import::Source::find(&[file], medfeed::import::SourceOptions::default()).unwrap();
    wait_until("the writer hears of it", SOON, || {
        let rows =
            medfeed::import::read_sources(&sources, &medfeed::import::ReadOptions::default(), &mut |_| {}).unwrap();
        let mut edit = writer.begin().unwrap();
        let merged = medfeed::import::merge(rows, &edit, &medfeed::import::MergeOptions::default()).unwrap();
        edit.yield_on_request();
        match edit.apply(&merged.batch) {
            Ok(_) => None,
            Err(StoreError::YieldRequested) => Some(()),
            Err(other) => panic!("{other}"),
        }
    });
    // One that does not give way goes on.
    let mut edit = writer.begin().unwrap();
    edit.apply(&batch()).unwrap();
    drop(edit);
    drop(writer);
    waiting.join().unwrap().unwrap();
    site.check();
}

#[test]
fn access_is_taken_away_while_a_large_import_writes() {
    for command in ["key revoke KEY", "license set acme --dataset conferences --country France --yes"] {
        check_gives_way_to(&keyed_site(), command, |command| command);
    }
}

#[test]
fn another_user_takes_access_away_while_a_large_import_writes() {
    if can_be_nobody("another_user_takes_access_away_while_a_large_import_writes") {
        let (site, id) = keyed_site();
        share(site.folder());
        share(&site.db());
        check_gives_way_to(&(site, id), "key revoke KEY", as_nobody);
    }
}

/// Runs a command, in which `KEY` stands for a key's id, while an import writes: the command's commit comes first.
fn check_gives_way_to((site, id): &(Site, String), command: &str, by_user: fn(&mut Command) -> &mut Command) {
    site.write("large/conferences.jsonl", conferences_of_version(40_000, 2));
    let mut import =
        Process::spawn(site.command(["import", "large", "--wait", "5m"]).stdout(Stdio::null()).stderr(Stdio::null()));
    let note = site.folder().join("feed.redb.writer");
    let has_lock =
        || std::fs::read_to_string(&note).is_ok_and(|text| text.contains(&format!("process {} ", import.id())));
    wait_until("the import writes", SOON, || has_lock().then_some(()));
    let line = format!("{} --wait 5m", command.replace("KEY", id));
    let done = Done::of(by_user(&mut site.command(line.split(' '))));
    assert_eq!(done.code, Some(0), "{line}: {done:?}");
    let ended = import.ended_within(6 * SOON).expect("the import ends");
    assert_eq!(ended.code(), Some(0));
    let log = site.run(["log"]).stdout;
    let at = |what: &str| log.lines().position(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {log}"));
    // Newest first.
    let name: Vec<&str> = command.split(' ').take(2).collect();
    assert!(at("import large") < at(&name.join(" ")), "{command}: {log}");
    site.check();
}

/// A conference of a certain name.
fn named_both(id: u64) -> String {
    format!("{{\"id\":{id},\"name\":\"Both\",\"year\":2026,{STATUSES}}}\n")
}

/// Commits another conference of that name, and gives the lock back.
fn commit_another(site: &Site, writer: Writer) {
    let file = site.write("between/conferences.jsonl", named_both(901));
    let sources = medfeed::import::Source::find(&[file], medfeed::import::SourceOptions::default()).unwrap();
    let rows = medfeed::import::read_sources(&sources, &medfeed::import::ReadOptions::default(), &mut |_| {}).unwrap();
    let mut edit = writer.begin().unwrap();
    let merged = medfeed::import::merge(rows, &edit, &medfeed::import::MergeOptions::default()).unwrap();
    medfeed::import::apply(&mut edit, &merged.batch).unwrap();
    edit.create_key("acme", KeySettings::default()).unwrap();
    edit.commit().unwrap();
}

#[test]
fn a_run_reads_again_where_another_commit_came_between() {
    let (site, _) = keyed_site();
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let mut command = site.command(["import", "-", "--dataset", "conferences", "--wait", "5m", "--json"]);
    let mut import = Process::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut stdin = import.child().stdin.take().unwrap();
    stdin.write_all(named_both(900).as_bytes()).unwrap();
    drop(stdin);
    // The run has opened the database and closed it again: what it merged with is old from now on. Where that is too quick to be
    // seen, the run reads but once, and must end alike.
    let fds = format!("/proc/{}/fd", import.id());
    let holds = || {
        let entries = std::fs::read_dir(&fds).into_iter().flatten().flatten();
        entries.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|target| target == site.db())
    };
    let seen = std::time::Instant::now();
    while !holds() && seen.elapsed() < Duration::from_secs(2) {
        std::thread::yield_now();
    }
    while holds() && seen.elapsed() < Duration::from_secs(2) {
        std::thread::yield_now();
    }
    commit_another(&site, writer);
    let ended = import.ended_within(6 * SOON).expect("the import ends");
    let mut told = String::new();
    std::io::Read::read_to_string(&mut import.child().stdout.take().unwrap(), &mut told).unwrap();
    assert_eq!(ended.code(), Some(0), "{told}");
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["datasets"]["conferences"]["added"], 1, "{told}");
    // It is judged on the state that it changes: the other row of this name came first.
    assert!(told["warnings"].to_string().contains("is also the name of conference 901"), "{told}");
    site.check();
}

#[test]
fn a_warning_that_another_commit_causes_is_refused_by_strict() {
    let (site, _) = keyed_site();
    site.write("new/conferences.jsonl", named_both(900));
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let Some(mut import) = Terminal::start(&site, "import new --strict --wait 5m") else { return };
    // It has read the rows, and has found no fault.
    import.wait_for("waiting for the writer's lock");
    commit_another(&site, writer);
    let (code, told) = import.end();
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("is also the name of conference 901") && told.contains("--strict refuses warnings"),
        "{told}"
    );
    assert_eq!(site.run(["show", "conferences", "900"]).code, Some(1));
}

#[test]
fn a_named_pipe_is_read_once_though_another_commit_came_between() {
    let (site, _) = keyed_site();
    let pipe = site.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let Some(mut import) = Terminal::start(&site, "import pipe --dataset conferences --yes --wait 5m") else { return };
    // The pipe is there for the one who reads it first. Opening it waits for that.
    std::thread::spawn(move || std::fs::write(pipe, named_both(900)));
    import.wait_for("waiting for the writer's lock");
    commit_another(&site, writer);
    let (code, told) = import.end();
    assert!(code == Some(0) && told.contains("1 added") && told.contains("Committed, with 1 warning."), "{told}");
    site.check();
}

#[test]
fn a_map_file_is_read_once_though_another_commit_came_between() {
    let (site, _) = keyed_site();
    let pipe = site.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    site.write("new/conferences.jsonl", named_both(900).replace("\"name\"", "\"Title\""));
    let writer = Writer::open(&site.db(), Duration::ZERO).unwrap();
    let Some(mut import) = Terminal::start(&site, "import new --map-file pipe --yes --wait 5m") else { return };
    std::thread::spawn(move || std::fs::write(pipe, "Title,name\n"));
    import.wait_for("waiting for the writer's lock");
    commit_another(&site, writer);
    let (code, told) = import.end();
    assert!(code == Some(0) && told.contains("1 added"), "{told}");
    site.check();
}
