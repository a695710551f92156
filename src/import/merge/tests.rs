//! Imports into a small database.

use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::import::read::options::samples::sample_options;
use crate::import::{ReadOptions, Source, SourceOptions, read_sources};
use crate::model::reference::References;
use crate::model::{Curated, Fields, Id, Message, RecordFields, Timestamp, flat, json};
use crate::store::{Edit, Writer};

/// A database in a folder.
pub struct TestDatabase {
    _folder: tempfile::TempDir,
    writer: Writer,
}

impl TestDatabase {
    pub fn new() -> TestDatabase {
        let folder = tempfile::tempdir().unwrap();
        let writer =
            Writer::open_or_create(&folder.path().join("medfeed.redb"), Duration::ZERO).unwrap();
        TestDatabase {
            _folder: folder,
            writer,
        }
    }

    pub fn edit<T>(&self, change: impl FnOnce(&mut Edit<'_>) -> T) -> T {
        let mut edit = self.writer.begin().unwrap();
        let changed = change(&mut edit);
        edit.commit().unwrap();
        changed
    }

    pub fn state(&self) -> Snapshot {
        self.writer.snapshot().unwrap()
    }

    fn records<F: RecordFields>(&self) -> Vec<Curated<F>> {
        let mut records = Vec::new();
        let read = self
            .state()
            .for_each_record::<F, StoreError>(|record, _, _| {
                records.push(record);
                Ok(())
            });
        read.unwrap();
        records
    }
}

fn read(paths: &[PathBuf], options: &ReadOptions) -> ImportRows {
    let sources = Source::find(paths, SourceOptions::default()).unwrap();
    read_sources(&sources, options).unwrap()
}

/// Runs an import. In `files`, a line `# name` starts the file with that name.
pub fn run(database: &TestDatabase, files: &str, options: MergeOptions) -> Result<Merged, Refusal> {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for file in files.split("# ").filter(|file| !file.trim().is_empty()) {
        let (name, content) = file.split_once('\n').unwrap();
        let path = folder.path().join(name);
        let lines = content
            .lines()
            .map(|line| line.trim_start().to_owned() + "\n");
        fs::write(&path, lines.collect::<String>()).unwrap();
        paths.push(path);
    }
    let rows = read(&paths, &ReadOptions::default());
    merge(rows, &database.state(), &options).map_err(|refusal| match refusal {
        // Removes the name of the temporary folder.
        Refusal::BadRows(bad) => {
            let mut short = Findings::default();
            let folder = format!("{}/", folder.path().display());
            for row in bad.kept() {
                let position = crate::import::findings::FilePosition::new(
                    row.file.as_ref().unwrap().replace(&folder, "").into(),
                    row.line.unwrap(),
                );
                let message = Message {
                    text: row.message.replace(&folder, ""),
                    ..row.message.clone()
                };
                let field = row.field.as_deref();
                short.push(&position, field, row.value.as_deref(), message);
            }
            Refusal::BadRows(Box::new(short))
        }
        other => other,
    })
}

pub fn apply(database: &TestDatabase, batch: Batch) {
    database.edit(|edit| edit.apply(&batch).unwrap());
}

/// Imports files, which must succeed.
pub fn imported(database: &TestDatabase, files: &str) -> Merged {
    run(database, files, MergeOptions::default()).unwrap()
}

/// Imports files and stores their rows.
pub fn store(database: &TestDatabase, files: &str) {
    apply(database, imported(database, files).batch);
}

/// The columns of statuses, which conferences require. Each has the value `check`.
pub const STATUS_COLUMNS: &str =
    "start_date_status,abstract_due_date_status,late_breaking_due_date_status";

/// A table of conferences, with all statuses.
pub fn conferences_csv(columns: &str, rows: &str) -> String {
    let rows = rows.lines().map(|row| format!("{row},check,check,check\n"));
    let rows: String = rows.collect();
    format!("# conferences.csv\n{columns},{STATUS_COLUMNS}\n{rows}")
}

pub const STATUSES: &str = r#""start_date_status":"check","abstract_due_date_status":"check","late_breaking_due_date_status":"check""#;

pub fn sample_database() -> TestDatabase {
    let database = TestDatabase::new();
    let files = format!(
        r#"# organizations.jsonl
        {{"id":1,"name":"ASCO","abbv":"A"}}
        {{"id":2,"name":"ESMO"}}
        {{"id":3,"name":"Unlinked"}}
        # tags.jsonl
        {{"id":1,"type":"Topic","name":"Lung: small cell"}}
        {{"id":2,"type":"Audience","name":"Nurses"}}
        # conferences.jsonl
        {{"id":10,"name":"ASCO 2026","country":"United States","organizations":[1],"tags":[1],"formats":{{"oral":true,"poster":false}},{STATUSES}}}
        {{"id":11,"name":"ESMO 2026","country":"Spain","organizations":[2],{STATUSES}}}
        # journals.jsonl
        {{"id":20,"name":"JCO","organizations":[1],"impact_factor":42.1,"timelines":{{"accept_to_print":{{"min_weeks":2,"max_weeks":4}}}}}}
        "#
    );
    store(&database, &files);
    database
}

/// Returns the database and the warnings after an import in a short form, or the refusal.
fn outcome(files: &str) -> String {
    let database = sample_database();
    let merged = match run(&database, files, MergeOptions::default()) {
        Ok(merged) => merged,
        Err(refusal) => return refusal.to_string(),
    };
    let warnings = merged.warnings.kept().iter().map(|warning| {
        let file = None;
        Finding {
            file,
            ..warning.clone()
        }
        .to_string()
    });
    let warnings: Vec<String> = warnings.collect();
    apply(&database, merged.batch);
    let state = database.state();
    let References {
        organizations,
        tags,
    } = &**state.references().unwrap();
    let label = |(id, label): (&Id, &str)| format!("{id}={label}");
    let organizations = organizations
        .iter()
        .map(|(id, found)| label((id, &found.label)));
    let tags = tags.iter().map(|(id, found)| label((id, &found.label)));
    let conferences = database
        .records::<ConferenceFields>()
        .into_iter()
        .map(|row| {
            let fields = row.fields();
            let (organizations, tags) = (numbers(&fields.organizations), numbers(&fields.tags));
            format!("{}:{organizations:?}{tags:?}", row.id())
        });
    let journals = database
        .records::<JournalFields>()
        .into_iter()
        .map(|row| format!("{}:{:?}", row.id(), numbers(&row.fields().organizations)));
    let links: Vec<String> = conferences.chain(journals).collect();
    let [organizations, tags] = [organizations.collect::<Vec<_>>(), tags.collect()];
    [
        organizations.join(","),
        tags.join(","),
        links.join(" "),
        warnings.join("\n"),
    ]
    .join(" | ")
}

fn numbers(ids: &[Id]) -> Vec<u64> {
    ids.iter().map(|id| id.get()).collect()
}

const SAME: &str = "1=ASCO,2=ESMO,3=Unlinked | 1=Topic: Lung: small cell,2=Audience: Nurses | 10:[1][1] 11:[2][] 20:[1] | ";

#[test]
fn imports_are_checked_against_the_state_after_them() {
    let cases = [
        // Names.
        ("# organizations.csv\nid,name\n1,ESMO\n2,ASCO\n", "1=ESMO,2=ASCO,3=Unlinked"),
        ("# organizations.csv\nid,name\n4,ASCO\n", "organizations.csv:2: name: `ASCO` - is also the name of organization 1 in the database"),
        ("# organizations.csv\nid,name\n4,X\n5,X\n", "organizations.csv:3: name: `X` - is also the name of organization 4 at organizations.csv:2"),
        ("# organizations.csv\nid,name\n4,asco\n", "4=asco"),
        ("# organizations.jsonl\n{\"id\":3,\"deleted\":true}\n{\"id\":4,\"name\":\"Unlinked\"}\n", "1=ASCO,2=ESMO,4=Unlinked |"),
        ("# tags.csv\nid,type,name\n3,Audience,Nurses\n", "tags.csv:2: name: `Audience: Nurses` - is also the name of tag 2"),
        ("# tags.csv\nid,type,name\n3,Topic,Nurses\n", "3=Topic: Nurses"),
        ("# organizations.csv\nid,name\n4,\n", "organizations.csv:2: name: is required"),
        ("# organizations.csv\nid,abbv\n1,B\n", SAME),
        ("# organizations.csv\nid,name\n1,A\n1,B\n", "organizations.csv:2: id: `1` - appears twice, and the rows differ; the other row with this id is at organizations.csv:3"),
        ("# tags.csv\nid,category\n1,X\n# tags.jsonl\n{\"id\":1}\n", "tags.jsonl:1: id: `1` - appears twice, and the rows differ; the other row with this id is at tags.csv:2"),
        // Links by name and id.
        ("# conferences.csv\nid,organizations\n10,ESMO; ASCO; ESMO\n", "10:[1, 2][1]"),
        ("# organizations.csv\nid,name\n1,ESMO\n2,ASCO\n# conferences.csv\nid,organizations\n10,ESMO\n11,ESMO\n", "10:[1][1] 11:[1][]"),
        ("# conferences.csv\nid,organizations\n10,New\n# organizations.csv\nid,name\n4,New\n", "10:[4][1]"),
        ("# conferences.csv\nid,organizations\n10,ASCOO\n", "conferences.csv:2: organizations: `ASCOO` - is not a known organization; did you mean `ASCO`?"),
        ("# conferences.csv\nid,organizations\n10,ASCO\n# organizations.csv\nid,name\n1,X\n", "`ASCO` - is not a known organization"),
        ("# conferences.csv\nid,tags\n10,Topic: Lung: small cell; Audience: Nurses\n", "10:[1][1, 2]"),
        ("# conferences.jsonl\n{\"id\":10,\"tags\":[\"Nurses\"]}\n", "tags: `Nurses` - is not a known tag; write it as `Type: Name`"),
        ("# conferences.jsonl\n{\"id\":10,\"organizations\":[9]}\n", "organizations: `9` - there is no organization with this id"),
        ("# journals.jsonl\n{\"id\":20,\"organizations\":[3,\"ESMO\",3]}\n", "20:[2, 3]"),
        ("# journals.jsonl\n{\"id\":20,\"organizations\":null}\n", "20:[]"),
        // Objects.
        ("# journals.jsonl\n{\"id\":20,\"organizations\":[{\"id\":4,\"name\":\"N\",\"abbv\":null,\"type\":null,\"url\":null}]}\n", "4=N |"),
        ("# journals.jsonl\n{\"id\":20,\"organizations\":[{\"id\":1,\"name\":\"N\",\"abbv\":null,\"type\":null,\"url\":null}]}\n", "1=N,"),
        (
            "# journals.jsonl\n{\"id\":20,\"organizations\":[{\"id\":4,\"name\":\"N\",\"abbv\":null,\"type\":null,\"url\":null}]}
             {\"id\":21,\"name\":\"J\",\"organizations\":[{\"id\":4,\"name\":\"N\",\"abbv\":\"\",\"type\":null,\"url\":null}, \"N\"]}\n",
            "20:[4] 21:[4]",
        ),
        (
            "# journals.jsonl\n{\"id\":20,\"organizations\":[{\"id\":4,\"name\":\"N\",\"abbv\":null,\"type\":null,\"url\":null}]}
             {\"id\":21,\"name\":\"J\",\"organizations\":[{\"id\":4,\"name\":\"N\",\"abbv\":\"n\",\"type\":null,\"url\":\"u\"}]}\n",
            "journals.jsonl:2: organizations: `4` - the object of this organization differs in `abbv`, `url` from the \
             one at journals.jsonl:1",
        ),
        (
            "# organizations.csv\nid,abbv\n1,A\n# journals.jsonl
             {\"id\":20,\"organizations\":[{\"id\":1,\"name\":\"ASCO\",\"abbv\":\"A\",\"type\":null,\"url\":null}]}\n",
            SAME,
        ),
        (
            "# organizations.csv\nid,abbv\n1,A\n# journals.jsonl
             {\"id\":20,\"organizations\":[{\"id\":1,\"name\":\"New\",\"abbv\":\"A\",\"type\":null,\"url\":null}]}\n",
            "journals.jsonl:1: organizations: `1` - the object of this organization differs in `name` from the one at \
             organizations.csv:2",
        ),
        (
            "# organizations.jsonl\n{\"id\":3,\"deleted\":true}\n# journals.jsonl
             {\"id\":20,\"organizations\":[{\"id\":3,\"name\":\"Unlinked\",\"abbv\":null,\"type\":null,\"url\":null}]}\n",
            "journals.jsonl:1: organizations: `3` - the organization is removed at organizations.jsonl:1",
        ),
        (
            "# journals.jsonl\n{\"id\":20,\"organizations\":[{\"id\":4,\"name\":\"ESMO\",\"abbv\":null,\"type\":null,\"url\":null}]}\n",
            "journals.jsonl:1: organizations: `ESMO` - is also the name of organization 2 in the database",
        ),
        // Removals of linked rows.
        ("# organizations.jsonl\n{\"id\":3,\"deleted\":true}\n", "1=ASCO,2=ESMO |"),
        ("# organizations.jsonl\n{\"id\":99,\"deleted\":true}\n", SAME),
        ("# conferences.jsonl\n{\"id\":99,\"deleted\":true}\n", SAME),
        ("# organizations.jsonl\n{\"id\":1,\"deleted\":true}\n", "organizations.jsonl:1: deleted: `1` - the organization is still linked by conference 10, journal 20; remove"),
        ("# organizations.jsonl\n{\"id\":1,\"deleted\":true}\n# journals.csv\nid,organizations\n20,ESMO\n", "still linked by conference 10; remove"),
        (
            "# organizations.jsonl\n{\"id\":1,\"deleted\":true}\n# journals.csv\nid,organizations\n20,\n# conferences.jsonl\n{\"id\":10,\"deleted\":true}\n",
            "2=ESMO,3=Unlinked | 1=Topic: Lung: small cell,2=Audience: Nurses | 11:[2][] 20:[]",
        ),
        ("# tags.jsonl\n{\"id\":1,\"deleted\":true}\n# conferences.csv\nid,tags\n10,\n", "2=Audience: Nurses | 10:[1][]"),
        ("# organizations.jsonl\n{\"id\":3,\"deleted\":true}\n# journals.jsonl\n{\"id\":20,\"organizations\":[3]}\n", "`3` - the organization is removed at organizations.jsonl:1"),
        ("# organizations.jsonl\n{\"id\":3,\"deleted\":true}\n# journals.jsonl\n{\"id\":20,\"organizations\":[\"Unlinked\"]}\n", "the organization of this name is removed at organizations.jsonl:1"),
        // Records.
        ("# conferences.csv\nid,start_date\n10,2026-05-29\n", SAME),
        ("# conferences.csv\nid,start_date_status\n10,confirmed\n", "conferences.csv:2: start_date_status: `confirmed` - needs a date"),
        ("# conferences.csv\nid,name\n12,X\n", "start_date_status: is required"),
        ("# conferences.csv\nid,name\n10,\n", "conferences.csv:2: name: is required"),
        ("# conferences.csv\nid,name\n10,A\n10,B\n", "conferences.csv:3: id: `10` - appears twice"),
        // U+0000.
        ("# conferences.jsonl\n{\"id\":10,\"city\":\"a\\u0000b\"}\n", "conferences.jsonl:1: city: `a\\u{0}b` - contains the character U+0000, which many databases cannot store; remove it"),
        ("# conferences.csv\nid,venue\n10,\0\n", "conferences.csv:2: venue: `\\u{0}` - contains the character U+0000"),
        ("# conferences.csv\nid,therapy_areas\n10,Oncology; Lung\0\n", "conferences.csv:2: therapy_areas: `Lung\\u{0}` - contains the character U+0000"),
        ("# organizations.csv\nid,url\n1,https://a\0\n", "organizations.csv:2: url: `https://a\\u{0}` - contains the character U+0000"),
        ("# tags.jsonl\n{\"id\":2,\"name\":\"Nurses\\u0000\"}\n", "tags.jsonl:1: name: `Nurses\\u{0}` - contains the character U+0000"),
        (
            "# journals.jsonl\n{\"id\":20,\"organizations\":[{\"id\":4,\"name\":\"N\\u0000\",\"abbv\":null,\"type\":null,\"url\":null}]}\n",
            "journals.jsonl:1: organizations.name: `N\\u{0}` - contains the character U+0000",
        ),
        ("# journals.csv\nid,name\n20,a\\u0000\u{1}\n", "20:[1]"),
        // One mistake is reported once.
        ("# conferences.csv\nid,start_date,start_date_status\n10,2026-05,confirmed\n", "conferences.csv:2: start_date: `2026-05` - write a date as YYYY-MM-DD, such as 2026-03-15"),
        ("# organizations.jsonl\n{\"id\":4,\"name\":\"N\",\"url\":[[5]]}\n# journals.jsonl\n{\"id\":20,\"organizations\":[\"N\",4]}\n", "organizations.jsonl:1: url: `[5]` - is a list; write one value"),
        // Warnings.
        ("# conferences.csv\nid,country\n10,USA\n11,U.S.A.\n", "country: `U.S.A.` - is another spelling of `United States` (1 row)"),
        ("# conferences.csv\nid,country\n10,france\n11,France\n", "is another spelling of"),
        ("# journals.csv\nid,name\n20,'=1+1\n", "name: `=1+1` - starts like a formula"),
        ("# journals.csv\nid,name\n", "has no rows, so it changes no journals"),
    ];
    for (files, expected) in cases {
        let outcome = outcome(files);
        assert!(outcome.contains(expected), "{files}\n{outcome}");
        if expected.contains("write a") {
            assert_eq!(outcome.lines().count(), 1, "{files}\n{outcome}");
        }
    }
}

#[test]
fn members_left_out_keep_their_values() {
    let cases = cases![
        r#"{"id":10,"formats":{"poster":true}}"#, [Some(true), Some(true), None];
        r#"{"id":10,"formats":{"oral":null,"encore":true}}"#, [None, Some(false), Some(true)];
        r#"{"id":10,"formats":{}}"#, [Some(true), Some(false), None];
        r#"{"id":10,"formats":null}"#, [None, None, None];
    ];
    for (line, expected) in cases {
        let database = sample_database();
        let merged = imported(&database, &format!("# conferences.jsonl\n{line}\n"));
        let rows: Vec<_> = merged.batch.conferences.into_values().flatten().collect();
        let row = &rows[0];
        let formats = &row.fields().formats;
        let formats = [formats.oral, formats.poster, formats.encore];
        assert_eq!(formats, expected, "{line}");
        assert_eq!(row.fields().name(), "ASCO 2026");
    }
    let cases = cases![
        r#"{"id":20,"timelines":{"accept_to_print":{"min_weeks":null}}}"#, [None, Some(4.0)];
        r#"{"id":20,"timelines":{"accept_to_online":null}}"#, [Some(2.0), Some(4.0)];
        r#"{"id":20,"timelines":{"accept_to_print":null}}"#, [None, None];
        r#"{"id":20,"timelines":{}}"#, [Some(2.0), Some(4.0)];
        r#"{"id":20,"timelines":null}"#, [None, None];
    ];
    for (line, expected) in cases {
        let merged = imported(&sample_database(), &format!("# journals.jsonl\n{line}\n"));
        let rows: Vec<_> = merged.batch.journals.into_values().flatten().collect();
        let row = &rows[0];
        let weeks = &row.fields().timelines.accept_to_print;
        let weeks = [weeks.min_weeks, weeks.max_weeks].map(|weeks| weeks.map(|weeks| weeks.get()));
        assert_eq!(weeks, expected, "{line}");
    }
}

/// Returns all records of a dataset in both export formats.
fn exports<F: RecordFields>(database: &TestDatabase) -> [(&'static str, Vec<u8>); 2] {
    let at = Timestamp::from_unix_s(0);
    let state = database.state();
    let references = &**state.references().unwrap();
    let mut jsonl = Vec::new();
    let mut csv = Vec::new();
    flat::write_row(&mut csv, flat::columns(F::table(), true)).unwrap();
    for row in &database.records::<F>() {
        jsonl.extend(json::render_record(row, at, references));
        jsonl.push(b'\n');
        flat::write_row(&mut csv, flat::cells(row, Some(at), references)).unwrap();
    }
    [("jsonl", jsonl), ("csv", csv)]
}

#[test]
fn reimported_service_records_change_nothing() {
    let database = sample_database();
    let nasty = format!(
        "# organizations.jsonl\n{}\n# conferences.jsonl\n{}\n# journals.jsonl\n{}\n",
        r#"{"id":8,"name":"+Plus: \"x\",\ny"}"#,
        format_args!(
            r#"{{"id":12,"name":"=1, \"x\"\r\n2","city":"'-a","venue":"''","url":" ","organizations":[8,1],"tags":[2],
            "therapy_areas":["a;b"," c","-d","é"],{STATUSES}}}"#
        )
        .to_string()
        .replace('\n', ""),
        r#"{"id":21,"name":"'","sjr":0.30000000000000004,"impact_factor":1e21,"h_index":9007199254740991}"#,
    );
    let merged = imported(&database, &nasty);
    let rules = merged.warnings.kept().iter();
    let rules: Vec<&str> = rules.filter_map(|warning| warning.rule).collect();
    let expected = words![
        "blanks" "formula" "blanks" "formula" "placeholder" "placeholder" "area_spelling" "placeholder"
        "unlikely_number"
    ];
    assert_eq!(rules, expected);
    apply(&database, merged.batch);

    let folder = tempfile::tempdir().unwrap();
    let conferences = exports::<ConferenceFields>(&database).map(|export| ("conferences", export));
    let journals = exports::<JournalFields>(&database).map(|export| ("journals", export));
    for (stem, (ending, content)) in conferences.into_iter().chain(journals) {
        let path = folder.path().join(format!("{stem}.{ending}"));
        fs::write(&path, &content).unwrap();
        let rows = read(&[path], &ReadOptions::default());
        let options = MergeOptions {
            replace: true,
            ..MergeOptions::default()
        };
        let merged = merge(rows, &database.state(), &options).unwrap();
        let (batch, warnings) = (merged.batch, merged.warnings);
        assert!(warnings.is_empty(), "{warnings:?}");
        let expected = if stem == "conferences" { 3 } else { 2 };
        assert_eq!(batch.conferences.len() + batch.journals.len(), expected);
        for (id, row) in batch.conferences {
            assert_eq!(row, database.state().find_stored(id).unwrap(), "{ending}");
        }
        for (id, row) in batch.journals {
            assert_eq!(row, database.state().find_stored(id).unwrap(), "{ending}");
        }
        for (id, row) in batch.organizations {
            let state = database.state();
            let stored = state.references().unwrap().organizations.get(&id);
            assert_eq!(row.as_ref(), stored.map(|found| &found.row), "{ending}");
        }
    }
}

/// JSON lines with these ids and further members.
fn lines(ids: RangeInclusive<u64>, rest: &str) -> String {
    ids.map(|id| format!("{{\"id\":{id},{rest}}}\n")).collect()
}

#[test]
fn many_removals_need_permission() {
    let database = sample_database();
    let rows = lines(100..=217, &format!("\"name\":\"X\",{STATUSES}"));
    store(&database, &format!("# conferences.jsonl\n{rows}"));
    let ids = database.state().record_ids(Dataset::Conferences).unwrap();
    assert_eq!(ids.len(), 120);

    let removed = |ids| format!("# conferences.jsonl\n{}", lines(ids, "\"deleted\":true"));
    let kept = |ids| format!("# conferences.jsonl\n{}", lines(ids, "\"city\":null"));
    let refused =
        "the import would remove 13 of 120 conferences; to allow that, add `--allow-removals 13`";
    let cases = [
        (removed(100..=111), false, None, Ok(12)),
        (removed(100..=112), false, None, Err(refused)),
        (removed(100..=112), false, Some(12), Err(refused)),
        (removed(100..=112), false, Some(13), Ok(13)),
        (removed(300..=400), false, None, Ok(0)),
        // The file also lacks 10 and 11.
        (kept(110..=217), true, None, Ok(12)),
        (kept(111..=217), true, None, Err(refused)),
        (kept(111..=217), true, Some(500), Ok(13)),
        (kept(111..=217), false, None, Ok(0)),
        ("# journals.csv\nid\n20\n".to_owned(), true, None, Ok(0)),
        ("# conferences.csv\nid,name\n".to_owned(), true, None, Ok(0)),
        ("# conferences.jsonl\n\n".to_owned(), true, None, Ok(0)),
    ];
    for (files, replace, allow_removals, expected) in cases {
        let options = MergeOptions {
            replace,
            allow_removals,
            ..MergeOptions::default()
        };
        let outcome = run(&database, &files, options).map_err(|refusal| refusal.to_string());
        let outcome = outcome.map(|merged| {
            let rows = merged.batch.conferences.iter();
            let is_removal = |(id, row): &(&Id, &Option<_>)| row.is_none() && ids.contains(id);
            rows.filter(is_removal).count()
        });
        assert_eq!(outcome, expected.map_err(str::to_owned), "{files}");
    }
}

#[test]
fn removals_are_counted_for_each_dataset() {
    let database = TestDatabase::new();
    let conferences = lines(1..=20, &format!("\"name\":\"X\",{STATUSES}"));
    let journals = lines(1..=40, "\"name\":\"X\"");
    let files = format!("# conferences.jsonl\n{conferences}# journals.jsonl\n{journals}");
    store(&database, &files);
    let gone = |conferences: u64, journals: u64| {
        let [conferences, journals] =
            [conferences, journals].map(|last| lines(1..=last, "\"deleted\":true"));
        format!("# conferences.jsonl\n{conferences}# journals.jsonl\n{journals}")
    };
    let cases = cases![
        (10, 10), None, "";
        (11, 10), None, "11 of 20 conferences; to allow that, add `--allow-removals 11`";
        (10, 11), None, "11 of 40 journals; to allow that, add `--allow-removals 11`";
        (11, 12), None, "11 of 20 conferences and 12 of 40 journals; to allow that, add `--allow-removals 12`";
        (11, 12), Some(12), "";
        (11, 12), Some(11), "remove 12 of 40 journals;";
        (12, 11), Some(11), "remove 12 of 20 conferences;";
    ];
    for ((conferences, journals), allow_removals, expected) in cases {
        let options = MergeOptions {
            allow_removals,
            ..MergeOptions::default()
        };
        let refused = run(&database, &gone(conferences, journals), options).err();
        let refused = refused.map_or_else(String::new, |refusal| refusal.to_string());
        assert!(refused.contains(expected), "{refused}");
        assert_eq!(refused.is_empty(), expected.is_empty(), "{refused}");
    }
}

/// Merges a file whose rows are matched by some fields. A refusal does not name the folder of the file.
fn merge_by(
    database: &TestDatabase,
    matching: &str,
    file: &str,
    rows: &str,
) -> Result<Merged, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    fs::write(&path, rows).unwrap();
    let rows = read(&[path], &sample_options(&[], &[matching]));
    let merged = merge(rows, &database.state(), &MergeOptions::default());
    let folder = format!("{}/", folder.path().display());
    merged.map_err(|refusal| refusal.to_string().replace(&folder, ""))
}

#[test]
fn rows_without_ids_find_their_records() {
    let database = TestDatabase::new();
    let conferences = "10,ESMO Congress,2026\n11,ESMO Congress,2027\n12,ASCO,";
    store(&database, &conferences_csv("id,name,year", conferences));
    let files = "# journals.csv\nid,name,issn_print,issn_online\n20,The Lancet,0140-6736,1474-547X\n21,Lancet Oncology,1470-2045,\n22,Heart & Lung,0147-9563,\n";
    store(&database, files);
    let files = conferences_csv("id,name,therapy_areas", "14,WCLC,Lung; Oncology");
    store(&database, &files);
    let outcome =
        |matching: &str, file: &str, rows: &str| match merge_by(&database, matching, file, rows) {
            Ok(merged) => {
                let conferences = merged.batch.conferences.keys();
                let ids = conferences.chain(merged.batch.journals.keys());
                let ids: Vec<u64> = ids.map(|id| id.get()).collect();
                let assigned = merged.assigned.iter();
                let assigned: Vec<u64> = assigned.filter_map(|row| Some(row.id?.get())).collect();
                format!("{ids:?} new {assigned:?}")
            }
            Err(refusal) => refusal,
        };
    let of_conferences = |columns: &str, rows: &str| -> String {
        let file = conferences_csv(columns, rows);
        file.split_once('\n').unwrap().1.to_owned()
    };
    let conferences = cases![
        "name,year", "ESMO Congress,2026", "[10] new []";
        "name,year", "esmo CONGRÈSS,2027", "[11] new []";
        "name,year", "ÉSMO congress,2027", "[11] new []";
        // Blanks, dashes and apostrophes do not count. Other punctuation does.
        "name,year", "esmo  congress,2027", "[11] new []";
        "name,year", "ESMO-Congress,2027", "[11] new []";
        "name,year", "ESMO’Congress\u{a0},2027", "[11] new []";
        "name,year", "ESMO Congress.,2027", "[15] new [15]";
        "name,year", "ESMO Congress,2028", "[15] new [15]";
        "name,year",
            "ESMO Congress,",
            "conferences.csv:2: id: is missing, and the row may mean conference 10 `ESMO Congress`: `name` agrees, but the row \
             has no `year`; write 10 as the id if it does, or a new id, or fill in what is missing";
        "name,year", "ASCO,2026", "may mean conference 12 `ASCO`: `name` agrees, but the other has no `year`";
        // The same gaps.
        "name,year", "ASCO,", "[12] new []";
        "name,year", "Unknown,", "[15] new [15]";
        "name", "ESMO Congress,2026", "match both 10 and 11";
        "name,year", "A,2026\nB,2026", "[15, 16] new [15, 16]";
        "name,year", "A,2026\na,2026", "[15] new [15]";
        "name,year", "ESMO Congress,2026\nESMO CONGRESS,2026", "[10] new []";
        // A row that names less may mean the row that got a new id, also after another such row.
        "name,year", "A,2026\nA,",
            "conferences.csv:3: id: is missing, and the row may mean the same as conferences.csv:2:";
        "name,year", "X,\nA,2026\nA,", "the row may mean the same as conferences.csv:3: `name` agrees";
        "name,year", "A,\nA,", "[15] new [15]";
        "city", "A,2026", "no column `id`, and none of the columns that identify rows without ids (`city`";
    ];
    for (matching, rows, expected) in conferences {
        let rows = of_conferences("name,year", rows);
        let result = outcome(matching, "conferences.csv", &rows);
        assert!(result.contains(expected), "{matching} {rows}: {result}");
    }
    let numbers = "name,issn_print,issn_online\n";
    let journals = cases![
        "issn_online,issn_print", "The Lancet,0140-6736,1474547x", "[20] new []";
        "issn_online,issn_print", "The Lancet,,1474547x",
            "journal 20 `The Lancet`: `issn_online` agrees, but the row has no `issn_print`";
        "issn_online,issn_print", "LO,1470-2045,1474-5488",
            "journal 21 `Lancet Oncology`: `issn_print` agrees, but the other has";
        // One of the two values differs.
        "issn_online,issn_print", "X,0140-6736,1050-124X", "[23] new [23]";
        "issn_online,issn_print", "The Lancet,,",
            "and so are the fields of --match (`issn_online`, `issn_print`); fill them in";
        // `issn` is either of the two, crosswise.
        "issn", "X,0140-6736,", "[20] new []";
        "issn", "X,,0140-6736", "[20] new []";
        "issn", "X,1474547X,01406736", "[20] new []";
        "issn", "X,1474-547X,", "[20] new []";
        "issn", "X,,1470-2045", "[21] new []";
        "issn", "X,1470-2045,1474-5488", "[21] new []";
        "issn", "X,1050-124X,", "[23] new [23]";
        // An ISSN with a wrong check digit identifies nothing.
        "issn", "X,2222-2222,", "fill them in; only a valid ISSN counts";
        "issn", "The Lancet,,", "and so are the fields of --match (`issn`)";
        "issn", "X,0140-6736,1470-2045", "match both 20 and 21";
        "issn", "X,0140-6736,1474-5488",
            "`issn` match journal 20 `The Lancet`, but its ISSN is 1474-547X and the row has 1474-5488; write 20 as the id";
        "issn", "X,0140-6736,\nY,,1474-547X", "means the same journal as the row at journals.csv:2: both have `issn`";
        "issn,name", "The Lancet,,1474-547X", "[20] new []";
        "issn,name", "Lancet,,1474-547X", "[23] new [23]";
        "issn,name", "The Lancet,,", "journal 20 `The Lancet`: `name` agrees, but the row has no `issn`";
        // Valid ISSNs that contradict each other distinguish journals of one name.
        "name", "The Lancet,1470-2045,",
            "`name` match journal 20 `The Lancet`, but its ISSN is 0140-6736 and the row has 1470-2045";
        "name", "The Lancet,1474-547X,", "[20] new []";
        "name", "The Lancet,1234-5678,", "[20] new []";
        "name", "Lancet Oncology,,1474-5488", "[21] new []";
        // No word is dropped.
        "name", "Heart and Lung,,", "[23] new [23]";
        "name", "HEART & LUNG,,", "[22] new []";
        // A field that journals do not have identifies none.
        "name,year", "The Lancet,,", "[20] new []";
    ];
    for (matching, rows, expected) in journals {
        let result = outcome(matching, "journals.csv", &format!("{numbers}{rows}\n"));
        assert!(result.contains(expected), "{matching} {rows}: {result}");
    }
    let result = outcome("issn_print", "journals.csv", "id,name\n30,New\n");
    assert_eq!(result, "[30] new []");
    // A mark that makes another letter counts.
    let clinics = "# journals.csv\nid,name,url\n24,かんの会,https://Example.org/Liver/é?Q=a\n25,Йога,http://example.org\n26,バス,\n";
    store(&database, clinics);
    let cases = outcomes![
        "がんの会," "Иога," "ハス," "パス," => ("name", "[27] new [27]");
        "か\u{3093}の会," => ("name", "[24] new []");
        "и\u{306}ога," => ("name", "[25] new []");
        "ﾊﾞｽ," => ("name", "[26] new []");
        // An address is exact, but for its scheme and host.
        "A,http://EXAMPLE.org/Liver/é?Q=a" => ("url", "[24] new []");
        "A,https://example.org/liver/é?Q=a" "A,https://example.org/Liver/e?Q=a"
        "A,https://example.org/Liver/é?q=a" "A,https://example.org/Li-ver/é?Q=a"
        "A,https://www.example.org/" "A,ftp://example.org/" => ("url", "[27] new [27]");
        "A,https://example.org/" => ("url", "[25] new []");
    ];
    for (row, (matching, expected)) in cases {
        let result = outcome(matching, "journals.csv", &format!("name,url\n{row}\n"));
        assert!(result.contains(expected), "{matching} {row}: {result}");
    }
    // The order of a list does not count, and its items do.
    let areas = [
        ("WCLC,Oncology; Lung", "[14] new []"),
        ("WCLC,oncology; LUNG; Oncology", "[14] new []"),
        ("WCLC,Lung", "[15] new [15]"),
        ("WCLC,Lun; gOncology", "[15] new [15]"),
    ];
    for (row, expected) in areas {
        let rows = of_conferences("name,therapy_areas", row);
        let result = outcome("name,therapy_areas", "conferences.csv", &rows);
        assert!(result.contains(expected), "{row}: {result}");
    }
    // Ids of the file are taken, also those of later rows.
    let two = |id: &str| {
        format!("{{\"name\":\"B\"}}\n{{\"id\":{id},\"name\":\"New\"}}\n{{\"name\":\"C\"}}\n")
    };
    let shared = "{\"name\":\"b\"}\n{\"id\":50,\"name\":\"B\"}\n".to_owned();
    let city = "{\"name\":\"ASCO\",\"city\":\"Chicago\"}\n".to_owned();
    let cases = cases![
        "journals.jsonl", two("50"), "[50, 51, 52] new [51, 52]";
        "journals.jsonl", two("9007199254740989"), "9007199254740991] new [9007199254740990, 9007199254740991]";
        "journals.jsonl", two("9007199254740990"), "jsonl:3: id: no id is free";
        "tags.csv", "id,type\n1,T\n".to_owned(), "name: is required";
        "conferences.jsonl", city, "[12] new []";
        // A row with an id and one without mean one new record.
        "journals.jsonl", shared, "the same journal as the row at journals.jsonl:2: both have `name`";
    ];
    for (file, rows, expected) in cases {
        let result = outcome("name", file, &rows);
        assert!(result.contains(expected), "{rows}: {result}");
    }
}

/// Files that once overwrote records that they did not mean.
#[test]
fn a_row_that_agrees_in_part_overwrites_nothing() {
    let checks = STATUS_COLUMNS;
    let database = TestDatabase::new();
    let columns = "id,name,abbv,year,start_date";
    let congress = "1,European Hematology Congress,,2026,2026-06-11";
    store(&database, &conferences_csv(columns, congress));
    let journal = "# journals.csv\nid,name,issn_print\n7,Heart & Lung,0147-9563\n";
    store(&database, journal);
    let cases = cases![
        "abbv,year", "conferences.csv",
            format!("name,abbv,year,{checks}\nASCO,ASCO,2026,check,check,check\n"),
            "conference 1 `European Hematology Congress`: `year` agrees, but the other has no `abbv`";
        "name,start_date", "conferences.csv",
            format!("name,year,start_date,{checks}\nEuropean Hematology Congress,2027,,check,check,check\n"),
            "conference 1 `European Hematology Congress`: `name` agrees, but the row has no `start_date`";
        "name", "journals.csv", "name,issn_print\nHeart and Lung,0302-9743\n".to_owned(), "";
        "name", "journals.csv", "name,issn_print\nHeart & Lung,0302-9743\n".to_owned(),
            "journal 7 `Heart & Lung`, but its ISSN is 0147-9563 and the row has 0302-9743";
    ];
    for (matching, file, rows, expected) in cases {
        match merge_by(&database, matching, file, &rows) {
            Ok(merged) => assert!(expected.is_empty() && merged.assigned.len() == 1, "{rows}"),
            Err(told) => {
                assert!(!expected.is_empty(), "{rows}: {told}");
                assert!(told.contains(expected), "{rows}: {told}");
                assert!(told.contains(":2: id:"), "{rows}: {told}");
            }
        }
    }
}

#[test]
fn few_and_many_new_names_are_compared_with_stored_ones() {
    let file = |first: usize, count: usize| {
        let row = |at| format!("{},Heart days,{}\n", first + at, 2000 + at);
        conferences_csv("id,name,year", &(0..count).map(row).collect::<String>())
    };
    let database = sample_database();
    store(&database, &file(101, 12));
    for count in [1, 8, 9, 12] {
        let merged = imported(&database, &file(201, count));
        let rules = merged.warnings.kept().iter().map(|found| found.rule);
        let twins = rules.filter(|rule| *rule == Some("same_name_and_year"));
        assert_eq!(twins.count(), count);
    }
}
