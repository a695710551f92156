//! `medfeed pull` into PostgreSQL, against a real server.

use postgres::types::Type;

use super::postgres_server::Cluster;
use super::pull::{RECORDS, linked_conference, site_with_both};
use super::pulled::{Pulled, exported, held};
use super::site::{STATUSES, Site, conferences_of_version};

#[test]
fn a_comparison_finds_and_repairs_changed_rows_in_postgresql() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let site = site_with_both(RECORDS);
    site.import("conferences.jsonl", linked_conference(5000, 10));
    let pulled = Pulled::in_postgres(&cluster, site);
    pulled.pull("--verify");
    let cases = cases![
        "UPDATE conferences SET json = replace(json::text, 'Conference 5\"', 'Conference 6\"')::json WHERE id = 5",
            "differs from the service's";
        "UPDATE conferences SET json = (json::text || ' ')::json WHERE id = 520", "differs from the service's";
        "DELETE FROM conference_therapy_areas WHERE conference_id = 17; DELETE FROM conferences WHERE id = 17",
            "520 records instead of 521";
        "INSERT INTO conferences (id, json) VALUES (-9, '{\"id\":-9}')", "522 records instead of 521";
        "INSERT INTO conferences (id, json) VALUES (0, '{}'), (9223372036854775807, '{}')",
            "523 records instead of 521";
        "INSERT INTO conferences (id, json) VALUES (-9223372036854775808, '{}')", "522 records instead of 521";
        "DELETE FROM conference_therapy_areas WHERE conference_id = 1; UPDATE conferences SET id = 0 WHERE id = 1",
            "the id of record 0 does not fit its JSON";
        "UPDATE sync SET records = 7 WHERE dataset = 'conferences'", "count of records";
        "UPDATE conferences SET city = 'Elsewhere' WHERE id = 9", "column `city` of record 9";
        "UPDATE conferences SET year = NULL WHERE id = 510", "column `year` of record 510";
        "UPDATE conferences SET start_date = '2099-05-02' WHERE id = 5000", "column `start_date` of record 5000";
        "UPDATE conferences SET updated_at = updated_at - interval '1 s' WHERE id = 9",
            "column `updated_at` of record 9";
        "DELETE FROM conference_organizations", "`conference_organizations` does not fit the JSON of record 5000";
        "INSERT INTO conference_tags VALUES (4, 3)", "`conference_tags` does not fit the JSON of record 4";
        "UPDATE organizations SET name = 'Other'", "`organizations` does not fit";
        "INSERT INTO therapy_areas VALUES ('Stray')", "no record links to";
    ];
    pulled.assert_repaired(&cases);
    // Columns that PostgreSQL derives cannot be written.
    let refused = pulled
        .postgres()
        .batch_execute("UPDATE conferences SET search = ''")
        .unwrap_err();
    let text = format!("{refused:?}");
    assert!(text.contains("generated column"), "{refused:?}");
}

#[test]
fn foreign_schemas_in_postgresql_stay_untouched() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pulled = Pulled::in_postgres(&cluster, site_with_both(RECORDS));
    let other = Pulled::in_postgres(&cluster, site_with_both(RECORDS));
    let to = |more: &str| format!("{}{more}", pulled.copy.display());
    pulled.tamper(
        "CREATE SCHEMA mine; CREATE TABLE mine.copy (name text, value text); INSERT INTO mine.copy VALUES ('format', '1');
         CREATE SCHEMA theirs; CREATE VIEW theirs.x AS SELECT 1 AS x; CREATE SCHEMA empty;
         CREATE SCHEMA granted; GRANT USAGE ON SCHEMA granted TO pg_monitor;
         ALTER DEFAULT PRIVILEGES IN SCHEMA granted GRANT SELECT ON TABLES TO pg_monitor",
    );
    pulled.pull("");
    for (more, code, message) in cases![
        "&schema=mine", 4, "the schema `mine` of";
        "&schema=theirs", 4, "contains objects that `medfeed pull` did not create";
        "&schema=Not-a-name", 2, "is not a valid schema name";
        "&schema=empty", 0, "";
        "&schema=granted", 0, "";
        "&schema=new", 0, "";
        "&schema=select", 0, "";
    ] {
        let done = pulled.run_to(&to(more), ("X", ""), "");
        done.assert_told(code, message);
    }
    let column = pulled.column("SELECT count(*) FROM pg_class WHERE relnamespace IN ('mine'::regnamespace, 'theirs'::regnamespace)");
    assert_eq!(column, ["2"]);
    let column = pulled.column("SELECT count(*) FROM new.conferences");
    assert_eq!(column, ["520"]);
    let readable = "SELECT has_table_privilege('pg_monitor', 'granted.conferences', 'SELECT')";
    assert_eq!(pulled.column(readable), ["true"]);

    // Another service, and another version.
    let before = held(&pulled.copy, "conferences");
    let done = other.run_to(&to(""), ("X", ""), "");
    done.assert_told(4, "is a copy of");
    assert_eq!(held(&pulled.copy, "conferences"), before);
    pulled.tamper("UPDATE copy SET value = '99' WHERE name = 'format'");
    let done = pulled.run("");
    done.assert_told(4, "format 99");
    pulled.tamper("UPDATE copy SET value = '1' WHERE name = 'format'");
    other.import("conferences.jsonl", "{\"id\":7,\"deleted\":true}\n");
    let done = other.run_to(&to(""), ("X", ""), "--reload --dataset conferences");
    assert_eq!(done.code, Some(0), "{done:?}");
    let expected = Some(exported(&mut other.client(), "conferences"));
    assert_eq!(held(&pulled.copy, "conferences"), expected);
    let found = held(&pulled.copy, "journals");
    assert_eq!(found, None, "of the first service nothing is left");
    assert_eq!(pulled.column("SELECT name FROM organizations"), [""; 0]);
}

