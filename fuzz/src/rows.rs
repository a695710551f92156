//! Stored rows as text, one per line: the table, the key, the value. Changes of the text reach the code behind hashes and
//! digests, because [`parse`] computes them.
//!
//! Numbers are decimal. `records` and `feed_records` follow from the other rows, unless they are given. A row of `feeds`
//! whose `digest` is null gets the right counts and digest. A line `x TABLE KEY VALUE` gives bytes in hexadecimal.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use medfeed::model::{Head, RowDigest};
use medfeed::store::format::changes::{ChangeDecoder, ChangeEncoder, EncodedChange};
use serde_json::{Value, json};

const HASH_BYTES: usize = 16;

const META: u8 = 0;
const COMMITS: u8 = 1;
const RECORDS: u8 = 2;
const LOG: u8 = 6;
const FEEDS: u8 = 7;
const FEED_ENTRIES: u8 = 8;
const FEED_RECORDS: u8 = 9;
const KEYS: u8 = 11;

/// The kind of a part of a row.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Byte,
    Number,
    Hash,
    /// MessagePack behind a hash.
    Sealed,
    /// JSON behind a hash.
    Json,
}

use Part::{Byte, Hash, Json, Number, Sealed};

/// The name of each table, and the parts of its keys and values. Those of `meta` are texts and bytes.
const TABLES: [(&str, &[Part], &[Part]); 12] = [
    ("meta", &[], &[]),
    ("commits", &[Number], &[Sealed]),
    ("records", &[Byte, Number], &[Number]),
    ("organizations", &[Number], &[Sealed]),
    ("tags", &[Number], &[Sealed]),
    ("links", &[Byte, Number, Byte, Number], &[]),
    ("log", &[Byte, Number], &[Number, Json]),
    ("feeds", &[Number], &[Sealed]),
    ("feed_entries", &[Number, Number], &[Number, Number]),
    ("feed_records", &[Number, Number], &[Number, Number]),
    ("licenses", &[Number], &[Sealed]),
    ("keys", &[Hash], &[Sealed]),
];

/// Rows by table and key. Keys are ordered as numbers, so the text decides the order of nothing.
#[derive(Clone, Debug, Default)]
pub struct Rows(pub BTreeMap<(u8, Vec<u8>), Vec<u8>>);

impl Rows {
    /// Collects the rows of a dump.
    pub fn of_changes(changes: &[u8]) -> Rows {
        let mut rows = Rows::default();
        for change in ChangeDecoder::new(changes) {
            let EncodedChange::Run { table, rows: run } = change.expect("a dump") else { continue };
            rows.0.extend(run.map(|(key, value)| ((table, key.to_vec()), value.to_vec())));
        }
        rows
    }

    /// Keeps the rows of `meta`.
    pub fn meta(mut self) -> Rows {
        self.0.retain(|(table, _), _| *table == META);
        self
    }

    /// The rows as changes: puts, since only redb knows the order of keys.
    pub fn changes(&self) -> Vec<u8> {
        let mut encoder = ChangeEncoder::default();
        self.0.iter().for_each(|((table, key), value)| encoder.put(*table, key, value));
        encoder.finish()
    }

