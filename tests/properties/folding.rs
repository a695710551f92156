//! Folding: the comparisons behind `q` and `--match`.

use std::collections::BTreeSet;

use medfeed::model::fold::{fold, match_form};
use medfeed::model::{Dataset, Id, Journal, JournalFields};
use medfeed::store::Batch;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::holds;
use super::system::{System, encoded};
use super::world::Scope;

/// Characters that fold in special ways: marks, ligatures, strokes, sigmas, jamo, vowel signs, apostrophes, dashes.
const SPECIAL: [char; 56] = [
    '\u{301}', '\u{308}', '\u{327}', '\u{345}', '\u{338}', 'ß', 'ẞ', 'ﬁ', 'ŉ', 'ǰ', 'ǅ', 'İ', 'ı',
    'Σ', 'ς', 'ø', 'Ł', 'Æ', 'œ', '각', '\u{1100}', '\u{1161}', '\u{11a8}', 'ि', '\u{94d}', 'แ',
    '\u{e49}', 'Ǿ', 'ᾳ', 'Å', '’', '\u{2bc}', '`', '\u{b4}', '\u{1ffd}', '\u{ff40}', '\'', '-',
    '\u{2011}', '\u{2212}', '\u{ad}', 'か', 'が', '\u{3099}', '\u{309a}', 'ｶ', 'ﾞ', 'и', 'й',
    '\u{306}', 'ا', 'أ', '\u{654}', '\u{64e}', 'ש', '\u{5b8}',
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
        let found = fold(&text.nfc().collect::<String>());
        assert_eq!(found, folded, "composed {text:?}");
        let found = fold(&text.nfd().collect::<String>());
        assert_eq!(found, folded, "decomposed {text:?}");
    });
}

/// Returns the forms for finding a text and for identifying a record by it.
fn forms(text: &str) -> [String; 2] {
    [fold(text), match_form(text)]
}

#[test]
fn only_marks_of_latin_and_greek_letters_do_not_count() {
    use unicode_normalization::UnicodeNormalization;
    // Marks that compose with a letter of another script make another letter.
    let letters = ('\u{400}'..='\u{52f}')
        .chain('\u{3041}'..='\u{30ff}')
        .chain(['أ', 'ؤ', 'ئ', 'آ', 'ۀ', 'ۓ']);
    for letter in letters {
        let decomposed: Vec<char> = letter.nfd().collect();
        if let [base, _] = *decomposed {
            let expected = fold(&base.to_string());
            assert_ne!(fold(&letter.to_string()), expected, "{letter}");
            let expected = match_form(&base.to_string());
            assert_ne!(match_form(&letter.to_string()), expected, "{letter}");
        }
    }
    // The same marks after a Latin or Greek letter.
    for letter in ('\u{c0}'..='\u{17f}')
        .chain('\u{386}'..='\u{3ce}')
        .chain('\u{1e00}'..='\u{1eff}')
    {
        let decomposed: Vec<char> = letter.nfd().collect();
        if let [base, ref marks @ ..] = *decomposed
            && !marks.is_empty()
        {
            let expected = forms(&base.to_string());
            assert_eq!(forms(&letter.to_string()), expected, "{letter}");
        }
    }
}

#[test]
fn a_form_that_identifies_is_stable_and_ignores_composition_case_and_blanks() {
    use unicode_normalization::UnicodeNormalization;
    holds(20_000, (texts(0..8), texts(0..8)), |(one, other)| {
        let text = one + &other;
        let form = match_form(&text);
        assert_eq!(match_form(&form), form, "{text:?}");
        let found = match_form(&text.nfd().collect::<String>());
        assert_eq!(found, form, "{text:?}");
        let found = match_form(&text.nfc().collect::<String>());
        assert_eq!(found, form, "{text:?}");
        let found = match_form(&text.to_lowercase().to_uppercase());
        assert_eq!(found, match_form(&text.to_uppercase()), "{text:?}");
        let found = match_form(&format!(" {text}\u{2014}\u{2019} "));
        assert_eq!(found, form, "{text:?}");
    });
}

#[test]
fn what_identifies_finds() {
    // Texts with equal forms for `--match` have equal letters for `q`.
    holds(20_000, (texts(0..4), texts(0..4)), |(one, other)| {
        let letters = |text: &str| -> String { match_form(&fold(text)) };
        if match_form(&one) == match_form(&other) {
            assert_eq!(letters(&one), letters(&other), "{one:?} and {other:?}");
        }
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
            let found = found.iter();
            let found: BTreeSet<u64> = found.map(|record| record["id"].as_u64().unwrap()).collect();
            // Marks alone fold to an empty text, which is found nowhere.
            let typed_folded = fold(&typed);
            let due = (1..)
                .zip(&names)
                .filter(|(_, name)| fold(name).contains(&typed_folded));
            let due = due.filter(|_| !typed_folded.is_empty());
            let expected = due.map(|(id, _)| id).collect();
            assert_eq!(found, expected, "{typed:?} in {names:?}");
        }
    });
}
