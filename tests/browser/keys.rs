//! The keys that one computer keeps: each with copies and lists of its own.

use serde_json::json;
use tempfile::TempDir;

use super::chromium::{Browser, wait_until};
use super::explorer::expect_total;
use super::kept::{
    asked_for_export, check_accessibility, expect_note, expect_nothing_left, in_rows, in_rows_of,
    keep, open, serve, wait_for_head, write_note,
};
use super::{answer_questions, forget, in_own_menu, paste_key};
use crate::process::site::{Server, Site};

/// The page in a browser with a profile of its own, served with 130 conferences. What is dropped last comes first.
fn start() -> Option<(TempDir, Site, Server, Browser)> {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let browser = open(profile.path(), &server, "")?;
    Some((profile, site, server, browser))
}

#[test]
fn a_copy_belongs_to_its_key() {
    let Some((_profile, site, _server, browser)) = start() else {
        return;
    };
    site.license("small", "--dataset conferences --year 2096");
    let (whole, small) = (site.key("all", &[]).1, site.key("small", &[]).1);
    keep(&browser, &whole, "conferences");
    expect_total(&browser, "130 conferences");
    // A tab with a key of its own neither reads nor writes the copy.
    let script = "sessionStorage.setItem('medfeed-key', arguments[0])";
    browser.js_with(script, &[json!(small)]);
    browser.js("location.reload()");
    expect_total(&browser, "33 conferences");
    in_own_menu(&browser, "Forget key");
    assert!(asked_for_export(&browser));
    wait_for_head(&browser, "conferences", "head.count === 130");
    // Another key is kept next to the first one, with rows of its own.
    browser.view("#/changes/conferences");
    browser.click("//button[.='Keep the key and the records on this computer']");
    browser.wait_for("//h1[.='Does this key replace another one?']");
    check_accessibility(&browser, "the question about the key");
    browser.click("//button[.='No, it is for another client']");
    let count = "read(rows.get(['conferences', 'head']), head => head && head.count);";
    wait_until("a copy of its own", || {
        (in_rows_of(&browser, "medfeed / 2", count) == 33).then_some(())
    });
    assert_eq!(in_rows(&browser, count), 130);
    for (database, key) in [("medfeed /", &whole), ("medfeed / 2", &small)] {
        let found = in_rows_of(&browser, database, "read(rows.get(['key']), key => key);");
        assert_eq!(found, json!(key), "{database}");
    }
    // The small license has no journals, and no use for the token of the other one.
    browser.expect_quiet_console(&[403, 410]);
}

#[test]
fn lists_outlive_their_key_and_move_to_the_next_one() {
    let Some((_profile, site, _server, browser)) = start() else {
        return;
    };
    site.license("small", "--dataset conferences --year 2096");
    let (first, key) = site.key("all", &[]);
    keep(&browser, &key, "conferences");
    browser.click("//button[starts-with(@aria-label, 'Star Conference 2 ')]");
    browser.wait_for("//button[.='Only starred (1)']");
    write_note(&browser, "Conference 2 2096", "Jane presents");
    // A key of the same license, while the first one is good: nothing is loaded again.
    let (second, key) = site.key("all", &[]);
    browser.click(&in_own_menu(&browser, "Use another key"));
    paste_key(&browser, &key);
    expect_note(&browser, "Conference 2 2096", "Jane presents");
    wait_until("the new key is kept", || {
        (in_rows(&browser, "read(rows.get(['key']), key => key);") == json!(key)).then_some(())
    });
    site.json(["key", "revoke", first.as_str()]);
    browser.js("location.reload()");
    expect_note(&browser, "Conference 2 2096", "Jane presents");
    assert!(!asked_for_export(&browser));

    // The key ends: key and records go, the lists wait for a key of the same license.
    site.json(["key", "revoke", second.as_str()]);
    browser.wait_for("//p[@id='key-error' and contains(., 'Your lists and notes stay')]");
    let kept = "read(rows.getAllKeys(), keys => keys.map(key => key.join(' ')).join());";
    wait_until("only the lists are kept", || {
        (in_rows(&browser, kept) == "value lists,value tokens,value used").then_some(())
    });
    browser.js("location.reload()");
    browser.wait_for("//button[.='Remove my lists too']");
    let key = site.key("all", &[]).1;
    keep(&browser, &key, "conferences");
    expect_note(&browser, "Conference 2 2096", "Jane presents");

    // A key of another license takes the place of this one if the reader says so.
    let other = site.key("small", &[]).1;
    browser.click(&in_own_menu(&browser, "Use another key"));
    paste_key(&browser, &other);
    browser.click("//button[starts-with(., 'It replaces key …')]");
    expect_note(&browser, "Conference 2 2096", "Jane presents");
    wait_for_head(&browser, "conferences", "head && head.count === 33");
    browser.expect_quiet_console(&[401, 403, 410]);
}

