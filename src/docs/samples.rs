//! Example responses: invented rows, rendered by the code that renders real responses.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::contract::{CodeInfo, Contract, DatasetBody, ProblemBody, Query, Resource, StatusBody};
use crate::model::reference::References;
use crate::model::{
    Conference, Curated, Dataset, Fields, Id, Journal, LicenseId, PerDataset, RecordFields,
    ReferenceFields, Referenced, Timestamp, Witness, json, parse_time,
};
use crate::query::{JsonPage, envelope, item, push_header, push_record, therapy_area, tombstone};
use crate::store::hash;
use crate::token::{Cursor, Sealer, SyncToken};

const ORGANIZATION: &str = r#"{
    "name": "European Society of Cardiology", "abbv": "ESC", "type": "Society", "url": "https://www.escardio.org/"
}"#;

const TAG: &str = r#"{ "type": "Audience", "name": "Physicians" }"#;

const CONFERENCE: &str = r#"{
    "name": "European Society of Cardiology Congress", "abbv": "ESC Congress", "year": 2026,
    "start_date": "2026-08-28", "start_date_status": "confirmed", "end_date": "2026-08-31",
    "abstract_due_date": "2026-02-12", "abstract_due_date_status": "estimated",
    "late_breaking_due_date_status": "not_found",
    "country": "Germany", "city": "Munich", "venue": "Messe München",
    "url": "https://www.escardio.org/Congresses-Events", "therapy_areas": ["Cardiology"],
    "organizations": [{ "id": 12 }], "tags": [{ "id": 31 }],
    "formats": { "oral": true, "poster": true, "encore": false }
}"#;

const JOURNAL: &str = r#"{
    "name": "European Heart Journal", "abbv": "Eur Heart J", "issn_print": "0195-668X", "issn_online": "1522-9645",
    "publisher": "Oxford University Press", "url": "https://academic.oup.com/eurheartj",
    "impact_factor": 37.6, "impact_factor_year": 2025,
    "publishing": { "access": "hybrid", "content_license": "CC BY 4.0", "embargo_months": 12 },
    "timelines": { "online_submit_to_accept": { "min_weeks": 6, "max_weeks": 10.5 } },
    "organizations": [{ "id": 12 }], "tags": [{ "id": 31 }]
}"#;

/// Example rows: a conference, a journal, and the rows that they link to.
pub struct Samples {
    references: References,
    conference: Conference,
    journal: Journal,
    updated_at: Timestamp,
    removed: Id,
}

/// The example rows. A test prevents that a row breaks a rule.
pub static SAMPLES: LazyLock<Samples> =
    LazyLock::new(|| Samples::new().expect("the rows follow the rules"));

impl Samples {
    fn new() -> Option<Samples> {
        let mut references = References::default();
        link(&mut references.organizations, 12, ORGANIZATION)?;
        link(&mut references.tags, 31, TAG)?;
        Some(Samples {
            references,
            conference: row(4711, CONFERENCE)?,
            journal: row(208, JOURNAL)?,
            updated_at: parse_time("2026-03-15T09:30:00Z").ok()?,
            removed: id(4685)?,
        })
    }

    /// Renders the record of a dataset.
    pub fn record(&self, dataset: Dataset) -> Vec<u8> {
        match dataset {
            Dataset::Conferences => {
                json::render_record(&self.conference, self.updated_at, &self.references)
            }
            Dataset::Journals => {
                json::render_record(&self.journal, self.updated_at, &self.references)
            }
        }
    }

    /// Renders a tombstone.
    pub fn tombstone(&self) -> Vec<u8> {
        tombstone(self.removed, self.updated_at)
    }

    /// Renders a response with status 200. `None` for files and for pages of the documentation.
    pub fn answer(&self, resource: Resource) -> Option<Vec<u8>> {
        let mut page = JsonPage::new(0, 0);
        let mut push = |json: Vec<u8>| page.push(hash(&json), &json);
        let item = match resource {
            Resource::List(dataset) => {
                push(self.record(dataset));
                page.end(true, "next_cursor", Some(&self.cursor(dataset)));
                return Some(page.into_json());
            }
            Resource::Changes(dataset) => {
                push(self.tombstone());
                push(self.record(dataset));
                page.end(false, "next_sync_token", Some(&self.sync_token(dataset)));
                return Some(page.into_json());
            }
            Resource::Record(dataset) => {
                return Some([b"{\"data\":", &*self.record(dataset), b"}"].concat());
            }
            Resource::Status => {
                let datasets = PerDataset {
                    conferences: DatasetBody::new(9012, Some(self.updated_at)),
                    journals: DatasetBody::new(3047, None),
                };
                return serde_json::to_vec(&StatusBody::up(self.updated_at.plus_s(75), datasets))
                    .ok();
            }
            Resource::TherapyAreas => {
                therapy_area(self.conference.fields().therapy_areas.first()?, 412)
            }
            Resource::Tags => item(self.references.tags.first_key_value()?.1, 1830),
            Resource::Organizations => item(self.references.organizations.first_key_value()?.1, 3),
            Resource::Export | Resource::Docs | Resource::Explorer => return None,
        };
        Some(envelope(&[item]))
    }

