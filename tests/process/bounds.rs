//! Huge and broken files are refused with little memory and time, and a short message.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::site::{Done, Site};

/// The case, the name and content of the file, and a part of the message.
type Case = (&'static str, &'static str, Vec<u8>, &'static str);

/// The maximum address space of an import of any of them, in KiB: less than the content of most of them. The program
/// itself maps half of it.
const MEMORY_KIB: u32 = 200_000;
/// The time limit of each refusal, for a program that is not optimized on a machine that is busy.
const SOON: Duration = Duration::from_secs(60);
/// The maximum size of the output.
const PRINTED_BYTES: usize = 3_000_000;

/// Repeats a piece, in members of a gzip file.
fn gzip(piece: &[u8], pieces: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(piece).unwrap();
    encoder.finish().unwrap().repeat(pieces)
}

fn cases() -> Vec<Case> {
    const MIB: usize = 1 << 20;
    let zeros = vec![0; MIB];
    let rows = "2,Journal of the unclosed quote\n".repeat(MIB / 32);
    let names: String = (0..100)
        .map(|at| format!("{{\"id\":{},\"{}{at}\":1}}\n", at + 1, "n".repeat(100_000)))
        .collect();
    let columns: String = (0..100_000).map(|at| format!(",column{at}")).collect();
    let keys: String = (0..100_000).map(|at| format!(",\"key{at}\":1")).collect();
    Vec::from(cases![
        "zeros", "journals.jsonl.gz", gzip(&zeros, 1_025),
            "journals.jsonl.gz: the file is too large: it has more than 1073741824 bytes";
        "zeros in a table", "journals.csv.gz", gzip(&zeros, 512), "begins with NUL bytes";
        "one line", "journals.jsonl.gz", gzip(&vec![b'x'; MIB], 200),
            "journals.jsonl.gz:1: the line is longer than 4194304 bytes";
        "an open quote", "journals.csv.gz",
            [gzip(b"id,name\n1,\"Open\n", 1), gzip(rows.as_bytes(), 200)].concat(),
            "journals.csv.gz:2: the row is longer than 4194304 bytes, and the rest of the table is not read; close the quote";
        "blank lines", "tags.jsonl.gz", gzip(&vec![b'\n'; MIB], 3),
            "tags.jsonl.gz:2000001: the file has more than 2000000 lines";
        "long names", "journals.jsonl", names.into_bytes(), "unknown field; known";
        "columns", "journals.csv", format!("id{columns}\n").into_bytes(), "journals.csv:1: has more than 1000 columns";
        "keys", "journals.jsonl", format!("{{\"id\":1{keys}}}\n").into_bytes(),
            "journals.jsonl:1: has more than 1000 columns; remove those that are not fields";
        "items", "journals.jsonl",
            format!("{{\"id\":1,\"organizations\":[0{}]}}", ",0".repeat(400_000)).into_bytes(),
            "400001 faults";
        "short rows", "journals.jsonl.gz", gzip("{\"id\":0}\n".repeat(MIB / 4).as_bytes(), 1), "and 262,141 more";
    ])
}

/// Imports a file in little memory. It is refused soon, with this part of a message.
pub fn refuse(what: &str, name: &str, content: &[u8], expected: &str, most_printed: usize) {
    let site = Site::new();
    site.write(name, content);
    let mut import = site.command(["import", "--create", name]);
    // Every further arena of the allocator reserves 64 MiB of addresses, whatever is in it.
    import.env("MALLOC_ARENA_MAX", "1");
    let begun = Instant::now();
    let done =
        Done::of(&mut site.in_shell(&format!("ulimit -v {MEMORY_KIB}; exec \"$@\""), &import));
    assert!(begun.elapsed() < SOON, "{what}: {:?}", begun.elapsed());
    let told = done.stderr;
    assert_eq!(done.code, Some(1), "{what}: {told:.500}");
    assert!(told.contains(expected), "{what}: {told:.700}");
    assert!(!told.contains("bug in medfeed"), "{what}: {told:.3000}");
    assert!(
        told.len() < most_printed,
        "{what}: {} bytes are printed",
        told.len()
    );
    assert!(!site.db().exists(), "{what}");
}

#[test]
fn a_hostile_import_is_refused_with_little_memory() {
    for (what, name, content, expected) in cases() {
        refuse(what, name, &content, expected, PRINTED_BYTES);
    }
}

#[test]
fn an_import_from_standard_input_is_bounded() {
    let site = Site::new();
    let mut command =
        site.command("import - --create --dataset tags --format csv --json".split(' '));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"id,type,name\n1,T,ok\n").unwrap();
    // The program stops reading long before the end.
    let endless = std::iter::repeat_with(|| input.write_all(&[b'"'; 1 << 16])).take(1 << 14);
    let refused = endless.into_iter().find(Result::is_err);
    assert!(refused.is_some(), "a gigabyte is read");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["errors"][0]["file"], "-", "{told}");
    assert_eq!(told["errors"][0]["line"], 3, "{told}");
}

#[test]
fn findings_are_kept_up_to_a_bound_and_all_are_counted() {
    let faults = gzip("{\"id\":0}\n".repeat(300_000).as_bytes(), 1);
    // A header that comes again is no row.
    let table = format!("id,name\n1,A\n{}", "id,name\n".repeat(300_000));
    let warnings = gzip(table.as_bytes(), 1);
    let all = "and 290,000 more, which are only counted";
    let cases = [
        ("journals.jsonl.gz", &faults, "--all-faults", 1, all),
        ("journals.jsonl.gz", &faults, "--json", 1, "error"),
        ("journals.csv.gz", &warnings, "--all-faults", 0, all),
        ("journals.csv.gz", &warnings, "--json", 0, "warning"),
    ];
    for (name, content, option, code, expected) in cases {
        let site = Site::new();
        site.write(name, content);
        let mut import = site.command(["import", "--create", name, option]);
        import.env("MALLOC_ARENA_MAX", "1");
        let limited = format!("ulimit -v {MEMORY_KIB}; exec \"$@\"");
        let done = Done::of(&mut site.in_shell(&limited, &import));
        assert_eq!(
            done.code,
            Some(code),
            "{name} {option}: {:.500}",
            done.stderr
        );
        let printed = done.stdout.len() + done.stderr.len();
        assert!(printed < PRINTED_BYTES, "{name} {option}: {printed} bytes");
        if option != "--json" {
            assert!(
                done.stderr.contains(expected),
                "{name}: {:.500}",
                done.stderr
            );
            continue;
        }
        let told = done.json();
        let kept = told[format!("{expected}s")].as_array().unwrap().len();
        let count = &told[format!("{expected}_count")];
        assert_eq!((kept, count), (10_000, &300_000.into()), "{name}");
    }
}
