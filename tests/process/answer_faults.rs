//! The faults that a network, a proxy or a cache adds to an exchange, as a table.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use strum::{EnumIter, IntoEnumIterator};

use super::client::Answer;

/// A request: its head without the empty line, and its body.
#[derive(Clone, Debug)]
pub struct Sent {
    pub head: String,
    pub body: Vec<u8>,
}

impl Sent {
    /// Method and target, such as `GET /v1/status`.
    pub fn line(&self) -> &str {
        let line = self.head.lines().next().unwrap_or_default();
        line.strip_suffix(" HTTP/1.1").unwrap_or(line)
    }

    pub fn is(&self, method: &str) -> bool {
        self.head.starts_with(&format!("{method} "))
    }

    fn has_range(&self) -> bool {
        self.head.to_ascii_lowercase().contains("\r\nrange:")
    }
}

/// A fault of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub enum Fault {
    /// The connection is closed before the server gets the request.
    NotForwarded,
    /// The server handles the request, and the connection is closed.
    NoAnswer,
    /// The connection is closed in the middle of the head.
    CutHead,
    /// The connection is closed in the middle of the body.
    CutMiddle,
    /// Half of the body, with a length that fits.
    ShortHalf,
    /// The body without its last byte, with a length that fits.
    ShortLast,
    /// Status 200 without headers and body.
    Bare,
    /// One bit of the body is another.
    Flipped,
    Delayed,
    /// The previous answer to the same request.
    Late,
    /// The previous body, with the headers of this answer: a cache that updates its entry from a 304.
    Freshened,
    /// The previous answer to another request of the same method.
    Crossed,
    /// The server gets the request twice, and the client gets the second answer.
    RequestTwice,
    /// The server's answer is sent twice on the same connection.
    AnswerTwice,
    WeakTag,
    NoTag,
    OtherTag,
    WeakTagCut,
    /// 206 with fewer bytes than requested, and the `Content-Range` of those.
    OtherRange,
    /// 206 with other bytes, and the `Content-Range` of the request.
    ClaimedRange,
    /// 200 with the whole, although a range was requested.
    WholeForRange,
    /// 206 with the first half, although the whole was requested.
    PartForWhole,
    /// 416.
    Unsatisfiable,
    /// An error page in HTML.
    Page(u16),
    /// 304 without a condition.
    NotModified,
    /// A login page in HTML with status 200. The server does not get the request.
    Portal,
    /// The login page as a redirect.
    PortalRedirect,
    /// The headers of the previous answer come last.
    OtherHeadersLast,
    UpperCase,
    /// Headers beginning with `x-` are dropped.
    NoOwnHeaders,
    GzipRemoved,
    /// `Content-Encoding: gzip` is added, and the body is not compressed.
    GzipClaimed,
    /// `Content-Encoding: GZIP`.
    GzipUpperCase,
    Chunked,
    /// In chunks, and the connection is closed in the middle.
    ChunkedCut,
    /// Without a length, ended by the connection.
    UntilClosed,
    /// Without a length, and the connection is closed in the middle.
    UntilClosedCut,
    /// After a 103.
    Hints,
    Http10,
}

/// Every fault.
pub fn all_faults() -> impl Iterator<Item = Fault> {
    let others = Fault::iter().filter(|fault| !matches!(fault, Fault::Page(_)));
    others.chain([403, 404, 410, 503].map(Fault::Page))
}

/// An answer as a client receives it.
#[derive(Debug)]
pub struct Received {
    pub bytes: Vec<u8>,
    /// Whether the connection is closed afterwards.
    pub is_closed: bool,
}

/// An exchange, and the earlier ones that a fault needs.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    pub sent: &'a Sent,
    pub answer: &'a Answer,
    /// The previous answer to the same request.
    pub previous: Option<&'a Answer>,
    /// The last answer to another request of the same method.
    pub other: Option<&'a Answer>,
}

impl Fault {
    /// Whether the server gets the request.
    pub fn is_forwarded(self) -> bool {
        !matches!(
            self,
            Fault::NotForwarded | Fault::Portal | Fault::PortalRedirect
        )
    }

    /// Whether proxies may change a response in this way (RFC 9110 and 9112).
    pub fn is_allowed(self) -> bool {
        matches!(
            self,
            Fault::Delayed
                | Fault::RequestTwice
                | Fault::WeakTag
                | Fault::NoTag
                | Fault::UpperCase
                | Fault::GzipUpperCase
                | Fault::Chunked
                | Fault::UntilClosed
                | Fault::Hints
                | Fault::Http10
        )
    }

