//! Phones and desktops, light and dark, by keyboard and to a screen reader.

use super::chromium::{Rules, find_axe};
use super::{end_demo, open_demo, open_filters};

const VIEWS: [&str; 18] = words![
    "#/" "#/conferences" "#/conferences?view=deadlines&area=Oncology&region=Europe&within=90"
    "#/conferences?q=nothing+of+the+kind" "#/conferences?ids=3,127,4711&unknown=x&start_date_from=2026-01-01"
    "#/journals?access=x" "#/journals?fee_max=1000&impact_min=1" "#/compare/conferences?ids=3,5,127,4711,12"
    "#/conferences/127" "#/journals/2" "#/changes/conferences" "#/changes/conferences?since=30"
    "#/reference/conferences" "#/developers/conferences" "#/lists" "#/list?name=A&conferences=3,127" "#/help"
    "#/nowhere"
];

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

#[test]
fn every_view_fits_every_screen_and_passes_axe() {
    let Some((browser, server, _site)) = open_demo(&["--quiet-data"]) else {
        return;
    };
    let axe = find_axe();
    if axe.is_none() {
        eprintln!(
            "the accessibility of the explorer is not checked: MEDFEED_AXE does not name axe.min.js"
        );
    }
    // axe checks the widest and the narrowest form. Dark differs in its colors alone.
    for (width, dark, rules) in [
        (1366, false, Rules::All),
        (1366, true, Rules::Contrast),
        (768, false, Rules::None),
        (390, true, Rules::None),
        (320, false, Rules::All),
    ] {
        browser.set_window(width, dark);
        for view in VIEWS {
            let place = format!("{view} at {width}, dark: {dark}");
            browser.view(view);
            let script = "return document.querySelector('h1') && !document.querySelector('[aria-busy=true]') \
                 && !/Asking …|Loading /.test(document.querySelector('main').textContent)";
            browser.wait_for_js(&place, script);
            let widths = browser.js("const {scrollWidth, clientWidth} = document.documentElement; return [scrollWidth, clientWidth]");
            assert_eq!(widths[0], widths[1], "{place}: it scrolls sideways");
            if let Some(axe) = &axe {
                browser.check_rules(axe, rules, &place);
            }
            // On a phone the filters are behind a button.
            if width < 600
                && browser.js(
                    "return Boolean(document.querySelector('.toolbar > button[aria-controls=filters]'))") == true
            {
                open_filters(&browser);
                browser
                    .wait_for("//section[@aria-label='Filters']/button[starts-with(., 'Show ')]");
                if let Some(axe) = &axe {
                    browser.check_rules(axe, rules, &format!("{place}, with its filters"));
                }
                browser.click("//section[@aria-label='Filters']/button[starts-with(., 'Show ')]");
            }
        }
        let page = browser.js("return getComputedStyle(document.body).backgroundColor");
        assert_eq!(
            page,
            if dark {
                "rgb(20, 24, 28)"
            } else {
                "rgb(255, 255, 255)"
            }
        );
    }
    browser.expect_quiet_console(&[]);
    end_demo(browser, server);
}

