//! The explorer with a key: its views, its copy, and changes that arrive.

use std::collections::BTreeSet;
use std::fs;

use medfeed::model::time::now;
use serde_json::{Value, json};

use super::chromium::{Browser, wait_until};
use super::{export, forget, in_export_menu, open_filters, open_page, paste_key};
use crate::process::site::{STATUSES, Site, assert_contains, conferences_of_version};

/// The records of the site.
const COUNT: u64 = 130;

/// Conferences of 2094 to 2097, all in the future.
pub(super) fn conferences(count: u64, version: u64) -> String {
    conferences_of_version(count, version).replace("\"year\":202", "\"year\":209")
}

/// Waits until the list's heading is this text.
pub(super) fn expect_total(browser: &Browser, total: &str) {
    browser.wait_for(&format!(
        "//h2[@class='results' and normalize-space(.)='{total}']"
    ));
}

/// The places where the key could be: the address, the history, storage, cookies.
pub(super) fn kept_texts(browser: &Browser) -> Value {
    browser.js(
        "return [location.href, JSON.stringify(history.state), JSON.stringify({...localStorage}), \
         JSON.stringify({...sessionStorage}), document.cookie]",
    )
}

#[test]
fn a_key_shows_the_records_of_its_license() {
    let files = [("conferences.jsonl", conferences(COUNT, 1))];
    let Some((browser, _site, server, key)) = open_page(&files) else {
        return;
    };

    // A wrong key stays in its field, with the reason below.
    paste_key(&browser, "mfk_none");
    browser.wait_for("//p[@id='key-error' and contains(., 'not recognised')]");
    assert_eq!(
        browser.js("return document.getElementById('key').value"),
        "mfk_none"
    );
    assert_eq!(browser.js("return document.activeElement.id"), "key");
    // So does one that the server does not judge, because too many wrong ones came from its address.
    let mut other = server.client("mfk_none");
    for _ in 0..100 {
        other.get("/v1/conferences");
    }
    paste_key(&browser, "mfk_other");
    browser.wait_for(
        "//p[@id='key-error' and contains(., 'Too many requests with unusable API keys')]",
    );
    // A second attempt replaces the wrong key. No pasted text becomes a search.
    paste_key(&browser, &key);
    expect_total(&browser, "130 conferences");
    assert_eq!(
        browser.js("return [location.hash, document.getElementById('words').value]"),
        json!(["", ""])
    );

    // A table that shows more on request.
    let rows = "return document.querySelectorAll('tbody tr').length";
    assert_eq!(browser.js(rows), 50);
    browser.click("//button[.='Show more']");
    let script = "return document.querySelectorAll('tbody tr').length === 130";
    browser.wait_for_js("all rows", script);

    // Words and facets, with totals.
    for (words, expected) in [
        ("oncol", "43 of 130 conferences"),
        ("JAPAN onc 2095", "4 of 130 conferences"),
        ("conférence 126", "1 of 130 conferences"),
        ("no such", "0 of 130 conferences"),
    ] {
        browser.fill("//input[@id='words']", words);
        expect_total(&browser, expected);
    }
    // A typing error.
    browser.fill("//input[@id='words']", "Cofnerence 126");
    expect_total(&browser, "0 of 130 conferences");
    browser.click("//p[contains(., 'Did you mean')]/button[.='Conference 126']");
    expect_total(&browser, "1 of 130 conferences");
    assert_eq!(
        browser.js("return document.getElementById('words').value"),
        "Conference 126"
    );
    browser.click("//button[contains(@class, 'chip')]");
    expect_total(&browser, "130 conferences");
    open_filters(&browser);
    let facet = |name: &str, value: &str| {
        browser.click(&format!(
            "//details[summary='{name}']//label[span='{value}']/input"
        ));
    };
    facet("Therapy area", "Oncology");
    expect_total(&browser, "43 of 130 conferences");
    facet("Therapy area", "Cardiology");
    expect_total(&browser, "87 of 130 conferences");
    facet("Year", "2096");
    expect_total(&browser, "22 of 130 conferences");
    facet("Region", "Europe");
    browser.wait_for("//ul[@aria-label='Chosen filters']//button[contains(., 'Europe')]");
    browser.back();
    expect_total(&browser, "22 of 130 conferences");

    // Columns sort, in both directions.
    browser.click("//button[.='Clear all']");
    for first in ["Conference 1", "Conference 99"] {
        browser.click("//th//button[.='Conference']");
        browser.wait_for(&format!("//tbody/tr[1]//a[starts-with(., '{first} 209')]"));
    }

    // A record that is opened right after typing keeps its address. The list would change it after 300 ms.
    let address = browser.js_async(
        "const words = document.getElementById('words'); words.value = 'oncol'; \
         words.dispatchEvent(new Event('input', {bubbles: true})); location.hash = '#/conferences/5'; \
         setTimeout(() => arguments[0](location.hash), 300)",
    );
    assert_eq!(address, "#/conferences/5");

    // The same holds for a view whose address is set just before the list would write its own.
    browser.view("#/conferences");
    expect_total(&browser, "130 conferences");
    browser.js(
        "const wait = setTimeout; window.setTimeout = (run, ms) => ms === 300 ? void (window.write = run) : wait(run, ms); \
         const words = document.getElementById('words'); words.value = 'oncol'; \
         words.dispatchEvent(new Event('input', {bubbles: true})); window.setTimeout = wait; \
         location.hash = '#/conferences?year=2096'; window.write()");
    let script = "return document.querySelector('.chip')?.textContent.includes('2096') && location.hash === '#/conferences?year=2096'";
    browser.wait_for_js("the other view", script);
    browser.view("#/conferences/5");

    // A record, and its links.
    browser.wait_for("//h1[.='Conference 5 2095']");
    browser.wait_for("//main[contains(., 'under review by the service operator')]");
    let what = "the focus is at the heading";
    browser.wait_for_js(what, "return document.activeElement.tagName === 'H1'");
    browser.click("//a[@class='tag']");
    expect_total(&browser, "43 of 130 conferences");
    browser.view("#/conferences/4711");
    browser.wait_for("//section[@class='problem' and contains(., 'record_not_found')]");

    let kept = kept_texts(&browser);
    assert!(!kept.to_string().contains("mfk_"), "{kept}");
    browser.expect_quiet_console(&[401, 404, 429]);
}

