//! The copy on this computer, and its removal.

use std::path::Path;

use medfeed::model::time::now;
use serde_json::{Value, json};

use super::chromium::{Browser, find_axe, wait_until};
use super::explorer::{conferences, expect_total};
use super::{forget, in_own_menu, paste_key};
use crate::process::site::{Server, Site};

const COUNT: u64 = 130;

/// A site with conferences and a journal, and its server.
pub(super) fn serve() -> (Site, Server) {
    let site = Site::new();
    site.import("conferences.jsonl", conferences(COUNT, 1));
    site.import(
        "journals.jsonl",
        r#"{"id": 5, "name": "Journal of Five", "impact_factor": 5}"#,
    );
    site.license("all", "--dataset conferences --dataset journals");
    let server = site.serve();
    (site, server)
}

/// Opens a view of the page in a browser with the profile of a reader. `None` where there is no browser.
pub(super) fn open(profile: &Path, server: &Server, view: &str) -> Option<Browser> {
    let browser = Browser::start_with_profile(Some(profile))?;
    browser.go(&format!("http://{}/{view}", server.address));
    Some(browser)
}

/// Enters a key, keeps it on this computer, and waits until the copy of the present dataset is kept.
pub(super) fn keep(browser: &Browser, key: &str, dataset: &str) {
    browser.wait_for("//label[contains(., 'Keep the key and the records on this computer')]/input");
    browser.js("const box = document.querySelectorAll('label.check input')[1]; if (!box.checked) box.click()");
    paste_key(browser, key);
    wait_for_head(browser, dataset, "head");
}

/// Runs a script on the kept rows of the first key: `rows` is the store, `done` gets the result.
pub(super) fn in_rows(browser: &Browser, script: &str) -> Value {
    in_rows_of(browser, "medfeed /", script)
}

/// Runs a script on the rows of a database.
pub(super) fn in_rows_of(browser: &Browser, database: &str, script: &str) -> Value {
    browser.js_async(&format!(
        "const done = arguments[0], request = indexedDB.open('{database}'); request.onerror = () => done(null); \
         request.onupgradeneeded = () => request.transaction.abort(); \
         request.onsuccess = () => {{ \
             const db = request.result, transaction = db.transaction('rows', 'readwrite'), rows = transaction.objectStore('rows'); \
             let result = null; db.onversionchange = () => db.close(); \
             transaction.oncomplete = () => {{ db.close(); done(result); }}; transaction.onabort = () => {{ db.close(); done(null); }}; \
             const read = (request, use) => {{ request.onsuccess = () => {{ result = use(request.result); }}; }}; {script} }};"
    ))
}

/// Waits until the head of a kept copy fits a condition.
pub(super) fn wait_for_head(browser: &Browser, dataset: &str, condition: &str) {
    wait_until(condition, || {
        let script =
            format!("read(rows.get(['{dataset}', 'head']), head => Boolean({condition}));");
        in_rows(browser, &script).as_bool().filter(|fits| *fits)
    });
}

/// Makes the copies look as if they had been written so many days ago.
pub(super) fn set_back(browser: &Browser, days: u32) {
    in_rows(
        browser,
        &format!(
            "for (const name of ['conferences', 'journals']) read(rows.get([name, 'head']), head => {{ \
                 if (head) rows.put({{...head, at: head.at - {days} * 86400000}}, [name, 'head']); }});"
        ),
    );
}

/// Nothing that the page stored is left in the browser, not even its empty database. A worker without files may be
/// left.
pub(super) fn expect_nothing_left(browser: &Browser) {
    let script = "const done = arguments[0]; Promise.all([indexedDB.databases(), caches.keys()])\
        .then(([databases, names]) => done([databases, names, {...localStorage}, {...sessionStorage}, document.cookie, location.href.includes('mfk_')]))";
    let expected = json!([[], [], {}, {}, "", false]);
    expect("nothing is left", browser, script, &expected);
}

