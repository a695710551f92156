//! A request and its answer as bytes, kept in files between the processes of the benchmark.

use std::io::Write;
use std::path::Path;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// Names the requested answer for the static server. The real server gets this header too, and ignores it like any
/// unknown header.
pub const ROW_HEADER: &str = "x-row";

/// The end of a head.
pub const HEAD_END: &[u8] = b"\r\n\r\n";

/// An answer, as the real server sent it.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Status line and headers, the empty line included.
    pub head: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// The status and headers of a head.
pub fn parse_head(head: &[u8]) -> (StatusCode, HeaderMap) {
    let text = std::str::from_utf8(head).expect("a head is a text");
    let mut lines = text.trim_end().split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .expect("a head begins with its status");
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name = HeaderName::try_from(name).expect("a header has a valid name");
        headers.append(
            name,
            HeaderValue::from_str(value.trim()).expect("a header has a valid value"),
        );
    }
    (status.parse().expect("a status has three digits"), headers)
}

/// Writes the answer of a row.
pub fn save(folder: &Path, row: usize, recorded: &Recorded) {
    let mut file =
        std::fs::File::create(folder.join(row.to_string())).expect("the answer's file is created");
    file.write_all(&recorded.head)
        .and_then(|()| file.write_all(&recorded.body))
        .expect("the answer is written");
}

/// Reads the answers of all rows.
pub fn load(folder: &Path) -> Vec<Recorded> {
    let files = (0..)
        .map(|row: usize| folder.join(row.to_string()))
        .take_while(|path| path.exists());
    files
        .map(|path| {
            let mut head = std::fs::read(&path).expect("the answer can be read");
            let end = memchr::memmem::find(&head, HEAD_END)
                .expect("a head ends with an empty line")
                + HEAD_END.len();
            let body = head.split_off(end);
            Recorded { head, body }
        })
        .collect()
}
