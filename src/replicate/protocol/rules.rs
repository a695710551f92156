//! Switches rules of the protocol off, for one thread.

use std::cell::Cell;

use super::Rule;

thread_local! {
    static OFF: Cell<Option<Rule>> = const { Cell::new(None) };
}

pub fn applies(rule: Rule) -> bool {
    OFF.get() != Some(rule)
}

/// Runs `run` without a rule.
pub fn without<T>(rule: Option<Rule>, run: impl FnOnce() -> T) -> T {
    OFF.set(rule);
    let result = run();
    OFF.set(None);
    result
}
