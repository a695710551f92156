//! Folding: the comparison behind `q`.

use std::collections::BTreeSet;

use medfeed::model::fold::fold;
use medfeed::model::{Dataset, Id, Journal, JournalFields};
use medfeed::store::Batch;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::holds;
use super::system::{System, encoded};
use super::world::Scope;

/// Characters that fold in special ways: marks, ligatures, strokes, sigmas, jamo, vowel signs, apostrophes, dashes.
const SPECIAL: [char; 41] = [
    '\u{301}', '\u{308}', '\u{327}', '\u{345}', '\u{338}', 'ß', 'ẞ', 'ﬁ', 'ŉ', 'ǰ', 'ǅ', 'İ', 'ı',
    'Σ', 'ς', 'ø', 'Ł', 'Æ', 'œ', '각', '\u{1100}', '\u{1161}', '\u{11a8}', 'ि', '\u{94d}', 'แ',
    '\u{e49}', 'Ǿ', 'ᾳ', 'Å', '’', '\u{2bc}', '`', '\u{b4}', '\u{1ffd}', '\u{ff40}', '\'', '-',
    '\u{2011}', '\u{2212}', '\u{ad}',
];

fn texts(length: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let letter =
        prop_oneof![3 => select(&SPECIAL), 2 => prop::char::range('a', 'f'), 2 => any::<char>()];
    vec(letter, length).prop_map(|letters| {
        letters
            .into_iter()
            .filter(|letter| *letter != '\0')
            .collect()
    })
}

#[test]
fn folding_a_character_again_changes_nothing() {
    // Without the large blocks of ideographs, syllables and private use. Their characters do not fold, or are all
    // composed alike.
    let letters = ('\0'..='\u{33ff}')
        .chain('\u{a000}'..='\u{ad00}')
        .chain('\u{f900}'..='\u{1ffff}');
    let broken: Vec<char> = letters
        .filter(|letter| {
            let folded = fold(&letter.to_string());
            fold(&folded) != folded
        })
        .collect();
    assert!(
        broken.is_empty(),
        "{} characters fold further: {broken:?}",
        broken.len()
    );
}

#[test]
fn folding_again_changes_nothing() {
    holds(10_000, texts(0..12), |text| {
        let folded = fold(&text);
        assert_eq!(fold(&folded), folded, "{text:?}");
    });
}

#[test]
fn case_and_composition_do_not_count() {
    use unicode_normalization::UnicodeNormalization;
    holds(20_000, texts(0..12), |text| {
        let folded = fold(&text);
        assert_eq!(
            fold(&text.nfc().collect::<String>()),
            folded,
            "composed {text:?}"
        );
        assert_eq!(
            fold(&text.nfd().collect::<String>()),
            folded,
            "decomposed {text:?}"
        );
    });
}

/// A name, and a text that may be a part of it.
fn searches() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    let names = vec(
        texts(1..10).prop_filter("a name", |name| !name.is_empty()),
        1..12,
    );
    let parts = vec(
        (any::<Index>(), any::<Index>(), any::<Index>(), texts(2..4)),
        1..12,
    );
    (names, parts).prop_map(|(names, parts)| {
        let typed = parts.into_iter().map(|(name, first, last, other)| {
            let letters: Vec<char> = names[name.index(names.len())].chars().collect();
            let (one, end) = (first.index(letters.len()), last.index(letters.len()));
            let part: String = letters[one.min(end)..=one.max(end)].iter().collect();
            if part.chars().count() >= 2 {
                part
            } else {
                other
            }
        });
        let typed = typed.filter(|typed| typed.chars().count() >= 2).collect();
        (names, typed)
    })
}

#[test]
fn q_finds_a_text_if_the_folded_name_contains_it() {
    holds(40, searches(), |(names, typed)| {
        let mut system = System::new();
        let scope = Scope {
            datasets: [Dataset::Journals].into(),
            areas: None,
            countries: None,
            years: None,
        };
        system.set_license(0, &scope);
        let mut batch = Batch::default();
        for (id, name) in (1..).zip(&names) {
            let id = Id::try_from(id).unwrap();
            let fields = JournalFields {
                name: Some(name.clone()),
                ..JournalFields::default()
            };
            batch
                .journals
                .insert(id, Some(Journal::new(id, fields).unwrap()));
        }
        system.apply(batch);
        for typed in typed {
            let found = system
                .get(0, &format!("/v1/journals?q={}", encoded(&typed)))
                .items();
            let found: BTreeSet<u64> = found
                .iter()
                .map(|record| record["id"].as_u64().unwrap())
                .collect();
            // Marks alone fold to an empty text, which is found nowhere.
            let typed_folded = fold(&typed);
            let due = (1..)
                .zip(&names)
                .filter(|(_, name)| fold(name).contains(&typed_folded));
            let due = due.filter(|_| !typed_folded.is_empty());
            assert_eq!(
                found,
                due.map(|(id, _)| id).collect(),
                "{typed:?} in {names:?}"
            );
        }
    });
}
