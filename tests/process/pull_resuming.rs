//! `medfeed pull` over connections that break in the middle of an export.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use super::pulled::Pulled;
use super::relay::Relay;
use super::site::{Process, SOON, conferences_of_version, wait_for};

const EXPORT: &str = "GET /v1/exports/conferences HTTP/1.1";

struct Broken {
    pulled: Pulled,
    relay: Relay,
    /// The length of the export, in bytes.
    length: usize,
}

fn broken_site() -> Broken {
    let pulled = Pulled::with(3000);
    let relay = Relay::new(pulled.server.address, 0);
    let length = pulled.client().get("/v1/exports/conferences").body.len();
    Broken {
        pulled,
        relay,
        length,
    }
}

impl Broken {
    fn start(&self, args: &str) -> Process {
        let mut command = self
            .pulled
            .command(&self.relay.url(), &format!("--dataset conferences {args}"));
        Process::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Pulls over connections that break after these numbers of bytes of answers. Returns the messages, and the start
    /// of each requested range of the export.
    fn pull_cut(&self, cuts: &[usize]) -> (String, Vec<Option<usize>>) {
        cuts.iter().for_each(|bytes| self.relay.cut_after(*bytes));
        let told = ended(self.start("--reload"));
        (told, self.asked())
    }

    fn asked(&self) -> Vec<Option<usize>> {
        let requests = self.relay.take_requests();
        let exports = requests.iter().filter(|head| head.starts_with(EXPORT));
        exports
            .map(|head| {
                let (_, range) = head.split_once("range: bytes=")?;
                assert!(head.contains("if-range: \""), "{head}");
                Some(range.split_once("-\r\n")?.0.parse().unwrap())
            })
            .collect()
    }
}

/// The messages of a pull, which must succeed.
fn ended(mut pull: Process) -> String {
    let told = rest_of(pull.child());
    assert_eq!(pull.exit_code(), Some(0), "{told}");
    told
}

fn rest_of(child: &mut Child) -> String {
    let mut told = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    told
}

#[test]
fn an_export_resumes_where_it_broke_off() {
    let broken = broken_site();
    let Broken {
        pulled,
        relay,
        length,
    } = &broken;
    // A head takes some hundreds of bytes, and must arrive.
    let cases: [&[usize]; 4] = [
        &[length / 2],
        &[length - 1],
        &[2000, length / 3, 3000, length / 4],
        &[2000, 0, 0],
    ];
    for cuts in cases {
        relay.take_answered();
        let (told, asked) = broken.pull_cut(cuts);
        assert_eq!(asked.len(), cuts.len() + 1, "{cuts:?}: {told}");
        assert_eq!(asked[0], None, "{cuts:?}");
        assert!(
            asked[1..].is_sorted() && asked[1..].iter().all(|at| at > &Some(0)),
            "{cuts:?}: {asked:?}"
        );
        let count = told.matches("; resuming in ").count();
        assert_eq!(count, cuts.len(), "{cuts:?}: {told}");
        assert!(
            told.contains("conferences: the export broke off after "),
            "{cuts:?}: {told}"
        );
        assert!(
            told.ends_with("conferences: 3000 records loaded\n"),
            "{cuts:?}: {told}"
        );
        // No byte of the export is sent twice. Heads are, and bytes that were on their way when a connection broke.
        let passed = usize::try_from(relay.take_answered()).unwrap();
        assert!(
            passed < length + 1000 * (cuts.len() + 1),
            "{cuts:?}: {passed} bytes for {length}"
        );
        pulled.assert_equal("conferences");
    }
}

#[test]
fn an_export_that_changed_meanwhile_is_loaded_from_its_start() {
    let broken = broken_site();
    let Broken {
        pulled,
        relay,
        length,
    } = &broken;
    relay.cut_after(length / 2);
    let held = relay.hold_cuts();
    let mut pull = broken.start("");
    wait_for("half of the export", || {
        relay.answered() >= (length / 2) as u64
    });
    pulled.import("conferences.jsonl", conferences_of_version(2500, 1));
    drop(held);
    let mut stderr = BufReader::new(pull.child().stderr.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        line
    };
    assert!(line().contains("resuming in 1 s"));
    assert!(line().contains("has changed since; trying again"));
    let status = pull.ended_within(SOON).expect("it ends");
    assert_eq!(status.code(), Some(0));
    let asked = broken.asked();
    assert!(
        asked.len() == 3 && asked[0].is_none() && asked[1].is_some() && asked[2].is_none(),
        "{asked:?}"
    );
    pulled.assert_equal("conferences");
}