/// A conference of a therapy area and country whose abstracts are due in `days` days.
fn due_in(id: u64, area: &str, country: &str, days: i64) -> String {
    let day = now().plus_s(days * 86_400).date();
    let statuses = r#""start_date_status":"check","late_breaking_due_date_status":"not_found""#;
    format!(
        "{{\"id\":{id},\"name\":\"Meeting {id}\",\"year\":2097,\"therapy_areas\":[\"{area}\"],\"country\":\"{country}\",\
         \"city\":\"City, {id}\",\"abstract_due_date\":\"{day}\",\"abstract_due_date_status\":\"estimated\",{statuses}}}\n"
    )
}

#[test]
fn a_planner_finds_deadlines_and_downloads_them() {
    let records = [
        due_in(1, "Oncology", "Spain", 50),
        due_in(2, "Oncology", "Germany", 10),
        due_in(3, "Oncology", "Germany", 75),
        due_in(4, "Oncology", "Japan", 10),
        due_in(5, "Cardiology", "Spain", 10),
        due_in(6, "Oncology", "Spain", -10),
    ];
    let files = [("conferences.jsonl", records.concat())];
    let Some((browser, site, _server, key)) = open_page(&files) else {
        return;
    };
    paste_key(&browser, &key);
    expect_total(&browser, "6 conferences");

    // Oncology meetings in Europe whose abstract deadline is in the next 60 days: five clicks.
    open_filters(&browser);
    browser.click("//details[summary='Therapy area']//label[span='Oncology']/input");
    browser.click("//details[summary='Region']//label[span='Europe']/input");
    browser.click("//select[@id='kind']/option[.='Abstracts']");
    browser.click("//button[.='60 days']");
    expect_total(&browser, "2 of 6 conferences");
    let names = "return [...document.querySelectorAll('tbody tr a')].map(link => link.textContent)";
    let expected = json!(["Meeting 2 2097", "Meeting 1 2097"]);
    assert_eq!(browser.js(names), expected);
    browser.wait_for("//tbody/tr[1][contains(., 'estimated') and contains(., 'in 10 days')]");

    // The address holds the view, and not the key. A colleague sees the same with another key.
    let address = browser
        .js("return location.href")
        .as_str()
        .unwrap()
        .to_owned();
    for part in words!["area=Oncology" "region=Europe" "deadline=abstract" "within=60"] {
        assert!(address.contains(part), "{address} lacks {part}");
    }
    assert!(!address.contains("mfk_"), "{address}");

    // The files of this view.
    let file = |end: &str| {
        let is_file = |name: &String| name.starts_with("conferences-") && name.ends_with(end);
        wait_until("the file is there", || {
            let name = site.files().into_iter().find(is_file)?;
            fs::read_to_string(site.path(&name))
                .ok()
                .filter(|text| !text.is_empty())
        })
    };
    export(&browser, "Calendar");
    let calendar = file(".ics");
    assert!(calendar.starts_with("BEGIN:VCALENDAR\r\n"), "{calendar}");
    assert!(calendar.ends_with("END:VCALENDAR\r\n"), "{calendar}");
    let count = calendar.matches("BEGIN:VEVENT\r\n").count();
    assert_eq!(count, 2, "{calendar}");
    let name = calendar.replace("\r\n ", "");
    let name = name
        .lines()
        .find_map(|line| line.strip_prefix("X-WR-CALNAME:"))
        .unwrap();
    let expected = r"Conferences: Oncology\, Europe\, Abstracts\, due in the next 60 days";
    assert_eq!(name, expected);
    let is_named = |file: &String| {
        file.starts_with("conferences-oncology-europe-abstracts-due-in-the-next-60-days-")
    };
    assert!(site.files().iter().any(is_named), "{:?}", site.files());
    assert_contains(&calendar, "projected from earlier");
    assert_contains(&calendar, r"City\, 1");
    export(&browser, "CSV");
    let csv = file(".csv");
    assert!(
        csv.starts_with("\u{feff}") && csv.lines().count() == 3 && csv.contains("\"City, 1\""),
        "{csv}"
    );

    // By month, and after an empty period.
    browser.click("//button[.='Months']");
    expect_total(&browser, "2 deadlines");
    browser.wait_for("//section[@class='month']//h3");
    browser.view("#/conferences?area=Oncology&region=Europe&country=Germany&within=30&year=2097&deadline=abstract");
    expect_total(&browser, "1 of 6 conferences");
    site.import("conferences.jsonl", r#"{"id": 2, "deleted": true}"#);
    expect_total(&browser, "0 of 5 conferences");
    browser.click("//button[.='Show all that are ahead']");
    expect_total(&browser, "1 of 5 conferences");
    // Without a kind the question has no deadlines but in its period.
    browser.view("#/conferences?country=Germany&within=30");
    browser.wait_for("//p[contains(., 'Nothing is due in this period. The next deadline is on')]");
    in_export_menu(&browser, "Calendar (0 dates)");
    browser.wait_for("//button[starts-with(., 'Calendar (0 dates)') and @disabled]");

    let other = site.key("all", &[]).1;
    let script = "location.href = arguments[0]; location.reload()";
    browser.js_with(script, &[json!(address)]);
    browser.wait_for("//input[@id='key']");
    paste_key(&browser, &other);
    expect_total(&browser, "1 of 5 conferences");
    // A key in the search field does not get into the address.
    browser.fill("//input[@id='words']", &other);
    expect_total(&browser, "0 of 5 conferences");
    browser.click("//button[.='Months']");
    let address = browser.js("return location.href").to_string();
    assert!(!address.contains("mfk_"));
    browser.expect_quiet_console(&[]);
}

#[test]
fn counts_include_unannounced_values_and_leave_out_past_meetings() {
    let day = |days: i64| now().plus_s(days * 86_400).date();
    let conference = |id: u64, fields: Value| {
        let mut record = json!({"id": id, "name": format!("Meeting {id}"), "therapy_areas": ["Oncology"], "start_date_status": "check",
            "abstract_due_date_status": "estimated", "late_breaking_due_date_status": "not_found"});
        record
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        format!("{record}\n")
    };
    let late = day(80);
    let records = [
        conference(
            1,
            json!({"country": "Spain", "abstract_due_date": day(50), "late_breaking_due_date": late, "late_breaking_due_date_status": "confirmed"}),
        ),
        conference(2, json!({"abstract_due_date": day(20)})),
        conference(
            3,
            json!({"country": "Germany", "abstract_due_date": day(-400), "start_date": day(-300), "end_date": day(-298)}),
        ),
    ];
    let files = [("conferences.jsonl", records.concat())];
    let Some((browser, site, _server, key)) = open_page(&files) else {
        return;
    };
    paste_key(&browser, &key);

    // The list and its files have the future meetings, and their number. A click shows past meetings.
    expect_total(&browser, "2 of 3 conferences");
    in_export_menu(&browser, "Calendar (3 dates)");
    in_export_menu(&browser, "CSV (2 rows)");
    browser.wait_for("//p[contains(., '1 more is over.')]");
    browser.click("//button[.='Show it too']");
    expect_total(&browser, "3 conferences");
    in_export_menu(&browser, "Calendar (5 dates)");
    in_export_menu(&browser, "CSV (3 rows)");
    browser.click("//button[contains(@class, 'chip') and contains(., 'with past ones')]");
    expect_total(&browser, "2 of 3 conferences");
    open_filters(&browser);
    browser.click("//label[span='Coming only']/input");
    expect_total(&browser, "3 conferences");
    browser.click("//label[span='Coming only']/input");
    expect_total(&browser, "2 of 3 conferences");

    // A period and a confidence: the row has the deadline that fits both.
    browser.click("//button[.='90 days']");
    browser.wait_for(
        "//tbody/tr[contains(., 'Meeting 1') and td[.='Abstracts'] and td[.='in 50 days']]",
    );
    browser.click("//details[summary='Confidence of deadlines']//label[span='confirmed']/input");
    expect_total(&browser, "1 of 3 conferences");
    browser.wait_for(
        "//tbody/tr[contains(., 'Meeting 1') and td[.='Late-breaking'] and td[.='in 80 days'] and .//span[.='confirmed']]",
    );
    export(&browser, "CSV (1 row)");
    let csv = wait_until("the file is there", || {
        let mut name = site.files().into_iter();
        let name = name.find(|name| name.ends_with(".csv"))?;
        fs::read_to_string(site.path(&name))
            .ok()
            .filter(|text| !text.is_empty())
    });
    let part = format!("\r\nlate_breaking,{late},confirmed,1,Meeting 1,");
    assert_contains(&csv, &part);

    // A meeting without a country is in the count of each period, and can be chosen.
    browser.click("//button[contains(@class, 'chip') and contains(., 'confirmed')]");
    browser.click("//button[.='30 days']");
    browser.click("//details[summary='Region']//label[span='Not announced' and span='1']/input");
    expect_total(&browser, "1 of 3 conferences");
    browser.wait_for("//tbody//a[.='Meeting 2 2097' or .='Meeting 2']");
    let what = "the address has it";
    browser.wait_for_js(what, "return /[?&]region=(&|$)/.test(location.hash)");
    // Each filter is a chip, also a period without a button.
    browser.view("#/conferences?region=&deadline=abstract&within=120");
    let chips = "return [...document.querySelectorAll('.chip')].map(chip => chip.textContent.replace(/[×\\s]+/g, ' ').trim()).join()";
    browser.wait_for_js(
        "the chips",
        &format!("{chips} === 'Remove Region: not announced,Remove Abstracts,Remove due in the next 120 days'"),
    );
    browser.click("//button[contains(@class, 'chip') and contains(., '120 days')]");
    let script = "return location.hash === '#/conferences?region=&deadline=abstract'";
    browser.wait_for_js("the period has gone", script);
    browser.expect_quiet_console(&[]);
}

#[test]
fn the_tab_keeps_the_key_if_the_reader_chooses_so() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let site = Site::new();
    site.import("conferences.jsonl", conferences(9, 1));
    site.license("all", "--dataset conferences");
    let (id, key) = site.key("all", &[]);
    let server = site.serve();
    browser.go(&format!("http://{}/", server.address));
    paste_key(&browser, &key);
    expect_total(&browser, "9 conferences");
    let reload = || browser.js("location.reload()");
    reload();
    browser.wait_for("//input[@id='key']");

    browser.click("//label[contains(., 'Keep the key in this tab')]/input");
    paste_key(&browser, &key);
    expect_total(&browser, "9 conferences");
    reload();
    expect_total(&browser, "9 conferences");
    let kept = kept_texts(&browser);
    let [address, state, local, tab, cookies] =
        [0, 1, 2, 3, 4].map(|at| kept[at].as_str().unwrap());
    assert!(
        tab.contains(&key) && ![address, state, local, cookies].concat().contains("mfk_"),
        "{kept}"
    );
    forget(&browser, "Forget key");
    browser.wait_for("//input[@id='key']");
    assert_eq!(kept_texts(&browser)[3], "{}");

    // A revoked key leads back to the form, and is not kept.
    browser.click("//label[contains(., 'Keep the key in this tab')]/input");
    paste_key(&browser, &key);
    expect_total(&browser, "9 conferences");
    site.json(["key", "revoke", id.as_str()]);
    browser.wait_for("//p[@id='key-error' and contains(., 'no longer accepted')]");
    assert_eq!(kept_texts(&browser)[3], "{}");
    browser.expect_quiet_console(&[401]);
}