#[test]
fn tables_of_another_layout_in_postgresql_are_made_anew() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pulled = Pulled::in_postgres(&cluster, site_with_both(RECORDS));
    pulled.pull("");
    let before = held(&pulled.copy, "conferences");
    pulled.tamper(
        "ALTER TABLE conferences ADD COLUMN extra int; UPDATE copy SET value = 'old' WHERE name = 'layout';
         CREATE VIEW mine AS SELECT name FROM conferences",
    );
    let done = pulled.run("");
    done.assert_told(4, "view mine depends on table conferences");
    pulled.tamper("DROP VIEW mine");
    assert!(pulled.pull("").stdout.contains("nothing new"));
    assert_eq!(held(&pulled.copy, "conferences"), before);
    assert_eq!(pulled.pull("--verify").count("nothing new"), 2);
}

#[test]
fn a_reload_makes_missing_tables_and_columns_again_in_postgresql() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pulled = Pulled::in_postgres(&cluster, site_with_both(RECORDS));
    pulled.pull("");
    let reader = format!("reader_of_{}", pulled.database());
    pulled.tamper(&format!(
        "CREATE ROLE {reader}; GRANT SELECT ON ALL TABLES IN SCHEMA medfeed TO {reader};
         CREATE VIEW public.mine AS SELECT name, url FROM conferences;
         CREATE TABLE public.notes (id bigint REFERENCES conferences, text text); INSERT INTO public.notes VALUES (7, 'a note');
         CREATE INDEX by_url ON conferences (url);
         ALTER TABLE conferences ADD COLUMN score int DEFAULT 5; UPDATE conferences SET score = 9 WHERE id = 7"
    ));
    let before = held(&pulled.copy, "conferences").unwrap();
    // (statements, the part of the message)
    let cases = cases![
        "ALTER TABLE conferences DROP COLUMN venue CASCADE", "\"venue\"";
        "ALTER TABLE organizations DROP COLUMN abbv", "\"abbv\"";
        "ALTER TABLE conferences DROP COLUMN city CASCADE", "\"city\"";
        "ALTER TABLE journals RENAME COLUMN h_index TO h", "\"h_index\"";
        "DROP TABLE conference_tags", "\"conference_tags\"";
        "DROP TABLE journals CASCADE", "\"journals\"";
        "DROP TABLE therapy_areas CASCADE", "\"therapy_areas\"";
        "DROP TABLE sync CASCADE", "\"sync\"";
        "ALTER TABLE conferences DROP COLUMN json", "\"json\"";
    ];
    for (sql, part) in cases {
        pulled.tamper(sql);
        let done = pulled.run("");
        assert!(
            done.code == Some(4)
                && done.stderr.contains(part)
                && done.stderr.contains("--reload makes what is missing again"),
            "{sql}: {done:?}"
        );
        pulled.pull("--reload");
        let done = pulled.pull("--verify");
        assert_eq!(done.count("equal to"), 2, "{sql}: {done:?}");
        assert!(!done.stdout.contains("repaired"), "{sql}: {done:?}");
        let found = held(&pulled.copy, "conferences").unwrap();
        assert_eq!(found.lines, before.lines, "{sql}");
        let kept = format!(
            "SELECT concat_ws(' ', text, score, (SELECT count(*) FROM public.mine), to_regclass('by_url'),
                 has_table_privilege('{reader}', 'medfeed.conferences', 'SELECT'),
                 (SELECT count(*) FROM pg_constraint WHERE conrelid = 'public.notes'::regclass AND contype = 'f'),
                 (SELECT count(*) > 0 FROM conferences WHERE search @@ websearch_to_tsquery('simple', 'conference')),
                 (SELECT count(*) FROM pg_views WHERE schemaname = 'medfeed'))
             FROM public.notes JOIN conferences USING (id)"
        );
        let column = pulled.column(&kept);
        assert_eq!(column, ["a note 9 520 by_url t 1 t 6"], "{sql}");
    }
    pulled.tamper(&format!("DROP OWNED BY {reader}; DROP ROLE {reader}"));
}

