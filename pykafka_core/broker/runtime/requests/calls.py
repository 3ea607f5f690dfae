"""The broker's own methods as requests: the same handlers as for clients, without encoding."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.errors import error_of
from pykafka_core.protocol.messages import Message
from pykafka_core.types import ConfigResource

CREATE_TOPICS, DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS = 19, 20, 44
CREATE_TOPICS_VERSION = 7
DELETE_TIMEOUT_MS = 60_000
"""The default timeout of CreateTopics; a controller of Apache Kafka uses it."""
DELETE_TOPICS_VERSION = 6
INCREMENTAL_ALTER_CONFIGS_VERSION = 1


class _Result(Protocol):
    error_code: int
    error_message: str | None


def create_topics(
    names: Sequence[str],
    partitions: int,
    config: Mapping[str, str],
    on_response: Callable[[Message], None] | None = None,
) -> LocalRequest:
    """Return a CreateTopics request; ``partitions`` -1 selects the broker's default."""
    from pykafka_core.handlers.topics import create_topics as handler
    from pykafka_core.protocol.messages import CreateTopicsRequest

    configs = [
        CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
        for name, value in config.items()
    ]
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=-1, configs=configs
        )
        for name in names
    ]
    request = CreateTopicsRequest(topics=topics)
    return LocalRequest(
        lambda context: handler.handle(context, request),
        CREATE_TOPICS_VERSION,
        on_response,
        (CREATE_TOPICS, request),
    )


def delete_topic(name: str) -> LocalRequest:
    """Return a DeleteTopics request for one name."""
    from pykafka_core.handlers.topics import delete_topics as handler
    from pykafka_core.protocol.messages import DeleteTopicsRequest

    topic = DeleteTopicsRequest.DeleteTopicState(name=name)
    request = DeleteTopicsRequest(topics=[topic], timeout_ms=DELETE_TIMEOUT_MS)
    return LocalRequest(
        lambda context: handler.handle(context, request),
        DELETE_TOPICS_VERSION,
        sent_as=(DELETE_TOPICS, request),
    )


def alter_configs(changes: Mapping[ConfigResource, Mapping[str, str | None]]) -> LocalRequest:
    """Return an IncrementalAlterConfigs request; a value of ``None`` deletes the name."""
    from pykafka_core.handlers.configs import incremental_alter_configs as handler
    from pykafka_core.handlers.configs.changes import DELETE, SET
    from pykafka_core.protocol.messages import IncrementalAlterConfigsRequest

    def change(name: str, value: str | None) -> IncrementalAlterConfigsRequest.AlterableConfig:
        return IncrementalAlterConfigsRequest.AlterableConfig(
            name=name, config_operation=DELETE if value is None else SET, value=value
        )

    resources = [
        IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=resource.kind,
            resource_name=resource.name,
            configs=[change(*item) for item in values.items()],
        )
        for resource, values in changes.items()
    ]
    request = IncrementalAlterConfigsRequest(resources=resources)
    return LocalRequest(
        lambda context: handler.handle(context, request),
        INCREMENTAL_ALTER_CONFIGS_VERSION,
        sent_as=(INCREMENTAL_ALTER_CONFIGS, request),
    )


def new_producer_id() -> LocalRequest:
    """Return an InitProducerId request: to respond with an id, the broker first gets a block of
    ids.
    """
    from pykafka_core.handlers.transactions import init_producer_id as handler
    from pykafka_core.protocol.messages import InitProducerIdRequest

    # The default in the schema is "", and an empty id is rejected.
    request = InitProducerIdRequest(transactional_id=None)
    return LocalRequest(lambda context: handler.handle(context, request))


def raise_first_error(response: Message) -> None:
    """Raise the error in the response to one of the requests above.

    Raises:
        KafkaError: The code and message of the first topic or resource that failed.
    """
    from pykafka_core.protocol.messages import (
        CreateTopicsResponse,
        DeleteTopicsResponse,
        IncrementalAlterConfigsResponse,
    )

    if isinstance(response, CreateTopicsResponse):
        results: Sequence[_Result] = response.topics
    else:
        assert isinstance(response, DeleteTopicsResponse | IncrementalAlterConfigsResponse)
        results = response.responses
    for result in results:
        if result.error_code:
            raise error_of(result.error_code)(result.error_message or "")


def raise_code(response: Message) -> None:
    """Raise the error in a response to `register`."""
    from pykafka_core.protocol.messages import BrokerRegistrationResponse

    assert isinstance(response, BrokerRegistrationResponse)
    if response.error_code:
        raise error_of(response.error_code)()
