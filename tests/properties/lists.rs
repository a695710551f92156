//! Lists: their pages are the export, and filters select from it.

use medfeed::model::Dataset;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::edits::{first_imports, imports};
use super::holds;
use super::system::{System, encoded};
use super::world::{AREAS, COUNTRIES, DATES, Record, WORDS, YEARS, scopes};

/// A list's filters.
#[derive(Clone, Debug)]
struct Query {
    /// The typed text, and the same without case and diacritics.
    text: Option<(String, String)>,
    year: Option<u16>,
    country: Option<&'static str>,
    area: Option<&'static str>,
    from: Option<&'static str>,
    to: Option<&'static str>,
}

/// A text as callers type it: whole words as in the name, without diacritics, in capitals, or a part of them.
fn texts() -> impl Strategy<Value = (String, String)> {
    let words = vec(0..WORDS.len(), 1..3);
    (words, 0..4_usize, any::<Index>(), any::<Index>())
        .prop_map(|(words, style, first, last)| {
            let joined = |pick: fn(&(&str, &str)) -> String| -> String {
                words
                    .iter()
                    .map(|at| pick(&WORDS[*at]))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let plain = joined(|(_, plain)| (*plain).to_owned());
            match style {
                0 => (joined(|(word, _)| (*word).to_owned()), plain),
                1 => (plain.to_uppercase(), plain),
                _ => {
                    let letters: Vec<char> = plain.chars().collect();
                    let (one, other) = (first.index(letters.len()), last.index(letters.len()));
                    let part: String = letters[one.min(other)..=one.max(other)].iter().collect();
                    (part.clone(), part)
                }
            }
        })
        .prop_filter("q has 2 characters", |(typed, _)| {
            typed.chars().count() >= 2
        })
}

fn queries() -> impl Strategy<Value = Query> {
    let filters = (
        option::weighted(0.3, select([&YEARS[..], &[2100]].concat())),
        option::weighted(0.3, select([&COUNTRIES[..], &["JAPAN"]].concat())),
        option::weighted(0.3, select([&AREAS[..], &["oncology"]].concat())),
        option::weighted(0.2, select(&DATES)),
        option::weighted(0.2, select(&DATES)),
    );
    (option::weighted(0.5, texts()), filters).prop_map(|(text, (year, country, area, from, to))| {
        Query {
            text,
            year,
            country,
            area,
            from,
            to,
        }
    })
}

impl Query {
    fn matches(&self, record: &Record) -> bool {
        let text = self.text.as_ref().is_none_or(|(_, plain)| {
            record.plain_words().contains(plain)
                || record
                    .abbv
                    .is_some_and(|at| WORDS[at].1.contains(plain.as_str()))
        });
        text && self.year.is_none_or(|year| record.year == Some(year))
            && self.country.is_none_or(|country| record.country == Some(country))
            && self.area.is_none_or(|area| record.areas.contains(area))
            // Days in ISO 8601 are ordered as texts.
            && self.from.is_none_or(|from| record.start.is_some_and(|start| start >= from))
            && self.to.is_none_or(|to| record.start.is_some_and(|start| start <= to))
    }

    fn parameters(&self) -> String {
        let given = [
            ("q", self.text.as_ref().map(|(typed, _)| typed.clone())),
            ("year", self.year.map(|year| year.to_string())),
            ("country", self.country.map(str::to_owned)),
            ("therapy_area", self.area.map(str::to_owned)),
            ("start_date_from", self.from.map(str::to_owned)),
            ("start_date_to", self.to.map(str::to_owned)),
        ];
        given
            .into_iter()
            .filter_map(|(name, value)| Some(format!("&{name}={}", encoded(&value?))))
            .collect()
    }
}

/// Walks a list. Checks that each page consists of the expected lines, to the byte.
fn check_walk(
    system: &System,
    license: usize,
    dataset: Dataset,
    parameters: &str,
    limit: usize,
    lines: &[&String],
) {
    let mut pages = lines.chunks(limit).peekable();
    let mut cursor = String::new();
    let mut left = lines.len();
    loop {
        let page = pages.next().unwrap_or_default();
        left -= page.len();
        let target = format!("/v1/{dataset}?limit={limit}{parameters}{cursor}");
        let reply = system.get(license, &target);
        let joined = page.iter().map(|line| line.as_str());
        let joined = joined.collect::<Vec<_>>().join(",");
        let expected = format!(
            "{{\"data\":[{joined}],\"has_more\":{},\"next_cursor\":",
            left > 0
        );
        let text = reply.text();
        assert!(text.starts_with(&expected), "{target}\n{text}\n{expected}");
        match reply.json()["next_cursor"].as_str() {
            Some(next) if left > 0 => cursor = format!("&cursor={next}"),
            next => {
                assert!(next.is_none() && left == 0, "{target}: {next:?}");
                return;
            }
        }
    }
}

#[test]
fn pages_are_the_export() {
    let cases = vec((queries(), 1..6_usize), 1..12);
    let edits = vec(imports(), 0..4);
    holds(
        32,
        (first_imports(), edits, vec(scopes(), 1..4), cases),
        |(first, edits, scopes, cases)| {
            let mut system = System::with(&first, &scopes);
            // Requests one filtered list first, so that later states update its packed columns.
            system.get(0, "/v1/conferences?year=2025");
            system.get(0, "/v1/journals?q=ca");
            for changes in edits {
                system.import(&changes);
            }
            for license in 0..scopes.len() {
                for dataset in Dataset::ALL {
                    let Some(export) = system.export(license, dataset) else {
                        assert_eq!(system.get(license, &format!("/v1/{dataset}")).status, 403);
                        continue;
                    };
                    let visible = system.world.visible(license, dataset);
                    assert_eq!(export.lines.len(), visible.len());
                    for limit in [1, 2, 3, 500] {
                        let lines = export.lines.iter().collect::<Vec<_>>();
                        check_walk(&system, license, dataset, "", limit, &lines);
                    }
                    for (query, limit) in &cases {
                        let query = match dataset {
                            Dataset::Conferences => query.clone(),
                            Dataset::Journals => Query {
                                year: None,
                                country: None,
                                area: None,
                                from: None,
                                to: None,
                                ..query.clone()
                            },
                        };
                        let records = &system.world.records[dataset];
                        let found = visible.iter().zip(&export.lines);
                        let found = found.filter(|(id, _)| query.matches(&records[id].record));
                        let found: Vec<&String> = found.map(|(_, line)| line).collect();
                        let parameters = query.parameters();
                        check_walk(&system, license, dataset, &parameters, *limit, &found);
                    }
                }
            }
        },
    );
}
