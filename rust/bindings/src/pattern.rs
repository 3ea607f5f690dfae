//! Regular expressions from clients: in RE2's syntax, with linear time in the text and bounded
//! memory.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use regex::{Regex, RegexBuilder};

/// Maximum size of a compiled expression.
const COMPILED_BYTES_MAX: usize = 512 << 10;

/// Maximum size of the cache of matching states: with this size a name of 30 letters takes some
/// microseconds, with a smaller one up to two milliseconds.
const CACHE_BYTES_MAX: usize = 2 << 20;

/// Maximum nesting of groups.
const NESTING_MAX: u32 = 100;

/// Add this file's class to `_core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Pattern>()
}

#[pyclass(frozen, module = "pykafka_core._core")]
struct Pattern {
    whole: Regex,
}

#[pymethods]
impl Pattern {
    #[new]
    #[pyo3(signature = (text, /))]
    fn new(py: Python<'_>, text: &str) -> PyResult<Pattern> {
        let whole = py.detach(|| {
            // Compiled alone first: `)(` would only be valid within the group.
            build(text)?;
            build(&format!(r"\A(?:{text})\z"))
        });
        whole
            .map(|whole| Pattern { whole })
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[pyo3(signature = (text, /))]
    fn matches(&self, text: &str) -> bool {
        self.whole.is_match(text)
    }
}

fn build(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(CACHE_BYTES_MAX)
        .nest_limit(NESTING_MAX)
        .build()
}
