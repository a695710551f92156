//! Imports into a small database.

use std::fs;
use std::time::Duration;

use super::*;
use crate::import::read::options::samples::sample_options;
use crate::import::{ReadOptions, Source, SourceOptions, read_sources};
use crate::model::reference::References;
use crate::model::{Curated, Fields, Id, Message, RecordFields, Timestamp, flat, json};
use crate::store::{Edit, Writer};

/// A database in a folder.
pub(super) struct TestDatabase {
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

/// Runs an import. In `files`, a line `# name` starts the file with that name.
pub(super) fn run(
    database: &TestDatabase,
    files: &str,
    options: MergeOptions,
) -> Result<Merged, Refusal> {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for file in files.split("# ").filter(|file| !file.trim().is_empty()) {
        let (name, content) = file.split_once('\n').unwrap();
        let path = folder.path().join(name);
        fs::write(
            &path,
            content
                .lines()
                .map(|line| format!("{}\n", line.trim_start()))
                .collect::<String>(),
        )
        .unwrap();
        paths.push(path);
    }
    let rows = read_sources(
        &Source::find(&paths, SourceOptions::default()).unwrap(),
        &ReadOptions::default(),
    )
    .unwrap();
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
                short.push(
                    &position,
                    row.field.as_deref(),
                    row.value.as_deref(),
                    message,
                );
            }
            Refusal::BadRows(Box::new(short))
        }
        other => other,
    })
}

pub(super) fn apply(database: &TestDatabase, batch: Batch) {
    database.edit(|edit| edit.apply(&batch).unwrap());
}

pub(super) const STATUSES: &str = r#""start_date_status":"check","abstract_due_date_status":"check","late_breaking_due_date_status":"check""#;

pub(super) fn sample_database() -> TestDatabase {
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
    let merged = run(&database, &files, MergeOptions::default()).unwrap();
    apply(&database, merged.batch);
    database
}

/// Returns the database and the warnings after an import in a short form, or the refusal.
fn outcome(files: &str) -> String {
    let database = sample_database();
    match run(&database, files, MergeOptions::default()) {
        Ok(merged) => {
            let warnings: Vec<String> = merged
                .warnings
                .kept()
                .iter()
                .map(|warning| {
                    format!(
                        "{}",
                        Finding {
                            file: None,
                            ..warning.clone()
                        }
                    )
                })
                .collect();
            apply(&database, merged.batch);
            let state = database.state();
            let References {
                organizations,
                tags,
            } = &**state.references().unwrap();
            let organizations: Vec<String> = organizations
                .iter()
                .map(|(id, found)| format!("{id}={}", found.label))
                .collect();
            let tags: Vec<String> = tags
                .iter()
                .map(|(id, found)| format!("{id}={}", found.label))
                .collect();
            let conferences = database.records::<ConferenceFields>();
            let journals = database.records::<JournalFields>();
            let mut links: Vec<String> = conferences
                .iter()
                .map(|row| {
                    format!(
                        "{}:{:?}{:?}",
                        row.id(),
                        numbers(&row.fields().organizations),
                        numbers(&row.fields().tags)
                    )
                })
                .collect();
            links.extend(
                journals
                    .iter()
                    .map(|row| format!("{}:{:?}", row.id(), numbers(&row.fields().organizations))),
            );
            [
                organizations.join(","),
                tags.join(","),
                links.join(" "),
                warnings.join("\n"),
            ]
            .join(" | ")
        }
        Err(refusal) => refusal.to_string(),
    }
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
        let merged = run(
            &sample_database(),
            &format!("# conferences.jsonl\n{line}\n"),
            MergeOptions::default(),
        )
        .unwrap();
        let row = merged
            .batch
            .conferences
            .into_values()
            .next()
            .flatten()
            .unwrap();
        let formats = &row.fields().formats;
        assert_eq!(
            [formats.oral, formats.poster, formats.encore],
            expected,
            "{line}"
        );
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
        let merged = run(
            &sample_database(),
            &format!("# journals.jsonl\n{line}\n"),
            MergeOptions::default(),
        )
        .unwrap();
        let row = merged
            .batch
            .journals
            .into_values()
            .next()
            .flatten()
            .unwrap();
        let weeks = &row.fields().timelines.accept_to_print;
        assert_eq!(
            [weeks.min_weeks, weeks.max_weeks].map(|weeks| weeks.map(|weeks| weeks.get())),
            expected,
            "{line}"
        );
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
    let merged = run(&database, &nasty, MergeOptions::default()).unwrap();
    let rules: Vec<&str> = merged
        .warnings
        .kept()
        .iter()
        .filter_map(|warning| warning.rule)
        .collect();
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
        let rows = read_sources(
            &Source::find(&[path], SourceOptions::default()).unwrap(),
            &ReadOptions::default(),
        )
        .unwrap();
        let Merged {
            batch, warnings, ..
        } = merge(
            rows,
            &database.state(),
            &MergeOptions {
                replace: true,
                ..MergeOptions::default()
            },
        )
        .unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(
            batch.conferences.len() + batch.journals.len(),
            if stem == "conferences" { 3 } else { 2 }
        );
        for (id, row) in batch.conferences {
            assert_eq!(row, database.state().find_stored(id).unwrap(), "{ending}");
        }
        for (id, row) in batch.journals {
            assert_eq!(row, database.state().find_stored(id).unwrap(), "{ending}");
        }
        for (id, row) in batch.organizations {
            let state = database.state();
            let stored = state
                .references()
                .unwrap()
                .organizations
                .get(&id)
                .map(|found| &found.row);
            assert_eq!(row.as_ref(), stored, "{ending}");
        }
    }
}