#[test]
fn every_character_is_kept_in_postgresql() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let site = Site::new();
    site.import(
        "conferences.jsonl",
        format!(
            "{{\"id\":1,\"name\":\"a\\\\b\\\"c\\td\\u2028\\ud83d\\ude00 \\\\u0000 'x' $1 %s\",\"year\":2026,{STATUSES}}}\n\
             {{\"id\":2,\"name\":\"{}\",\"year\":2026,{STATUSES}}}\n",
            "Ångström ".repeat(20)
        ),
    );
    let pulled = Pulled::in_postgres(&cluster, site);
    pulled.pull("--dataset conferences --verify");
    pulled.assert_equal("conferences");
    let row = pulled
        .postgres()
        .query_one("SELECT name FROM conferences WHERE id = 1", &[])
        .unwrap();
    assert_eq!(row.columns()[0].type_(), &Type::TEXT);
    assert!(
        row.get::<_, String>(0)
            .contains("\u{1f600} \\u0000 'x' $1 %s"),
        "{row:?}"
    );
}

#[test]
fn objects_of_others_that_refuse_a_write_are_named_in_postgresql() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pulled = Pulled::in_postgres(&cluster, site_with_both(RECORDS));
    pulled.pull("");
    // All edits fit into one page.
    let edits = conferences_of_version(300, 1) + "{\"id\":520,\"deleted\":true}\n";
    pulled.import("conferences.jsonl", edits);
    // (statements, their undoing, the part of the message)
    let cases: [(&str, &str, &[&str]); 9] = cases![
        "ALTER TABLE conferences ADD COLUMN mine text NOT NULL DEFAULT 'x';
             ALTER TABLE conferences ALTER COLUMN mine DROP DEFAULT;
             CREATE FUNCTION public.watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
             CREATE TRIGGER harmless BEFORE UPDATE ON conferences FOR EACH ROW EXECUTE FUNCTION public.watch()",
            "ALTER TABLE conferences DROP COLUMN mine; DROP TRIGGER harmless ON conferences; DROP FUNCTION public.watch",
            &["the NOT NULL of the column `mine` of the table `conferences` refuses what the service sends"];
        "CREATE TABLE public.notes (conference bigint, CONSTRAINT noted FOREIGN KEY (conference) REFERENCES conferences);
             INSERT INTO public.notes VALUES (520)",
            "DROP TABLE public.notes",
            &["the constraint `noted` of the table `public.notes` refuses what the service sends"];
        "CREATE TABLE notes (conference bigint REFERENCES conferences DEFERRABLE INITIALLY DEFERRED);
             INSERT INTO notes VALUES (520)",
            "DROP TABLE notes",
            &["the constraint `notes_conference_fkey` of the table `notes` refuses what the service sends"];
        "CREATE TABLE public.venues (name text PRIMARY KEY); INSERT INTO public.venues VALUES ('version 0');
             ALTER TABLE conferences ADD CONSTRAINT known FOREIGN KEY (venue) REFERENCES public.venues",
            "ALTER TABLE conferences DROP CONSTRAINT known; DROP TABLE public.venues",
            &["the constraint `known` of the table `conferences` refuses what the service sends"];
        "ALTER TABLE conferences ADD CONSTRAINT old CHECK (venue <> 'version 1')",
            "ALTER TABLE conferences DROP CONSTRAINT old",
            &["the constraint `old` of the table `conferences` refuses what the service sends"];
        "CREATE UNIQUE INDEX one_new ON conferences (venue) WHERE venue = 'version 1';
             CREATE UNIQUE INDEX another ON journals (name)",
            "DROP INDEX one_new; DROP INDEX another",
            &["the unique index `one_new` of the table `conferences` refuses what the service sends"];
        "ALTER TABLE conferences ADD CONSTRAINT single EXCLUDE USING btree (venue WITH =) WHERE (venue = 'version 1')",
            "ALTER TABLE conferences DROP CONSTRAINT single",
            &["the constraint `single` of the table `conferences` refuses what the service sends"];
        "CREATE FUNCTION public.guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not mine'; END $$;
             CREATE TRIGGER guarded BEFORE DELETE ON conferences FOR EACH ROW EXECUTE FUNCTION public.guard()",
            "DROP TRIGGER guarded ON conferences; DROP FUNCTION public.guard",
            &["the trigger `guarded` of the table `conferences` refuses what the service sends"];
        "CREATE FUNCTION public.drop_tags() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
             DELETE FROM conference_therapy_areas; DELETE FROM therapy_areas;
             CREATE TRIGGER dropping BEFORE INSERT ON therapy_areas FOR EACH ROW EXECUTE FUNCTION public.drop_tags()",
            "DROP TRIGGER dropping ON therapy_areas; DROP FUNCTION public.drop_tags",
            &["the trigger `dropping` of the table `therapy_areas` refuses what the service sends"];
    ];
    pulled.assert_refused(&cases);
}
