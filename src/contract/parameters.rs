//! The parameters.
//!
//! From one declaration, the macro `parameters` makes a table for parser and documentation, and a struct for handlers.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Code;
use crate::model::{
    Dataset, ExportFormat, Id, Joined, Number, Timestamp, ValueKind, parse_date, parse_time,
};

/// A request that an endpoint rejects.
#[derive(Debug, PartialEq, Eq)]
pub struct BadRequest {
    /// The error code.
    pub code: Code,
    /// The cause and the remedy.
    pub detail: String,
}

impl BadRequest {
    /// Returns the error of a parameter that is missing or invalid. `rule` says what to send.
    pub fn parameter(name: &str, rule: impl fmt::Display) -> BadRequest {
        BadRequest {
            code: Code::InvalidParameter,
            detail: format!("Parameter `{name}`: {rule}."),
        }
    }
}

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The name in the components of the OpenAPI document. Endpoints with the same parameter share it.
    pub component: &'static str,
    /// The location in the request: `path`, as `{name}` in the endpoint's pattern, `query` or `header`.
    pub location: &'static str,
    /// The allowed values.
    pub form: ParameterForm,
    /// The handling of requests without the parameter.
    pub absent: WhenAbsent,
    /// The meaning, in Markdown. Backticks are the only markup.
    pub note: &'static str,
}

impl Parameter {
    /// Parses a decoded value into the JSON from which the handler's struct is deserialized.
    ///
    /// # Errors
    /// `invalid_parameter`, with a remedy.
    pub fn read(&self, text: &str) -> Result<Value, BadRequest> {
        self.form
            .read(text)
            .map_err(|rule| BadRequest::parameter(self.name, rule))
    }

    /// Parses a decoded value.
    pub fn parse<T: DeserializeOwned>(&self, text: &str) -> Result<T, BadRequest> {
        typed(self.read(text)?)
    }
}

/// Deserializes a parsed value. Fails only if the declared type does not match the declared form.
pub(super) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, BadRequest> {
    serde_json::from_value(value).map_err(|error| BadRequest {
        code: Code::InternalError,
        detail: format!("a wrong declaration: {error}"),
    })
}

/// The handling of requests without a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAbsent {
    /// The request is rejected.
    Required,
    /// The request may lack it.
    Optional,
    /// The parameter gets this value.
    Default(&'static str),
}

/// The values that a parameter allows.
#[allow(missing_docs, reason = "the names explain the other variants")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterForm {
    /// The id of a record.
    Id,
    /// A whole number in this range, inclusive.
    Whole(u64, u64),
    /// A number from 0.
    Number,
    Text,
    /// A text with a number of characters (Unicode scalar values) in this range, inclusive.
    Length(usize, usize),
    /// A cursor. Opening it checks it, so that all invalid values get the same error.
    Cursor,
    /// A sync token, checked like a cursor.
    SyncToken,
    Date,
    /// A date or a date-time.
    Time,
    Choice(&'static [&'static str]),
    /// A list of entity tags, or `*` (RFC 9110, section 13.1.2).
    ETags,
}

/// Examples of times in all supported forms.
pub const TIME_EXAMPLES: [&str; 3] = [
    "2026-03-15",
    "2026-03-15T09:30:00Z",
    "2026-03-15T09:30:00+02:00",
];

impl ParameterForm {
    /// Returns the form of a filter on fields of a kind.
    pub fn of(kind: ValueKind) -> ParameterForm {
        match kind {
            ValueKind::Text | ValueKind::Texts => ParameterForm::Text,
            ValueKind::Integer => ParameterForm::Whole(0, Id::MAX.get()),
            ValueKind::Number => ParameterForm::Number,
            ValueKind::Year => ParameterForm::Whole(1900, 2100),
            ValueKind::Date => ParameterForm::Date,
            ValueKind::Flag => ParameterForm::Choice(&["true", "false"]),
            ValueKind::Choice(words) | ValueKind::DateStatus(words) => ParameterForm::Choice(words),
            ValueKind::Links(_) => ParameterForm::Id,
        }
    }

