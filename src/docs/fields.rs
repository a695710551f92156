//! What the fields of the rows mean. Names, order and types come from the model's tables, so that a field can be
//! missing here but never wrong; a test finds what is missing.

use crate::model::field::Kind;
use crate::model::{DateStatus, Fields};

/// What values a documented field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// The id of a row.
    Id,
    /// An instant.
    Timestamp,
    /// A field of the model's tables.
    Of(Kind),
}

/// A field and what a caller should know about it.
#[derive(Clone, Debug)]
pub struct FieldDoc {
    /// The path of JSON keys joined by dots.
    pub name: &'static str,
    /// What values it takes.
    pub value_type: Type,
    /// Whether it can be null. Lists never are.
    pub nullable: bool,
    /// The meaning, in Markdown with backticks as the only markup.
    pub note: &'static str,
}

impl FieldDoc {
    /// The type in words.
    pub fn type_text(&self) -> String {
        let words = match self.value_type {
            Type::Id => "integer",
            Type::Timestamp => "timestamp",
            Type::Of(Kind::Text) => "string",
            Type::Of(Kind::Date) => "date",
            Type::Of(Kind::Status) => "string, a date confidence",
            Type::Of(Kind::Year | Kind::Whole) => "integer",
            Type::Of(Kind::Number) => "number",
            Type::Of(Kind::Flag) => "boolean",
            Type::Of(Kind::Access) => "string",
            Type::Of(Kind::Texts) => "list of strings",
            Type::Of(Kind::Organizations) => "list of organizations",
            Type::Of(Kind::Tags) => "list of tags",
        };
        if self.nullable { format!("{words} or null") } else { words.to_owned() }
    }
}

/// The fields of a record: `id`, those of its table, `updated_at`.
pub fn record_fields<F: Fields>() -> Vec<FieldDoc> {
    let mut fields = reference_fields::<F>();
    fields.push(FieldDoc {
        name: "updated_at",
        value_type: Type::Timestamp,
        nullable: false,
        note: "When the record's content last changed, a change of one of its organizations or tags included",
    });
    fields
}

/// The fields of an organization or tag: `id`, those of its table.
pub fn reference_fields<F: Fields>() -> Vec<FieldDoc> {
    // A row without any value breaks exactly the rules that ask for one.
    let required: Vec<&str> = F::default().faults().into_iter().map(|fault| fault.field).collect();
    let id_note = match F::STEM {
        "conferences" | "journals" => "Key of the record; lists are ordered by it",
        _ => "Key of the row",
    };
    let mut fields = vec![FieldDoc { name: "id", value_type: Type::Id, nullable: false, note: id_note }];
    fields.extend(F::table().iter().map(|field| {
        let is_list = matches!(field.kind, Kind::Texts | Kind::Organizations | Kind::Tags);
        FieldDoc {
            name: field.name,
            value_type: Type::Of(field.kind),
            nullable: !is_list && !required.contains(&field.name),
            note: note(F::STEM, field.name),
        }
    }));
    fields
}

/// The meaning of a date confidence.
pub fn status_meaning(status: DateStatus) -> &'static str {
    match status {
        DateStatus::Confirmed => "Published by the organizer and checked against the official source",
        DateStatus::Estimated => {
            "Projected from the lead times of earlier editions until the organizer announces the date"
        }
        DateStatus::Copied => "Carried forward from the previous edition, awaiting confirmation",
        DateStatus::NotFound => "Looked for, not published yet",
        DateStatus::Check => "Under review by the service operator",
    }
}

/// Whether the date beside a date confidence is there.
pub fn status_date(status: DateStatus) -> &'static str {
    match (status.fault_with(true), status.fault_with(false)) {
        (None, Some(_)) => "always given",
        (Some(_), None) => "always null",
        _ => "given or null",
    }
}

/// The meaning of an object that groups fields, such as `formats`.
pub fn group_note(name: &str) -> &'static str {
    match name {
        "formats" => "Presentation formats that the conference takes; a member is null when unknown",
        "publishing" => "Publishing terms",
        "timelines" => "How long the steps to publication take",
        "submit_to_first_decision" => "From submission to the first decision",
        "online_submit_to_accept" => "From online submission to acceptance",
        "accept_to_online" => "From acceptance to publication online",
        "accept_to_print" => "From acceptance to publication in print",
        _ => "",
    }
}

fn note(stem: &str, name: &str) -> &'static str {
    let notes = match stem {
        "conferences" => CONFERENCE,
        "journals" => JOURNAL,
        "organizations" => ORGANIZATION,
        "tags" => TAG,
        _ => &[],
    };
    notes.iter().find(|(noted, _)| *noted == name).map_or("", |(_, note)| note)
}

