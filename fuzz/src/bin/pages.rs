//! Pages of the feed as `medfeed pull` reads them, applied to a copy in SQLite and to one in a folder. A copy holds the
//! entries of the accepted pages, and its derived tables and files fit its records.
//!
//! The input is pages, separated by empty lines.
#![no_main]

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use medfeed::model::Dataset;
use medfeed::pull::body::ReadLimits;
use medfeed::pull::export::{Entry, FeedPage, MAX_ID};
use medfeed::pull::export::{Announced, Export, Hasher};
use medfeed::pull::location::ServerUrl;
use medfeed::pull::{Events, FolderCopy, PullError, PullTarget, SqliteCopy};
use medfeed_fuzz::seeds;
use serde_json::Value;
use tempfile::TempDir;

/// The most pages of an input.
const MAX_PAGES: usize = 4;

/// The largest number of entries that the contract allows.
const MAX_ENTRIES: usize = 1000;

struct Copies {
    sqlite: SqliteCopy,
    folder: FolderCopy,
    _files: TempDir,
}

/// Ignores all events.
struct Quiet;

impl Events for Quiet {
    fn change(&self, _: Dataset, json: &str) -> Result<(), PullError> {
        assert!(Entry::parse(json).is_ok(), "a change is an entry: {json}");
        Ok(())
    }

    fn note(&self, _: &str) {}
}

thread_local! {
    static COPIES: std::cell::RefCell<Copies> = std::cell::RefCell::new(Copies::new());
}

fuzz_target!(init: seeds::write_and_exit(seeds_of_pages), |input: &[u8]| {
    let mut pages = Vec::new();
    let is_separator = |at: usize| input[at..].starts_with(b"\n\n");
    let mut begin = 0;
    for at in 0..input.len() {
        if is_separator(at) && at >= begin {
            pages.push(&input[begin..at]);
            begin = at + 2;
        }
    }
    pages.push(&input[begin..]);
    let pages: Vec<FeedPage> = pages.into_iter().take(MAX_PAGES).filter_map(read).collect();
    if pages.iter().any(|page| !page.entries.is_empty()) {
        COPIES.with_borrow_mut(|copies| copies.follow(&pages));
    }
});

/// Reads a page, and compares it with its JSON.
fn read(body: &[u8]) -> Option<FeedPage> {
    let page = FeedPage::parse(body, ReadLimits::default().record_bytes).ok()?;
    assert!(
        page.entries.len() <= MAX_ENTRIES && (1..=2048).contains(&page.token.len()),
        "{page:?}"
    );
    let whole: Option<Value> = serde_json::from_slice(body).ok();
    for (at, entry) in page.entries.iter().enumerate() {
        assert!((1..=MAX_ID).contains(&entry.id), "{entry:?}");
        assert!(
            !entry.json.contains(['\n', '\r', '\t']),
            "an entry is one line: {entry:?}"
        );
        assert_eq!(
            Entry::parse(&entry.json).as_ref().ok(),
            Some(entry),
            "an entry is read again"
        );
        // JSON with numbers that no f64 holds is no `Value`.
        let Some(whole) = &whole else { continue };
        let value: Value = serde_json::from_str(&entry.json).expect("a part of JSON is JSON");
        assert_eq!(
            value, whole["data"][at],
            "an entry has the content that was sent"
        );
        assert_eq!(value["id"], entry.id, "{entry:?}");
        assert_eq!(value["deleted"] == true, entry.is_removal, "{entry:?}");
    }
    Some(page)
}

impl Copies {
    fn new() -> Copies {
        let files = tempfile::tempdir().expect("a folder");
        let server: ServerUrl = "https://feed.example.org".parse().expect("a URL");
        let sqlite =
            SqliteCopy::open(files.path().join("copy.sqlite"), &server, false).expect("a copy");
        let folder = FolderCopy::open(&files.path().join("copy"), &server, false).expect("a copy");
        Copies {
            sqlite,
            folder,
            _files: files,
        }
    }

    /// Applies pages to empty copies.
    fn follow(&mut self, pages: &[FeedPage]) {
        let targets: [&mut dyn PullTarget; 2] = [&mut self.sqlite, &mut self.folder];
        // A token selects the dataset.
        let is_journals = pages.iter().any(|page| page.token.starts_with('j'));
        let dataset = if is_journals {
            Dataset::Journals
        } else {
            Dataset::Conferences
        };
        let agree = agree(pages);
        for target in targets {
            Dataset::ALL
                .into_iter()
                .for_each(|dataset| clear(target, dataset));
            let mut records = BTreeMap::new();
            for page in pages {
                let before = target.position(dataset).expect("a position");
                match target.apply(dataset, page, &Quiet) {
                    Ok(()) => {
                        for entry in &page.entries {
                            if entry.is_removal {
                                records.remove(&entry.id);
                            } else {
                                records.insert(entry.id, entry.json.clone());
                            }
                        }
                        let position = target
                            .position(dataset)
                            .expect("a position")
                            .expect("a loaded copy");
                        assert_eq!(
                            (position.token.as_str(), position.records),
                            (&*page.token, records.len() as u64)
                        );
                    }
                    Err(error) => {
                        assert!(!error.to_string().is_empty(), "an error has a message");
                        assert_eq!(
                            target.position(dataset).expect("a position"),
                            before,
                            "the copy is as it was"
                        );
                    }
                }
                let mut hasher = Hasher::default();
                records
                    .values()
                    .for_each(|json| hasher.add(json.as_bytes()));
                assert_eq!(
                    target.digest(dataset).expect("a digest"),
                    hasher.finish(),
                    "the copy has the records"
                );
                let fault = target.find_fault(dataset).expect("the copy is read");
                assert!(fault.is_none() || !agree, "{fault:?}");
            }
        }
    }
}