    /// The answer that the client receives; `None` if the fault changes nothing of this exchange.
    pub fn apply(self, exchange: Exchange<'_>) -> Option<Received> {
        let Exchange {
            sent,
            answer,
            previous,
            other,
        } = exchange;
        let is_read = sent.is("GET") || sent.is("HEAD");
        let has_body = !answer.body.is_empty();
        let half = answer.body.len() / 2;
        let whole = |answer: &Answer| Received {
            bytes: text_of(sent, answer),
            is_closed: false,
        };
        let cut = |answer: &Answer, left: usize| {
            let mut bytes = text_of(sent, answer);
            bytes.truncate(bytes.len() - left);
            Received {
                bytes,
                is_closed: true,
            }
        };
        let with_body = |body: Vec<u8>| {
            whole(&Answer {
                body,
                ..answer.clone()
            })
        };
        Some(match self {
            Fault::NotForwarded | Fault::NoAnswer => Received {
                bytes: Vec::new(),
                is_closed: true,
            },
            Fault::CutHead => {
                let bytes = text_of(sent, answer);
                Received {
                    bytes: bytes[..bytes.len().min(40)].to_vec(),
                    is_closed: true,
                }
            }
            Fault::CutMiddle if has_body => cut(answer, answer.body.len() - half),
            Fault::ShortHalf if has_body => with_body(answer.body[..half].to_vec()),
            Fault::ShortLast if has_body => {
                with_body(answer.body[..answer.body.len() - 1].to_vec())
            }
            Fault::Bare => whole(&Answer {
                status: 200,
                headers: Vec::new(),
                body: Vec::new(),
            }),
            Fault::Flipped if has_body => {
                let mut body = answer.body.clone();
                body[half] ^= 1;
                with_body(body)
            }
            Fault::Delayed | Fault::RequestTwice => whole(answer),
            Fault::Late if is_read => whole(previous?),
            Fault::Freshened if is_read && has_body => with_body(previous?.body.clone()),
            Fault::Crossed if is_read => whole(other?),
            Fault::AnswerTwice => Received {
                bytes: text_of(sent, answer).repeat(2),
                is_closed: false,
            },
            Fault::WeakTag => whole(&with_tag(answer, |tag| Some(format!("W/{tag}")))?),
            Fault::NoTag => whole(&with_tag(answer, |_| None)?),
            Fault::OtherTag => whole(&with_tag(answer, |_| Some("\"another\"".to_owned()))?),
            Fault::WeakTagCut if has_body => {
                cut(&with_tag(answer, |tag| Some(format!("W/{tag}")))?, half)
            }
            Fault::OtherRange if answer.status == 206 => {
                let (first, last, total) = range_of(answer)?;
                let range = format!("bytes {}-{last}/{total}", first + half.max(1));
                let body = answer.body[half.max(1)..].to_vec();
                whole(&with_header(
                    &Answer {
                        body,
                        ..answer.clone()
                    },
                    "content-range",
                    &range,
                ))
            }
            Fault::ClaimedRange if answer.status == 206 => {
                let mut body = answer.body.clone();
                body.rotate_left(1.min(half));
                body[0] ^= 1;
                with_body(body)
            }
            Fault::WholeForRange if answer.status == 206 => match previous {
                Some(previous) if previous.status == 200 => whole(previous),
                _ => {
                    let (first, _, _) = range_of(answer)?;
                    let body = [vec![0; first], answer.body.clone()].concat();
                    let mut all = Answer {
                        status: 200,
                        body,
                        ..answer.clone()
                    };
                    all.headers
                        .retain(|(name, _)| !name.eq_ignore_ascii_case("content-range"));
                    whole(&all)
                }
            },
            Fault::PartForWhole
                if answer.status == 200 && has_body && sent.is("GET") && !sent.has_range() =>
            {
                let range = format!("bytes 0-{}/{}", half.max(1) - 1, answer.body.len());
                let body = answer.body[..half.max(1)].to_vec();
                whole(&with_header(
                    &Answer {
                        status: 206,
                        body,
                        ..answer.clone()
                    },
                    "content-range",
                    &range,
                ))
            }
            Fault::Unsatisfiable if sent.has_range() => whole(&page(416)),
            Fault::Page(status) => whole(&page(status)),
            Fault::NotModified if is_read => whole(&Answer {
                status: 304,
                body: Vec::new(),
                ..answer.clone()
            }),
            Fault::Portal => whole(&page(200)),
            Fault::PortalRedirect => whole(&with_header(
                &page(302),
                "location",
                "http://127.0.0.1:1/login",
            )),
            Fault::OtherHeadersLast => {
                let headers = [&answer.headers[..], &other_headers(answer, previous?)?].concat();
                whole(&Answer {
                    headers,
                    ..answer.clone()
                })
            }
            Fault::UpperCase => {
                let upper =
                    |(name, value): &(String, String)| (name.to_ascii_uppercase(), value.clone());
                whole(&Answer {
                    headers: answer.headers.iter().map(upper).collect(),
                    ..answer.clone()
                })
            }
            Fault::NoOwnHeaders => {
                let mut less = answer.clone();
                less.headers
                    .retain(|(name, _)| !name.to_ascii_lowercase().starts_with("x-"));
                (less.headers.len() < answer.headers.len()).then(|| whole(&less))?
            }
            Fault::GzipRemoved if has_body => {
                let mut body = Vec::new();
                MultiGzDecoder::new(&answer.body[..])
                    .read_to_end(&mut body)
                    .ok()?;
                let mut plain = Answer {
                    body,
                    ..answer.clone()
                };
                plain
                    .headers
                    .retain(|(name, _)| !name.eq_ignore_ascii_case("content-encoding"));
                whole(&plain)
            }
            Fault::GzipClaimed if has_body && answer.header("content-encoding").is_none() => {
                whole(&with_header(answer, "content-encoding", "gzip"))
            }
            Fault::GzipUpperCase => {
                answer
                    .header("content-encoding")
                    .filter(|coding| *coding == "gzip")?;
                whole(&with_header(answer, "content-encoding", "GZIP"))
            }
            Fault::Chunked if has_body => Received {
                bytes: in_chunks(answer),
                is_closed: false,
            },
            Fault::ChunkedCut if has_body => {
                let mut bytes = in_chunks(answer);
                bytes.truncate(bytes.len() - half - 5);
                Received {
                    bytes,
                    is_closed: true,
                }
            }
            Fault::UntilClosed if has_body => Received {
                bytes: [head_of(answer, "1.1"), answer.body.clone()].concat(),
                is_closed: true,
            },
            Fault::UntilClosedCut if has_body => Received {
                bytes: [head_of(answer, "1.1"), answer.body[..half].to_vec()].concat(),
                is_closed: true,
            },
            Fault::Hints => {
                let hints = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n";
                Received {
                    bytes: [&hints[..], &text_of(sent, answer)].concat(),
                    is_closed: false,
                }
            }
            Fault::Http10 => Received {
                bytes: [head_of(answer, "1.0"), answer.body.clone()].concat(),
                is_closed: true,
            },
            _ => return None,
        })
    }
}

