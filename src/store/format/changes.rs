//! ChangeDecoder of rows as bytes: what a commit did, in the order in which it was written, or a whole state as what makes it from
//! nothing.
//!
//! | first byte | then |
//! | --- | --- |
//! | 0: put | table, key, value |
//! | 1: remove | table, key |
//! | 2: remove all from one key to another, both included | table, first key, last key |
//! | 3: rows of ascending keys, none of which is there | table, then for each row a 1, key and value, then a 0 |
//!
//! A table is its code (`tables`), a byte. Keys and values are the engine's bytes, each behind its length: seven bits a byte, the
//! low ones first, the highest bit set on all but the last byte, and no more bytes than it takes.

const PUT: u8 = 0;
const REMOVE: u8 = 1;
const REMOVE_RANGE: u8 = 2;
const RUN: u8 = 3;

const ROW: u8 = 1;
const END: u8 = 0;

/// ChangeDecoder that are being written down.
#[derive(Debug, Default)]
pub struct ChangeEncoder {
    bytes: Vec<u8>,
    /// The table of the open run.
    run: Option<u8>,
}

impl ChangeEncoder {
    /// A row is inserted or replaced.
    pub fn put(&mut self, table: u8, key: &[u8], value: &[u8]) {
        self.begin(PUT, table);
        self.text(key);
        self.text(value);
    }

    /// A row is removed.
    pub fn remove(&mut self, table: u8, key: &[u8]) {
        self.begin(REMOVE, table);
        self.text(key);
    }

    /// All rows between two keys are removed, both included.
    pub fn remove_range(&mut self, table: u8, first: &[u8], last: &[u8]) {
        self.begin(REMOVE_RANGE, table);
        self.text(first);
        self.text(last);
    }

    /// A row is appended to the open run, or begins one.
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

    /// Whether nothing was written down.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes.
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
            self.bytes.push(u8::try_from(left & 0x7f).unwrap_or(0) | 0x80);
            left >>= 7;
        }
        self.bytes.push(u8::try_from(left).unwrap_or(0));
        self.bytes.extend_from_slice(text);
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "described above")]
pub enum EncodedChange<'a> {
    Put { table: u8, key: &'a [u8], value: &'a [u8] },
    Remove { table: u8, key: &'a [u8] },
    RemoveRange { table: u8, first: &'a [u8], last: &'a [u8] },
    Run { table: u8, rows: RunRows<'a> },
}

impl EncodedChange<'_> {
    /// The code of its table.
    pub fn table(&self) -> u8 {
        match self {
            EncodedChange::Put { table, .. }
            | EncodedChange::Remove { table, .. }
            | EncodedChange::RemoveRange { table, .. }
            | EncodedChange::Run { table, .. } => *table,
        }
    }
}

/// Bytes that are no changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedChange(pub &'static str);

/// The changes in bytes. Ends after the first that cannot be read.
#[derive(Clone, Debug)]
pub struct ChangeDecoder<'a>(ByteReader<'a>);

impl<'a> ChangeDecoder<'a> {
    /// Reads changes one by one; nothing is looked at yet.
    pub fn new(bytes: &'a [u8]) -> ChangeDecoder<'a> {
        ChangeDecoder(ByteReader(bytes))
    }

    fn read(&mut self) -> Result<EncodedChange<'a>, MalformedChange> {
        let reader = &mut self.0;
        let (kind, table) = (reader.byte()?, reader.byte()?);
        Ok(match kind {
            PUT => EncodedChange::Put { table, key: reader.text()?, value: reader.text()? },
            REMOVE => EncodedChange::Remove { table, key: reader.text()? },
            REMOVE_RANGE => EncodedChange::RemoveRange { table, first: reader.text()?, last: reader.text()? },
            RUN => {
                let rows = RunRows(reader.clone());
                if reader.row()?.is_none() {
                    return Err(MalformedChange("a run without rows"));
                }
                while reader.row()?.is_some() {}
                EncodedChange::Run { table, rows }
            }
            _ => return Err(MalformedChange("a change of an unknown kind")),
        })
    }
}

impl<'a> Iterator for ChangeDecoder<'a> {
    type Item = Result<EncodedChange<'a>, MalformedChange>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.0.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.0 = ByteReader(&[]);
        }
        Some(read)
    }
}

/// A row: its key and its value.
type RunRow<'a> = (&'a [u8], &'a [u8]);

/// The rows of a run, read through once already.
#[derive(Clone, Debug)]
pub struct RunRows<'a>(ByteReader<'a>);

