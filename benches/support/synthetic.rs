//! Synthetic rows: made of a seed and their number alone, so that any one of them can be made again, or changed.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::date;
use medfeed::model::records::{Formats, Publishing, Timelines, Weeks};
use medfeed::model::{
    Access, Conference, ConferenceFields, Curated, DateStatus, Fields, Id, Journal, JournalFields,
    Number, Organization, OrganizationFields, Tag, TagFields,
};
use medfeed::store::Batch;

use super::random::Random;

/// The seed of all rows. Another seed gives other rows of the same sizes.
pub const SEED: u64 = 0x6d65_6466_6565_6431;
/// Conferences of a database of usual size.
pub const CONFERENCES: u64 = 9_000;
/// Journals of a database of usual size.
pub const JOURNALS: u64 = 3_000;
/// Organizations of every database.
pub const ORGANIZATIONS: u64 = 600;
/// Tags of every database.
pub const TAGS: u64 = 48;
/// A conference's JSON in bytes, on average, give or take a tenth. Benchmarks of pages depend on it.
pub const CONFERENCE_JSON_BYTES: usize = 1_200;

/// The therapy area of one conference in two, besides others.
pub const AREA_OF_HALF: &str = "Internal Medicine";
/// The therapy area of one conference in fifty, besides others.
pub const AREA_OF_FIFTIETH: &str = "Hepatology";
/// The therapy area of one conference in a thousand, besides others.
pub const AREA_OF_THOUSANDTH: &str = "Tropical Medicine";

/// A text in every fourth name.
pub const COMMON_TEXT: &str = "congress";
/// A text in about one name in 2,000.
pub const RARE_TEXT: &str = "aerospace";
/// A text in no name.
pub const ABSENT_TEXT: &str = "zymurgy";
/// A country of about one conference in twelve.
pub const COUNTRY: &str = "Germany";
/// An edition year of about one conference in eight.
pub const YEAR: u16 = 2026;

/// The first edition year.
pub const FIRST_YEAR: u64 = 2020;
/// The last edition year.
pub const LAST_YEAR: u64 = 2027;

/// Numbers that keep the random streams of the kinds of rows apart.
const CONFERENCE_STREAM: u64 = 1 << 60;
const JOURNAL_STREAM: u64 = 2 << 60;
const ORGANIZATION_STREAM: u64 = 3 << 60;

/// The therapy areas of most conferences.
pub const AREAS: [&str; 24] = [
    "Allergy and Immunology",
    "Anesthesiology",
    "Cardiology",
    "Dermatology",
    "Emergency Medicine",
    "Endocrinology",
    "Gastroenterology",
    "Geriatrics",
    "Hematology",
    "Infectious Diseases",
    "Nephrology",
    "Neurology",
    "Oncology",
    "Ophthalmology",
    "Orthopedics",
    "Otolaryngology",
    "Pathology",
    "Pediatrics",
    "Psychiatry",
    "Public Health",
    "Pulmonology",
    "Radiology",
    "Rheumatology",
    "Urology",
];
/// Words in names of conferences.
pub const REACHES: [&str; 8] = [
    "International",
    "European",
    "American",
    "Asia-Pacific",
    "World",
    "Nordic",
    "Société française",
    "Ibero-American",
];
const MEETINGS: [&str; 4] = [
    "Congress",
    "Annual Meeting",
    "Symposium",
    "Scientific Sessions",
];
/// Countries and cities of conferences.
pub const PLACES: [(&str, &str); 12] = [
    ("United States", "Chicago"),
    ("United States", "San Francisco"),
    ("United Kingdom", "London"),
    (COUNTRY, "Düsseldorf"),
    ("France", "Paris"),
    ("Spain", "Barcelona"),
    ("Italy", "Milan"),
    ("Japan", "Yokohama"),
    ("Brazil", "São Paulo"),
    ("Netherlands", "Amsterdam"),
    ("Switzerland", "Zürich"),
    ("Singapore", "Singapore"),
];
const TAG_KINDS: [&str; 4] = [
    "Topic area",
    "Audience",
    "Attendee geography",
    "Format of meeting",
];

/// An id from a row's number. Ids leave gaps, as curators' ids do.
pub fn id_of(number: u64) -> Id {
    id(number * 3 + 1)
}

