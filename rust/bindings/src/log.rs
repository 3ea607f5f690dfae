//! The Rust side of `pykafka_core.log`: a single log, opened as a library.
//!
//! Every call that may wait releases the GIL. In a forked child each raises `ForkedError`, except
//! `close`.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pykafka_forks::OfProcess;
use pykafka_log::{
    AppendOptions, AppendOrigin, Clock, Durability, Flusher, LibraryLog, Log, LogConfig,
    ManualClock, OpenError, ReadError, StorageError, SystemClock,
};
use pykafka_record::LeaderEpoch;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::log_errors::{append_error, error, open_error, read_error, storage_error};
use super::log_views::ReadingError;
use super::record::ArrowBatches;
use super::{log_columns, log_views};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLog>()
}

#[pyclass(frozen, name = "Log", module = "pykafka_core._core")]
struct PyLog {
    /// The log of [`LibraryLog::log`], which remains when the library is closed, and how often it
    /// was opened again because others changed it.
    log: OfProcess<Mutex<(Arc<Log>, usize)>>,
    clock: Arc<dyn Clock>,
    /// Dropped before the library, which releases the lock.
    flusher: OfProcess<Option<Arc<Flusher>>>,
    /// Taken by `close`.
    library: OfProcess<Mutex<Option<LibraryLog>>>,
    /// Base offset of the segment with the last append that was synced and checkpointed; −1 before
    /// the first one.
    checkpointed_segment: AtomicI64,
}

/// Offset and description of damage.
type Damaged = (i64, String);

/// First and last offset, log end offset, and whether it was a duplicate.
type Appended = (i64, i64, i64, bool);