#[test]
fn many_removals_need_permission() {
    let database = sample_database();
    let lines = |ids: std::ops::RangeInclusive<u64>, rest: &str| -> String {
        ids.map(|id| format!("{{\"id\":{id},{rest}}}\n")).collect()
    };
    let rows = lines(100..=217, &format!("\"name\":\"X\",{STATUSES}"));
    let merged = run(
        &database,
        &format!("# conferences.jsonl\n{rows}"),
        MergeOptions::default(),
    )
    .unwrap();
    apply(&database, merged.batch);
    assert_eq!(
        database
            .state()
            .record_ids(Dataset::Conferences)
            .unwrap()
            .len(),
        120
    );

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
        let outcome = run(
            &database,
            &files,
            MergeOptions {
                replace,
                allow_removals,
                ..MergeOptions::default()
            },
        )
        .map(|merged| {
            merged
                .batch
                .conferences
                .values()
                .filter(|row| row.is_none())
                .count()
        })
        .map_err(|refusal| refusal.to_string());
        assert_eq!(outcome, expected.map_err(str::to_owned), "{files}");
    }
}

#[test]
fn removals_are_counted_for_each_dataset() {
    let database = TestDatabase::new();
    let lines = |ids: std::ops::RangeInclusive<u64>, rest: &str| -> String {
        ids.map(|id| format!("{{\"id\":{id},{rest}}}\n")).collect()
    };
    let conferences = lines(1..=20, &format!("\"name\":\"X\",{STATUSES}"));
    let files = format!(
        "# conferences.jsonl\n{conferences}# journals.jsonl\n{}",
        lines(1..=40, "\"name\":\"X\"")
    );
    let merged = run(&database, &files, MergeOptions::default()).unwrap();
    apply(&database, merged.batch);
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
        let refused = run(&database, &gone(conferences, journals), options)
            .err()
            .map(|refusal| refusal.to_string());
        let refused = refused.unwrap_or_default();
        assert!(
            refused.contains(expected) && refused.is_empty() == expected.is_empty(),
            "{refused}"
        );
    }
}

