//! The explorer: a page at `/` that shows the records of a license. It sends plain requests under `/v1`, with the key
//! that the user pastes. The server treats it like any other caller.
//!
//! There is no build step. `app.js` is the entry point. `model/` contains modules without DOM: the copy of the records,
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
use serde_json::{Value, json};

use crate::model::value::ValueKind;
use crate::model::{Dataset, country};

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

/// The paths of the files that are generated.
const GENERATED: [&str; 4] = [
    "/",
    STYLE_PATH,
    "/explorer/filters.js",
    "/explorer/regions.js",
];

/// The path of the style of the page.
const STYLE_PATH: &str = "/explorer/style.css";

const PAGE: &str = include_str!("page.html");
const ICON: &[u8] = include_bytes!("favicon.svg");
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! scripts {
    ($($file:literal),* $(,)?) => {
        &[$((concat!("/explorer/", $file), include_str!($file))),*]
    };
}

const SCRIPTS: &[(&str, &str)] = scripts![
    "api.js",
    "app.js",
    "copies.js",
    "keep.js",
    "model/calendar.js",
    "model/changes.js",
    "model/cities.js",
    "model/copy.js",
    "model/csv.js",
    "model/deadlines.js",
    "model/facets.js",
    "model/files.js",
    "model/fold.js",
    "model/follower.js",
    "model/json.js",
    "model/kept.js",
    "model/lists.js",
    "model/load.js",
    "model/order.js",
    "model/question.js",
    "model/ranges.js",
    "model/search.js",
    "model/select.js",
    "model/suggest.js",
    "model/words.js",
    "model/xlsx.js",
    "parts.js",
    "session.js",
    "shortlist.js",
    "views/asked.js",
    "views/changes.js",
    "views/columns.js",
    "views/demo.js",
    "views/developers.js",
    "views/files.js",
    "views/filters.js",
    "views/header.js",
    "views/held.js",
    "views/help.js",
    "views/key.js",
    "views/list.js",
    "views/lists.js",
    "views/record.js",
    "views/shortlist.js",
    "views/undated.js",
    "views/way.js",
    "views/year.js",
];

/// The other files that the page loads, by path.
const ASSETS: [(&str, &str, &[u8]); 3] = [
    ("/favicon.ico", SVG, ICON),
    ("/favicon.svg", SVG, ICON),
    (
        "/explorer/preact.js",
        SCRIPT,
        include_bytes!("vendor/preact.js"),
    ),
];

/// A file of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names explain the fields")]
pub struct Asset {
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

/// Finds the file at a path. `in_demo`: the page loads [`DEMO_PATH`].
pub fn find(path: &str, in_demo: bool) -> Option<Asset> {
    if let Some((_, content_type, body)) = ASSETS.iter().find(|(known, ..)| *known == path) {
        return Some(Asset {
            content_type,
            body: body.to_vec(),
        });
    }
    let (content_type, text) = match path {
        "/" => return Some(page(in_demo, None)),
        STYLE_PATH => (STYLE, style()),
        "/explorer/filters.js" => (SCRIPT, filters()),
        "/explorer/regions.js" => (SCRIPT, regions()),
        WORKER_PATH => (SCRIPT, worker()),
        _ => (
            SCRIPT,
            served(SCRIPTS.iter().find(|(known, _)| *known == path)?.1),
        ),
    };
    Some(Asset {
        content_type,
        body: text.into_bytes(),
    })
}

/// The page at `/`. `contact` is the URL of the operator.
pub fn page(in_demo: bool, contact: Option<&str>) -> Asset {
    let demo = if in_demo {
        DEMO_PATH.trim_start_matches('/')
    } else {
        ""
    };
    let contact = quick_xml::escape::escape(contact.unwrap_or_default());
    let text = PAGE
        .replace("{{demo}}", demo)
        .replace("{{contact}}", &contact);
    Asset {
        content_type: HTML,
        body: text.into_bytes(),
    }
}

/// A script without indentation and without comments on lines of their own, which are a sixth of what the page loads.
/// Its lines keep their numbers.
fn served(script: &str) -> String {
    let mut text = String::with_capacity(script.len());
    let mut is_comment = false;
    for line in script.lines().map(str::trim_start) {
        is_comment |= line.starts_with("/**");
        if !is_comment && !line.starts_with("//") {
            text.push_str(line);
        }
        is_comment &= !line.ends_with("*/");
        text.push('\n');
    }
    text
}

/// The style of the page, without comments and without line breaks.
fn style() -> String {
    let lines = concat!(include_str!("../look.css"), include_str!("style.css")).lines();
    lines
        .map(str::trim)
        .filter(|line| !line.starts_with("/*"))
        .collect()
}

/// A script with the filter boxes of each dataset: `q`, and the filters of its fields.
fn filters() -> String {
    let boxes = |dataset: Dataset| -> Vec<Value> {
        let table = dataset.table();
        let searched: Vec<&str> = table
            .fields
            .iter()
            .filter_map(|field| field.uses.searched)
            .collect();
        let q = json!({"name": "q", "label": label(&searched.join(" or ")), "example": "oncol"});
        let filters = table.filters.iter().map(|filter| {
            let field = &table.fields[filter.field];
            let example = if field.kind == ValueKind::Date { "2026-01-01" } else { "" };
            json!({"name": filter.name, "label": label(&filter.name), "example": example, "field": field.name})
        });
        std::iter::once(q).chain(filters).collect()
    };
    let boxes: Value = Dataset::ALL
        .into_iter()
        .map(|dataset| (dataset.as_str(), boxes(dataset)))
        .collect();
    format!("export const FILTERS = {boxes};\n")
}

/// A script with the countries of each region and their folded aliases: `Spain,espana|Sweden,sverige`. It omits long
/// aliases and those that are prefixes of the name.
fn regions() -> String {
    const MAX_ALIAS: usize = 21;
    let words = |country: &&'static str| {
        let is_listed =
            |alias: &&str| alias.len() <= MAX_ALIAS && !country.to_lowercase().starts_with(*alias);
        let aliases = country::aliases(country).iter().copied().filter(is_listed);
        std::iter::once(*country)
            .chain(aliases)
            .collect::<Vec<_>>()
            .join(",")
    };
    let regions = country::REGIONS.into_iter().map(|(region, countries)| {
        let countries: Vec<String> = countries.iter().map(words).collect();
        (region, countries.join("|"))
    });
    format!("export const REGIONS = {};\n", regions.collect::<Value>())
}

