//! What stands where on the page, in other colors, on paper and for screen readers; the header of all pages.

use std::fs;

use medfeed::model::time::now;
use serde_json::{Value, json};

use super::chromium::{Browser, Rules, find_axe, wait_until};
use super::explorer::expect_total;
use super::{
    end_demo, export, in_export_menu, in_own_menu, move_pointer, open_demo, open_filters,
    open_page, paste_key,
};
use crate::process::client::Client;
use crate::process::monitoring::serve_watched;
use crate::process::site::Site;

const TAB: &str = "\u{e004}";

/// A conference with more fields.
fn conference(id: u64, fields: Value) -> String {
    let mut record = json!({"id": id, "name": format!("Congress of {id}"), "abbv": format!("C{id}"), "year": 2097, "start_date_status": "check",
        "abstract_due_date_status": "not_found", "late_breaking_due_date_status": "not_found"});
    record
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    format!("{record}\n")
}

/// The fields of abstracts that are due in `days` days.
fn due(days: i64) -> Value {
    json!({"abstract_due_date": now().plus_s(days * 86_400).date(), "abstract_due_date_status": "estimated"})
}

/// The short names of the rows.
const ROWS: &str =
    "return [...document.querySelectorAll('tbody .short a')].map(link => link.textContent).join()";

#[test]
fn the_list_begins_near_the_top_and_after_few_stops() {
    let Some((browser, server, _site)) = open_demo(&["--quiet-data"]) else {
        return;
    };
    for (size, colors, top, rows) in [
        ((1440, 900), "light", 240, 12),
        ((1024, 768), "light", 240, 8),
        ((390, 844), "light", 300, 3),
        ((1440, 900), "dark", 240, 12),
        ((1440, 900), "forced", 240, 12),
    ] {
        browser.set_screen(size, colors);
        browser.view("#/help");
        browser.wait_for("//h1[.='Help']");
        browser.view("#/conferences");
        browser.wait_for("//tbody/tr[50]");
        browser.wait_for("//div[@class='year']/button[contains(@aria-label, ' deadlines')]");
        let script = "const boxes = [...document.querySelectorAll('tbody tr')].map(row => row.getBoundingClientRect()); \
             return [boxes[0].top, boxes.filter(({bottom}) => bottom <= innerHeight).length, boxes[0].height]";
        let measured = browser.js(script);
        assert!(
            measured[0].as_f64() < Some(f64::from(top)),
            "{size:?} {colors}: the first row is at {measured}"
        );
        assert!(
            measured[1].as_u64() >= Some(rows),
            "{size:?} {colors}: {measured} rows"
        );
        assert!(
            size.0 < 600 || measured[2] == 40,
            "{size:?} {colors}: {measured}"
        );
    }

    // The stops of the Tab key above the list, and up to the first row.
    browser.set_screen((1440, 900), "light");
    browser.js("document.activeElement.blur(); scrollTo(0, 0)");
    browser.js("document.body.tabIndex = -1; document.body.focus()");
    let stops = |selector: &str| {
        browser.js("document.body.focus()");
        (0..40)
            .find(|_| {
                browser.type_keys(TAB);
                browser.js_with(
                    "return Boolean(document.activeElement.closest(arguments[0]))",
                    &[json!(selector)],
                ) == true
            })
            .expect("the list is in reach")
    };
    let above = stops("table");
    assert!(above <= 10, "{above} stops above the list");
    let row = stops("tbody");
    assert!(row < 14, "the first row is {row} stops away");

    // A fact is told once: no chip says what the list leaves out anyway.
    let text = browser.js("return document.body.innerText");
    assert!(!text.as_str().unwrap().contains("to come"), "{text}");
    assert_eq!(
        browser.js("return document.querySelectorAll('.chip').length"),
        0
    );
    // At most one filled button says what a view is for.
    for (view, most) in [
        ("#/conferences", 0),
        ("#/conferences?view=deadlines&area=Oncology", 0),
        ("#/journals", 0),
        ("#/conferences/127", 1),
        ("#/journals/2", 0),
        ("#/compare/conferences?ids=3,5", 0),
        ("#/changes/conferences", 1),
        ("#/developers/conferences", 0),
    ] {
        browser.view(view);
        browser.wait_for_js(view, "return document.querySelector('h1') && !/Asking …|Loading /.test(document.body.innerText)");
        let filled = browser.js(
            "const probe = document.body.appendChild(document.createElement('i')); probe.style.color = 'var(--accent)'; \
             const accent = getComputedStyle(probe).color; probe.remove(); \
             return [...document.querySelectorAll('button, .button')].filter(one => one.checkVisibility() \
                 && getComputedStyle(one).backgroundColor === accent).map(one => one.textContent)");
        assert!(filled.as_array().unwrap().len() <= most, "{view}: {filled}");
    }
    // The toolbar of changes is one line, and the choice of a reminder stands below the names of the files.
    browser.view("#/changes/conferences");
    browser.wait_for("//button[.='7 days']");
    let height = browser.js("return document.querySelector('.toolbar').offsetHeight");
    assert!(height.as_u64() < Some(60), "{height}");
    browser.view("#/conferences");
    in_export_menu(&browser, "Excel");
    let script = "return ['button', 'label', 'select'].map(one => document.querySelector(`.toolbar .sheet > ${one}`)).map(one => \
         Math.round(one.getBoundingClientRect().left + (one.matches('select') ? 0 : parseFloat(getComputedStyle(one).paddingLeft))))";
    let lefts = browser.js(script);
    assert_eq!(lefts[0], lefts[1], "{lefts}");
    assert_eq!(lefts[0], lefts[2], "{lefts}");
    browser.expect_quiet_console(&[]);
    end_demo(browser, server);
}