/// Keeps another client's key next to the kept one.
fn add_key(browser: &Browser, key: &str) {
    browser.click(&in_own_menu(browser, "Use another key"));
    paste_key(browser, key);
    browser.click("//button[.='No, it is for another client']");
}

/// Stars a conference, and writes a note on it.
fn star_with_note(browser: &Browser, name: &str, note: &str) {
    browser.view("#/conferences");
    browser.click(&format!(
        "//button[starts-with(@aria-label, 'Star {name}')]"
    ));
    browser.wait_for("//button[.='Only starred (1)']");
    write_note(browser, name, note);
}

/// Opens the page with another kept key, whose name begins with a text.
fn change_to(browser: &Browser, name: &str) {
    browser.view("#/conferences");
    in_own_menu(browser, "Use another key");
    browser.click(&format!(
        "//select[@id='keys']/option[starts-with(., '{name}')]"
    ));
}

/// The page's databases.
fn expect_databases(browser: &Browser, expected: &[&str]) {
    let script = "const done = arguments[0]; indexedDB.databases().then(all => done(all.map(({name}) => name).sort()))";
    wait_until("the databases", || {
        (browser.js_async(script) == json!(expected)).then_some(())
    });
}

#[test]
fn keys_of_two_clients_are_kept_apart() {
    let Some((_profile, site, server, browser)) = start() else {
        return;
    };
    site.license("small", "--dataset conferences --year 2096");
    keep(&browser, &site.key("all", &[]).1, "conferences");
    star_with_note(&browser, "Conference 3 2097", "for the first client");
    // Neither lists nor records mix, and each key has the name that the reader gives it.
    add_key(&browser, &site.key("small", &[]).1);
    browser.view("#/conferences");
    expect_total(&browser, "33 conferences");
    let script = "return !document.querySelector('[aria-pressed=true]')";
    browser.wait_for_js("no stars", script);
    in_own_menu(&browser, "Use another key");
    browser.fill("//input[@id='title']", "Client B");
    browser.click("//h1");
    browser.wait_for("//header//div[@class='menu']/button[.='Client B']");
    star_with_note(&browser, "Conference 2 2096", "for the second client");
    let first = browser.tab();

    // Another tab shows the first key, and loads nothing again.
    browser.new_tab();
    browser.go(&format!("http://{}/", server.address));
    expect_total(&browser, "33 conferences");
    change_to(&browser, "key …");
    expect_total(&browser, "130 conferences");
    assert!(!asked_for_export(&browser));
    expect_note(&browser, "Conference 3 2097", "for the first client");
    in_own_menu(&browser, "Use another key");
    check_accessibility(&browser, "the menu with two keys");
    let second = browser.tab();

    // Each tab stays with its key.
    browser.switch_to(&first);
    browser.js("location.reload()");
    expect_note(&browser, "Conference 2 2096", "for the second client");

    // The page asks before it removes a key with lists, and then removes nothing of the other key.
    answer_questions(&browser, false);
    browser.click(&in_own_menu(&browser, "Remove this key and lists"));
    let question = browser.js("return window.question");
    let text = question.to_string();
    assert!(text.contains("Your lists and notes are removed too"));
    expect_note(&browser, "Conference 2 2096", "for the second client");
    forget(&browser, "Remove this key and lists");
    browser.wait_for("//input[@id='key']");
    expect_databases(&browser, &["medfeed /"]);
    check_accessibility(&browser, "the form with a kept key");
    browser.switch_to(&second);
    browser.js("location.reload()");
    expect_note(&browser, "Conference 3 2097", "for the first client");
    assert!(!asked_for_export(&browser));
    browser.switch_to(&first);
    browser.click("//p[starts-with(., 'On this computer')]/button");
    expect_note(&browser, "Conference 3 2097", "for the first client");

    // A tab in which another license's key is pasted, and not kept, leaves the kept one alone.
    let small = site.key("small", &[]).1;
    browser.click(&in_own_menu(&browser, "Use another key"));
    browser.click("//label[contains(., 'Keep the key and the records on this computer')]/input");
    paste_key(&browser, &small);
    browser.view("#/conferences");
    expect_total(&browser, "33 conferences");
    browser.click("//button[starts-with(@aria-label, 'Star Conference 6 ')]");
    browser.wait_for("//button[.='Only starred (1)']");
    browser.js("location.reload()");
    expect_total(&browser, "130 conferences");
    expect_note(&browser, "Conference 3 2097", "for the first client");
    browser.view("#/conferences");
    browser.wait_for("//button[.='Only starred (1)']");

    // Two keys again, and then none.
    add_key(&browser, &small);
    expect_databases(&browser, &["medfeed /", "medfeed / 2"]);
    in_own_menu(&browser, "Forget this computer");
    forget(&browser, "Forget this computer");
    browser.wait_for("//input[@id='key']");
    expect_nothing_left(&browser);
    browser.switch_to(&second);
    browser.wait_for("//p[@id='key-error' and contains(., 'Another window has removed this key')]");
    expect_nothing_left(&browser);
    browser.expect_quiet_console(&[403, 410]);
}

