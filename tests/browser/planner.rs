//! The explorer for planners: the shortlist, records side by side, days and numbers, the way back, paper.

use std::fs;

use serde_json::{Value, json};

use super::chromium::{Browser, wait_until};
use super::explorer::{conferences, expect_total, kept_texts};
use super::{export, forget, open_filters, open_page, paste_key};
use crate::process::site::{Server, Site};

/// Serves conferences and journals, and enters the key, which the tab keeps.
fn open(conferences: &str, journals: &str) -> Option<(Browser, Site, Server, String)> {
    let files = [
        ("conferences.jsonl", conferences.to_owned()),
        ("journals.jsonl", journals.to_owned()),
    ];
    let files = files.into_iter();
    let files: Vec<_> = files.filter(|(_, rows)| !rows.is_empty()).collect();
    let (browser, site, server, key) = open_page(&files)?;
    browser.click("//label[contains(., 'Keep the key in this tab')]/input");
    paste_key(&browser, &key);
    Some((browser, site, server, key))
}

/// The texts of the chips.
fn chips(browser: &Browser) -> Value {
    browser.js("return [...document.querySelectorAll('.chip bdi')].map(chip => chip.textContent).join('; ')")
}

/// The names of the rows.
const NAMES: &str = "return [...document.querySelectorAll('tbody :is(.short, .journal) a')].map(link => link.textContent).join()";

fn star(browser: &Browser, name: &str) {
    browser.click(&format!(
        "//button[starts-with(@aria-label, 'Star {name}')]"
    ));
}

/// Sets a field of a range, as a picker of dates does.
fn set(browser: &Browser, field: &str, value: &str) {
    let script = "const field = document.getElementById(arguments[0]); field.value = arguments[1]; \
         field.dispatchEvent(new Event('input', {bubbles: true}))";
    browser.js_with(script, &[json!(field), json!(value)]);
}

