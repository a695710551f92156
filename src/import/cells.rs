//! The values of fields, as both formats write them.

use std::fmt::Display;

use super::json::{Json, Members};
use super::names::did_you_mean;
use super::report::{RowFaults, shortened};
use super::rows::{Cell, Link, NoLinks};
use crate::model::field::Kind;
use crate::model::flat::{ITEM_SEPARATOR, unguard_formula};
use crate::model::id::NotAnId;
use crate::model::journal::NotAnAccess;
use crate::model::reference::ReferenceFields;
use crate::model::status::NotAStatus;
use crate::model::time::parse_date;
use crate::model::{Curated, Id, Number};

const LAST_WHOLE: u64 = Id::MAX.get();

/// The value of a CSV cell; `None` when it is bad, which is then reported.
pub fn cell_of_text(kind: Kind, text: &str, field: &str, faults: &mut RowFaults<'_>) -> Option<Cell> {
    if text.is_empty() {
        return Some(Cell::Null);
    }
    let read = match kind {
        Kind::Text => Ok(Cell::Text(unguard_formula(text).to_owned())),
        Kind::Year => whole_of_text(text).and_then(year).ok_or_else(|| expected(kind).to_owned()),
        Kind::Whole => whole_of_text(text).and_then(whole).ok_or_else(|| expected(kind).to_owned()),
        Kind::Number => text.parse().map(Cell::Number).map_err(|_| expected(kind).to_owned()),
        Kind::Flag => match text {
            "TRUE" | "true" => Ok(Cell::Flag(true)),
            "FALSE" | "false" => Ok(Cell::Flag(false)),
            _ => Err("write TRUE or FALSE".to_owned()),
        },
        Kind::Date | Kind::Status | Kind::Access => named(kind, text),
        Kind::Texts => items_of_text(text).map(|items| Cell::Texts(items.map(str::to_owned).collect())),
        Kind::Organizations => items_of_text(text).map(|items| Cell::Organizations(items.map(label).collect())),
        Kind::Tags => items_of_text(text).map(|items| Cell::Tags(items.map(label).collect())),
    };
    read.map_err(|message| faults.push_value(&field, text, message)).ok()
}

/// The value of a JSON member; `None` when it is bad, which is then reported.
pub fn cell_of_json(kind: Kind, json: Json<'_>, field: &dyn Display, faults: &mut RowFaults<'_>) -> Option<Cell> {
    match (kind, json) {
        (_, Json::Null) => Some(Cell::Null),
        (_, Json::Text(text)) if text.is_empty() => Some(Cell::Null),
        (Kind::Text, Json::Text(text)) => Some(Cell::Text(text.into_owned())),
        (Kind::Date | Kind::Status | Kind::Access, Json::Text(text)) => {
            named(kind, &text).map_err(|message| faults.push_value(field, &text, message)).ok()
        }
        (Kind::Flag, Json::Flag(value)) => Some(Cell::Flag(value)),
        (Kind::Texts, Json::List(items)) => {
            let read = items.into_iter().map(|item| match item {
                Json::Text(text) => Some(text.into_owned()),
                other => {
                    let message = format!("an item is {}; write a text in quotes", other.type_name());
                    faults.push_value(field, &other.to_string(), message);
                    None
                }
            });
            collect_all(read).map(Cell::Texts)
        }
        (Kind::Organizations, Json::List(items)) => links_of_json(items, field, faults).map(Cell::Organizations),
        (Kind::Tags, Json::List(items)) => links_of_json(items, field, faults).map(Cell::Tags),
        (kind, json) => {
            let cell = match (kind, &json) {
                (Kind::Year, Json::Whole(value)) => year(*value),
                (Kind::Whole, Json::Whole(value)) => whole(*value),
                (Kind::Number, json) => number_of_json(json).map(Cell::Number),
                _ => None,
            };
            if cell.is_none() {
                let is_number = matches!(json, Json::Whole(_) | Json::Negative(_) | Json::Fraction(_));
                let message = match (kind, &json) {
                    (Kind::Year | Kind::Whole | Kind::Number, _) if is_number => expected(kind).to_owned(),
                    (Kind::Year | Kind::Whole | Kind::Number | Kind::Flag, Json::Text(_)) => {
                        format!("is a text; {}, without quotes", expected(kind))
                    }
                    _ => format!("is {}; {}", json.type_name(), expected(kind)),
                };
                faults.push_value(field, &json.to_string(), message);
            }
            cell
        }
    }
}

