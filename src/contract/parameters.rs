//! Parameters: where they stand, what they take, what they mean.
//!
//! The macro `parameters` makes a declaration into two things: a table, which the parser and the documentation read, and a
//! struct of the same names, which handlers get.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Code;
use crate::model::time::{parse_date, parse_time};
use crate::model::value::ValueKind;
use crate::model::{Dataset, ExportFormat, Id, Number, Timestamp};

/// A request that an endpoint does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRequest {
    /// The kind of error.
    pub code: Code,
    /// The cause, and what to send instead.
    pub detail: String,
}

impl BadRequest {
    /// A parameter that is missing, or has the wrong form or range.
    pub fn parameter(name: &str, rule: impl fmt::Display) -> BadRequest {
        BadRequest { code: Code::InvalidParameter, detail: format!("Parameter `{name}`: {rule}.") }
    }
}

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its name among the components of the OpenAPI document, where endpoints share it.
    pub component: &'static str,
    /// Where it stands.
    pub location: Location,
    /// What it takes.
    pub form: Form,
    /// What becomes of a request without it.
    pub absent: Absent,
    /// What it means, in Markdown with backticks as the only markup.
    pub note: &'static str,
}

impl Parameter {
    /// Reads a decoded value, into the JSON that its field in a struct of parameters is made from.
    ///
    /// # Errors
    /// `invalid_parameter`, with what to send instead.
    pub fn read(&self, text: &str) -> Result<Value, BadRequest> {
        self.form.read(text).map_err(|rule| BadRequest::parameter(self.name, rule))
    }

    /// Reads a decoded value.
    ///
    /// # Errors
    /// `invalid_parameter`, with what to send instead.
    pub fn parse<T: DeserializeOwned>(&self, text: &str) -> Result<T, BadRequest> {
        typed(self.read(text)?)
    }
}

/// What was read, in the type that stands beside its form in the declaration: it fits, or the declaration is wrong.
pub(super) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, BadRequest> {
    serde_json::from_value(value)
        .map_err(|error| BadRequest { code: Code::InternalError, detail: format!("a wrong declaration: {error}") })
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Location {
    /// In the path, as `{name}` of the endpoint's pattern.
    Path,
    /// In the query.
    Query,
    /// Among the headers.
    Header,
}

/// What becomes of a request without a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It is refused.
    Required,
    /// It means something else.
    Optional,
    /// It is taken as this text.
    Default(&'static str),
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The id of a record.
    Id,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// Any number from 0.
    Number,
    /// A text.
    Text,
    /// A text of so many characters (Unicode scalar values), from the first to the second.
    Length(usize, usize),
    /// A cursor. Whatever is wrong with one, it is no value of ours: whoever opens it says so.
    Cursor,
    /// A sync token, likewise.
    SyncToken,
    /// A day.
    Date,
    /// A day or an instant.
    Time,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A list of entity tags, or `*` (RFC 9110, section 13.1.2).
    ETags,
}

/// Times as callers may write them.
pub const TIME_EXAMPLES: [&str; 3] = ["2026-03-15", "2026-03-15T09:30:00Z", "2026-03-15T09:30:00+02:00"];

impl Form {
    /// The form of a filter on fields of a kind.
    fn of(kind: ValueKind) -> Form {
        match kind {
            ValueKind::Text | ValueKind::Texts => Form::Text,
            ValueKind::Integer => Form::Whole(0, Id::MAX.get()),
            ValueKind::Number => Form::Number,
            ValueKind::Year => Form::Whole(1900, 2100),
            ValueKind::Date => Form::Date,
            ValueKind::Flag => Form::Choice(&["true", "false"]),
            ValueKind::Choice(words) | ValueKind::DateStatus(words) => Form::Choice(words),
            ValueKind::Links(_) => Form::Id,
        }
    }

    /// Reads a decoded value, or returns the rule that it breaks.
    fn read(&self, text: &str) -> Result<Value, String> {
        match self {
            Form::Text | Form::Cursor | Form::SyncToken | Form::ETags => Some(text.into()),
            Form::Id => text.parse::<Id>().ok().map(|id| id.get().into()),
            Form::Whole(min, max) => {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                let number = text.parse::<u64>().ok().filter(|number| digits && (min..=max).contains(&number));
                number.map(Value::from)
            }
            Form::Number => text.parse::<Number>().ok().map(|number| number.to_string().into()),
            Form::Choice(values) => values.contains(&text).then(|| text.into()),
            Form::Length(min, max) => {
                let length = text.chars().count();
                if !(min..=max).contains(&&length) {
                    return Err(format!("must have {}, not {length}", self.words()));
                }
                Some(text.into())
            }
            Form::Date => Some(parse_date(text).map_err(|rule| rule.to_string())?.to_string().into()),
            Form::Time => Some(parse_time(text).map_err(|rule| rule.to_string())?.unix_s().into()),
        }
        .ok_or_else(|| format!("must be {}", self.words()))
    }

    /// What it takes, in words.
    pub fn words(&self) -> String {
        let quoted = |values: &[&str], between| {
            values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(between)
        };
        match self {
            Form::Id => format!("a whole number from {} to {}", Id::MIN, Id::MAX),
            Form::Whole(min, max) => format!("a whole number from {min} to {max}"),
            Form::Number => "a number from 0, such as 4.2".to_owned(),
            Form::Length(min, max) => format!("{min} to {max} characters"),
            Form::Date => "`YYYY-MM-DD`".to_owned(),
            Form::Time => quoted(&TIME_EXAMPLES, ", "),
            Form::Choice(values) => quoted(values, " or "),
            Form::Text | Form::Cursor | Form::SyncToken | Form::ETags => "a string".to_owned(),
        }
    }
}

/// A raw identifier without what makes it raw: `r#type` as `type`.
const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Declares the query parameters of a kind of endpoint, in the order in which callers are told of them: field, component,
/// form, what it is when absent, note.
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
            /// The declaration.
            pub const ALL: &[Parameter] = &[$(Parameter {
                name: plain(stringify!($field)),
                component: $component,
                location: Location::Query,
                form: $form,
                absent: $absent,
                note: $note,
            },)+];
        }
    )+};
}

