"""Topic ids, which distinguish a topic from a later topic with the same name.

Spark's rows contain only the topic's name. The broker returns the current id (KIP-516).
"""

from collections.abc import Callable, Collection, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from pykafka_core.errors import ConfigurationError, ConsumerError
from spark_udfs.sink.java_settings import java_settings
from spark_udfs.sink.topic_partition import Range, TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Uuid

TopicIds = Callable[[Collection[str]], Mapping[str, bytes]]
"""Returns the current 16-byte id of each topic."""

TIMEOUT_S: Final = 15.0


class KafkaBrokers:
    """Addresses and security settings of a Kafka cluster, shared by Spark's source and the sink.

        brokers = KafkaBrokers("localhost:9092")
        spark.readStream.format("kafka").options(**brokers.options(subscribe="orders"))

    A call with topic names returns their ids. It uses one connection, which is opened by the first
    call. Thread-safe.

    Args:
        config: "host:port" of one or more brokers, or librdkafka settings with at least
            ``bootstrap.servers``.
        timeout_s: Timeout of each request.

    Raises:
        ImportError: confluent-kafka is not installed.
        ConfigurationError: ``bootstrap.servers`` is missing. Other invalid settings are reported by
            the first call.
    """

    def __init__(self, config: str | Mapping[str, Any], *, timeout_s: float = TIMEOUT_S) -> None:
        if find_spec("confluent_kafka") is None:
            raise ImportError(
                "topic ids need confluent-kafka: pip install 'pykafka_core[spark]', or give brokers a function",
                name="confluent_kafka",
            )
        given = {"bootstrap.servers": config} if isinstance(config, str) else config
        if not given.get("bootstrap.servers"):
            raise ConfigurationError(
                ["bootstrap.servers is missing: the ids are read from these brokers"]
            )
        self._timeout_s = timeout_s
        self._given = dict(given)
        self._config = {"log_level": 2, **given}  # errors come as exceptions, not on stderr
        self._client: Any = None

    def __repr__(self) -> str:
        return f"KafkaBrokers({self._given['bootstrap.servers']!r})"

    def options(self, **source: object) -> dict[str, str]:
        """Return options for Spark's Kafka source or sink: the connection settings and ``source``.

        librdkafka names are translated to those of the Java clients: the file in
        ``ssl.ca.location`` is read and passed as PEM; ``sasl.username`` and ``sasl.password``
        become ``sasl.jaas.config``.

        Args:
            source: Options such as ``subscribe="orders"``: text, numbers or booleans. They override
                translated settings. They must not name other brokers.

        Raises:
            ConfigurationError: A security setting has no translation (give it as ``kafka.NAME``), a
                setting is unknown to librdkafka, or an option is not text, a number or a boolean.
            OSError: A named file cannot be read.
        """
        moved = [name for name in source if name.lower() == "kafka.bootstrap.servers"]
        if moved:
            raise ConfigurationError(
                [
                    f"{moved[0]} would read from other brokers than ids are asked of: make KafkaBrokers of these"
                ]
            )
        options = {f"kafka.{name}": value for name, value in java_settings(self._given).items()}
        self._admin()  # reject settings that are invalid in librdkafka; they are not translated
        return options | {name: _text(name, value) for name, value in source.items()}

    def __getstate__(self) -> dict[str, object]:
        """Return the state without the connection, which cannot be pickled."""
        return {**self.__dict__, "_client": None}

    def __call__(self, topics: Collection[str]) -> dict[str, bytes]:
        """Return the ids of the topics; see `TopicIds`.

        Raises:
            ConsumerError: The request timed out, or a topic does not exist.
        """
        from confluent_kafka import KafkaException, TopicCollection

        if not topics:
            return {}
        try:
            asked = self._admin().describe_topics(
                TopicCollection(sorted(topics)), request_timeout=self._timeout_s
            )
            return {topic: _bytes(found.result().topic_id) for topic, found in asked.items()}
        except KafkaException as error:
            raise ConsumerError(self._said("ids", topics, error)) from error

    def log_ranges(self, places: Collection[TopicPartition]) -> dict[TopicPartition, Range]:
        """Return the offset range of each partition: log start offset and the end for consumers.

        Raises:
            ConsumerError: The request timed out, or a partition does not exist.
        """
        from confluent_kafka.admin import OffsetSpec

        # Read the end first: it never decreases, so it stays valid, while the start may increase.
        ends = self._offsets(places, OffsetSpec.latest())
        starts = self._offsets(places, OffsetSpec.earliest())
        return {place: Range(starts[place], ends[place]) for place in places}

    def _offsets(self, places: Collection[TopicPartition], spec: Any) -> dict[TopicPartition, int]:
        import confluent_kafka

        if not places:
            return {}
        wanted = {confluent_kafka.TopicPartition(*place): spec for place in places}
        try:
            asked = self._admin().list_offsets(wanted, request_timeout=self._timeout_s)
            return {(at.topic, at.partition): found.result().offset for at, found in asked.items()}
        except confluent_kafka.KafkaException as error:
            raise ConsumerError(
                self._said("offsets", [topic for topic, _ in places], error)
            ) from error

    def _said(self, what: str, topics: Collection[str], error: Exception) -> str:
        return (
            f"the broker at {self._config['bootstrap.servers']} did not return the {what} of "
            f"{', '.join(sorted(set(topics)))}: {error.args[0].str()}; restart the query when it responds"
        )

    def _admin(self) -> Any:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        if self._client is None:
            try:
                self._client = AdminClient(self._config)
            except (KafkaException, TypeError, ValueError) as error:
                raise ConfigurationError(
                    [f"brokers: no settings of librdkafka: {error}"]
                ) from error
        return self._client


def _bytes(uuid: "Uuid") -> bytes:
    halves = (uuid.get_most_significant_bits(), uuid.get_least_significant_bits())
    return b"".join((half & (1 << 64) - 1).to_bytes(8, "big") for half in halves)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str | bool | int | float):
        raise ConfigurationError(
            [
                f"{name} is text in Spark, such as 'a,b' for topics and JSON for offsets, not {value!r}"
            ]
        )
    return str(value).lower() if isinstance(value, bool) else str(value)
