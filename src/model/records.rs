//! Conferences and journals: their fields and rules (docs/import.md).

use jiff::civil::Date;
use serde::Deserialize;
use strum::{Display, EnumMessage, EnumString, IntoStaticStr, VariantNames};

use super::curated::{Curated, Fault, RecordFields, forbid_separator, require, row};
use super::field::fields;
use super::license::Rule;
use super::message::message;
use super::reference::Links;
use super::value::ValueKind;
use super::value::scalar::Scalar;
use super::{Dataset, Number, OrganizationFields, TagFields};

/// A conference edition that follows all rules.
pub type Conference = Curated<ConferenceFields>;

fields! {
    /// The fields of a conference edition, apart from its id.
    pub struct ConferenceFields {
        /// Conference name
        pub name: Option<String> => searched("name"),
        /// Abbreviation or acronym
        pub abbv: Option<String> => searched("abbreviation"),
        /// Edition year
        pub year: Option<u16> => equal("Edition year").scope(Rule::Years),
        /// Start of the meeting
        pub start_date: Option<Date>
            => range("Meetings starting on or after this date", "Meetings starting on or before this date"),
        /// Confidence of `start_date`
        pub start_date_status: Option<DateStatus>,
        /// Last day of the meeting; given only with a `start_date`
        pub end_date: Option<Date>,
        /// Deadline for abstracts
        pub abstract_due_date: Option<Date>,
        /// Confidence of `abstract_due_date`
        pub abstract_due_date_status: Option<DateStatus>,
        /// Deadline for late-breaking abstracts
        pub late_breaking_due_date: Option<Date>,
        /// Confidence of `late_breaking_due_date`
        pub late_breaking_due_date_status: Option<DateStatus>,
        /// Host country, spelled as the `country` filter needs it
        pub country: Option<String> => equal("Host country, matched exactly as stored").scope(Rule::Countries),
        /// Host city
        pub city: Option<String> => indexed(),
        /// Venue
        pub venue: Option<String> => indexed(),
        /// Website of the conference
        pub url: Option<String>,
        /// Therapy areas in the order of their code points; in CSV one text, joined by `; `
        pub therapy_areas: Vec<String>
            => one_of("therapy_area", "One therapy area name, matched exactly").scope(Rule::TherapyAreas),
        /// Linked organizations in the order of their ids; in CSV their names, joined by `; `
        pub organizations: Links<OrganizationFields>,
        /// Tags in the order of their ids; in CSV `Type: Name`, joined by `; `
        pub tags: Links<TagFields>,
        /// Presentation formats that the conference takes; a member is null when unknown
        pub formats: Formats,
    }
}

fields! {
    /// Which presentation formats the conference takes.
    pub struct Formats {
        /// Whether oral presentations are taken
        pub oral: Option<bool>,
        /// Whether posters are taken
        pub poster: Option<bool>,
        /// Whether electronic posters are taken
        pub e_poster: Option<bool>,
        /// Whether abstracts are taken for publication alone
        pub published_abstract: Option<bool>,
        /// Whether work that was shown elsewhere before is taken
        pub encore: Option<bool>,
    }
}

row!(ConferenceFields, "conferences", |conference, faults| {
    require("name", &conference.name, faults);
    let statuses = [
        (
            "start_date_status",
            conference.start_date_status,
            conference.start_date,
        ),
        (
            "abstract_due_date_status",
            conference.abstract_due_date_status,
            conference.abstract_due_date,
        ),
        (
            "late_breaking_due_date_status",
            conference.late_breaking_due_date_status,
            conference.late_breaking_due_date,
        ),
    ];
    for (field, status, date) in statuses {
        match status {
            None => faults.push(Fault::of(
                field,
                "is required; give one of `confirmed`, `estimated`, `copied`, `not_found`, `check`",
            )),
            Some(status) => {
                faults.extend(
                    status
                        .fault_with(date.is_some())
                        .map(|fault| Fault::of_value(field, status, fault)),
                );
            }
        }
    }
    match (conference.start_date, conference.end_date) {
        (None, Some(end)) => {
            faults.push(Fault::of_value(
                "end_date",
                end,
                "needs a start_date; give one, or remove the end_date",
            ));
        }
        (Some(start), Some(end)) if end < start => faults.push(Fault::of_value(
            "end_date",
            end,
            message!("is before the start_date {start}; give the same day or a later one"),
        )),
        _ => {}
    }
    for area in &conference.therapy_areas {
        if area.is_empty() {
            faults.push(Fault::of("therapy_areas", "holds an empty name; remove it"));
        }
        forbid_separator("therapy_areas", area, "; ", faults);
    }
});

impl RecordFields for ConferenceFields {
    const DATASET: Dataset = Dataset::Conferences;
}

/// The confidence of a date (contract, "Date confidence values"). The doc comment of each value is its meaning in the
/// API's documentation.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Deserialize,
    Display,
    EnumMessage,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DateStatus {
    /// Published by the organizer and checked against the official source
    Confirmed,
    /// Projected from the lead times of earlier editions until the organizer announces the date
    Estimated,
    /// Carried forward from the previous edition, awaiting confirmation
    Copied,
    /// Looked for, not published yet
    NotFound,
    /// Under review by the service operator
    Check,
}