#[test]
fn toolbar_and_heads_stay_in_sight_and_a_row_is_a_target() {
    let Some((browser, server, _site)) = open_demo(&["--quiet-data"]) else {
        return;
    };
    browser.set_screen((1440, 900), "light");
    browser.view("#/conferences?past=yes");
    browser.wait_for("//tbody/tr[50]");
    browser.js("document.querySelectorAll('tbody tr')[30].scrollIntoView()");
    let tops = "return ['.toolbar', 'thead th'].map(one => Math.round(document.querySelector(one).getBoundingClientRect().top)).join()";
    assert_eq!(browser.js(tops), "0,52");
    // A row that gets the focus is not below them.
    browser.js("document.querySelectorAll('tbody tr')[10].querySelector('.star').focus()");
    let top = browser.js("return document.activeElement.getBoundingClientRect().top");
    assert!(top.as_f64() > Some(80.0), "{top}");
    // A window of little height has no room for what stays.
    browser.set_screen((360, 225), "light");
    browser.js("scrollTo(0, 900)");
    let top =
        browser.js("return document.querySelector('.toolbar').getBoundingClientRect().bottom");
    assert!(top.as_f64() < Some(0.0), "{top}");
    browser.set_screen((1440, 900), "light");

    // A click beside the name opens the record. A star does not.
    browser.js("scrollTo(0, 0)");
    let name = browser.text("//tbody/tr[4]//a");
    browser.click("//tbody/tr[4]/td[1]/button");
    browser.wait_for("//button[.='Only starred (1)']");
    browser.click("//tbody/tr[4]/td[@data-label='Area']");
    browser.wait_for(&format!("//h1[.='{name}']"));
    browser.back();
    browser.wait_for("//tbody/tr[50]");

    // The height of the rows is the reader's choice, and stays in the tab.
    in_own_menu(&browser, "Comfortable");
    browser.click("//button[.='Comfortable']");
    let height = "return document.querySelector('tbody tr').getBoundingClientRect().height";
    assert_eq!(browser.js(height), 56);
    browser.js("location.reload()");
    browser.wait_for("//tbody/tr[50]");
    assert_eq!(browser.js(height), 56);
    browser.expect_quiet_console(&[]);
    end_demo(browser, server);
}

