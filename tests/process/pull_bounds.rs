//! Broken or hostile services: `medfeed pull` stays within its bounds of memory, bytes and time, and names the bound
//! that was reached.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use medfeed::model::Dataset;
use medfeed::pull::body::ReadLimits;

use super::pulled::first_line;
use super::scripted::Scripted;
use super::site::Site;

/// Answers one request. A caller that leaves early ends the answer.
type Answer = fn(&str, &mut TcpStream) -> std::io::Result<()>;

/// A service that answers every request in its own way.
fn serve(answer: Answer) -> Scripted {
    Scripted::raw("127.0.0.1", move |asked, _, stream| {
        answer(&asked.line, stream)
    })
}

/// A head without a length: the end of the connection ends the body.
fn head(stream: &mut TcpStream, headers: &str) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nconnection: close\r\n{headers}\r\n"
    )
}

fn export<'a>(
    stream: &'a mut TcpStream,
    records: &str,
) -> std::io::Result<GzEncoder<&'a mut TcpStream>> {
    let headers = format!("x-sync-token: t0\r\nx-record-count: {records}\r\n");
    head(stream, &headers)?;
    Ok(GzEncoder::new(stream, Compression::fast()))
}

fn page(stream: &mut TcpStream, json: &str) -> std::io::Result<()> {
    head(stream, "content-type: application/json\r\n")?;
    stream.write_all(json.as_bytes())
}

/// An export of one record, so that the next request is of the feed.
fn whole_export(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut body = export(stream, "1")?;
    body.write_all(b"{\"id\":1,\"name\":\"A\"}\n")?;
    body.finish().map(|_| ())
}

fn repeated(out: &mut impl Write, piece: &[u8]) -> std::io::Result<()> {
    let many = piece.repeat(1 + (1 << 16) / piece.len());
    loop {
        out.write_all(&many)?;
    }
}

#[test]
fn a_broken_service_is_bounded_in_bytes_and_items() {
    let cases: [(&str, Answer, &str); 7] = cases![
        "a line without end", |_, stream| repeated(&mut export(stream, "1")?, b"0"),
            "a record of the export is longer than 8 MiB";
        "records without end",
        |_, stream| {
            let mut body = export(stream, "2")?;
            (1..).try_for_each(|id| writeln!(body, "{{\"id\":{id}}}"))
        },
        "the export holds more than the 2 records that `X-Record-Count` announces";
        "a page with a long record",
        |line, stream| {
            if line.contains("/exports/") {
                return whole_export(stream);
            }
            let record = format!("{{\"id\":2,\"name\":\"{}\"}}", "x".repeat(8 << 20));
            page(
                stream,
                &format!(
                    "{{\"data\":[{record}],\"has_more\":false,\"next_sync_token\":\"t2\"}}"
                ),
            )
        },
        "a record of the feed is longer than 8 MiB";
        "a page without end",
        |line, stream| {
            if line.contains("/exports/") {
                return whole_export(stream);
            }
            head(stream, "")?;
            repeated(stream, b"[")
        },
        "a page of the feed is longer than 32 MiB";
        "a compressed page without end",
        |line, stream| {
            if line.contains("/exports/") {
                return whole_export(stream);
            }
            head(stream, "content-encoding: gzip\r\n")?;
            repeated(&mut GzEncoder::new(stream, Compression::fast()), b" ")
        },
        "a page of the feed is longer than 32 MiB";
        "compressed nothing without end",
        |line, stream| {
            if line.contains("/exports/") {
                return whole_export(stream);
            }
            head(stream, "content-encoding: gzip\r\n")?;
            repeated(
                stream,
                &GzEncoder::new(Vec::new(), Compression::fast()).finish()?,
            )
        },
        "a page of the feed is longer than 32 MiB";
        "an error without end",
        |_, stream| {
            write!(stream, "HTTP/1.1 500 X\r\nconnection: close\r\n\r\n")?;
            repeated(stream, b"x")
        },
        "answered 500";
    ];
    // All cases run at once, because the pauses between attempts take most of the time.
    let site = Site::new();
    std::thread::scope(|scope| {
        for (index, (name, answer, message)) in cases.into_iter().enumerate() {
            let site = &site;
            scope.spawn(move || {
                let service = serve(answer);
                let copy = format!("{index}.sqlite");
                let mut inner = site.command([
                    "pull",
                    &service.url(),
                    "--to",
                    &copy,
                    "--dataset",
                    "conferences",
                ]);
                // The first run may load the export; the second requests the feed. A process that needs more than 1 GiB
                // of memory is ended.
                for round in 0..2 {
                    let script = "ulimit -v 1048576; exec \"$@\"";
                    let command = site.in_shell(script, inner.env("MEDFEED_KEY", "k"));
                    let (line, mut pull) = first_line(command);
                    if line.is_empty() && round == 0 {
                        assert_eq!(pull.exit_code(), Some(0), "{name}");
                        continue;
                    }
                    assert!(line.contains(message), "{name}: {line}");
                    break;
                }
            });
        }
    });
}

