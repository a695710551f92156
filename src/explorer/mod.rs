//! The explorer: a page at `/` that shows the records of a license. It sends plain requests under `/v1`, with the key
//! that the user pastes. The server treats it like any other caller.
//!
//! There is no build step: [`scripts`] joins the scripts when the program starts. `app.js` is the last one, which draws the
//! page. `model/` contains modules without DOM: the copy of the records,
//! search, facets, ranges, deadlines and files. `copies.js` keeps the copies of the current key. `views/` renders, with
//! the shared parts in `parts.js`. `api.js` sends requests and builds curl lines. `session.js` stores the key in the
//! tab, `shortlist.js` the reader's lists. `keep.js` stores both and the copies on the computer, and `worker.js` opens
//! the page without a network. `filters.js` and `regions.js` are generated from the server's tables. [`Demo`] has the
//! data for a demo's page.
//!
//! # How the page works
//!
//! The page loads an export, follows the feed, and answers every question from this copy. It sends plain requests to
//! `/v1`. `model/` holds the copy, search, facets, deadlines and files; these scripts use neither the page nor the
//! network, so Node can test them. `model/question.js` reads and writes the address of a view, which holds all of its
//! filters; `model/select.js` answers it in one pass over the index. `views/` draws: `list.js` the list, `record.js`
//! one record or a few side by side, `files.js` the files and the print of a list, `lists.js` the reader's lists.
//! `shortlist.js` keeps the lists in the tab, and with the key on the computer. In a demo the page also reads keys and edits from `/demo.json`.
//!
//! If the reader says so, `keep.js` stores the key and the copies in IndexedDB. Records are rows of 256 ids each
//! (`model/kept.js`), so a change writes few of them. Each write is one transaction. It first compares the stored key
//! with its own, so a tab cannot write back what another tab has forgotten, and no copy gets under another key. Each
//! write leaves a new revision. A tab that finds a revision that it did not read or write itself leaves the rows
//! alone. If nobody has written for three minutes, it writes all of them. No row is older than the token that is
//! stored with it, and the feed repeats changes. So whichever tab writes, the copy becomes current from its token. The
//! notes of old values in the `ChangeLog` (`model/changes.js`) are stored in the same transaction. Each key has a database
//! of its own, with its lists. *Forget* clears the rows, deletes the databases, and tells other tabs by a
//! `BroadcastChannel`. The service worker (`worker.js`) has the
//! page's own files, and no response under `/v1`. It uses them only if the server does not respond. So they never hide
//! a newer page or another program at the address. A worker that has its files only after *forget* finds no database,
//! and removes them and itself.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;

use crate::model::Dataset;

pub mod scripts;

/// The page's `Content-Security-Policy`: only files of this server, no inline scripts or styles, no forms.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                                           img-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
                                           frame-ancestors 'none'";

/// The path of the demo's licenses and edits. It exists only in a demo.
pub const DEMO_PATH: &str = "/demo.json";

/// The path to which the page posts when its reader forgets this computer.
pub const FORGET_PATH: &str = "/forget";

/// The path of the service worker. A worker serves the files of its own folder and below.
const WORKER_PATH: &str = "/worker.js";

/// The path of the scripts, joined.
const SCRIPT_PATH: &str = "/explorer/app.js";

/// The paths of the files that are generated.
const GENERATED: [&str; 3] = ["/", STYLE_PATH, SCRIPT_PATH];

/// The path of the style of the page.
const STYLE_PATH: &str = "/explorer/style.css";

const PAGE: &str = include_str!("page.html");
const ICON: &[u8] = include_bytes!("favicon.svg");
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The other files that the page loads, by path.
const ASSETS: [(&str, &str, &[u8]); 2] = [("/favicon.ico", SVG, ICON), ("/favicon.svg", SVG, ICON)];

/// Finds the content type and the bytes of the file at a path. `in_demo`: the page loads [`DEMO_PATH`]. `contact` is the
/// URL of the operator.
pub fn find(path: &str, in_demo: bool, contact: Option<&str>) -> Option<(&'static str, Vec<u8>)> {
    if let Some((_, content_type, body)) = ASSETS.iter().find(|(known, ..)| *known == path) {
        return Some((content_type, body.to_vec()));
    }
    let (content_type, text) = match path {
        "/" => (HTML, page(in_demo, contact)),
        STYLE_PATH => (STYLE, style()),
        SCRIPT_PATH => (SCRIPT, scripts::JOINED.clone()),
        WORKER_PATH => (SCRIPT, worker()),
        _ => return None,
    };
    Some((content_type, text.into_bytes()))
}

/// The page at `/`.
fn page(in_demo: bool, contact: Option<&str>) -> String {
    let demo = if in_demo {
        DEMO_PATH.trim_start_matches('/')
    } else {
        ""
    };
    let contact = quick_xml::escape::escape(contact.unwrap_or_default());
    PAGE.replace("{{demo}}", demo)
        .replace("{{contact}}", &contact)
}

/// The style of the page, without comments and without line breaks.
fn style() -> String {
    let lines = concat!(include_str!("../look.css"), include_str!("style.css")).lines();
    lines
        .map(str::trim)
        .filter(|line| !line.starts_with("/*"))
        .collect()
}

