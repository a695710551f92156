//! Which known word was most likely meant.

use crate::model::fold::fold;

/// The known word that is hardly more than a typing error away: a letter in four, or the given one is its only
/// beginning or another form of it (`conference`, `Conferences`).
pub(super) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const MAX_BYTES: usize = 128;
    if given.len() > MAX_BYTES {
        return None;
    }
    let given = comparable(given);
    let length = given.chars().count();
    let near = known.into_iter().filter(|name| name.len() <= MAX_BYTES).filter_map(|name| {
        let known = comparable(name);
        let distance =
            if length >= 4 && known.starts_with(&given) { 1 } else { strsim::damerau_levenshtein(&given, &known) };
        let allowed = if length < 3 { 0 } else { (length.max(known.chars().count()) / 4).max(1) };
        (distance <= allowed).then_some((distance, name))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// A word without what is misspelled most often: case, blanks and signs.
fn comparable(word: &str) -> String {
    fold(word.trim()).replace([' ', '-', '.', '_'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_truly_near_words_are_meant() {
        let cases = [
            ("Oncolgy", "Oncology", true),
            ("oncology", "Oncology", true),
            ("Germny", "Germany", true),
            ("southkorea", "South Korea", true),
            ("conference", "conferences", true),
            ("Journal", "journals", true),
            ("imprt", "import", true),
            ("licence", "license", true),
            ("therapy", "therapy-area", true),
            ("port", "export", false),
            ("port", "max-exports-per-key", false),
            ("host", "log", false),
            ("ls", "log", false),
            ("Narnia", "Romania", false),
            ("Niger", "Nigeria", true),
            ("Austria", "Australia", true),
            ("x", "y", false),
            ("", "", false),
        ];
        for (given, known, expected) in cases {
            let near = nearest(given, [known]).is_some() && !given.is_empty();
            assert_eq!(near, expected, "{given:?} and {known:?}");
        }
    }
}
