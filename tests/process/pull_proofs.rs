//! Proofs of a copy: exports that were changed on their way, and the shell commands of the documentation.

use std::io::{BufReader, Write};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::client::{connect, read_head};
use super::pulled::{Pulled, held};
use super::scripted::{Reply, Scripted};

const ONE: &str = "{\"id\":1,\"name\":\"A\"}";
const TWO: &str = "{\"id\":2,\"name\":\"B\"}";

#[test]
fn an_export_that_was_changed_on_its_way_is_refused() {
    // A proxy rewrites the second export, so that it is a correct gzip file.
    let mut pulled = Pulled::with(300);
    for place in pulled.places(None) {
        pulled.copy = place;
        let service = Scripted::new(|_, before| {
            let digest = Reply::export("t0", &[ONE, TWO])
                .header("x-records-digest")
                .to_owned();
            let lines = if before == 0 {
                [ONE, TWO]
            } else {
                [ONE, "{\"id\":2,\"name\":\"X\"}"]
            };
            Reply::export("t0", &lines)
                .without("x-records-digest")
                .with("x-records-digest", &digest)
        });
        let run =
            |args: &str| pulled.run_at(&service.url(), &format!("--dataset conferences {args}"));
        assert_eq!(run("").code, Some(0), "{:?}", pulled.copy);
        let before = held(&pulled.copy, "conferences");
        let done = run("--reload --json");
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(!done.stdout.contains("\"entry\""), "{done:?}");
        done.assert_err("changed on its way");
        done.assert_err("X-Records-Digest");
        assert_eq!(held(&pulled.copy, "conferences"), before);
    }
}

#[test]
fn the_lines_of_the_documentation_prove_a_file() {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("openssl is not installed: the documentation's lines are not tried");
        return;
    }
    const LINES: &str = "grep -i x-records-digest conferences.headers\n\
        echo \"x-records-digest: sha-256=:$(gzip -dc conferences.jsonl.gz | openssl dgst -sha256 -binary | base64):\"";
    let pulled = Pulled::with(300);
    let page = String::from_utf8(pulled.client().get("/docs").body).unwrap();
    assert!(
        page.contains(&LINES.replace('"', "&quot;")) || page.contains(LINES),
        "the guide has the lines"
    );
    let mut stream = BufReader::new(connect(pulled.server.address).unwrap());
    stream
        .get_mut()
        .write_all(
            pulled
                .client()
                .request("/v1/exports/conferences")
                .as_bytes(),
        )
        .unwrap();
    let (_, headers) = read_head(&mut stream).unwrap();
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    pulled.site.write("conferences.headers", headers);
    let content = pulled.client().get("/v1/exports/conferences").body;
    pulled.site.write("conferences.jsonl.gz", content);
    let prove = || {
        let mut shell = Command::new("sh");
        let output = shell
            .args(["-c", LINES])
            .current_dir(pulled.site.path("."))
            .output()
            .unwrap();
        let lines: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| line.trim().to_owned())
            .collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        lines[0] == lines[1]
    };
    assert!(prove());
    let mut other = GzEncoder::new(Vec::new(), Compression::fast());
    other
        .write_all(
            pulled
                .client()
                .get("/v1/exports/conferences")
                .gunzip()
                .strip_suffix(b"\n")
                .unwrap(),
        )
        .unwrap();
    pulled
        .site
        .write("conferences.jsonl.gz", other.finish().unwrap());
    assert!(!prove(), "another file is noticed");
}
