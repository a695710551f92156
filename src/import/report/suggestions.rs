//! Suggestions for unknown names.

use std::fmt;

use crate::import::report::faults::RowFaults;
use crate::model::nearest::nearest;

/// The remedy for an unknown name.
#[derive(Clone, Copy, Debug)]
pub enum Suggestion<'a> {
    /// The most similar known name.
    Near(&'a str),
    /// No known name is similar, so all are listed.
    Known(&'a [&'a str]),
    /// A search would be too slow.
    Unsearched,
}

impl Suggestion<'_> {
    /// Searches the known names for a similar one.
    pub fn find<'a>(unknown: &str, known: &'a [&'a str], faults: &RowFaults<'_>) -> Suggestion<'a> {
        if !faults.may_search(known.len()) {
            return Suggestion::Unsearched;
        }
        nearest(unknown, known.iter().copied()).map_or(Suggestion::Known(known), Suggestion::Near)
    }
}

impl fmt::Display for Suggestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Suggestion::Near(name) => write!(f, "did you mean `{name}`?"),
            Suggestion::Known(names) => write!(f, "known names are `{}`", names.join("`, `")),
            Suggestion::Unsearched => f.write_str("the page /docs of a server lists the known names"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::report::faults::{BadRows, FilePosition};

    #[test]
    fn unknown_names_get_a_remedy() {
        let (position, mut bad) = (FilePosition { file: "f".into(), line: 1 }, BadRows::default());
        let faults = RowFaults::new(&position, &mut bad);
        let suggested = |unknown: &str, known: &[&str]| Suggestion::find(unknown, known, &faults).to_string();
        assert_eq!(suggested("xyzzy", &["id", "name"]), "known names are `id`, `name`");
        let most = vec!["name"; 100_000];
        assert_eq!(suggested("nam", &most), "did you mean `name`?");
        assert!(faults.may_search(100_000) && !faults.may_search(100_001));
        let many = vec!["name"; 200_000];
        assert_eq!(suggested("nam", &many), "the page /docs of a server lists the known names");
    }
}
