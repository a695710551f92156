//! The pages as a reader's browser takes them.

use std::collections::BTreeSet;

use super::*;
use crate::contract::{CONTRACT, Code};
use crate::docs::{fields, find_page};

const PUBLIC_URL: &str = "https://feed.example.org";

fn all(public_url: &str) -> Vec<String> {
    let mut pages = vec![reference(&CONTRACT, public_url), error_index(&CONTRACT)];
    pages.extend(CONTRACT.codes.iter().map(|info| error(&CONTRACT, info, public_url)));
    pages
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    for page in all(PUBLIC_URL) {
        for forbidden in
            ["<script", "<img", "<iframe", "<object", "@import", "url(", "@font-face", " src=", "javascript:"]
        {
            assert!(!page.contains(forbidden), "{forbidden} in\n{page}");
        }
        // The one `<link>` keeps browsers from asking for an icon.
        assert_eq!(page.matches("<link").count(), page.matches("<link rel=\"icon\" href=\"data:,\">").count());
    }
}

#[test]
fn elements_are_closed_in_order() {
    for page in all(PUBLIC_URL) {
        let mut open: Vec<&str> = Vec::new();
        for tag in page.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag) {
            let name = tag.split([' ', '\n']).next().unwrap();
            match name.strip_prefix('/') {
                Some(closed) => assert_eq!(open.pop(), Some(closed), "{page}"),
                None if ["!doctype", "meta", "link"].contains(&name) => {}
                None => open.push(name),
            }
        }
        assert_eq!(open, Vec::<&str>::new());
    }
}

#[test]
fn every_place_of_the_template_is_filled() {
    let page = reference(&CONTRACT, PUBLIC_URL);
    assert!(!page.contains("{{") && !page.contains("}}"));
    assert!(page.contains("https://feed.example.org/v1/conferences?year=2026&amp;country=Germany"));
    assert!(page.contains("BASE = &quot;https://feed.example.org/v1&quot;"));
}

#[test]
fn every_link_leads_somewhere() {
    let mut paths = vec!["/docs".to_owned(), "/docs/errors".to_owned()];
    paths.extend(CONTRACT.codes.iter().map(|info| format!("/docs/errors/{}", info.name)));
    for path in paths {
        let page = String::from_utf8(find_page(&CONTRACT, &path, PUBLIC_URL).unwrap().body).unwrap();
        let ids: BTreeSet<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        for target in page.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            match target.strip_prefix('#') {
                Some(id) => assert!(ids.contains(id), "{target} in {path}"),
                None => {
                    assert!(find_page(&CONTRACT, &followed(&path, target), PUBLIC_URL).is_some(), "{target} in {path}")
                }
            }
        }
    }
}

/// Where a relative link leads.
fn followed(path: &str, target: &str) -> String {
    let mut steps: Vec<&str> = path.split('/').collect();
    steps.pop();
    for step in target.split('/') {
        match step {
            ".." => drop(steps.pop()),
            _ => steps.push(step),
        }
    }
    steps.join("/")
}

#[test]
fn every_field_parameter_and_code_is_on_the_reference_page() {
    let page = reference(&CONTRACT, PUBLIC_URL);
    let conference = fields::record_fields::<ConferenceFields>();
    let journal = fields::record_fields::<JournalFields>();
    for field in conference.iter().chain(&journal) {
        assert!(page.contains(&format!("<td><code>{}</code></td>", field.name)), "{}", field.name);
    }
    for status in DateStatus::ALL {
        assert!(page.contains(&format!("<td><code>{status}</code></td>")), "{status}");
    }
    for info in CONTRACT.codes {
        assert!(page.contains(&format!("href=\"docs/errors/{}\"", info.name)), "{}", info.name);
    }
    for parameter in CONTRACT.endpoints.iter().flat_map(|endpoint| endpoint.all_parameters()) {
        assert!(page.contains(&format!("<td><code>{}</code>", parameter.name)), "{}", parameter.name);
    }
}

#[test]
fn what_the_operator_gives_is_escaped() {
    for page in all("https://\"><script>alert('x')</script>") {
        assert!(!page.contains("<script"), "{page}");
    }
}

#[test]
fn an_error_page_shows_a_problem() {
    let page = error(&CONTRACT, Code::ResyncRequired.info(), PUBLIC_URL);
    for text in ["410 Gone", "&quot;status&quot;: 410", "https://feed.example.org/docs/errors/resync_required"] {
        assert!(page.contains(text), "{text} is missing in\n{page}");
    }
}
