//! Panics on damaged files: redb's assertions fail on them.
//!
//! [`catch`] wraps code that may read damaged pages. The hook of [`set_panic_hook`] saves the panic's message instead
//! of printing it with a backtrace. The caller of [`catch`] reports it.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};

use super::{Result, StoreError};

thread_local! {
    static CAUGHT: Cell<u64> = const { Cell::new(0) };
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The last panic that the hook saved.
    static LAST: RefCell<Option<CaughtPanic>> = const { RefCell::new(None) };
}

/// A panic that [`catch`] returned.
pub struct CaughtPanic {
    /// The message and the line in the sources, as far as known.
    pub message: String,
    /// Whether the store or redb panicked, which means that the file is damaged.
    pub is_of_store: bool,
}

/// Sets the panic hook. It saves panics inside [`catch`], and passes others to `report` as one line.
pub fn set_panic_hook(report: fn(&str)) {
    set_hook(Box::new(move |panic| {
        let caught = describe(panic);
        if DEPTH.get() == 0 {
            report(&format!("a thread panicked: {}", caught.message));
        } else {
            LAST.set(Some(caught));
        }
    }));
}

fn describe(panic: &PanicHookInfo<'_>) -> CaughtPanic {
    let message = text_of(panic.payload());
    let Some(location) = panic.location() else {
        return CaughtPanic {
            message,
            is_of_store: false,
        };
    };
    let file = location.file();
    let is_of_store = is_of_store(file)
        // A failed assertion of the standard library names the library's sources, so the backtrace decides.
        || !file.starts_with("src/") && Backtrace::force_capture().to_string().contains("redb::");
    // Remove the build machine's paths.
    let in_registry = file
        .rsplit_once("/registry/src/")
        .and_then(|(_, file)| file.split_once('/'));
    let file = in_registry.map_or(file, |(_, file)| file);
    CaughtPanic {
        message: format!("{message} ({file}:{})", location.line()),
        is_of_store,
    }
}

fn is_of_store(file: &str) -> bool {
    file.contains("/redb-") || file.starts_with("src/store/")
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason was given").to_owned()
}

/// Runs code and returns its panic as an error.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(run));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|payload| {
        CAUGHT.set(CAUGHT.get() + 1);
        let caught = LAST.take();
        caught.unwrap_or_else(|| CaughtPanic {
            message: text_of(payload.as_ref()),
            is_of_store: true,
        })
    })
}

/// Runs code that reads the file. A panic becomes [`StoreError::Damaged`].
pub fn guard<T, E: From<StoreError>>(read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch(read).unwrap_or_else(|caught| {
        let detail = format!("the engine stopped: {}", caught.message);
        Err(StoreError::damaged("(pages)", detail).into())
    })
}

/// The number of panics that this thread has caught. A database that panicked must not be written again.
pub(crate) fn caught_count() -> u64 {
    CAUGHT.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_engine_returns_damage() {
        let before = caught_count();
        let read: Result<()> = guard(|| panic!("a page of {} bytes", 7));
        let message = read.unwrap_err().to_string();
        assert!(
            message.contains("the engine stopped: a page of 7 bytes"),
            "{message}"
        );
        assert!(caught_count() > before);
        assert_eq!(guard(|| Ok::<_, StoreError>(1)).unwrap(), 1);
    }

    #[test]
    fn panics_of_the_store_are_recognized_by_their_source_file() {
        let cases = cases![
            "/home/user/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/redb-4.4.0/src/tree_store/btree.rs", true;
            "src/store/read/snapshot.rs", true;
            "src/api/service.rs", false;
            "/rustc/0123/library/core/src/slice/index.rs", false;
        ];
        for (file, expected) in cases {
            assert_eq!(is_of_store(file), expected, "{file}");
        }
    }
}