/// The page has no worker.
fn expect_no_worker(browser: &Browser) {
    let script = "const done = arguments[0]; navigator.serviceWorker.getRegistrations().then(workers => done(workers.map(worker => worker.scope)))";
    expect("no worker is left", browser, script, &json!([]));
}

/// Waits until a script returns a value.
fn expect(what: &str, browser: &Browser, script: &str, expected: &Value) {
    let mut last = Value::Null;
    wait_until(what, || {
        let found = browser.js_async(script);
        if found != last {
            eprintln!("{what}: {found}");
            last = found;
        }
        (last == *expected).then_some(())
    });
}

/// Whether the page has requested an export since it was opened, once it has requested anything of the API.
pub(super) fn asked_for_export(browser: &Browser) -> bool {
    let script = "const names = performance.getEntriesByType('resource').map(({name}) => name); return names.some(name => name.includes('/v1/')) && names";
    let names = browser.wait_for_js("a request", script);
    names.to_string().contains("/exports/")
}

/// axe finds nothing here.
pub(super) fn check_accessibility(browser: &Browser, place: &str) {
    match find_axe() {
        Some(axe) => browser.check_accessibility(&axe, place),
        None => eprintln!("{place}: MEDFEED_AXE does not name axe.min.js"),
    }
}

#[test]
fn a_kept_copy_opens_without_a_key_and_without_a_network() {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let open = |view| open(profile.path(), &server, view);
    let Some(browser) = open("") else { return };
    browser.wait_for("//p[@id='who' and contains(., 'Anyone who uses this account')]");
    check_accessibility(&browser, "the form");
    let key = site.key("all", &[]).1;
    keep(&browser, &key, "conferences");
    expect_total(&browser, "130 conferences");
    browser.view("#/journals");
    wait_for_head(&browser, "journals", "head");

    // A second tab needs neither a key nor an export.
    browser.new_tab();
    browser.go(&format!("http://{}/", server.address));
    expect_total(&browser, "130 conferences");
    browser.wait_for("//p[contains(@class, 'standing') and contains(., 'Current')]");
    assert!(!asked_for_export(&browser));
    browser.click("//button[starts-with(@aria-label, 'Star Conference 3 ')]");
    browser.wait_for("//button[.='Only starred (1)']");
    set_back(&browser, 1);
    drop(browser);

    // The next day needs neither too. Changes of the night have their old values.
    let due = |days: i64| now().plus_s(days * 86_400).date();
    site.import(
        "conferences.jsonl",
        format!(
            r#"{{"id": 7, "abstract_due_date": "{}", "abstract_due_date_status": "estimated"}}"#,
            due(30)
        ),
    );
    site.import("conferences.jsonl", r#"{"id": 8, "deleted": true}"#);
    site.import("journals.jsonl", r#"{"id": 5, "impact_factor": 6.5}"#);
    let browser = open("").unwrap();
    expect_total(&browser, "129 conferences");
    browser.wait_for("//button[.='Only starred (1)']");
    browser.click("//nav//a[span[@title='2 changes since your last visit']]");
    browser.wait_for("//li[.//a[contains(., 'Conference 7')] and .//dt[.='Abstracts due'] and .//ins and .//span[.='estimated'] and .//span[.='in check']]");
    browser.wait_for("//li[contains(., 'Conference 8') and contains(., 'removed')]");
    check_accessibility(&browser, "what changed");
    wait_for_head(&browser, "conferences", "head.count === 129");
    // While the page is open, a date moves.
    site.import(
        "conferences.jsonl",
        format!(
            r#"{{"id": 7, "abstract_due_date": "{}", "abstract_due_date_status": "confirmed"}}"#,
            now().plus_s(44 * 86_400).date()
        ),
    );
    browser.wait_for("//li[contains(., 'Conference 7') and .//span[.='confirmed']]");
    browser.click("//button[.='7 days']");
    // The site is younger than a day. The page has old values only of later changes.
    browser.wait_for("//h2[contains(., '130 changes since')]");
    browser.wait_for("//li[contains(., 'Conference 9 ') and .//span[.='updated']]");
    browser.view("#/changes/journals");
    browser.wait_for("//li[contains(., 'Journal of Five') and .//dt[.='Impact factor'] and .//del[contains(., '5.0')] and .//ins[contains(., '6.5')]]");
    assert!(!asked_for_export(&browser));
    wait_for_head(&browser, "conferences", "head.count === 129");
    let what = "the worker is there";
    browser.wait_for_js(what, "return navigator.serviceWorker.controller !== null");
    let files = browser.js_async("const done = arguments[0]; caches.keys().then(names => caches.open(names[0])).then(cache => cache.keys()).then(keys => done(keys.map(({url}) => url)))");
    let files = files.as_array().unwrap();
    assert!(
        files.len() > 3
            && !files
                .iter()
                .any(|url| url.as_str().unwrap().contains("/v1")),
        "{files:?}"
    );
    browser.expect_quiet_console(&[]);
    drop(browser);

    // Without a server the page opens all the same, and shows the age of the records.
    let address = server.address;
    server.stop();
    let browser = Browser::start_with_profile(Some(profile.path())).unwrap();
    browser.go(&format!("http://{address}/"));
    expect_total(&browser, "129 conferences");
    browser.wait_for(
        "//p[contains(@class, 'standing') and contains(., 'last known records (as of ')]",
    );
    check_accessibility(&browser, "without a network");
    browser.view("#/changes/conferences");
    browser.wait_for("//li[contains(., 'Conference 7') and .//dt[.='Abstracts due']]");
    // The copy is forgotten without a server, too.
    forget(&browser, "Forget this computer and lists");
    browser.wait_for("//input[@id='key']");
    expect_nothing_left(&browser);
}

#[test]
fn forgetting_leaves_nothing_in_any_tab() {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let Some(browser) = open(profile.path(), &server, "") else {
        return;
    };
    expect_nothing_left(&browser);
    // A worker that is installed after the reader has clicked *Forget*.
    let late = "const done = arguments[0]; navigator.serviceWorker.register('/worker.js')\
        .then(({installing}) => { installing.onstatechange = () => done(installing.state); })";
    assert!(browser.js_async(late).is_string());
    expect_nothing_left(&browser);
    expect_no_worker(&browser);
    let key = site.key("all", &[]).1;
    // The reader decides to keep the records after entering the key.
    paste_key(&browser, &key);
    expect_total(&browser, "130 conferences");
    expect_nothing_left(&browser);
    browser.click("//nav//a[starts-with(., 'Changes')]");
    browser.click("//button[.='30 days']");
    browser.wait_for(
        "//p[contains(., 'is new, or changed before the page was opened, or before the newest 4,000 changes.')]",
    );
    check_accessibility(&browser, "what changed, without a copy");
    // Another tab has the same key, and stars of its own.
    let first = browser.tab();
    let other = browser.new_tab();
    browser.go(&format!("http://{}/", server.address));
    paste_key(&browser, &key);
    let star = |id: u64| {
        browser.click(&format!(
            "//button[starts-with(@aria-label, 'Star Conference {id} ')]"
        ))
    };
    star(3);
    browser.wait_for("//button[.='Only starred (1)']");
    browser.switch_to(&first);
    browser.click("//button[.='Keep the key and the records on this computer']");
    let what = "the focus is not lost";
    browser.wait_for_js(what, "return document.activeElement.tagName === 'H1'");
    wait_for_head(&browser, "conferences", "head");
    browser.view("#/conferences");
    star(2);
    star(5);
    browser.wait_for("//button[.='Only starred (2)']");
    // It takes no stars until it keeps the key too. Then all of its own are there.
    browser.switch_to(&other);
    browser.wait_for("//button[.='Only starred (1)']");
    browser.view("#/changes/conferences");
    browser.click("//button[.='Keep the key and the records on this computer']");
    browser.view("#/conferences");
    browser.wait_for("//button[.='Only starred (3)']");
    browser.switch_to(&first);
    browser.wait_for("//button[.='Only starred (3)']");
    let second = browser.new_tab();
    browser.go(&format!("http://{}/", server.address));
    expect_total(&browser, "130 conferences");
    // Other values of the page go, too.
    let values =
        "rows.put([7, 8], ['value', 'other']); read(rows.get(['value', 'other']), value => value);";
    assert_eq!(in_rows(&browser, values), json!([7, 8]));
    browser.js("sessionStorage.setItem('medfeed-shortlist', '[1]')");
    // This tab is about to write a change when the other one forgets the key.
    browser.js("const wait = setTimeout; window.setTimeout = (run, ms) => ms === 500 ? void (window.write = run) : wait(run, ms)");
    site.import("conferences.jsonl", r#"{"id": 7, "venue": "Hall 7"}"#);
    browser.wait_for_js("a change to write", "return !!window.write");
    browser.switch_to(&first);
    browser.js("sessionStorage.setItem('medfeed-shortlist', '[1]')");
    forget(&browser, "Forget this computer and lists");
    browser.wait_for("//input[@id='key']");
    expect_nothing_left(&browser);
    browser.switch_to(&other);
    browser.wait_for("//p[@id='key-error' and contains(., 'Another window has removed this key')]");
    expect_nothing_left(&browser);
    browser.switch_to(&second);
    browser.wait_for("//p[@id='key-error' and contains(., 'Another window has removed this key')]");
    browser.js("window.write()");
    expect_nothing_left(&browser);
    browser.js("location.reload()");
    browser.wait_for("//input[@id='key']");
    expect_nothing_left(&browser);
    expect_no_worker(&browser);
    // The worker of the first tab's page stays, without its files. They return with the key.
    browser.switch_to(&first);
    keep(&browser, &key, "conferences");
    let has_files =
        "const done = arguments[0]; caches.keys().then(names => done(names.length === 1))";
    wait_until("the page's files are there", || {
        browser.js_async(has_files).as_bool().filter(|has| *has)
    });
    browser.expect_quiet_console(&[]);
}

#[test]
fn an_ended_key_leaves_nothing_in_the_browser() {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let open = |view| open(profile.path(), &server, view);
    let Some(browser) = open("") else { return };
    // While the page is open, and in another tab.
    let (id, key) = site.key("all", &[]);
    keep(&browser, &key, "conferences");
    let first = browser.tab();
    browser.new_tab();
    browser.go(&format!("http://{}/#/journals", server.address));
    expect_total(&browser, "1 journal");
    site.json(["key", "revoke", id.as_str()]);
    let refused = "//p[@id='key-error' and (contains(., 'no longer accepted') or contains(., 'removed this key'))]";
    browser.wait_for(refused);
    expect_nothing_left(&browser);
    browser.switch_to(&first);
    browser.wait_for(refused);
    expect_nothing_left(&browser);

    // While the page is closed: revoked, and expired.
    for end in ["revoked", "expired"] {
        browser.js("location.reload()");
        browser.wait_for("//input[@id='key']");
        let (id, key) = site.key("all", &[]);
        keep(&browser, &key, "conferences");
        if end == "expired" {
            // The program makes no expired key, so one replaces the kept key.
            let expired = json!(site.expired_key("all").1);
            in_rows(&browser, &format!("rows.put({expired}, ['key']);"));
        }
        browser.go("about:blank");
        site.json(["key", "revoke", id.as_str()]);
        browser.go(&format!("http://{}/", server.address));
        browser.wait_for(&format!(
            "//p[@id='key-error' and contains(., 'no longer accepted') and contains(., '{end}')]"
        ));
        expect_nothing_left(&browser);
    }
    browser.expect_quiet_console(&[401]);
}

#[test]
fn a_dataset_that_left_the_license_is_removed_from_this_computer() {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let open = |view| open(profile.path(), &server, view);
    let Some(browser) = open("#/journals") else {
        return;
    };
    let key = site.key("all", &[]).1;
    keep(&browser, &key, "journals");
    expect_total(&browser, "1 journal");
    browser.view("#/conferences");
    wait_for_head(&browser, "conferences", "head");
    browser.go("about:blank");
    site.license("all", "--dataset conferences");
    // The reader need not open its view.
    browser.go(&format!("http://{}/#/conferences", server.address));
    wait_for_head(&browser, "journals", "!head");
    browser.view("#/journals");
    browser.wait_for("//p[.='This license has no journals.']");
    let keys = "read(rows.getAllKeys(), keys => keys.map(([name]) => name));";
    wait_until("no row of journals", || {
        let keys = in_rows(&browser, keys).to_string();
        (!keys.contains("journals") && keys.contains("conferences") && keys.contains("key"))
            .then_some(())
    });
    // It returns with the license.
    browser.go("about:blank");
    site.license("all", "--dataset conferences --dataset journals");
    browser.go(&format!("http://{}/#/journals", server.address));
    expect_total(&browser, "1 journal");
    wait_for_head(&browser, "journals", "head");
    browser.expect_quiet_console(&[403]);
}

#[test]
fn unusable_kept_rows_are_loaded_again() {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let Some(browser) = open(profile.path(), &server, "") else {
        return;
    };
    let key = site.key("all", &[]).1;
    keep(&browser, &key, "conferences");
    wait_for_head(&browser, "journals", "head");
    let again = || {
        browser.go("about:blank");
        browser.go(&format!("http://{}/", server.address));
        expect_total(&browser, "130 conferences");
        browser.wait_for("//p[contains(@class, 'standing') and contains(., 'Current')]");
    };
    again();
    assert!(!asked_for_export(&browser));
    // `tests/explorer/cases/kept.js` tests all other damages.
    for (damage, script) in cases![
        "a chunk that is missing", "rows.delete(['conferences', 'records', 0]);";
        "a token of another server",
            "read(rows.get(['conferences', 'head']), head => rows.put({...head, token: 'x'}, ['conferences', 'head']));";
    ] {
        in_rows(&browser, script);
        again();
        assert!(asked_for_export(&browser), "{damage}");
        let condition = "head && head.format === 1 && head.count === 130 && head.token !== 'x'";
        wait_for_head(&browser, "conferences", condition);
        again();
        assert!(!asked_for_export(&browser), "{damage}: it is kept again");
    }

    // No key, or no rows at all: the form, and nothing is left.
    for script in ["rows.put({}, ['key']);", "rows.clear();"] {
        in_rows(&browser, script);
        browser.go("about:blank");
        browser.go(&format!("http://{}/", server.address));
        browser.wait_for("//input[@id='key']");
        expect_nothing_left(&browser);
        keep(&browser, &key, "conferences");
    }
    // A database of a newer page.
    forget(&browser, "Forget this computer");
    browser.wait_for("//input[@id='key']");
    browser.js_async(
        "const done = arguments[0], request = indexedDB.open('medfeed /', 9); request.onsuccess = () => { request.result.close(); done(); }",
    );
    browser.js("location.reload()");
    expect_nothing_left(&browser);

    // The server has other data: the token is lost, and the copy is compared with a new export.
    browser.wait_for("//input[@id='key']");
    keep(&browser, &key, "conferences");
    site.license(
        "all",
        "--dataset conferences --dataset journals --year 2095..2096",
    );
    expect_total(&browser, "66 conferences");
    wait_for_head(&browser, "conferences", "head.count === 66");
    browser.expect_quiet_console(&[400, 410]);
}

#[test]
fn a_browser_without_storage_shows_a_message() {
    let (site, server) = serve();
    let Some(browser) = Browser::start() else {
        return;
    };
    let key = site.key("all", &[]).1;
    // A private window, and a page that was loaded over an insecure connection.
    browser.before_each_page(
        "Object.defineProperty(window, 'indexedDB', {value: window.wanted = {open() { throw new Error('denied'); }}});",
    );
    browser.go(&format!("http://{}/", server.address));
    browser.click("//label[contains(., 'Keep the key and the records on this computer')]/input");
    paste_key(&browser, &key);
    expect_total(&browser, "130 conferences");
    browser.wait_for("//p[@role='alert' and contains(., 'keeps nothing on this computer')]");
    in_own_menu(&browser, "Forget key");
    browser.before_each_page("Object.defineProperty(window, 'isSecureContext', {value: false});");
    browser.js("location.reload()");
    browser.wait_for("//label[contains(., 'Keep the key in this tab')]");
    assert_eq!(
        browser.js("return document.querySelectorAll('#who').length"),
        0
    );

    // A full disk: the key is kept, and no copy.
    drop(browser);
    let browser = Browser::start().unwrap();
    browser.before_each_page(
        "const put = IDBObjectStore.prototype.put; IDBObjectStore.prototype.put = function (value, key) { \
             if (key[1] === 'records') throw new DOMException('full', 'QuotaExceededError'); return put.call(this, value, key); };",
    );
    browser.go(&format!("http://{}/#/changes/conferences", server.address));
    browser.click("//label[contains(., 'Keep the key and the records on this computer')]/input");
    paste_key(&browser, &key);
    browser.wait_for(
        "//p[@role='alert' and contains(., 'A copy of the conferences could not be stored')]",
    );
    check_accessibility(&browser, "no room");
    wait_for_head(&browser, "conferences", "!head");
    browser.view("#/conferences");
    expect_total(&browser, "130 conferences");
    browser.js("location.reload()");
    expect_total(&browser, "130 conferences");
    assert!(asked_for_export(&browser));
    forget(&browser, "Forget this computer");
    browser.wait_for("//input[@id='key']");
    expect_nothing_left(&browser);
    browser.expect_quiet_console(&[]);
}

/// The files of a folder that contain a text, as it is or in UTF-16.
fn files_with(folder: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap_or_default();
            let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
            if kind.is_file() && (has(text.as_bytes()) || has(&wide)) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn a_forgotten_computer_has_no_byte_of_the_key_in_the_browsers_files() {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let Some(browser) = open(profile.path(), &server, "") else {
        return;
    };
    let key = site.key("all", &[]).1;
    keep(&browser, &key, "conferences");
    expect_total(&browser, "130 conferences");
    // Words that are typed are in no history, and no file.
    browser.fill("//input[@id='words']", "zolgensomab");
    browser.wait_for("//p[contains(., 'No record has zolgensomab')]");
    browser.click("//div[contains(@class, 'segments')]//button[.='Months']");
    browser.wait_for_js("a step", "return location.hash.includes('view=deadlines')");
    drop(browser);
    assert!(!files_with(profile.path(), &key).is_empty());
    let expected = Vec::<std::path::PathBuf>::new();
    assert_eq!(files_with(profile.path(), "zolgensomab"), expected);

    let browser = open(profile.path(), &server, "").unwrap();
    expect_total(&browser, "130 conferences");
    forget(&browser, "Forget this computer");
    browser.wait_for("//input[@id='key']");
    expect_nothing_left(&browser);
    browser.expect_quiet_console(&[]);
    drop(browser);
    for text in [key.as_str(), "Conference 77"] {
        let expected = Vec::<std::path::PathBuf>::new();
        assert_eq!(files_with(profile.path(), text), expected, "{text}");
    }
}

#[test]
fn a_connection_that_the_browser_closes_is_opened_again() {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let Some(browser) = open(profile.path(), &server, "") else {
        return;
    };
    browser.before_each_page(
        "const begin = IDBDatabase.prototype.transaction; \
         IDBDatabase.prototype.transaction = function (...rest) { window.connection = this; return begin.apply(this, rest); }",
    );
    browser.js("location.reload()");
    keep(&browser, &site.key("all", &[]).1, "conferences");
    expect_total(&browser, "130 conferences");
    browser.js("window.connection.close()");
    browser.click("//button[starts-with(@aria-label, 'Star Conference 3 ')]");
    browser.wait_for("//button[.='Only starred (1)']");
    browser.js("location.reload()");
    expect_total(&browser, "130 conferences");
    browser.wait_for("//button[.='Only starred (1)']");
    // Where it cannot be opened again, the page says so.
    browser.js("indexedDB.open = () => { throw new DOMException('', 'UnknownError'); }; window.connection.close()");
    browser.click("//button[starts-with(@aria-label, 'Star Conference 5 ')]");
    browser.wait_for("//p[@role='alert' and contains(., 'keeps nothing more on this computer')]");
    browser.expect_quiet_console(&[]);
}

#[test]
fn an_old_copy_is_shown_once_the_service_has_answered() {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let Some(browser) = open(profile.path(), &server, "") else {
        return;
    };
    keep(&browser, &site.key("all", &[]).1, "conferences");
    expect_total(&browser, "130 conferences");
    wait_for_head(&browser, "journals", "head");
    set_back(&browser, 31);
    drop(browser);
    site.import(
        "conferences.jsonl",
        r#"{"id": 7, "name": "Congress of Seven"}"#,
    );
    // The service gives no answer.
    let browser = Browser::start_with_profile(Some(profile.path())).unwrap();
    browser.before_each_page(
        "const ask = fetch; window.fetch = (url, ...rest) => String(url).includes('/v1/') ? Promise.reject(new TypeError()) : ask(url, ...rest)",
    );
    browser.go(&format!("http://{}/", server.address));
    browser.wait_for("//p[contains(@class, 'offline')]");
    let text = browser.js("return document.body.innerText");
    assert!(
        !text.to_string().contains("Conference 3"),
        "records of an old copy: {text}"
    );
    drop(browser);
    let browser = open(profile.path(), &server, "#/changes/conferences").unwrap();
    // What changed since is known all the same.
    browser
        .wait_for("//li[contains(., 'Congress of Seven') and .//del[contains(., 'Conference 7')]]");
    browser.expect_quiet_console(&[]);
}

#[test]
fn a_record_that_left_the_license_keeps_only_its_name() {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let Some(browser) = open(profile.path(), &server, "") else {
        return;
    };
    keep(&browser, &site.key("all", &[]).1, "conferences");
    expect_total(&browser, "130 conferences");
    site.license("all", "--dataset conferences --year 1990");
    wait_for_head(&browser, "conferences", "head.count === 0");
    let script = "read(rows.getAll(IDBKeyRange.bound(['conferences', 'notes'], ['conferences', 'notes', []])), texts => texts.flatMap(text => JSON.parse(text)));";
    let notes = in_rows(&browser, script);
    let notes = notes.as_array().unwrap();
    assert_eq!(notes.len(), 130);
    for note in notes {
        let mut names: Vec<&String> = note["old"].as_object().unwrap().keys().collect();
        names.sort();
        assert_eq!(names, ["abbv", "id", "isGone", "year"], "{note}");
    }
    browser.view("#/changes/conferences");
    browser.wait_for("//li[contains(., 'It was removed or left the license.')]");
    browser.expect_quiet_console(&[403]);
}

/// Writes a note on a conference of the current list.
pub(super) fn write_note(browser: &Browser, name: &str, note: &str) {
    browser.view("#/lists");
    browser.fill(&format!("//textarea[@aria-label='Note on {name}']"), note);
    browser.js("document.activeElement.blur()");
}

/// The note on a conference of the current list.
pub(super) fn expect_note(browser: &Browser, name: &str, note: &str) {
    browser.view("#/lists");
    browser.wait_for(&format!("//textarea[@aria-label='Note on {name}']"));
    browser.wait_for_js(
        "the note",
        &format!(
            "return [...document.querySelectorAll('textarea')].some(({{value}}) => value === {})",
            json!(note)
        ),
    );
}

#[test]
fn lists_have_names_notes_and_an_order_and_are_shared() {
    let (site, server) = serve();
    let profile = tempfile::tempdir().unwrap();
    let Some(browser) = open(profile.path(), &server, "") else {
        return;
    };
    browser.download_to(site.folder());
    paste_key(&browser, &site.key("all", &[]).1);
    expect_total(&browser, "130 conferences");
    for id in [2, 3] {
        browser.click(&format!(
            "//button[starts-with(@aria-label, 'Star Conference {id} ')]"
        ));
    }
    browser.wait_for("//button[.='Only starred (2)']");
    write_note(&browser, "Conference 3 2097", "first author: Jane");
    // A driver clears a field by a change of its own, which takes the first name back.
    for (id, text) in [("list-name", "Product A"), ("list-owner", "Ann")] {
        let script = "const field = document.getElementById(arguments[0]); field.value = arguments[1]; field.dispatchEvent(new Event('change', {bubbles: true}))";
        browser.js_with(script, &[json!(id), json!(text)]);
    }
    browser.click("//button[@aria-label='Move Conference 3 2097 up']");
    browser.wait_for("//ol/li[1]//a[.='Conference 3 2097']");
    browser.wait_for("//select[@id='list']/option[.='Product A']");
    check_accessibility(&browser, "lists");
    // A second list takes the stars from now on.
    browser.click("//button[.='New list']");
    browser.view("#/conferences");
    browser.click("//button[starts-with(@aria-label, 'Star Conference 5 ')]");
    browser.wait_for("//button[.='Only starred (1)']");
    browser.view("#/lists");
    browser.click("//select[@id='list']/option[.='Product A']");
    browser.wait_for("//ol/li[2]//a[.='Conference 2 2096']");
    // The file has the notes.
    browser.click("//button[.='Save as a file']");
    let file = site.path("Product-A.json");
    wait_until("the file", || {
        std::fs::read_to_string(&file)
            .ok()
            .filter(|text| text.contains("first author: Jane") && text.contains("Ann"))
    });
    // Days, the deadline and the place stand with each record.
    site.import(
        "conferences.jsonl",
        r#"{"id": 2, "start_date": "2096-06-01", "end_date": "2096-06-03", "abstract_due_date": "2020-03-10", "abstract_due_date_status": "confirmed"}"#,
    );
    browser.wait_for("//li[contains(., '3 Jun 2096 · was due Tue 10 Mar 2020')]");
    // A colleague of another license sees how many records it shows, and takes the list.
    site.license("small", "--dataset conferences --year 2096");
    browser.view("#/list?name=Product+A&conferences=3,2");
    browser.wait_for("//p[.='Your license shows 2 of 2 records.']");
    forget(&browser, "Forget key and lists");
    browser.wait_for("//input[@id='key']");
    paste_key(&browser, &site.key("small", &[]).1);
    browser.wait_for("//p[.='Your license shows 1 of 2 records.']");
    check_accessibility(&browser, "a shared list");
    browser.click("//button[.='Add to my lists']");
    browser.wait_for("//p[contains(., '1 of 2 records is not in this license, or removed.')]");
    browser.wait_for("//ol/li//a[.='Conference 2 2096']");
    // More lists than there may be: a new one, a file and a shared one say so.
    let full = "//p[@role='alert' and contains(., 'There are 50 lists')]";
    browser.js("for (let at = 0; at < 49; at++) [...document.querySelectorAll('button')].find(button => button.textContent === 'New list').click()");
    browser.click("//button[.='New list']");
    browser.wait_for(full);
    // The key is kept nowhere. So the view is left and opened again, without its message.
    browser.view("#/conferences");
    browser.wait_for("//h1[.='Conferences']");
    browser.view("#/lists");
    browser.wait_for("//button[.='Open a file']");
    let script = "const files = new DataTransfer(); files.items.add(new File([arguments[0]], 'list.json')); \
         const field = document.querySelector('input[type=file]'); field.files = files.files; field.dispatchEvent(new Event('change', {bubbles: true}))";
    browser.js_with(script, &[json!(std::fs::read_to_string(&file).unwrap())]);
    browser.wait_for(full);
    browser.view("#/list?name=Product+B&conferences=2");
    browser.click("//button[.='Add to my lists']");
    browser.wait_for(full);
    browser.expect_quiet_console(&[403]);
}