impl<'a> Iterator for RunRows<'a> {
    type Item = RunRow<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.row().ok().flatten()
    }
}

impl PartialEq for RunRows<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.clone().eq(other.clone())
    }
}

impl Eq for RunRows<'_> {}

#[derive(Clone, Debug)]
struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn byte(&mut self) -> Result<u8, MalformedChange> {
        let (byte, rest) = self.0.split_first().ok_or(MalformedChange("the bytes end within a change"))?;
        self.0 = rest;
        Ok(*byte)
    }

    fn text(&mut self) -> Result<&'a [u8], MalformedChange> {
        let mut length: usize = 0;
        // No key or value of the engine reaches 4 GiB.
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            if shift == 28 && byte > 0x0f {
                break;
            }
            length |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 {
                    return Err(MalformedChange("a length of more bytes than it takes"));
                }
                let (text, rest) =
                    self.0.split_at_checked(length).ok_or(MalformedChange("a key or value reaches beyond the end"))?;
                self.0 = rest;
                return Ok(text);
            }
        }
        Err(MalformedChange("a length beyond all bounds"))
    }

    /// The next row of a run; `None` at its end.
    fn row(&mut self) -> Result<Option<RunRow<'a>>, MalformedChange> {
        match self.byte()? {
            END => Ok(None),
            ROW => Ok(Some((self.text()?, self.text()?))),
            _ => Err(MalformedChange("a run with something else than rows")),
        }
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
            (any::<u8>(), texts(), texts()).prop_map(|(table, key, value)| Step::Put(table, key, value)),
            (any::<u8>(), texts()).prop_map(|(table, key)| Step::Remove(table, key)),
            (any::<u8>(), texts(), texts()).prop_map(|(table, first, last)| Step::RemoveRange(table, first, last)),
            (any::<u8>(), vec((texts(), texts()), 1..5)).prop_map(|(table, rows)| Step::Run(table, rows)),
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
                    rows.iter().for_each(|(key, value)| encoder.run_row(*table, key, value));
                    encoder.end_run();
                }
            }
        }
        encoder.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Vec<Step>, MalformedChange> {
        let own = |bytes: &[u8]| bytes.to_vec();
        let step = |change: EncodedChange<'_>| match change {
            EncodedChange::Put { table, key, value } => Step::Put(table, own(key), own(value)),
            EncodedChange::Remove { table, key } => Step::Remove(table, own(key)),
            EncodedChange::RemoveRange { table, first, last } => Step::RemoveRange(table, own(first), own(last)),
            EncodedChange::Run { table, rows } => {
                Step::Run(table, rows.map(|(key, value)| (own(key), own(value))).collect())
            }
        };
        ChangeDecoder::new(bytes).map(|change| change.map(step)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        #[test]
        fn changes_come_back_as_they_were(steps in steps()) {
            prop_assert_eq!(format!("{:?}", decode(&encode(&steps)).unwrap()), format!("{steps:?}"));
        }

        /// There is one encoding of changes: what is read from any bytes is written as these bytes again.
        #[test]
        fn any_bytes_are_refused_or_read_as_they_stand(
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
        fn noise_is_no_panic(bytes in vec(prop_oneof![0..4_u8, any::<u8>()], 0..60)) {
            if let Ok(read) = decode(&bytes) {
                prop_assert_eq!(encode(&read), bytes);
            }
        }
    }

    #[test]
    fn every_cut_within_a_change_is_refused() {
        let steps = [Step::Run(3, vec![(vec![1; 130], vec![2])]), Step::Put(1, vec![3], vec![4; 3])];
        let bytes = encode(&steps);
        let first = encode(&steps[..1]).len();
        for cut in (1..bytes.len()).filter(|cut| *cut != first) {
            assert!(decode(&bytes[..cut]).is_err(), "{cut} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn what_is_no_change_is_refused() {
        let cases: [(&[u8], &str); 6] = [
            (&[4, 0], "a change of an unknown kind"),
            (&[1, 0, 2, 9], "a key or value reaches beyond the end"),
            (&[1, 0, 0x80, 0], "a length of more bytes than it takes"),
            (&[1, 0, 0xff, 0xff, 0xff, 0xff, 0x10], "a length beyond all bounds"),
            (&[3, 0, 0], "a run without rows"),
            (&[3, 0, 2], "a run with something else than rows"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decode(bytes).unwrap_err().to_string(), expected, "{bytes:?}");
        }
    }
}
