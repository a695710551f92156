//! The manuals: short, in short sentences, linked to each other, and in agreement with the program's commands and
//! options.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::site::Site;
use crate::sources::sources;

/// The manuals of users, each with its maximum number of words.
pub const MANUALS: [(&str, usize); 13] = [
    ("README.md", 900),
    ("docs/backups.md", 1500),
    ("docs/callers.md", 1500),
    ("docs/copies.md", 1750),
    ("docs/import.md", 1950),
    ("docs/licenses.md", 1500),
    ("docs/operate.md", 2250),
    ("docs/performance.md", 1500),
    ("docs/promises.md", 1800),
    ("docs/recipes.md", 1850),
    ("docs/replicas.md", 1600),
    ("docs/upgrading.md", 1500),
    ("docs/values.md", 600),
];

/// Further files with links.
const FURTHER: [&str; 7] = words![
    "ARCHITECTURE.md" "CHANGELOG.md" "CONTRIBUTING.md" "SECURITY.md" "data/README.md" "examples/README.md"
    "examples/mcp/README.md"
];

/// The maximum number of words of a sentence.
const MAX_SENTENCE: usize = 30;

/// Options in the manuals that belong to other programs.
const FOREIGN_OPTIONS: [&str; 8] = words![
    "--now" "--exclude" "--release" "--profile" "--path" "--bench" "--test" "--nocapture"
];

/// Variables in the manuals that belong to no option.
const FOREIGN_VARIABLES: [&str; 4] =
    words!["MEDFEED_" "MEDFEED_BENCH_LARGE" "MEDFEED_HOST" "MEDFEED_KEY"];

/// Values for the placeholders in the manuals' commands.
const PLACEHOLDERS: [(&str, &str); 10] = [
    ("DATASET", "conferences"),
    ("FILE", "file"),
    ("FILES", "files"),
    ("FOLDER", "folder"),
    ("COMMAND", "serve"),
    ("ID", "17"),
    ("N", "17"),
    ("NAME", "acme"),
    ("TIME", "2026-11-20T18:00:00Z"),
    ("URL", "file:///bucket"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file of the repository.
pub fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The lines of a text's code blocks, without comments at their ends.
pub fn code_lines(text: &str) -> Vec<String> {
    let code = text.lines().filter_map(|line| {
        line.trim_start()
            .strip_prefix("$ ")
            .or(line.strip_prefix("    "))
    });
    let code = code.map(|line| {
        line.split(" #")
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    });
    code.filter(|line| !line.is_empty()).collect()
}

/// The lines of a manual that are neither code nor rows of tables; a blank line ends a paragraph.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    for line in text.lines() {
        let item = line
            .trim_start()
            .trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        let starts_item =
            line.trim_start().starts_with("- ") || item.len() < line.trim_start().len();
        if starts_item || line.starts_with(['|', '#']) {
            prose.push('\n');
        }
        if !line.starts_with("    ") && !line.starts_with(['|', '#']) {
            prose.push_str(line.trim());
        }
        prose.push('\n');
    }
    prose
}

/// The words of each sentence.
fn sentences(text: &str) -> Vec<Vec<String>> {
    let mut sentences = Vec::new();
    for paragraph in prose(text).split("\n\n") {
        let mut sentence = Vec::new();
        for word in paragraph.split_whitespace() {
            sentence.push(word.to_owned());
            if word
                .trim_end_matches(['*', ')', '`', '"'])
                .ends_with(['.', '!', '?'])
            {
                sentences.push(std::mem::take(&mut sentence));
            }
        }
        sentences.push(sentence);
    }
    sentences
}

#[test]
fn manuals_are_short_and_so_are_their_sentences() {
    for (name, most) in MANUALS {
        let text = read(name);
        let words = text.split_whitespace().count();
        assert!(words <= most, "{name} has {words} words, more than {most}");
    }
    let others = [("ARCHITECTURE.md", 0), ("CONTRIBUTING.md", 0)];
    let mut count = 0;
    for (name, _) in MANUALS.into_iter().chain(others) {
        for sentence in sentences(&read(name)) {
            assert!(
                sentence.len() <= MAX_SENTENCE,
                "{name}: {} words: {}",
                sentence.len(),
                sentence.join(" ")
            );
            count += 1;
        }
    }
    assert!(count > 500, "{count} sentences");
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

/// The targets of a text's links and pictures.
fn links(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap_or_default())
        .collect()
}

#[test]
fn links_between_manuals_lead_somewhere() {
    let mut count = 0;
    for name in MANUALS.into_iter().map(|(name, _)| name).chain(FURTHER) {
        let text = read(name);
        for link in links(&text)
            .into_iter()
            .filter(|link| !link.starts_with("http"))
        {
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let from = root().join(name);
            let target = if path.is_empty() {
                from.clone()
            } else {
                from.parent().unwrap().join(path)
            };
            assert!(target.exists(), "{name}: there is no {link}");
            if !fragment.is_empty() {
                let known = anchors(&fs::read_to_string(&target).unwrap());
                assert!(
                    known.contains(fragment),
                    "{name}: {link} is none of {known:?}"
                );
            }
            count += 1;
        }
    }
    assert!(count > 50, "{count} links");
}