    /// The digest of all rows, by its description in the docs of `RowDigest`.
    pub fn digest(&self) -> RowDigest {
        let mut digest = RowDigest::default();
        for ((table, key), value) in &self.0 {
            let length = u32::try_from(key.len()).expect("a short key").to_le_bytes();
            let text = [&[*table], &length[..], key, value].concat();
            let hash = blake3::hash(&text);
            for (lane, bytes) in digest.0.iter_mut().zip(hash.as_bytes().chunks_exact(8)) {
                *lane = lane.wrapping_add(u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
            }
        }
        digest
    }

    /// The last commit, if its row can be read.
    pub fn head(&self) -> Option<Head> {
        let commits = self.0.iter().filter(|((table, key), _)| *table == COMMITS && key.len() == 8);
        let (seq, value) = commits.map(|((_, key), value)| (number(key), value)).max_by_key(|(seq, _)| *seq)?;
        let commit: Value = rmp_serde::from_slice(value.get(HASH_BYTES..)?).ok()?;
        Some(Head { seq, lineage: serde_json::from_value(commit["lineage"].clone()).ok()? })
    }

    /// Writes the rows except those of `meta` and those that follow from others.
    pub fn text(&self) -> String {
        let mut lines = String::new();
        for ((table, key), value) in &self.0 {
            if [META, RECORDS, FEED_RECORDS].contains(table) {
                continue;
            }
            let (name, key_parts, value_parts) = TABLES[usize::from(*table)];
            lines.push_str(name);
            let mut key = key.as_slice();
            key_parts.iter().for_each(|part| show(*part, &mut key, false, &mut lines));
            let mut value = value.as_slice();
            value_parts.iter().for_each(|part| show(*part, &mut value, *table == FEEDS, &mut lines));
            lines.push('\n');
        }
        lines
    }

    /// Reads rows. Lines that are none are skipped.
    pub fn parse(text: &str) -> Rows {
        let mut rows = Rows::default();
        let mut heads = Vec::new();
        for line in text.lines() {
            let Some((name, rest)) = line.split_once(' ') else { continue };
            if name == "x" {
                rows.insert_bytes(rest);
                continue;
            }
            let Some(table) = TABLES.iter().position(|(other, ..)| *other == name) else { continue };
            let table_code = u8::try_from(table).expect("a code");
            let (_, key_parts, value_parts) = TABLES[table];
            let mut rest = rest;
            let key: Option<Vec<u8>> = key_parts
                .iter()
                .map(|part| read(*part, &mut rest))
                .collect::<Option<Vec<_>>>()
                .map(|parts| parts.concat());
            let Some(key) = key.filter(|_| table_code != META) else { continue };
            if table_code == FEEDS
                && let Ok(head @ Value::Object(_)) = serde_json::from_str(rest)
                && head["digest"].is_null()
            {
                heads.push((key, head));
                continue;
            }
            let value: Option<Vec<_>> = value_parts.iter().map(|part| read(*part, &mut rest)).collect();
            let Some(value) = value else { continue };
            rows.0.insert((table_code, key), value.concat());
        }
        rows.derive(heads);
        rows
    }

    fn insert_bytes(&mut self, text: &str) {
        let mut words = text.split(' ');
        let table = words.next().and_then(|word| word.parse().ok());
        let mut bytes = || HEXLOWER.decode(words.next().unwrap_or_default().as_bytes()).ok();
        if let (Some(table), Some(key), Some(value)) = (table, bytes(), bytes())
            && table != META
        {
            self.0.insert((table, key), value);
        }
    }

    /// Adds the rows that follow from others.
    fn derive(&mut self, heads: Vec<(Vec<u8>, Value)>) {
        let mut derived = Vec::new();
        for ((table, key), value) in &self.0 {
            if *table == LOG && key.len() == 9 && value.len() >= 8 {
                derived.push(((RECORDS, [&key[..1], &value[..8]].concat()), key[1..].to_vec()));
            }
            if *table == FEED_ENTRIES && key.len() == 16 && value.len() == 16 {
                let by_id = (FEED_RECORDS, [&key[..8], &value[..8]].concat());
                derived.push((by_id, [&key[8..], &value[8..]].concat()));
            }
        }
        for (row, value) in derived {
            self.0.entry(row).or_insert(value);
        }
        for (key, mut head) in heads {
            let entries = self.0.iter().filter(|((table, entry), value)| {
                *table == FEED_ENTRIES && entry.starts_with(&key) && entry.len() == 16 && value.len() == 16
            });
            let (mut count, mut live, mut newest, mut digest) = (0_u64, 0_u64, 0, 0_u64);
            for ((_, entry), value) in entries {
                let (seq, id, log_seq) = (number(&entry[8..]), number(&value[..8]), number(&value[8..]));
                count += 1;
                live += u64::from(log_seq != 0);
                newest = newest.max(seq);
                digest = digest.wrapping_add(mix(seq ^ mix(id ^ mix(log_seq))));
            }
            head["entries"] = json!(count);
            head["live"] = json!(live);
            head["newest_seq"] = json!(newest);
            head["digest"] = json!(digest);
            self.0.insert((FEEDS, key), sealed(&head));
        }
    }
}

/// The finalizer of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

fn hashed(bytes: &[u8]) -> Vec<u8> {
    [&blake3::hash(bytes).as_bytes()[..HASH_BYTES], bytes].concat()
}

fn sealed(value: &Value) -> Vec<u8> {
    hashed(&rmp_serde::to_vec_named(value).expect("MessagePack"))
}

/// Appends a part of a row to its line.
fn show(part: Part, bytes: &mut &[u8], is_head: bool, line: &mut String) {
    let length = match part {
        Byte => 1,
        Number => 8,
        Hash => 32,
        Sealed | Json => bytes.len(),
    };
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    line.push(' ');
    line.push_str(&match part {
        Byte => taken[0].to_string(),
        Number => number(taken).to_string(),
        Hash => HEXLOWER.encode(taken),
        Json => String::from_utf8(taken[HASH_BYTES..].to_vec()).expect("JSON"),
        Sealed => {
            let mut value: Value = rmp_serde::from_slice(&taken[HASH_BYTES..]).expect("MessagePack");
            if is_head {
                value["digest"] = Value::Null;
            }
            value.to_string()
        }
    });
}

/// Reads a part of a row from its line.
fn read(part: Part, line: &mut &str) -> Option<Vec<u8>> {
    if matches!(part, Sealed | Json) {
        return match part {
            Json => Some(hashed(line.as_bytes())),
            _ => Some(sealed(&serde_json::from_str(line).ok()?)),
        };
    }
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    *line = rest;
    match part {
        Byte => Some(vec![word.parse().ok()?]),
        Number => Some(word.parse::<u64>().ok()?.to_le_bytes().to_vec()),
        _ => HEXLOWER.decode(word.as_bytes()).ok().filter(|hash| hash.len() == 32),
    }
}

/// The number of a table that a replica has no rows of, for seeds.
pub const NO_TABLE: u8 = KEYS + 1;
