//! Panics on damaged files: the engine meets them with assertions, and whoever reads such a file must be told.
//!
//! [`catch`] is put around what may meet one. What a panic says is taken down by a hook ([`tell_of_panics`]) instead of
//! being printed with a backtrace, since whoever catches it has better words.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};

use crate::store::StoreError;

thread_local! {
    /// How many panics this thread caught so far.
    static CAUGHT: Cell<u64> = const { Cell::new(0) };
    /// How many calls of [`catch`] this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// What the hook took down.
    static LAST: RefCell<Option<Caught>> = const { RefCell::new(None) };
    /// The last panic of an engine that was being closed.
    static AT_CLOSE: RefCell<Option<Caught>> = const { RefCell::new(None) };
}

/// A panic that was caught.
#[derive(Clone, Debug)]
pub struct Caught {
    /// What it said, and where in the sources that was, as far as that is known.
    pub message: String,
    /// Whether it came from the store or the engine under it: then the file is to blame.
    pub is_of_store: bool,
}

/// From now on panics that nobody catches are told by `tell`, in one line, and others by whoever catches them.
pub fn tell_of_panics(tell: fn(&str)) {
    set_hook(Box::new(move |panic| {
        let caught = describe(panic);
        if DEPTH.get() == 0 {
            tell(&format!("a thread panicked: {}", caught.message));
        } else {
            LAST.set(Some(caught));
        }
    }));
}

fn describe(panic: &PanicHookInfo<'_>) -> Caught {
    let said = text_of(panic.payload());
    let Some(place) = panic.location() else { return Caught { message: said, is_of_store: false } };
    let is_of_store = is_of_store(place.file())
        // What the standard library asserts is told of its own sources: then it is the callers that count.
        || !place.file().starts_with("src/") && Backtrace::force_capture().to_string().contains("redb::");
    // Where the dependencies' sources stand on the machine that built this is nobody's business.
    let file = place.file().rsplit_once("/registry/src/").map_or(place.file(), |(_, file)| file);
    let file = if file == place.file() { file } else { file.split_once('/').map_or(file, |(_, file)| file) };
    Caught { message: format!("{said} ({file}:{})", place.line()), is_of_store }
}

fn is_of_store(file: &str) -> bool {
    file.contains("/redb-") || file.starts_with("src/store/")
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason was given").to_owned()
}

/// Runs something, and catches its panic.
///
/// # Errors
/// What the panic said.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Caught> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(run));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|payload| {
        CAUGHT.set(CAUGHT.get() + 1);
        let told = LAST.take();
        told.unwrap_or_else(|| Caught { message: text_of(payload.as_ref()), is_of_store: true })
    })
}

/// Reads from the file; a panic on the way is damage.
///
/// # Errors
/// What `read` says, and [`StoreError::Damaged`] for a panic.
pub fn guard<T>(read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch(read).unwrap_or_else(|caught| Err(damage(&caught)))
}

fn damage(caught: &Caught) -> StoreError {
    StoreError::Damaged { table: "(pages)", detail: format!("the engine stopped: {}", caught.message) }
}

/// Closes a database. What was committed is committed, so a panic then is no failure of the command.
pub(in crate::store) fn close(close: impl FnOnce()) {
    if let Err(caught) = catch(close) {
        AT_CLOSE.set(Some(caught));
    }
}

/// The damage that closing a database met, if any did in this thread since this was asked last.
pub fn take_at_close() -> Option<StoreError> {
    AT_CLOSE.take().as_ref().map(damage)
}

/// How many panics this thread caught so far. An engine that panicked is not to be trusted with another write.
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
            ("src/store/bodies.rs", true),
            ("src/api/service.rs", false),
            ("/rustc/0123/library/core/src/slice/index.rs", false),
        ];
        for (file, expected) in cases {
            assert_eq!(is_of_store(file), expected, "{file}");
        }
    }
}