#[test]
fn a_replaced_key_is_replaced_in_every_tab() {
    let Some((_profile, site, server, browser)) = start() else {
        return;
    };
    let (old, key) = site.key("all", &[]);
    keep(&browser, &key, "conferences");
    let first = browser.tab();
    browser.new_tab();
    browser.go(&format!("http://{}/", server.address));
    expect_total(&browser, "130 conferences");
    let second = browser.tab();
    browser.switch_to(&first);
    browser.click(&in_own_menu(&browser, "Use another key"));
    paste_key(&browser, &site.key("all", &[]).1);
    expect_total(&browser, "130 conferences");
    site.json(["key", "revoke", old.as_str()]);
    // Lists of the other tab are kept, and reach the first one.
    browser.switch_to(&second);
    star_with_note(&browser, "Conference 3 2097", "Jane presents");
    browser.switch_to(&first);
    expect_note(&browser, "Conference 3 2097", "Jane presents");
    browser.js("location.reload()");
    expect_note(&browser, "Conference 3 2097", "Jane presents");
    browser.switch_to(&second);
    browser.js("location.reload()");
    expect_note(&browser, "Conference 3 2097", "Jane presents");
    assert!(!asked_for_export(&browser));
    browser.expect_quiet_console(&[401]);
}

#[test]
fn notes_and_lists_go_only_if_the_reader_says_so() {
    let Some((_profile, site, _server, browser)) = start() else {
        return;
    };
    site.license("small", "--dataset conferences --year 2096");
    paste_key(&browser, &site.key("all", &[]).1);
    expect_total(&browser, "130 conferences");
    let (name, note) = ("Conference 3 2097", "Jane presents");
    star_with_note(&browser, name, note);
    let star = format!("//button[starts-with(@aria-label, 'Star {name}')]");
    let remove = format!("//button[@aria-label='Remove {name}']");
    // Nothing is removed while the answer is no.
    answer_questions(&browser, false);
    for (view, button) in [
        ("#/conferences", star.as_str()),
        ("#/lists", remove.as_str()),
        ("#/lists", "//button[.='Delete this list']"),
    ] {
        browser.view(view);
        browser.js("window.question = null");
        browser.click(button);
        browser.wait_for_js("a question", "return window.question");
        expect_note(&browser, name, note);
    }
    browser.click(&in_own_menu(&browser, "Forget key and lists"));
    expect_note(&browser, name, note);
    // A key of another license, in a tab that keeps nothing on the computer.
    browser.click(&in_own_menu(&browser, "Use another key"));
    paste_key(&browser, &site.key("small", &[]).1);
    browser.wait_for("//h1[.='Is this key for the same client?']");
    check_accessibility(&browser, "the question about the lists");
    browser.click("//button[.='Yes, keep the lists']");
    browser.wait_for("//p[contains(., '1 of 1 record is not in this license, or removed.')]");
    browser.click(&in_own_menu(&browser, "Use another key"));
    paste_key(&browser, &site.key("all", &[]).1);
    browser.click("//button[.='No, remove the lists']");
    browser.wait_for("//p[contains(., 'Nothing is on this list yet')]");

    // A reload loses the key and keeps the lists. They go to a key of the same license without a question.
    browser.view("#/conferences");
    expect_total(&browser, "130 conferences");
    star_with_note(&browser, name, note);
    browser.js("location.reload()");
    paste_key(&browser, &site.key("all", &[]).1);
    expect_note(&browser, name, note);
    browser.js("location.reload()");
    paste_key(&browser, &site.key("small", &[]).1);
    browser.wait_for("//h1[.='Is this key for the same client?']");
    browser.click("//button[.='No, remove the lists']");
    browser.wait_for("//p[contains(., 'Nothing is on this list yet')]");
    browser.expect_quiet_console(&[403, 410]);
}
