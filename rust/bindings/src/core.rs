//! The Python interface of the data plane (`docs/PLANES.md`): the class `Core`.
//!
//! No method holds the GIL while it waits, and nothing below ever takes it (docs/PLANES.md S1). In
//! a forked child every method raises `ForkedError`, and none of the parent's resources are closed,
//! cut or unlocked when the object is dropped there.

mod event;
mod facts;
mod image;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pykafka_broker::{
    Audience, BatchKind, BrokerState, Core, CoreError, CoreOptions, FixedClock, IsrOutcome,
    KafkaError, KeyValue, Marker, PartitionId, ProbeNeeds, StorageOpenError, Unreachable,
};
use pykafka_client::{Destination, Request as PeerRequest};
use pykafka_forks::OfProcess;
use pykafka_log::{Clock, Durability, LockError, SystemClock};
use pykafka_record::{EndTransactionMarker, LeaderEpoch, ProducerEpoch, ProducerId};
use pykafka_wire::ApiKey;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use crate::codec::parts::EncodedMessage;

/// A day, so that the addition to the clock cannot overflow.
const TIMEOUT_MS_MAX: u64 = 86_400_000;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCoreOptions>()?;
    module.add_class::<PyCore>()?;
    image::register(module)?;
    facts::register(module)?;
    event::register(module)
}

/// An error of `pykafka_core.errors`, or the exception raised while it was created.
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
        CoreError::Stopped => local_error(py, "ClosedError", text),
        CoreError::Storage(StorageOpenError::Lock(LockError::Held { .. })) => {
            local_error(py, "StorageLockedError", text)
        }
        CoreError::Storage(_) | CoreError::Engine(_) => local_error(py, "StorageError", text),
    }
}

/// An error of the class in `pykafka_core.errors` for a Kafka code.
fn kafka_error(py: Python<'_>, error: KafkaError) -> PyErr {
    let made = py
        .import("pykafka_core.errors")
        .and_then(|errors| errors.getattr("error_of")?.call1((error.code(),)))
        .and_then(|class| class.call0());
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// A partition from Python: topic id, index.
#[derive(FromPyObject)]
struct PyPartitionId(PyBackedBytes, i32);

impl PyPartitionId {
    fn id(&self) -> PyResult<PartitionId> {
        Ok((image::topic_id(&self.0)?, self.1))
    }
}

/// Another node's listener from Python: purpose, host, port.
#[derive(FromPyObject)]
struct PyPeer(String, String, u16);

impl PyPeer {
    fn destination(self) -> Destination {
        let PyPeer(purpose, host, port) = self;
        Destination { purpose: purpose.into(), host: host.into(), port }
    }
}

/// A marker from Python: topic id, partition, producer id and epoch, coordinator epoch, committed,
/// transaction version.
#[derive(FromPyObject)]
struct PyMarker(PyBackedBytes, i32, i64, i16, i32, bool, i16);

impl PyMarker {
    fn marker(&self) -> PyResult<Marker> {
        let PyMarker(topic_id, index, producer_id, producer_epoch, ..) = self;
        Ok(Marker {
            partition: (image::topic_id(topic_id)?, *index),
            producer_id: ProducerId::new(*producer_id),
            producer_epoch: ProducerEpoch::new(*producer_epoch),
            marker: EndTransactionMarker { committed: self.5, coordinator_epoch: self.4 },
            transaction_version: self.6,
        })
    }
}

fn batch_kind(producer: Option<(i64, i16)>, control: Option<i32>) -> PyResult<BatchKind> {
    match (producer, control) {
        (None, None) => Ok(BatchKind::Data),
        (None, Some(_)) => Ok(BatchKind::Control),
        (Some((id, epoch)), None) if id >= 0 && epoch >= 0 => {
            Ok(BatchKind::Transactional(ProducerId::new(id), ProducerEpoch::new(epoch)))
        }
        (Some(producer), None) => Err(PyValueError::new_err(format!(
            "producer is not {producer:?}: its numbers are not negative"
        ))),
        (Some(_), Some(_)) => Err(PyValueError::new_err("control records have no producer")),
    }
}

/// The body of a request or a response.
#[derive(FromPyObject)]
enum Body {
    Encoded(Py<EncodedMessage>),
    Bytes(PyBackedBytes),
}

impl Body {
    fn bytes(&self) -> Bytes {
        match self {
            Body::Encoded(encoded) => encoded.get().bytes.clone(),
            Body::Bytes(bytes) => copied(bytes),
        }
    }
}

/// Copied, because Python bytes must not be released by a thread without the GIL.
fn copied(bytes: &PyBackedBytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
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
            // The standard library seeds its hashers from the system.
            seed: RandomState::new().hash_one(std::process::id()),
        }
    }
}

