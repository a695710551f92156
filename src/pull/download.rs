//! A download that resumes after its connection breaks.

use std::io::{self, Read};

use super::error::PullError;

/// The most attempts without progress. With the pauses between them, they take longer than a restart of the service.
const MAX_ATTEMPTS: u32 = 8;

/// The bytes of one connection that count as progress and reset the count of failures.
const PROGRESS_BYTES: u64 = 64 << 10;

/// For short files, this fraction of the length is progress: 1/16.
const PROGRESS_PARTS: u64 = 16;

/// The body of one response.
pub type Bytes = Box<dyn Read + Send + Sync>;

/// Reopens a download: `(offset, consecutive failures, last error)`. Returns `None` if the file has changed.
pub type Resume<'a> = dyn Fn(u64, u32, &PullError) -> Result<Option<Bytes>, PullError> + 'a;

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
        Download { bytes, received: 0, resumed_at: 0, length, failures: 0, resume }
    }

    fn rest(&mut self, why: &io::Error) -> Result<Bytes, PullError> {
        let part = self.received * 100 / self.length.max(1);
        let mut error = PullError::failed(format!("the export broke off after {part} % ({why})"));
        loop {
            self.failures += 1;
            if self.failures >= MAX_ATTEMPTS || !error.may_pass() {
                return Err(error);
            }
            match (self.resume)(self.received, self.failures, &error) {
                Ok(Some(bytes)) => {
                    self.resumed_at = self.received;
                    return Ok(bytes);
                }
                Ok(None) => {
                    return Err(PullError::failed("the export broke off, and has changed since"));
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
                Ok(0) if self.received < self.length && !buffer.is_empty() => io::ErrorKind::UnexpectedEof.into(),
                Ok(count) => {
                    self.received += count as u64;
                    // A single byte per connection is no progress.
                    if self.received - self.resumed_at >= PROGRESS_BYTES.min(self.length / PROGRESS_PARTS) {
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
    use std::time::Duration;

    use super::*;

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
        if with_error { Box::new(part.chain(Broken)) } else { Box::new(part) }
    }

    fn length() -> u64 {
        FILE.len() as u64
    }

    #[test]
    fn a_file_that_breaks_off_anywhere_comes_whole() {
        for piece in 1..=FILE.len() {
            for with_error in [false, true] {
                let asked = RefCell::new(Vec::new());
                let resume = |at, failures, _: &PullError| {
                    asked.borrow_mut().push((at, failures));
                    Ok(Some(cut(at, piece, with_error)))
                };
                let mut download = Download::new(cut(0, piece, with_error), length(), Box::new(resume));
                let mut read = vec![0; FILE.len()];
                download.read_exact(&mut read).unwrap();
                assert_eq!(read, FILE, "pieces of {piece}");
                drop(download);
                let expected: Vec<_> = (piece..FILE.len()).step_by(piece).map(|at| (at as u64, 1)).collect();
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
            let expected = if is_whole { (length - first).div_ceil(piece) } else { u64::from(MAX_ATTEMPTS - 1) };
            assert_eq!(connections.into_inner(), expected, "{piece} of {length}");
        }
    }

    #[test]
    fn the_error_of_an_attempt_is_passed_to_the_next_one() {
        let asked = RefCell::new(Vec::new());
        let resume = |at, failures: u32, error: &PullError| {
            let PullError::Failed { message, retry_after } = error else { panic!("{error:?}") };
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
        let expected = [(broken, None), ("overloaded", Some(Duration::from_secs(7))), ("overloaded", None)];
        assert_eq!(asked.into_inner(), expected.map(|(message, retry_after)| (message.to_owned(), retry_after)));
    }

    #[test]
    fn a_download_that_cannot_continue_is_told() {
        type Answer = fn() -> Result<Option<Bytes>, PullError>;
        let cases: [(Answer, u32, &str); 5] = [
            (|| Ok(None), 1, "has changed since"),
            (|| Err(PullError::failed("no way there")), MAX_ATTEMPTS - 1, "no way there"),
            (|| Ok(Some(cut(0, 0, true))), MAX_ATTEMPTS - 1, "broke off after 16 % (connection reset"),
            (|| Ok(Some(cut(0, 0, false))), MAX_ATTEMPTS - 1, "broke off after 16 % (unexpected end of file"),
            (|| Err(PullError::Refused("the key is revoked".to_owned())), 1, "the key is revoked"),
        ];
        for (answer, tries, message) in cases {
            let asked = RefCell::new(0);
            let resume = |at, failures, _: &PullError| {
                assert_eq!(at, 5);
                *asked.borrow_mut() += 1;
                assert_eq!(failures, *asked.borrow());
                answer()
            };
            let mut download = Download::new(cut(0, 5, true), length(), Box::new(resume));
            let error = io::read_to_string(&mut download).unwrap_err();
            let error = error.downcast::<PullError>().unwrap();
            drop(download);
            assert!(error.to_string().contains(message), "{message}: {error}");
            assert_eq!(asked.into_inner(), tries, "{message}");
        }
    }
}
