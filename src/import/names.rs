//! The nearest known name, for messages about an unknown one.

use crate::model::fold::fold;

/// The known name that was probably meant; `None` when none is near.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR: f64 = 0.5;
    let given = comparable(given);
    known
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&given, &comparable(name)), name))
        .filter(|(likeness, _)| *likeness > NEAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// The remedy for an unknown name: the nearest known one, or all of them.
pub fn did_you_mean(given: &str, known: &[&str]) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let quoted: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("known are {}", quoted.join(", "))
        }
    }
}

/// Case, blanks and signs are how names are misspelled most, and count for nothing.
fn comparable(name: &str) -> String {
    fold(name.trim()).replace([' ', '-', '.'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ];
        for (given, expected) in cases {
            assert_eq!(nearest(given, known), expected, "{given:?}");
        }
        assert_eq!(did_you_mean("xyzzy", &["id", "name"]), "known are `id`, `name`");
    }
}
