//! One row of each kind with every field given, as it is stored and written.

use std::fmt::Write;

use jiff::civil::date;

use super::records::{Formats, Publishing, Timelines, Weeks};
use super::reference::Referenced;
use super::*;

fn references() -> References {
    let organization = OrganizationFields {
        name: Some("=ASCO".into()),
        abbv: Some("A".into()),
        kind: Some("Society".into()),
        url: Some("https://asco.example".into()),
    };
    let tag = TagFields {
        kind: Some("Topic".into()),
        name: Some("Lung: small".into()),
        category: Some("Oncology".into()),
    };
    let id = Id::try_from(7).unwrap();
    let mut references = References::default();
    references
        .organizations
        .insert(id, Referenced::new(Curated::new(id, organization).unwrap()));
    references
        .tags
        .insert(id, Referenced::new(Curated::new(id, tag).unwrap()));
    references
}

fn conference() -> Conference {
    let fields = ConferenceFields {
        name: Some("Congress \"é\"".into()),
        abbv: Some("=C".into()),
        year: Some(2026),
        start_date: Some(date(2026, 3, 15)),
        start_date_status: Some(DateStatus::Confirmed),
        end_date: Some(date(2026, 3, 17)),
        abstract_due_date: Some(date(2025, 12, 1)),
        abstract_due_date_status: Some(DateStatus::Estimated),
        late_breaking_due_date: None,
        late_breaking_due_date_status: Some(DateStatus::NotFound),
        country: Some("Spain".into()),
        city: Some("".into()),
        venue: Some("Fira".into()),
        url: Some("https://c.example".into()),
        therapy_areas: vec!["Oncology".into(), "Cardiology".into(), "Oncology".into()],
        organizations: vec![Id::try_from(7).unwrap(); 2].into(),
        tags: vec![Id::try_from(7).unwrap()].into(),
        formats: Formats {
            oral: Some(true),
            poster: Some(false),
            e_poster: None,
            published_abstract: Some(true),
            encore: Some(false),
        },
    };
    Curated::new(Id::MAX, fields).unwrap()
}

fn journal() -> Journal {
    let weeks = |min: f64, max: f64| Weeks {
        min_weeks: Number::try_from(min).ok(),
        max_weeks: Number::try_from(max).ok(),
    };
    let fields = JournalFields {
        name: Some("Journal".into()),
        abbv: Some("J".into()),
        issn_print: Some("1234-5678".into()),
        issn_online: Some("8765-4321".into()),
        publisher: Some("-P".into()),
        url: Some("https://j.example".into()),
        impact_factor: Number::try_from(4.25).ok(),
        impact_factor_year: Some(2024),
        citescore: Number::try_from(7.0).ok(),
        sjr: Number::try_from(1e-7).ok(),
        h_index: Some(9_007_199_254_740_991),
        publishing: Publishing {
            access: Some(Access::Hybrid),
            content_license: Some("CC BY 4.0".into()),
            apc_usd: Number::try_from(3_000.5).ok(),
            embargo_months: Some(0),
        },
        timelines: Timelines {
            submit_to_first_decision: weeks(1.0, 2.5),
            online_submit_to_accept: weeks(3.0, -1.0),
            accept_to_online: weeks(0.5, 1.0),
            accept_to_print: weeks(6.0, 12.0),
        },
        organizations: vec![Id::try_from(7).unwrap()].into(),
        tags: vec![].into(),
    };
    Curated::new(Id::MIN, fields).unwrap()
}

/// The JSON and the CSV of a row.
fn shown<F: RecordFields + std::fmt::Debug>(row: &Curated<F>) -> String {
    let references = references();
    let at = Timestamp::from_unix_s(1_767_225_600);
    let stored = json::render_record(row, at, &references);
    let read_record = json::read_record::<F>(row.id(), &stored).unwrap();
    assert_eq!(read_record, (row.clone(), at));
    assert!(json::is_rendered(&stored, row, &references));
    assert!(
        !json::is_rendered(&stored, row, &()),
        "other texts of its links"
    );
    assert!(
        !json::is_rendered(&stored[..stored.len() - 30], row, &references),
        "cut short"
    );
    let mut text = String::from_utf8(stored).unwrap();
    writeln!(text).unwrap();
    writeln!(text, "{}", flat::columns(F::table(), true).join("|")).unwrap();
    writeln!(
        text,
        "{}",
        flat::cells(row, Some(at), &references).join("|")
    )
    .unwrap();
    text
}

