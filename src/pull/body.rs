//! The body of a response: bounded in bytes, items and time, whatever its headers say, and resumed after its connection
//! breaks.

use std::io::{self, BufRead, Read};
use std::time::{Duration, Instant};

use super::error::{PullError, Result};
use crate::disk::Bounded;

/// The limits of a client. The defaults are far above the sizes of real services.
#[derive(Clone, Copy)]
pub struct ReadLimits {
    /// The most bytes of a record's JSON: twice the default limit of an import.
    pub record_bytes: usize,
    /// The most bytes of a page, compressed or not. A page of 500 records takes about 1.5 MiB.
    pub page_bytes: u64,
    /// The most records of an export: 1000 times the contract's limit.
    pub export_records: u64,
    /// The most bytes of an export, compressed or not: 10 million records of about 3 KiB.
    pub export_bytes: u64,
    /// The most entries plus pages of one catch-up: a record and a tombstone for each record of the largest export.
    pub catch_up_items: u64,
    /// The read timeout. It includes the time in which the service builds an export.
    pub read_timeout: Duration,
    /// The lowest rate of a body: this many bytes must arrive within `pace_time` of waiting.
    pub pace_bytes: u64,
    /// The waiting time in which `pace_bytes` must arrive.
    pub pace_time: Duration,
}

impl Default for ReadLimits {
    fn default() -> ReadLimits {
        ReadLimits {
            record_bytes: 8 << 20,
            page_bytes: 32 << 20,
            export_records: 10_000_000,
            export_bytes: 32 << 30,
            catch_up_items: 20_000_000,
            read_timeout: Duration::from_secs(90),
            // About 1 KiB a second.
            pace_bytes: 64 << 10,
            pace_time: Duration::from_secs(60),
        }
    }
}

/// A number of bytes in a readable unit.
fn size(bytes: u64) -> String {
    match bytes {
        1_073_741_824.. => format!("{} GiB", bytes >> 30),
        1_048_576.. => format!("{} MiB", bytes >> 20),
        1024.. => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

/// The error of a part that is longer than its limit.
pub fn too_long(what: &str, most: u64) -> PullError {
    PullError::failed(format!(
        "{what} is longer than {}, the limit; the copy stays as it was; check the address, and report it to the service's \
         operator",
        size(most)
    ))
}

/// [`too_long`] while reading. Only this error has the kind [`io::ErrorKind::FileTooLarge`].
fn too_long_to_read(what: &str, most: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, too_long(what, most))
}

/// Limits a reader of the part `what` to `most` bytes.
pub fn bounded<R: Read>(
    inner: R,
    what: &'static str,
    most: u64,
) -> Bounded<R, impl Fn() -> io::Error> {
    Bounded::new(inner, most, move || too_long_to_read(what, most))
}

/// A reader that fails below a rate. Only the time spent in reads counts.
pub struct Paced<R> {
    inner: R,
    bytes: u64,
    time: Duration,
    received: u64,
    waited: Duration,
}

impl<R> Paced<R> {
    /// Sets the lowest rate of a reader.
    pub fn new(inner: R, limits: &ReadLimits) -> Paced<R> {
        Paced {
            inner,
            bytes: limits.pace_bytes,
            time: limits.pace_time,
            received: 0,
            waited: Duration::ZERO,
        }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        let count = self.inner.read(buffer)?;
        self.received += count as u64;
        self.waited += begun.elapsed();
        if self.received >= self.bytes {
            self.received = 0;
            self.waited = Duration::ZERO;
        } else if count > 0 && self.waited > self.time {
            let bytes = size(self.bytes);
            let time = self.time.as_secs_f64();
            return Err(io::Error::other(PullError::failed(format!(
                "the service sends less than {bytes} in {time} s, the lowest accepted rate; check the connection"
            ))));
        }
        Ok(count)
    }
}

/// Reads a line with its line feed. Returns its length, or 0 at the end. Fails like [`bounded`] after `most` bytes.
pub fn read_line(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
    what: &'static str,
    most: usize,
) -> io::Result<usize> {
    line.clear();
    let most = most as u64;
    let length = reader.take(most + 1).read_until(b'\n', line)?;
    if length as u64 > most && line.last() != Some(&b'\n') {
        Err(too_long_to_read(what, most))
    } else {
        Ok(length)
    }
}

/// The most attempts to resume without progress. With the pauses between them, they take longer than a restart of the
/// service.
const MAX_ATTEMPTS: u32 = 8;

/// The bytes of one connection that count as progress and reset the count of failures.
const PROGRESS_BYTES: u64 = 64 << 10;

/// For short files, this fraction of the length is progress: 1/16.
const PROGRESS_PARTS: u64 = 16;

/// The body of one response.
pub type Bytes = Box<dyn Read + Send + Sync>;

/// Reopens a download: `(offset, consecutive failures, last error)`. Returns `None` if the file has changed.
pub type Resume<'a> = dyn Fn(u64, u32, &PullError) -> Result<Option<Bytes>> + 'a;

/// Reads a file of a known length. A failed download ends with an [`io::Error`] that wraps a [`PullError`].
pub struct Download<'a> {
    bytes: Bytes,
    received: u64,
    /// The offset at which the present connection began.
    resumed_at: u64,
    length: u64,
    failures: u32,
    resume: Box<Resume<'a>>,
}

