//! Exported files that are imported into an empty database are exported as the same bytes, with any texts.

use std::collections::BTreeMap;
use std::time::Duration;

use medfeed::model::records::{Access, Formats, Publishing, Timelines, Weeks};
use medfeed::model::time::parse_date;
use medfeed::model::{
    ConferenceFields, Curated, DateStatus, Fields, Id, JournalFields, Number, OrganizationFields,
    TagFields,
};
use medfeed::store::{Batch, Writer};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{holds, masked};
use crate::process::site::Site;

/// Pieces of texts that are difficult for file formats.
const PIECES: [&str; 40] = words![
    "\"" "'" "," "\n" "\r\n" "\r" ";" "; " ": " ":" "=" "+" "-" "@" "\t" " " "  " "a" "Zürich"
    "e\u{301}" "\u{feff}" "\u{2029}" "\u{1b}[31m" "\u{85}" "\u{2028}" "癌" "👩‍⚕️" "\\" "\\n"
    "\\u0041" "TRUE" "null" "\u{202e}" "0" "1e5" "{" "]" "\u{fffd}" "\u{10ffff}" "''="
];

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![6 => select(&PIECES).prop_map(str::to_owned), 1 => any::<char>().prop_filter("no NUL", |letter| *letter != '\0').prop_map(String::from)];
    vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

/// A text without the separator of lists.
fn names() -> impl Strategy<Value = String> {
    texts()
        .prop_map(|text| text.replace("; ", ";"))
        .prop_filter("no separator", |text| !text.contains("; "))
}

fn kinds() -> impl Strategy<Value = String> {
    names()
        .prop_map(|text| text.replace(": ", ":"))
        .prop_filter("no separator", |text| !text.contains(": "))
}

fn numbers() -> impl Strategy<Value = Option<Number>> {
    let number = prop_oneof![
        (0..1000_u32).prop_map(f64::from),
        (0..100_000_u32).prop_map(|number| f64::from(number) / 1000.0),
        any::<f64>()
            .prop_map(f64::abs)
            .prop_filter("finite", |number| number.is_finite()),
        select(&[
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            0.1 + 0.2,
            1e21,
            9_007_199_254_740_993.0
        ]),
    ];
    option::of(number).prop_map(|number| number.map(|number| Number::try_from(number).unwrap()))
}

fn wholes() -> impl Strategy<Value = Option<u64>> {
    option::of(prop_oneof![0..100_u64, Just(Id::MAX.get())])
}

/// A date's parts and a status that fits it, or none and `not_found` or `check`.
fn dates() -> impl Strategy<Value = (Option<jiff::civil::Date>, DateStatus)> {
    let with = select(&[
        DateStatus::Confirmed,
        DateStatus::Estimated,
        DateStatus::Copied,
        DateStatus::Check,
    ]);
    let day = prop_oneof![2020..2030_i32, Just(1), Just(9999)]
        .prop_flat_map(|year| (Just(year), 1..13_u32, 1..29_u32));
    prop_oneof![
        (day, with).prop_map(|((year, month, day), status)| {
            (
                Some(parse_date(&format!("{year:04}-{month:02}-{day:02}")).unwrap()),
                status,
            )
        }),
        select(&[DateStatus::NotFound, DateStatus::Check]).prop_map(|status| (None, status)),
    ]
}

fn ids() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 1..50_u64, 1 => Just(Id::MAX.get())]
}

fn links() -> impl Strategy<Value = Vec<u64>> {
    vec(0..6_u64, 0..4)
}

/// The rows of a world, with links as indexes of organizations and tags.
#[derive(Clone, Debug)]
struct Rows {
    organizations: BTreeMap<String, [Option<String>; 3]>,
    tags: BTreeMap<(String, String), Option<String>>,
    conferences: BTreeMap<u64, (ConferenceFields, Vec<u64>, Vec<u64>)>,
    journals: BTreeMap<u64, (JournalFields, Vec<u64>, Vec<u64>)>,
}

fn conferences() -> impl Strategy<Value = ConferenceFields> {
    let flag = || option::of(any::<bool>());
    let formats = (flag(), flag(), flag(), flag(), flag()).prop_map(
        |(oral, poster, e_poster, published_abstract, encore)| Formats {
            oral,
            poster,
            e_poster,
            published_abstract,
            encore,
        },
    );
    let places = (
        option::of(texts()),
        option::of(texts()),
        option::of(texts()),
        option::of(texts()),
    );
    let more = (
        option::of(texts()),
        option::of(1900..2101_u16),
        vec(names(), 0..4),
        formats,
        any::<bool>(),
    );
    (texts(), places, more, (dates(), dates(), dates())).prop_map(
        |(
            name,
            (country, city, venue, url),
            (abbv, year, therapy_areas, formats, ends),
            (start, due, late),
        )| {
            ConferenceFields {
                name: Some(name),
                abbv,
                year,
                start_date: start.0,
                start_date_status: Some(start.1),
                end_date: start.0.filter(|_| ends),
                abstract_due_date: due.0,
                abstract_due_date_status: Some(due.1),
                late_breaking_due_date: late.0,
                late_breaking_due_date_status: Some(late.1),
                country,
                city,
                venue,
                url,
                therapy_areas,
                formats,
                ..ConferenceFields::default()
            }
        },
    )
}