/// Whether all entries that link to an organization or tag show the same one. A service sends each record again when
/// something that it links to changes.
fn agree(pages: &[FeedPage]) -> bool {
    let mut linked: BTreeMap<(&str, String), Value> = BTreeMap::new();
    let entries = pages.iter().flat_map(|page| &page.entries);
    let values: Vec<Value> = entries
        .map(|entry| serde_json::from_str(&entry.json).unwrap_or_default())
        .collect();
    let items = |kind| {
        values
            .iter()
            .filter_map(move |record| Some((kind, record[kind].as_array()?)))
    };
    let lists = items("organizations").chain(items("tags"));
    let mut all = lists.flat_map(|(kind, list)| {
        list.iter()
            .map(move |item| ((kind, item["id"].to_string()), item))
    });
    all.all(|(key, item)| {
        linked
            .insert(key, item.clone())
            .is_none_or(|other| other == *item)
    })
}

/// Loads an export without records.
fn clear(target: &mut dyn PullTarget, dataset: Dataset) {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(b"").expect("nothing is compressed");
    let bytes = gzip.finish().expect("nothing is compressed");
    let announced = Announced {
        token: "t0".to_owned(),
        records: 0,
        digest: None,
    };
    let mut export =
        Export::new(announced, bytes.as_slice(), &ReadLimits::default()).expect("an export");
    target
        .load(dataset, &mut export, &Quiet)
        .expect("the export is loaded");
}

const JOURNAL: &str = "{\"id\":1,\"name\":\"J\",\"issn_print\":\"0732-183X\",\"impact_factor\":42.1,\"impact_factor_year\":2024,\
    \"h_index\":629,\"publishing\":{\"access\":\"hybrid\",\"apc_usd\":5000,\"embargo_months\":12},\"timelines\":\
    {\"submit_to_first_decision\":{\"min_weeks\":1,\"max_weeks\":2.5}},\"organizations\":[],\"tags\":[]}";

fn seeds_of_pages() -> Vec<Vec<u8>> {
    let page = |data: &str, token: &str| {
        format!("{{\"data\":[{data}],\"has_more\":true,\"next_sync_token\":\"{token}\"}}")
    };
    let fixture = seeds::fixture("conferences.jsonl");
    let lines: Vec<String> = fixture
        .lines()
        .take(3)
        .map(|line| line.replace('}', ",\"updated_at\":\"x\"}"))
        .collect();
    let links = "{\"id\":1,\"name\":\"A\",\"year\":2026,\"therapy_areas\":[\"Oncology\",\"x\"],\
                 \"formats\":{\"oral\":true,\"encore\":null},\"organizations\":[{\"id\":3,\"name\":\"O\",\"abbv\":null}],\
                 \"tags\":[{\"id\":4,\"type\":\"t\",\"name\":\"n\"}],\"updated_at\":\"2026-01-01T00:00:00Z\"}";
    let removal = "{\"id\":1,\"deleted\":true,\"changed_at\":\"2026-01-01T00:00:00Z\"}";
    let pretty =
        "{\n  \"id\": 7,\r\n\t\"name\": \"a \\\" \\\\ \\u0000 \\ud83d\\ude00\",\n\"year\": 1e3 }";
    vec![
        page(&lines[1], "t1").into_bytes(),
        page(&lines.join(","), "t1").into_bytes(),
        format!("{}\n\n{}\n\n{}", page(links, "t1"), page(removal, "t2"), page(links, "t3")).into_bytes(),
        format!("{}\n\n{}", page(pretty, "t1"), page("{\"id\":7,\"deleted\":true}", "t2")).into_bytes(),
        page("{\"id\":9007199254740991},{\"id\":2,\"year\":\"x\",\"formats\":[1],\"tags\":{},\"name\":5}", "t")
            .into_bytes(),
        page(JOURNAL, "j").into_bytes(),
        b"{\"next_sync_token\":\"t\",\"more\":[{}],\"has_more\":false,\"data\":[ ]}".to_vec(),
    ]
}
