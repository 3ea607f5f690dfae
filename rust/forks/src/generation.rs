//! Counts the forks between a process and its first ancestor that used this library.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::numbers;

static CURRENT: AtomicU32 = AtomicU32::new(0);
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// A process and its forked child have different generations, unlike process ids, which the
/// system uses again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation(u32);

impl Generation {
    /// The generation of this process. The first call installs the handler for forks.
    pub fn current() -> Generation {
        install();
        Generation(CURRENT.load(Ordering::Relaxed))
    }

    /// One that no process has.
    #[cfg(test)]
    pub(crate) fn foreign() -> Generation {
        Generation(u32::MAX)
    }

    /// True in the process that called [`Generation::current`], false in its forked children.
    pub fn is_current(self) -> bool {
        self == Generation::current()
    }
}

fn install() {
    if IS_INSTALLED.load(Ordering::Relaxed) || IS_INSTALLED.swap(true, Ordering::Relaxed) {
        return;
    }
    #[expect(unsafe_code, reason = "the standard library does not have it")]
    // SAFETY: `begin_child` is a function without arguments that allocates nothing and takes no
    // lock. It stays loaded, as Python unloads no extension module.
    let result = unsafe { libc::pthread_atfork(None, None, Some(begin_child)) };
    assert_eq!(result, 0, "there is memory for one handler");
}

/// Runs in the child, in its only thread, before `fork` returns.
extern "C" fn begin_child() {
    CURRENT.fetch_add(1, Ordering::Relaxed);
    numbers::close_all();
}