impl<'a> Download<'a> {
    /// A file of `length` bytes; `bytes` is the first connection.
    pub fn new(bytes: Bytes, length: u64, resume: Box<Resume<'a>>) -> Download<'a> {
        Download {
            bytes,
            received: 0,
            resumed_at: 0,
            length,
            failures: 0,
            resume,
        }
    }

    fn rest(&mut self, why: &io::Error) -> Result<Bytes> {
        let part = self.received * 100 / self.length.max(1);
        let mut error = PullError::failed(format!("the export broke off after {part} % ({why})"));
        loop {
            self.failures += 1;
            if self.failures >= MAX_ATTEMPTS || !error.is_transient() {
                return Err(error);
            }
            match (self.resume)(self.received, self.failures, &error) {
                Ok(Some(bytes)) => {
                    self.resumed_at = self.received;
                    return Ok(bytes);
                }
                Ok(None) => {
                    return Err(PullError::failed(
                        "the export broke off, and has changed since",
                    ));
                }
                Err(next) => error = next,
            }
        }
    }
}

impl Read for Download<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let broken = match self.bytes.read(buffer) {
                Ok(0) if self.received < self.length && !buffer.is_empty() => {
                    io::ErrorKind::UnexpectedEof.into()
                }
                Ok(count) => {
                    self.received += count as u64;
                    // A single byte per connection is no progress.
                    if self.received - self.resumed_at
                        >= PROGRESS_BYTES.min(self.length / PROGRESS_PARTS)
                    {
                        self.failures = 0;
                    }
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => error,
            };
            self.bytes = self.rest(&broken).map_err(io::Error::other)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn bytes_over_the_bound_are_not_held() {
        for (length, is_whole) in [
            (0, true),
            (9, true),
            (10, true),
            (11, false),
            (1 << 20, false),
        ] {
            let mut bounded = bounded(io::repeat(b'x').take(length), "a page", 10);
            let mut held = Vec::new();
            let read = bounded.read_to_end(&mut held);
            assert_eq!(read.is_ok(), is_whole, "{length}");
            assert!(held.len() <= 10, "{length}: {} bytes are held", held.len());
            let text = "x".repeat(usize::try_from(length).unwrap());
            for end in ["", "\n"] {
                let lines = format!("{text}{end}next");
                let mut line = Vec::new();
                let read = read_line(&mut lines.as_bytes(), &mut line, "a line", 10);
                match read {
                    Ok(_) => assert!(is_whole && line.len() <= 11, "{length}"),
                    Err(error) => {
                        assert!(
                            error.kind() == io::ErrorKind::FileTooLarge && line.len() <= 11,
                            "{length}: {error}"
                        );
                    }
                }
            }
        }
        let error = too_long("a page of the feed", 32 << 20).to_string();
        assert!(
            error.starts_with("a page of the feed is longer than 32 MiB, the limit"),
            "{error}"
        );
    }

    #[test]
    fn the_pace_is_counted_anew_after_each_portion() {
        let time = Duration::from_secs(60);
        let slow = Duration::from_secs(61);
        // (the bytes received before, the time waited before, the bytes that come now, what is left: bytes; `None`: an
        // error)
        let cases = [
            (0, Duration::ZERO, 7, Some((7, false))),
            (0, Duration::ZERO, 8, Some((0, true))),
            (0, slow, 8, Some((0, true))),
            (1, slow, 7, Some((0, true))),
            (7, slow, 1, Some((0, true))),
            (0, slow, 7, None),
            (6, slow, 1, None),
            (6, slow, 0, Some((6, false))),
        ];
        for (received, waited, count, expected) in cases {
            let bytes = [b'x'; 8];
            let mut paced = Paced {
                inner: &bytes[..count],
                bytes: 8,
                time,
                received,
                waited,
            };
            let read = paced.read(&mut [0; 8]);
            let Some((left, is_new)) = expected else {
                assert!(read.is_err(), "{received} {count}");
                continue;
            };
            assert_eq!(read.unwrap(), count, "{received} {count}");
            assert_eq!(paced.received, left, "{received} {count}");
            let is_zero = paced.waited.is_zero();
            assert_eq!(is_zero, is_new, "{received} {count}: the time begins again");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1_048_575, "1023 KiB"),
            (1_048_576, "1 MiB"),
            (1_073_741_823, "1023 MiB"),
            (1_073_741_824, "1 GiB"),
            (32 << 30, "32 GiB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), expected);
        }
    }

