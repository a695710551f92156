//! The picture in README.md.

use std::path::Path;

use serde_json::json;

use super::demo::edit_with;
use super::{end_demo, open_demo};

/// The most bytes of the picture.
const MAX_BYTES: usize = 200 << 10;

#[test]
#[ignore = "writes docs/explorer.png"]
fn takes_the_picture_of_two_licenses() {
    let Some((browser, server, _site)) = open_demo("takes_the_picture_of_two_licenses", &[]) else { return };
    browser.set_window(1000, false);
    browser.devtools("Emulation.setScrollbarsHidden", json!({"hidden": true}));
    // An edit that is a change for one license and a tombstone for the other, and the edits before it.
    browser.wait_for(&edit_with("changed", "tombstone"));
    let picture = browser.picture();
    assert!(picture.len() <= MAX_BYTES, "the picture has {} bytes", picture.len());
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/explorer.png"), picture).unwrap();
    end_demo(browser, server);
}