#[test]
fn after_a_page_that_is_too_long_a_short_one_is_requested() {
    let service = serve(|line, stream| match line.contains("limit=3") {
        true => page(
            stream,
            "{\"data\":[{\"id\":1}],\"has_more\":true,\"next_sync_token\":\"t1\"}",
        ),
        false => page(stream, &" ".repeat(2048)),
    });
    let limits = ReadLimits {
        page_bytes: 1024,
        ..ReadLimits::default()
    };
    let client = service.client_with(limits);
    let page = client
        .changes(Dataset::Conferences, "t0", 0)
        .unwrap()
        .unwrap();
    assert_eq!(page.entries.len(), 1);
    assert_eq!(page.token.as_str(), "t1");
    assert_eq!(service.take().len(), 2);
}

#[test]
fn a_service_that_sends_too_slowly_is_an_error() {
    /// Sends one byte after the other, with a pause before each.
    fn trickle(stream: &mut TcpStream) -> std::io::Result<()> {
        loop {
            std::thread::sleep(Duration::from_millis(20));
            stream.write_all(b" ")?;
        }
    }
    /// Sends nothing until the caller leaves.
    fn silence(stream: &mut TcpStream) -> std::io::Result<()> {
        stream.read(&mut [0]).map(|_| ())
    }
    /// The head of a gzip file with a name (RFC 1952, section 2.3). All later bytes belong to the name.
    const NAMED_GZIP: &[u8] = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff";
    let cases: [(&str, Answer, &str); 6] = cases![
        "a head that trickles", |_, stream| write!(stream, "HTTP/1.1 200 OK\r\nx: ").and(trickle(stream)), "timed out";
        "no answer", |_, stream| silence(stream), "timed out";
        "a body that trickles", |_, stream| head(stream, "").and(trickle(stream)), "less than 64 KiB in 0.2 s";
        "a body that stops", |_, stream| head(stream, "content-length: 9\r\n").and(silence(stream)), "timed out";
        "an error that trickles",
            |_, stream| { write!(stream, "HTTP/1.1 500 X\r\ncontent-length: 60000\r\n\r\n").and(trickle(stream)) },
            "answered 500";
        "an export that trickles",
        |_, stream| {
            head(stream, "x-sync-token: t\r\nx-record-count: 1\r\n")?;
            stream.write_all(NAMED_GZIP)?;
            trickle(stream)
        },
        "less than 64 KiB in 0.2 s";
    ];
    let (read_timeout, pace_time) = (Duration::from_secs(3), Duration::from_millis(200));
    let limits = ReadLimits {
        read_timeout,
        pace_time,
        ..ReadLimits::default()
    };
    let try_one = |(name, answer, message): (&str, Answer, &str)| {
        let service = serve(answer);
        let client = service.client_with(limits);
        let error = if name.contains("export") {
            let mut export = client.export(Dataset::Conferences, &|_| ()).unwrap();
            export.next_record().unwrap_err()
        } else {
            client.changes(Dataset::Conferences, "t", 0).unwrap_err()
        };
        assert!(error.to_string().contains(message), "{name}: {error}");
    };
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || try_one(case));
        }
    });
}

#[test]
fn control_characters_in_entries_forge_no_output() {
    const HELD: &str = "{\"id\":2,\"name\":\"a\\n{\\\"dataset\\\":1}\u{9b}2J\u{202e}x\u{85}\u{2028}\",\"updated_at\":\"=1+1\"}";
    let service = serve(|line, stream| {
        if line.contains("/exports/") {
            return whole_export(stream);
        }
        let data = if line.contains("since=t0") { HELD } else { "" };
        page(
            stream,
            &format!("{{\"data\":[{data}],\"has_more\":false,\"next_sync_token\":\"t1\"}}"),
        )
    });
    let site = Site::new();
    for copy in ["copy/", "copy.sqlite"] {
        let pull = |args: &str| {
            let mut command = site.command([
                "pull",
                &service.url(),
                "--to",
                copy,
                "--dataset",
                "conferences",
            ]);
            command
                .args(args.split_whitespace())
                .env("MEDFEED_KEY", "k")
                .output()
                .unwrap()
        };
        assert!(pull("").status.success(), "{copy}");
        let output = pull("--json");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let escaped = HELD
            .replace('\u{9b}', "\\u009b")
            .replace('\u{202e}', "\\u202e");
        let escaped = escaped
            .replace('\u{85}', "\\u0085")
            .replace('\u{2028}', "\\u2028");
        let expected = format!("{{\"dataset\":\"conferences\",\"entry\":{escaped}}}\n");
        assert_eq!(stdout, expected, "{copy}");
    }
    let lines = std::fs::read_to_string(site.path("copy/conferences.jsonl")).unwrap();
    assert_eq!(lines, format!("{{\"id\":1,\"name\":\"A\"}}\n{HELD}\n"));
    let table = std::fs::read_to_string(site.path("copy/conferences.csv")).unwrap();
    assert!(table.ends_with(",'=1+1\r\n"), "{table}");
}
