//! Numbers that no real journal has.

use super::rule::RowRule;
use crate::model::message::message;
use crate::model::{Fault, JournalFields};

pub(super) const RULES: &[RowRule<JournalFields>] = &[
    RowRule { name: "unlikely_number", find: unlikely_number },
    RowRule { name: "weeks_reversed", find: weeks_reversed },
];

/// Finds a lost decimal point, or a value in the wrong column. The highest impact factor ever was about 500.
fn unlikely_number(journal: &JournalFields) -> Option<Fault> {
    let metrics = [
        ("impact_factor", journal.impact_factor, 1_000.0),
        ("citescore", journal.citescore, 2_000.0),
        ("sjr", journal.sjr, 500.0),
        ("publishing.apc_usd", journal.publishing.apc_usd, 50_000.0),
    ];
    let high =
        metrics.into_iter().find_map(|(field, value, most)| Some((field, value.filter(|value| value.get() > most)?)));
    if let Some((field, value)) = high {
        return Some(Fault::of_value(field, value, "is too high for any journal; check for a lost decimal point"));
    }
    const LEAST_PRICE: f64 = 10.0;
    let price = journal.publishing.apc_usd.filter(|price| price.get() > 0.0 && price.get() < LEAST_PRICE);
    if let Some(price) = price {
        let message = "is too low for any journal; check for a point that groups digits, as in 2.500 for 2500";
        return Some(Fault::of_value("publishing.apc_usd", price, message));
    }
    let year = journal.impact_factor_year.filter(|year| !(1960..=2100).contains(year))?;
    Some(Fault::of_value("impact_factor_year", year, "is not the year of an impact factor; write one such as 2025"))
}

fn weeks_reversed(journal: &JournalFields) -> Option<Fault> {
    let timelines = &journal.timelines;
    let steps = [
        ("timelines.submit_to_first_decision.min_weeks", &timelines.submit_to_first_decision),
        ("timelines.online_submit_to_accept.min_weeks", &timelines.online_submit_to_accept),
        ("timelines.accept_to_online.min_weeks", &timelines.accept_to_online),
        ("timelines.accept_to_print.min_weeks", &timelines.accept_to_print),
    ];
    steps.into_iter().find_map(|(field, weeks)| {
        let (min, max) = (weeks.min_weeks?, weeks.max_weeks?);
        (min > max).then(|| Fault::of_value(field, min, message!("is more than its max_weeks, {max}; swap them")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Number;

    #[test]
    fn the_bounds_of_numbers_are_exact() {
        type Set = fn(&mut JournalFields, f64);
        fn number(value: f64) -> Option<Number> {
            Number::try_from(value).ok()
        }
        let cases: [(Set, f64, f64, &str); 5] = [
            (|journal, value| journal.impact_factor = number(value), 1_000.0, 1_000.001, "impact_factor"),
            (|journal, value| journal.citescore = number(value), 2_000.0, 2_001.0, "citescore"),
            (|journal, value| journal.sjr = number(value), 500.0, 500.5, "sjr"),
            (|journal, value| journal.publishing.apc_usd = number(value), 50_000.0, 50_001.0, "publishing.apc_usd"),
            (|journal, value| journal.publishing.apc_usd = number(value), 10.0, 9.99, "publishing.apc_usd"),
        ];
        for (set, right, wrong, field) in cases {
            let found = |value: f64| {
                let mut journal = JournalFields::default();
                set(&mut journal, value);
                unlikely_number(&journal).map(|fault| (fault.field, fault.value.unwrap()))
            };
            assert_eq!(found(right), None, "{field} {right}");
            assert_eq!(found(wrong), Some((field, number(wrong).unwrap().to_string())), "{field} {wrong}");
        }
        for (year, is_found) in [(1_959, true), (1_960, false), (2_100, false), (2_101, true)] {
            let journal = JournalFields { impact_factor_year: Some(year), ..JournalFields::default() };
            assert_eq!(unlikely_number(&journal).is_some(), is_found, "{year}");
        }
    }

    #[test]
    fn weeks_of_each_step_may_be_equal_and_not_reversed() {
        let weeks = |min: f64, max: f64| crate::model::journal::Weeks {
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
                assert_eq!(weeks_reversed(&journal).is_some(), is_found, "{at} {min} {max}");
            }
        }
    }

    #[test]
    fn numbers_that_no_journal_has_are_found() {
        let number = |value: f64| Number::try_from(value).ok();
        type Set = fn(&mut JournalFields, Option<Number>);
        let cases: [(&str, Set, f64, &str); 9] = [
            ("free", |journal, value| journal.publishing.apc_usd = value, 0.0, ""),
            ("a group of digits", |journal, value| journal.publishing.apc_usd = value, 2.917, "unlikely_number"),
            ("usual", |journal, value| journal.impact_factor = value, 503.1, ""),
            ("a lost point", |journal, value| journal.impact_factor = value, 4_250.0, "unlikely_number"),
            ("cents", |journal, value| journal.publishing.apc_usd = value, 385_000.0, "unlikely_number"),
            ("dear", |journal, value| journal.publishing.apc_usd = value, 12_690.0, ""),
            ("a metric as year", |journal, _| journal.impact_factor_year = Some(42), 0.0, "unlikely_number"),
            ("weeks", |journal, value| journal.timelines.accept_to_print.min_weeks = value, 4.0, ""),
            (
                "weeks exchanged",
                |journal, value| {
                    journal.timelines.accept_to_print.min_weeks = value;
                    journal.timelines.accept_to_print.max_weeks = Number::try_from(2.0).ok();
                },
                4.0,
                "weeks_reversed",
            ),
        ];
        for (name, set, value, expected) in cases {
            let mut journal = JournalFields::default();
            set(&mut journal, number(value));
            let found: Vec<&str> =
                RULES.iter().filter(|rule| (rule.find)(&journal).is_some()).map(|rule| rule.name).collect();
            assert_eq!(found.join(" "), expected, "{name}");
        }
    }
}
