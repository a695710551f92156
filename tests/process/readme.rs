//! The examples in README.md and docs/*.md, run against the sample data.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::client::Client;
use super::manuals::{MANUALS, code_lines, curl_of, read, words};
use super::postgres_server::Cluster;
use super::pulled::Pulled;
use super::site::{Server, Site};

/// The folder of the sample data.
fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data")
}

/// The code lines of all manuals, each with the manual's name.
fn all_code_lines() -> Vec<(&'static str, String)> {
    MANUALS
        .into_iter()
        .flat_map(|(name, _)| {
            code_lines(&read(name))
                .into_iter()
                .map(move |line| (name, line))
        })
        .collect()
}

/// A server with the sample data, which have no warnings.
fn served() -> Pulled {
    static DATABASE: OnceLock<Vec<u8>> = OnceLock::new();
    let site = Site::new();
    let database = DATABASE.get_or_init(|| {
        let told = site.json([
            "import".as_ref(),
            data().as_os_str(),
            "--create".as_ref(),
            "--strict".as_ref(),
        ]);
        let journals = &told["datasets"]["journals"]["added"];
        let expected = (&0.into(), &3_425.into());
        assert_eq!((&told["warning_count"], journals), expected, "{told}");
        fs::read(site.db()).unwrap()
    });
    fs::write(site.db(), database).unwrap();
    Pulled::new(site)
}

/// Checks that a search finds more than one name.
fn expect_found(sql: &str, found: &[String]) {
    assert!(found.len() > 1, "{sql} finds {found:?} in the sample data");
}

/// The section of a manual below a heading.
fn section(name: &str, heading: &str) -> String {
    let text = read(name);
    let (_, rest) = text
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("{name}: no {heading}"));
    rest.split("\n## ").next().unwrap().to_owned()
}

/// Runs a line of a manual that begins with `medfeed`. `data` is replaced by the path of the sample data.
fn run(site: &Site, line: &str) -> super::site::Done {
    let mut words = words(line);
    for word in words.iter_mut().filter(|word| *word == "data") {
        *word = data().to_str().unwrap().to_owned();
    }
    site.run(&words[1..])
}

/// Sends the request of a curl line, with a key that works.
fn send(server: &Server, key: &str, line: &str) -> super::client::Answer {
    let (url, _) = curl_of(line);
    let (_, target) = url.split_once("/v1").expect("a path of the API");
    Client::new(server.address, Some(key)).get(&format!("/v1{target}"))
}

#[test]
fn the_five_commands_work_in_order() {
    let site = Site::new();
    let lines = code_lines(&section("README.md", "Run it"));
    let programs: Vec<_> = lines
        .iter()
        .map(|line| {
            words(line)
                .into_iter()
                .take(2)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        programs,
        words!["medfeed import" "medfeed license" "medfeed key" "medfeed serve" "curl -H"]
    );
    let mut key = String::new();
    for line in &lines[..3] {
        let done = run(&site, line);
        assert_eq!(done.code, Some(0), "{line}: {done:?}");
        key = done.stdout.trim().to_owned();
    }
    assert!(key.starts_with("mfk_"), "{key}");
    let server = site.serve();
    let count = send(&server, &key, &lines[4]).items().len();
    assert_eq!(count, 1, "{}", lines[4]);
    server.stop();
}

#[test]
fn the_commands_of_licenses_and_imports_work_in_order() {
    let site = Site::new();
    let import = section("docs/import.md", "Commands");
    let licenses = section("docs/licenses.md", "Give a customer access");
    let mut count = 0;
    for line in code_lines(&import).iter().chain(&code_lines(&licenses)) {
        let done = run(&site, line);
        assert_eq!(done.code, Some(0), "{line}: {done:?}");
        count += 1;
    }
    assert!(count >= 9, "{count} commands");
}

#[test]
fn the_questions_to_a_copy_find_something() {
    let pulled = served();
    pulled.pull("");
    let lines = all_code_lines();
    let asked = |(name, line): &(&'static str, String)| {
        let rest = line.strip_prefix("sqlite3 copy.sqlite ")?;
        let quote = rest.chars().next()?;
        let sql = rest[1..].split(quote).next();
        let sql = sql.filter(|sql| !sql.is_empty()).map(str::to_owned)?;
        // A double-quoted question may hold single quotes.
        let sql = if quote == '"' {
            rest[1..].rsplit_once('"')?.0.to_owned()
        } else {
            sql
        };
        Some((*name, sql))
    };
    let queries: Vec<_> = lines.iter().filter_map(asked).collect();
    assert!(queries.len() >= 4, "{queries:?}");
    // All can be run. Their results may depend on the day.
    let mut searches = 0;
    for (name, sql) in queries {
        let connection = super::pulled::open(&pulled.copy).unwrap();
        let mut statement = connection
            .prepare(&sql)
            .unwrap_or_else(|error| panic!("{name}: {sql}: {error}"));
        let rows = statement
            .query_map([], |row| row.get::<_, String>(0))
            .unwrap();
        let found: Vec<String> = rows.map(Result::unwrap).collect();
        if sql.contains("_search(") {
            expect_found(&sql, &found);
            searches += 1;
        }
    }
    assert!(searches > 0, "no search");
}

#[test]
fn the_search_of_a_copy_in_postgresql_finds_something() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let mut pulled = served();
    let database = cluster.database();
    pulled.copy = PathBuf::from(cluster.url(&database));
    pulled.pull("");
    let lines = all_code_lines();
    let (_, sql) = lines
        .iter()
        .find(|(_, line)| line.contains("websearch_to_tsquery("))
        .expect("a search");
    let rows = cluster
        .client(&database)
        .query(sql.trim_end_matches(';'), &[])
        .unwrap();
    let found = rows.iter().map(|row| row.get(0)).collect::<Vec<String>>();
    expect_found(sql, &found);
}

#[test]
fn requests_in_manuals_are_answered() {
    let pulled = served();
    let lines = all_code_lines();
    let mut count = 0;
    for (at, (name, line)) in lines
        .iter()
        .enumerate()
        .filter(|(_, (_, line))| line.starts_with("curl "))
    {
        let below = lines.get(at + 1).map_or("", |(_, below)| below.as_str());
        if !line.contains("/v1") || line.contains("?since=") {
            // The page of an ended token shows only its shape.
            continue;
        }
        let answer = send(&pulled.server, &pulled.key, line);
        count += 1;
        if line.contains("yaer") {
            let problem = answer.json();
            let detail = problem["detail"]
                .as_str()
                .unwrap()
                .split_once(" Allowed")
                .unwrap()
                .0
                .replace(' ', "");
            let shown = lines[at + 1..at + 3].iter().map(|(_, line)| line.as_str());
            let shown = shown.collect::<String>().replace(' ', "");
            assert!(shown.contains(&detail), "{name}: {detail}: {shown}");
            continue;
        }
        assert_eq!(answer.status, 200, "{name}: {line}");
        if below.starts_with("{\"data\"") {
            // The answer below the line begins with the same record.
            let items = answer.items();
            let first = format!(
                "{{\"data\":[{{\"id\":{},\"name\":{}",
                items[0]["id"], items[0]["name"]
            );
            assert!(below.starts_with(&first), "{name}: {below}");
        }
    }
    assert!(count >= 5, "{count} requests");
}