/// What to write in a field of the kind.
fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "write a text in quotes",
        Kind::Date => "write a date as a text, such as \"2026-03-15\"",
        Kind::Status => "write one of the texts `confirmed`, `estimated`, `copied`, `not_found`, `check`",
        Kind::Year => "write a year from 1900 to 2100",
        Kind::Whole => "write a whole number from 0 to 9007199254740991, without a fraction",
        Kind::Number => "write a number from 0, such as 4.2",
        Kind::Flag => "write true or false",
        Kind::Access => "write one of the texts `subscription`, `hybrid`, `open`",
        Kind::Texts => "write a list of texts, such as [\"Oncology\"]",
        Kind::Organizations => "write a list whose items are ids, names or full objects, such as [\"ASCO\"]",
        Kind::Tags => "write a list whose items are ids, texts `Type: Name` or full objects",
    }
}

/// The kinds that are one text of a fixed form in both formats.
fn named(kind: Kind, text: &str) -> Result<Cell, String> {
    match kind {
        Kind::Date => parse_date(text).map(Cell::Date).map_err(|error| error.to_string()),
        Kind::Status => text.parse().map(Cell::Status).map_err(|error: NotAStatus| error.to_string()),
        Kind::Access => text.parse().map(Cell::Access).map_err(|error: NotAnAccess| error.to_string()),
        _ => Err(expected(kind).to_owned()),
    }
}

fn year(value: u64) -> Option<Cell> {
    u16::try_from(value).ok().filter(|year| (1900..=2100).contains(year)).map(Cell::Year)
}

fn whole(value: u64) -> Option<Cell> {
    (value <= LAST_WHOLE).then_some(Cell::Whole(value))
}

