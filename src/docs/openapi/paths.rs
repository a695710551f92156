//! The endpoints: one function per shape of endpoint, shared by the two datasets.

use serde_json::{Value, json};

use super::responses::{bad_request, ok, ok_file, problem};
use super::{component, object};
use crate::model::Dataset;

const LIST_DESCRIPTION: &str = "\
Records ordered by `id`, a page at a time. Filters combine with AND. Pass `next_cursor` as `cursor`, with the same \
filters, until `has_more` is false.";

const CHANGES_DESCRIPTION: &str = "\
Every record added, changed or removed after the token, each once, in its current state, oldest change first. Every \
entry means: replace the local copy of this id by the entry, or delete it when the entry is a tombstone. Apply the \
page, save `next_sync_token`, and call again at once while `has_more` is true.

With neither `since` nor `updated_since`, `data` is empty and `next_sync_token` marks the present moment. A record can \
occasionally be delivered twice. When an organization or a tag changes, the records that carry it come back.";

const EXPORT_DESCRIPTION: &str = "\
All visible records of the dataset as one file. `jsonl` is a gzip file of JSON Lines, one record per line in the shape \
of the lists. `csv` is one flat table (UTF-8 with a byte-order mark, `formats.oral` as the column `formats_oral`, list \
items separated by `; `, booleans `TRUE` or `FALSE`), sent with `Content-Encoding: gzip`, which clients must accept.

After loading the file, continue the change feed with `since` set to the header `X-Sync-Token`.";

/// The path items, by path below the base address.
pub fn all() -> Value {
    let mut paths = Vec::new();
    for dataset in Dataset::ALL {
        paths.push((format!("/{dataset}"), list(dataset)));
        paths.push((format!("/{dataset}/{{id}}"), single(dataset)));
        paths.push((format!("/{dataset}/changes"), changes(dataset)));
    }
    paths.push(("/exports/{dataset}".to_owned(), export()));
    paths.push(("/reference/therapy-areas".to_owned(), therapy_areas()));
    paths.push(("/reference/tags".to_owned(), tags()));
    paths.push(("/reference/organizations".to_owned(), organizations()));
    paths.push(("/status".to_owned(), status()));
    object(paths)
}

/// What a dataset is called in tags, operation ids and schemas.
fn names(dataset: Dataset) -> (&'static str, &'static str) {
    match dataset {
        Dataset::Conferences => ("Conferences", "Conference"),
        Dataset::Journals => ("Journals", "Journal"),
    }
}

fn list(dataset: Dataset) -> Value {
    let (plural, singular) = names(dataset);
    let mut parameters = vec!["Limit", "Cursor", "UpdatedSince", "Q"];
    if dataset == Dataset::Conferences {
        parameters.extend(["Year", "StartDateFrom", "StartDateTo", "Country", "TherapyArea"]);
    }
    parameters.push("IfNoneMatch");
    Operation {
        id: format!("list{plural}"),
        tag: plural,
        summary: format!("A page of {dataset}"),
        description: LIST_DESCRIPTION,
        parameters: &parameters,
        ok: ok("A page of records", &format!("{singular}Page"), &["ETag"]),
        bad_request: &["invalid_parameter", "unknown_parameter", "invalid_cursor"],
        others: &KEYED_AND_REVALIDATED,
    }
    .path_item()
}

fn single(dataset: Dataset) -> Value {
    let (plural, singular) = names(dataset);
    let mut others = KEYED_AND_REVALIDATED.to_vec();
    others.push(("404", "NotFound"));
    Operation {
        id: format!("get{singular}"),
        tag: plural,
        summary: format!("One of the {dataset} by its id"),
        description: "A record outside the license, or a removed one, is answered like one that never existed.",
        parameters: &["Id", "IfNoneMatch"],
        ok: ok("The record", &format!("{singular}Single"), &["ETag"]),
        bad_request: &["unknown_parameter"],
        others: &others,
    }
    .path_item()
}

fn changes(dataset: Dataset) -> Value {
    let (plural, singular) = names(dataset);
    let mut others = KEYED.to_vec();
    others.push(("410", "ResyncRequired"));
    Operation {
        id: format!("list{singular}Changes"),
        tag: plural,
        summary: format!("Changes of {dataset} since a sync token"),
        description: CHANGES_DESCRIPTION,
        parameters: &["Since", "ChangesUpdatedSince", "ChangesLimit"],
        ok: ok("A page of changes", &format!("{singular}Changes"), &[]),
        bad_request: &["invalid_parameter", "unknown_parameter", "invalid_sync_token"],
        others: &others,
    }
    .path_item()
}

