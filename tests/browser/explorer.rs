//! Who pastes a key.

use std::fs;

use serde_json::json;

use super::chromium::{Browser, PATIENCE};
use crate::process::site::{Site, conferences_of_version, wait_until};

/// The records of the site.
const COUNT: u64 = 130;
const CURL: &str = "//div[@class='curl']//code";

fn paste(browser: &Browser, key: &str) {
    browser.fill("//input[@id='key']", key);
    browser.click("//button[.='Explore']");
}

/// The curl line of the view is the request that the page made last. `key` stands between a shell's quotes.
fn expect_curl(browser: &Browser, key: &str, quote: char) {
    let url = browser.js("return performance.getEntriesByType('resource').filter(({name}) => name.includes('/v1/conferences')).at(-1).name", &[]);

    let expected = format!("curl -H {quote}Authorization: Bearer {key}{quote} '{}'", url.as_str().unwrap());
    assert_eq!(browser.text(CURL), expected);
}

#[test]
fn a_key_shows_what_its_license_sees() {
    let Some(browser) = Browser::start("a_key_shows_what_its_license_sees") else { return };
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(COUNT, 1));
    let key = site.open_key();
    let server = site.serve();
    let page = format!("http://{}/", server.address);
    browser.go(&page);

    // A key that is none.
    paste(&browser, "mfk_none");
    let problem = browser.text("//section[@class='problem']");
    assert!(problem.contains("401 Unauthorized") && problem.contains("invalid_api_key"), "{problem}");
    let docs = browser.js("return document.querySelector('.problem a').href", &[]);
    assert_eq!(docs, format!("{page}docs/errors/invalid_api_key"));
    browser.click("//button[.='Use another key']");

    // A table, and its pages.
    paste(&browser, &key);
    browser.wait_for("//h2[contains(., '100 records, more follow')]");
    assert_eq!(browser.js("return document.querySelectorAll('tbody tr').length", &[]), 100);
    expect_curl(&browser, "$MEDFEED_KEY", '"');
    browser.click("//button[.='Show key']");
    expect_curl(&browser, &key, '\'');
    browser.click("//button[.='Hide key']");
    browser.click("//a[.='Next page']");
    browser.wait_for("//h2[contains(., '30 records on this page, the last ones')]");
    browser.wait_for_js("the focus is at the page's head", "return document.activeElement.className === 'results'");
    browser.back();
    browser.wait_for("//h2[contains(., '100 records, more follow')]");

    // Filters, those too that the API refuses.
    for (name, value, expected) in [
        ("year", "20x", "must be a whole number from 1900 to 2100"),
        ("year", "2026", "33 records"),
        ("therapy_area", "Oncology", "11 records"),
        ("q", "Conference 126", "1 record"),
        ("q", "no such", "No record fits."),
    ] {
        browser.fill(&format!("//input[@name='{name}']"), &format!("{value}\u{e007}"));
        browser.wait_for(&format!("//main[.//h2[.='{expected}'] or .//section[contains(., '{expected}')]]"));
        browser.wait_for_js("no request is under way", "return !document.querySelector('[aria-busy=true]')");
        expect_curl(&browser, "$MEDFEED_KEY", '"');
    }
    browser.view("#/conferences?yaer=2026");
    browser.wait_for("//section[@class='problem' and contains(., 'Did you mean year?')]");

    // A record.
    browser.view("#/conferences");
    browser.click("//a[.='Conference 5']");
    browser.wait_for("//h1[.='Conference 5']");
    browser.wait_for("//main[contains(., 'under review by the service operator')]");
    browser.wait_for_js("the focus is at the heading", "return document.activeElement.tagName === 'H1'");
    browser.click("//a[@class='tag']");
    browser.wait_for("//h2[contains(., 'record')]");

    // What leads on from a reference list.
    browser.click("//a[.='Reference']");
    browser.click("//a[.='Neurology']");
    browser.wait_for_js(
        "the filter is set",
        "return document.querySelector('input[name=therapy_area]')?.value === 'Neurology'",
    );

    // The key stands in memory alone.
    let kept = browser.js("return [location.href, JSON.stringify(history.state), localStorage.length, sessionStorage.length, document.cookie]", &[]);
    assert!(!kept[0].as_str().unwrap().contains("mfk_") && kept[1] == "null", "{kept}");
    assert_eq!((&kept[2], &kept[3], &kept[4]), (&json!(0), &json!(0), &json!("")));
    browser.expect_quiet_console(&[400, 401]);
}

#[test]
fn the_feed_and_the_exports_are_followed() {
    let Some(browser) = Browser::start("the_feed_and_the_exports_are_followed") else { return };
    let site = Site::new();
    site.import("conferences.jsonl", conferences_of_version(COUNT, 1));
    let key = site.open_key();
    let server = site.serve();
    browser.download_to(site.folder());
    browser.go(&format!("http://{}/#/feed/conferences", server.address));
    paste(&browser, &key);
    browser.click("//button[.='Take a token now']");
    browser.wait_for("//span[.='Watching, every 2 seconds.']");
    site.import("conferences.jsonl", r#"{"id": 7, "venue": "Hall 7"}"#);
    browser.wait_for("//li[contains(., 'Conference 7')]");
    site.import("conferences.jsonl", r#"{"id": 7, "deleted": true}"#);
    browser.wait_for("//li[contains(., 'tombstone') and contains(., 'Conference 7')]");

    // The license changes: the token ends, and the page says what to do.
    site.license("all", "--dataset conferences --year 2024..2030");
    browser.wait_for(
        "//section[@class='problem' and contains(., 'resync_required') and contains(., 'load the export anew')]",
    );
    browser.click("//button[contains(., 'export')]");
    browser.wait_for("//span[.='Watching, every 2 seconds.']");
    site.import("conferences.jsonl", r#"{"id": 8, "venue": "Hall 8"}"#);
    browser.wait_for("//li[contains(., 'Conference 8')]");

    browser.view("#/exports");
    // The journals are no longer licensed.
    for format in ["JSON Lines", "CSV"] {
        browser.wait_for(&format!("//section[contains(., 'conferences, {format}')]//dd[.='129']"));
        let problem = "//section[contains(., 'dataset_not_licensed')]";
        browser.wait_for(&format!("//section[contains(., 'journals, {format}')]{problem}"));
    }
    browser.click("//section[contains(., 'conferences, CSV')]//button[.='Download']");
    // Chromium reserves the name with an empty file, and puts the whole one there by a rename.
    let is_file = |name: &String| name.starts_with("conferences-") && name.ends_with(".csv");
    let text = wait_until("the file is there", PATIENCE, || {
        let name = site.files().into_iter().find(is_file)?;
        fs::read_to_string(site.path(&name)).ok().filter(|text| !text.is_empty())
    });
    assert!(text.starts_with("\u{feff}id,") && text.lines().count() == 130, "{text}");
    browser.click("//section[contains(., 'conferences, CSV')]//button[contains(., 'Follow')]");
    browser.wait_for("//span[.='Watching, every 2 seconds.']");
    browser.expect_quiet_console(&[403, 410]);
}