#[test]
fn a_shortlist_is_kept_updated_and_shared() {
    let Some((browser, site, server, key)) = open(&conferences(130, 1), "") else {
        return;
    };
    expect_total(&browser, "130 conferences");

    // A star changes its own button and the shortlist's buttons, and no row.
    browser.js(
        "window.drawn = 0; new MutationObserver(changes => { window.drawn += changes.filter(({target}) => \
         (target.closest ? target : target.parentElement).closest('tbody') && target.className !== 'star').length; }).observe(document.body, {subtree: true, childList: true, \
         attributes: true, characterData: true})");
    for name in words!["Conference 2 2096" "Conference 3 2097" "Conference 40 2094"] {
        star(&browser, name);
        browser.wait_for(&format!(
            "//button[@aria-label='Star {name}' and @aria-pressed='true']"
        ));
    }
    browser.wait_for("//button[.='Only starred (3)' and @aria-pressed='false']");
    assert_eq!(browser.js("return window.drawn"), 0);
    browser.click("//button[.='Only starred (3)']");
    expect_total(&browser, "3 of 130 conferences");
    let script = "return location.hash === '#/conferences?ids=2,3,40'";
    browser.wait_for_js("the ids are in the address", script);
    assert_eq!(chips(&browser), "3 starred");
    let script = "return document.title === 'Conferences: 3 starred · medfeed'";
    browser.wait_for_js("the window", script);
    export(&browser, "CSV (3 rows)");
    let csv = wait_until("the file is there", || {
        let mut name = site.files().into_iter();
        let name = name.find(|name| name.starts_with("conferences-3-starred-"))?;
        fs::read_to_string(site.path(&name))
            .ok()
            .filter(|text| !text.is_empty())
    });
    assert_eq!(csv.lines().count(), 4, "{csv}");

    // The view changes with the stars: in the list, and while the reader is at a record.
    star(&browser, "Conference 3 ");
    expect_total(&browser, "2 of 130 conferences");
    browser.click("//tbody//a[.='Conference 40 2094']");
    browser.wait_for("//h1[.='Conference 40 2094']");
    star(&browser, "Conference 40 ");
    browser.back();
    expect_total(&browser, "1 of 130 conferences");
    let script = "return location.hash === '#/conferences?ids=2'";
    browser.wait_for_js("the address follows", script);
    star(&browser, "Conference 2 ");
    expect_total(&browser, "0 of 130 conferences");
    browser.click("//button[.='Only starred (0)']");
    star(&browser, "Conference 2 ");
    star(&browser, "Conference 3 ");
    browser.click("//button[.='Only starred (2)']");
    expect_total(&browser, "2 of 130 conferences");

    // Other filters hide some starred records, and the page says so.
    browser.fill("//input[@id='words']", "Conference 3");
    browser
        .wait_for("//span[@role='status' and .='1 more starred does not fit the other filters.']");
    // A button that goes leaves the focus at the results.
    let expect_results_focused = |what: &str| {
        browser.wait_for_js(
            what,
            "return document.activeElement.className === 'results'",
        )
    };
    browser.click("//button[.='Show all starred']");
    expect_results_focused("all starred");
    expect_total(&browser, "2 of 130 conferences");
    assert_eq!(chips(&browser), "2 starred");

    // The stars stay when the page is loaded again.
    browser.js("location.reload()");
    browser.wait_for("//button[.='Only starred (2)' and @aria-pressed='true']");
    expect_total(&browser, "2 of 130 conferences");
    // A starred record that was removed is named, and can be left out.
    site.import("conferences.jsonl", r#"{"id": 3, "deleted": true}"#);
    browser.wait_for(
        "//span[@role='status' and contains(., '1 of 2 records is not in this license, or removed.')]",
    );
    expect_total(&browser, "1 of 129 conferences");
    browser.click("//button[.='Leave out']");
    browser.wait_for("//button[.='Only starred (1)']");
    expect_results_focused("left out");

    // A colleague with another license, who starred nothing, sees those records of the link that the license shows.
    site.license("year", "--dataset conferences --year 2096");
    let other = site.key("year", &[]).1;
    browser.view("#/conferences?ids=2,4,6");
    expect_total(&browser, "3 of 129 conferences");
    forget(&browser, "Forget key and lists");
    browser.wait_for("//input[@id='key']");
    assert_eq!(
        kept_texts(&browser)[3],
        "{}",
        "nothing is left of the shortlist"
    );
    paste_key(&browser, &other);
    browser.wait_for("//h2[@class='results' and starts-with(., '2 of ')]");
    browser.wait_for("//span[@role='status' and contains(., '1 of 3 records is not in this license, or removed.')]");
    let expected = "Conference 2 2096,Conference 6 2096";
    assert_eq!(browser.js(NAMES), expected);
    assert_eq!(chips(&browser), "3 starred");
    // Records that the license does not show lead nowhere.
    browser.wait_for("//a[.='Compare side by side' and @href='#/compare/conferences?ids=2,6']");
    browser.click("//button[.='Star 2 of these too']");
    browser.wait_for("//button[.='Only starred (2)']");
    expect_results_focused("starred too");
    // An invalid value in the tab is no shortlist.
    browser.js("sessionStorage['medfeed-lists'] = '{\"conferences\":[2,\"6\",-1,1e99],\"journals\":7}'; location.reload()");
    browser.wait_for("//input[@id='key']");
    paste_key(&browser, &key);
    browser.click("//button[.='Yes, keep the lists']");
    browser.wait_for("//button[.='Only starred (1)']");
    // The token of the other license.
    browser.expect_quiet_console(&[410]);
    drop(server);
}

#[test]
fn two_to_four_records_are_compared_side_by_side() {
    let conference = |id: u64, fields: Value| {
        let mut record = json!({"id": id, "name": format!("Meeting {id}"), "abbv": format!("M{id}"), "year": 2097, "country": "Spain", "therapy_areas": ["Oncology"],
            "start_date": "2097-05-01", "start_date_status": "confirmed", "abstract_due_date_status": "not_found", "late_breaking_due_date_status": "not_found"});
        record
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        format!("{record}\n")
    };
    let records = [
        conference(
            1,
            json!({"abstract_due_date": "2097-01-15", "abstract_due_date_status": "estimated"}),
        ),
        conference(
            2,
            json!({"abstract_due_date": "2097-01-15", "abstract_due_date_status": "confirmed"}),
        ),
        conference(
            3,
            json!({"start_date": "9999-12-31", "therapy_areas": ["Urology", "Oncology"]}),
        ),
        conference(4, json!({"country": null, "formats": {"oral": true}})),
        conference(5, json!({})),
    ];
    let journals = [
        json!({"id": 1, "name": "Journal A", "publisher": "P", "impact_factor": 2.5, "publishing": {"access": "open", "apc_usd": 0}}),
        json!({"id": 2, "name": "Journal B", "publisher": "P", "impact_factor": 12, "publishing": {"access": "open", "apc_usd": 999_999_999}, "timelines": {"online_submit_to_accept": {"min_weeks": 4, "max_weeks": 8}}}),
        json!({"id": 3, "name": "Journal C"}),
    ]
    .map(|journal| format!("{journal}\n"));
    let Some((browser, site, server, _)) = open(&records.concat(), &journals.concat()) else {
        return;
    };
    expect_total(&browser, "5 conferences");
    for id in [1, 2] {
        star(&browser, &format!("Meeting {id} "));
    }
    browser.click("//a[.='Compare side by side']");
    browser.wait_for("//h1[.='Conferences side by side']");
    let script = "return location.hash === '#/compare/conferences?ids=1,2'";
    browser.wait_for_js("the address", script);
    let expected = "M1 2097, M2 2097, Conferences side by side · medfeed";
    assert_eq!(browser.js("return document.title"), expected);
    // Each fact with its values, and a mark where they differ. The meaning of a status is in the record's own view.
    let table = "return [...document.querySelectorAll('.compare tbody tr')].map(row => [...row.cells].map(cell => \
                 cell.innerText.replace(/\\s+/g, ' ').replace(/ in [\\d,]+ days/, '').trim()).join(' | '))";
    let both = json!([
        "Name differs | Meeting 1 | Meeting 2",
        "Place | Spain | Spain",
        "Abstracts due differs | Tue 15 Jan 2097 estimated | Tue 15 Jan 2097 confirmed",
        "Late-breaking abstracts due | No date not found | No date not found",
        "Meeting | Wed 1 May 2097 confirmed | Wed 1 May 2097 confirmed",
        "Therapy areas | Oncology | Oncology"
    ]);
    assert_eq!(browser.js(table), both);
    browser.click("//button[.='Only where they differ']");
    let script = "return document.querySelectorAll('.compare tbody tr').length === 2";
    browser.wait_for_js("two rows", script);
    browser.click("//button[.='Only where they differ' and @aria-pressed='true']");

    // More records are starred than fit: the reader chooses.
    browser.click("//a[.='Back to the list of conferences']");
    for id in [3, 4, 5] {
        star(&browser, &format!("Meeting {id} "));
    }
    // Those in the list come first, in its order.
    browser.wait_for(
        "//a[.='Compare 4 of 5 side by side' and @href='#/compare/conferences?ids=1,2,3,4']",
    );
    browser.view("#/conferences?sort=name&order=desc");
    browser.wait_for(
        "//a[.='Compare 4 of 5 side by side' and @href='#/compare/conferences?ids=5,4,3,2']",
    );
    browser.view("#/conferences");
    browser.click("//a[.='Compare 4 of 5 side by side']");
    browser.wait_for("//div[@aria-label='Starred records']/button[.='M5 2097' and @disabled]");
    browser
        .click("//div[@aria-label='Starred records']/button[.='M2 2097' and @aria-pressed='true']");
    browser.click("//div[@aria-label='Starred records']/button[.='M5 2097' and not(@disabled)]");
    let script = "return location.hash === '#/compare/conferences?ids=1,3,4,5'";
    browser.wait_for_js("the address", script);
    browser.wait_for("//tr[contains(., 'Place')]//span[.=' differs']");
    browser.wait_for("//tr[contains(., 'Formats')]/td[2][.='–']");
    browser.wait_for("//tr[contains(., 'Meeting')]/td[3][contains(., 'Fri 31 Dec 9999')]");
    // The page names numbers without a record, and says if there are too many.
    browser.view("#/compare/conferences?ids=1,4711,x,2,3,4");
    browser.wait_for("//p[contains(., 'Not in this license, or removed: 1 record of 4.')]");
    browser.wait_for("//p[contains(., 'At most 4 stand side by side. The address names 5.')]");
    site.import("conferences.jsonl", r#"{"id": 2, "deleted": true}"#);
    browser.wait_for("//p[contains(., 'removed: 2 records of 4.')]");
    browser.view("#/compare/conferences?ids=1");
    browser.wait_for("//p[contains(., 'Star two to 4 conferences in the list')]");

    browser.view("#/compare/journals?ids=1,2,3");
    browser.wait_for("//h1[.='Journals side by side']");
    browser.wait_for_js("the copy", "return document.querySelector('.compare')");
    assert_eq!(
        browser.js(table),
        json!([
            "Publisher differs | P | P | –",
            "Impact factor differs | 2.5 | 12.0 | –",
            "Access differs | open | open | –",
            "Article fee differs | 0 US dollars | 999,999,999 US dollars | –",
            "Online submission to acceptance differs | – | 4 to 8 weeks | –"
        ])
    );

    // Without a copy the page does not say that records are missing.
    site.json("license set few --dataset conferences --rate-limit 1".split(' '));
    forget(&browser, "Forget key and lists");
    browser.view("#/compare/conferences?ids=1,3");
    paste_key(&browser, &site.key("few", &[]).1);
    browser.wait_for(
        "//body[contains(., 'The limit of 1 requests per minute is used up') and not(contains(., 'Not in this license'))]",
    );
    browser.expect_quiet_console(&[429]);
    drop(server);
}

#[test]
fn days_and_numbers_narrow_a_list() {
    let conference = |id: u64, start: Value, due: &str| {
        let record = json!({"id": id, "name": format!("Meeting {id}"), "year": 2097, "start_date": start, "start_date_status": "check",
            "abstract_due_date": due, "abstract_due_date_status": "check", "late_breaking_due_date_status": "not_found"});
        format!("{record}\n")
    };
    let meetings = [
        conference(1, json!("2097-03-01"), "2096-11-01"),
        conference(2, json!("2097-09-01"), "2097-03-15"),
        conference(3, json!(null), "2097-03-16"),
    ];
    let journal = |id: u64, fee: Value| {
        format!(
            "{}\n",
            json!({"id": id, "name": format!("Journal {id}"), "publishing": {"apc_usd": fee}})
        )
    };
    let journals = [
        journal(1, json!(0)),
        journal(2, json!(2500)),
        journal(3, json!(2501)),
        journal(4, json!(null)),
    ];
    let Some((browser, _site, server, _)) = open(&meetings.concat(), &journals.concat()) else {
        return;
    };
    expect_total(&browser, "3 conferences");

    open_filters(&browser);
    set(&browser, "start_date_from", "2097-03-02");
    expect_total(&browser, "1 of 3 conferences");
    let script = "return location.hash === '#/conferences?start_date_from=2097-03-02'";
    browser.wait_for_js("the address", script);
    assert_eq!(chips(&browser), "begins from Sat 2 Mar 2097");
    browser
        .wait_for("//p[contains(., '1 more may fit: not all that you filter by is announced.')]");
    browser.click("//button[.='Show it too']");
    expect_total(&browser, "2 of 3 conferences");
    let expected = "begins from Sat 2 Mar 2097; or not announced";
    assert_eq!(chips(&browser), expected);
    let script = "return document.title === 'Conferences: begins from Sat 2 Mar 2097, or not announced · medfeed'";
    browser.wait_for_js("the window", script);
    browser.click("//button[.='Clear all']");
    set(&browser, "due_from", "2097-03-15");
    set(&browser, "due_to", "2097-03-15");
    expect_total(&browser, "1 of 3 conferences");
    assert_eq!(browser.js(NAMES), "Meeting 2 2097");
    browser
        .click("//button[contains(@class, 'chip') and contains(., 'due until Fri 15 Mar 2097')]");
    expect_total(&browser, "2 of 3 conferences");
    set(&browser, "due_to", "2097-03-14");
    browser.wait_for("//p[.='The period ends before it begins. Change one of its days.']");
    set(&browser, "due_to", "");
    // A typed value gets into the address when the field loses the focus.
    set(&browser, "due_from", "");
    expect_total(&browser, "3 conferences");
    // An invalid value is named.
    browser.view("#/conferences?start_date_from=2097-02-30&due_to=soon&ids=x,2&past=maybe");
    browser.wait_for("//p[contains(., 'also asks for start_date_from=2097-02-30, due_to=soon, ids=x,2, past=maybe. This page does not know')]");
    expect_total(&browser, "1 of 3 conferences");

    browser.view("#/journals");
    expect_total(&browser, "4 journals");
    open_filters(&browser);
    browser.fill("//input[@id='fee_max']", "2500");
    expect_total(&browser, "2 of 4 journals");
    browser
        .wait_for("//p[contains(., '1 more may fit: not all that you filter by is announced.')]");
    browser.click("//a[.='Journal 2']");
    browser.wait_for("//h1[.='Journal 2']");
    browser.back();
    expect_total(&browser, "2 of 4 journals");
    open_filters(&browser);
    assert_eq!(
        browser.js("return [document.getElementById('fee_max').value, location.hash]"),
        json!(["2500", "#/journals?fee_max=2500"])
    );
    // Numbers in the forms that people use. An invalid number stays in the field and filters nothing.
    for (typed, total, chip) in cases![
        "2,501", "3 of 4 journals", "fee of at most 2,501 US dollars";
        "0,5", "1 of 4 journals", "fee of at most 0.5 US dollars";
        "-5", "4 journals", "";
        "cheap", "4 journals", "";
    ] {
        browser.fill("//input[@id='fee_max']", typed);
        expect_total(&browser, total);
        assert_eq!(chips(&browser), chip, "{typed}");
        assert_eq!(
            browser.js("return document.getElementById('fee_max').value"),
            typed
        );
        let told =
            browser.js("return document.querySelector('.ranges [role=alert]')?.textContent ?? ''");
        assert_eq!(
            told,
            if chip.is_empty() {
                "Enter a number such as 2.5."
            } else {
                ""
            },
            "{typed}"
        );
    }
    browser.expect_quiet_console(&[]);
    drop(server);
}

#[test]
fn typed_words_become_filters_that_can_be_removed() {
    let conference = |id: u64, year: u64, due: &str| {
        let record = json!({"id": id, "name": format!("Meeting {id}"), "year": year, "start_date": format!("{year}-06-01"), "start_date_status": "check",
            "abstract_due_date": due, "abstract_due_date_status": "check", "late_breaking_due_date_status": "not_found"});
        format!("{record}\n")
    };
    // A Saturday, a Monday and a Sunday.
    let meetings = [
        conference(1, 2096, "2096-03-03"),
        conference(2, 2097, "2097-03-04"),
        conference(3, 2098, "2098-03-09"),
    ];
    let journal = |id: u64, fee: u64, impact: f64| {
        let record = json!({"id": id, "name": format!("Journal {id}"), "impact_factor": impact, "publishing": {"apc_usd": fee},
            "timelines": {"online_submit_to_accept": {"min_weeks": 4, "max_weeks": 4 * id}}});
        format!("{record}\n")
    };
    let journals = [
        journal(1, 0, 7.5),
        journal(2, 0, 2.0),
        journal(4, 2500, 9.0),
    ];
    let Some((browser, _site, server, _)) = open(&meetings.concat(), &journals.concat()) else {
        return;
    };
    for (view, words, total, chip) in cases![
        "conferences", "weekend", "2 of 3", "due on a Saturday or Sunday";
        "conferences", "saturday", "1 of 3", "due on a Saturday";
        "conferences", "meeting 2096 2098", "2 of 3", "“meeting”; 2096; 2098";
        "conferences", "march 2097", "1 of 3", "“march 2097”";
        "journals", "no fee impact >5", "1 of 3", "No fee; impact factor of at least 5";
        "journals", "12 weeks", "2 of 3", "at most 12 weeks to acceptance";
    ] {
        browser.view(&format!("#/{view}"));
        browser.fill("//input[@id='words']", words);
        expect_total(&browser, &format!("{total} {view}"));
        assert_eq!(chips(&browser), chip, "{words}");
        // The words stay in the field while the reader types, and go with their chips.
        let typed = "return document.getElementById('words').value";
        assert_eq!(browser.js(typed), words);
        for _ in chip.split("; ") {
            browser.click("//li/button[contains(@class, 'chip')]");
        }
        let script = "return document.getElementById('words').value === ''";
        browser.wait_for_js("no words", script);
        assert_eq!(chips(&browser), "", "{words}");
    }
    // A text without a meaning says where words are looked for.
    browser.fill("//input[@id='words']", "impact <5");
    browser.wait_for(
        "//p[contains(., 'No record has impact, 5') or contains(., 'Figures are typed as')]",
    );
    // The same filter without words.
    browser.view("#/conferences");
    open_filters(&browser);
    browser.click("//select[@id='weekdays']/option[.='Sunday']");
    expect_total(&browser, "1 of 3 conferences");
    let script = "return location.hash === '#/conferences?due_on=sunday'";
    browser.wait_for_js("the address", script);
    browser.expect_quiet_console(&[]);
    drop(server);
}

#[test]
fn going_back_returns_to_the_row() {
    let Some((browser, _site, server, _)) = open(&conferences(130, 1), "") else {
        return;
    };
    expect_total(&browser, "130 conferences");
    browser.click("//button[.='Show more']");
    let script = "return document.querySelectorAll('tbody tr').length === 130";
    browser.wait_for_js("all rows", script);
    browser.js("document.querySelectorAll('tbody tr')[99].scrollIntoView()");
    let place = "return [document.querySelectorAll('tbody tr').length, scrollY, location.hash || '#/conferences']";
    let before = browser.js(place);
    let name = browser.text("//tbody/tr[103]//a");
    let focused =
        format!("return document.activeElement.textContent === '{name}' && scrollY > 1000");
    for back in ["Back", "Back to the list of conferences"] {
        browser.click("//tbody/tr[103]//a");
        browser.wait_for(&format!("//h1[.='{name}']"));
        let script = "return scrollY === 0 && document.activeElement.tagName === 'H1'";
        browser.wait_for_js("a record begins at its head", script);
        let expected = format!("{name} · medfeed");
        assert_eq!(browser.js("return document.title"), expected);
        if back == "Back" {
            browser.back();
        } else {
            browser.click(&format!("//a[.='{back}']"));
        }
        browser.wait_for_js("the row has the focus", &focused);
        assert_eq!(browser.js(place), before, "{back}");
    }
    // A list that is opened again begins at its head.
    browser.js("scrollTo(0, 0)");
    browser.click("//nav//a[.='Journals']");
    browser.wait_for("//h1[.='Journals']");
    browser.click("//nav//a[.='Conferences']");
    let script = "return document.querySelectorAll('tbody tr').length === 50 && document.activeElement.tagName === 'H1'";
    browser.wait_for_js("few rows", script);
    // Words typed just before a click are there on return, and so are the filters. They are in no address and no title.
    open_filters(&browser);
    browser.click("//details[summary='Therapy area']//label[span='Oncology']/input");
    expect_total(&browser, "43 of 130 conferences");
    browser.fill("//input[@id='words']", "japan");
    browser.click("//tbody/tr[2]//a");
    browser.wait_for("//p[@class='back']/a");
    browser.click("//p[@class='back']/a");
    browser.wait_for("//input[@id='words']");
    assert_eq!(
        browser
            .js("return [document.getElementById('words').value, location.hash, document.title]"),
        json!(words![
            "japan" "#/conferences?area=Oncology" "Conferences: Oncology, to come · medfeed"
        ])
    );
    // In other places the way back is the whole list.
    browser.js("location.href = location.pathname + '#/conferences/5'; location.reload()");
    browser.click("//a[.='All conferences']");
    expect_total(&browser, "130 conferences");
    browser.expect_quiet_console(&[]);
    drop(server);
}

#[test]
fn the_printed_list_has_all_rows_and_its_filters() {
    let Some((browser, _site, server, key)) = open(&conferences(130, 1), "") else {
        return;
    };
    expect_total(&browser, "130 conferences");
    open_filters(&browser);
    browser.click("//details[summary='Therapy area']//label[span='Oncology']/input");
    browser.click("//details[summary='Therapy area']//label[span='Cardiology']/input");
    expect_total(&browser, "87 of 130 conferences");
    let rows = "return document.querySelectorAll('tbody tr').length";
    assert_eq!(browser.js(rows), 50);
    // A browser sends an event before it prints.
    let print = || {
        browser.devtools("Emulation.setEmulatedMedia", json!({"media": "print"}));
        browser.js("dispatchEvent(new Event('beforeprint'))");
        browser
            .js("return document.body.innerText")
            .as_str()
            .unwrap()
            .to_owned()
    };
    let end = || {
        browser.js("dispatchEvent(new Event('afterprint'))");
        browser.devtools("Emulation.setEmulatedMedia", json!({"media": ""}));
    };
    let text = print();
    assert_eq!(browser.js(rows), 87);
    for part in words![
        "Conferences: Oncology, Cardiology, to come" "87 of 130 conferences" "Printed on "
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        !text.contains(&key[key.len() - 4..]),
        "no characters of the key: {text}"
    );
    let seen = "return [...document.querySelectorAll('header, nav, footer, form, input, select, button:not(.sort), .chips, .filters, .back')]\
                .filter(one => one.checkVisibility()).map(one => one.outerHTML)";
    assert_eq!(browser.js(seen), json!([]));
    end();
    let script = "return document.querySelectorAll('tbody tr').length === 50";
    browser.wait_for_js("the list as it was", script);
    assert!(
        !browser
            .js("return document.body.innerText")
            .as_str()
            .unwrap()
            .contains("Printed on")
    );

    // The reader enters for whom the list is printed. Printing would block the browser, so the test replaces it.
    browser.js("window.print = () => { window.printed = true; }");
    export(&browser, "Print (87 rows)");
    browser.fill("//input[@id='printed-for']", "Ada <b>Müller</b>");
    browser.click("//form/button[.='Print']");
    browser.wait_for_js("it prints", "return window.printed");
    let focused = "return document.activeElement.textContent === 'Print (87 rows)' && !document.getElementById('printed-for')";
    browser.wait_for_js("the focus is back at the button", focused);
    for view in
        words!["#/conferences?view=deadlines" "#/conferences/5" "#/compare/conferences?ids=1,2"]
    {
        browser.view(view);
        browser.wait_for_js(
            view,
            "return document.querySelector('h1') && !/Loading/.test(document.body.innerText)",
        );
        let text = print();
        assert!(text.contains(" for Ada <b>Müller</b>"), "{view}: {text}");
        assert_eq!(browser.js(seen), json!([]), "{view}");
        end();
    }
    forget(&browser, "Forget key");
    browser.wait_for("//input[@id='key']");
    paste_key(&browser, &key);
    browser.wait_for("//div[@class='compare']");
    assert!(!print().contains("Ada"), "the next reader has another name");
    browser.expect_quiet_console(&[]);
    drop(server);
}
