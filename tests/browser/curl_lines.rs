//! Someone who copies the displayed curl line into a shell, from a page that a hostile link or record opened.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::chromium::Browser;
use crate::process::site::{Site, conferences_of_version};

const CURL: &str = "//div[@class='curl']//code";

/// A shell in an empty folder, where `curl` writes down its arguments and does nothing else.
struct Shell {
    folder: tempfile::TempDir,
    tools: tempfile::TempDir,
}

impl Shell {
    fn new() -> Shell {
        let shell = Shell { folder: tempfile::tempdir().unwrap(), tools: tempfile::tempdir().unwrap() };
        let script = format!("#!/bin/sh\nprintf '%s\\0' \"$@\" > '{}'\n", shell.arguments().display());
        let curl = shell.tools.path().join("curl");
        fs::write(&curl, script).unwrap();
        fs::set_permissions(&curl, fs::Permissions::from_mode(0o755)).unwrap();
        shell
    }

    fn arguments(&self) -> PathBuf {
        self.tools.path().join("arguments")
    }

    /// Runs a line as it is; returns the arguments that `curl` got. The line runs nothing else.
    fn paste(&self, line: &str) -> Vec<String> {
        let path = format!("{}:{}", self.tools.path().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).current_dir(&self.folder).env("PATH", path).env("MEDFEED_KEY", "mfk_mine");
        let done = command.output().unwrap();
        assert!(done.status.success() && done.stderr.is_empty(), "{line}: {done:?}");
        let made: Vec<_> = fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(made.is_empty(), "{line} made {made:?}");
        let arguments = fs::read_to_string(self.arguments()).unwrap_or_else(|_| panic!("{line} runs no curl"));
        fs::remove_file(self.arguments()).unwrap();
        arguments.split_terminator('\0').map(str::to_owned).collect()
    }

    /// The target of a line that sends a key to this server and has no further options.
    fn target(&self, line: &str, key: &str, root: &str) -> String {
        let arguments = self.paste(line);
        let [header, value, url] = &arguments[..] else { panic!("{line}: {arguments:?}") };
        assert_eq!((header.as_str(), value), ("-H", &format!("Authorization: Bearer {key}")), "{line}");
        url.strip_prefix(root).unwrap_or_else(|| panic!("{line} asks another server: {url}")).to_owned()
    }
}

fn paste_key(browser: &Browser, key: &str) {
    browser.fill("//input[@id='key']", key);
    browser.click("//button[.='Explore']");
}

/// Waits for the curl line of a request whose target holds a text, and for its answer.
fn line_of(browser: &Browser, part: &str) -> String {
    let path = format!("{CURL}[contains(., \"{part}\")]");
    browser.wait_for(&path);
    browser.wait_for_js("no request is under way", "return !document.querySelector('[aria-busy=true]')");
    browser.text(&path)
}

#[test]
fn a_link_puts_no_command_into_the_line() {
    let Some(browser) = Browser::start("a_link_puts_no_command_into_the_line") else { return };
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(9, 1));
    let key = site.open_key();
    let server = site.serve();
    let (root, shell) = (format!("http://{}/v1/", server.address), Shell::new());
    // The text in the page's own address does not reach its requests.
    browser.go(&format!("http://{}/?a';touch pwned;'$(touch pwned)#/conferences", server.address));
    paste_key(&browser, &key);
    let cases = [
        // fragment, target
        ("#/conferences/1", Some("conferences/1")),
        ("#/conferences/00000000000000000001", Some("conferences/00000000000000000001")),
        ("#/conferences/1';touch${IFS}pwned;'", None),
        ("#/conferences/1%27;touch%20pwned;%27", None),
        (r"#/conferences/1\..\..\..\evil", None),
        ("#/conferences/..", None),
        ("#/conferences/%2e%2e", None),
        ("#/conferences/1%2f..", None),
        ("#/conferences/1/../../evil", None),
        ("#/conferences/-1", None),
        ("#/conferences/1.", None),
        ("#/conferences/\u{661}", None),
        ("#/journals/$(touch pwned)", None),
        ("#/reference/tags';touch pwned;'", None),
        ("#/feed/conferences';touch pwned;'", None),
        ("#/feed/conferences/1", None),
        ("#/exports/x", None),
        ("#/conferences?q=';touch pwned;'", Some("conferences?q=%27%3Btouch%20pwned%3B%27")),
        (
            "#/conferences?country=O'Neill \"$(touch pwned)`touch pwned`",
            Some("conferences?country=O%27Neill%20%22%24(touch%20pwned)%60touch%20pwned%60"),
        ),
        (r"#/conferences?q=\..\!*[1-3]{a,b}", Some("conferences?q=%5C..%5C%21%2A%5B1-3%5D%7Ba%2Cb%7D")),
        ("#/conferences?q=a%0Atouch pwned%0A", Some("conferences?q=a%0Atouch%20pwned%0A")),
        ("#/conferences?';touch pwned;'=1", Some("conferences?%27%3Btouch%20pwned%3B%27=1")),
        (
            "#/reference/tags?type=';touch pwned;'",
            Some("reference/tags?dataset=conferences&type=%27%3Btouch%20pwned%3B%27"),
        ),
        ("#/reference/tags?dataset=../../evil'", Some("reference/tags?dataset=..%2F..%2Fevil%27")),
    ];
    for (fragment, target) in cases {
        browser.view("#/journals?limit=1");
        line_of(&browser, "journals?limit=1");
        browser.view(fragment);
        let Some(target) = target else {
            browser.wait_for("//h1[.='No such view']");
            assert_eq!(browser.js("return document.querySelectorAll('.curl').length", &[]), 0, "{fragment}");
            continue;
        };
        let target = target.replace('(', "%28").replace(')', "%29");
        let line = line_of(&browser, &target);
        assert_eq!(shell.target(&line, "mfk_mine", &root), target, "{fragment}");
        // The page itself asks for the same.
        let asked = "return performance.getEntriesByType('resource').some(({name}) => name === arguments[0])";
        assert_eq!(browser.js(asked, &[json!(format!("{root}{target}"))]), true, "{fragment}");
    }

    // A token that someone was given.
    browser.view("#/feed/conferences");
    browser.fill("//input[@id='token']", "';touch pwned;'\\..");
    browser.click("//button[.='Follow']");
    let target = "conferences/changes?since=%27%3Btouch%20pwned%3B%27%5C..";
    assert_eq!(shell.target(&line_of(&browser, "since="), "mfk_mine", &root), target);
    browser.expect_quiet_console(&[400, 404]);
    server.stop();
}