    /// Parses a decoded value, or returns the rule that it breaks.
    fn read(&self, text: &str) -> Result<Value, String> {
        match self {
            ParameterForm::Text
            | ParameterForm::Cursor
            | ParameterForm::SyncToken
            | ParameterForm::ETags => Some(text.into()),
            ParameterForm::Id => text.parse::<Id>().ok().map(|id| id.get().into()),
            ParameterForm::Whole(min, max) => {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                let number = text
                    .parse::<u64>()
                    .ok()
                    .filter(|number| digits && (min..=max).contains(&number));
                number.map(Value::from)
            }
            ParameterForm::Number => text
                .parse::<Number>()
                .ok()
                .map(|number| number.to_string().into()),
            ParameterForm::Choice(values) => values.contains(&text).then(|| text.into()),
            ParameterForm::Length(min, max) => {
                let length = text.chars().count();
                if !(min..=max).contains(&&length) {
                    return Err(format!("must have {}, not {length}", self.words()));
                }
                Some(text.into())
            }
            ParameterForm::Date => Some(
                parse_date(text)
                    .map_err(|rule| rule.to_string())?
                    .to_string()
                    .into(),
            ),
            ParameterForm::Time => Some(
                parse_time(text)
                    .map_err(|rule| rule.to_string())?
                    .unix_s()
                    .into(),
            ),
        }
        .ok_or_else(|| format!("must be {}", self.words()))
    }

    /// Describes the form in words.
    pub fn words(&self) -> String {
        let quoted = |values: &[&str], between| {
            values
                .iter()
                .map(|value| format!("`{value}`"))
                .joined(between)
        };
        match self {
            ParameterForm::Id => format!("a whole number from {} to {}", Id::MIN, Id::MAX),
            ParameterForm::Whole(min, max) => format!("a whole number from {min} to {max}"),
            ParameterForm::Number => "a number from 0, such as 4.2".to_owned(),
            ParameterForm::Length(min, max) => format!("{min} to {max} characters"),
            ParameterForm::Date => "`YYYY-MM-DD`".to_owned(),
            ParameterForm::Time => quoted(&TIME_EXAMPLES, ", "),
            ParameterForm::Choice(values) => quoted(values, " or "),
            ParameterForm::Text
            | ParameterForm::Cursor
            | ParameterForm::SyncToken
            | ParameterForm::ETags => "a string".to_owned(),
        }
    }
}

/// Removes the prefix of a raw identifier: `r#type` becomes `type`.
const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Declares the query parameters of a kind of endpoint, in the order of the documentation: field, type, component,
/// form, handling if absent, note.
macro_rules! parameters {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $type:ty, $component:literal, $form:expr, $absent:expr, $note:literal;)+ $(.. $rest:ident, $rest_note:literal;)? }
    )+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
        pub struct $name {
            $(#[doc = $note] pub $field: $type,)+
            $(#[doc = $rest_note] #[serde(flatten)] pub $rest: Map<String, Value>,)?
        }

        impl $name {
            /// The declarations.
            pub const ALL: &[Parameter] = &[$(Parameter {
                name: plain(stringify!($field)),
                component: $component,
                location: "query",
                form: $form,
                absent: $absent,
                note: $note,
            },)+];
        }
    )+};
}

parameters! {
    /// The parameters of lists. The filters on fields come from the model's tables ([`ListParameters::of`]).
    ListParameters {
        limit: u16, "Limit", ParameterForm::Whole(1, 500), WhenAbsent::Default("100"), "Records per page";
        cursor: Option<String>, "Cursor", ParameterForm::Cursor, WhenAbsent::Optional,
            "The `next_cursor` of the previous page, opaque. Use it with the same filters; `limit` may change";
        updated_since: Option<Timestamp>, "UpdatedSince", ParameterForm::Time, WhenAbsent::Optional,
            "Only records that were added, changed or entered the license at this date or time or later; UTC if no \
             offset is given. Only the change feed reports removals. Send the start time of your previous run, minus \
             two minutes, because a change has the time at which its writing began. Do not send the largest \
             `updated_at` that you have: it does not change when a record enters the license";
        q: Option<String>, "Q", ParameterForm::Length(2, 100), WhenAbsent::Optional,
            "Text found anywhere in the {searched}, ignoring case, the width of letters, diacritics of Latin and Greek letters, \
             points of Hebrew and Arabic, and the kinds of apostrophes and dashes. Marks that make another letter count, \
             as in が and й";
        ..filters, "The filters by fields, by their names";
    }

    /// The parameters of change feeds.
    ChangesParameters {
        since: Option<String>, "Since", ParameterForm::SyncToken, WhenAbsent::Optional,
            "Sync token from a previous `next_sync_token`, or from the `X-Sync-Token` header of an export";
        updated_since: Option<Timestamp>, "ChangesUpdatedSince", ParameterForm::Time, WhenAbsent::Optional,
            "Start from this date or time instead of a token; removals since then are included, and so are records \
             that entered the license since then, whatever their `updated_at` says. UTC when no offset is given. Not \
             together with `since`";
        limit: u16, "ChangesLimit", ParameterForm::Whole(1, 1000), WhenAbsent::Default("500"), "Entries per page";
        wait: u16, "WaitSeconds", ParameterForm::Whole(0, 60), WhenAbsent::Default("0"),
            "Seconds that the answer may wait for an entry. It comes after 45 seconds at the latest, because proxies close \
             connections that are silent for longer. It counts as one request. An extension: clients need not use it";
        resync: Option<String>, "Resync", ParameterForm::Choice(&["diff"]), WhenAbsent::Optional,
            "With `diff`, a token from before a change of the license continues: records that entered, changed or \
             left since then come as entries and tombstones, and the next token belongs to the present license. \
             Without it, such a token gets 410. An extension: clients need not use it";
    }

    /// The parameters of exports.
    ExportParameters {
        format: ExportFormat, "Format", ParameterForm::Choice(&["jsonl", "csv"]), WhenAbsent::Default("jsonl"),
            "The format of the file";
    }

    /// The parameters of the reference list of tags. That of organizations has only the first one.
    ReferenceParameters {
        dataset: Dataset, "QueryDataset", ParameterForm::Choice(&DATASETS), WhenAbsent::Required,
            "The dataset whose records count";
        r#type: Option<String>, "TagType", ParameterForm::Text, WhenAbsent::Optional, "Only tags of this type";
    }
}

