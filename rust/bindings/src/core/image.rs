//! The classes of a metadata step.

use std::collections::BTreeMap;
use std::sync::Arc;

use pykafka_broker::{
    BrokerEndpoint, ClientQuota, FinalizedFeatures, ImageDelta, PartitionEntry, TopicId, TopicImage,
};
use pykafka_record::LeaderEpoch;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyTuple};

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyBrokerEndpoint>()?;
    module.add_class::<PyPartitionImage>()?;
    module.add_class::<PyTopicImage>()?;
    module.add_class::<PyImageDelta>()
}

pub(super) fn topic_id(bytes: &[u8]) -> PyResult<TopicId> {
    bytes.try_into().map_err(|_| PyValueError::new_err("a topic id has 16 bytes"))
}

/// Converts any mapping, not only a dict.
fn mapping<'py, K, V>(values: &Bound<'py, PyAny>) -> PyResult<BTreeMap<K, V>>
where
    K: FromPyObjectOwned<'py, Error = PyErr> + Ord,
    V: FromPyObjectOwned<'py, Error = PyErr>,
{
    let items = values.cast::<PyMapping>()?.items()?;
    items
        .iter()
        .map(|item| {
            let item = item.cast_into::<PyTuple>()?;
            Ok((item.get_item(0)?.extract()?, item.get_item(1)?.extract()?))
        })
        .collect()
}

#[pyclass(frozen, name = "BrokerEndpoint", module = "pykafka_core._core")]
struct PyBrokerEndpoint {
    endpoint: BrokerEndpoint,
}

#[pymethods]
impl PyBrokerEndpoint {
    #[new]
    #[pyo3(signature = (
        *, node_id, listener, host, port, rack, broker_epoch=-1, fenced=false, in_controlled_shutdown=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        node_id: i32,
        listener: &str,
        host: &str,
        port: u16,
        rack: Option<&str>,
        broker_epoch: i64,
        fenced: bool,
        in_controlled_shutdown: bool,
    ) -> PyBrokerEndpoint {
        let endpoint = BrokerEndpoint {
            node_id,
            listener: Arc::from(listener),
            host: Arc::from(host),
            port,
            rack: rack.map(Arc::from),
            broker_epoch,
            fenced,
            in_controlled_shutdown,
        };
        PyBrokerEndpoint { endpoint }
    }
}

#[pyclass(frozen, name = "PartitionImage", module = "pykafka_core._core")]
struct PyPartitionImage {
    entry: PartitionEntry,
}

#[pymethods]
impl PyPartitionImage {
    #[new]
    #[pyo3(signature = (
        *, index, leader, leader_epoch, partition_epoch, replicas, isr, elr=Vec::new(), last_known_elr=Vec::new(),
        lost=Vec::new()
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        index: i32,
        leader: i32,
        leader_epoch: i32,
        partition_epoch: i32,
        replicas: Vec<i32>,
        isr: Vec<i32>,
        elr: Vec<i32>,
        last_known_elr: Vec<i32>,
        lost: Vec<i32>,
    ) -> PyPartitionImage {
        let entry = PartitionEntry {
            index,
            leader,
            leader_epoch: LeaderEpoch::new(leader_epoch),
            partition_epoch,
            replicas,
            isr,
            elr,
            last_known_elr,
            lost,
        };
        PyPartitionImage { entry }
    }
}

#[pyclass(frozen, name = "TopicImage", module = "pykafka_core._core")]
struct PyTopicImage {
    topic: TopicImage,
}

#[pymethods]
impl PyTopicImage {
    #[new]
    #[pyo3(signature = (
        *, name, topic_id, partitions, overrides=None, internal=false, hidden=false, partial=false, unfinished=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    #[expect(clippy::fn_params_excessive_bools, reason = "keywords of Python")]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn new(
        name: String,
        topic_id: &[u8],
        partitions: Vec<PyRef<'_, PyPartitionImage>>,
        overrides: Option<&Bound<'_, PyAny>>,
        internal: bool,
        hidden: bool,
        partial: bool,
        unfinished: bool,
    ) -> PyResult<PyTopicImage> {
        let topic = TopicImage {
            name,
            topic_id: self::topic_id(topic_id)?,
            partitions: partitions.iter().map(|partition| partition.entry.clone()).collect(),
            overrides: overrides.map(mapping).transpose()?.unwrap_or_default(),
            internal,
            hidden,
            partial,
            unfinished,
        };
        Ok(PyTopicImage { topic })
    }
}

/// The entity of the quota, its key, and its value.
type PyClientQuota = (Vec<(String, Option<String>)>, String, f64);

#[pyclass(frozen, name = "ImageDelta", module = "pykafka_core._core")]
pub(super) struct PyImageDelta {
    pub(super) delta: ImageDelta,
}

#[pymethods]
impl PyImageDelta {
    #[new]
    #[pyo3(signature = (
        *, metadata_offset, piece=0, brokers=None, controller_id=None, topics=Vec::new(), deleted=Vec::new(),
        log_defaults=None, broker_settings=None, finalized_features=None, api_versions=None, supported_features=None,
        client_quotas=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments are owned")]
    fn new(
        metadata_offset: i64,
        piece: u32,
        brokers: Option<Vec<PyRef<'_, PyBrokerEndpoint>>>,
        controller_id: Option<i32>,
        topics: Vec<PyRef<'_, PyTopicImage>>,
        deleted: Vec<Vec<u8>>,
        log_defaults: Option<&Bound<'_, PyAny>>,
        broker_settings: Option<&Bound<'_, PyAny>>,
        finalized_features: Option<(i64, Bound<'_, PyAny>)>,
        api_versions: Option<&Bound<'_, PyAny>>,
        supported_features: Option<&Bound<'_, PyAny>>,
        client_quotas: Option<Vec<PyClientQuota>>,
    ) -> PyResult<PyImageDelta> {
        let endpoints = |brokers: Vec<PyRef<'_, PyBrokerEndpoint>>| {
            brokers.iter().map(|broker| broker.endpoint.clone()).collect()
        };
        let features = |(epoch, levels): (i64, Bound<'_, PyAny>)| {
            mapping(&levels).map(|levels| FinalizedFeatures { epoch, levels })
        };
        let quotas = |quotas: Vec<PyClientQuota>| {
            let quotas = quotas.into_iter();
            quotas
                .filter_map(|(entity, key, value)| ClientQuota::of_record(entity, &key, value))
                .collect()
        };
        let delta = ImageDelta {
            metadata_offset,
            piece,
            brokers: brokers.map(endpoints),
            controller_id,
            topics: topics.iter().map(|topic| topic.topic.clone()).collect(),
            deleted: deleted.iter().map(|id| topic_id(id)).collect::<PyResult<_>>()?,
            log_defaults: log_defaults.map(mapping).transpose()?,
            broker_settings: broker_settings.map(mapping).transpose()?,
            finalized_features: finalized_features.map(features).transpose()?,
            api_versions: api_versions.map(mapping).transpose()?,
            supported_features: supported_features.map(mapping).transpose()?,
            client_quotas: client_quotas.map(quotas),
        };
        Ok(PyImageDelta { delta })
    }
}
