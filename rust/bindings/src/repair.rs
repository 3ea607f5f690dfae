//! The Rust side of `pykafka-core repair`: inspects a closed directory, and truncates damaged logs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pykafka_forks::OfProcess;
use pykafka_log::{CleanupPolicy, Cut, LogConfig, OpenError, Repair, SystemClock, checkpoint};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::log_errors::{error, open_error};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRepair>()?;
    module.add_function(wrap_pyfunction!(read_partition_metadata, module)?)
}

/// Topic id and partition of a `partition.metadata`.
#[pyfunction]
#[pyo3(signature = (data, /))]
fn read_partition_metadata<'py>(
    py: Python<'py>,
    data: &[u8],
) -> Option<(Bound<'py, PyBytes>, Option<i32>)> {
    let identity = checkpoint::read_partition_metadata(data).ok()?;
    Some((PyBytes::new(py, &identity.topic_id), identity.partition))
}

#[pyclass(frozen, name = "Repair", module = "pykafka_core._core")]
struct PyRepair {
    /// Taken by `close`, which releases the lock.
    repair: OfProcess<Mutex<Option<Repair>>>,
}

/// Offset, segment, position, bytes, removed segments, the new log start, the end of a gap, and the
/// damage; see [`Cut`].
type Shown = (i64, i64, u64, u64, Vec<i64>, Option<i64>, Option<i64>, Option<String>);

#[pymethods]
#[expect(clippy::needless_pass_by_value, reason = "what pyo3 converts arguments to")]
impl PyRepair {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<PyRepair> {
        let repair = py
            .detach(|| Repair::open(&path, Arc::new(SystemClock::new())))
            .map_err(|error| open_error(py, &error))?;
        Ok(PyRepair { repair: OfProcess::new(Mutex::new(Some(repair))) })
    }

    fn partitions(&self, py: Python<'_>) -> PyResult<Vec<PathBuf>> {
        self.run(py, Repair::partitions)
    }

    fn look(
        &self,
        py: Python<'_>,
        partition: PathBuf,
        is_compacted: bool,
    ) -> PyResult<Option<Shown>> {
        let cut = self.run(py, |repair| repair.look(&partition, &config(is_compacted)))?;
        Ok(cut.map(|cut| {
            let Cut { offset, segment, position, bytes, .. } = cut;
            let Cut { removed_segments, log_start, gap_end, damage, .. } = cut;
            let damage = damage.map(|damage| damage.to_string());
            (offset, segment, position, bytes, removed_segments, log_start, gap_end, damage)
        }))
    }

    fn cut(&self, py: Python<'_>, partition: PathBuf, is_compacted: bool) -> PyResult<()> {
        self.run(py, |repair| repair.cut(&partition, &config(is_compacted)))
    }

    /// Keep the records after a gap.
    fn keep(&self, py: Python<'_>, partition: PathBuf, is_compacted: bool) -> PyResult<()> {
        self.run(py, |repair| repair.keep(&partition, &config(is_compacted)))
    }

    fn close(&self) {
        let repair = self.repair.lock().map(|mut repair| repair.take());
        drop(repair);
    }
}

impl PyRepair {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Repair) -> Result<T, OpenError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| match self.repair.lock() {
            Ok(repair) => repair.as_ref().map(work),
            Err(_) => None,
        });
        let done = done.ok_or_else(|| error(py, "ClosedError", "the repair is closed"))?;
        done.map_err(|error| open_error(py, &error))
    }
}

/// Kafka's defaults, except for two settings that repair uses: whether a log may end with a gap,
/// and whether each append was synced, which is the default on disk.
fn config(is_compacted: bool) -> Arc<LogConfig> {
    let cleanup_policy = CleanupPolicy { delete: !is_compacted, compact: is_compacted };
    Arc::new(LogConfig { cleanup_policy, flush_messages: 1, ..LogConfig::default() })
}
