"""The path of every change: handler, records, quorum, image, core, response."""

import random
from collections.abc import Callable

import pytest

from pykafka_core._core import Appended, TopicsMissing
from pykafka_core.broker.runtime.metadata import controller as controller_module
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.errors import NotControllerError
from pykafka_core.handlers import registry
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Outcome, Work
from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    Message,
)
from tests.support.simulated import fake_core
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore, ImageDelta

MESSAGE_TOO_LARGE = 10


def creation(*names: str, partitions: int = 1) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1
            )
            for name in names
        ]
    )


def codes(response: Message | None) -> list[int]:
    assert isinstance(response, CreateTopicsResponse)
    return [topic.error_code for topic in response.topics]


@pytest.fixture
def broker() -> SimulatedBroker:
    """A broker whose appends wait until the test completes or fails them."""
    broker = SimulatedBroker()
    broker.core.hold_appends = True
    return broker


def test_uncommitted_changes_are_invisible(broker: SimulatedBroker) -> None:
    request = broker.send(creation("orders"))
    broker.run()
    assert broker.response(request) is None
    assert broker.image.topics.by_name == {}
    assert len(broker.core.topics) == 1
    broker.core.complete_append()
    broker.run()
    assert codes(broker.response(request)) == [0]
    assert list(broker.image.topics.by_name) == ["orders"]
    assert len(broker.core.topics) == 2


def test_failed_append_changes_nothing_and_returns_its_code(
    broker: SimulatedBroker,
) -> None:
    before = repr(broker.image)
    request = broker.send(creation("orders"))
    broker.run()
    broker.core.complete_append(error_code=56)
    broker.run()
    assert codes(broker.response(request)) == [56]
    assert repr(broker.image) == before
    again = broker.send(creation("orders"))
    broker.run()
    broker.core.complete_append()
    broker.run()
    assert codes(broker.response(again)) == [0]


def test_requests_during_an_append_are_grouped_into_the_next_batch(
    broker: SimulatedBroker,
) -> None:
    applied = len(broker.core.applied)
    first = broker.send(creation("a"))
    broker.run()
    later = [broker.send(creation(name)) for name in ("b", "c", "a")]
    broker.run()
    assert [broker.response(request) for request in (first, *later)] == [None] * 4
    broker.core.complete_append()
    broker.run()
    assert codes(broker.response(first)) == [0]
    broker.core.complete_append()
    broker.run()
    assert [codes(broker.response(request)) for request in later] == [[0], [0], [36]]
    assert len(broker.core.applied) == applied + 2


def test_reply_that_read_the_draft_waits_for_its_commit(broker: SimulatedBroker) -> None:
    requests = [broker.send(creation("a")), broker.send(creation("a"))]
    broker.run()
    assert [broker.response(request) for request in requests] == [None, None]
    broker.core.complete_append(error_code=56)
    broker.run()
    assert [codes(broker.response(request)) for request in requests] == [[56], [36]]


def test_reading_does_not_wait_for_a_batch_in_flight(broker: SimulatedBroker) -> None:
    broker.send(creation("orders"))
    broker.run()
    assert broker.ask(DescribeClusterRequest()) is not None


def test_a_batch_is_full_at_its_soft_limit(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_module, "BATCH_BYTES_SOFT_MAX", 50)
    requests = [broker.send(creation(name)) for name in "abc"]
    broker.run()
    broker.core.complete_append()
    broker.run()
    assert [broker.response(request) is None for request in requests] == [False, True, True]


def test_request_over_the_hard_limit_violates_the_policy(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_module, "BATCH_BYTES_MAX", 300)
    large, small = broker.send(creation("a", partitions=100)), broker.send(creation("b"))
    broker.run()
    broker.core.complete_append()
    broker.run()
    assert codes(broker.response(large)) == [44]
    assert codes(broker.response(small)) == [0]


def test_unknown_token_is_ignored(broker: SimulatedBroker) -> None:
    request = broker.send(creation("orders"))
    broker.run()
    broker.core.push(Appended(10**6, 0, 0))
    broker.run()
    assert broker.response(request) is None


@pytest.mark.parametrize(("api_key", "version"), [(0, 9), (4, 0), (999, 0), (19, 8), (19, 1)])
def test_request_without_a_handler_closes_its_connection(
    broker: SimulatedBroker, api_key: int, version: int
) -> None:
    broker.core.push(
        fake_core.request(id=99, connection=7, api_key=api_key, api_version=version, body=b"")
    )
    broker.run()
    assert 7 in broker.core.closed_connections
    assert 99 not in broker.core.replies


