//! Suggestions for misspelt names.

use super::fold::comparable;

/// The maximum length of a name to compare, in bytes. The time grows with the product of both lengths.
const MAX_BYTES: usize = 128;

/// Returns the known name that was probably meant. At most one letter in four differs, or `given` is a prefix of it.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LEAST_BEGINNING: usize = 4;
    if given.len() > MAX_BYTES {
        return None;
    }
    let given = comparable(given);
    let length = given.chars().count();
    let near = known.into_iter().filter(|name| name.len() <= MAX_BYTES).filter_map(|name| {
        let known = comparable(name);
        let known_length = known.chars().count();
        let allowed = if length < 2 { 0 } else { (length.max(known_length) / 4).max(1) };
        let distance = if length >= LEAST_BEGINNING && known.starts_with(&given) {
            1
        } else if length.abs_diff(known_length) <= allowed {
            // The difference of the lengths is a cheap lower bound of the distance.
            strsim::damerau_levenshtein(&given, &known)
        } else {
            return None;
        };
        (distance <= allowed).then_some((distance, name))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
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
            ("start_dat", "start_date", true),
            ("formats.oral", "formats_oral", true),
            (" name", "name", true),
            ("contry", "country", true),
            ("nmae", "name", true),
            ("idd", "id", true),
            ("ID", "id", true),
            ("Niger", "Nigeria", true),
            ("Austria", "Australia", true),
            ("port", "export", false),
            ("port", "max-exports-per-key", false),
            ("host", "log", false),
            ("ls", "log", false),
            ("Narnia", "Romania", false),
            ("xyzzy", "name", false),
            ("x", "y", false),
            ("", "id", false),
            // One letter in four of the longer name, and always one.
            ("abcdefgh", "abcdefxx", true),
            ("abcdefgh", "abcdexxx", false),
            ("abcdefg", "abcdexx", false),
            ("abcdefg", "xabcdefgx", true),
            ("abcdef", "xabcdefx", true),
            ("xbc", "abc", true),
            ("ab", "xb", true),
            ("a", "ab", false),
            // Four letters that a name begins with.
            ("abst", "abstract_due_date", true),
            ("abs", "abstract_due_date", false),
            ("date", "abstract_due_date", false),
        ];
        for (given, known, expected) in cases {
            assert_eq!(nearest(given, [known]).is_some(), expected, "{given:?} and {known:?}");
        }
        assert_eq!(nearest("nmae", ["name", "nme", "id"]), Some("name"), "the nearest of them");
        assert_eq!(nearest("nmae", ["id", "nme", "name"]), Some("nme"), "the first of two");
        assert_eq!(nearest("abcdefgh", ["abcdefxx", "abcdefgx"]), Some("abcdefgx"), "the nearer one, though later");
        for (bytes, expected) in [(MAX_BYTES, true), (MAX_BYTES + 1, false)] {
            let (long, other) = ("x".repeat(bytes), "x".repeat(MAX_BYTES - 1));
            assert_eq!(nearest(&long, [&*other]).is_some(), expected, "{bytes} given");
            assert_eq!(nearest(&other, [&*long]).is_some(), expected, "{bytes} known");
        }
        assert_eq!(nearest(&"name".repeat(100_000), ["name"]), None);
    }
}