impl DateStatus {
    /// All values, in the contract's order.
    pub const ALL: [DateStatus; 5] = [
        DateStatus::Confirmed,
        DateStatus::Estimated,
        DateStatus::Copied,
        DateStatus::NotFound,
        DateStatus::Check,
    ];

    /// Returns the rule that a date, or its absence, breaks under this status.
    pub fn fault_with(self, has_date: bool) -> Option<&'static str> {
        match (self, has_date) {
            (DateStatus::Confirmed | DateStatus::Estimated | DateStatus::Copied, false) => {
                Some("needs a date; give one, or use `not_found` or `check`")
            }
            (DateStatus::NotFound, true) => {
                Some("must have no date; remove the date, or use another status")
            }
            _ => None,
        }
    }
}

impl Scalar for DateStatus {
    const KIND: ValueKind = ValueKind::DateStatus(DateStatus::VARIANTS);
    const EXPECTED: &'static str =
        "write one of `confirmed`, `estimated`, `copied`, `not_found`, `check`";

    fn rank(&self) -> u64 {
        *self as u64 + 1
    }
}

/// A journal that follows all rules.
pub type Journal = Curated<JournalFields>;

fields! {
    /// The fields of a journal, apart from its id.
    pub struct JournalFields {
        /// Journal name
        pub name: Option<String> => searched("name"),
        /// Abbreviated name
        pub abbv: Option<String> => searched("abbreviation"),
        /// ISSN of the printed edition
        pub issn_print: Option<String>,
        /// ISSN of the online edition
        pub issn_online: Option<String>,
        /// Publisher
        pub publisher: Option<String> => indexed(),
        /// Website of the journal
        pub url: Option<String>,
        /// Impact metric
        pub impact_factor: Option<Number>,
        /// Year of the `impact_factor`
        pub impact_factor_year: Option<u64>,
        /// CiteScore
        pub citescore: Option<Number>,
        /// SCImago Journal Rank
        pub sjr: Option<Number>,
        /// h-index
        pub h_index: Option<u64>,
        /// Publishing terms
        pub publishing: Publishing,
        /// How long the steps to publication take
        pub timelines: Timelines,
        /// Linked organizations in the order of their ids; in CSV their names, joined by `; `
        pub organizations: Links<OrganizationFields>,
        /// Tags in the order of their ids; in CSV `Type: Name`, joined by `; `
        pub tags: Links<TagFields>,
    }
}

fields! {
    /// Publishing terms.
    pub struct Publishing {
        /// How readers get at articles: `subscription`, `hybrid` or `open`
        pub access: Option<Access>,
        /// License under which articles are published, such as `CC BY 4.0`
        pub content_license: Option<String>,
        /// Article processing charge in US dollars
        pub apc_usd: Option<Number>,
        /// Months before an article may be shared freely
        pub embargo_months: Option<u64>,
    }
}

fields! {
    /// How long the steps to publication take.
    pub struct Timelines {
        /// Submission to first decision
        pub submit_to_first_decision: Weeks,
        /// Online submission to acceptance
        pub online_submit_to_accept: Weeks,
        /// Acceptance to publication online
        pub accept_to_online: Weeks,
        /// Acceptance to publication in print
        pub accept_to_print: Weeks,
    }
}

fields! {
    /// A range of weeks.
    pub struct Weeks {
        /// …, shortest, in weeks
        pub min_weeks: Option<Number>,
        /// …, longest, in weeks
        pub max_weeks: Option<Number>,
    }
}

/// The access of readers to a journal's articles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Display, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Access {
    /// Readers pay.
    Subscription,
    /// Readers pay, except for articles that authors paid for.
    Hybrid,
    /// Free for readers.
    Open,
}

impl Scalar for Access {
    const KIND: ValueKind = ValueKind::Choice(Access::VARIANTS);
    const EXPECTED: &'static str = "write one of `subscription`, `hybrid`, `open`";

    fn rank(&self) -> u64 {
        *self as u64 + 1
    }
}

row!(JournalFields, "journals", |journal, faults| require(
    "name",
    &journal.name,
    faults
));

impl RecordFields for JournalFields {
    const DATASET: Dataset = Dataset::Journals;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_date_status_requires_forbids_or_allows_a_date() {
        let (needs, forbids) = (Some("needs a date; "), Some("must have no date; "));
        let cases = [
            ("confirmed", None, needs),
            ("estimated", None, needs),
            ("copied", None, needs),
            ("not_found", forbids, None),
            ("check", None, None),
        ];
        for ((word, with, without), status) in cases.into_iter().zip(DateStatus::ALL) {
            assert_eq!(<&str>::from(status), word);
            assert_eq!(DateStatus::parse(word), Some(status));
            for (has_date, expected) in [(true, with), (false, without)] {
                let fault = status.fault_with(has_date);
                assert!(
                    fault.is_some() == expected.is_some()
                        && fault.unwrap_or("").starts_with(expected.unwrap_or("")),
                    "{word}"
                );
            }
        }
        assert!(
            DateStatus::parse("Confirmed").is_none() && DateStatus::parse("notfound").is_none()
        );
        assert_eq!(DateStatus::ALL.map(|status| status.rank()), [1, 2, 3, 4, 5]);
    }
}
