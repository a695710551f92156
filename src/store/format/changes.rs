//! Encoded changes of rows: the writes of a commit in their order, or a whole state as runs of rows.
//!
//! | first byte | then |
//! | --- | --- |
//! | 0: put | table, key, value |
//! | 1: remove | table, key |
//! | 2: remove all from one key to another, both included | table, first key, last key |
//! | 3: run, a sequence of new rows with ascending keys | table, then for each row a 1, key and value, then a 0 |
//!
//! A table is its code (`tables`), one byte. Keys and values are the bytes that redb stores, each after its length. A
//! length has seven bits per byte, the low ones first. All bytes but the last have the highest bit set. The shortest
//! encoding is required.

const PUT: u8 = 0;
const REMOVE: u8 = 1;
const REMOVE_RANGE: u8 = 2;
const RUN: u8 = 3;

const ROW: u8 = 1;
const END: u8 = 0;

/// Encodes changes.
#[derive(Debug, Default)]
pub struct ChangeEncoder {
    bytes: Vec<u8>,
    /// The table of the open run.
    run: Option<u8>,
}

impl ChangeEncoder {
    /// Inserts or replaces a row.
    pub fn put(&mut self, table: u8, key: &[u8], value: &[u8]) {
        self.begin(PUT, table);
        self.text(key);
        self.text(value);
    }

    /// Removes a row.
    pub fn remove(&mut self, table: u8, key: &[u8]) {
        self.begin(REMOVE, table);
        self.text(key);
    }

    /// Removes all rows between two keys, both included.
    pub fn remove_range(&mut self, table: u8, first: &[u8], last: &[u8]) {
        self.begin(REMOVE_RANGE, table);
        self.text(first);
        self.text(last);
    }

    /// Appends a row to the open run, or begins one.
    pub fn run_row(&mut self, table: u8, key: &[u8], value: &[u8]) {
        if self.run != Some(table) {
            self.begin(RUN, table);
            self.run = Some(table);
        }
        self.bytes.push(ROW);
        self.text(key);
        self.text(value);
    }

    /// Closes the open run, if there is one.
    pub fn end_run(&mut self) {
        if self.run.take().is_some() {
            self.bytes.push(END);
        }
    }

    /// The number of bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Closes the open run, and returns the encoded changes.
    pub fn finish(mut self) -> Vec<u8> {
        self.end_run();
        self.bytes
    }

    fn begin(&mut self, kind: u8, table: u8) {
        self.end_run();
        self.bytes.extend([kind, table]);
    }

    fn text(&mut self, text: &[u8]) {
        let mut left = text.len();
        while left >= 0x80 {
            self.bytes.push(left.to_le_bytes()[0] | 0x80);
            left >>= 7;
        }
        self.bytes.push(left.to_le_bytes()[0]);
        self.bytes.extend_from_slice(text);
    }
}

/// A row: its key and its value.
type EncodedRow<'a> = (&'a [u8], &'a [u8]);

/// A change of rows of one table.
#[derive(Debug)]
#[allow(missing_docs, reason = "described above")]
pub enum EncodedChange<'a> {
    Put { key: &'a [u8], value: &'a [u8] },
    Remove { key: &'a [u8] },
    RemoveRange { first: &'a [u8], last: &'a [u8] },
    Run { rows: Vec<EncodedRow<'a>> },
}

/// Decodes changes: the code of the table of each, and the change. Ends after the first invalid one.
#[derive(Debug)]
pub struct ChangeDecoder<'a>(&'a [u8]);

impl<'a> Iterator for ChangeDecoder<'a> {
    type Item = Result<(u8, EncodedChange<'a>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.0 = &[];
        }
        Some(read)
    }
}

impl<'a> ChangeDecoder<'a> {
    /// Creates a decoder. It decodes one change per call of `next`.
    pub fn new(bytes: &'a [u8]) -> ChangeDecoder<'a> {
        ChangeDecoder(bytes)
    }

    fn read(&mut self) -> Result<(u8, EncodedChange<'a>), &'static str> {
        let kind = self.byte()?;
        let table = self.byte()?;
        let change = match kind {
            PUT => EncodedChange::Put {
                key: self.text()?,
                value: self.text()?,
            },
            REMOVE => EncodedChange::Remove { key: self.text()? },
            REMOVE_RANGE => EncodedChange::RemoveRange {
                first: self.text()?,
                last: self.text()?,
            },
            RUN => EncodedChange::Run { rows: self.rows()? },
            _ => return Err("a change of an unknown kind"),
        };
        Ok((table, change))
    }

    fn rows(&mut self) -> Result<Vec<EncodedRow<'a>>, &'static str> {
        let mut rows = Vec::new();
        loop {
            match self.byte()? {
                ROW => rows.push((self.text()?, self.text()?)),
                END if rows.is_empty() => return Err("a run without rows"),
                END => return Ok(rows),
                _ => return Err("a run with an unknown marker"),
            }
        }
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        let (byte, rest) = self
            .0
            .split_first()
            .ok_or("the bytes end within a change")?;
        self.0 = rest;
        Ok(*byte)
    }

    fn text(&mut self) -> Result<&'a [u8], &'static str> {
        let mut length: usize = 0;
        // Keys and values in redb are shorter than 4 GiB.
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            if shift == 28 && byte > 0x0f {
                break;
            }
            length |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 {
                    return Err("a length that is not in its shortest form");
                }
                let (text, rest) = self
                    .0
                    .split_at_checked(length)
                    .ok_or("a key or value reaches beyond the end")?;
                self.0 = rest;
                return Ok(text);
            }
        }
        Err("a length of 4 GiB or more")
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Put(u8, Vec<u8>, Vec<u8>),
        Remove(u8, Vec<u8>),
        RemoveRange(u8, Vec<u8>, Vec<u8>),
        Run(u8, Vec<(Vec<u8>, Vec<u8>)>),
    }

