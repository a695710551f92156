//! The explorer: a page at `/` that shows what a license sees, by plain requests under `/v1` with the key that its reader
//! pastes. The server treats it as any other caller.
//!
//! It has no build step. `app.js` is where it begins; `api.js` makes requests and curl lines, `parts.js` holds what views
//! share, `views.js`, `feed.js` and `demo.js` are the views. `filters.js` is made from the model's tables. [`demo`] is what the page is told in a demo, and only there.

pub mod demo;

pub use demo::Demo;

use serde_json::{Value, json};

use crate::model::Dataset;
use crate::model::country;
use crate::model::value::ValueKind;

/// A `Content-Security-Policy` that fits the page: what this server gives, no inline script or style, and no form that is sent.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                                           img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Where the page is told of a demo's licenses and edits; such a path exists in a demo only.
pub const DEMO_PATH: &str = "/demo.json";

const PAGE: &str = include_str!("page.html");
const ICON: &[u8] = include_bytes!("favicon.svg");
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// What the page loads, by path.
const ASSETS: [(&str, &str, &[u8]); 10] = [
    ("/favicon.ico", SVG, ICON),
    ("/favicon.svg", SVG, ICON),
    ("/explorer/style.css", STYLE, include_bytes!("style.css")),
    ("/explorer/app.js", SCRIPT, include_bytes!("app.js")),
    ("/explorer/api.js", SCRIPT, include_bytes!("api.js")),
    ("/explorer/parts.js", SCRIPT, include_bytes!("parts.js")),
    ("/explorer/views.js", SCRIPT, include_bytes!("views.js")),
    ("/explorer/feed.js", SCRIPT, include_bytes!("feed.js")),
    ("/explorer/demo.js", SCRIPT, include_bytes!("demo.js")),
    ("/explorer/preact.js", SCRIPT, include_bytes!("vendor/preact.js")),
];

/// A file of the page, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its `Content-Type`.
    pub content_type: &'static str,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// The file at a path, which is compared exactly. `in_demo` says whether the page should ask for [`DEMO_PATH`].
pub fn find(path: &str, in_demo: bool) -> Option<Asset> {
    if path == "/" {
        let demo = if in_demo { DEMO_PATH.trim_start_matches('/') } else { "" };
        return Some(Asset { content_type: HTML, body: PAGE.replace("{{demo}}", demo).into_bytes() });
    }
    if path == "/explorer/filters.js" {
        return Some(Asset { content_type: SCRIPT, body: filters().into_bytes() });
    }
    if path == "/explorer/regions.js" {
        return Some(Asset { content_type: SCRIPT, body: regions().into_bytes() });
    }
    let (_, content_type, body) = ASSETS.iter().find(|(known, ..)| *known == path)?;
    Some(Asset { content_type, body: body.to_vec() })
}

/// A script with the boxes of each dataset's list: `q`, and the parameters that its fields declare.
fn filters() -> String {
    let boxes = |dataset: Dataset| -> Vec<Value> {
        let table = dataset.table();
        let searched: Vec<&str> = table.fields.iter().filter_map(|field| field.uses.searched).collect();
        let q = json!({"name": "q", "label": label(&searched.join(" or ")), "example": "oncol"});
        let filters = table.filters.iter().map(|filter| {
            let field = &table.fields[filter.field];
            let example = if field.kind == ValueKind::Date { "2026-01-01" } else { "" };
            json!({"name": filter.name, "label": label(&filter.name), "example": example, "field": field.name})
        });
        std::iter::once(q).chain(filters).collect()
    };
    let boxes: Value = Dataset::ALL.into_iter().map(|dataset| (dataset.as_str(), boxes(dataset))).collect();
    format!("export const FILTERS = {boxes};\n")
}

/// A script with the countries of each region, and the other names of countries in their comparable form.
fn regions() -> String {
    let regions: Value = country::REGIONS.into_iter().map(|(region, countries)| (region, json!(countries))).collect();
    let known = country::COUNTRIES.into_iter().flatten().map(|country| (*country, country::aliases(country)));
    let aliases: Value =
        known.filter(|(_, names)| !names.is_empty()).map(|(name, names)| (name, json!(names))).collect();
    format!("export const REGIONS = {regions};\nexport const ALIASES = {aliases};\n")
}

/// A parameter's name in words: `start_date_from` as `Start date from`.
fn label(name: &str) -> String {
    let words = name.replace('_', " ");
    words[..1].to_uppercase() + &words[1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most that the whole page takes, in bytes, before compression.
    const MAX_BYTES: usize = 62 << 10;

    #[test]
    fn the_page_is_small() {
        let page = find("/", true).unwrap().body.len();
        // The icon is one file with two names.
        let assets: usize = ASSETS.iter().skip(1).map(|(.., body)| body.len()).sum();
        assert!(page + assets <= MAX_BYTES, "{page} + {assets} bytes");
    }

    #[test]
    fn regions_hold_every_known_country_and_its_aliases() {
        let script = String::from_utf8(find("/explorer/regions.js", false).unwrap().body).unwrap();
        for country in country::COUNTRIES.into_iter().flatten() {
            assert!(script.contains(&json!(country).to_string()), "{country}");
        }
        assert!(script.contains(r#""United States":["unitedstatesofamerica","us","usa"]"#), "{script}");
        assert!(script.contains(r#""Europe":["Albania","#), "{script}");
    }

    #[test]
    fn what_the_page_names_is_there() {
        let texts = ASSETS.iter().filter(|(path, ..)| !path.ends_with("preact.js"));
        let texts = texts.map(|(path, _, body)| (*path, String::from_utf8(body.to_vec()).unwrap()));
        let mut count = 0;
        for (path, text) in texts.chain([("/", PAGE.to_owned())]) {
            let loaded = ["href=\"", "src=\"", "from './"].into_iter().flat_map(|mark| {
                let names = text.split(mark).skip(1).filter_map(|rest| rest.split(['"', '\'']).next());
                names.map(
                    move |name| if mark.starts_with("from") { format!("explorer/{name}") } else { name.to_owned() },
                )
            });
            for name in loaded.filter(|name| name.ends_with(".js") || name.ends_with(".css") || name.ends_with(".svg"))
            {
                assert!(find(&format!("/{name}"), false).is_some(), "{path} names {name}");
                count += 1;
            }
            // Its own scripts are loaded from nowhere else, and none stands within the page.
            for forbidden in ["http://", "https://", "localStorage", "sessionStorage", "innerHTML", "style=\"", "eval("]
            {
                let stands = text.replace("http://www.w3.org/2000/svg", "").contains(forbidden);
                assert!(!stands, "{path} holds {forbidden}");
            }
        }
        assert!(count > 15, "only {count} names were found");
    }
}