#[pymethods]
impl PyLog {
    #[staticmethod]
    #[pyo3(signature = (path, durability, settings, read_only, memory_max, clock_ms))]
    #[expect(clippy::needless_pass_by_value, reason = "what pyo3 converts arguments to")]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        durability: &str,
        settings: Vec<(String, String)>,
        read_only: bool,
        memory_max: u64,
        clock_ms: Option<i64>,
    ) -> PyResult<(PyLog, Option<Damaged>, u64, Vec<String>)> {
        let durability = Durability::from_name(durability)
            .ok_or_else(|| PyValueError::new_err("durability is fsync, interval, os or memory"))?;
        let in_memory = durability == Durability::Memory;
        if in_memory && read_only {
            return Err(PyValueError::new_err(
                "a log in memory begins empty: read_only is of no use",
            ));
        }
        // A library does not delete records unless a setting or a call requests it.
        let base = LogConfig { retention_ms: -1, ..LogConfig::for_durability(durability) };
        let overrides = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let config = LogConfig::from_settings(&base, overrides)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let clock: Arc<dyn Clock> = match clock_ms {
            Some(now_ms) => Arc::new(ManualClock::new(now_ms)),
            None => Arc::new(SystemClock::new()),
        };
        let opened = py.detach(|| {
            if in_memory {
                LibraryLog::open_in_memory(&path, memory_max, Arc::new(config), clock.clone())
            } else if read_only {
                LibraryLog::open_read_only(&path, Arc::new(config), clock.clone())
            } else {
                LibraryLog::open(&path, Arc::new(config), clock.clone())
            }
        });
        let (library, recovery) = opened.map_err(|error| open_error(py, &error))?;
        let log = PyLog {
            log: OfProcess::new(Mutex::new((library.log(), 0))),
            clock,
            flusher: OfProcess::new(library.flusher().cloned()),
            library: OfProcess::new(Mutex::new(Some(library))),
            checkpointed_segment: AtomicI64::new(-1),
        };
        let damage = recovery.damage.map(|damage| (damage.offset(), damage.to_string()));
        Ok((log, damage, recovery.truncated_bytes, recovery.warnings))
    }

    /// Append whole batches at the log end, sync them if the settings require it, and apply the
    /// retention after a roll.
    fn append(&self, py: Python<'_>, batches: &[u8]) -> PyResult<Appended> {
        self.check_process(py)?;
        let mut batches = batches.to_vec();
        let log = self.log();
        let appended = py.detach(|| {
            let leader_epoch = log.latest_epoch().unwrap_or(LeaderEpoch::ZERO);
            let options = AppendOptions::new(leader_epoch, AppendOrigin::Client);
            let segments_count = log.segments_count();
            let info = log.append_all_as_leader(&mut batches, options)?;
            let is_synced = log.sync_appended(info.log_end_offset)?;
            if let Some(flusher) = self.flusher.as_ref().filter(|_| !is_synced) {
                flusher.note_append();
            }
            if log.segments_count() > segments_count {
                // The append has succeeded. A permanent error of the log is also raised by the next
                // call.
                let _ = self.retain();
            }
            if is_synced {
                self.checkpoint_segment();
            }
            Ok((info.first_offset, info.last_offset, info.log_end_offset, info.duplicate))
        });
        appended.map_err(|error| append_error(py, &error))
    }

    /// Opens a read-only log again if others changed it.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        self.check_process(py)?;
        py.detach(|| self.follow()).map_err(|error| open_error(py, &error))
    }

    /// Whole batches from `offset` on, the offset of the next read, and the opens before it.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: i64,
        bytes_max: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, i64, usize)> {
        self.check_process(py)?;
        let (data, opens) = py
            .detach(|| self.reading(|log| Ok(log.read(offset, bytes_max, i64::MAX, true)?)))
            .map_err(|error| error.to_python(py))?;
        Ok((PyBytes::new(py, &data.bytes), data.next_offset, opens))
    }

    /// The given offsets, of which missing ones are the log's bounds, and the opens before.
    fn range(
        &self,
        py: Python<'_>,
        start: Option<i64>,
        end: Option<i64>,
    ) -> PyResult<(i64, i64, usize)> {
        self.check_process(py)?;
        let (log, opens) = self.current();
        let range = log.range(start, end).map_err(|error| read_error(py, &error))?;
        Ok((range.start, range.end, opens))
    }

    /// Records with `start` ≤ offset < `end` as Arrow columns.
    fn columns(
        &self,
        py: Python<'_>,
        start: Option<i64>,
        end: Option<i64>,
    ) -> PyResult<ArrowBatches> {
        self.collect(py, (start, end), log_columns::collect)
    }

    /// Records with `start` ≤ offset < `end` as Arrow views.
    fn views(
        &self,
        py: Python<'_>,
        start: Option<i64>,
        end: Option<i64>,
    ) -> PyResult<ArrowBatches> {
        self.collect(py, (start, end), log_views::collect)
    }

    /// Offset and description of the damage of this log.
    fn damage(&self, py: Python<'_>) -> PyResult<Option<Damaged>> {
        self.check_process(py)?;
        Ok(self.log().damage().map(|damage| (damage.offset(), damage.to_string())))
    }

    /// Log start offset, log end offset and recovery point at one time.
    fn offsets(&self, py: Python<'_>) -> PyResult<(i64, i64, i64)> {
        self.check_process(py)?;
        let offsets = self.log().offsets();
        Ok((offsets.log_start_offset, offsets.log_end_offset, offsets.recovery_point))
    }

    /// Offset and timestamp of the first record with at least this timestamp.
    fn offset_for_timestamp(&self, py: Python<'_>, timestamp: i64) -> PyResult<Option<(i64, i64)>> {
        self.check_process(py)?;
        let found = py.detach(|| {
            self.follow()?;
            self.reading(|log| Ok(log.offset_for_timestamp(timestamp, i64::MAX)?))
        });
        let (found, _) = found.map_err(|error| error.to_python(py))?;
        Ok(found.map(|found| (found.offset, found.timestamp)))
    }

    fn truncate_to(&self, py: Python<'_>, offset: i64) -> PyResult<()> {
        self.run(py, || self.with_library(|library| library.truncate_to(offset)))
    }

    fn delete_before(&self, py: Python<'_>, offset: i64) -> PyResult<i64> {
        self.run(py, || {
            self.with_library(|library| library.delete_before(offset))?;
            self.retain()
        })
    }

    /// Apply the retention; returns the log start offset.
    fn enforce_retention(&self, py: Python<'_>) -> PyResult<i64> {
        self.run(py, || self.retain())
    }

    fn roll(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, || {
            self.log().roll()?;
            self.retain().map(drop)
        })
    }

    /// The log's clock.
    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, || self.log().flush())
    }

    /// Number of segments and their bytes.
    fn size(&self, py: Python<'_>) -> PyResult<(usize, u64)> {
        self.check_process(py)?;
        let log = self.log();
        Ok((log.segments_count(), log.size_bytes()))
    }

    /// Does nothing in a forked child, so that a `with` block can end there.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if !self.library.is_own() {
            return Ok(());
        }
        let library = self.library.lock().map(|mut library| library.take()).ok().flatten();
        let Some(library) = library else { return Ok(()) };
        self.run(py, || library.close())
    }
}

