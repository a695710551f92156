//! Suggestions for unknown names.

use crate::import::report::faults::RowFaults;
use crate::model::nearest::nearest;

/// Returns the remedy for an unknown name: the most similar known name, or else a list of all. If a search would be too
/// slow, it names the page with the list.
pub fn did_you_mean(unknown: &str, known: &[&str], faults: &RowFaults<'_>) -> String {
    if !faults.may_search(known.len()) {
        return "the page /docs of a server lists the known names".to_owned();
    }
    match nearest(unknown, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let quoted: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("known names are {}", quoted.join(", "))
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
        assert_eq!(did_you_mean("xyzzy", &["id", "name"], &faults), "known names are `id`, `name`");
        let most = vec!["name"; 100_000];
        assert_eq!(did_you_mean("nam", &most, &faults), "did you mean `name`?");
        assert!(faults.may_search(100_000) && !faults.may_search(100_001));
        let many = vec!["name"; 200_000];
        assert_eq!(did_you_mean("nam", &many, &faults), "the page /docs of a server lists the known names");
    }
}
