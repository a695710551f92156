//! Names for tests.

/// Returns real names of journals and societies in many languages.
pub fn names() -> Vec<&'static str> {
    let lines = include_str!("../../../fixtures/names.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '['])).collect()
}