fn id(value: u64) -> Id {
    Id::try_from(value).expect("ids of synthetic rows start at 1")
}

fn curated<F: Fields>(id: Id, fields: F) -> Curated<F> {
    Curated::new(id, fields)
        .unwrap_or_else(|faults| panic!("the synthetic row {id} breaks a rule: {faults:?}"))
}

fn acronym(name: &str) -> String {
    name.split(' ')
        .filter_map(|word| word.chars().next())
        .filter(|letter| letter.is_uppercase())
        .collect()
}

fn links(random: &mut Random, count: u64, of: u64) -> Vec<Id> {
    (0..count).map(|_| id(1 + random.below(of))).collect()
}

/// A conference; another `revision` of the same number differs in its venue alone.
pub fn conference(number: u64, revision: u64) -> Conference {
    let mut random = Random::new(SEED, CONFERENCE_STREAM | number);
    let area = *random.pick(&AREAS);
    let mut therapy_areas = vec![area.to_owned(), (*random.pick(&AREAS)).to_owned()];
    for (name, one_in) in [
        (AREA_OF_HALF, 2),
        (AREA_OF_FIFTIETH, 50),
        (AREA_OF_THOUSANDTH, 1_000),
    ] {
        if random.one_in(one_in) {
            therapy_areas.push(name.to_owned());
        }
    }
    let topic = if random.one_in(2_000) {
        "Aerospace Medicine"
    } else {
        area
    };
    let name = format!(
        "{}. {} {} of {topic} and Related Specialties",
        random.between::<u64>(2, 80),
        random.pick(&REACHES),
        random.pick(&MEETINGS),
    );
    let year = random.between::<u16>(FIRST_YEAR, LAST_YEAR);
    let first_day = date(
        year.try_into().expect("the years are of this century"),
        1,
        1,
    );
    let start = first_day.saturating_add(random.between::<i64>(0, 364).days());
    let abstracts = start.saturating_sub(random.between::<i64>(90, 200).days());
    let has_late_breaking = !random.one_in(3);
    let (country, city) = *random.pick(&PLACES);
    let abbv = acronym(&name);
    let fields = ConferenceFields {
        url: Some(format!(
            "https://www.{}-{year}.example.org/en/programme/overview-{number}",
            abbv.to_lowercase()
        )),
        abbv: random.unless_one_in(10, abbv),
        name: Some(name),
        year: Some(year),
        start_date: Some(start),
        start_date_status: Some(*random.pick(&[
            DateStatus::Confirmed,
            DateStatus::Estimated,
            DateStatus::Copied,
        ])),
        end_date: Some(start.saturating_add(random.between::<i64>(1, 5).days())),
        abstract_due_date: Some(abstracts),
        abstract_due_date_status: Some(
            *random.pick(&[DateStatus::Confirmed, DateStatus::Estimated]),
        ),
        late_breaking_due_date: has_late_breaking.then(|| abstracts.saturating_add(60.days())),
        late_breaking_due_date_status: Some(if has_late_breaking {
            DateStatus::Estimated
        } else {
            DateStatus::NotFound
        }),
        country: Some(country.to_owned()),
        city: Some(city.to_owned()),
        venue: Some(format!("{city} Convention Centre, Hall {}", revision + 1)),
        therapy_areas,
        organizations: {
            let count = random.between(1, 2);
            links(&mut random, count, ORGANIZATIONS).into()
        },
        tags: {
            let count = random.between(2, 5);
            links(&mut random, count, TAGS).into()
        },
        formats: Formats {
            oral: Some(true),
            poster: random.unless_one_in(5, true),
            e_poster: random.unless_one_in(2, false),
            published_abstract: random.unless_one_in(2, true),
            encore: random.unless_one_in(3, false),
        },
    };
    curated(id_of(number), fields)
}

fn hundredths(random: &mut Random, most: u64) -> Option<Number> {
    let value = f64::from(random.between::<u32>(0, most * 100)) / 100.0;
    Some(Number::try_from(value).expect("a metric from 0 is a number"))
}

fn weeks(random: &mut Random) -> Weeks {
    let min = random.between::<u32>(1, 20);
    let number =
        |weeks: u32| Some(Number::try_from(f64::from(weeks)).expect("weeks from 1 are a number"));
    Weeks {
        min_weeks: number(min),
        max_weeks: number(min + random.between::<u32>(1, 20)),
    }
}