/// Digits without sign or leading zero, as the service itself writes whole numbers.
fn whole_of_text(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

fn number_of_json(json: &Json<'_>) -> Option<Number> {
    match json {
        // Through its text, which is how a whole number beyond 2^53 finds the nearest value.
        Json::Whole(value) => value.to_string().parse().ok(),
        Json::Fraction(value) => Number::try_from(*value).ok(),
        _ => None,
    }
}

/// The items of a list in a CSV cell.
fn items_of_text(text: &str) -> Result<std::str::Split<'_, &'static str>, String> {
    let items = unguard_formula(text).split(ITEM_SEPARATOR);
    if items.clone().any(str::is_empty) {
        return Err("an item is empty; separate items by one `; `, with none at the beginning or end".to_owned());
    }
    Ok(items)
}

fn label<F>(text: &str) -> Link<F> {
    Link::Label(text.to_owned())
}

fn links_of_json<F: ReferenceFields>(
    items: Vec<Json<'_>>,
    field: &dyn Display,
    faults: &mut RowFaults<'_>,
) -> Option<Vec<Link<F>>> {
    collect_all(items.into_iter().map(|item| match item {
        Json::Text(text) if !text.is_empty() => Some(Link::Label(text.into_owned())),
        Json::Object(members) => object(members, field, faults).map(Link::Object),
        Json::Whole(number) if Id::try_from(number).is_ok() => Id::try_from(number).ok().map(Link::Id),
        other => {
            let message = format!("an item is no {}; write its id, its name or the full object", F::KIND);
            faults.push_value(field, &other.to_string(), message);
            None
        }
    }))
}

/// A full object within a list of links: it has all members of its kind and no others.
fn object<F: ReferenceFields>(
    members: Members<'_>,
    field: &dyn Display,
    faults: &mut RowFaults<'_>,
) -> Option<Curated<F>> {
    let names = || std::iter::once("id").chain(F::table().iter().map(|member| member.name));
    let mut missing: Vec<&str> = names().collect();
    let (mut id, mut fields, mut is_bad) = (None, F::default(), false);
    for (key, value) in members {
        missing.retain(|name| *name != key);
        let path = format_args!("{field}.{key}");
        if key == "id" {
            id = id_of_json(&value, &path, faults);
        } else if let Some(member) = F::table().iter().find(|member| member.name == key) {
            match cell_of_json(member.kind, value, &path, faults) {
                Some(cell) => cell.write((member.slot)(&mut fields), &mut NoLinks),
                None => is_bad = true,
            }
        } else {
            let known: Vec<&str> = names().collect();
            let remedy = did_you_mean(&key, &known, faults);
            faults.push(&path, format!("unknown member `{}`; {remedy}", shortened(&key)));
            is_bad = true;
        }
    }
    for name in &missing {
        faults.push(
            &format_args!("{field}.{name}"),
            "is missing; a full object has all its members (null where empty); else write just the id or the name",
        );
    }
    // The object is complete, so its own rules can be judged here.
    match id {
        Some(id) if !is_bad && missing.is_empty() => {
            Curated::new(id, fields).map_err(|found| faults.push_faults(Some(field), &found)).ok()
        }
        _ => None,
    }
}

/// An id in JSON, a number in integer notation; `None` when it is bad, which is then reported.
pub fn id_of_json(json: &Json<'_>, field: &dyn Display, faults: &mut RowFaults<'_>) -> Option<Id> {
    if let Json::Whole(number) = json
        && let Ok(id) = Id::try_from(*number)
    {
        return Some(id);
    }
    faults.push_value(field, &json.to_string(), format!("{NotAnId}, without quotes or fraction"));
    None
}

/// All items, or none when one is bad; every bad one is met on the way.
fn collect_all<T>(items: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let mut all_good = true;
    let good = items.inspect(|item| all_good &= item.is_some()).flatten().collect();
    if all_good { Some(good) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::bounds::Bounds;
    use crate::import::json::parse;
    use crate::import::report::{BadRows, Place};

    /// The cell in its debug form, or the messages of its faults.
    fn shown(read: impl FnOnce(&mut RowFaults<'_>) -> Option<Cell>) -> String {
        let place = Place { file: "f".into(), line: 1 };
        let mut bad = BadRows::default();
        let cell = read(&mut RowFaults::new(&place, &mut bad));
        assert_eq!(cell.is_none(), !bad.is_empty(), "what is bad is reported, and nothing else is");
        cell.map_or_else(|| bad.to_string(), |cell| format!("{cell:?}"))
    }

    #[test]
    fn csv_cells_are_read() {
        let cases = [
            (Kind::Text, "", "Null"),
            (Kind::Text, " a ", "Text(\" a \")"),
            (Kind::Text, "'=1", "Text(\"=1\")"),
            (Kind::Text, "'tis", "Text(\"'tis\")"),
            (Kind::Date, "2026-02-28", "Date(2026-02-28)"),
            (Kind::Date, "2026-02-29", "`2026-02-29` - write a date as YYYY-MM-DD, such as 2026-03-15"),
            (Kind::Status, "not_found", "Status(NotFound)"),
            (Kind::Status, "Confirmed", "write one of"),
            (Kind::Year, "1900", "Year(1900)"),
            (Kind::Year, "2101", "from 1900 to 2100"),
            (Kind::Year, "2026.0", "from 1900 to 2100"),
            (Kind::Year, "+2026", "from 1900 to 2100"),
            (Kind::Whole, "0", "Whole(0)"),
            (Kind::Whole, "007", "write a whole number"),
            (Kind::Whole, "9007199254740992", "write a whole number"),
            (Kind::Number, "4.20", "Number(Number(4.2))"),
            (Kind::Number, "4,2", "write a number from 0"),
            (Kind::Number, "-1", "write a number from 0"),
            (Kind::Number, "NaN", "write a number from 0"),
            (Kind::Number, "1e999", "write a number from 0"),
            (Kind::Flag, "TRUE", "Flag(true)"),
            (Kind::Flag, "false", "Flag(false)"),
            (Kind::Flag, "yes", "write TRUE or FALSE"),
            (Kind::Access, "open", "Access(Open)"),
            (Kind::Access, "gold", "`subscription`, `hybrid`, `open`"),
            (Kind::Texts, "a; b", "Texts([\"a\", \"b\"])"),
            (Kind::Texts, "a;b", "Texts([\"a;b\"])"),
            (Kind::Texts, "'+a; b", "Texts([\"+a\", \"b\"])"),
            (Kind::Texts, "a; ; b", "an item is empty"),
            (Kind::Texts, "a; ", "an item is empty"),
            (Kind::Tags, "Topic: A: B", "Tags([Label(\"Topic: A: B\")])"),
            (Kind::Organizations, "'-X", "Organizations([Label(\"-X\")])"),
        ];
        for (kind, text, expected) in cases {
            let read = shown(|faults| cell_of_text(kind, text, "x", faults));
            assert!(read.contains(expected), "{kind:?} {text:?}: {read}");
        }
    }

    #[test]
    fn json_values_are_read() {
        let cases = [
            (Kind::Text, "null", "Null"),
            (Kind::Text, r#""""#, "Null"),
            (Kind::Text, r#""'=1""#, "Text(\"'=1\")"),
            (Kind::Text, "5", "`5` - is a number; write a text in quotes"),
            (Kind::Date, r#""2026-02-28""#, "Date(2026-02-28)"),
            (Kind::Date, r#""2026-13-01""#, "`2026-13-01` - write a date as YYYY-MM-DD"),
            (Kind::Date, r#""""#, "Null"),
            (Kind::Date, "20260228", "is a number; write a date"),
            (Kind::Status, r#""check""#, "Status(Check)"),
            (Kind::Year, "2026", "Year(2026)"),
            (Kind::Year, "2026.0", "`2026.0` - write a year"),
            (Kind::Year, r#""2026""#, "is a text; write a year"),
            (Kind::Year, "1899", "write a year"),
            (Kind::Whole, "9007199254740991", "Whole(9007199254740991)"),
            (Kind::Whole, "9007199254740992", "write a whole number"),
            (Kind::Whole, "-1", "`-1` - write a whole number"),
            (Kind::Whole, "1e2", "`100.0` - write a whole number"),
            (Kind::Number, "4", "Number(Number(4.0))"),
            (Kind::Number, "4.25", "Number(Number(4.25))"),
            (Kind::Number, "1e3", "Number(Number(1000.0))"),
            (Kind::Number, "-0.0", "Number(Number(0.0))"),
            (Kind::Number, "-4", "`-4` - write a number from 0"),
            (Kind::Number, r#""4""#, "is a text; write a number"),
            (Kind::Flag, "true", "Flag(true)"),
            (Kind::Flag, r#""TRUE""#, "is a text; write true or false"),
            (Kind::Flag, "1", "is a number; write true or false"),
            (Kind::Texts, r#"["a","a"]"#, "Texts([\"a\", \"a\"])"),
            (Kind::Texts, "[]", "Texts([])"),
            (Kind::Texts, "null", "Null"),
            (Kind::Texts, r#""a""#, "is a text; write a list"),
            (Kind::Texts, r#"["a",5,null]"#, "`5` - an item is a number"),
            (Kind::Tags, r#"[5,"T: A: B"]"#, "Tags([Id(Id(5)), Label(\"T: A: B\")])"),
            (Kind::Tags, "[0]", "`0` - an item is no tag"),
            (Kind::Tags, "[5.0]", "`5.0` - an item is no tag"),
            (Kind::Tags, r#"[""]"#, "an item is no tag"),
            (Kind::Tags, "[null]", "`null` - an item is no tag"),
            (Kind::Tags, r#"[{"id":5,"type":"T","name":"N","category":null}]"#, "Object(Curated"),
            (Kind::Tags, r#"[{"id":5,"type":"T","name":"N","category":""}]"#, "category: None"),
            (Kind::Tags, r#"[{"id":5,"type":"T","name":"N"}]"#, "x.category: is missing"),
            (Kind::Tags, r#"[{"id":5,"type":"T: U","name":"N","category":null}]"#, "x.type: `T: U` - must not contain"),
            (Kind::Tags, r#"[{"id":5,"type":null,"name":"N","category":null}]"#, "x.type: is required"),
            (
                Kind::Tags,
                r#"[{"id":5,"type":"T","nam":"N","category":1}]"#,
                "x.nam: unknown member `nam`; did you mean `name`?",
            ),
            (
                Kind::Tags,
                r#"[{"id":"5","type":"T","name":"N","category":null}]"#,
                "x.id: `5` - an id is a whole number",
            ),
            (Kind::Organizations, r#"[{"id":5,"name":"; ","abbv":null,"type":"T","url":null}]"#, "x.name: `; `"),
            (Kind::Organizations, r#"{"id":5}"#, "`{\"id\":5}` - is an object; write a list"),
        ];
        for (kind, text, expected) in cases {
            let read = shown(|faults| cell_of_json(kind, parse(text, &Bounds::default()).unwrap(), &"x", faults));
            assert!(read.contains(expected), "{kind:?} {text}: {read}");
        }
    }
}