    /// Renders the CSV export of a dataset, uncompressed.
    pub fn csv(&self, dataset: Dataset) -> Option<String> {
        match dataset {
            Dataset::Conferences => self.csv_of(&self.conference),
            Dataset::Journals => self.csv_of(&self.journal),
        }
    }

    fn csv_of<F: RecordFields>(&self, record: &Curated<F>) -> Option<String> {
        let mut csv = Vec::new();
        push_header::<F>(&mut csv).ok()?;
        push_record(&mut csv, record, self.updated_at, &self.references).ok()?;
        String::from_utf8(csv).ok()
    }

    /// Returns a sync token. It is sealed with a secret that no database has.
    pub fn sync_token(&self, dataset: Dataset) -> String {
        let witness = Witness {
            seq: 8,
            lineage: [0; 16],
        };
        let token = SyncToken {
            dataset,
            license: LicenseId(1),
            scope_seq: 1,
            position: 8,
            witness,
        };
        Sealer::new(&[0; 32]).seal_sync_token(&token)
    }

    /// Returns a cursor, sealed with the same secret.
    pub fn cursor(&self, dataset: Dataset) -> String {
        let last_id = self.conference.id().get();
        Sealer::new(&[0; 32]).seal_cursor(&Cursor {
            dataset,
            license: LicenseId(1),
            filters: [0; 16],
            last_id,
        })
    }
}

/// Indents JSON: every member and item gets its own line.
pub fn indented(json: &[u8]) -> String {
    let indented =
        serde_json::from_slice::<Value>(json).and_then(|json| serde_json::to_string_pretty(&json));
    indented.unwrap_or_default()
}

fn id(number: u64) -> Option<Id> {
    Id::try_from(number).ok()
}

/// Reads a row from the JSON of its fields.
fn row<F: Fields>(number: u64, fields: &str) -> Option<Curated<F>> {
    Curated::new(id(number)?, serde_json::from_str(fields).ok()?).ok()
}

/// Adds a row that records can link to.
fn link<F: ReferenceFields>(
    rows: &mut BTreeMap<Id, Referenced<F>>,
    number: u64,
    fields: &str,
) -> Option<()> {
    let row = row(number, fields)?;
    rows.insert(row.id(), Referenced::new(row));
    Some(())
}

/// An example of a request id.
const REQUEST_ID: &str = "0198c2f4-5b1e-7c3a-9d42-6f0a1b2c3d4e";

/// Returns the body that the code's example request gets.
pub fn problem_example(
    contract: &Contract,
    info: &CodeInfo,
    public_url: &str,
) -> ProblemBody<'static> {
    let detail = refusal(contract, info.request)
        .unwrap_or_else(|| info.detail.replace("{public_url}", public_url));
    // The problem's `type`, unless the operator set another one.
    let page_url = format!("{public_url}/docs/errors/{}", info.name);
    ProblemBody::new(info.status, page_url, detail, REQUEST_ID)
}

/// Returns the error that the query parser reports for a request, if any.
fn refusal(contract: &Contract, request: &str) -> Option<String> {
    let (_, target) = request.split_once(' ')?;
    let (path, query) = target.split_once('?')?;
    let endpoint = contract.route(path)?.endpoint;
    Query::of(endpoint, Some(query))
        .parse::<Value>()
        .err()
        .map(|refused| refused.detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CONTRACT;

    #[test]
    fn every_answer_of_json_has_an_example() {
        let samples = &SAMPLES;
        for endpoint in CONTRACT.endpoints {
            let answer = samples.answer(endpoint.resource);
            assert_eq!(
                answer.is_none(),
                endpoint.resource == Resource::Export,
                "{}",
                endpoint.pattern
            );
        }
        for dataset in Dataset::ALL {
            let csv = samples.csv(dataset).unwrap();
            assert_eq!(csv.lines().count(), 2, "{csv}");
        }
    }

    #[test]
    fn indenting_changes_nothing_but_blanks() {
        let samples = &SAMPLES;
        for json in [
            samples.record(Dataset::Conferences),
            br#"{"a":[],"b":{},"c":["{\"x\":[1,2],\\",{"d":null}]}"#.to_vec(),
        ] {
            let lines = indented(&json);
            let value: Value = serde_json::from_slice(&json).unwrap();
            let from_str = serde_json::from_str::<Value>(&lines).unwrap();
            assert_eq!(from_str, value, "{lines}");
        }
        assert_eq!(
            indented(br#"{"a":[],"b":[1,{"c":"x, y"}]}"#),
            "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {\n      \"c\": \"x, y\"\n    }\n  ]\n}"
        );
    }
}
