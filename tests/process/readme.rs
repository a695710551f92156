//! The examples of README.md, run against the sample data that it speaks of.

use std::path::{Path, PathBuf};

use super::postgres_server::Cluster;
use super::pulled::Pulled;
use super::site::Site;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The code lines of the README.
fn code_lines() -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    readme.lines().filter_map(|line| Some(line.strip_prefix("    ")?.to_owned())).collect()
}

/// A server of the sample data.
fn served() -> Pulled {
    let site = Site::new();
    site.json(["import".as_ref(), root().join("data").as_os_str()]);
    Pulled::new(site)
}

/// A search finds more than one name.
fn expect_found(sql: &str, found: &[String]) {
    assert!(found.len() > 1, "{sql} finds {found:?} in the sample data");
}

#[test]
fn the_search_of_a_copy_finds_something() {
    let pulled = served();
    pulled.pull("");
    let lines = code_lines();
    let asked = |line: &String| Some(line.strip_prefix("$ sqlite3 copy.sqlite \"")?.strip_suffix('"')?.to_owned());
    let queries: Vec<String> = lines.iter().filter_map(asked).collect();
    assert!(queries.len() >= 2, "{queries:?}");
    // All can be run; what they find may depend on the day.
    let found: Vec<Vec<String>> = queries.iter().map(|sql| pulled.column(sql)).collect();
    let mut searches = queries.iter().zip(&found).filter(|(sql, _)| sql.contains("_search("));
    let (sql, found) = searches.next().expect("a search");
    expect_found(sql, found);
}

#[test]
fn the_search_of_a_copy_in_postgresql_finds_something() {
    let Some(cluster) = Cluster::shared("the_search_of_a_copy_in_postgresql_finds_something") else { return };
    let mut pulled = served();
    let database = cluster.database();
    pulled.copy = PathBuf::from(cluster.url(&database));
    pulled.pull("");
    let lines = code_lines();
    let sql = lines.iter().find(|line| line.contains("websearch_to_tsquery(")).expect("a search");
    let rows = cluster.client(&database).query(sql.trim_end_matches(';'), &[]).unwrap();
    expect_found(sql, &rows.iter().map(|row| row.get(0)).collect::<Vec<String>>());
}

#[test]
fn the_requests_of_the_readme_find_something() {
    let pulled = served();
    let lines = code_lines();
    let lists = lines.iter().filter(|line| line.starts_with("$ curl ") && line.contains("limit="));
    let mut count = 0;
    for line in lists {
        let (_, target) = line.split_once("'http://127.0.0.1:8080").expect("the demo's address");
        let items = pulled.client().get(target.trim_end_matches('\'')).items();
        assert!(!items.is_empty(), "{line}");
        // The answer below it begins with the same record.
        let below = lines.iter().skip_while(|other| *other != line).nth(1).unwrap();
        let name = format!("{{\"data\":[{{\"id\":{},\"name\":{}", items[0]["id"], items[0]["name"]);
        assert!(below.starts_with(&name), "{below}");
        count += 1;
    }
    assert!(count > 0, "no request with a limit");
}
