//! Regular expressions that clients send: in RE2's syntax, in time linear in the text, with bounded memory.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use regex::{Regex, RegexBuilder};

/// What a compiled expression may take.
const COMPILED_BYTES_MAX: usize = 512 << 10;

/// What it may remember of texts: with that a name of 30 letters takes some microseconds, else up to two milliseconds.
const CACHE_BYTES_MAX: usize = 2 << 20;

/// How deep groups may be nested.
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
            // By itself first: `)(` would be an expression within the group only.
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