/// Files hold the JSON. A difference here means that `medfeed upgrade` renders all records again.
#[test]
fn rows_keep_their_text() {
    let shown = shown(&conference()) + &shown(&journal());
    assert_eq!(shown, include_str!("../../fixtures/rows.txt"));
}

#[test]
fn a_field_that_a_text_does_not_name_is_null() {
    let text =
        br#"{"id":1,"name":"J","timelines":{"accept_to_print":{"max_weeks":2}},"updated_at":"2026-01-01T00:00:00Z"}"#;
    let (read, _) = json::read_record::<JournalFields>(Id::MIN, text).unwrap();
    let weeks = Weeks {
        max_weeks: Number::try_from(2.0).ok(),
        ..Weeks::default()
    };
    let timelines = Timelines {
        accept_to_print: weeks,
        ..Timelines::default()
    };
    let fields = JournalFields {
        name: Some("J".into()),
        timelines,
        ..JournalFields::default()
    };
    assert_eq!(read.fields(), &fields);
}

#[test]
fn invalid_texts_are_no_records() {
    let cases: [(&[u8], &str); 5] = cases![
        b"", "EOF";
        b"\xff", "utf-8";
        br#"{"name":"J"}"#, "it has no `updated_at`";
        br#"{"name":7,"updated_at":"2026-01-01T00:00:00Z"}"#, "invalid type";
        br#"{"name":"J","updated_at":"2026-01-01T00:00:0xZ"}"#, "updated_at: ";
    ];
    for (text, expected) in cases {
        let refused = json::read_record::<JournalFields>(Id::MIN, text).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn the_last_day_is_not_before_the_first() {
    let fields = |start: &str, end: &str| ConferenceFields {
        name: Some("C".into()),
        start_date: start.parse().ok(),
        start_date_status: Some(DateStatus::Check),
        end_date: end.parse().ok(),
        abstract_due_date_status: Some(DateStatus::Check),
        late_breaking_due_date_status: Some(DateStatus::Check),
        ..ConferenceFields::default()
    };
    let cases = cases![
        "2026-03-15", "2026-03-15", "";
        "2026-03-15", "2026-03-14", "is before the start_date 2026-03-15";
        "2025-12-31", "2026-01-01", "";
        "2026-01-01", "2025-12-31", "is before the start_date 2026-01-01";
        "2024-02-29", "2024-03-01", "";
        "", "2026-03-15", "needs a start_date";
        "2026-03-15", "", "";
        "", "", "";
    ];
    for (start, end, expected) in cases {
        let faults = Curated::new(Id::MIN, fields(start, end))
            .err()
            .unwrap_or_default();
        let shown: String = faults
            .iter()
            .map(|fault| format!("{}: {}", fault.field, fault.message))
            .collect();
        assert!(
            shown.contains(expected) && shown.is_empty() == expected.is_empty(),
            "{start} {end}: {shown}"
        );
    }
}

#[test]
fn separators_of_lists_are_in_no_name() {
    let tag = |kind: &str, name: &str| {
        let fields = TagFields {
            kind: Some(kind.into()),
            name: Some(name.into()),
            category: Some("a; b".into()),
        };
        Curated::new(Id::MIN, fields)
            .err()
            .unwrap_or_default()
            .into_iter()
            .map(|fault| fault.field)
            .collect::<Vec<_>>()
    };
    let cases: [(&str, &str, &[&str]); 6] = [
        ("Topic", "Lung: small", &[]),
        ("Topic;", "a;b", &[]),
        ("Topic:x", "it's", &[]),
        ("Topic; x", "N", &["type"]),
        ("Topic: x", "N", &["type"]),
        ("Topic", "a; b", &["name"]),
    ];
    for (kind, name, expected) in cases {
        assert_eq!(tag(kind, name), expected, "{kind} {name}");
    }
    let organization = OrganizationFields {
        name: Some("A; B".into()),
        ..OrganizationFields::default()
    };
    assert_eq!(Curated::new(Id::MIN, organization).unwrap_err().len(), 1);
    // Each of several areas is checked.
    let areas = ["A", "B; C", "D"].map(str::to_owned).to_vec();
    let conference = ConferenceFields {
        therapy_areas: areas,
        ..ConferenceFields::default()
    };
    let faults = Curated::new(Id::MIN, conference).unwrap_err();
    assert!(
        faults
            .iter()
            .any(|fault| fault.value.as_deref() == Some("B; C")),
        "{faults:?}"
    );
}
