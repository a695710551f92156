//! Panics on damaged files, on which the engine's assertions fail.
//!
//! [`catch`] is put around code that may meet damage. A hook ([`set_panic_hook`]) notes the panic's message instead of
//! printing it with a backtrace, because the catching code reports it in better words.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};

use crate::store::StoreError;

thread_local! {
    /// The number of panics that this thread has caught.
    static CAUGHT: Cell<u64> = const { Cell::new(0) };
    /// The depth of nested calls of [`catch`] in this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The last panic noted by the hook.
    static LAST: RefCell<Option<CaughtPanic>> = const { RefCell::new(None) };
    /// The last panic of an engine while it was closed.
    static AT_CLOSE: RefCell<Option<CaughtPanic>> = const { RefCell::new(None) };
}

/// A panic that was caught.
#[derive(Clone, Debug)]
pub struct CaughtPanic {
    /// Its message and its line in the sources, as far as known.
    pub message: String,
    /// Whether it came from the store or the engine, which means that the file is damaged.
    pub is_of_store: bool,
}

/// Sets the panic hook: panics outside of [`catch`] are told by `tell` in one line, others by the code that catches them.
pub fn set_panic_hook(tell: fn(&str)) {
    set_hook(Box::new(move |panic| {
        let caught = describe(panic);
        if DEPTH.get() == 0 {
            tell(&format!("a thread panicked: {}", caught.message));
        } else {
            LAST.set(Some(caught));
        }
    }));
}

fn describe(panic: &PanicHookInfo<'_>) -> CaughtPanic {
    let said = text_of(panic.payload());
    let Some(location) = panic.location() else { return CaughtPanic { message: said, is_of_store: false } };
    let is_of_store = is_of_store(location.file())
        // Assertions of the standard library name its own sources: then the callers decide.
        || !location.file().starts_with("src/") && Backtrace::force_capture().to_string().contains("redb::");
    // The build machine's paths are not shown.
    let file = location.file().rsplit_once("/registry/src/").map_or(location.file(), |(_, file)| file);
    let file = if file == location.file() { file } else { file.split_once('/').map_or(file, |(_, file)| file) };
    CaughtPanic { message: format!("{said} ({file}:{})", location.line()), is_of_store }
}

fn is_of_store(file: &str) -> bool {
    file.contains("/redb-") || file.starts_with("src/store/")
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason was given").to_owned()
}

/// Runs code and catches its panic.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(run));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|payload| {
        CAUGHT.set(CAUGHT.get() + 1);
        let told = LAST.take();
        told.unwrap_or_else(|| CaughtPanic { message: text_of(payload.as_ref()), is_of_store: true })
    })
}

/// Runs code that reads the file, and reports a panic as damage.
pub fn guard<T>(read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch(read).unwrap_or_else(|caught| Err(damage(&caught)))
}

fn damage(caught: &CaughtPanic) -> StoreError {
    StoreError::damaged("(pages)", format!("the engine stopped: {}", caught.message))
}

/// Closes a database. A panic is only noted: commits are durable already, so the command has not failed.
pub(in crate::store) fn close(close: impl FnOnce()) {
    if let Err(caught) = catch(close) {
        AT_CLOSE.set(Some(caught));
    }
}

/// The damage met when closing a database in this thread since the last call.
pub fn take_at_close() -> Option<StoreError> {
    AT_CLOSE.take().as_ref().map(damage)
}

/// The number of panics that this thread has caught. An engine that panicked must not write again.
pub(in crate::store) fn count() -> u64 {
    CAUGHT.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_damage() {
        let before = count();
        let read: Result<(), StoreError> = guard(|| panic!("a page of {} bytes", 7));
        let told = read.unwrap_err().to_string();
        assert!(told.contains("the engine stopped: a page of 7 bytes"), "{told}");
        assert!(count() > before);
        assert_eq!(guard(|| Ok(1)).unwrap(), 1);
    }

    #[test]
    fn the_store_is_known_by_its_sources() {
        let cases = [
            (
                "/home/user/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/redb-4.4.0/src/tree_store/btree.rs",
                true,
            ),
            ("src/store/read/snapshot.rs", true),
            ("src/api/service.rs", false),
            ("/rustc/0123/library/core/src/slice/index.rs", false),
        ];
        for (file, expected) in cases {
            assert_eq!(is_of_store(file), expected, "{file}");
        }
    }
}