#[test]
fn rows_without_ids_find_their_records() {
    let database = TestDatabase::new();
    let stored = "# conferences.csv\nid,name,year,start_date_status,abstract_due_date_status,late_breaking_due_date_status\n\
         10,ESMO Congress,2026,check,check,check\n11,ESMO Congress,2027,check,check,check\n12,ASCO,,check,check,check\n\
         # journals.csv\nid,name,issn_print,issn_online\n20,The Lancet,0140-6736,1474-547X\n21,Lancet Oncology,1470-2045,\n22,Heart & Lung,0147-9563,\n";
    let merged = run(&database, stored, MergeOptions::default()).unwrap();
    apply(&database, merged.batch);
    let areas = "# conferences.csv\nid,name,therapy_areas,start_date_status,abstract_due_date_status,late_breaking_due_date_status\n\
         14,WCLC,Lung; Oncology,check,check,check\n";
    let merged = run(&database, areas, MergeOptions::default()).unwrap();
    apply(&database, merged.batch);
    let outcome = |matching: &str, file: &str, rows: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        fs::write(&path, rows).unwrap();
        let reading = sample_options(&[], &[matching]);
        let sources = Source::find(&[path], SourceOptions::default()).unwrap();
        match merge(
            read_sources(&sources, &reading).unwrap(),
            &database.state(),
            &MergeOptions::default(),
        ) {
            Ok(merged) => {
                let ids: Vec<u64> = merged
                    .batch
                    .conferences
                    .keys()
                    .chain(merged.batch.journals.keys())
                    .map(|id| id.get())
                    .collect();
                let assigned: Vec<u64> = merged
                    .assigned
                    .iter()
                    .filter_map(|row| Some(row.id?.get()))
                    .collect();
                format!("{ids:?} new {assigned:?}")
            }
            Err(refusal) => refusal
                .to_string()
                .replace(&format!("{}/", folder.path().display()), ""),
        }
    };
    let checks = ",check,check,check";
    let of_conferences = |rows: &str| -> String {
        let head =
            "name,year,start_date_status,abstract_due_date_status,late_breaking_due_date_status\n"
                .to_owned();
        head + &rows
            .lines()
            .map(|row| format!("{row}{checks}\n"))
            .collect::<String>()
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
        let result = outcome(matching, "conferences.csv", &of_conferences(rows));
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
    assert_eq!(
        outcome("issn_print", "journals.csv", "id,name\n30,New\n"),
        "[30] new []"
    );
    // A mark that makes another letter counts.
    let clinics = "# journals.csv\nid,name,url\n24,かんの会,https://Example.org/Liver/é?Q=a\n25,Йога,http://example.org\n26,バス,\n";
    let merged = run(&database, clinics, MergeOptions::default()).unwrap();
    apply(&database, merged.batch);
    let cases = [
        ("name", "がんの会,", "[27] new [27]"),
        ("name", "か\u{3093}の会,", "[24] new []"),
        ("name", "Иога,", "[27] new [27]"),
        ("name", "и\u{306}ога,", "[25] new []"),
        ("name", "ﾊﾞｽ,", "[26] new []"),
        ("name", "ハス,", "[27] new [27]"),
        ("name", "パス,", "[27] new [27]"),
        // An address is exact, but for its scheme and host.
        ("url", "A,http://EXAMPLE.org/Liver/é?Q=a", "[24] new []"),
        ("url", "A,https://example.org/liver/é?Q=a", "[27] new [27]"),
        ("url", "A,https://example.org/Liver/e?Q=a", "[27] new [27]"),
        ("url", "A,https://example.org/Liver/é?q=a", "[27] new [27]"),
        ("url", "A,https://example.org/Li-ver/é?Q=a", "[27] new [27]"),
        ("url", "A,https://example.org/", "[25] new []"),
        ("url", "A,https://www.example.org/", "[27] new [27]"),
        ("url", "A,ftp://example.org/", "[27] new [27]"),
    ];
    for (matching, row, expected) in cases {
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
        let rows = format!(
            "name,therapy_areas,start_date_status,abstract_due_date_status,late_breaking_due_date_status\n{row}{checks}\n"
        );
        let result = outcome("name,therapy_areas", "conferences.csv", &rows);
        assert!(result.contains(expected), "{row}: {result}");
    }
    // Ids of the file are taken, also those of later rows.
    let two = |id: &str| {
        format!("{{\"name\":\"B\"}}\n{{\"id\":{id},\"name\":\"New\"}}\n{{\"name\":\"C\"}}\n")
    };
    assert_eq!(
        outcome("name", "journals.jsonl", &two("50")),
        "[50, 51, 52] new [51, 52]"
    );
    assert_eq!(
        outcome("name", "journals.jsonl", &two("9007199254740989"))
            .matches("9007199254740991")
            .count(),
        2
    );
    assert!(
        outcome("name", "journals.jsonl", &two("9007199254740990"))
            .contains("jsonl:3: id: no id is free")
    );
    assert!(outcome("name", "tags.csv", "id,type\n1,T\n").contains("name: is required"));
    assert_eq!(
        outcome(
            "name",
            "conferences.jsonl",
            "{\"name\":\"ASCO\",\"city\":\"Chicago\"}\n"
        ),
        "[12] new []"
    );
    // A row with an id and one without mean one new record.
    let shared = "{\"name\":\"b\"}\n{\"id\":50,\"name\":\"B\"}\n";
    assert!(
        outcome("name", "journals.jsonl", shared)
            .contains("the same journal as the row at journals.jsonl:2: both have `name`")
    );
}