#[test]
fn records_and_keys_put_no_command_into_the_line() {
    let Some(browser) = Browser::start("records_and_keys_put_no_command_into_the_line") else { return };
    let site = Site::new();
    let hostile = "';touch pwned;'$(touch pwned)`touch pwned`\\\"!";
    // A name whose hundredth character takes two units of JavaScript's strings.
    let long = format!("{}\u{1f480}\u{1f480}", "'".repeat(99));
    let statuses = "\"start_date_status\":\"not_found\",\"abstract_due_date_status\":\"not_found\",\
                    \"late_breaking_due_date_status\":\"not_found\"";
    let organizations = [json!({"id": 1, "name": hostile}), json!({"id": 2, "name": long})];
    site.import("organizations.jsonl", organizations.map(|row| format!("{row}\n")).concat());
    site.import("tags.jsonl", json!({"id": 1, "type": hostile, "name": hostile}).to_string());
    let quoted = json!(hostile).to_string();
    let record = format!(
        "{{\"id\":7,\"name\":{quoted},\"country\":{quoted},\"therapy_areas\":[{quoted}],\"organizations\":[1,2],\"tags\":[1],{statuses}}}"
    );
    site.import("conferences.jsonl", record);
    let key = site.open_key();
    let server = site.serve();
    let (root, shell) = (format!("http://{}/v1/", server.address), Shell::new());
    let encoded = "%27%3Btouch%20pwned%3B%27%24%28touch%20pwned%29%60touch%20pwned%60%5C%22%21";
    browser.go(&format!("http://{}/#/conferences/7", server.address));
    paste_key(&browser, &key);
    let links = [
        // view, the link that is clicked there, target
        ("#/conferences/7", "//a[@class='tag']", format!("conferences?therapy_area={encoded}")),
        ("#/conferences/7", "//dd//li/a", format!("reference/tags?dataset=conferences&type={encoded}")),
        (
            "#/reference/organizations",
            "//tr[1]//a[starts-with(., 'Search')]",
            format!("conferences?q={}%F0%9F%92%80", "%27".repeat(99)),
        ),
        ("#/reference/organizations", "//tr[2]//a[starts-with(., 'Search')]", format!("conferences?q={encoded}")),
    ];
    for (view, link, target) in links {
        browser.view(view);
        browser.click(&format!("//main{link}"));
        let line = line_of(&browser, &target);
        assert_eq!(shell.target(&line, "mfk_mine", &root), target, "{link}");
    }

    // A key that someone was given, shown in the line.
    browser.click("//button[.='Forget key']");
    let key = "$(touch pwned)';touch pwned;'\"`touch pwned`\\";
    paste_key(&browser, key);
    browser.click("//button[.='Show key']");
    let line = line_of(&browser, "Bearer $(touch");
    assert_eq!(shell.target(&line, key, &root), format!("conferences?q={encoded}"));
    browser.expect_quiet_console(&[401]);
    server.stop();
}