#[test]
fn the_explorer_is_usable_by_keyboard_alone() {
    let Some((browser, server, _site)) = open_demo(&["--quiet-data"]) else {
        return;
    };
    browser.type_keys(TAB);
    let what = "the skip link is first";
    browser.wait_for_js(what, "return document.activeElement.className === 'skip'");
    browser.type_keys(ENTER);
    let what = "it leads to the content";
    browser.wait_for_js(what, "return document.activeElement.id === 'main'");
    browser.type_keys(TAB);
    let script = "return document.activeElement.textContent === 'Explore with this key'";
    browser.wait_for_js("the first link of the content", script);
    let outline = browser.js("return getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(outline, "solid", "the focus is visible");
    browser.type_keys(ENTER);
    let script = "return document.activeElement.textContent === 'Conferences' && document.activeElement.tagName === 'H1'";
    browser.wait_for_js("the heading", script);
    browser.wait_for("//tbody/tr");
    // A key goes to the search, and another one to the results. Typed again, it is a part of the words.
    browser.type_keys("/");
    browser.wait_for_js("the search", "return document.activeElement.id === 'words'");
    browser.type_keys(&format!("esmo 2027/{ENTER}"));
    browser.wait_for("//h2[@class='results' and contains(., ' of 310 conferences')]");
    let script = "return document.activeElement.className === 'results' && document.getElementById('words').value === 'esmo 2027/'";
    browser.wait_for_js("the results", script);

    // A choice is one stop. The arrow keys move within it, and the Enter key chooses.
    let focused = "return document.activeElement.textContent";
    browser.js(
        "document.querySelector('[role=radiogroup][aria-label=Deadline] [tabindex=\"0\"]').focus()",
    );
    for (keys, expected) in [
        ("\u{e014}", "30 days"),
        ("\u{e014}\u{e014}", "90 days"),
        ("\u{e012}", "60 days"),
    ] {
        browser.type_keys(keys);
        assert_eq!(browser.js(focused), expected);
    }
    browser.type_keys(ENTER);
    browser.wait_for("//button[@role='radio' and @aria-checked='true' and .='60 days']");
    browser.type_keys(ENTER);
    browser.wait_for("//button[@role='radio' and @aria-checked='true' and .='Any']");

    // A link past the filters is the first one in them.
    open_filters(&browser);
    browser.js("document.querySelector('.strip [aria-checked=true]').focus()");
    browser.type_keys(TAB);
    assert_eq!(browser.js(focused), "Skip the filters");
    browser.type_keys(ENTER);
    let script = "return document.activeElement.className === 'results'";
    browser.wait_for_js("the results have the focus", script);

    // More rows: the focus stays at the button, and at last goes to the first new row.
    browser.view("#/conferences?area=Oncology&year=2025&year=2026&year=2027");
    browser.wait_for("//h2[@class='results' and normalize-space(.)='66 of 310 conferences']");
    browser.js("[...document.querySelectorAll('button')].find(one => one.textContent === 'Show more').focus()");
    browser.type_keys(ENTER);
    let script = "return document.querySelectorAll('tbody tr').length === 66";
    browser.wait_for_js("all rows", script);
    let what = "the first new row";
    browser.wait_for_js(what, "return document.querySelectorAll('tbody tr')[50].querySelector('a') === document.activeElement");
    browser.view("#/conferences?past=yes");
    browser.wait_for("//h2[@class='results' and normalize-space(.)='310 conferences']");
    browser.js("[...document.querySelectorAll('button')].find(one => one.textContent === 'Show more').focus()");
    browser.type_keys(ENTER);
    let script = "return document.querySelectorAll('tbody tr').length === 150";
    browser.wait_for_js("more rows", script);
    assert_eq!(browser.js(focused), "Show more");

    // So it does in the list of changes, which are records that were loaded today.
    browser.view("#/changes/conferences?since=30");
    browser.wait_for("//li[200][.//span[.='updated']]");
    browser.js("[...document.querySelectorAll('button')].find(one => one.textContent === 'Show more').focus()");
    browser.type_keys(ENTER);
    let script = "return document.querySelectorAll('li.entry')[200] === document.activeElement";
    browser.wait_for_js("the first new change", script);
    browser.view("#/conferences?past=yes");
    browser.wait_for("//h2[@class='results' and normalize-space(.)='310 conferences']");

    // On a phone the filters close with the number of results, and the first rows are in the window.
    browser.set_window(390, false);
    open_filters(&browser);
    browser.click("//details[summary='Therapy area']//label[span='Oncology']/input");
    browser.click("//button[.='Show 66 conferences']");
    let what = "the results have the focus, and the first row is below them";
    browser.wait_for_js(what, "const row = document.querySelector('tbody tr').getBoundingClientRect(); \
         return document.activeElement.className === 'results' && !document.querySelector('.facets') && row.top > 0 && row.bottom < innerHeight");
    end_demo(browser, server);
}