#[test]
fn changes_arrive_and_the_copy_equals_the_export() {
    let files = [("conferences.jsonl", conferences(COUNT, 1))];
    let Some((browser, site, server, key)) = open_page(&files) else {
        return;
    };
    paste_key(&browser, &key);
    expect_total(&browser, "130 conferences");

    site.import("conferences.jsonl", r#"{"id": 7, "venue": "Hall 7"}"#);
    browser.wait_for("//nav//span[.='1' and @title='1 change since you opened this']");
    site.import("conferences.jsonl", r#"{"id": 8, "deleted": true}"#);
    expect_total(&browser, "129 conferences");
    site.import(
        "conferences.jsonl",
        format!(r#"{{"id": 131, "name": "The new one", {STATUSES}}}"#),
    );
    expect_total(&browser, "130 conferences");
    browser.click("//nav//a[span[.='3' and @title='3 changes since you opened this']]");
    browser.wait_for(
        "//li[contains(., 'Conference 7') and .//del[contains(., 'version 1')] and .//ins[contains(., 'Hall 7')]]",
    );
    browser.wait_for("//li[contains(., 'removed') and contains(., 'Conference 8')]");
    browser.wait_for("//li[contains(., 'added') and contains(., 'The new one')]");
    // Some browsers pass on each digit of a year. None of these days is a step of the history.
    for (picked, expected) in [
        ("0002-01-05", ""),
        ("0202-01-05", ""),
        ("2026-01-05", "?since=2026-01-05"),
        ("", ""),
    ] {
        let script = "const field = document.getElementById('since'); field.value = arguments[0]; \
             field.dispatchEvent(new Event('change', {bubbles: true})); return location.hash";
        let address = browser.js_with(script, &[json!(picked)]);
        assert_eq!(
            address,
            format!("#/changes/conferences{expected}"),
            "{picked}"
        );
    }
    browser.view("#/changes/conferences?since=2026-02-31");
    browser.wait_for("//h2[contains(., '3 changes since you opened this')]");

    // The CSV file of all records has the lines of the server's.
    let lines = |csv: &str| {
        csv.trim_start_matches('\u{feff}')
            .lines()
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    browser.js("URL.createObjectURL = blob => { blob.text().then(text => { window.csv = text; }); return 'data:,'; }");
    let mut client = server.client(&key);
    let mut expect_equal = |at: &str| {
        let exported =
            String::from_utf8(client.get("/v1/exports/conferences?format=csv").gunzip()).unwrap();
        browser.view("#/conferences?past=yes");
        browser.js("window.csv = null");
        export(&browser, "CSV");
        let saved = browser.wait_for_js(at, "return window.csv");
        let (saved, exported) = (lines(saved.as_str().unwrap()), lines(&exported));
        let differing: Vec<_> = saved.symmetric_difference(&exported).collect();
        assert!(exported.len() > 1, "{at}: {differing:?}");
        assert!(differing.is_empty(), "{at}: {differing:?}");
        browser.view("#/conferences");
    };
    expect_equal("after edits");
    // A license that shrinks, and one that grows.
    site.license("all", "--dataset conferences --year 2095..2096");
    expect_total(&browser, "66 conferences");
    expect_equal("after a smaller license");
    site.license("all", "--dataset conferences --widen");
    expect_total(&browser, "130 conferences");
    expect_equal("after a larger license");
    browser.expect_quiet_console(&[]);
}

#[test]
fn exports_and_the_feed_are_for_developers() {
    let files = [("conferences.jsonl", conferences(COUNT, 1))];
    let Some((browser, site, server, key)) = open_page(&files) else {
        return;
    };
    // The reader is on the way to the view as soon as something is drawn.
    browser.before_each_page(
        "document.addEventListener('DOMContentLoaded', () => new MutationObserver((_, self) => { \
             if (document.querySelector('nav')) { self.disconnect(); location.hash = '#/developers'; } \
         }).observe(document.body, {childList: true, subtree: true}))",
    );
    browser.go(&format!("http://{}/", server.address));
    paste_key(&browser, &key);
    let token = browser.text("//section[contains(., 'JSON Lines')]//code[@class='token']");
    site.import("conferences.jsonl", r#"{"id": 7, "venue": "Hall 7"}"#);
    site.import("conferences.jsonl", r#"{"id": 8, "deleted": true}"#);
    browser.fill("//input[@id='token']", &token);
    wait_until("both entries", || {
        browser.click("//button[.='Ask the feed']");
        browser.wait_for("//section[@id='feed']//p[contains(., 'Next token')]");
        let text = browser.text("//section[@id='feed']");
        (text.contains("Conference 7") && text.contains("Delete your copy of 8.")).then_some(())
    });
    browser.click("//button[.='Ask with the next token']");
    browser.wait_for("//section[@id='feed']//p[contains(., '0 entries')]");
    // Each change draws the page again. The typed text stays.
    let typed = "return document.getElementById('token').value";
    let next = browser.js(typed);
    assert_ne!(next, token, "the box holds the token that was asked for");
    browser.fill("//input[@id='token']", "half of a tok");
    let position = browser.text("//section[@id='feed']/p/code[@class='token']");
    site.import("conferences.jsonl", r#"{"id": 9, "venue": "Hall 9"}"#);
    browser.wait_for(&format!(
        "//section[@id='feed']/p/code[@class='token' and .!='{position}']"
    ));
    assert_eq!(browser.js(typed), "half of a tok");
    browser.fill("//input[@id='token']", next.as_str().unwrap());

    // The license changes: the token ends, and the page names the remedy.
    site.license("all", "--dataset conferences --year 2094..2099");
    wait_until("the token ends", || {
        browser.click("//button[.='Ask the feed']");
        browser
            .js("return document.getElementById('feed').textContent.includes('load the export again') || null")
            .as_bool()
    });
    browser.wait_for("//section[@class='problem' and contains(., 'resync_required')]");
    browser.view("#/developers/journals");
    // A dataset outside the license shows one sentence: no failure, and no request to try.
    for view in words![
        "#/developers/journals" "#/reference/journals" "#/journals" "#/journals?access=open" "#/journals/5"
        "#/changes/journals"
    ] {
        browser.view("#/nowhere");
        browser.wait_for("//h1[.='No such view']");
        browser.view(view);
        browser.wait_for("//p[.='This license has no journals.']");
        let found = browser.js("return document.querySelectorAll('.problem, .curl, form').length");
        assert_eq!(found, 0, "{view}");
    }

    browser.view("#/developers/conferences");
    browser.wait_for("//section[contains(., 'Export, CSV')]//p[contains(., '129 records')]");
    browser.click("//section[contains(., 'Export, CSV')]//button[.='Download']");
    // Chromium reserves the name with an empty file, and renames the complete one to it.
    let is_file = |name: &String| name.starts_with("conferences-") && name.ends_with(".csv");
    let text = wait_until("the file is there", || {
        let name = site.files().into_iter().find(is_file)?;
        fs::read_to_string(site.path(&name))
            .ok()
            .filter(|text| !text.is_empty())
    });
    assert!(text.starts_with("\u{feff}id,"), "{text}");
    assert!(text.lines().count() == 130, "{text}");
    browser.expect_quiet_console(&[403, 410]);
}

#[test]
fn beyond_its_record_limit_the_page_says_so() {
    let files = [("conferences.jsonl", conferences(3, 1))];
    let Some((browser, _site, server, key)) = open_page(&files) else {
        return;
    };
    // Each export claims more records than the page takes.
    browser.before_each_page(
        "const load = fetch; window.fetch = async (url, options) => { \
             const response = await load(url, options); \
             if (!url.includes('/exports/')) return response; \
             const headers = new Headers(response.headers); headers.set('X-Record-Count', '100001'); \
             return new Response(response.body, {status: response.status, headers}); }",
    );
    browser.go(&format!("http://{}/", server.address));
    paste_key(&browser, &key);
    let told = "//p[@role='alert'][contains(., '100,001 records are too many for this page')]";
    browser.wait_for(told);
    browser.wait_for("//a[@href='#/developers/conferences'][contains(., 'Exports')]");
    browser.view("#/compare/conferences?ids=1,2");
    browser.wait_for(told);
    // One record is asked for.
    browser.view("#/conferences/2");
    browser.wait_for("//main//dl[@class='facts']");
    browser.expect_quiet_console(&[]);
}

#[test]
fn hostile_records_stay_text() {
    let hostile = "\"'><img src=http://127.0.0.2/x onerror=\"window.pwned=1\"><script>window.pwned=1</script>${window.pwned=1}{{pwned}}";
    let address = "javascript:window.pwned=1";
    let organization =
        json!({"id": 1, "name": hostile, "abbv": hostile, "type": hostile, "url": address});
    let tag = json!({"id": 1, "type": hostile, "name": hostile, "category": hostile});
    let conference = json!({"id": 7, "name": hostile, "abbv": hostile, "year": 2097, "country": hostile, "city": hostile, "venue": hostile,
        "url": address, "therapy_areas": [hostile], "organizations": [1], "tags": [1], "start_date": "2097-05-01",
        "start_date_status": "confirmed", "abstract_due_date_status": "not_found", "late_breaking_due_date_status": "not_found"});
    // Texts of another direction, numbers and days at their limits, and no value where one can be missing.
    let mixed = format!("\u{202e}مؤتمر {hostile}");
    let mixed_conference = json!({"id": 8, "name": mixed, "abbv": mixed, "year": 2100, "city": mixed, "start_date": "9999-12-31", "end_date": "9999-12-31", "abstract_due_date": "9999-12-31",
        "start_date_status": "confirmed", "abstract_due_date_status": "confirmed", "late_breaking_due_date_status": "not_found"});
    let mixed_journal = json!({"id": 8, "name": mixed, "impact_factor": 1e6, "publishing": {"apc_usd": null}, "timelines": {"online_submit_to_accept": {"min_weeks": null, "max_weeks": null}}});
    let journal = json!({"id": 7, "name": hostile, "abbv": hostile, "publisher": hostile, "url": address, "organizations": [1], "tags": [1]});
    let files = cases![
        "organizations.jsonl", organization.to_string();
        "tags.jsonl", tag.to_string();
        "conferences.jsonl", format!("{conference}\n{mixed_conference}");
        "journals.jsonl", format!("{journal}\n{mixed_journal}");
    ];
    let Some((browser, site, server, key)) = open_page(&files) else {
        return;
    };
    let own = format!("http://{}/", server.address);
    paste_key(&browser, &key);
    for view in words![
        "#/conferences" "#/conferences?view=deadlines" "#/conferences/7" "#/journals" "#/journals/7"
        "#/developers/conferences" "#/reference/conferences" "#/conferences?ids=7,8&unknown=yes"
        "#/compare/conferences?ids=7,8" "#/compare/journals?ids=7,8" "#/journals?fee_max=0&unknown=yes"
        "#/changes/conferences"
    ] {
        browser.view(view);
        browser.js("for (const star of document.querySelectorAll('.star[aria-pressed=false]')) star.click()");
        browser.wait_for_js(view, "return document.querySelector('h1') && !/Asking …|Loading …/.test(document.querySelector('main').textContent)");
        browser.js("for (const fold of document.querySelectorAll('details')) fold.open = true");
        site.import(
            "conferences.jsonl",
            json!({"id": 7, "venue": format!("{hostile} {view}")}).to_string(),
        );
        browser.wait_for_js(
            view,
            "return !document.querySelector('main img, main script, main iframe, a[href^=\"javascript:\" i], [onerror]')",
        );
    }
    browser.wait_for("//li[contains(., 'changed') and contains(., 'onerror')]");
    // The whole address of the view holds texts of records, too.
    browser.view(&format!(
        "#/conferences?area={hostile}&q={hostile}&country={hostile}"
    ));
    browser.wait_for("//ul[@aria-label='Chosen filters']");
    assert_eq!(browser.js("return window.pwned ?? null"), Value::Null);
    let names = browser.js("return performance.getEntriesByType('resource').map(({name}) => name)");
    for name in names.as_array().unwrap() {
        let text = name.as_str().unwrap();
        assert!(text.starts_with(&own), "a request left: {name}");
    }
    browser.expect_quiet_console(&[]);
}
