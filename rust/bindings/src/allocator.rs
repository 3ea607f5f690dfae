//! The C library's allocator, which codecs, buffers and Python's larger objects share.

use pyo3::prelude::*;

/// Add this file's function to `_core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(return_freed_memory, module)?)
}

/// What batches inflate to beside others: what is as large is rare.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES_MIN: i32 = 4 << 20;

/// What is freed in one heap is of no use to the threads of another.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAPS: i32 = 2;

/// glibc raises the size from which a block is returned when it is freed to the largest that was, up to 32 MiB. Then the
/// heaps of twenty threads keep that much each. Setting the size ends that, and fewer heaps keep less of what is smaller.
///
/// The end of a heap is returned when it is twice as large, as glibc has it: buffers of a megabyte stay.
#[pyfunction]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn return_freed_memory() -> bool {
    #[expect(unsafe_code, reason = "glibc's own settings; any thread may change them at any time")]
    // SAFETY: the calls take two integers, and lock what they change.
    let are_set = unsafe {
        [
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES_MIN),
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * LARGE_BYTES_MIN),
            libc::mallopt(libc::M_ARENA_MAX, HEAPS),
        ]
    };
    are_set == [1; 3]
}

/// Other allocators return them.
#[pyfunction]
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn return_freed_memory() -> bool {
    false
}
