//! The C library's allocator, which codecs, buffers and Python's larger objects share.

use pyo3::prelude::*;

/// Add this file's function to `_core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(return_freed_memory, module)?)
}

/// Blocks of this size are rare: most decompressed batches are smaller.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES_MIN: i32 = 4 << 20;

/// Memory that is freed in one heap is not available to threads of another heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAPS: i32 = 2;

/// glibc returns a freed block to the system if it is larger than a threshold, which it raises to
/// the largest freed block, up to 32 MiB. Then the heaps of twenty threads each keep up to that
/// size. A fixed threshold prevents this, and fewer heaps keep fewer smaller blocks.
///
/// The free end of a heap is returned at twice the threshold, glibc's ratio: buffers of a megabyte
/// stay.
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

/// Other allocators return freed memory themselves.
#[pyfunction]
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn return_freed_memory() -> bool {
    false
}
