//! The pictures in README.md.

use std::path::Path;

use serde_json::json;

use super::chromium::Browser;
use super::demo::edit_with;
use super::{end_demo, open_demo};

/// The maximum size of a picture in bytes.
const MAX_BYTES: usize = 150 << 10;

/// Writes a picture of the window to a file in `docs`.
fn write(browser: &Browser, name: &str) {
    let picture = browser.picture();
    assert!(
        picture.len() <= MAX_BYTES,
        "{name} has {} bytes",
        picture.len()
    );
    std::fs::write(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs")
            .join(name),
        picture,
    )
    .unwrap();
}

#[test]
#[ignore = "writes docs/explorer.png"]
fn takes_the_picture_of_two_licenses() {
    let Some((browser, server, _site)) = open_demo(&[]) else {
        return;
    };
    browser.set_window(1000, false);
    browser.devtools("Emulation.setScrollbarsHidden", json!({"hidden": true}));
    // An edit that is a change for one license and a tombstone for the other, and the edits before it.
    browser.wait_for(&edit_with("changed", "tombstone"));
    write(&browser, "explorer.png");
    end_demo(browser, server);
}

#[test]
#[ignore = "writes docs/planner.png"]
fn takes_the_picture_of_a_planners_list() {
    let options = ["--quiet-data"];
    let Some((browser, server, _site)) = open_demo(&options) else {
        return;
    };
    browser.set_window(1000, false);
    browser.devtools("Emulation.setScrollbarsHidden", json!({"hidden": true}));
    // By name: the rows are the same on every day.
    browser.view("#/conferences?area=Oncology&area=Hematology&year=2027&sort=name");
    for row in [1, 3] {
        browser.click(&format!("(//button[@class='star'])[{row}]"));
    }
    browser.wait_for("//a[.='Compare side by side']");
    browser.js("document.activeElement.blur(); scrollTo(0, 0)");
    write(&browser, "planner.png");
    end_demo(browser, server);
}
