//! `medfeed health` and `serve --create`, for containers and units.

use std::net::TcpListener;

use super::https::Authority;
use super::monitoring::serve_watched;
use super::site::{Site, conferences_of_version, wait_for};

#[test]
fn a_server_is_healthy_as_long_as_it_answers() {
    let site = Site::with(3);
    let (server, mut admin) = serve_watched(&site, &[]);
    let health = |listen: &str, more: &[(&str, &str)]| {
        let mut command = site.command(["health"]);
        command
            .env("MEDFEED_LISTEN", listen)
            .envs(more.iter().copied());
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap(),
        )
    };
    let ok = (Some(0), "ok\n".to_owned());
    let (api, monitored) = (server.address.to_string(), admin.address().to_string());
    assert_eq!(health(&api, &[]), ok);
    // A server that listens on all addresses is requested at this machine's.
    assert_eq!(
        health(&format!("0.0.0.0:{}", server.address.port()), &[]),
        ok
    );
    assert_eq!(
        site.json(["health", "--listen", &api]),
        serde_json::json!({"healthy": true})
    );

    // A proxy is only for other machines.
    let closed = "http://127.0.0.1:1";
    let proxied = [
        ("http_proxy", closed),
        ("ALL_PROXY", closed),
        ("NO_PROXY", ""),
        ("no_proxy", ""),
    ];
    assert_eq!(health(&api, &proxied), ok);

    // With monitoring, `/readyz` is requested, because it checks more.
    let ready = [
        ("MEDFEED_ADMIN_LISTEN", monitored.as_str()),
        ("MEDFEED_TLS_CERT", "none.pem"),
    ];
    assert_eq!(health("127.0.0.1:1", &ready), ok);
    std::fs::rename(site.db(), site.path("away")).unwrap();
    wait_for("/readyz 503", || admin.get("/readyz").status == 503);
    let (code, told) = health(&api, &ready);
    assert!(
        code == Some(1) && told.contains("503") && told.contains("cannot be followed"),
        "{told}"
    );
    assert_eq!(health(&api, &[]), ok);
    std::fs::rename(site.path("away"), site.db()).unwrap();

    let cases = [
        ("127.0.0.1:1", "is the server running"),
        ("127.0.0.1:0", "name the port"),
        (monitored.as_str(), "answers 404"),
    ];
    for (listen, piece) in cases {
        let (code, told) = health(listen, &[]);
        assert!(
            code == Some(1) && told.starts_with("error: ") && told.contains(piece),
            "{listen}: {told}"
        );
    }
    // A listener that does not answer.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let done = site.run(["health", "--listen", &address]);
    done.assert_told(1, "did not answer within 5s");
    server.stop();
}

#[test]
fn health_accepts_only_the_servers_own_certificate() {
    let site = Site::with(3);
    for name in ["own", "other"] {
        // The certificate has expired long ago. Only its key counts.
        let pair = Authority::new().pair_for_years(1975, 2001);
        site.write(&format!("{name}.pem"), pair.certificate);
        site.write(&format!("{name}-key.pem"), pair.key);
    }
    let server = site.serve_with("--tls-cert own.pem --tls-key own-key.pem");
    let address = server.address.to_string();
    let cases = cases![
        Some("own.pem"), 0, "ok";
        Some("other.pem"), 1, "the server has another one";
        Some("own-key.pem"), 1, "must hold the certificate";
        Some("none.pem"), 1, "none.pem";
        None, 1, "the server there speaks HTTPS; name its certificate with --tls-cert FILE";
    ];
    for (certificate, code, piece) in cases {
        let certificate = certificate.map(|file| ["--tls-cert", file]);
        let done = site.run(
            ["health", "--listen", &address]
                .iter()
                .chain(certificate.iter().flatten()),
        );
        assert_eq!(done.code, Some(code), "{certificate:?}: {done:?}");
        let text = format!("{}{}", done.stdout, done.stderr);
        assert!(text.contains(piece), "{certificate:?}: {done:?}");
    }
    server.stop();
}

#[test]
fn a_server_may_start_before_the_first_import() {
    let site = Site::new();
    let mut command = site.serve_command("");
    command.env("MEDFEED_CREATE", "1");
    let server = site.start(command);
    wait_for("the log names the remedy", || {
        let log = server.logged();
        ["medfeed import", "license set", "key create"]
            .iter()
            .all(|piece| log.contains(piece))
    });
    site.import("conferences.jsonl", conferences_of_version(3, 0));
    let key = site.open_key();
    wait_for("the import", || {
        let answer = server.client(&key).get("/v1/conferences");
        answer.status == 200 && answer.items().len() == 3
    });
    server.stop();
    // The database exists now, and stays as it is.
    let commits = || site.json(["log"])["commits"].as_array().unwrap().len();
    let before = commits();
    let server = site.serve_with("--create");
    assert!(!server.stop_and_read().contains("empty database"));
    assert_eq!(commits(), before);
    site.check();
}