/// Maximum attempts to read a log that another process compacts.
const READS_MAX: usize = 100;

impl PyLog {
    fn log(&self) -> Arc<Log> {
        self.current().0
    }

    fn current(&self) -> (Arc<Log>, usize) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Rows of the current log between bounds, by default its own.
    fn collect(
        &self,
        py: Python<'_>,
        (start, end): (Option<i64>, Option<i64>),
        collect: impl Fn(&Log, &Range<i64>) -> Result<ArrowBatches, ReadingError> + Sync,
    ) -> PyResult<ArrowBatches> {
        self.check_process(py)?;
        let read = |log: &Log| collect(log, &log.range(start, end)?);
        let rows = py.detach(|| {
            self.follow()?;
            self.reading(read)
        });
        Ok(rows.map_err(|error| error.to_python(py))?.0)
    }

    /// Reads the log; returns also the number of opens before that of the log that was read. If the
    /// read fails and others changed the log, it is opened and read again.
    fn reading<T>(
        &self,
        read: impl Fn(&Log) -> Result<T, ReadingError>,
    ) -> Result<(T, usize), ReadingError> {
        let mut reads_left = READS_MAX;
        loop {
            let (log, opens) = self.current();
            let result = read(&log);
            reads_left -= 1;
            if matches!(&result, Err(ReadingError::Read(ReadError::OffsetOutOfRange { .. }))) {
                // The next open may have the offset; further ones would only show other appends.
                reads_left = reads_left.min(1);
            }
            if result.is_ok() || reads_left == 0 || !self.look_again()? {
                return Ok((result?, opens));
            }
        }
    }

    /// Returns whether the log was opened again. While others change its directory, the open log
    /// remains: it only reads the files that it was opened with.
    fn follow(&self) -> Result<bool, OpenError> {
        match self.look_again() {
            Err(OpenError::Changing { .. }) => Ok(false),
            looked => looked,
        }
    }

    /// Returns whether the log was opened again.
    fn look_again(&self) -> Result<bool, OpenError> {
        let Ok(library) = self.library.lock() else { return Ok(false) };
        let Some(library) = library.as_ref() else { return Ok(false) };
        let is_new = library.refresh()?;
        if is_new {
            let mut current = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            *current = (library.log(), current.1 + 1);
        }
        Ok(is_new)
    }

    /// Checkpoints the first synced append in a segment, so that the loss of the segment is
    /// detected.
    fn checkpoint_segment(&self) {
        let active = self.log().active_base_offset().unwrap_or(-1);
        if self.checkpointed_segment.swap(active, Ordering::Relaxed) != active {
            // The append is durable without the checkpoint: on a full disk a lost segment may not
            // be detected after a crash.
            let _ = self.with_library(LibraryLog::checkpoint_bounds);
        }
    }

    /// Removes segments beyond the retention or below the log start offset, and files whose
    /// deletion delay has passed.
    fn retain(&self) -> Result<i64, StorageError> {
        self.with_library(|library| library.enforce_retention(self.clock.now_ms()))?;
        Ok(self.log().log_start_offset())
    }

    fn with_library<T>(
        &self,
        work: impl FnOnce(&LibraryLog) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let library = self.library.lock().map_err(|_| StorageError::Closed)?;
        library.as_ref().map_or(Err(StorageError::Closed), work)
    }

    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T, StorageError> + Send,
    ) -> PyResult<T> {
        self.check_process(py)?;
        py.detach(work).map_err(|error| storage_error(py, &error))
    }

    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        if self.log.is_own() {
            return Ok(());
        }
        Err(error(
            py,
            "ForkedError",
            "the log was opened before this process was forked; reopen it",
        ))
    }
}