fn export() -> Value {
    Operation {
        id: "exportDataset".to_owned(),
        tag: "Exports",
        summary: "A whole dataset as one file".to_owned(),
        description: EXPORT_DESCRIPTION,
        parameters: &["Dataset", "Format"],
        ok: ok_file(),
        bad_request: &["invalid_parameter", "unknown_parameter"],
        others: &KEYED,
    }
    .path_item()
}

fn therapy_areas() -> Value {
    Operation {
        id: "listTherapyAreas".to_owned(),
        tag: "Reference lists",
        summary: "Therapy areas of the visible conferences".to_owned(),
        description: "Alphabetical. Needs the dataset `conferences` in the license.",
        parameters: &["IfNoneMatch"],
        ok: ok("All therapy areas", "TherapyAreaList", &["ETag"]),
        bad_request: &["unknown_parameter"],
        others: &KEYED_AND_REVALIDATED,
    }
    .path_item()
}

fn tags() -> Value {
    Operation {
        id: "listTags".to_owned(),
        tag: "Reference lists",
        summary: "Tags that visible records of a dataset carry".to_owned(),
        description: "Ordered by type, then by name.",
        parameters: &["QueryDataset", "TagType", "IfNoneMatch"],
        ok: ok("All tags", "TagList", &["ETag"]),
        bad_request: &["invalid_parameter", "unknown_parameter"],
        others: &KEYED_AND_REVALIDATED,
    }
    .path_item()
}

fn organizations() -> Value {
    Operation {
        id: "listOrganizations".to_owned(),
        tag: "Reference lists",
        summary: "Organizations that visible records of a dataset are linked to".to_owned(),
        description: "Ordered by name.",
        parameters: &["QueryDataset", "IfNoneMatch"],
        ok: ok("All organizations", "OrganizationList", &["ETag"]),
        bad_request: &["invalid_parameter", "unknown_parameter"],
        others: &KEYED_AND_REVALIDATED,
    }
    .path_item()
}

fn status() -> Value {
    let mut item = Operation {
        id: "getStatus".to_owned(),
        tag: "Status",
        summary: "Whether the service is up, and how large and recent the datasets are".to_owned(),
        description: "Needs no key and uses up none of its requests. The counts are those of the whole service, not \
                      of a license.",
        parameters: &[],
        ok: ok("The service is up", "Status", &[]),
        bad_request: &["unknown_parameter"],
        others: &ANY,
    }
    .path_item();
    // An empty list takes back the document's default: no key.
    item["get"]["security"] = json!([]);
    item
}

/// Errors of every endpoint.
const ANY: [(&str, &str); 3] = [("405", "MethodNotAllowed"), ("500", "InternalError"), ("503", "Unavailable")];

/// Errors of every endpoint that needs a key.
const KEYED: [(&str, &str); 6] =
    [("401", "Unauthorized"), ("403", "Forbidden"), ("429", "RateLimited"), ANY[0], ANY[1], ANY[2]];

/// The same where `If-None-Match` is heeded.
const KEYED_AND_REVALIDATED: [(&str, &str); 7] =
    [("304", "NotModified"), KEYED[0], KEYED[1], KEYED[2], KEYED[3], KEYED[4], KEYED[5]];

/// What differs between endpoints.
struct Operation<'a> {
    id: String,
    tag: &'a str,
    summary: String,
    description: &'a str,
    /// Names among the document's parameters.
    parameters: &'a [&'a str],
    ok: Value,
    /// The codes of status 400 that are its own.
    bad_request: &'a [&'a str],
    /// The other statuses, with their names among the document's responses.
    others: &'a [(&'a str, &'a str)],
}

impl Operation<'_> {
    fn path_item(self) -> Value {
        let mut responses = vec![("200", self.ok), ("400", problem(&bad_request(self.bad_request)))];
        responses.extend(self.others.iter().map(|(status, name)| (*status, component("responses", name))));
        let parameters: Vec<Value> = self.parameters.iter().map(|name| component("parameters", name)).collect();
        json!({
            "get": {
                "operationId": self.id,
                "tags": [self.tag],
                "summary": self.summary,
                "description": self.description,
                "parameters": parameters,
                "responses": object(responses),
            },
        })
    }
}
