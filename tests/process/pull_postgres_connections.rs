//! Connections of `medfeed pull` to PostgreSQL: permissions, refusals of the server, and connections that break.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use super::postgres_server::{Cluster, PASSWORD, USER};
use super::pull::{RECORDS, site_with_both};
use super::pulled::{Pulled, exported, first_line, held};
use super::site::{Process, SOON, conferences_of_version, wait_for, wait_until};

#[test]
fn a_follower_continues_over_a_restart_of_postgresql() {
    let Some(cluster) = Cluster::start().map(Arc::new) else {
        return;
    };
    let pulled = Pulled::in_postgres(&cluster, site_with_both(RECORDS));
    let mut follower = Process::spawn(&mut pulled.command(&pulled.url(), "--follow --every 10ms"));
    wait_until("loaded", SOON, || held(&pulled.copy, "journals"));
    let mut client = pulled.client();
    for version in 1..=2 {
        cluster.stop();
        pulled.import(
            "conferences.jsonl",
            conferences_of_version(RECORDS, version),
        );
        cluster.start_again();
        wait_until("followed", SOON * 2, || {
            (held(&pulled.copy, "conferences")? == exported(&mut client, "conferences"))
                .then_some(())
        });
        assert!(
            follower.ended_within(Duration::ZERO).is_none(),
            "the follower keeps running"
        );
    }
    follower.kill();
    assert_eq!(pulled.pull("--verify").count("equal to the service's"), 2);
    // Without a server, the pull retries a few times and reports the failure.
    cluster.stop();
    let done = pulled.run("");
    done.assert_told(1, "cannot be reached");
    cluster.start_again();
}

#[test]
fn a_connection_that_breaks_within_a_statement_is_made_again() {
    let Some(cluster) = Cluster::start().map(Arc::new) else {
        return;
    };
    let pulled = Pulled::in_postgres(&cluster, site_with_both(RECORDS));
    let mut follower = Process::spawn(&mut pulled.command(&pulled.url(), "--follow --every 10ms"));
    wait_until("loaded", SOON, || held(&pulled.copy, "journals"));
    let mut holder = pulled.postgres();
    holder
        .batch_execute("BEGIN; LOCK TABLE conferences")
        .unwrap();
    pulled
        .site
        .import("conferences.jsonl", conferences_of_version(RECORDS, 1));
    let waiting =
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'medfeed pull' AND wait_event_type = 'Lock'
                     AND datname = current_database()";
    let pid = wait_until("the follower's statement waits", SOON, || {
        pulled.column(waiting).pop()
    });
    // Its server process cannot end the session properly, so the follower sees only the end of the connection.
    assert!(
        std::process::Command::new("kill")
            .args(["-9", &pid])
            .status()
            .unwrap()
            .success()
    );
    wait_for("the server has ended all sessions", || {
        holder.simple_query("SELECT 1").is_err()
    });
    cluster.stop();
    cluster.start_again();
    wait_until("followed", SOON * 2, || {
        assert!(
            follower.ended_within(Duration::ZERO).is_none(),
            "the follower keeps running"
        );
        let row = pulled.column("SELECT json->>'name' FROM conferences WHERE id = 520");
        let line = &exported(&mut pulled.client(), "conferences").lines[519];
        line.contains(&format!("\"{}\"", row[0])).then_some(())
    });
    follower.kill();
    assert_eq!(pulled.pull("--verify").count("equal to the service's"), 2);
}

#[test]
fn a_refusal_of_postgresql_is_reported_and_leaves_the_copy() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pulled = Pulled::in_postgres(&cluster, site_with_both(RECORDS));
    pulled.pull("");
    let before = held(&pulled.copy, "conferences");
    pulled.import("conferences.jsonl", conferences_of_version(RECORDS, 1));
    // A trigger simulates failures inside of the server.
    pulled.tamper(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'refused' USING ERRCODE = current_setting('x.code'); END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON medfeed.conferences FOR EACH ROW WHEN (NEW.id = 519) EXECUTE FUNCTION refuse()",
    );
    for (code, exit, message) in cases![
        "53100", 1, "no space is left";
        "42501", 1, "CREATE SCHEMA name AUTHORIZATION user";
        "25006", 1, "the server is read-only";
        "55P03", 1, "holds a lock";
        "58030", 1, "check the server's disk";
        "54000", 4, "too long for PostgreSQL";
        "XX001", 4, "the trigger `refuse` of the table `conferences`";
        "23514", 4, "the trigger `refuse` of the table `conferences`";
    ] {
        let sql = format!("ALTER DATABASE {} SET x.code = '{code}'", pulled.database());
        pulled.tamper(&sql);
        let done = pulled.run("");
        done.assert_told(exit, message);
        let found = held(&pulled.copy, "conferences").unwrap();
        assert_eq!(found.lines.len() as u64, RECORDS);
        assert!(
            found.lines[518] == before.as_ref().unwrap().lines[518],
            "{code}: the page was written in part"
        );
    }
    // A statement that an administrator cancels is retried. The first message suffices.
    let sql = format!("ALTER DATABASE {} SET x.code = '57014'", pulled.database());
    pulled.tamper(&sql);
    let (line, mut pull) = first_line(pulled.command(&pulled.url(), ""));
    assert!(line.contains(": refused; trying again in "), "{line}");
    pull.kill();
    pulled.tamper("DROP TRIGGER refuse ON conferences; DROP FUNCTION refuse");
    pulled.pull("");
    pulled.assert_equal("conferences");
    // A user who may not create a schema gets an error, and can use an existing one.
    pulled.tamper("CREATE ROLE narrow LOGIN");
    let to = format!("{}&schema=given", pulled.copy.display()).replace(USER, "narrow");
    let done = pulled.run_to(&to, ("X", ""), "");
    done.assert_told(1, "CREATE SCHEMA name AUTHORIZATION user");
    pulled.tamper("CREATE SCHEMA given AUTHORIZATION narrow");
    assert_eq!(pulled.run_to(&to, ("X", ""), "").code, Some(0));
    // A new layout needs no further rights.
    pulled.tamper(&format!(
        "REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC; UPDATE given.copy SET value = 'old' WHERE name = 'layout'",
        pulled.database()
    ));
    let done = pulled.run_to(&to, ("X", ""), "");
    done.assert_shown(0, "conferences: nothing new");
}

