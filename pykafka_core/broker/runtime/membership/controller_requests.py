"""Topics of coordinators and blocks of producer ids that a request needs before its decision.

On the active controller such a request proposes records. On other nodes, the active controller
creates the topic or allocates the block, and then the request is decided again.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from pykafka_core.broker.runtime.membership.controller_channel import (
    TIMEOUT_MS,
    ControllerApi,
    ControllerChannel,
)
from pykafka_core.broker.runtime.requests.jobs import Jobs
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.broker.runtime.services import Services
from pykafka_core.errors import CoordinatorNotAvailableError, TopicAlreadyExistsError
from pykafka_core.handlers.context import ProducerIds
from pykafka_core.handlers.outcome import MetadataWrite, Reply
from pykafka_core.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    ConfigRecord,
    CreateTopicsRequest,
    CreateTopicsResponse,
    Message,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
)

CREATE_TOPICS = ControllerApi(19, (7, 7))
ALLOCATE_PRODUCER_IDS = ControllerApi(67, (0, 0))
RETRY_NS = 10_000_000
"""Pause between two checks for a topic that was created: its records reach this node soon."""
LOOKS_MAX = 500


class ProducerIdBlocks:
    """Requests blocks of producer ids from the active controller.

    Args:
        channel: Sends to the active controller.
        broker: Returns the id and the epoch of this broker.
    """

    def __init__(self, channel: ControllerChannel, broker: Callable[[], tuple[int, int]]) -> None:
        self._channel = channel
        self._broker = broker

    def request(
        self, producer_ids: ProducerIds, done: Callable[[bool], object] = lambda _: None
    ) -> None:
        """Request a block for ``producer_ids``; ``done`` is called with True if there is one."""
        broker_id, broker_epoch = self._broker()
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch)

        def on_response(message: Message | None) -> None:
            response = cast("AllocateProducerIdsResponse | None", message)
            is_given = response is not None and not response.error_code
            if response is not None and is_given:
                producer_ids.grant(response.producer_id_start, response.producer_id_len)
            done(is_given)

        self._channel.ask(ALLOCATE_PRODUCER_IDS, request, TIMEOUT_MS, on_response)


class Prerequisites:
    """Requests topics and blocks of producer ids from the active controller.

    Args:
        services: Has the timers of further checks.
        channel: Sends to the active controller.
        blocks: Requests blocks of producer ids.
        producer_ids: The producer ids that this broker may assign.
        has_topic: Returns whether a topic is in this node's image.
    """

    def __init__(
        self,
        services: Services,
        *,
        channel: ControllerChannel,
        blocks: ProducerIdBlocks,
        producer_ids: ProducerIds,
        has_topic: Callable[[str], bool],
    ) -> None:
        self._core = services.core
        self._timers = services.timers
        self._channel = channel
        self._blocks = blocks
        self._producer_ids = producer_ids
        self._has_topic = has_topic

    def take(self, jobs: Jobs, request: PendingRequest, outcome: MetadataWrite) -> None:
        """Request the topic or the block that the records of ``outcome`` would create.

        Args:
            jobs: Decides the request again, or responds to it.
            request: The request.
            outcome: Its decision.
        """
        if not outcome.records:
            _respond(jobs, request, outcome, 0)
            return
        first = outcome.records[0]
        if isinstance(first, ProducerIdsRecord):
            # Its block is the next one of this node's image; the controller allocates another.
            refusal = outcome.reply(CoordinatorNotAvailableError.code)
            self._blocks.request(self._producer_ids, partial(_on_ids, jobs, request, refusal))
        else:
            assert isinstance(first, TopicRecord), "a coordinators' topic is created with one batch"
            on_response = partial(self._on_topic, jobs, request, outcome, first.name)
            self._channel.ask(CREATE_TOPICS, _creation(outcome.records), TIMEOUT_MS, on_response)

    def _on_topic(
        self,
        jobs: Jobs,
        request: PendingRequest,
        outcome: MetadataWrite,
        name: str,
        response: Message | None,
    ) -> None:
        response = cast("CreateTopicsResponse | None", response)
        code = (
            CoordinatorNotAvailableError.code if response is None else response.topics[0].error_code
        )
        if code in (0, TopicAlreadyExistsError.code):
            self._look(jobs, request, outcome, name, LOOKS_MAX)
        else:
            _respond(jobs, request, outcome, code)

    def _look(
        self, jobs: Jobs, request: PendingRequest, outcome: MetadataWrite, name: str, looks: int
    ) -> None:
        if self._has_topic(name):
            jobs.take(request)
        elif not looks:
            _respond(jobs, request, outcome, CoordinatorNotAvailableError.code)
        else:
            due_ns = self._core.now_ns() + RETRY_NS
            again = partial(self._look, jobs, request, outcome, name, looks - 1)
            self._timers.once(f"a look for {name}", due_ns, again)


def _on_ids(jobs: Jobs, request: PendingRequest, refusal: Reply, is_given: bool) -> None:
    if is_given:
        jobs.take(request)
    else:
        jobs.respond(request, lambda: refusal)


def _respond(jobs: Jobs, request: PendingRequest, outcome: MetadataWrite, code: int) -> None:
    jobs.respond(request, partial(outcome.reply, code))


def _creation(records: Sequence[Message]) -> CreateTopicsRequest:
    """Return a request to create the topic of these records; the controller places replicas."""
    topic = next(record for record in records if isinstance(record, TopicRecord))
    partitions = [record for record in records if isinstance(record, PartitionRecord)]
    of = CreateTopicsRequest
    return of(
        topics=[
            of.CreatableTopic(
                name=topic.name,
                num_partitions=len(partitions),
                replication_factor=len(partitions[0].replicas),
                configs=[
                    of.CreatableTopicConfig(name=record.name, value=record.value)
                    for record in records
                    if isinstance(record, ConfigRecord)
                ],
            )
        ]
    )