#[pyclass(frozen, name = "Core", module = "pykafka_core._core")]
struct PyCore {
    core: OfProcess<Core>,
}

impl PyCore {
    fn core(&self, py: Python<'_>) -> PyResult<&Core> {
        if self.core.is_own() {
            return Ok(&self.core);
        }
        Err(local_error(py, "ForkedError", "this broker belongs to the parent process"))
    }

    /// Runs `work` without the GIL.
    fn detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Send + FnOnce(&Core) -> Result<T, CoreError>,
    ) -> PyResult<T> {
        let core = self.core(py)?;
        py.detach(|| work(core)).map_err(|error| core_error(py, &error))
    }
}

#[pymethods]
impl PyCore {
    #[new]
    #[pyo3(signature = (options))]
    fn new(py: Python<'_>, options: &PyCoreOptions) -> PyResult<PyCore> {
        let options = options.options();
        let core = py.detach(|| Core::new(options)).map_err(|error| core_error(py, &error))?;
        Ok(PyCore { core: OfProcess::new(core) })
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

    fn horizon_ns(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.core(py)?.horizon_ns())
    }

    fn time_ms(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.core(py)?.time_ms())
    }

    #[pyo3(signature = (name, address, controller_apis=None, *, audience="clients"))]
    fn listen(
        &self,
        py: Python<'_>,
        name: &str,
        address: &str,
        controller_apis: Option<BTreeMap<i16, (i16, i16)>>,
        audience: &str,
    ) -> PyResult<u16> {
        let audience = Audience::from_name(audience).ok_or_else(|| {
            PyValueError::new_err(format!("audience is clients, nodes or both, not {audience:?}"))
        })?;
        self.detached(py, |core| core.listen(name, address, audience, controller_apis))
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

    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, |core| {
            core.abandon();
            Ok(())
        })
    }

    #[pyo3(signature = (*, accepted, peers))]
    fn cut_off(
        &self,
        py: Python<'_>,
        accepted: bool,
        peers: Option<Vec<(String, u16)>>,
    ) -> PyResult<()> {
        let unreachable = match peers {
            None => Unreachable::All,
            Some(peers) => {
                let peers = peers.into_iter().map(|(host, port)| (Arc::from(host), port));
                Unreachable::Only(peers.collect())
            }
        };
        self.core(py)?.cut_off(accepted, unreachable);
        Ok(())
    }

    fn check(&self, py: Python<'_>, delta: &image::PyImageDelta) -> PyResult<Vec<String>> {
        let refusals = self.core(py)?.check(&delta.delta);
        Ok(refusals.iter().map(ToString::to_string).collect())
    }

    fn apply(&self, py: Python<'_>, delta: &image::PyImageDelta) -> PyResult<()> {
        let delta = delta.delta.clone();
        self.detached(py, |core| core.apply(delta))
    }

    #[expect(clippy::needless_pass_by_value, reason = "an extracted argument is owned")]
    fn respond(&self, py: Python<'_>, replies: Vec<(u64, Body)>) -> PyResult<()> {
        let core = self.core(py)?;
        core.respond(replies.iter().map(|(id, body)| (*id, body.bytes())));
        Ok(())
    }

    fn reserve_response(
        &self,
        py: Python<'_>,
        token: u64,
        request: u64,
        bytes: usize,
    ) -> PyResult<()> {
        self.core(py)?.reserve_response(token, request, bytes);
        Ok(())
    }

    fn close_connection(&self, py: Python<'_>, connection: u64, reason: &str) -> PyResult<()> {
        self.core(py)?.close_connection(connection, reason);
        Ok(())
    }

    #[pyo3(signature = (token, partition, leader_epoch, records, producer=None, *, control=None))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    #[expect(clippy::too_many_arguments, reason = "named, and Python's")]
    fn append(
        &self,
        py: Python<'_>,
        token: u64,
        partition: PyPartitionId,
        leader_epoch: i32,
        records: Vec<(Option<PyBackedBytes>, Option<PyBackedBytes>)>,
        producer: Option<(i64, i16)>,
        control: Option<i32>,
    ) -> PyResult<()> {
        let id = partition.id()?;
        let kind = batch_kind(producer, control)?;
        let records: Vec<KeyValue> = records
            .iter()
            .map(|(key, value)| (key.as_ref().map(copied), value.as_ref().map(copied)))
            .collect();
        self.detached(py, |core| {
            core.append(token, &id, LeaderEpoch::from_wire(leader_epoch), &records, kind);
            Ok(())
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn append_fetched(
        &self,
        py: Python<'_>,
        token: u64,
        partition: PyPartitionId,
        leader_epoch: i32,
        batches: PyBackedBytes,
    ) -> PyResult<()> {
        let id = partition.id()?;
        let leader_epoch = LeaderEpoch::from_wire(leader_epoch)
            .ok_or_else(|| PyValueError::new_err("leader_epoch is not negative"))?;
        let batches = BytesMut::from(&batches[..]);
        self.detached(py, |core| {
            core.append_fetched(token, &id, leader_epoch, batches);
            Ok(())
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn truncate(
        &self,
        py: Python<'_>,
        token: u64,
        partition: PyPartitionId,
        offset: i64,
    ) -> PyResult<()> {
        let id = partition.id()?;
        self.detached(py, |core| {
            core.truncate(token, &id, offset);
            Ok(())
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn restart_log(
        &self,
        py: Python<'_>,
        token: u64,
        partition: PyPartitionId,
        offset: i64,
    ) -> PyResult<()> {
        let id = partition.id()?;
        self.detached(py, |core| {
            core.restart_log(token, &id, offset);
            Ok(())
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn commit(
        &self,
        py: Python<'_>,
        partition: PyPartitionId,
        high_watermark: i64,
    ) -> PyResult<()> {
        let id = partition.id()?;
        self.detached(py, |core| {
            core.commit(&id, high_watermark);
            Ok(())
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn write_markers(&self, py: Python<'_>, token: u64, markers: Vec<PyMarker>) -> PyResult<()> {
        let markers = markers.iter().map(PyMarker::marker).collect::<PyResult<Vec<_>>>()?;
        self.detached(py, |core| {
            core.write_markers(token, &markers);
            Ok(())
        })
    }

    fn verified(&self, py: Python<'_>, token: u64, error_codes: Vec<i16>) -> PyResult<()> {
        self.core(py)?.verified(token, error_codes);
        Ok(())
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn read<'py>(
        &self,
        py: Python<'py>,
        partition: PyPartitionId,
        offset: i64,
        bytes_max: usize,
        upto: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let upto_log_end = match upto {
            "log_end" => true,
            "high_watermark" => false,
            other => {
                let text = format!("upto is log_end or high_watermark, not {other:?}");
                return Err(PyValueError::new_err(text));
            }
        };
        let id = partition.id()?;
        let read = self.detached(py, |core| Ok(core.read(&id, offset, bytes_max, upto_log_end)))?;
        let bytes = read.map_err(|error| kafka_error(py, error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn offsets(&self, py: Python<'_>, partition: PyPartitionId) -> PyResult<facts::LogOffsets> {
        let id = partition.id()?;
        let offsets = self.detached(py, |core| Ok(core.offsets(&id)))?;
        offsets.map(Into::into).map_err(|error| kafka_error(py, error))
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    #[expect(clippy::too_many_arguments, reason = "a request and where it goes")]
    fn send(
        &self,
        py: Python<'_>,
        token: u64,
        peer: PyPeer,
        api_key: i16,
        api_version: i16,
        body: Body,
        timeout_ms: u64,
    ) -> PyResult<()> {
        let timeout = Duration::from_millis(timeout_ms.min(TIMEOUT_MS_MAX));
        let request = PeerRequest {
            api_key: ApiKey(api_key),
            api_version,
            body: body.bytes(),
            timeout,
            response_bytes_expected: 0,
        };
        self.core(py)?.send(token, &peer.destination(), request);
        Ok(())
    }

    fn watch(&self, py: Python<'_>, token: u64, peer: PyPeer, timeout_ms: u64) -> PyResult<()> {
        let timeout = Duration::from_millis(timeout_ms.min(TIMEOUT_MS_MAX));
        self.core(py)?.watch(token, &peer.destination(), timeout);
        Ok(())
    }

    fn registered(&self, py: Python<'_>, broker_epoch: i64) -> PyResult<()> {
        self.core(py)?.registered(broker_epoch);
        Ok(())
    }

    fn disconnect(&self, py: Python<'_>, peer: PyPeer) -> PyResult<()> {
        self.core(py)?.disconnect(&peer.destination());
        Ok(())
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn propose_isr(
        &self,
        py: Python<'_>,
        partition: PyPartitionId,
        leader_epoch: i32,
        partition_epoch: i32,
        isr: Vec<(i32, i64)>,
    ) -> PyResult<Option<u64>> {
        let id = partition.id()?;
        let isr = isr.into_iter();
        let isr = isr.map(|(broker_id, broker_epoch)| BrokerState { broker_id, broker_epoch });
        let isr = isr.collect();
        let leader_epoch = LeaderEpoch::new(leader_epoch);
        self.detached(py, |core| Ok(core.propose_isr(&id, leader_epoch, partition_epoch, isr)))
    }

    #[pyo3(signature = (proposal, outcome, isr=None, partition_epoch=None))]
    fn settle_isr(
        &self,
        py: Python<'_>,
        proposal: u64,
        outcome: &str,
        isr: Option<Vec<i32>>,
        partition_epoch: Option<i32>,
    ) -> PyResult<()> {
        let outcome = match (outcome, isr, partition_epoch) {
            ("committed", Some(isr), Some(partition_epoch)) => {
                IsrOutcome::Committed { isr, partition_epoch }
            }
            ("rejected", None, None) => IsrOutcome::Rejected,
            ("unknown", None, None) => IsrOutcome::Unknown,
            ("committed" | "rejected" | "unknown", _, _) => {
                let text =
                    "an ISR that is committed, and no other, has members and a partition epoch";
                return Err(PyValueError::new_err(text));
            }
            (other, _, _) => {
                let text = format!("outcome is committed, rejected or unknown, not {other:?}");
                return Err(PyValueError::new_err(text));
            }
        };
        self.detached(py, |core| {
            core.settle_isr(proposal, outcome);
            Ok(())
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn delete_before(
        &self,
        py: Python<'_>,
        token: u64,
        partition: PyPartitionId,
        offset: i64,
    ) -> PyResult<()> {
        let id = partition.id()?;
        self.detached(py, |core| {
            core.delete_before(token, &id, offset);
            Ok(())
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn when_committed(
        &self,
        py: Python<'_>,
        token: u64,
        partition: PyPartitionId,
        leader_epoch: i32,
        offset: i64,
    ) -> PyResult<()> {
        let id = partition.id()?;
        let leader_epoch = LeaderEpoch::new(leader_epoch);
        self.detached(py, |core| {
            core.when_committed(token, &id, leader_epoch, offset);
            Ok(())
        })
    }

    fn enforce_retention(&self, py: Python<'_>, token: u64) -> PyResult<()> {
        self.detached(py, |core| {
            core.enforce_retention(token);
            Ok(())
        })
    }

    fn stalled(&self, py: Python<'_>, wait_ns_min: u64) -> PyResult<Vec<(Py<PyBytes>, i32)>> {
        let found = self.detached(py, |core| Ok(core.stalled(wait_ns_min)))?;
        let named = |(topic_id, index): PartitionId| (PyBytes::new(py, &topic_id).unbind(), index);
        Ok(found.into_iter().map(named).collect())
    }

    #[pyo3(signature = (token, *, needs_space))]
    fn probe_disk(&self, py: Python<'_>, token: u64, needs_space: bool) -> PyResult<()> {
        let needs = if needs_space { ProbeNeeds::Space } else { ProbeNeeds::Nothing };
        self.detached(py, |core| {
            core.probe_disk(token, needs);
            Ok(())
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn describe_log_dirs(
        &self,
        py: Python<'_>,
        token: u64,
        partitions: Vec<PyPartitionId>,
    ) -> PyResult<()> {
        let ids = partitions.iter().map(PyPartitionId::id).collect::<PyResult<Vec<_>>>()?;
        self.detached(py, |core| {
            core.describe_log_dirs(token, &ids);
            Ok(())
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn read_records(
        &self,
        py: Python<'_>,
        token: u64,
        partition: PyPartitionId,
        offset: i64,
        bytes_max: usize,
    ) -> PyResult<()> {
        let id = partition.id()?;
        self.detached(py, |core| {
            core.read_records(token, &id, offset, bytes_max);
            Ok(())
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn describe_producers(
        &self,
        py: Python<'_>,
        token: u64,
        partition: PyPartitionId,
    ) -> PyResult<()> {
        let id = partition.id()?;
        self.detached(py, |core| {
            core.describe_producers(token, &id);
            Ok(())
        })
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