#[test]
fn every_manual_is_listed_and_shipped() {
    let readme = read("README.md");
    let entries = fs::read_dir(root().join("docs")).unwrap();
    let files: BTreeSet<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let listed = MANUALS
        .into_iter()
        .filter_map(|(name, _)| name.strip_prefix("docs/"));
    assert_eq!(
        files
            .iter()
            .filter(|name| name.ends_with(".md"))
            .collect::<Vec<_>>(),
        listed.collect::<Vec<_>>()
    );
    for name in &files {
        assert!(
            links(&readme).contains(&format!("docs/{name}").as_str()),
            "README.md does not lead to docs/{name}"
        );
    }
    let manifest = read("Cargo.toml");
    for line in [
        "\"/docs\",",
        "[\"docs/*\", \"usr/share/doc/medfeed/docs/\", \"644\"],",
    ] {
        assert!(
            manifest.contains(line),
            "Cargo.toml does not ship the manuals: {line}"
        );
    }
}

/// The words of a line of shell, up to a comment, a pipe or a redirection. Quotes keep blanks.
pub fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.chars() {
        match letter {
            _ if quote == Some(letter) => quote = None,
            _ if quote.is_some() => words.last_mut().unwrap().push(letter),
            '\'' | '"' => quote = Some(letter),
            ' ' => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    assert_eq!(quote, None, "an open quote: {line}");
    let ends = |word: &String| ["#", "|", ">", "<", ";"].contains(&word.as_str());
    words
        .into_iter()
        .filter(|word| !word.is_empty())
        .take_while(|word| !ends(word))
        .collect()
}

/// The URL and the key of a curl line.
pub fn curl_of(line: &str) -> (String, Option<String>) {
    let words = words(line);
    let key = |word: &str| {
        Some(
            word.split_once("Authorization: Bearer ")
                .or(word.split_once("X-API-Key: "))?
                .1
                .to_owned(),
        )
    };
    let url = words.iter().find(|word| word.starts_with("http://"));
    let url = url.unwrap_or_else(|| panic!("no URL: {line}"));
    (url.clone(), words.iter().find_map(|word| key(word)))
}

/// The commands of the program in a manual, in code blocks and between backticks.
fn commands(text: &str) -> BTreeSet<String> {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let spans = one_line.split('`').skip(1).step_by(2).map(str::to_owned);
    let known = spans
        .chain(code_lines(text))
        .filter(|line| line.starts_with("medfeed "));
    known.collect()
}

#[test]
fn commands_in_manuals_are_commands_of_the_program() {
    let site = Site::new();
    let named: BTreeMap<String, &str> = MANUALS
        .into_iter()
        .flat_map(|(name, _)| {
            commands(&read(name))
                .into_iter()
                .map(move |line| (line, name))
        })
        .collect();
    assert!(named.len() > 60, "{named:?}");
    for (line, name) in named {
        let mut arguments = words(&line).split_off(1);
        for word in &mut arguments {
            if let Some((_, value)) = PLACEHOLDERS
                .iter()
                .find(|(placeholder, _)| word == placeholder)
            {
                (*value).clone_into(word);
            }
            *word = word.replace("$PWD", "/folder");
        }
        // With this last word the command does nothing, but the words before it are parsed.
        if arguments.first().is_none_or(|command| command != "help") {
            arguments.push("--help".to_owned());
        }
        let done = site.run(&arguments);
        assert_eq!(done.code, Some(0), "{name}: {line}: {done:?}");
    }
}

#[test]
fn options_and_variables_in_manuals_are_those_of_the_program() {
    let site = Site::new();
    let help = |arguments: &[&str]| site.run(arguments.iter().copied().chain(["--help"])).stdout;
    let overview = help(&[]);
    let (_, list) = overview.split_once("Commands:\n").unwrap();
    let names = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let name = line.strip_prefix("  ")?.split(' ').next()?;
            (!name.is_empty() && name != "help").then_some(name)
        });
    let mut helps: String = names.map(|name| help(&[name])).collect();
    for (name, below) in cases![
        "license", ["set", "list", "show", "remove", "explain"].as_slice();
        "key", &["create", "list", "revoke", "replace"];
    ] {
        helps.extend(below.iter().map(|below| help(&[name, below])));
    }
    let is_in_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let mut options = 0;
    for (name, _) in MANUALS {
        let text = read(name);
        let own = text.lines().filter(|line| {
            !["cargo ", "docker ", "openssl "]
                .iter()
                .any(|other| line.contains(other))
        });
        for word in own.flat_map(|line| line.split(|letter| !is_in_name(letter))) {
            if word.starts_with("--") && word.len() > 2 && !word.starts_with("---") {
                let is_known = [" ", "\n"]
                    .iter()
                    .any(|end| helps.contains(&format!(" {word}{end}")));
                assert!(
                    is_known || FOREIGN_OPTIONS.contains(&word),
                    "{name}: there is no option {word}"
                );
                options += 1;
            }
            if word.starts_with("MEDFEED_") {
                let is_known = helps.contains(&format!("[env: {word}="));
                assert!(
                    is_known || FOREIGN_VARIABLES.contains(&word),
                    "{name}: no option has the variable {word}"
                );
            }
        }
    }
    assert!(options > 80, "{options}");
}

#[test]
fn files_that_the_architecture_names_are_there() {
    let found = ["src", "tests"].map(|folder| {
        sources(&root().join(folder))
            .into_keys()
            .map(|path| Path::new(folder).join(path))
            .collect::<Vec<_>>()
    });
    for name in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(name);
        let spans = text.split('`').skip(1).step_by(2);
        let spans = spans.filter(|span| span.ends_with(".rs") && !span.contains(' '));
        for span in spans {
            // Steps of future upgrades are named too.
            assert!(
                span.contains("from_3") || found.concat().iter().any(|path| path.ends_with(span)),
                "{name}: there is no file {span}"
            );
        }
    }
}
