//! The explorer in a real browser, where there is one: headless Chromium, served by the real program.
//!
//! `chromium` drives it. There is one module for each use of the page:
//! - `curl_lines`: lines that are pasted into a shell.
//! - `demo`: the demo's keys.
//! - `explorer`: the reader's own key.
//! - `forms`: phones and desktops, light and dark, keyboard and screen reader.
//! - `kept`: the copy on the computer.
//! - `keys`: several keys on one computer.
//! - `large`: times with 50,000 records, or as many as `MEDFEED_CASES` says.
//! - `look`: the places of things, paper, and other colors.
//! - `picture`: the README's pictures.
//! - `planner`: the shortlist, records side by side, the way back, and paper.
//! - `redirects`: a server that redirects the page's requests.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "skipped tests print a message"
)]

mod chromium;
mod curl_lines;
mod demo;
mod explorer;
mod forms;
mod kept;
mod keys;
mod large;
mod look;
mod picture;
mod planner;
mod redirects;

use serde_json::json;

use self::chromium::Browser;
use crate::process::site::{Server, Site};

/// A demo, and its page in a browser.
fn open_demo(options: &[&str]) -> Option<(Browser, Server, Site)> {
    let browser = Browser::start()?;
    let site = Site::new();
    let arguments = [&["demo", "--listen", "127.0.0.1:0"], options].concat();
    let server = site.start(site.command(arguments));
    browser.go(&format!("http://{}/", server.address));
    browser.wait_for("//h1[.='Two licenses, side by side']");
    Some((browser, server, site))
}

/// Serves files to a key of all records, and opens the page in a browser. Its downloads go to the folder of the site.
fn open_page(files: &[(&str, String)]) -> Option<(Browser, Site, Server, String)> {
    let browser = Browser::start()?;
    let site = Site::new();
    for (name, content) in files {
        site.import(name, content);
    }
    let key = site.open_key();
    let server = site.serve();
    browser.download_to(site.folder());
    browser.go(&format!("http://{}/", server.address));
    Some((browser, site, server, key))
}

/// Enters a key.
fn paste_key(browser: &Browser, key: &str) {
    browser.fill("//input[@id='key']", key);
    browser.click("//button[.='Explore']");
    // The pointer would rest on a row, and rows do not move under it.
    move_pointer(browser, 1, 1);
}

/// Moves the pointer to a place in the window.
fn move_pointer(browser: &Browser, x: i64, y: i64) {
    let command = "Input.dispatchMouseEvent";
    browser.devtools(command, json!({"type": "mouseMoved", "x": x, "y": y}));
}

/// Opens the filters of a list, if they are closed.
fn open_filters(browser: &Browser) {
    browser.wait_for("//button[starts-with(., 'Filter')]");
    browser.js("[...document.querySelectorAll('.toolbar > button[aria-expanded=false]')].forEach(button => button.click())");
    browser.wait_for("//section[@aria-label='Filters']");
}

/// Opens the menu of a list's files, and waits for the button whose name begins with a text. Returns its path.
fn in_export_menu(browser: &Browser, name: &str) -> String {
    let button = format!("//button[starts-with(., '{name}')]");
    browser.wait_for("//button[.='Export']");
    browser.js("[...document.querySelectorAll('.toolbar .menu > button[aria-expanded=false]')].forEach(button => button.click())");
    browser.wait_for(&button);
    button
}

/// Clicks a button in the menu of a list's files.
fn export(browser: &Browser, name: &str) {
    browser.click(&in_export_menu(browser, name));
    move_pointer(browser, 1, 1);
}

/// Opens the reader's own menu, and waits for a button in it. Returns its path.
fn in_own_menu(browser: &Browser, name: &str) -> String {
    let button = format!("//button[.='{name}']");
    browser.wait_for("//header//div[@class='menu']/button");
    browser.js("[...document.querySelectorAll('header .menu > button[aria-expanded=false]')].forEach(button => button.click())");
    browser.wait_for(&button);
    button
}

/// Answers the page's questions before it removes something, as a reader would.
fn answer_questions(browser: &Browser, yes: bool) {
    browser.js(
        "window.confirm = text => { window.question = text; return arguments[0]; }"
            .replace("arguments[0]", &yes.to_string())
            .as_str(),
    );
}

/// Clicks the button that forgets the key, and says yes.
fn forget(browser: &Browser, words: &str) {
    answer_questions(browser, true);
    browser.click(&in_own_menu(browser, words));
}

/// Ends a demo as its user does, so that it removes its temporary folder.
fn end_demo(browser: Browser, server: Server) {
    drop(browser);
    server.stop();
}