/// Files that once overwrote records that they did not mean.
#[test]
fn a_row_that_agrees_in_part_overwrites_nothing() {
    let checks = "start_date_status,abstract_due_date_status,late_breaking_due_date_status";
    let stored = format!(
        "# conferences.csv\nid,name,abbv,year,start_date,{checks}\n1,European Hematology Congress,,2026,2026-06-11,check,check,check\n\
         # journals.csv\nid,name,issn_print\n7,Heart & Lung,0147-9563\n"
    );
    let database = TestDatabase::new();
    let merged = run(&database, &stored, MergeOptions::default()).unwrap();
    apply(&database, merged.batch);
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
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        fs::write(&path, &rows).unwrap();
        let reading = sample_options(&[], &[matching]);
        let sources = Source::find(&[path], SourceOptions::default()).unwrap();
        match merge(
            read_sources(&sources, &reading).unwrap(),
            &database.state(),
            &MergeOptions::default(),
        ) {
            Ok(merged) => assert!(expected.is_empty() && merged.assigned.len() == 1, "{rows}"),
            Err(refusal) => {
                let told = refusal.to_string();
                assert!(
                    !expected.is_empty() && told.contains(expected) && told.contains(":2: id:"),
                    "{rows}: {told}"
                );
            }
        }
    }
}

#[test]
fn few_and_many_new_names_are_compared_with_stored_ones() {
    let status = "start_date_status,abstract_due_date_status,late_breaking_due_date_status";
    let file = |first: usize, count: usize| {
        let row = |at| {
            format!(
                "{},Heart days,{},check,check,check\n",
                first + at,
                2000 + at
            )
        };
        let rows: String = (0..count).map(row).collect();
        format!("# conferences.csv\nid,name,year,{status}\n{rows}")
    };
    let database = sample_database();
    let options = MergeOptions::default();
    apply(
        &database,
        run(&database, &file(101, 12), options).unwrap().batch,
    );
    for count in [1, 8, 9, 12] {
        let merged = run(&database, &file(201, count), options).unwrap();
        let rules = merged.warnings.kept().iter().map(|found| found.rule);
        let twins = rules.filter(|rule| *rule == Some("same_name_and_year"));
        assert_eq!(twins.count(), count);
    }
}