impl ListParameters {
    /// Returns the declarations for a dataset, with the filters on its fields. Leaks their texts.
    pub(super) fn of(dataset: Dataset) -> Vec<Parameter> {
        let mut parameters = ListParameters::ALL.to_vec();
        let fields = || {
            Dataset::ALL
                .into_iter()
                .flat_map(|dataset| &dataset.table().fields)
        };
        let mut searched: Vec<&str> = Vec::new();
        for name in fields().filter_map(|field| field.uses.searched) {
            if !searched.contains(&name) {
                searched.push(name);
            }
        }
        let searched = searched.join(" or the ");
        for parameter in &mut parameters {
            parameter.note = parameter.note.replace("{searched}", &searched).leak();
        }
        let table = dataset.table();
        parameters.extend(table.filters.iter().map(|filter| Parameter {
            name: &filter.name,
            component: camel_case(&filter.name).leak(),
            location: "query",
            form: ParameterForm::of(table.fields[filter.field].kind),
            absent: WhenAbsent::Optional,
            note: filter.note,
        }));
        parameters
    }
}

fn camel_case(name: &str) -> String {
    name.split('_')
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect()
}

const DATASETS: [&str; 2] = [Dataset::Conferences.as_str(), Dataset::Journals.as_str()];

/// The path parameter `{dataset}`.
pub static DATASET: Parameter = in_path(
    "dataset",
    "Dataset",
    ParameterForm::Choice(&DATASETS),
    "The dataset",
);

/// The path parameter `{id}`.
pub static ID: Parameter = in_path("id", "Id", ParameterForm::Id, "The record's id");

const fn in_path(
    name: &'static str,
    component: &'static str,
    form: ParameterForm,
    note: &'static str,
) -> Parameter {
    Parameter {
        name,
        component,
        location: "path",
        form,
        absent: WhenAbsent::Required,
        note,
    }
}

const fn header(
    name: &'static str,
    component: &'static str,
    form: ParameterForm,
    note: &'static str,
) -> Parameter {
    Parameter {
        name,
        component,
        location: "header",
        form,
        absent: WhenAbsent::Optional,
        note,
    }
}

/// The header of conditional requests.
pub static IF_NONE_MATCH: Parameter = header(
    "If-None-Match",
    "IfNoneMatch",
    ParameterForm::ETags,
    "ETags of earlier answers, or `*`; 304 without a body when one is still current",
);

/// The header that requests a part of a file.
pub static RANGE: Parameter = header(
    "Range",
    "Range",
    ParameterForm::Text,
    "The bytes that are still missing, such as `bytes=1000000-`: 206 with that part. Several ranges at once are \
     ignored; a range beyond the end is 416",
);

/// The header that makes a part of a file conditional.
pub static IF_RANGE: Parameter = header(
    "If-Range",
    "IfRange",
    ParameterForm::ETags,
    "The ETag of the bytes that you have already. If the file has changed since, `Range` is ignored, and the \
     answer is 200 with the whole new file",
);