fn page(status: u16) -> Answer {
    let body = format!(
        "<html><head><title>{status}</title></head><body>A page of a proxy.</body></html>\n"
    );
    let headers = vec![(
        "Content-Type".to_owned(),
        "text/html; charset=utf-8".to_owned(),
    )];
    Answer {
        status,
        headers,
        body: body.into_bytes(),
    }
}

fn with_header(answer: &Answer, name: &str, value: &str) -> Answer {
    let mut changed = answer.clone();
    changed
        .headers
        .retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    changed.headers.push((name.to_owned(), value.to_owned()));
    changed
}

/// Changes the ETag; `None` if there is none.
fn with_tag(answer: &Answer, change: impl Fn(&str) -> Option<String>) -> Option<Answer> {
    let tag = change(answer.header("etag")?);
    let mut changed = answer.clone();
    changed
        .headers
        .retain(|(name, _)| !name.eq_ignore_ascii_case("etag"));
    changed
        .headers
        .extend(tag.map(|tag| ("etag".to_owned(), tag)));
    Some(changed)
}

/// The headers of the previous answer that differ from those of this one; `None` if none do. Times are left out:
/// whether they differ is chance.
fn other_headers(answer: &Answer, previous: &Answer) -> Option<Vec<(String, String)>> {
    let is_other = |(name, value): &&(String, String)| {
        !name.eq_ignore_ascii_case("date") && answer.header(name).is_some_and(|own| own != value)
    };
    let others: Vec<_> = previous.headers.iter().filter(is_other).cloned().collect();
    (!others.is_empty()).then_some(others)
}

/// The first and last byte, and the length of the whole, from `Content-Range`.
fn range_of(answer: &Answer) -> Option<(usize, usize, usize)> {
    let (range, total) = answer
        .header("content-range")?
        .strip_prefix("bytes ")?
        .split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?, total.parse().ok()?))
}

fn head_of(answer: &Answer, version: &str) -> Vec<u8> {
    let mut head = format!("HTTP/{version} {} Status\r\n", answer.status);
    head.extend(
        answer
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n")),
    );
    (head + "\r\n").into_bytes()
}

/// The bytes of an answer whose length fits its body.
fn text_of(sent: &Sent, answer: &Answer) -> Vec<u8> {
    let has_no_body = sent.is("HEAD") || [204, 304].contains(&answer.status);
    let length = if has_no_body {
        None
    } else {
        Some(answer.body.len())
    };
    let mut sized = answer.clone();
    sized
        .headers
        .extend(length.map(|length| ("Content-Length".to_owned(), length.to_string())));
    let mut bytes = head_of(&sized, "1.1");
    if !has_no_body {
        bytes.extend_from_slice(&answer.body);
    }
    bytes
}

fn in_chunks(answer: &Answer) -> Vec<u8> {
    let mut bytes = head_of(&with_header(answer, "transfer-encoding", "chunked"), "1.1");
    for chunk in answer.body.chunks(answer.body.len().div_ceil(3)) {
        bytes.extend(format!("{:x};name=value\r\n", chunk.len()).bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\nX-Trailer: 1\r\n\r\n");
    bytes
}
