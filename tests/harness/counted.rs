//! Counts the cases of tests that generate them. `tests/proof.sh` adds these lines up.

/// Prints how many things a test that passed has done, for example `counted(16, "kills")`.
pub fn counted(number: impl TryInto<u64>, what: &str) {
    let number = number.try_into().unwrap_or_else(|_| panic!("{what} are counted from 0"));
    println!("counted {number} {what}");
}
