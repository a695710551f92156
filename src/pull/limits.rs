//! Limits on all responses, independent of their headers: bytes, items and time.

use std::io::{self, BufRead, Read};
use std::time::{Duration, Instant};

use super::error::PullError;

/// The limits of a client. The defaults are far above the sizes of real services.
#[derive(Clone, Copy, Debug)]
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
    pub silence: Duration,
    /// The lowest rate of a body.
    pub pace: MinPace,
}

impl Default for ReadLimits {
    fn default() -> ReadLimits {
        ReadLimits {
            record_bytes: 8 << 20,
            page_bytes: 32 << 20,
            export_records: 10_000_000,
            export_bytes: 32 << 30,
            catch_up_items: 20_000_000,
            silence: Duration::from_secs(90),
            // About 1 KiB a second.
            pace: MinPace { bytes: 64 << 10, within: Duration::from_secs(60) },
        }
    }
}

/// The lowest rate of a body: `bytes` must arrive within a waiting time.
#[derive(Clone, Copy, Debug)]
pub struct MinPace {
    /// The bytes.
    pub bytes: u64,
    /// The time.
    pub within: Duration,
}

/// A number of bytes in a readable unit.
pub fn size(bytes: u64) -> String {
    match bytes {
        1_073_741_824.. => format!("{} GiB", bytes >> 30),
        1_048_576.. => format!("{} MiB", bytes >> 20),
        1024.. => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

/// The error of a body over its limit, wrapped into an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error(
    "{what} is longer than {}, the limit; the copy stays as it was; check the address, and report it to the \
     service's operator",
    size(*.most)
)]
pub struct TooLong {
    /// The name of the part that is too long.
    pub what: &'static str,
    /// The limit in bytes.
    pub most: u64,
}

impl TooLong {
    /// Whether an error wraps a [`TooLong`].
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<TooLong>())
    }
}

/// A reader that fails with [`TooLong`] after a number of bytes.
#[derive(Debug)]
pub struct Bounded<R> {
    inner: R,
    what: &'static str,
    most: u64,
    received: u64,
}

impl<R> Bounded<R> {
    /// Limits a reader.
    pub fn new(inner: R, what: &'static str, most: u64) -> Bounded<R> {
        Bounded { inner, what, most, received: 0 }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.received += count as u64;
        if self.received > self.most {
            return Err(io::Error::other(TooLong { what: self.what, most: self.most }));
        }
        Ok(count)
    }
}

/// A reader that fails below a [`MinPace`]. Only the time spent in reads counts.
#[derive(Debug)]
pub struct Paced<R> {
    inner: R,
    pace: MinPace,
    received: u64,
    waited: Duration,
}

impl<R> Paced<R> {
    /// Sets the lowest rate of a reader.
    pub fn new(inner: R, pace: MinPace) -> Paced<R> {
        Paced { inner, pace, received: 0, waited: Duration::ZERO }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        let count = self.inner.read(buffer)?;
        self.received += count as u64;
        self.waited += begun.elapsed();
        if self.received >= self.pace.bytes {
            (self.received, self.waited) = (0, Duration::ZERO);
        } else if count > 0 && self.waited > self.pace.within {
            let (bytes, within) = (size(self.pace.bytes), self.pace.within.as_secs_f64());
            return Err(io::Error::other(PullError::failed(format!(
                "the service sends less than {bytes} in {within} s, the lowest accepted rate; check the connection"
            ))));
        }
        Ok(count)
    }
}

/// Reads a line with its line feed. Returns its length, or 0 at the end. Fails with [`TooLong`] after `most` bytes.
pub fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>, what: &'static str, most: usize) -> io::Result<usize> {
    line.clear();
    let most = most as u64;
    let length = reader.take(most + 1).read_until(b'\n', line)?;
    if length as u64 > most && line.last() != Some(&b'\n') {
        return Err(io::Error::other(TooLong { what, most }));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_over_the_bound_are_not_held() {
        for (length, is_whole) in [(0, true), (9, true), (10, true), (11, false), (1 << 20, false)] {
            let mut bounded = Bounded::new(io::repeat(b'x').take(length), "a page", 10);
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
                    Err(error) => assert!(TooLong::is(&error) && line.len() <= 11, "{length}: {error}"),
                }
            }
        }
        let error = TooLong { what: "a page of the feed", most: 32 << 20 }.to_string();
        assert!(error.starts_with("a page of the feed is longer than 32 MiB, the limit"), "{error}");
    }

    #[test]
    fn the_pace_is_counted_anew_after_each_portion() {
        let pace = MinPace { bytes: 8, within: Duration::from_secs(60) };
        let slow = Duration::from_secs(61);
        // (the bytes received before, the time waited before, the bytes that come now, what is left: bytes; `None`: an error)
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
            let mut paced = Paced { inner: &bytes[..count], pace, received, waited };
            let read = paced.read(&mut [0; 8]);
            let Some((left, is_new)) = expected else {
                assert!(read.is_err(), "{received} {count}");
                continue;
            };
            assert_eq!((read.unwrap(), paced.received), (count, left), "{received} {count}");
            assert_eq!(paced.waited.is_zero(), is_new, "{received} {count}: the time begins again");
        }
    }

    #[test]
    fn sizes_are_told_in_the_largest_unit() {
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

    struct Slow(Duration);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let begun = Instant::now();
            while begun.elapsed() < self.0 {
                std::hint::spin_loop();
            }
            buffer[..1].fill(b'x');
            Ok(1)
        }
    }

    #[test]
    fn bytes_come_at_a_pace() {
        let pace = |within| MinPace { bytes: 8, within };
        let mut read = Vec::new();
        Paced::new(Slow(Duration::ZERO), pace(Duration::from_secs(60))).take(100).read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), 100);
        let slow = Slow(Duration::from_millis(2));
        let error = Paced::new(slow, pace(Duration::from_millis(1))).read_to_end(&mut read).unwrap_err();
        assert!(error.to_string().contains("less than 8 bytes in 0.001 s"), "{error}");
        assert_eq!(read.len(), 100, "the first byte comes too late");
    }
}