/// A journal; another `revision` of the same number differs in its publisher alone.
pub fn journal(number: u64, revision: u64) -> Journal {
    let mut random = Random::new(SEED, JOURNAL_STREAM | number);
    let name = format!(
        "{} Journal of {} {number}",
        random.pick(&REACHES),
        random.pick(&AREAS)
    );
    let issn =
        |random: &mut Random| format!("{:04}-{:04}", random.below(10_000), random.below(10_000));
    let fields = JournalFields {
        abbv: Some(acronym(&name)),
        issn_print: random.unless_one_in(3, "1234-5678".to_owned()),
        issn_online: Some(issn(&mut random)),
        publisher: Some(format!("Publishing House {}", revision + 1)),
        url: Some(format!(
            "https://journals.example.org/{number}/about-this-journal"
        )),
        name: Some(name),
        impact_factor: hundredths(&mut random, 40),
        impact_factor_year: Some(2025),
        citescore: hundredths(&mut random, 60),
        sjr: hundredths(&mut random, 10),
        h_index: Some(random.below(300)),
        publishing: Publishing {
            access: Some(*random.pick(&[Access::Subscription, Access::Hybrid, Access::Open])),
            content_license: random.unless_one_in(2, "CC BY 4.0".to_owned()),
            apc_usd: hundredths(&mut random, 6_000),
            embargo_months: random.unless_one_in(2, 12),
        },
        timelines: Timelines {
            submit_to_first_decision: weeks(&mut random),
            online_submit_to_accept: weeks(&mut random),
            accept_to_online: weeks(&mut random),
            accept_to_print: weeks(&mut random),
        },
        organizations: links(&mut random, 1, ORGANIZATIONS).into(),
        tags: links(&mut random, 3, TAGS).into(),
    };
    curated(id_of(number), fields)
}

fn organization(number: u64) -> Organization {
    let mut random = Random::new(SEED, ORGANIZATION_STREAM | number);
    let name = format!(
        "{} Society for {} {number}",
        random.pick(&REACHES),
        random.pick(&AREAS)
    );
    let fields = OrganizationFields {
        abbv: Some(acronym(&name)),
        kind: Some("Medical society".to_owned()),
        url: Some(format!("https://www.society-{number}.example.org")),
        name: Some(name),
    };
    curated(id(number + 1), fields)
}

fn tag(number: u64) -> Tag {
    // One kind after the other, numbered by the row, so that each is unique.
    let mut kind = TAG_KINDS.into_iter().cycle();
    let kind = kind.nth(usize::try_from(number).expect("tags are few"));
    let fields = TagFields {
        kind: kind.map(str::to_owned),
        name: Some(format!("Choice {}", number + 1)),
        category: number.is_multiple_of(2).then(|| "Content".to_owned()),
    };
    curated(id(number + 1), fields)
}

/// The organizations and tags that all records link to.
pub fn references() -> Batch {
    Batch {
        organizations: (0..ORGANIZATIONS)
            .map(organization)
            .map(|row| (row.id(), Some(row)))
            .collect(),
        tags: (0..TAGS)
            .map(tag)
            .map(|row| (row.id(), Some(row)))
            .collect(),
        ..Batch::default()
    }
}

/// Records by their numbers, in one revision.
pub fn records(
    conferences: impl IntoIterator<Item = u64>,
    journals: impl IntoIterator<Item = u64>,
    revision: u64,
) -> Batch {
    Batch {
        conferences: by_id(conferences, |number| conference(number, revision)),
        journals: by_id(journals, |number| journal(number, revision)),
        ..Batch::default()
    }
}

/// The removal of conferences.
pub fn removals(conferences: impl IntoIterator<Item = u64>) -> Batch {
    Batch {
        conferences: conferences
            .into_iter()
            .map(|number| (id_of(number), None))
            .collect(),
        ..Batch::default()
    }
}

fn by_id<F: Fields>(
    numbers: impl IntoIterator<Item = u64>,
    make: impl Fn(u64) -> Curated<F>,
) -> BTreeMap<Id, Option<Curated<F>>> {
    numbers
        .into_iter()
        .map(make)
        .map(|row| (row.id(), Some(row)))
        .collect()
}
