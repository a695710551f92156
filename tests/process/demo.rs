//! `medfeed demo`: what it prints works when pasted.

use std::io::BufRead;
use std::path::PathBuf;

use super::client::{Answer, Client};
use super::site::{SOON, Server, Site, wait_until};

/// The words of a printed shell line: blanks part them, single quotes keep blanks.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    assert!(!quoted, "an open quote: {line}");
    words.retain(|word| !word.is_empty());
    words
}

/// Does what a printed curl line does.
fn curl(line: &str, server: &Server) -> Answer {
    let base = format!("http://{}", server.address);
    let mut key = None;
    let mut target = None;
    let mut words = words(line).into_iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-H" => {
                let header = words.next().expect("a header");
                let (name, value) = header.split_once(": ").expect("a header");
                key = match name {
                    "Authorization" => Some(value.strip_prefix("Bearer ").expect("a bearer").to_owned()),
                    "X-API-Key" => Some(value.to_owned()),
                    _ => panic!("an unexpected header: {header}"),
                };
            }
            "-D" | "-o" => drop(words.next().expect("a file")),
            url => target = url.strip_prefix(&base).map(str::to_owned),
        }
    }
    let target = target.unwrap_or_else(|| panic!("no URL of this server: {line}"));
    Client::new(server.address, key.as_deref()).get(&target)
}

#[test]
fn the_printed_lines_work() {
    let site = Site::new();
    let mut server = site.start(site.command(["demo", "--listen", "127.0.0.1:0", "--log", "warn"]));
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains("Ctrl-C")) {
        let mut line = String::new();
        assert!(server.stdout.read_line(&mut line).unwrap() > 0, "the last line says how to stop: {lines:?}");
        lines.push(line.trim().to_owned());
    }

    let curls: Vec<&String> = lines.iter().filter(|line| line.starts_with("curl ")).collect();
    assert!(curls.len() >= 6, "{lines:?}");
    for line in &curls {
        let answer = curl(line, &server);
        assert_eq!(answer.status, 200, "{line}: {answer:?}");
        if line.contains("/exports/") {
            assert!(!answer.lines().is_empty() && answer.header("x-sync-token").is_some(), "{line}");
        } else if line.contains("limit=") {
            assert!(!answer.items().is_empty(), "{line} finds nothing");
        }
    }
    let narrow = curls.iter().find(|line| line.contains("therapy-areas")).expect("the narrow license");
    assert!(curl(narrow, &server).json()["data"].to_string().contains("Oncology"), "{narrow}");

    // Changing the data while it is served.
    let echo = lines.iter().find(|line| line.starts_with("echo ")).expect("a change");
    let [_, content, _, file] = &words(echo)[..] else { panic!("{echo}") };
    site.write(file, content);
    let import = lines.iter().find(|line| line.contains(" import ")).expect("an import");
    assert_eq!(words(import)[0], env!("CARGO_BIN_EXE_medfeed"), "the program that runs");
    let done = site.run(words(import).into_iter().skip(1));
    assert_eq!(done.code, Some(0), "{import}: {done:?}");
    let record = curls.iter().find(|line| line.contains("/v1/conferences/")).expect("a single record");
    wait_until("the change is served", SOON, || {
        (curl(record, &server).json()["data"]["venue"] == "Hall 7").then_some(())
    });

    let database = words(import).into_iter().find(|word| word.ends_with(".redb")).map(PathBuf::from).unwrap();
    assert!(database.exists());
    server.process.signal("INT");
    let status = server.process.ended_within(SOON).expect("it ends");
    assert_eq!(status.code(), Some(0));
    assert!(!database.exists() && !database.parent().unwrap().exists(), "the database is thrown away");
}
