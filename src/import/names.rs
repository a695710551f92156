//! Suggestions for unknown names.

use super::blanks::is_blank;
use super::report::RowFaults;
use crate::model::fold::fold;

/// The longest name for which a suggestion is searched, since comparing takes time in the product of the lengths.
const MAX_NAME_BYTES: usize = 128;

/// The known name most similar to the given one; `None` when none is similar enough.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR: f64 = 0.5;
    if given.len() > MAX_NAME_BYTES {
        return None;
    }
    let given = comparable(given);
    known
        .into_iter()
        .filter(|name| name.len() <= MAX_NAME_BYTES)
        .filter_map(|name| {
            let known = comparable(name);
            // The lengths bound the similarity, and are much cheaper to compare.
            let (one, other) = (given.chars().count(), known.chars().count());
            let may_be_near = one.min(other) * 2 > one.max(other);
            may_be_near.then(|| (strsim::normalized_damerau_levenshtein(&given, &known), name))
        })
        .filter(|(likeness, _)| *likeness > NEAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// The remedy for an unknown name: the most similar known one, else all of them; without a search, where to find them.
pub fn did_you_mean(given: &str, known: &[&str], faults: &RowFaults<'_>) -> String {
    if !faults.may_search(known.len()) {
        return "the page /docs of a server lists the known ones".to_owned();
    }
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let quoted: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("known are {}", quoted.join(", "))
        }
    }
}

/// A name without what does not count in it: case, diacritics, blanks, `_`, `-` and `.`.
pub fn comparable(name: &str) -> String {
    fold(name).replace(|letter: char| matches!(letter, '_' | '-' | '.') || is_blank(letter), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::report::{BadRows, Position};

    #[test]
    fn the_nearest_name_is_found() {
        let known = ["id", "name", "start_date", "end_date", "country", "formats_oral"];
        let cases = [
            ("start_dat", Some("start_date")),
            ("Start Date", Some("start_date")),
            ("formats.oral", Some("formats_oral")),
            (" name", Some("name")),
            ("contry", Some("country")),
            ("nmae", Some("name")),
            ("ID", Some("id")),
            ("xyzzy", None),
            ("", None),
            (&"name".repeat(100_000), None),
        ];
        for (given, expected) in cases {
            assert_eq!(nearest(given, known), expected, "{given:?}");
        }
        let (position, mut bad) = (Position { file: "f".into(), line: 1 }, BadRows::default());
        let faults = RowFaults::new(&position, &mut bad);
        assert_eq!(did_you_mean("xyzzy", &["id", "name"], &faults), "known are `id`, `name`");
        let many = vec!["name"; 200_000];
        assert_eq!(did_you_mean("nam", &many, &faults), "the page /docs of a server lists the known ones");
    }
}
