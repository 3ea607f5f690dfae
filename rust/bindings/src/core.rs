//! The seam's Python face (`docs/SEAM.md`): the class `Core`.
//!
//! No method holds the interpreter while it waits, and nothing below ever takes it (SEAM S1). In a forked child every method
//! raises `ForkedError`, and nothing of the parent's is closed, cut or unlocked when the object dies there.

mod event;
mod image;

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use pykafka_broker::{ApplyError, Core, CoreError, CoreOptions, FixedClock};
use pykafka_log::{Clock, Durability, SystemClock};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCoreOptions>()?;
    module.add_class::<PyCore>()?;
    image::register(module)?;
    event::register(module)
}

/// An error of `pykafka_core.errors`, or what went wrong on the way there.
fn local_error(py: Python<'_>, class: &str, arguments: impl for<'py> IntoPyObject<'py>) -> PyErr {
    let made = py
        .import("pykafka_core.errors")
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| class.call1((arguments,)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

fn core_error(py: Python<'_>, error: &CoreError) -> PyErr {
    let text = error.to_string();
    match error {
        CoreError::Listen { source, .. } => {
            PyOSError::new_err((source.raw_os_error().unwrap_or_default(), text))
        }
        CoreError::Apply(ApplyError::NameTaken { .. }) => local_error(py, "MetadataError", text),
        CoreError::Apply(_) => local_error(py, "ConfigurationError", vec![text]),
        CoreError::Stopped => local_error(py, "ClosedError", text),
        CoreError::Engine(_) => local_error(py, "StorageError", text),
    }
}

#[pyclass(frozen, name = "CoreOptions", module = "pykafka_core._core")]
struct PyCoreOptions {
    data_dir: Option<String>,
    node_id: i32,
    cluster_id: String,
    durability: Durability,
    memory_max: u64,
    clock_ms: Option<i64>,
}

#[pymethods]
impl PyCoreOptions {
    #[new]
    #[pyo3(signature = (*, data_dir, node_id, cluster_id, durability, memory_max=268_435_456, clock_ms=None))]
    fn new(
        data_dir: Option<String>,
        node_id: i32,
        cluster_id: String,
        durability: &str,
        memory_max: u64,
        clock_ms: Option<i64>,
    ) -> PyResult<PyCoreOptions> {
        let durability = Durability::from_name(durability).ok_or_else(|| {
            PyValueError::new_err(format!(
                "durability is fsync, interval, os or memory, not {durability:?}"
            ))
        })?;
        Ok(PyCoreOptions { data_dir, node_id, cluster_id, durability, memory_max, clock_ms })
    }
}

impl PyCoreOptions {
    fn clock(&self) -> Arc<dyn Clock> {
        match self.clock_ms {
            Some(now_ms) => Arc::new(FixedClock::new(now_ms)),
            None => Arc::new(SystemClock::new()),
        }
    }

    fn options(&self) -> CoreOptions {
        CoreOptions {
            data_dir: self.data_dir.as_ref().map(Into::into),
            node_id: self.node_id,
            cluster_id: self.cluster_id.clone(),
            durability: self.durability,
            memory_max: self.memory_max,
            clock: self.clock(),
        }
    }
}

#[pyclass(frozen, name = "Core", module = "pykafka_core._core")]
struct PyCore {
    core: Option<Arc<Core>>,
    process: u32,
}

impl PyCore {
    fn core(&self, py: Python<'_>) -> PyResult<&Arc<Core>> {
        match &self.core {
            Some(core) if self.process == std::process::id() => Ok(core),
            _ => Err(local_error(py, "ForkedError", "this broker belongs to the parent process")),
        }
    }

    /// Runs `work` with the interpreter released.
    fn detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Send + FnOnce(&Core) -> Result<T, CoreError>,
    ) -> PyResult<T> {
        let core = self.core(py)?;
        py.detach(|| work(core)).map_err(|error| core_error(py, &error))
    }
}

impl Drop for PyCore {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            mem::forget(self.core.take());
        }
    }
}

#[pymethods]
impl PyCore {
    #[new]
    #[pyo3(signature = (options))]
    fn new(py: Python<'_>, options: &PyCoreOptions) -> PyResult<PyCore> {
        let options = options.options();
        let core = py.detach(|| Core::new(options)).map_err(|error| core_error(py, &error))?;
        Ok(PyCore { core: Some(Arc::new(core)), process: std::process::id() })
    }

    #[pyo3(signature = (deadline_ns, events_max=256))]
    fn wait<'py>(
        &self,
        py: Python<'py>,
        deadline_ns: i64,
        events_max: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let deadline_ns = deadline_ns.max(0) as u64;
        let events = self.detached(py, |core| Ok(core.wait(deadline_ns, events_max)))?;
        let list = PyList::empty(py);
        for event in events {
            list.append(event::to_python(py, event)?)?;
        }
        Ok(list)
    }

    fn wake(&self, py: Python<'_>) -> PyResult<()> {
        self.core(py)?.wake();
        Ok(())
    }

    fn now_ns(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.core(py)?.now_ns())
    }

    fn time_ms(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.core(py)?.time_ms())
    }

    fn listen(&self, py: Python<'_>, name: &str, address: &str) -> PyResult<u16> {
        self.detached(py, |core| core.listen(name, address))
    }

    fn serve(&self, py: Python<'_>) -> PyResult<()> {
        self.core(py)?.serve();
        Ok(())
    }

    fn stop(&self, py: Python<'_>, grace_ms: u64) -> PyResult<()> {
        self.detached(py, |core| {
            core.stop(grace_ms);
            Ok(())
        })
    }

    fn apply(&self, py: Python<'_>, delta: &image::PyImageDelta) -> PyResult<()> {
        let delta = delta.delta.clone();
        self.detached(py, |core| core.apply(delta))
    }

    #[expect(clippy::needless_pass_by_value, reason = "an extracted argument is owned")]
    fn respond(&self, py: Python<'_>, replies: Vec<(u64, PyBackedBytes)>) -> PyResult<()> {
        let core = self.core(py)?;
        // Copied: a body must not be released by a thread that does not hold the interpreter.
        core.respond(replies.iter().map(|(id, body)| (*id, Bytes::copy_from_slice(body))));
        Ok(())
    }

    fn close_connection(&self, py: Python<'_>, connection: u64, reason: &str) -> PyResult<()> {
        self.core(py)?.close_connection(connection, reason);
        Ok(())
    }

    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let snapshot = self.detached(py, |core| Ok(core.statistics()))?;
        Ok(PyBytes::new(py, snapshot.as_bytes()))
    }

    fn drain_log(&self, py: Python<'_>) -> PyResult<Vec<(i64, i32, &'static str, String)>> {
        let lines = self.core(py)?.drain_log().into_iter();
        Ok(lines.map(|line| (line.time_ms, line.level as i32, line.target, line.text)).collect())
    }
}