    const FILE: &[u8] = b"a file of some thirty-one bytes";

    /// A part of the file, followed by an error or an early end.
    fn cut(from: u64, count: usize, with_error: bool) -> Bytes {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
        let from = usize::try_from(from).unwrap();
        let part = FILE[from..].iter().copied().take(count).collect::<Vec<_>>();
        let part = io::Cursor::new(part);
        if with_error {
            Box::new(part.chain(Broken))
        } else {
            Box::new(part)
        }
    }

    fn length() -> u64 {
        FILE.len() as u64
    }

    #[test]
    fn a_download_that_breaks_off_anywhere_completes() {
        for piece in 1..=FILE.len() {
            for with_error in [false, true] {
                let asked = RefCell::new(Vec::new());
                let resume = |at, failures, _: &PullError| {
                    asked.borrow_mut().push((at, failures));
                    Ok(Some(cut(at, piece, with_error)))
                };
                let mut download =
                    Download::new(cut(0, piece, with_error), length(), Box::new(resume));
                let mut read = vec![0; FILE.len()];
                download.read_exact(&mut read).unwrap();
                assert_eq!(read, FILE, "pieces of {piece}");
                drop(download);
                let expected = (piece..FILE.len()).step_by(piece);
                let expected: Vec<_> = expected.map(|at| (at as u64, 1)).collect();
                assert_eq!(asked.into_inner(), expected, "pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_few_bytes_for_each_connection_are_no_progress() {
        const LONG: u64 = 64 << 20;
        // (the length, the bytes of each connection, whether the file comes whole)
        let cases = [
            (320, 20, true),
            (320, 19, false),
            (320, 1, false),
            (LONG, PROGRESS_BYTES, true),
            (LONG, PROGRESS_BYTES - 1, false),
            (15, 1, true),
        ];
        for (length, piece, is_whole) in cases {
            let part = move |count: u64| -> Bytes { Box::new(io::repeat(b'x').take(count)) };
            let connections = RefCell::new(0);
            let resume = |_, _, _: &PullError| {
                *connections.borrow_mut() += 1;
                Ok(Some(part(piece)))
            };
            // The first connection brings much.
            let first = length / 4 + 1;
            let mut download = Download::new(part(first), length, Box::new(resume));
            let read = io::copy(&mut download.by_ref().take(length), &mut io::sink());
            drop(download);
            assert_eq!(read.is_ok(), is_whole, "{piece} of {length}: {read:?}");
            let expected = if is_whole {
                (length - first).div_ceil(piece)
            } else {
                u64::from(MAX_ATTEMPTS - 1)
            };
            assert_eq!(connections.into_inner(), expected, "{piece} of {length}");
        }
    }

    #[test]
    fn the_error_of_an_attempt_is_passed_to_the_next_one() {
        let asked = RefCell::new(Vec::new());
        let resume = |at, failures: u32, error: &PullError| {
            let PullError::Failed {
                message,
                retry_after,
            } = error
            else {
                panic!("{error:?}")
            };
            asked.borrow_mut().push((message.clone(), *retry_after));
            match failures {
                3.. => Ok(Some(cut(at, FILE.len(), false))),
                _ => Err(PullError::Failed {
                    message: "overloaded".to_owned(),
                    retry_after: (failures == 1).then_some(Duration::from_secs(7)),
                }),
            }
        };
        let mut download = Download::new(cut(0, 5, false), length(), Box::new(resume));
        assert_eq!(io::read_to_string(&mut download).unwrap().as_bytes(), FILE);
        drop(download);
        let broken = "the export broke off after 16 % (unexpected end of file)";
        let expected = [
            (broken, None),
            ("overloaded", Some(Duration::from_secs(7))),
            ("overloaded", None),
        ];
        assert_eq!(
            asked.into_inner(),
            expected.map(|(message, retry_after)| (message.to_owned(), retry_after))
        );
    }
}
