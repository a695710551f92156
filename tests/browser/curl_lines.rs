//! Displayed curl lines, pasted into a shell, on pages with hostile links and records.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::chromium::{Browser, wait_until};
use super::{forget, open_filters, open_page, paste_key};
use crate::process::site::{assert_contains, conferences_of_version};

/// A shell in an empty folder, where `curl` stores its arguments and does nothing else.
struct Shell {
    folder: tempfile::TempDir,
    tools: tempfile::TempDir,
}

impl Shell {
    fn new() -> Shell {
        let shell = Shell {
            folder: tempfile::tempdir().unwrap(),
            tools: tempfile::tempdir().unwrap(),
        };
        let script = format!(
            "#!/bin/sh\nprintf '%s\\0' \"$@\" > '{}'\n",
            shell.arguments().display()
        );
        let curl = shell.tools.path().join("curl");
        fs::write(&curl, script).unwrap();
        fs::set_permissions(&curl, fs::Permissions::from_mode(0o755)).unwrap();
        shell
    }

    fn arguments(&self) -> PathBuf {
        self.tools.path().join("arguments")
    }

    /// Runs a line as it is. Returns the arguments of `curl`. The line runs nothing else.
    fn paste(&self, line: &str) -> Vec<String> {
        let path = format!(
            "{}:{}",
            self.tools.path().display(),
            std::env::var("PATH").unwrap()
        );
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(line)
            .current_dir(&self.folder)
            .env("PATH", path)
            .env("MEDFEED_KEY", "mfk_mine");
        let done = command.output().unwrap();
        assert!(done.status.success(), "{line}: {done:?}");
        assert!(done.stderr.is_empty(), "{line}: {done:?}");
        let made = fs::read_dir(&self.folder).unwrap();
        let made: Vec<_> = made.map(|entry| entry.unwrap().file_name()).collect();
        assert!(made.is_empty(), "{line} made {made:?}");
        let arguments =
            fs::read_to_string(self.arguments()).unwrap_or_else(|_| panic!("{line} runs no curl"));
        fs::remove_file(self.arguments()).unwrap();
        arguments
            .split_terminator('\0')
            .map(str::to_owned)
            .collect()
    }

    /// The target of a line that sends a key to this server and has no further options.
    fn target(&self, line: &str, key: &str, root: &str) -> String {
        let arguments = self.paste(line);
        let [header, value, url] = &arguments[..] else {
            panic!("{line}: {arguments:?}")
        };
        let expected = ("-H", &format!("Authorization: Bearer {key}"));
        assert_eq!((header.as_str(), value), expected, "{line}");
        url.strip_prefix(root)
            .unwrap_or_else(|| panic!("{line} asks another server: {url}"))
            .to_owned()
    }
}

/// Waits for the curl line of a request whose target contains a text, and for its answer. The line may be in a closed
/// fold.
fn line_of(browser: &Browser, part: &str) -> String {
    let lines = "return [...document.querySelectorAll('.curl code')].map(line => line.textContent)\
                 .find(line => line.includes(arguments[0])) ?? null";
    let line = wait_until(part, || {
        browser
            .js_with(lines, &[json!(part)])
            .as_str()
            .map(str::to_owned)
    });
    let what = "no request is under way";
    browser.wait_for_js(what, "return !document.querySelector('[aria-busy=true]')");
    line
}