#[test]
fn a_bar_of_the_year_shows_the_deadlines_of_its_month() {
    let records = [
        conference(1, due(3)),
        conference(2, due(100)),
        conference(3, due(100)),
        conference(4, due(400)),
        conference(5, json!({})),
        conference(6, due(-40)),
    ];
    let Some((browser, _site, _server, key)) =
        open_page(&[("conferences.jsonl", records.concat())])
    else {
        return;
    };
    paste_key(&browser, &key);
    expect_total(&browser, "6 conferences");
    let bars = "return [...document.querySelectorAll('.bar')].map(bar => +/: (\\d+) deadline/.exec(bar.getAttribute('aria-label'))[1]).filter(Boolean).join()";
    let script = format!("return (() => {{ {bars} }})() === '1,2'");
    browser.wait_for_js("the bars", &script);
    browser.click("//button[contains(@aria-label, ': 2 deadlines')]");
    expect_total(&browser, "2 of 6 conferences");
    browser.wait_for("//button[contains(@aria-label, ': 2 deadlines') and @aria-checked='true']");
    // The bar tells the period. The other months keep their bars.
    assert_eq!(
        browser.js("return document.querySelectorAll('.chip').length"),
        0
    );
    let script = format!("return (() => {{ {bars} }})() === '1,2'");
    browser.wait_for_js("the bars", &script);
    let script = "return /^#.conferences\\?due_from=....-..-01&due_to=....-..-(28|29|30|31)$/.test(location.hash)";
    browser.wait_for_js("the address", script);
    // Words narrow the bars too.
    browser.fill("//input[@id='words']", "C2");
    browser.wait_for_js("one bar", &format!("return (() => {{ {bars} }})() === '1'"));
    browser.fill("//input[@id='words']", " ");
    browser.click("//button[@role='radio' and .='90 days']");
    expect_total(&browser, "1 of 6 conferences");
    browser.click("//button[@role='radio' and .='Any']");
    expect_total(&browser, "6 conferences");
    browser.expect_quiet_console(&[]);
}

#[test]
fn months_have_their_columns_in_line_and_marks_are_drawn_in_their_line() {
    let meets = |id: u64, days: i64, status: &str| {
        let mut fields = due(days);
        fields["start_date"] = json!(now().plus_s((days + 90) * 86_400).date());
        fields["start_date_status"] = json!(status);
        conference(id, fields)
    };
    let records = [
        meets(1, 3, "check"),
        meets(2, 50, "confirmed"),
        meets(3, 90, "copied"),
    ];
    let Some((browser, _site, _server, key)) =
        open_page(&[("conferences.jsonl", records.concat())])
    else {
        return;
    };
    paste_key(&browser, &key);
    browser.set_screen((1440, 900), "light");
    browser.view("#/conferences?view=deadlines");
    browser.wait_for("//h2[@class='results' and normalize-space(.)='3 deadlines']");
    let lefts = browser.js("return [...document.querySelectorAll('.month tbody tr')].map(row => [...row.cells].map(cell => Math.round(cell.getBoundingClientRect().left)).join())");
    let lefts = lefts.as_array().unwrap();
    assert!(lefts.len() == 3, "{lefts:?}");
    assert!(lefts.iter().all(|one| *one == lefts[0]), "{lefts:?}");
    browser.view("#/conferences/1");
    browser.wait_for("//h1[.='C1 2097']");
    let mark = browser.js("const mark = document.querySelector('.facts .mark.check'), {width, height} = getComputedStyle(mark, '::before'); return [getComputedStyle(mark).display, width, height]");
    assert_eq!(mark, json!(["inline", "10px", "10px"]));
    browser.expect_quiet_console(&[]);
}

