//! Rules about rows: dates, years and places of conferences, and numbers of journals.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::rule::{RowRule, Uses};
use crate::import::findings::Finding;
use crate::model::country::{COUNTRIES, is_code, same_country};
use crate::model::field::RowMember;
use crate::model::message::message;
use crate::model::{ConferenceFields, Fault, Fields, JournalFields};

pub const CONFERENCE_RULES: &[RowRule<ConferenceFields>] = &[
    ("year_far_from_dates", year_far_from_dates),
    ("year_in_name", year_in_name),
    ("unlikely_date", unlikely_date),
    ("long_meeting", long_meeting),
    ("deadline_after_start", deadline_after_start),
    ("year_missing", year_missing),
    ("country_in_city", country_in_city),
];

/// The rule about days on which many conferences start.
pub const CROWDED_DAY: &str = "crowded_day";

/// Returns the date fields with values.
fn dates(conference: &ConferenceFields) -> impl Iterator<Item = (&'static str, Date)> {
    [
        ("start_date", conference.start_date),
        ("end_date", conference.end_date),
        ("abstract_due_date", conference.abstract_due_date),
        ("late_breaking_due_date", conference.late_breaking_due_date),
    ]
    .into_iter()
    .filter_map(|(field, date)| Some((field, date?)))
}

fn year_far_from_dates(conference: &ConferenceFields) -> Option<Fault> {
    let year = conference.year?;
    let start = conference.start_date?;
    let far = (i32::from(year) - i32::from(start.year())).abs() > 1;
    far.then(|| {
        Fault::of_value(
            "year",
            year,
            message!("is far from the start_date {start}; correct one of them"),
        )
    })
}

/// Finds a name that was probably copied from another edition.
fn year_in_name(conference: &ConferenceFields) -> Option<Fault> {
    let year = conference.year?;
    let name = conference.name.as_deref()?;
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    let years =
        words.filter(|word| word.len() == 4 && (word.starts_with("19") || word.starts_with("20")));
    let named: Vec<u16> = years.filter_map(|word| word.parse().ok()).collect();
    // A postponed edition keeps its name, and some names contain a distant year.
    let start = conference.start_date.map_or(0, |start| start.year());
    let fits = named
        .iter()
        .any(|named| *named == year || i32::from(*named) == i32::from(start));
    let first = named
        .first()
        .filter(|named| !fits && named.abs_diff(year) <= 5)?;
    Some(Fault::of_value(
        "name",
        name,
        message!("contains {first}, but the year is {year}; correct one of them"),
    ))
}

fn unlikely_date(conference: &ConferenceFields) -> Option<Fault> {
    let mut dates = dates(conference);
    let (field, date) = dates.find(|(_, date)| !(1900..=2100).contains(&date.year()))?;
    Some(Fault::of_value(
        field,
        date,
        "is not between 1900 and 2100; correct its year",
    ))
}

fn long_meeting(conference: &ConferenceFields) -> Option<Fault> {
    const MAX_DAYS: i32 = 31;
    let start = conference.start_date?;
    let end = conference.end_date?;
    let days = (end - start).get_days();
    (days > MAX_DAYS).then(|| {
        Fault::of_value(
            "end_date",
            end,
            message!("is {days} days after the start_date {start}; check month and year of both"),
        )
    })
}

fn deadline_after_start(conference: &ConferenceFields) -> Option<Fault> {
    let start = conference.start_date?;
    let mut deadlines = dates(conference).filter(|(field, _)| field.ends_with("due_date"));
    let (field, due) =
        deadlines.find(|(_, due)| *due > start || (start - *due).get_days() > 3 * 366)?;
    let where_ = match due > start {
        true => "is after",
        false => "is years before",
    };
    Some(Fault::of_value(
        field,
        due,
        message!("{where_} the start_date {start}; check month and year of both"),
    ))
}

fn year_missing(conference: &ConferenceFields) -> Option<Fault> {
    let start = conference
        .start_date
        .filter(|_| conference.year.is_none())?;
    let message = message!(
        "is missing, though the start_date is {start}; write the year of the edition, such as {}",
        start.year()
    );
    Some(Fault::of("year", message))
}

