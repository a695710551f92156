//! The page of `medfeed demo`.

use super::{end_demo, open_demo};
use crate::process::demo::curl;

/// The maximum size of the page and all that it loads, in compressed bytes.
const MAX_BYTES: u64 = 85 << 10;

/// An edit that gives one license an entry of one kind, and the other license an entry of another kind.
pub(super) fn edit_with(wide: &str, narrow: &str) -> String {
    let side = |at, kind: &str| format!("div/section[{at}]//span[.='{kind}']");
    format!("//article[{} and {}]", side(1, wide), side(2, narrow))
}

#[test]
fn demo_edits_reach_each_license_by_its_scope() {
    let Some((browser, server, _site)) = open_demo(&[]) else {
        return;
    };
    for (at, name) in [(1, "demo"), (2, "demo-oncology")] {
        assert_eq!(
            browser.text(&format!("//section[@class='license'][{at}]/h2")),
            name
        );
    }
    // One edit is in both feeds, another makes a record leave the narrow license, a third one is hidden from it.
    for (wide, narrow) in [
        ("changed", "changed"),
        ("changed", "tombstone"),
        ("changed", "nothing"),
        ("changed", "enters"),
    ] {
        browser.wait_for(&edit_with(wide, narrow));
    }
    let words = browser.text(&format!("{}/p", edit_with("changed", "tombstone")));
    assert!(words.contains("moved from Oncology to"), "{words}");
    let sizes = browser
        .js("return [...document.querySelectorAll('.size strong')].map(one => +one.textContent)");
    assert!(sizes[1].as_u64() > Some(30), "{sizes}");
    assert!(sizes[0].as_u64() > Some(300), "{sizes}");

    // The curl line works when pasted.
    browser.click("//summary[.='For developers']");
    let line = browser.text("//details/div[@class='curl'][2]//code");
    let answer = curl(&line, &server);
    assert!(
        answer.status == 200 && answer.json()["next_sync_token"].is_string(),
        "{line}: {answer:?}"
    );

    let script = "return Object.entries(Object.fromEntries(performance.getEntriesByType('resource').filter(({name}) => !/v1|demo.json/.test(name))\
         .concat(performance.getEntriesByType('navigation')).map(entry => [entry.name, entry.encodedBodySize])))";
    let loaded = browser.js(script);
    let loaded = loaded.as_array().unwrap();
    let bytes: u64 = loaded.iter().map(|entry| entry[1].as_u64().unwrap()).sum();
    assert!(loaded.len() >= 3, "{bytes} bytes: {loaded:?}");
    assert!(bytes <= MAX_BYTES, "{bytes} bytes: {loaded:?}");
    let own = format!("http://{}/", server.address);
    assert!(
        loaded
            .iter()
            .all(|entry| entry[0].as_str().unwrap().starts_with(&own)),
        "from elsewhere: {loaded:?}"
    );
    browser.expect_quiet_console(&[]);
    end_demo(browser, server);
}

#[test]
fn an_import_by_hand_is_shown_in_the_demo() {
    let Some((browser, mut server, site)) = open_demo(&["--quiet-data"]) else {
        return;
    };
    // The demo prints the command of the import, with the path of the database.
    let mut lines = std::iter::from_fn(|| {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut server.stdout, &mut line)
            .ok()
            .filter(|count| *count > 0)
            .map(|_| line)
    });
    let import = lines
        .find(|line| line.contains(" import "))
        .expect("an import");
    let database = import
        .split_whitespace()
        .find(|word| word.ends_with(".redb"))
        .expect("a database")
        .to_owned();
    browser.wait_for("//p[contains(., 'Import a change')]");
    browser.wait_for("//p[contains(., 'Waiting for the next edit')]");
    let file = site.write("conferences.jsonl", r#"{"id": 127, "venue": "Hall 7"}"#);
    site.json([
        "import".as_ref(),
        file.as_os_str(),
        "--db".as_ref(),
        database.as_ref(),
    ]);
    browser.wait_for("//article[contains(., 'Another edit') and contains(., 'Hall 7')]");
    browser.expect_quiet_console(&[]);
    end_demo(browser, server);
}