const CONFERENCE: &[(&str, &str)] = &[
    ("name", "Conference name; searched by `q`"),
    ("abbv", "Abbreviation or acronym; searched by `q`"),
    ("year", "Edition year"),
    ("start_date", "Start of the meeting"),
    ("start_date_status", "Confidence of `start_date`"),
    ("end_date", "Last day of the meeting; given only with a `start_date`"),
    ("abstract_due_date", "Deadline for abstracts"),
    ("abstract_due_date_status", "Confidence of `abstract_due_date`"),
    ("late_breaking_due_date", "Deadline for late-breaking abstracts"),
    ("late_breaking_due_date_status", "Confidence of `late_breaking_due_date`"),
    ("country", "Host country, spelled as the `country` filter needs it"),
    ("city", "Host city"),
    ("venue", "Venue"),
    ("url", "Website of the conference"),
    ("therapy_areas", "Therapy areas in the order of their code points; in CSV one text, joined by `; `"),
    ("organizations", "Linked organizations in the order of their ids; in CSV their names, joined by `; `"),
    ("tags", "Tags in the order of their ids; in CSV `Type: Name`, joined by `; `"),
    ("formats.oral", "Whether oral presentations are taken"),
    ("formats.poster", "Whether posters are taken"),
    ("formats.e_poster", "Whether electronic posters are taken"),
    ("formats.published_abstract", "Whether abstracts are taken for publication alone"),
    ("formats.encore", "Whether work that was shown elsewhere before is taken"),
];

const JOURNAL: &[(&str, &str)] = &[
    ("name", "Journal name; searched by `q`"),
    ("abbv", "Abbreviated name; searched by `q`"),
    ("issn_print", "ISSN of the printed edition"),
    ("issn_online", "ISSN of the online edition"),
    ("publisher", "Publisher"),
    ("url", "Website of the journal"),
    ("impact_factor", "Impact metric"),
    ("impact_factor_year", "Year of the `impact_factor`"),
    ("citescore", "CiteScore"),
    ("sjr", "SCImago Journal Rank"),
    ("h_index", "h-index"),
    ("publishing.access", "How readers get at articles: `subscription`, `hybrid` or `open`"),
    ("publishing.content_license", "License under which articles are published, such as `CC BY 4.0`"),
    ("publishing.apc_usd", "Article processing charge in US dollars"),
    ("publishing.embargo_months", "Months before an article may be shared freely"),
    ("timelines.submit_to_first_decision.min_weeks", "Submission to first decision, shortest, in weeks"),
    ("timelines.submit_to_first_decision.max_weeks", "Submission to first decision, longest, in weeks"),
    ("timelines.online_submit_to_accept.min_weeks", "Online submission to acceptance, shortest, in weeks"),
    ("timelines.online_submit_to_accept.max_weeks", "Online submission to acceptance, longest, in weeks"),
    ("timelines.accept_to_online.min_weeks", "Acceptance to publication online, shortest, in weeks"),
    ("timelines.accept_to_online.max_weeks", "Acceptance to publication online, longest, in weeks"),
    ("timelines.accept_to_print.min_weeks", "Acceptance to publication in print, shortest, in weeks"),
    ("timelines.accept_to_print.max_weeks", "Acceptance to publication in print, longest, in weeks"),
    ("organizations", "Linked organizations in the order of their ids; in CSV their names, joined by `; `"),
    ("tags", "Tags in the order of their ids; in CSV `Type: Name`, joined by `; `"),
];

const ORGANIZATION: &[(&str, &str)] = &[
    ("name", "Name; no two organizations share one"),
    ("abbv", "Abbreviation"),
    ("type", "Kind of organization"),
    ("url", "Website"),
];

const TAG: &[(&str, &str)] = &[
    ("type", "Kind of tag, for example a topic area, an audience or an attendee geography"),
    ("name", "Name; no two tags share both type and name"),
    ("category", "Group within the type"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, JournalFields, OrganizationFields, TagFields};

    #[test]
    fn every_field_has_a_note_and_every_note_a_field() {
        fn check<F: Fields>(notes: &[(&str, &str)]) {
            let noted: Vec<&str> = notes.iter().map(|(name, _)| *name).collect();
            let named: Vec<&str> = F::table().iter().map(|field| field.name).collect();
            assert_eq!(noted, named, "{}", F::STEM);
            for field in reference_fields::<F>() {
                assert!(!field.note.is_empty(), "{}", field.name);
                for (at, _) in field.name.match_indices('.') {
                    let group = field.name[..at].rsplit('.').next().unwrap();
                    assert!(!group_note(group).is_empty(), "{group}");
                }
            }
        }
        check::<ConferenceFields>(CONFERENCE);
        check::<JournalFields>(JOURNAL);
        check::<OrganizationFields>(ORGANIZATION);
        check::<TagFields>(TAG);
    }

    #[test]
    fn only_required_fields_and_lists_are_never_null() {
        fn never_null<F: Fields>() -> Vec<&'static str> {
            record_fields::<F>().iter().filter(|field| !field.nullable).map(|field| field.name).collect()
        }
        assert_eq!(
            never_null::<ConferenceFields>(),
            [
                "id",
                "name",
                "start_date_status",
                "abstract_due_date_status",
                "late_breaking_due_date_status",
                "therapy_areas",
                "organizations",
                "tags",
                "updated_at"
            ]
        );
        assert_eq!(never_null::<JournalFields>(), ["id", "name", "organizations", "tags", "updated_at"]);
    }

    #[test]
    fn a_status_says_whether_its_date_is_there() {
        let dates = DateStatus::ALL.map(status_date);
        assert_eq!(dates, ["always given", "always given", "always given", "always null", "given or null"]);
    }
}