fn country_in_city(conference: &ConferenceFields) -> Option<Fault> {
    let text = conference.city.as_deref()?;
    let own = conference.country.as_deref();
    let (city, last) = text.rsplit_once([',', '('])?;
    let city = city.trim();
    let last = last.trim_end_matches(')');
    // `Chicago, IL` has a state, and no code of a country.
    let country = COUNTRIES
        .into_iter()
        .flatten()
        .find(|country| !is_code(last) && same_country(country, last))?;
    // Georgia is also a state: Atlanta, Georgia.
    let is_clear = !city.is_empty() && (*country != "Georgia" || own == Some(*country));
    let message = match own {
        None => message!(
            "ends with a country; write `{city}` as the city, and `{country}` as the country"
        ),
        Some(own) => message!(
            "ends with a country, and the country is `{own}`; write `{city}` as the city, and check the country"
        ),
    };
    is_clear.then(|| Fault::of_value("city", text, message))
}

/// Finds days that probably stand for an unknown date, such as 1 January.
pub fn crowded_days(days: &BTreeMap<String, Uses>) -> impl Iterator<Item = Finding> {
    // On the busiest real days, 1 in 100 of a year's conferences start.
    const LEAST: usize = 20;
    const ONE_IN: usize = 25;
    let total: usize = days.values().map(|uses| uses.total).sum();
    days.iter().filter_map(move |(day, uses)| {
        let count = uses.total;
        let first = uses.first.as_ref().filter(|_| count >= LEAST && count * ONE_IN > total)?;
        let message = message!(
            "{count} of {total} conferences start on this day; leave the cells empty where it stands for an unknown day"
        );
        Some(first.finding(CROWDED_DAY, "start_date", Some(day), message))
    })
}

pub const JOURNAL_RULES: &[RowRule<JournalFields>] = &[
    ("unlikely_number", unlikely_number),
    ("weeks_reversed", weeks_reversed),
];

/// Finds a lost decimal point, or a value in the wrong column. The highest impact factor ever was about 500.
fn unlikely_number(journal: &JournalFields) -> Option<Fault> {
    let unlikely = [
        ("impact_factor", journal.impact_factor, 0.0, 1_000.0),
        ("citescore", journal.citescore, 0.0, 2_000.0),
        ("sjr", journal.sjr, 0.0, 500.0),
        (
            "publishing.apc_usd",
            journal.publishing.apc_usd,
            10.0,
            50_000.0,
        ),
    ].into_iter().find_map(|(field, value, least, most)| {
        let value = value.filter(|value| value.get() > 0.0)?;
        let message = match value.get() {
            number if number > most => "is too high for any journal; check for a lost decimal point",
            number if number < least => {
                "is too low for any journal; check for a point that groups digits, as in 2.500 for 2500"
            }
            _ => return None,
        };
        Some(Fault::of_value(field, value, message))
    });
    let year = journal.impact_factor_year;
    let year = year.filter(|year| !(1960..=2100).contains(year));
    unlikely.or_else(|| {
        let message = "is not the year of an impact factor; write one such as 2025";
        Some(Fault::of_value("impact_factor_year", year?, message))
    })
}