#[test]
fn a_database_in_which_nothing_can_be_written_says_why() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pulled = Pulled::in_postgres(&cluster, site_with_both(RECORDS));
    pulled.pull("");
    let database = pulled.database();
    let role = format!("narrow_{database}");
    pulled.tamper(&format!(
        "CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET default_transaction_read_only = on"
    ));
    let shown = pulled.copy.display().to_string();
    let cases = cases![
        shown.replace(USER, &role), "comes from: user;";
        format!("{shown}&options=-c%20default_transaction_read_only%3Don"), "comes from: client;";
    ];
    for (to, expected) in cases {
        let done = pulled.run_to(&to, ("X", ""), "");
        assert!(
            done.code == Some(1)
                && done.stderr.contains("default_transaction_read_only")
                && done.stderr.contains(expected)
                && !done.stderr.contains("primary server"),
            "{to}: {done:?}"
        );
    }
    pulled.tamper(&format!(
        "ALTER DATABASE {database} SET default_transaction_read_only = on"
    ));
    let done = pulled.run("");
    done.assert_told(1, "comes from: database;");
    pulled.tamper(&format!(
        "BEGIN READ WRITE; ALTER DATABASE {database} RESET default_transaction_read_only; DROP ROLE {role}; COMMIT"
    ));
    pulled.pull("");
}

#[test]
fn connections_to_postgresql_are_refused_with_advice() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pulled = Pulled::in_postgres(&cluster, site_with_both(RECORDS));
    let (port, database) = (cluster.port, pulled.database());
    let tcp = format!("postgres://{USER}@127.0.0.1:{port}/{database}");
    let certificate = cluster.certificate();
    let certificate = certificate.display();
    let password = ("PGPASSWORD", PASSWORD);
    let closed = cluster.database();
    pulled.tamper(&format!(
        "CREATE ROLE guest LOGIN PASSWORD '{}'; REVOKE CONNECT ON DATABASE \"{closed}\" FROM PUBLIC",
        PASSWORD.replace('\'', "''")
    ));
    let guest = tcp.replace(USER, "guest");
    let cases = cases![
        tcp.clone(), ("X", ""), 4, "set PGPASSWORD";
        tcp.clone(), ("PGPASSWORD", "wrong"), 4, "check user and password";
        tcp.replace(&*database, "nowhere"), password, 4, "make the database first";
        guest.replace(&*database, &closed), password, 4, "ask for the right to connect";
        guest, password, 1, "the copy needs a schema of its own";
        tcp.replace(&port.to_string(), "1"), password, 1, "cannot be reached";
        format!("{tcp}?sslmode=require"), password, 4, "--ca-file";
        format!("{tcp}?sslmode=prefer"), password, 4, "--ca-file";
        format!("{tcp}?sslmode=require&sslrootcert=/nowhere.pem"), password, 4, "/nowhere.pem";
        format!("{tcp}?sslmode=verify-full&sslrootcert={certificate}"), password, 0, "";
        format!("{tcp}?sslmode=disable"), password, 0, "";
    ];
    for (to, variable, code, message) in cases {
        let done = pulled.run_to(&to, variable, "--dataset journals");
        done.assert_told(code, message);
        assert!(!done.stderr.contains(PASSWORD), "{done:?}");
    }
    // One file of certificates serves both for the service, with https, and for PostgreSQL. The connection is
    // encrypted.
    let to = format!("postgres://{USER}@127.0.0.1:{port}/{database}?sslmode=require");
    let mut command = pulled.site.command([
        "pull",
        &pulled.url(),
        "--to",
        &to,
        "--follow",
        "--every",
        "10ms",
    ]);
    command.args(["--ca-file".as_ref(), cluster.certificate().as_os_str()]);
    let mut follower = Process::spawn(
        command
            .env("MEDFEED_KEY", &pulled.key)
            .env("PGPASSWORD", PASSWORD)
            .stdout(Stdio::null()),
    );
    wait_for("an encrypted session", || {
        let query =
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'medfeed pull'
                     AND datname = current_database()";
        pulled.column(query) == ["true"]
    });
    follower.kill();
}