    fn texts() -> impl Strategy<Value = Vec<u8>> {
        // Lengths of one, two and three bytes.
        prop_oneof![8 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 120..140), 1 => vec(Just(7), 16_380..16_390)]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (any::<u8>(), texts(), texts())
                .prop_map(|(table, key, value)| Step::Put(table, key, value)),
            (any::<u8>(), texts()).prop_map(|(table, key)| Step::Remove(table, key)),
            (any::<u8>(), texts(), texts())
                .prop_map(|(table, first, last)| Step::RemoveRange(table, first, last)),
            (any::<u8>(), vec((texts(), texts()), 1..5))
                .prop_map(|(table, rows)| Step::Run(table, rows)),
        ];
        vec(step, 0..8)
    }

    fn encode(steps: &[Step]) -> Vec<u8> {
        let mut encoder = ChangeEncoder::default();
        for step in steps {
            match step {
                Step::Put(table, key, value) => encoder.put(*table, key, value),
                Step::Remove(table, key) => encoder.remove(*table, key),
                Step::RemoveRange(table, first, last) => encoder.remove_range(*table, first, last),
                Step::Run(table, rows) => {
                    rows.iter()
                        .for_each(|(key, value)| encoder.run_row(*table, key, value));
                    encoder.end_run();
                }
            }
        }
        encoder.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Vec<Step>, &'static str> {
        let own = |bytes: &[u8]| bytes.to_vec();
        let step = |(table, change)| match change {
            EncodedChange::Put { key, value } => Step::Put(table, own(key), own(value)),
            EncodedChange::Remove { key } => Step::Remove(table, own(key)),
            EncodedChange::RemoveRange { first, last } => {
                Step::RemoveRange(table, own(first), own(last))
            }
            EncodedChange::Run { rows } => Step::Run(
                table,
                rows.into_iter()
                    .map(|(key, value)| (own(key), own(value)))
                    .collect(),
            ),
        };
        ChangeDecoder::new(bytes)
            .map(|change| change.map(step))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        #[test]
        fn changes_round_trip(steps in steps()) {
            prop_assert_eq!(format!("{:?}", decode(&encode(&steps)).unwrap()), format!("{steps:?}"));
        }

        /// Changes have only one encoding: encoding the decoded changes gives the same bytes.
        #[test]
        fn any_bytes_are_rejected_or_decoded_exactly(
            steps in steps(), cut in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut bytes = encode(&steps);
            bytes.truncate(cut.index(bytes.len() + 1));
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(read) = decode(&bytes) {
                prop_assert_eq!(encode(&read), bytes);
            }
        }

        #[test]
        fn random_bytes_cause_no_panic(bytes in vec(prop_oneof![0..4_u8, any::<u8>()], 0..60)) {
            if let Ok(read) = decode(&bytes) {
                prop_assert_eq!(encode(&read), bytes);
            }
        }
    }

    #[test]
    fn every_cut_within_a_change_is_refused() {
        let steps = [
            Step::Run(3, vec![(vec![1; 130], vec![2])]),
            Step::Put(1, vec![3], vec![4; 3]),
        ];
        let bytes = encode(&steps);
        let first = encode(&steps[..1]).len();
        for cut in (1..bytes.len()).filter(|cut| *cut != first) {
            assert!(
                decode(&bytes[..cut]).is_err(),
                "{cut} of {} bytes",
                bytes.len()
            );
        }
    }

    #[test]
    fn invalid_changes_are_rejected() {
        let cases: [(&[u8], &str); 6] = cases![
            &[4, 0], "a change of an unknown kind";
            &[1, 0, 2, 9], "a key or value reaches beyond the end";
            &[1, 0, 0x80, 0], "a length that is not in its shortest form";
            &[1, 0, 0xff, 0xff, 0xff, 0xff, 0x10], "a length of 4 GiB or more";
            &[3, 0, 0], "a run without rows";
            &[3, 0, 2], "a run with an unknown marker";
        ];
        for (bytes, expected) in cases {
            assert_eq!(decode(bytes).unwrap_err(), expected, "{bytes:?}");
        }
    }
}
