//! The rules of the protocol. Tests switch one off for their thread, to see that it is needed.
//!
//! `search_tests` has a counterexample for each but two. [`Rule::FirstEntry`] and [`Rule::Name`] notice a copy of the
//! database early, before it differs; tests of the publisher and of processes cover them. How a replica compares the
//! heartbeat with its position is no rule with a switch: a table of cases in `replicate/replica/log.rs` tests it.

/// A rule of the protocol. Tests switch it off, to see that it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The note says up to where the log went.
    NoteSlot,
    /// The heartbeat says up to where the log went.
    HeartbeatSlot,
    /// A database that does not contain the end of the log does not continue it.
    Contained,
    /// A restore lets a database continue only after an entry of its own.
    OwnRestore,
    /// The note keeps a takeover.
    NotedTakeover,
    /// The next slot is read before a heartbeat.
    NextSlot,
    /// Only an entry of this file continues it.
    Name,
    /// Only an entry of a commit of this database continues it.
    NextContained,
    /// After its first entry, a run meets no entry of an earlier run.
    FirstEntry,
    /// The states are read if the entry before a new one is missing.
    Previous,
    /// The last entry, and the one before a new one, have the hash that they had.
    Hash,
    /// A heartbeat that names a later slot is another publisher's.
    Announced,
    /// A publisher that wrote into a gap deletes its entry.
    TakeBack,
    /// A publisher that wrote after another publisher's entry deletes its own.
    TakeBackNext,
    /// A replica takes only an entry that follows its last one.
    Follows,
    /// It takes an entry only if the one after it does not contradict it.
    Successor,
    /// It never replaces its rows by older ones.
    NeverBack,
    /// Without a recent confirmation of the end, it shows an entry only when the heartbeat agrees.
    Confirmed,
    /// It becomes the origin only if the log holds the entry of its promotion.
    OwnPromotion,
    /// It deletes its entry if the one after it follows another one.
    PromotionGap,
}

/// Whether a rule applies. All do, but for a test.
#[cfg(not(test))]
pub const fn applies(_: Rule) -> bool {
    true
}

#[cfg(test)]
thread_local! {
    static OFF: std::cell::Cell<Option<Rule>> = const { std::cell::Cell::new(None) };
}

/// Whether a rule applies. All do but the one that `without` switched off.
#[cfg(test)]
pub fn applies(rule: Rule) -> bool {
    OFF.get() != Some(rule)
}

/// Runs `run` without a rule.
#[cfg(test)]
pub fn without<T>(rule: Option<Rule>, run: impl FnOnce() -> T) -> T {
    OFF.set(rule);
    let result = run();
    OFF.set(None);
    result
}
