//! The only crate that names `pyo3`: it builds `pykafka_core._core`.

mod codec;
mod core;
mod log;
mod record;

use pyo3::prelude::*;

/// The compiled core.
#[pymodule]
#[pyo3(name = "_core")]
mod core_module {
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::codec::register(module)?;
        super::core::register(module)?;
        super::log::register(module)?;
        super::record::register(module)
    }
}