/// The service worker, which holds the names and the version of all files that the page loads.
fn worker() -> String {
    let assets = ASSETS.iter().map(|(path, ..)| *path);
    let paths: Vec<&str> = SCRIPTS
        .iter()
        .map(|(path, _)| *path)
        .chain(assets)
        .chain(GENERATED)
        .collect();
    let mut version = DefaultHasher::new();
    for path in &paths {
        find(path, false).map(|asset| asset.body).hash(&mut version);
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

/// The label of a parameter: `Start date from` for `start_date_from`.
fn label(name: &str) -> String {
    let words = name.replace('_', " ");
    words[..1].to_uppercase() + &words[1..]
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
#[derive(Clone, Serialize)]
#[allow(missing_docs, reason = "the names explain the fields")]
pub struct DemoLicense {
    pub name: &'static str,
    /// A description of the records that it shows.
    pub shows: String,
    pub key: String,
}

/// A curator's edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// The maximum size of all files in bytes, each compressed. Views that are seldom opened load their scripts when they
    /// are, so the page itself is smaller.
    const MAX_BYTES: usize = 96 << 10;

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
        assert_eq!(
            (edits.len(), &edits[0]["number"], &edits[49]["ids"][0]),
            (50, &11.into(), &60.into())
        );
        assert_eq!(
            (&json["licenses"][0]["key"], &edits[0]["dataset"]),
            (&"mfk_secret".into(), &"conferences".into())
        );
        assert!(!format!("{demo:?}").contains("mfk_"));
    }

    #[test]
    fn the_explorer_is_within_its_size_limit() {
        // The icon is one file with two names.
        let assets = ASSETS.iter().skip(1).map(|(path, ..)| *path);
        let paths = SCRIPTS
            .iter()
            .map(|(path, _)| *path)
            .chain(assets)
            .chain(GENERATED)
            .chain([WORKER_PATH]);
        let compressed = |path| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(&find(path, true).unwrap().body).unwrap();
            gzip.finish().unwrap().len()
        };
        let bytes: usize = paths.map(compressed).sum();
        assert!(bytes <= MAX_BYTES, "{bytes} bytes");
    }

    #[test]
    fn scripts_are_served_without_comments_of_their_own_lines() {
        let cases = [
            ("// a\n\tb; // c\n", "\nb; // c\n"),
            ("/** a */\n/**\n * b\n\t\t*/\nc", "\n\n\n\nc\n"),
            ("\tx('//');\n\n\ty", "x('//');\n\ny\n"),
        ];
        for (script, expected) in cases {
            assert_eq!(served(script), expected, "{script}");
        }
    }

    #[test]
    fn the_worker_has_each_file_of_the_page() {
        let script = String::from_utf8(find(WORKER_PATH, false).unwrap().body).unwrap();
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
                .all(|file| find(&format!("/{file}"), false).is_some()),
            "{files:?}"
        );
        let count = SCRIPTS.len() + ASSETS.len() + GENERATED.len();
        assert!(
            files.len() == count && files.contains(&String::new()),
            "{files:?}"
        );
        assert!(
            files.iter().all(|file| !file.starts_with("v1")),
            "{files:?}"
        );
    }

    #[test]
    fn the_page_and_the_model_allow_fractions_in_the_same_numbers() {
        let fields = || {
            Dataset::ALL
                .into_iter()
                .flat_map(|dataset| &dataset.table().fields)
        };
        let last =
            |field: &'static crate::model::field::Field| field.name.rsplit('.').next().unwrap();
        let mut names = Vec::new();
        for name in fields()
            .filter(|field| field.kind == ValueKind::Number)
            .map(last)
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let list = format!("FRACTIONS = ['{}']", names.join("', '"));
        assert!(include_str!("model/json.js").contains(&list), "{list}");
        for field in fields().filter(|field| field.kind != ValueKind::Number) {
            assert!(
                !names
                    .iter()
                    .any(|name: &&str| field.column.ends_with(*name)),
                "{}",
                field.column
            );
        }
    }

    #[test]
    fn regions_hold_every_known_country_and_its_aliases() {
        let script = String::from_utf8(find("/explorer/regions.js", false).unwrap().body).unwrap();
        let mut names = script.split(['"', '|', ',']).collect::<Vec<_>>();
        names.sort_unstable();
        for country in country::COUNTRIES.into_iter().flatten() {
            assert!(names.binary_search(country).is_ok(), "{country}");
        }
        assert!(
            script.contains("|United States,unitedstatesofamerica,us,usa|"),
            "{script}"
        );
        assert!(
            script.contains(r#""Europe":"Albania|Andorra|Austria,osterreich,aut|"#),
            "{script}"
        );
    }

    #[test]
    fn all_files_that_the_page_loads_exist() {
        let mut count = 0;
        let scripts = SCRIPTS
            .iter()
            .map(|(path, text)| (*path, (*text).to_owned()));
        for (path, text) in scripts.chain([
            ("/", PAGE.to_owned()),
            ("/explorer/style.css", include_str!("style.css").to_owned()),
        ]) {
            let folder = path.rsplit_once('/').unwrap().0;
            let loaded = ["href=", "src=", "from "].into_iter().flat_map(|mark| {
                let names = text
                    .split(mark)
                    .skip(1)
                    .map(|rest| rest.trim_start_matches(['"', '\'']));
                names.filter_map(|rest| rest.split(['"', '\'', '>', ' ']).next())
            });
            for name in loaded.filter(|name| {
                name.ends_with(".js") || name.ends_with(".css") || name.ends_with(".svg")
            }) {
                let found = match name.strip_prefix("../") {
                    Some(rest) => format!("{}/{rest}", folder.rsplit_once('/').unwrap().0),
                    None if path.ends_with(".js") && !name.starts_with("./") => format!("/{name}"),
                    None => format!("{folder}/{}", name.trim_start_matches("./")),
                };
                assert!(find(&found, false).is_some(), "{path} names {name}");
                count += 1;
            }
            // The page loads nothing from other servers, and has no inline scripts or styles. Only one file may store
            // the key in the tab, and one may store it on the computer.
            let storing = [
                ("sessionStorage", "session"),
                ("indexedDB", "keep"),
                ("caches.", "keep"),
                ("serviceWorker", "keep"),
            ];
            let never = [
                "http://",
                "https://",
                "localStorage",
                "innerHTML",
                "style=\"",
                "eval(",
            ]
            .map(|text| (text, ""));
            for (forbidden, file) in storing.into_iter().chain(never) {
                // Names of formats, which nothing requests.
                let is_there = text
                    .replace("http://www.w3.org/2000/svg", "")
                    .replace("http://schemas.openxmlformats.org/", "")
                    .contains(forbidden);
                let is_allowed = path == format!("/explorer/{file}.js");
                assert!(!is_there || is_allowed, "{path} holds {forbidden}");
            }
        }
        assert!(count > 15, "only {count} names were found");
    }
}