#[test]
fn a_hostile_link_puts_no_command_into_the_curl_line() {
    let files = [("conferences.jsonl", conferences_of_version(9, 1))];
    let Some((browser, _site, server, key)) = open_page(&files) else {
        return;
    };
    let (root, shell) = (format!("http://{}/v1/", server.address), Shell::new());
    // The text in the page's own address does not get into its requests.
    browser.go(&format!(
        "http://{}/?a';touch pwned;'$(touch pwned)#/conferences",
        server.address
    ));
    paste_key(&browser, &key);
    let cases = cases![
        // fragment, target
        "#/conferences/1", Some("conferences/1");
        "#/conferences/1';touch${IFS}pwned;'", None;
        r"#/conferences/1\..\..\..\evil", None;
        "#/conferences/%2e%2e", None;
        "#/conferences/1/../../evil", None;
        "#/changes/conferences';touch pwned;'", None;
        "#/conferences?country=O'Neill \"$(touch pwned)`touch pwned`",
            Some("conferences?country=O%27Neill%20%22%24(touch%20pwned)%60touch%20pwned%60");
        r"#/conferences?q=\..\!*[1-3]{a,b}", Some("conferences?q=%5C..%5C%21%2A%5B1-3%5D%7Ba%2Cb%7D");
        "#/conferences?therapy_area=x&';touch pwned;'=1&area=';touch pwned;'",
            Some("conferences?therapy_area=%27%3Btouch%20pwned%3B%27");
        "#/conferences?q=heart mfk_0123456789&country=MFK_a", Some("conferences?q=heart");
    ];
    for (fragment, target) in cases {
        browser.view("#/journals");
        line_of(&browser, "v1/journals");
        browser.view(fragment);
        let Some(target) = target else {
            browser.wait_for("//h1[.='No such view']");
            let found = browser.js("return document.querySelectorAll('.curl').length");
            assert_eq!(found, 0, "{fragment}");
            continue;
        };
        let target = target.replace('(', "%28").replace(')', "%29");
        let line = line_of(&browser, &format!("v1/{target}'"));
        assert_eq!(shell.target(&line, "mfk_mine", &root), target, "{fragment}");
        let address = browser
            .js("return location.href")
            .as_str()
            .unwrap()
            .to_lowercase();
        assert!(!address.contains("mfk_"), "{address}");
    }

    // A filter whose value is only a key is no filter. An empty value would mean records without a country.
    let chips = browser.text("//ul[@aria-label='Chosen filters']");
    assert_contains(&chips, "“heart”");
    assert!(!chips.contains("announced"), "{chips}");

    // A key in the search box.
    browser.view("#/conferences");
    browser.fill("//input[@id='words']", "brain mfk_0123456789abcdef");
    browser.wait_for("//p[contains(., 'looks like an API key')]");
    // The second half of a key that a line break has cut in two is dropped too.
    let path = "//input[@id='words']";
    browser.fill(path, "brain mfk_0123456789abcdef GHIJKLMN0123opqrst");
    let script = "return document.querySelector('.chip')?.textContent.includes('“brain”')";
    browser.wait_for_js("the chip", script);
    let target = "conferences?q=brain";
    assert_eq!(
        shell.target(&line_of(&browser, target), "mfk_mine", &root),
        target
    );
    browser.wait_for_js(
        "the history has a word of its own, and the address has none",
        "return history.state?.words && !location.href.includes('brain')",
    );
    let seen = browser
        .js("return location.href + JSON.stringify(history.state) + document.querySelector('.curl').textContent");
    assert!(!seen.to_string().contains("mfk_"), "{seen}");

    // A token from somebody else.
    browser.view("#/developers/conferences");
    browser.fill("//input[@id='token']", "';touch pwned;'\\..");
    browser.click("//button[.='Ask the feed']");
    let target = "conferences/changes?since=%27%3Btouch%20pwned%3B%27%5C..";
    assert_eq!(
        shell.target(&line_of(&browser, "since="), "mfk_mine", &root),
        target
    );
    // The page itself requests the same.
    let asked =
        "return performance.getEntriesByType('resource').some(({name}) => name === arguments[0])";
    let is_asked = browser.js_with(asked, &[json!(format!("{root}{target}"))]);
    assert_eq!(is_asked, true);
    browser.expect_quiet_console(&[400, 404]);
    server.stop();
}

#[test]
fn hostile_records_and_keys_put_no_command_into_the_curl_line() {
    let hostile = "';touch pwned;'$(touch pwned)`touch pwned`\\\"!";
    let statuses = "\"start_date_status\":\"not_found\",\"abstract_due_date_status\":\"not_found\",\
                    \"late_breaking_due_date_status\":\"not_found\"";
    let quoted = json!(hostile).to_string();
    let record = format!(
        "{{\"id\":7,\"name\":{quoted},\"country\":{quoted},\"therapy_areas\":[{quoted}],\"organizations\":[1],\"tags\":[1],{statuses}}}"
    );
    let files = cases![
        "organizations.jsonl", json!({"id": 1, "name": hostile}).to_string();
        "tags.jsonl", json!({"id": 1, "type": hostile, "name": hostile}).to_string();
        "conferences.jsonl", record;
    ];
    let Some((browser, _site, server, key)) = open_page(&files) else {
        return;
    };
    let (root, shell) = (format!("http://{}/v1/", server.address), Shell::new());
    let encoded = "%27%3Btouch%20pwned%3B%27%24%28touch%20pwned%29%60touch%20pwned%60%5C%22%21";
    browser.view("#/conferences/7");
    paste_key(&browser, &key);
    // A link of a record, and a value of a facet.
    browser.click("//main//a[@class='tag']");
    open_filters(&browser);
    browser.click("//summary[.='Country']");
    browser.click("//details[summary='Country']//label/input");
    let both = format!("conferences?country={encoded}&therapy_area={encoded}");
    let target = shell.target(&line_of(&browser, &both), "mfk_mine", &root);
    assert_eq!(target, both);

    // The reader's own key, shown in the line.
    browser.click("//summary[.='For developers']");
    browser.click("//button[.='Show key']");
    let target = shell.target(&line_of(&browser, &format!("Bearer {key}")), &key, &root);
    assert_eq!(target, both);
    // A key from somebody else gets into no line.
    forget(&browser, "Forget key");
    paste_key(&browser, "$(touch${IFS}pwned)';touch${IFS}pwned;'`touch`");
    browser.wait_for("//p[@id='key-error' and contains(., 'not recognised')]");
    assert_eq!(
        browser.js("return document.querySelectorAll('.curl').length"),
        0
    );
    browser.expect_quiet_console(&[401]);
    server.stop();
}