@pytest.mark.parametrize("body", [b"", b"\xff" * 8, b"\xff\xff\xff\xff\x07" * 3], ids=bytes.hex)
def test_malformed_request_closes_its_connection(broker: SimulatedBroker, body: bytes) -> None:
    for api_key in sorted(registry.API_VERSIONS):
        version = registry.API_VERSIONS[api_key][1]
        broker.core.push(
            fake_core.request(
                id=api_key, connection=api_key, api_key=api_key, api_version=version, body=body
            )
        )
    broker.run()
    broker.core.hold_appends = False
    while not broker.dispatcher.idle:
        broker.core.complete_append()
        broker.run()
    on_response, closed = set(broker.core.replies), set(broker.core.closed_connections)
    assert on_response | closed == registry.API_VERSIONS.keys()
    assert not on_response & closed


def test_bug_in_a_handler_closes_only_its_connection(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(context: Context, request: Message) -> Outcome:
        raise ZeroDivisionError

    monkeypatch.setitem(registry._loaded, 20, broken)
    bad = broker.send(DeleteTopicsRequest(topics=[]))
    good = broker.send(creation("orders"))
    broker.run()
    broker.core.complete_append()
    broker.run()
    assert bad in broker.core.closed_connections
    assert codes(broker.response(good)) == [0]
    assert "ZeroDivisionError" in caplog.text


def test_missing_topics_are_created_with_the_broker_defaults() -> None:
    broker = SimulatedBroker({"num.partitions": "3"})
    broker.core.push(
        TopicsMissing(["orders", "orders", "__consumer_offsets", "bad/name"], "User:ANONYMOUS")
    )
    broker.run()
    assert list(broker.image.topics.by_name) == ["orders"]
    assert len(broker.image.topics.by_name["orders"].partitions) == 3


def test_missing_topics_are_not_created_when_auto_creation_is_off() -> None:
    broker = SimulatedBroker({"auto.create.topics.enable": "false"})
    broker.core.push(TopicsMissing(["orders"], "User:ANONYMOUS"))
    broker.run()
    assert broker.image.topics.by_name == {}


@pytest.mark.parametrize("seed", range(20))
def test_restart_finds_acknowledged_changes_and_no_failed_ones(seed: int) -> None:
    """Seeded: requests, commits and failures in any order; then a restart from the same log."""
    rng = random.Random(seed)
    broker = SimulatedBroker()
    broker.core.hold_appends = True
    names = [f"t{number}" for number in range(6)]
    asked: dict[int, tuple[str, str]] = {}
    for _ in range(60):
        action = rng.choice(["create", "delete", "commit", "fail", "run"])
        name = rng.choice(names)
        if action == "create":
            asked[broker.send(creation(name))] = (action, name)
        elif action == "delete":
            state = DeleteTopicsRequest.DeleteTopicState(name=name)
            asked[broker.send(DeleteTopicsRequest(topics=[state]))] = (action, name)
        elif action in ("commit", "fail") and broker.dispatcher.in_flight:
            broker.core.complete_append(0 if action == "commit" else 56)
        broker.run()
    while not broker.dispatcher.idle:
        broker.core.complete_append()
        broker.run()
    model = model_of(broker, asked)
    assert set(broker.image.topics.by_name) == model
    restarted = SimulatedBroker(core=FakeCore(logs=broker.core.logs))
    assert restarted.image.topics == broker.image.topics
    assert restarted.image.configs == broker.image.configs


def model_of(broker: SimulatedBroker, asked: dict[int, tuple[str, str]]) -> set[str]:
    """Return the topics that exist according to the responses, in their order."""
    topics: set[str] = set()
    for request in broker.core.replies:
        if request not in asked:
            continue
        action, name = asked[request]
        response = broker.response(request)
        if isinstance(response, CreateTopicsResponse):
            assert action == "create"
            if not response.topics[0].error_code:
                assert name not in topics
                topics.add(name)
        elif isinstance(response, DeleteTopicsResponse) and not response.responses[0].error_code:
            topics.remove(name)
    return topics


def test_requests_of_a_batch_that_the_quorum_rejects_are_retried_one_by_one(
    broker: SimulatedBroker,
) -> None:
    requests = [broker.send(creation("first"))]
    broker.run()
    requests += [broker.send(creation(name)) for name in ("good", "bad", "late")]
    broker.run()  # one batch of three requests, which waits for the first batch
    broker.core.complete_append()
    broker.run()
    broker.core.complete_append(MESSAGE_TOO_LARGE)
    broker.run()
    for error_code in (0, MESSAGE_TOO_LARGE, 0):
        assert len(broker.core._held) == 1
        broker.core.complete_append(error_code)
        broker.run()
    assert [codes(broker.response(request)) for request in requests] == [[0], [0], [10], [0]]
    assert sorted(broker.image.topics.by_name) == ["first", "good", "late"]


def test_change_that_the_core_cannot_apply_is_not_proposed(broker: SimulatedBroker) -> None:
    def check(delta: ImageDelta) -> list[str]:
        return [t.name for t in delta.topics if t.overrides.get("segment.ms") == "7"]

    broker.core.on_check = check
    broker.core.hold_appends = False
    good, bad, other = creation("good"), creation("bad"), creation("other")
    for request, value in ((good, "8"), (bad, "7")):
        config = CreateTopicsRequest.CreatableTopicConfig(name="segment.ms", value=value)
        request.topics[0].configs = [config]
    requests = [broker.send(request) for request in (good, bad, other)]
    broker.run()
    assert [codes(broker.response(request)) for request in requests] == [[0], [40], [0]]
    assert sorted(broker.image.topics.by_name) == ["good", "other"]


def test_request_that_does_not_fit_with_others_gets_its_own_batch(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_module, "BATCH_BYTES_MAX", 2000)
    requests = [broker.send(creation(name, partitions=9)) for name in ("first", "second", "third")]
    broker.core.hold_appends = False
    broker.run()
    assert [codes(broker.response(request)) for request in requests] == [[0], [0], [0]]


def before_each_creation(monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> None:
    """Call a function before each CreateTopics request is handled."""
    handle = registry.handler_of(19)

    def call_and_handle(context: Context, request: Message) -> Outcome | Work[Outcome]:
        call()
        return handle(context, request)

    monkeypatch.setattr(
        "pykafka_core.broker.runtime.requests.pending_request.handler_of", lambda _: call_and_handle
    )


def test_record_without_content_is_committed_only_without_a_batch(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, controller = broker.image, broker.dispatcher._controller
    controller.write_no_op()
    broker.core.complete_append()
    broker.run()
    assert (broker.image.offset, broker.image.topics) == (before.offset + 1, before.topics)
    before_each_creation(monkeypatch, controller.write_no_op)
    request = broker.send(creation("orders"))
    broker.run()
    controller.write_no_op()
    broker.core.complete_append()
    broker.run()
    assert codes(broker.response(request)) == [0]
    with pytest.raises(IndexError):
        broker.core.complete_append()


@pytest.mark.parametrize("when", ["decided", "checked"])
def test_controller_that_is_deposed_during_a_decision_proposes_nothing(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    leads = True
    quorum = type(broker.dispatcher._controller._quorum)
    for name in ("leads", "can_propose"):
        monkeypatch.setattr(quorum, name, property(lambda _: leads))

    def depose(*_: object) -> list[str]:
        nonlocal leads
        leads = False
        return []

    if when == "checked":
        broker.core.on_check = depose
    else:
        before_each_creation(monkeypatch, depose)
    request = creation("orders")
    setting = CreateTopicsRequest.CreatableTopicConfig(name="retention.ms", value="1000")
    request.topics[0].configs = [setting]
    refused = broker.send(request)
    broker.run()
    assert codes(broker.response(refused)) == [NotControllerError.code]
    monkeypatch.undo()
    broker.core.on_check = lambda _: []
    kept = broker.send(creation("orders"))
    broker.run()
    broker.core.complete_append()
    broker.run()
    assert codes(broker.response(kept)) == [0]


def test_request_requeued_at_a_deposed_controller_is_forwarded(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_module, "BATCH_BYTES_MAX", 1400)
    handled: list[None] = []
    passed_on: list[PendingRequest] = []

    def pass_on(asked: PendingRequest) -> bool:
        passed_on.append(asked)
        return True

    controller = broker.dispatcher._controller
    monkeypatch.setattr(controller, "_pass_on", pass_on)
    for name in ("leads", "can_propose"):
        monkeypatch.setattr(type(controller._quorum), name, property(lambda _: len(handled) < 2))
    before_each_creation(monkeypatch, lambda: handled.append(None))
    for name in ("first", "second"):
        broker.send(creation(name, partitions=9))
    broker.run()
    assert (len(handled), len(passed_on)) == (2, 2)
