//! The cases of the page's model (`tests/explorer/cases`), in the browser.

use serde_json::json;

use super::{end_demo, open_demo};
use crate::explorer::cases_script;

#[test]
fn the_model_passes_its_cases_in_chromium() {
    let Some((browser, server, _site)) = open_demo("the model in Chromium", &["--quiet-data"]) else { return };
    let result = browser.js_async(&cases_script());
    assert_eq!(result["failed"], json!([]));
    assert!(result["passed"].as_u64() >= Some(40), "{result}");
    end_demo(browser, server);
}