parameters! {
    /// Parameters of lists. Those that filter by a field come from the model's tables ([`ListParameters::of`]).
    ListParameters {
        limit: u16, "Limit", Form::Whole(1, 500), Absent::Default("100"), "Records per page";
        cursor: Option<String>, "Cursor", Form::Cursor, Absent::Optional,
            "The `next_cursor` of the previous page, opaque. It holds for the same filters; `limit` may change";
        updated_since: Option<Timestamp>, "UpdatedSince", Form::Time, Absent::Optional,
            "Only records that were added, changed or entered the license at this date or time or later; UTC when no \
             offset is given. Removals are told by the change feed only. Send when your previous run started, less two \
             minutes, since a change carries the time at which its writing began; not the largest `updated_at` that you \
             hold, which does not move when a record enters the license";
        q: Option<String>, "Q", Form::Length(2, 100), Absent::Optional,
            "Text found anywhere in the {searched}, ignoring case and diacritics";
        ..filters, "The filters by fields, by their names";
    }

    /// What change feeds take.
    ChangesParameters {
        since: Option<String>, "Since", Form::SyncToken, Absent::Optional,
            "Sync token from a previous `next_sync_token`, or from the `X-Sync-Token` header of an export";
        updated_since: Option<Timestamp>, "ChangesUpdatedSince", Form::Time, Absent::Optional,
            "Start from this date or time instead of a token; removals since then are included, and so are records \
             that entered the license since then, whatever their `updated_at` says. UTC when no offset is given. Not \
             together with `since`";
        limit: u16, "ChangesLimit", Form::Whole(1, 1000), Absent::Default("500"), "Entries per page";
        wait: u16, "WaitSeconds", Form::Whole(0, 60), Absent::Default("0"),
            "Seconds that an empty page may be held back: it comes when there is an entry, or when they are over. It counts \
             as one request. An extension: clients may do without it";
        resync: Option<Resync>, "Resync", Form::Choice(&["diff"]), Absent::Optional,
            "With `diff`, a token of before a change of the license goes on too: what entered, changed or left since comes \
             as entries and tombstones, and the next token is of the present license. Without it such a token is answered \
             with 410. An extension: clients may do without it";
    }

    /// What exports take.
    ExportParameters {
        format: ExportFormat, "Format", Form::Choice(&["jsonl", "csv"]), Absent::Default("jsonl"),
            "The format of the file";
    }

    /// What the reference list of tags takes. That of organizations takes the first one.
    ReferenceParameters {
        dataset: Dataset, "QueryDataset", Form::Choice(&DATASETS), Absent::Required,
            "The dataset whose records count";
        r#type: Option<String>, "TagType", Form::Text, Absent::Optional, "Only tags of this type";
    }
}

impl ListParameters {
    /// The declaration for a dataset, with the filters by its fields. Its texts are never freed.
    pub(super) fn of(dataset: Dataset) -> Vec<Parameter> {
        let mut parameters = ListParameters::ALL.to_vec();
        let fields = || Dataset::ALL.into_iter().flat_map(|dataset| &dataset.table().fields);
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
            location: Location::Query,
            form: Form::of(table.fields[filter.field].kind),
            absent: Absent::Optional,
            note: filter.note,
        }));
        parameters
    }
}

/// A name such as `start_date_from` as `StartDateFrom`.
fn camel_case(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(word).collect()
}

/// How a caller comes back after a change of its license.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resync {
    /// By what differs from what it has.
    Diff,
}

/// What other endpoints take.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct NoParameters {}

const DATASETS: [&str; 2] = [Dataset::Conferences.as_str(), Dataset::Journals.as_str()];

/// `{dataset}` of a path.
pub static DATASET: Parameter = in_path("dataset", "Dataset", Form::Choice(&DATASETS), "The dataset");

/// `{id}` of a path.
pub static ID: Parameter = in_path("id", "Id", Form::Id, "The record's id");

const fn in_path(name: &'static str, component: &'static str, form: Form, note: &'static str) -> Parameter {
    Parameter { name, component, location: Location::Path, form, absent: Absent::Required, note }
}

/// The header of conditional requests.
pub static IF_NONE_MATCH: Parameter = Parameter {
    name: "If-None-Match",
    component: "IfNoneMatch",
    location: Location::Header,
    form: Form::ETags,
    absent: Absent::Optional,
    note: "ETags of earlier answers, or `*`; 304 without a body when one is still current",
};

/// The header that asks for a part of a file.
pub static RANGE: Parameter = Parameter {
    name: "Range",
    component: "Range",
    location: Location::Header,
    form: Form::Text,
    absent: Absent::Optional,
    note: "The bytes that are still missing, such as `bytes=1000000-`: 206 with that part. Several ranges at once are \
           ignored; a range beyond the end is 416",
};

/// The header that makes a part of a file conditional.
pub static IF_RANGE: Parameter = Parameter {
    name: "If-Range",
    component: "IfRange",
    location: Location::Header,
    form: Form::ETags,
    absent: Absent::Optional,
    note: "The ETag that came with the bytes that are there already: when the file has changed since, `Range` is ignored, \
           and the answer is 200 with the whole new one",
};