#[test]
fn rows_do_not_move_under_the_pointer() {
    let records: String = (1..=5)
        .map(|id| conference(id, due(20 * id.cast_signed())))
        .collect();
    let Some((browser, site, _server, key)) = open_page(&[("conferences.jsonl", records)]) else {
        return;
    };
    paste_key(&browser, &key);
    expect_total(&browser, "5 conferences");
    let top = browser.js("return Math.round(document.querySelector('tbody tr:nth-child(2)').getBoundingClientRect().top)");
    move_pointer(&browser, 300, top.as_i64().unwrap() + 9);
    // A commit that moves no row is shown at once. One that does waits until the reader asks for it.
    site.import("conferences.jsonl", r#"{"id": 4, "city": "Ghent"}"#);
    browser.wait_for("//tbody/tr[4][contains(., 'Ghent')]");
    site.import("conferences.jsonl", conference(6, due(1)));
    browser.wait_for("//button[.='1 change: show']");
    let expected = "C1 2097,C2 2097,C3 2097,C4 2097,C5 2097";
    assert_eq!(browser.js(ROWS), expected);
    site.import("conferences.jsonl", r#"{"id": 3, "deleted": true}"#);
    browser.wait_for("//button[.='2 changes: show']");
    browser.click("//button[.='2 changes: show']");
    expect_total(&browser, "5 conferences");
    let expected = "C6 2097,C1 2097,C2 2097,C4 2097,C5 2097";
    assert_eq!(browser.js(ROWS), expected);
    // Elsewhere nothing waits.
    move_pointer(&browser, 1, 1);
    site.import("conferences.jsonl", r#"{"id": 6, "deleted": true}"#);
    expect_total(&browser, "4 conferences");
    browser.expect_quiet_console(&[]);
}

#[test]
fn starred_deadlines_without_a_date_are_named() {
    let records = [
        conference(1, due(30)),
        conference(
            2,
            json!({"abstract_due_date_status": "check", "late_breaking_due_date": "2096-12-24", "late_breaking_due_date_status": "confirmed"}),
        ),
        conference(3, json!({})),
        conference(
            4,
            json!({"year": 2020, "start_date": "2020-05-01", "start_date_status": "confirmed"}),
        ),
    ];
    let Some((browser, _site, _server, key)) =
        open_page(&[("conferences.jsonl", records.concat())])
    else {
        return;
    };
    paste_key(&browser, &key);
    expect_total(&browser, "3 of 4 conferences");
    browser.click("//button[.='Show it too']");
    expect_total(&browser, "4 conferences");
    for id in [2, 4] {
        browser.click(&format!(
            "//button[starts-with(@aria-label, 'Star Congress of {id} ')]"
        ));
    }
    let undated = "return [...document.querySelectorAll('.undated li')].filter(one => one.checkVisibility()).map(one => one.innerText.replace(/\\s+/g, ' ').trim()).join()";
    // In the table the rows are there. On paper and in the calendar the deadlines would be missing.
    assert_eq!(browser.js(undated), "");
    in_export_menu(&browser, "Calendar");
    browser.wait_for("//div[@class='sheet']/p[.='1 starred deadline without a date is not in the file: C2 2097 (abstracts).']");
    browser.click("//button[.='Months']");
    expect_total(&browser, "2 deadlines");
    assert_eq!(browser.js(undated), "C2 2097 Abstracts in check");
    browser.click("//button[.='Table']");
    expect_total(&browser, "4 conferences");
    browser.devtools("Emulation.setEmulatedMedia", json!({"media": "print"}));
    assert_eq!(browser.js(undated), "C2 2097 Abstracts in check");
    browser.devtools("Emulation.setEmulatedMedia", json!({"media": ""}));

    // What is not confirmed is one choice, and one chip.
    open_filters(&browser);
    browser
        .click("//details[summary='Confidence of deadlines']//label[span='not confirmed']/input");
    let script = "return [...document.querySelectorAll('.chip bdi')].map(one => one.textContent).join() === 'Confidence of deadlines: not confirmed,with past ones'";
    browser.wait_for_js("one chip", script);
    browser.click("//button[contains(@class, 'chip') and contains(., 'not confirmed')]");
    let script = "return document.querySelectorAll('.chip').length === 1";
    browser.wait_for_js("none", script);
    browser.expect_quiet_console(&[]);
}

#[test]
fn paper_has_heads_and_words_and_nothing_to_press() {
    let records: String = (1..=60)
        .map(|id| conference(id, due(id.cast_signed())))
        .collect();
    let Some((browser, _site, _server, key)) = open_page(&[("conferences.jsonl", records)]) else {
        return;
    };
    paste_key(&browser, &key);
    expect_total(&browser, "60 conferences");
    browser.devtools("Emulation.setEmulatedMedia", json!({"media": "print"}));
    browser.js("dispatchEvent(new Event('beforeprint'))");
    browser.wait_for("//tbody/tr[60]");
    // A browser repeats heads on each page if they are a group of rows without buttons.
    let script = "const head = document.querySelector('thead'); \
         return [getComputedStyle(head).display, head.querySelectorAll('button').length, [...head.querySelectorAll('th')].filter(one => one.innerText && one.checkVisibility()).length > 5]";
    let heads = browser.js(script);
    assert_eq!(heads, json!(["table-header-group", 0, true]));
    let text = browser.js("return document.body.innerText");
    let text = text.as_str().unwrap();
    for part in words![
        "Printed on " "estimated" "projected from earlier editions until the organizer announces it"
        "C60 2097" "Congress of 60"
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in [
        &key[key.len() - 4..],
        "Show more",
        "are shown",
        "Export",
        "Skip",
    ] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    let pressed = "return [...document.querySelectorAll('button, input, select')].filter(one => one.checkVisibility()).length";
    assert_eq!(browser.js(pressed), 0);
    browser.js("dispatchEvent(new Event('afterprint'))");
    browser.devtools("Emulation.setEmulatedMedia", json!({"media": ""}));

    // A copied row has one fact in each cell.
    browser.set_screen((1440, 900), "light");
    let copied = browser.js("getSelection().selectAllChildren(document.querySelector('tbody tr')); return String(getSelection())");
    let cells = copied.as_str().unwrap().trim().split('\t');
    let cells: Vec<&str> = cells.map(str::trim).collect();
    let day = browser.text("//tbody/tr[1]/td[@data-label='Next deadline']");
    assert_eq!(
        cells[..6],
        [
            "C1 2097",
            "Congress of 1",
            &day,
            "estimated",
            "tomorrow",
            "Abstracts"
        ],
        "{copied}"
    );
    browser.expect_quiet_console(&[]);
}

#[test]
fn screen_readers_hear_names_without_signs() {
    let Some((browser, server, _site)) = open_demo(&["--quiet-data"]) else {
        return;
    };
    browser.view("#/conferences?area=Oncology");
    browser.wait_for("//tbody/tr[10]");
    let results = browser.text("//h2[@class='results']");
    let names = browser.names("heading");
    assert!(names.contains(&results), "{names:?}");
    let buttons = browser.names("button");
    for name in words!["Conference" "Next deadline" "Meeting" "Place" "Export" "Filter 1"] {
        assert!(buttons.contains(&name.to_owned()), "{name}: {buttons:?}");
    }
    let heads = browser.names("columnheader");
    for name in words!["Starred" "Full name" "Confidence of the deadline" "Kind" "Meeting"] {
        assert!(heads.contains(&name.to_owned()), "{name}: {heads:?}");
    }
    assert!(browser.names("rowheader").len() > 9);
    browser.wait_for("//p[contains(@class, 'standing')]/span[@role='status' and .='Current']");
    browser.view("#/conferences/127");
    browser.click("//summary[.='For developers']");
    let what = "no code has a name without a role";
    browser.wait_for_js(what, "return document.querySelectorAll('pre[aria-label]').length > 1 && ![...document.querySelectorAll('pre[aria-label]')].some(one => !one.role)");
    browser.expect_quiet_console(&[]);
    end_demo(browser, server);
}

#[test]
fn contrast_themes_show_what_is_pressed_and_where_one_is() {
    let Some((browser, server, _site)) = open_demo(&["--quiet-data"]) else {
        return;
    };
    browser.set_screen((1440, 900), "forced");
    browser.view("#/conferences");
    browser.wait_for("//tbody/tr[10]");
    browser.click("//button[@class='star']");
    // Each has a border that the same thing without it does not have.
    let borders = "const border = one => { const {borderTopColor, borderTopWidth, borderBottomColor} = getComputedStyle(one); return [borderTopColor, borderTopWidth, borderBottomColor].join(); }; \
                   const [on, off] = [...arguments].map(path => document.querySelector(path)); return border(on) !== border(off)";
    for (on, off) in cases![
        ".segments [aria-checked=true]", ".segments [aria-checked=false]";
        "header h1", "header nav a";
        "tbody .star[aria-pressed=true]", "tbody .star[aria-pressed=false]";
    ] {
        let differs = browser.js_with(borders, &[json!(on), json!(off)]);
        assert_eq!(differs, true, "{on}");
    }
    let dot = browser.js("const {borderTopWidth, borderTopColor} = getComputedStyle(document.querySelector('.dot')); return [borderTopWidth, borderTopColor === getComputedStyle(document.body).backgroundColor]");
    assert_eq!(dot, json!(["4px", false]), "the dot is drawn by its border");
    end_demo(browser, server);
}

#[test]
fn a_page_without_a_clipboard_offers_the_address() {
    let records: String = (1..=3).map(|id| conference(id, due(9))).collect();
    let Some((browser, _site, server, key)) = open_page(&[("conferences.jsonl", records)]) else {
        return;
    };
    browser.before_each_page("Object.defineProperty(navigator, 'clipboard', {value: undefined})");
    browser.go(&format!("http://{}/#/conferences?q=C2", server.address));
    // The first screen names the list behind the link, and speaks to a planner.
    browser.wait_for("//h1[.='Congresses and journals, with every deadline']");
    browser.wait_for("//p[contains(., 'Behind this link: Conferences: “C2”')]");
    paste_key(&browser, &key);
    expect_total(&browser, "1 of 3 conferences");
    export(&browser, "Copy link");
    let what = "the address is selected";
    browser.wait_for_js(what, "const field = document.activeElement; return field.readOnly && field.value === location.href && field.selectionEnd === field.value.length && field.value.endsWith('?q=C2')");
    browser.expect_quiet_console(&[]);
}

#[test]
fn a_license_without_conferences_opens_on_journals() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let site = Site::new();
    site.import("conferences.jsonl", conference(1, json!({})));
    site.import("journals.jsonl", r#"{"id": 3, "name": "Annals of Three"}"#);
    site.license("press", "--dataset journals");
    let key = site.key("press", &[]).1;
    let server = site.serve();
    browser.go(&format!("http://{}/", server.address));
    paste_key(&browser, &key);
    expect_total(&browser, "1 journal");
    browser.wait_for("//h1[.='Journals']");
    browser.view("#/conferences");
    browser.wait_for("//p[.='This license has no conferences.']");
    browser.expect_quiet_console(&[403]);
}

#[test]
fn years_of_a_congress_are_tabs_and_have_names_of_their_own() {
    let records: String = [(1, 2096), (2, 2097), (3, 2098)]
        .map(|(id, year)| {
            conference(
                id,
                json!({"abbv": "ABC", "name": "A big congress", "year": year}),
            )
        })
        .concat();
    let Some((browser, site, _server, key)) = open_page(&[("conferences.jsonl", records)]) else {
        return;
    };
    paste_key(&browser, &key);
    expect_total(&browser, "3 conferences");
    browser.view("#/conferences/2");
    browser.wait_for("//h1[.='ABC 2097']");
    let script = "return document.title === 'ABC 2097 · medfeed'";
    browser.wait_for_js("the window", script);
    browser.wait_for("//nav[@aria-label='Years']//a[.='2097' and @aria-current='page']");
    browser.click("//nav[@aria-label='Years']//a[.='2098']");
    browser.wait_for("//h1[.='ABC 2098']");
    browser.click("//nav[@aria-label='Years']//a[.='Compare side by side']");
    let what = "this year is first";
    browser.wait_for_js(what, "return location.hash === '#/compare/conferences?ids=3,2,1' && document.querySelectorAll('.compare th a').length === 3");
    // A conference gets into the calendar from its own view.
    site.import(
        "conferences.jsonl",
        format!(
            "{{\"id\": 2, \"abstract_due_date\": \"{}\", \"abstract_due_date_status\": \"check\"}}",
            now().plus_s(86_400).date()
        ),
    );
    browser.view("#/conferences/2");
    browser.click("//button[.='Add to calendar' and not(@disabled)]");
    let file = wait_until("the file is there", || {
        let mut name = site.files().into_iter();
        let name = name.find(|name| name.ends_with(".ics"))?;
        fs::read_to_string(site.path(&name))
            .ok()
            .filter(|text| !text.is_empty())
    });
    assert_eq!(file.matches("BEGIN:VEVENT").count(), 1, "{file}");
    browser.expect_quiet_console(&[]);
}

#[test]
fn all_pages_have_one_header_and_pass_axe() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let (site, _) = Site::open(9);
    let (server, admin): (_, Client) = serve_watched(&site, &[]);
    let own = format!("http://{}", server.address);
    let pages = [
        format!("{own}/"),
        format!("{own}/docs"),
        format!("{own}/docs/errors"),
        format!("{own}/docs/errors/rate_limited"),
        format!("{own}/no/such/page"),
        format!("http://{}/", admin.address()),
    ];
    let axe = find_axe();
    let colors = ["light", "dark", "forced"];
    for (width, colors) in [1440, 768, 390, 320]
        .into_iter()
        .flat_map(|width| colors.map(|colors| (width, colors)))
    {
        browser.set_screen((width, 844), colors);
        let mut headers = Vec::new();
        for page in &pages {
            let place = format!("{page} at {width}, {colors}");
            browser.go(page);
            browser.wait_for("//h1");
            let widths = browser.js("const {scrollWidth, clientWidth} = document.documentElement; return [scrollWidth, clientWidth]");
            assert_eq!(widths[0], widths[1], "{place}: it scrolls sideways");
            let header = browser.js("const header = document.querySelector('header.top'), brand = header.querySelector('.brand'), style = getComputedStyle(header); \
                 return [style.backgroundColor, style.color, style.borderBottomColor, style.fontSize, getComputedStyle(brand).fontWeight, getComputedStyle(brand).fontSize, brand.getBoundingClientRect().left]");
            headers.push(header);
            match &axe {
                Some(axe) => browser.check_rules(axe, Rules::All, &place),
                None => eprintln!("{place}: MEDFEED_AXE does not name axe.min.js"),
            }
        }
        assert!(
            headers.iter().all(|one| *one == headers[0]),
            "{width} {colors}: {headers:?}"
        );
    }
    // A link within a sentence is not told by its color alone.
    browser.go(&pages[1]);
    let plain = browser.js("return [...document.querySelectorAll('main p a, main li a, main td a')].filter(one => getComputedStyle(one).textDecorationLine !== 'underline').length");
    assert_eq!(plain, 0);
}