/// The service worker, which holds the names and the version of all files that the page loads.
fn worker() -> String {
    let assets = ASSETS.iter().map(|(path, ..)| *path);
    let paths: Vec<&str> = assets.chain(GENERATED).collect();
    let mut version = DefaultHasher::new();
    for path in &paths {
        find(path, false, None).hash(&mut version);
    }
    let files: Vec<&str> = paths
        .iter()
        .map(|path| path.trim_start_matches('/'))
        .collect();
    let version = format!("{:016x}", version.finish());
    format!(
        "const VERSION = {}, FILES = {};\n{}",
        json!(version),
        json!(files),
        include_str!("worker.js")
    )
}

/// The maximum number of edits. A page that misses more continues with the newest ones.
const MAX_EDITS: usize = 50;

/// The licenses and the latest edits of a demo.
pub struct Demo {
    licenses: Vec<DemoLicense>,
    curating: bool,
    edits: Mutex<VecDeque<DemoEdit>>,
}

/// A license of a demo.
#[derive(Serialize)]
#[allow(missing_docs, reason = "the names explain the fields")]
pub struct DemoLicense {
    pub name: &'static str,
    /// A description of the records that it shows.
    pub shows: String,
    pub key: String,
}

/// A curator's edit.
#[derive(Debug, Serialize)]
#[allow(missing_docs, reason = "the names explain the fields")]
pub struct DemoEdit {
    /// The number of the edit, from 1.
    pub number: u64,
    /// The time of the commit, formatted as in the API.
    pub at: String,
    pub words: String,
    pub dataset: Dataset,
    pub ids: Vec<u64>,
}

impl std::fmt::Debug for Demo {
    /// Omits the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Demo").finish_non_exhaustive()
    }
}

impl Demo {
    /// Creates a demo without edits. `curating`: edits will follow.
    pub fn new(licenses: Vec<DemoLicense>, curating: bool) -> Demo {
        Demo {
            licenses,
            curating,
            edits: Mutex::default(),
        }
    }

    /// Adds an edit. Its commit must be visible already.
    pub fn add_edit(&self, edit: DemoEdit) {
        let mut edits = self.edits.lock();
        if edits.len() == MAX_EDITS {
            edits.pop_front();
        }
        edits.push_back(edit);
    }

    /// The licenses and the edits, oldest first, as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let edits = self.edits.lock();
        json!({ "licenses": self.licenses, "curating": self.curating, "edits": *edits })
            .to_string()
            .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::Value;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// The maximum size of all files in bytes, each compressed.
    const MAX_BYTES: usize = 82 << 10;

    #[test]
    fn the_latest_edits_are_kept_and_keys_are_not_logged() {
        let license = DemoLicense {
            name: "demo",
            shows: "everything".to_owned(),
            key: "mfk_secret".to_owned(),
        };
        let demo = Demo::new(vec![license], true);
        for number in 1..=60 {
            let words = format!("edit {number}");
            demo.add_edit(DemoEdit {
                number,
                at: "2026-03-15T09:30:00Z".to_owned(),
                words,
                dataset: Dataset::Conferences,
                ids: vec![number],
            });
        }
        let json: Value = serde_json::from_slice(&demo.to_json()).unwrap();
        let edits = json["edits"].as_array().unwrap();
        assert_eq!(edits.len(), 50);
        assert_eq!(edits[0]["number"], 11);
        assert_eq!(edits[49]["ids"][0], 60);
        assert_eq!(json["licenses"][0]["key"], "mfk_secret");
        assert_eq!(edits[0]["dataset"], "conferences");
        assert!(!format!("{demo:?}").contains("mfk_"));
    }

    #[test]
    fn the_explorer_is_within_its_size_limit() {
        // The icon is one file with two names.
        let assets = ASSETS.iter().skip(1).map(|(path, ..)| *path);
        let paths = assets.chain(GENERATED).chain([WORKER_PATH]);
        let compressed = |path| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(&find(path, true, None).unwrap().1).unwrap();
            gzip.finish().unwrap().len()
        };
        let bytes: usize = paths.map(compressed).sum();
        assert!(bytes <= MAX_BYTES, "{bytes} bytes");
    }

    #[test]
    fn the_worker_has_each_file_of_the_page() {
        let script = String::from_utf8(find(WORKER_PATH, false, None).unwrap().1).unwrap();
        let files = script
            .split_once("FILES = ")
            .unwrap()
            .1
            .split_once(";\n")
            .unwrap()
            .0;
        let files: Vec<String> = serde_json::from_str(files).unwrap();
        assert!(
            files
                .iter()
                .all(|file| find(&format!("/{file}"), false, None).is_some()),
            "{files:?}"
        );
        let count = ASSETS.len() + GENERATED.len();
        assert!(files.len() == count, "{files:?}");
        assert!(files.contains(&String::new()), "{files:?}");
        assert!(
            files.iter().all(|file| !file.starts_with("v1")),
            "{files:?}"
        );
    }

    #[test]
    fn the_page_and_its_style_load_files_of_this_server_alone() {
        for mark in ["href=\"", "src=\""] {
            for rest in PAGE.split(mark).skip(1) {
                let path = format!("/{}", rest.split('"').next().unwrap());
                assert!(
                    path == "/docs" || find(&path, false, None).is_some(),
                    "{path}"
                );
            }
        }
        for text in [PAGE, &style()] {
            for forbidden in ["://", "style=\"", "@import", "url("] {
                assert!(!text.contains(forbidden), "{forbidden}");
            }
        }
    }
}