fn weeks_reversed(journal: &JournalFields) -> Option<Fault> {
    let fields = JournalFields::table().fields.iter();
    let values = journal.values();
    fields
        .zip(values.array_windows())
        .find_map(|(field, [min, max])| {
            let is_reversed = field.name.ends_with(".min_weeks") && min.rank() > max.rank();
            let max = max.to_csv(&());
            let message = message!("is more than its max_weeks, {max}; swap them");
            (is_reversed && !max.is_empty())
                .then(|| Fault::of_value(&field.name, min.to_csv(&()), message))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::lint::RowLocation;
    use crate::model::{Id, Number};

    fn conference(name: &str, year: u16, dates: [&str; 4]) -> ConferenceFields {
        let [
            start_date,
            end_date,
            abstract_due_date,
            late_breaking_due_date,
        ] = dates.map(|date| date.parse().ok());
        ConferenceFields {
            name: Some(name.to_owned()),
            year: Some(year).filter(|year| *year > 0),
            start_date,
            end_date,
            abstract_due_date,
            late_breaking_due_date,
            ..ConferenceFields::default()
        }
    }

    #[test]
    fn the_date_that_does_not_fit_is_named() {
        type Find = fn(&ConferenceFields) -> Option<Fault>;
        let cases: [(Find, [&str; 4], &str); 5] = cases![
            unlikely_date, ["2026-05-29", "2101-01-01", "2102-01-01", ""], "end_date `2101-01-01` is not between";
            long_meeting, ["2025-12-31", "2026-02-28", "", ""],
                "end_date `2026-02-28` is 59 days after the start_date 2025-12-31";
            deadline_after_start, ["2026-05-29", "", "2026-01-01", "2026-06-01"],
                "late_breaking_due_date `2026-06-01` is after the start_date";
            deadline_after_start, ["2026-05-29", "", "2026-05-30", "2026-06-01"],
                "abstract_due_date `2026-05-30` is after the start_date";
            deadline_after_start, ["2026-05-29", "", "2016-05-30", ""],
                "abstract_due_date `2016-05-30` is years before the start_date";
        ];
        for (find, dates, expected) in cases {
            let fault = find(&conference("ASCO", 2026, dates)).unwrap();
            let shown = format!(
                "{} `{}` {}",
                fault.field,
                fault.value.unwrap(),
                fault.message
            );
            assert!(shown.starts_with(expected), "{shown}");
        }
    }

    #[test]
    fn dates_that_do_not_fit_are_found() {
        let cases = cases![
            "ASCO", 2026, ["2026-05-29", "2026-06-02", "2026-01-27", "2026-03-10"], "";
            "ASCO", 2026, ["", "", "2026-01-27", ""], "";
            "ASCO", 2026, ["2025-12-29", "2026-01-02", "", ""], "";
            "ASCO", 2026, ["2024-05-29", "", "", ""], "year_far_from_dates";
            "ASCO", 2062, ["2026-05-29", "", "", ""], "year_far_from_dates";
            "ASCO 2026", 2026, ["2026-05-29", "", "", ""], "";
            "ASCO 2025", 2026, ["2026-05-29", "", "", ""], "year_in_name";
            "ASCO 2025", 2026, ["2025-12-29", "", "", ""], "";
            "ASCO 2025/2026", 2026, ["", "", "", ""], "";
            "ASCO", 0, ["2026-05-29", "", "", ""], "year_missing";
            "ASCO", 0, ["", "", "2026-01-27", ""], "";
            "Congress on Agenda 2050", 2026, ["", "", "", ""], "";
            "Room 2001", 2026, ["", "", "", ""], "";
            "ASCO", 2026, ["0206-05-29", "", "", ""], "year_far_from_dates unlikely_date";
            "ASCO", 2026, ["2026-05-29", "2026-06-29", "", ""], "";
            "ASCO", 2026, ["2026-05-29", "2026-07-02", "", ""], "long_meeting";
            "ASCO", 2026, ["2026-05-29", "", "2026-05-29", ""], "";
            "ASCO", 2026, ["2026-05-29", "", "2026-06-29", ""], "deadline_after_start";
            "ASCO", 2026, ["2026-05-29", "", "", "2027-01-29"], "deadline_after_start";
            "ASCO", 2026, ["2026-05-29", "", "2016-01-27", ""], "deadline_after_start";
            // The boundaries of each rule.
            "ASCO", 2026, ["2025-01-01", "", "", ""], "";
            "ASCO", 2026, ["2027-12-31", "", "", ""], "";
            "ASCO", 2026, ["2028-01-01", "", "", ""], "year_far_from_dates";
            "ASCO 2021", 2026, ["", "", "", ""], "year_in_name";
            "ASCO 2020", 2026, ["", "", "", ""], "";
            "ASCO 2031", 2026, ["", "", "", ""], "year_in_name";
            "ASCO 1999", 2000, ["", "", "", ""], "year_in_name";
            "ASCO'25, ASCO2025", 2026, ["", "", "", ""], "";
            "ASCO 2025-2026", 2026, ["", "", "", ""], "";
            "ASCO", 1900, ["1900-01-01", "", "", ""], "";
            "ASCO", 1900, ["1899-12-31", "", "", ""], "unlikely_date";
            "ASCO", 2100, ["2100-12-31", "", "", ""], "";
            "ASCO", 2100, ["2101-01-01", "", "", ""], "unlikely_date";
            "ASCO", 2100, ["", "", "", "2101-01-01"], "unlikely_date";
            "ASCO", 2026, ["2026-05-29", "2026-06-30", "", ""], "long_meeting";
            "ASCO", 2024, ["2024-01-31", "2024-03-02", "", ""], "";
            "ASCO", 2024, ["2024-01-31", "2024-03-03", "", ""], "long_meeting";
            "ASCO", 2025, ["2025-12-01", "2026-01-01", "", ""], "";
            "ASCO", 2026, ["2026-05-29", "", "2026-05-30", ""], "deadline_after_start";
            "ASCO", 2026, ["2026-05-29", "", "", "2026-05-29"], "";
            "ASCO", 2026, ["2026-05-29", "", "", "2023-05-27"], "";
            "ASCO", 2026, ["2026-05-29", "", "", "2023-05-26"], "deadline_after_start";
        ];
        for (name, year, dates, expected) in cases {
            let conference = conference(name, year, dates);
            let found: Vec<&str> = CONFERENCE_RULES
                .iter()
                .filter(|rule| (rule.1)(&conference).is_some())
                .map(|rule| rule.0)
                .collect();
            assert_eq!(found.join(" "), expected, "{name} {year} {dates:?}");
        }
    }

    #[test]
    fn a_country_in_the_city_is_found() {
        let cases = cases![
            "Rome, Italy", "", "write `Rome` as the city, and `Italy` as the country";
            "Rome (Italia)", "", "write `Rome` as the city, and `Italy` as the country";
            "Washington, DC, USA", "", "write `Washington, DC` as the city, and `United States` as the country";
            "Rome, Italy", "Italy",
                "ends with a country, and the country is `Italy`; write `Rome` as the city, and check the country";
            "Köln (Deutschland)", "Germany", "write `Köln` as the city, and check the country";
            "Tbilisi, Georgia", "Georgia", "write `Tbilisi` as the city, and check the country";
            "Nice, France", "Italy", "the country is `Italy`; write `Nice` as the city, and check the country";
            "Atlanta, Georgia", "United States", "";
            "Palma, Mallorca", "Spain", "";
            "Rome", "", "";
            "Singapore", "", "";
            ", Italy", "", "";
            "Palma, Mallorca", "", "";
            "Atlanta, Georgia", "", "";
        ];
        for (city, country, expected) in cases {
            let [city, country] =
                [city, country].map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
            let fault = country_in_city(&ConferenceFields {
                city,
                country,
                ..ConferenceFields::default()
            });
            let message = fault.map(|fault| fault.message).unwrap_or_default();
            assert_eq!(message.is_empty(), expected.is_empty(), "{message}");
            assert!(message.ends_with(expected), "{message}");
        }
    }

    #[test]
    fn a_day_is_crowded_by_its_share() {
        let location = RowLocation::Database("conferences", Id::MIN);
        for (on_one_day, others, is_found) in [
            (19, 0, false),
            (20, 0, true),
            (20, 479, true),
            (20, 480, false),
            (400, 9_599, true),
            (400, 9_600, false),
        ] {
            let mut days: BTreeMap<String, Uses> = BTreeMap::new();
            let first = Date::constant(2026, 1, 1);
            for at in 0..on_one_day + others {
                let day = if at < on_one_day {
                    first
                } else {
                    first + jiff::Span::new().days(at)
                };
                let uses = days.entry(day.to_string()).or_default();
                uses.add(&location, true);
            }
            let count = crowded_days(&days).count();
            assert_eq!(count, usize::from(is_found), "{on_one_day} {others}");
        }
    }

    #[test]
    fn the_bounds_of_numbers_are_exact() {
        type Set = fn(&mut JournalFields, f64);
        fn number(value: f64) -> Option<Number> {
            Number::try_from(value).ok()
        }
        let cases: [(Set, f64, f64, &str); 5] = cases![
            |journal, value| journal.impact_factor = number(value), 1_000.0, 1_000.001, "impact_factor";
            |journal, value| journal.citescore = number(value), 2_000.0, 2_001.0, "citescore";
            |journal, value| journal.sjr = number(value), 500.0, 500.5, "sjr";
            |journal, value| journal.publishing.apc_usd = number(value), 50_000.0, 50_001.0, "publishing.apc_usd";
            |journal, value| journal.publishing.apc_usd = number(value), 10.0, 9.99, "publishing.apc_usd";
        ];
        for (set, right, wrong, field) in cases {
            let found = |value: f64| {
                let mut journal = JournalFields::default();
                set(&mut journal, value);
                unlikely_number(&journal).map(|fault| (fault.field, fault.value.unwrap()))
            };
            assert_eq!(found(right), None, "{field} {right}");
            let expected = Some((field, number(wrong).unwrap().to_string()));
            assert_eq!(found(wrong), expected, "{field} {wrong}");
        }
        for (year, is_found) in [(1_959, true), (1_960, false), (2_100, false), (2_101, true)] {
            let journal = JournalFields {
                impact_factor_year: Some(year),
                ..JournalFields::default()
            };
            assert_eq!(unlikely_number(&journal).is_some(), is_found, "{year}");
        }
    }

    #[test]
    fn weeks_of_each_step_may_be_equal_and_not_reversed() {
        let weeks = |min: f64, max: f64| crate::model::records::Weeks {
            min_weeks: Number::try_from(min).ok(),
            max_weeks: Number::try_from(max).ok(),
        };
        for at in 0..4 {
            for (min, max, is_found) in [(4.0, 4.0, false), (4.0, 5.0, false), (4.5, 4.0, true)] {
                let mut journal = JournalFields::default();
                let timelines = &mut journal.timelines;
                *[
                    &mut timelines.submit_to_first_decision,
                    &mut timelines.online_submit_to_accept,
                    &mut timelines.accept_to_online,
                    &mut timelines.accept_to_print,
                ][at] = weeks(min, max);
                let found = weeks_reversed(&journal).is_some();
                assert_eq!(found, is_found, "{at} {min} {max}");
            }
        }
    }

    #[test]
    fn numbers_that_no_journal_has_are_found() {
        let number = |value: f64| Number::try_from(value).ok();
        type Set = fn(&mut JournalFields, Option<Number>);
        let cases: [(&str, Set, f64, &str); 9] = cases![
            "free", |journal, value| journal.publishing.apc_usd = value, 0.0, "";
            "a group of digits", |journal, value| journal.publishing.apc_usd = value, 2.917, "unlikely_number";
            "usual", |journal, value| journal.impact_factor = value, 503.1, "";
            "a lost point", |journal, value| journal.impact_factor = value, 4_250.0, "unlikely_number";
            "cents", |journal, value| journal.publishing.apc_usd = value, 385_000.0, "unlikely_number";
            "dear", |journal, value| journal.publishing.apc_usd = value, 12_690.0, "";
            "a metric as year", |journal, _| journal.impact_factor_year = Some(42), 0.0, "unlikely_number";
            "weeks", |journal, value| journal.timelines.accept_to_print.min_weeks = value, 4.0, "";
            "weeks exchanged",
                |journal, value| {
                    journal.timelines.accept_to_print.min_weeks = value;
                    journal.timelines.accept_to_print.max_weeks = Number::try_from(2.0).ok();
                },
                4.0, "weeks_reversed";
        ];
        for (name, set, value, expected) in cases {
            let mut journal = JournalFields::default();
            set(&mut journal, number(value));
            let found: Vec<&str> = JOURNAL_RULES
                .iter()
                .filter(|rule| (rule.1)(&journal).is_some())
                .map(|rule| rule.0)
                .collect();
            assert_eq!(found.join(" "), expected, "{name}");
        }
    }
}
