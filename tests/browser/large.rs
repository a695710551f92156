//! Measures the page with many records.

use serde_json::{Value, json};

use super::explorer::{conferences, expect_total};
use super::{open_page, paste_key};

/// The median, the value that 95 of 100 do not exceed, and the maximum, in milliseconds.
fn summary(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    format!("{:.0} / {:.0} / {:.0} ms", at(50), at(95), at(100))
}

fn times(value: &Value) -> Vec<f64> {
    let times = value.as_array().unwrap();
    times.iter().map(|time| time.as_f64().unwrap()).collect()
}

/// `MEDFEED_CASES` is the number of records, 50,000 unless it is set.
#[test]
#[ignore = "measures the page with 50,000 records: run it alone, with --nocapture"]
fn measures_many_records() {
    let count: u64 = std::env::var("MEDFEED_CASES").map_or(50_000, |count| count.parse().unwrap());
    let total = format!("{},000 conferences", count / 1000);
    let files = [("conferences.jsonl", conferences(count, 1))];
    let Some((browser, site, _server, key)) = open_page(&files) else {
        return;
    };
    let start = std::time::Instant::now();
    paste_key(&browser, &key);
    expect_total(&browser, &total);
    eprintln!("load: {} ms", start.elapsed().as_millis());

    // From a key to the end of its frame.
    let typed = browser.js_async(
        "const done = arguments[0], input = document.getElementById('words'), found = [], frame = () => new Promise(requestAnimationFrame); \
         (async () => { for (const text of ['c', 'co', 'con', 'conf', 'confe', 'confer', 'conference 1', 'conference 12', 'conference 123', 'conference 12', '-conference', 'xyz', '2096', '']) { \
             await frame(); await new Promise(go => setTimeout(go, 50)); const from = performance.now(); input.value = text; input.dispatchEvent(new Event('input', {bubbles: true})); \
             await frame(); await new Promise(go => setTimeout(go)); found.push(performance.now() - from); } done(found); })()",
    );
    eprintln!("a key (median / p95 / most): {}", summary(times(&typed)));

    expect_total(&browser, &total);
    let frames = browser.js_async(
        "const done = arguments[0], found = []; let last = performance.now(); \
         const step = now => { found.push(now - last); last = now; scrollBy(0, 60); found.length < 120 ? requestAnimationFrame(step) : done(found.slice(1)); }; requestAnimationFrame(step)",
    );
    eprintln!(
        "a frame while scrolling (median / p95 / most): {}",
        summary(times(&frames))
    );

    let heap = |when: &str| {
        browser.devtools("HeapProfiler.collectGarbage", json!({}));
        let used = browser.devtools("Runtime.getHeapUsage", json!({}));
        eprintln!(
            "heap {when}: {:.1} MB",
            used["usedSize"].as_f64().unwrap_or(0.0) / 1e6
        );
    };
    heap("after loading");
    for edit in 0..9 {
        let rows: String = (1..=100)
            .map(|id| {
                let id = edit * 100 + id;
                format!("{{\"id\": {id}, \"venue\": \"Hall {edit}\"}}\n")
            })
            .collect();
        site.import("conferences.jsonl", rows);
    }
    browser.view("#/conferences/900");
    browser.wait_for("//*[contains(text(), 'Hall 8')]");
    heap("after 900 edits");
    browser.expect_quiet_console(&[]);
}
