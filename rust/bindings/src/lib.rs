//! The only crate that names `pyo3`: it builds `pykafka_core._core`.

mod arrow_export;
mod arrow_import;
mod codec;
mod core;
mod kernels;
mod log;
mod log_columns;
mod log_errors;
mod log_views;
mod pattern;
mod platform;
mod record;
mod repair;

use pyo3::prelude::*;

/// The compiled core.
#[pymodule]
#[pyo3(name = "_core")]
mod core_module {
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // "s" and "z" count as 0.
        let opt_level = env!("PYKAFKA_CORE_OPT_LEVEL").parse::<u8>().unwrap_or(0);
        module.add("__profile__", (env!("PYKAFKA_CORE_PROFILE"), opt_level))?;
        super::platform::register(module)?;
        super::codec::register(module)?;
        super::core::register(module)?;
        super::kernels::register(module)?;
        super::log::register(module)?;
        super::pattern::register(module)?;
        super::record::register(module)?;
        super::repair::register(module)
    }
}
