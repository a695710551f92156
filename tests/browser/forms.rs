//! Phones and desktops, light and dark, by keyboard and to a screen reader.

use super::chromium::find_axe;
use super::{end_demo, open_demo};

const VIEWS: [&str; 11] = [
    "#/",
    "#/conferences",
    "#/conferences?view=deadlines&area=Oncology&region=Europe&within=90",
    "#/conferences?q=nothing+of+the+kind",
    "#/journals?access=x",
    "#/conferences/127",
    "#/journals/2",
    "#/changes/conferences",
    "#/reference/conferences",
    "#/developers/conferences",
    "#/nowhere",
];

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

#[test]
fn every_view_fits_every_reader() {
    let Some((browser, server, _site)) = open_demo("every_view_fits_every_reader", &["--quiet-data"]) else { return };
    let axe = find_axe();
    if axe.is_none() {
        eprintln!("the accessibility of the explorer is not looked at: MEDFEED_AXE does not name axe.min.js");
    }
    for (width, dark) in [(1366, false), (1366, true), (768, false), (768, true), (390, false), (390, true)] {
        browser.set_window(width, dark);
        for view in VIEWS {
            let place = format!("{view} at {width}, dark: {dark}");
            browser.view(view);
            browser.wait_for_js(
                &place,
                "return document.querySelector('h1') && !document.querySelector('[aria-busy=true]') \
                 && !/Asking …|Loading /.test(document.querySelector('main').textContent)",
            );
            let widths = browser.js(
                "const {scrollWidth, clientWidth} = document.documentElement; return [scrollWidth, clientWidth]",
                &[],
            );
            assert_eq!(widths[0], widths[1], "{place}: it scrolls sideways");
            if let Some(axe) = &axe {
                browser.check_accessibility(axe, &place);
            }
        }
        let page = browser.js("return getComputedStyle(document.body).backgroundColor", &[]);
        assert_eq!(page, if dark { "rgb(20, 24, 28)" } else { "rgb(253, 253, 252)" });
    }
    browser.expect_quiet_console(&[]);
    end_demo(browser, server);
}

#[test]
fn the_keyboard_suffices() {
    let Some((browser, server, _site)) = open_demo("the_keyboard_suffices", &["--quiet-data"]) else { return };
    browser.type_keys(TAB);
    browser.wait_for_js("the skip link is first", "return document.activeElement.className === 'skip'");
    browser.type_keys(ENTER);
    browser.wait_for_js("it leads to the content", "return document.activeElement.id === 'main'");
    browser.type_keys(TAB);
    browser.wait_for_js(
        "the first link of the content",
        "return document.activeElement.textContent === 'Explore with this key'",
    );
    let outline = browser.js("return getComputedStyle(document.activeElement).outlineStyle", &[]);
    assert_eq!(outline, "solid", "the focus is visible");
    browser.type_keys(ENTER);
    browser.wait_for_js("the heading", "return document.activeElement.textContent === 'Conferences'");
    browser.type_keys(TAB);
    browser.wait_for_js("the search", "return document.activeElement.id === 'words'");
    browser.type_keys(&format!("esmo 2027{ENTER}"));
    browser.wait_for("//h2[@class='results' and contains(., ' of 310 conferences')]");
    browser.wait_for_js("the reader stays in the field", "return document.activeElement.id === 'words'");
    end_demo(browser, server);
}