fn journals() -> impl Strategy<Value = JournalFields> {
    let weeks = || {
        (numbers(), numbers()).prop_map(|(min_weeks, max_weeks)| Weeks {
            min_weeks,
            max_weeks,
        })
    };
    let timelines = (weeks(), weeks(), weeks(), weeks());
    let access = option::of(select(&[
        Access::Subscription,
        Access::Hybrid,
        Access::Open,
    ]));
    let publishing = (access, option::of(texts()), numbers(), wholes());
    let named = (
        texts(),
        option::of(texts()),
        option::of(texts()),
        option::of(texts()),
        option::of(texts()),
    );
    let metrics = (numbers(), wholes(), numbers(), numbers(), wholes());
    (named, metrics, publishing, timelines).prop_map(|(named, metrics, publishing, timelines)| {
        let (name, abbv, issn_print, publisher, url) = named;
        let (impact_factor, impact_factor_year, citescore, sjr, h_index) = metrics;
        let (access, content_license, apc_usd, embargo_months) = publishing;
        let (submit_to_first_decision, online_submit_to_accept, accept_to_online, accept_to_print) =
            timelines;
        JournalFields {
            name: Some(name),
            abbv,
            issn_print: issn_print.clone(),
            issn_online: issn_print,
            publisher,
            url,
            impact_factor,
            impact_factor_year,
            citescore,
            sjr,
            h_index,
            publishing: Publishing {
                access,
                content_license,
                apc_usd,
                embargo_months,
            },
            timelines: Timelines {
                submit_to_first_decision,
                online_submit_to_accept,
                accept_to_online,
                accept_to_print,
            },
            ..JournalFields::default()
        }
    })
}

fn rows() -> impl Strategy<Value = Rows> {
    let text = || option::of(texts());
    let organizations = btree_map(names(), [text(), text(), text()], 0..6);
    let tags = btree_map((kinds(), names()), text(), 0..6);
    let conferences = btree_map(ids(), (conferences(), links(), links()), 0..6);
    let journals = btree_map(ids(), (journals(), links(), links()), 0..6);
    (organizations, tags, conferences, journals).prop_map(
        |(organizations, tags, conferences, journals)| Rows {
            organizations,
            tags,
            conferences,
            journals,
        },
    )
}

fn row<F: Fields>(id: u64, fields: F) -> (Id, Option<Curated<F>>) {
    let id = Id::try_from(id).unwrap();
    (
        id,
        Some(Curated::new(id, fields).unwrap_or_else(|faults| panic!("{faults:?}"))),
    )
}

fn batch(rows: Rows) -> Batch {
    let (organizations, tags) = (rows.organizations.len() as u64, rows.tags.len() as u64);
    let links = |indexes: Vec<u64>, count: u64| -> Vec<Id> {
        indexes
            .into_iter()
            .filter(|index| *index < count)
            .map(|index| Id::try_from(index + 1).unwrap())
            .collect()
    };
    Batch {
        organizations: (1..)
            .zip(rows.organizations)
            .map(|(id, (name, [abbv, kind, url]))| {
                row(
                    id,
                    OrganizationFields {
                        name: Some(name),
                        abbv,
                        kind,
                        url,
                    },
                )
            })
            .collect(),
        tags: (1..)
            .zip(rows.tags)
            .map(|(id, ((kind, name), category))| {
                row(
                    id,
                    TagFields {
                        kind: Some(kind),
                        name: Some(name),
                        category,
                    },
                )
            })
            .collect(),
        conferences: rows
            .conferences
            .into_iter()
            .map(|(id, (fields, of, with))| {
                row(
                    id,
                    ConferenceFields {
                        organizations: links(of, organizations).into(),
                        tags: links(with, tags).into(),
                        ..fields
                    },
                )
            })
            .collect(),
        journals: rows
            .journals
            .into_iter()
            .map(|(id, (fields, of, with))| {
                row(
                    id,
                    JournalFields {
                        organizations: links(of, organizations).into(),
                        tags: links(with, tags).into(),
                        ..fields
                    },
                )
            })
            .collect(),
    }
}

#[test]
fn imported_exports_are_exported_as_the_same_bytes() {
    holds(12, rows(), |rows| {
        let site = Site::new();
        let writer = Writer::open_or_create(&site.db(), Duration::ZERO).unwrap();
        let mut edit = writer.begin().unwrap();
        edit.apply(&batch(rows)).unwrap();
        edit.commit().unwrap();
        drop(writer);
        for format in ["jsonl", "csv"] {
            let out = site.path(format);
            let out = out.to_str().unwrap();
            site.json(["export", out, "--format", format]);
            // An import into the same database changes nothing. One into an empty database brings everything.
            let same = site.json(["import", out]);
            for kind in ["conferences", "journals"] {
                assert_eq!(same["datasets"][kind]["changed"], 0, "{format}: {same}");
                assert_eq!(same["datasets"][kind]["added"], 0, "{format}: {same}");
            }
            let copy = Site::new();
            copy.json(["import", out, "--create"]);
            copy.json(["export", "again", "--format", format]);
            for stem in ["organizations", "tags", "conferences", "journals"] {
                let file = format!("{stem}.{format}");
                let first = masked(&std::fs::read(site.path(format).join(&file)).unwrap());
                let again = masked(&std::fs::read(copy.path("again").join(&file)).unwrap());
                assert!(
                    first == again,
                    "{file} differs:\n{:?}\n{:?}",
                    String::from_utf8_lossy(&first),
                    String::from_utf8_lossy(&again)
                );
            }
        }
    });
}
