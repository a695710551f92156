//! Conferences: their fields and rules (README, "Import").

use std::sync::OnceLock;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::curated::{Curated, Fault, Fields, RecordFields, forbid_separator, require_text};
use super::field::{Field, fields};
use super::json::Layout;
use super::license::Rule;
use super::{Dataset, DateStatus, Id, Scope};

/// A conference edition whose rules hold.
pub type Conference = Curated<ConferenceFields>;

/// The fields of a conference edition, apart from its id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named and described by the contract")]
pub struct ConferenceFields {
    pub name: Option<String>,
    pub abbv: Option<String>,
    pub year: Option<u16>,
    pub start_date: Option<Date>,
    pub start_date_status: Option<DateStatus>,
    pub end_date: Option<Date>,
    pub abstract_due_date: Option<Date>,
    pub abstract_due_date_status: Option<DateStatus>,
    pub late_breaking_due_date: Option<Date>,
    pub late_breaking_due_date_status: Option<DateStatus>,
    pub country: Option<String>,
    pub city: Option<String>,
    pub venue: Option<String>,
    pub url: Option<String>,
    pub therapy_areas: Vec<String>,
    pub organizations: Vec<Id>,
    pub tags: Vec<Id>,
    pub formats: Formats,
}

/// Which presentation formats the conference takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named by the contract")]
pub struct Formats {
    pub oral: Option<bool>,
    pub poster: Option<bool>,
    pub e_poster: Option<bool>,
    pub published_abstract: Option<bool>,
    pub encore: Option<bool>,
}

static TABLE: &[Field<ConferenceFields>] = fields!(ConferenceFields:
    Text name;
    Text abbv;
    Year year;
    Date start_date;
    Status start_date_status;
    Date end_date;
    Date abstract_due_date;
    Status abstract_due_date_status;
    Date late_breaking_due_date;
    Status late_breaking_due_date_status;
    Text country;
    Text city;
    Text venue;
    Text url;
    Texts therapy_areas;
    Organizations organizations;
    Tags tags;
    Flag formats.oral;
    Flag formats.poster;
    Flag formats.e_poster;
    Flag formats.published_abstract;
    Flag formats.encore;
);

impl Fields for ConferenceFields {
    const STEM: &'static str = "conferences";

    fn table() -> &'static [Field<Self>] {
        TABLE
    }

    fn layout() -> &'static Layout {
        static LAYOUT: OnceLock<Layout> = OnceLock::new();
        LAYOUT.get_or_init(|| Layout::of_record(TABLE))
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        require_text(self, &TABLE[0], &mut faults);
        check_status("start_date_status", self.start_date_status, self.start_date, &mut faults);
        check_status("abstract_due_date_status", self.abstract_due_date_status, self.abstract_due_date, &mut faults);
        check_status(
            "late_breaking_due_date_status",
            self.late_breaking_due_date_status,
            self.late_breaking_due_date,
            &mut faults,
        );
        match (self.start_date, self.end_date) {
            (None, Some(end)) => {
                faults.push(Fault::of_value("end_date", end, "needs a start_date; give one, or remove the end_date"));
            }
            (Some(start), Some(end)) if end < start => {
                faults.push(Fault::of_value(
                    "end_date",
                    end,
                    format!("is before the start_date {start}; give the same day or a later one"),
                ));
            }
            _ => {}
        }
        for area in &self.therapy_areas {
            if area.is_empty() {
                faults.push(Fault::of("therapy_areas", "holds an empty name; remove it"));
            }
            forbid_separator("therapy_areas", area, "; ", &mut faults);
        }
        faults
    }
}

fn check_status(field: &'static str, status: Option<DateStatus>, date: Option<Date>, faults: &mut Vec<Fault>) {
    match status {
        None => faults.push(Fault::of(
            field,
            "is required; give one of `confirmed`, `estimated`, `copied`, `not_found`, `check`",
        )),
        Some(status) => {
            if let Some(message) = status.fault_with(date.is_some()) {
                faults.push(Fault::of_value(field, status, message));
            }
        }
    }
}

impl RecordFields for ConferenceFields {
    const DATASET: Dataset = Dataset::Conferences;

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn abbv(&self) -> Option<&str> {
        self.abbv.as_deref()
    }

    fn organizations(&self) -> &[Id] {
        &self.organizations
    }

    fn tags(&self) -> &[Id] {
        &self.tags
    }

    fn is_in(&self, scope: &Scope) -> bool {
        scope.shows_conference(self)
    }
}

/// What a scope shows of conferences.
impl Scope {
    /// Whether every given set matches the conference. The dataset is not asked for here.
    pub fn shows_conference(&self, conference: &ConferenceFields) -> bool {
        self.blocking_rules(conference).is_empty()
    }

    /// The sets that do not match the conference, for `medfeed license explain`.
    pub fn blocking_rules(&self, conference: &ConferenceFields) -> Vec<Rule> {
        let mut blocking = Vec::new();
        if let Some(areas) = &self.therapy_areas
            && !conference.therapy_areas.iter().any(|area| areas.contains(area))
        {
            blocking.push(Rule::TherapyAreas);
        }
        if let Some(countries) = &self.countries
            && !conference.country.as_ref().is_some_and(|country| countries.contains(country))
        {
            blocking.push(Rule::Countries);
        }
        if let Some(years) = &self.years
            && !conference.year.is_some_and(|year| years.contains(&year))
        {
            blocking.push(Rule::Years);
        }
        blocking
    }
}
