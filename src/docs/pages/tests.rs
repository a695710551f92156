//! Tests of the pages, as a browser receives them.

use std::collections::BTreeSet;

use super::*;
use crate::contract::{CONTRACT, Code};
use crate::docs::{fields, find_page};
use crate::model::DateStatus;

const PUBLIC_URL: &str = "https://feed.example.org";

fn all(public_url: &str) -> Vec<String> {
    let mut pages = vec![
        reference(&CONTRACT, public_url, None),
        error_index(&CONTRACT, None),
        not_found("/a/b\"><script>", None),
    ];
    pages.extend(
        CONTRACT
            .codes
            .iter()
            .map(|info| error(&CONTRACT, info, public_url, None)),
    );
    pages
}

#[test]
fn pages_load_only_one_script() {
    for page in all(PUBLIC_URL) {
        let scripts: Vec<&str> = page
            .split("<script")
            .skip(1)
            .filter_map(|rest| rest.split_once('>'))
            .map(|(tag, _)| tag)
            .collect();
        assert_eq!(scripts.len(), 1, "{page}");
        let path = scripts[0]
            .strip_prefix(" src=\"")
            .and_then(|rest| rest.strip_suffix("docs/page.js\" defer"));
        assert!(
            path.unwrap()
                .split("../")
                .all(|rest| rest.is_empty() || rest == "./"),
            "{}",
            scripts[0]
        );
        assert!(page.contains(" defer></script>"), "the element is empty");
        let page = page.replacen("<script src=", "", 1);
        for forbidden in words![
            "<script" "<img" "<iframe" "<object" "@import" "url(" "@font-face" " src=" "javascript:"
            " onclick"
        ] {
            assert!(!page.contains(forbidden), "{forbidden} in\n{page}");
        }
        // The only `<link>` is the icon.
        assert!(page.matches("<link").count() == 1, "{page}");
        assert!(page.contains("favicon.svg\">"), "{page}");
    }
}

#[test]
fn elements_are_closed_in_order() {
    for page in all(PUBLIC_URL) {
        let mut open: Vec<&str> = Vec::new();
        for tag in page
            .split('<')
            .skip(1)
            .filter_map(|rest| rest.split_once('>'))
            .map(|(tag, _)| tag)
        {
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
fn every_placeholder_of_the_template_is_filled() {
    let page = reference(&CONTRACT, PUBLIC_URL, None);
    for place in include_str!("reference.html").split("{{").skip(1) {
        let (name, _) = place.split_once("}}").unwrap();
        assert!(!page.contains(&format!("{{{{{name}}}}}")), "{name}");
    }
    assert!(page.contains("https://feed.example.org/v1/conferences?year=2026&amp;country=Germany"));
    assert!(
        page.contains(
            "python3 follow.py &#39;https://feed.example.org&#39;"
                .replace("&#39;", "'")
                .as_str()
        )
    );
    for text in [
        "&#34;id&#34;: 4711,",
        "&#34;impact_factor&#34;: 37.6,",
        "{&#34;id&#34;:4685,&#34;deleted&#34;:true,",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn every_link_of_the_docs_has_a_target() {
    let mut pages = vec![("/docs".to_owned(), reference(&CONTRACT, PUBLIC_URL, None))];
    pages.push(("/docs/errors".to_owned(), error_index(&CONTRACT, None)));
    for info in CONTRACT.codes {
        pages.push((
            format!("/docs/errors/{}", info.name),
            error(&CONTRACT, info, PUBLIC_URL, None),
        ));
    }
    pages.extend(
        ["/x", "/x/", "/x/y/z", "//x"].map(|path| (path.to_owned(), not_found(path, None))),
    );
    for (path, page) in pages {
        let ids = page.split(" id=\"").skip(1);
        let ids: BTreeSet<&str> = ids.filter_map(|rest| rest.split('"').next()).collect();
        let targets = page.split(" href=\"");
        let targets = targets.chain(page.split(" src=\"").skip(1)).skip(1);
        for target in targets.filter_map(|rest| rest.split('"').next()) {
            match target.strip_prefix('#') {
                Some(id) => assert!(ids.contains(id), "{target} in {path}"),
                None => {
                    let found = followed(&path, target);
                    // The explorer serves the start page and the icon.
                    let is_explorer = found == "/" || found == "/favicon.svg";
                    assert!(
                        is_explorer || find_page(&CONTRACT, &found, PUBLIC_URL, None).is_some(),
                        "{target} in {path}"
                    )
                }
            }
        }
    }
}

/// The target of a relative link.
fn followed(path: &str, target: &str) -> String {
    let base = url::Url::parse("https://feed.example.org").unwrap();
    let page = url::Url::parse(&format!("{}{path}", base.as_str().trim_end_matches('/'))).unwrap();
    page.join(target).unwrap().path().to_owned()
}

#[test]
fn every_field_parameter_and_code_is_on_the_reference_page() {
    let page = reference(&CONTRACT, PUBLIC_URL, None);
    let conference = fields::record_fields::<ConferenceFields>();
    let journal = fields::record_fields::<JournalFields>();
    for field in conference.iter().chain(&journal) {
        assert!(
            page.contains(&format!(
                "<td data-label=\"Field\"><code>{}</code></td>",
                field.name
            )),
            "{}",
            field.name
        );
    }
    for status in DateStatus::ALL {
        assert!(
            page.contains(&format!(
                "<td data-label=\"Value\"><code>{status}</code></td>"
            )),
            "{status}"
        );
    }
    for info in CONTRACT.codes {
        assert!(
            page.contains(&format!("href=\"docs/errors/{}\"", info.name)),
            "{}",
            info.name
        );
    }
    for parameter in CONTRACT
        .endpoints
        .iter()
        .flat_map(|endpoint| endpoint.all_parameters())
    {
        assert!(
            page.contains(&format!(
                "<td data-label=\"Parameter\"><code>{}</code>",
                parameter.name
            )),
            "{}",
            parameter.name
        );
    }
}

#[test]
fn operator_settings_are_escaped() {
    for page in all("https://\"><script>alert('x')</script>") {
        assert!(!page.contains("<script>"), "{page}");
    }
}

#[test]
fn every_code_is_in_the_index_and_on_its_page() {
    let index = error_index(&CONTRACT, None);
    for info in CONTRACT.codes {
        assert!(
            index.contains(&format!("href=\"errors/{}\"", info.name)),
            "{}",
            info.name
        );
        let page = error(&CONTRACT, info, PUBLIC_URL, None);
        assert!(
            page.contains(info.name) && page.contains(info.status.as_str()),
            "{}",
            info.name
        );
    }
}

#[test]
fn an_error_page_shows_a_problem() {
    let page = error(&CONTRACT, Code::ResyncRequired.info(), PUBLIC_URL, None);
    for text in [
        "410 Gone",
        "&#34;status&#34;: 410",
        "https://feed.example.org/docs/errors/resync_required",
    ] {
        assert!(page.contains(text), "{text} is missing in\n{page}");
    }
}
