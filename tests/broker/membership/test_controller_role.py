"""The requests of a node that is elected, is deposed, or cannot propose for a while."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core.broker.runtime.membership.controller_role import ControllerRole, Deciders
from pykafka_core.broker.runtime.metadata.controller import Controller
from pykafka_core.broker.runtime.requests.pending_request import LocalRequest, PendingRequest
from pykafka_core.broker.runtime.services import create_services
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome, Work
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.mutators import draft_of
from pykafka_core.metadata.image.proposed import ProposedImage
from pykafka_core.metadata.records.bootstrap import bootstrap_records
from pykafka_core.protocol.messages import BrokerHeartbeatResponse, NoOpRecord
from pykafka_core.quorum.quorum import Proposal
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from typing import Any

    from pykafka_core._core import Core

EPOCH = 5
SLICES_MAX = 20
"""Upper bound of the slices in which a batch of one record is built."""


class Driver:
    """A replica whose state the test sets."""

    def __init__(self) -> None:
        self.leads = self.can_propose = False
        self.has_notice = False
        self.quorum = SimpleNamespace(leader_epoch=EPOCH)
        self.proposed: list[Proposal] = []

    def take_notice(self) -> None:
        """Return None: nothing was committed."""

    def propose(self, proposal: Proposal) -> None:
        self.proposed.append(proposal)


class Publisher:
    """The image of a cluster without brokers."""

    in_transaction = False
    image = draft_of(MetadataImage(), bootstrap_records()).image

    def problems(self, proposed: ProposedImage) -> Work[list[str]]:
        assert proposed.records
        yield
        return []


class Node:
    """The controller part of a node, without its other parts."""

    def __init__(self) -> None:
        core, publisher = FakeCore(), cast("Any", Publisher())
        self.services = create_services(cast("Core", core))
        self.driver = Driver()
        self.passed_on: list[PendingRequest] = []
        self.is_faulty = False
        driver = cast("Any", self.driver)
        contexts = SimpleNamespace(proposed=_no_context, active=None)
        self.controller = Controller(
            core=self.services.core,
            quorum=driver,
            publisher=publisher,
            contexts=cast("Any", contexts),
            requests=self.services.requests,
            jobs=cast("Any", None),
            faults=self.services.faults,
            reserve=None,
            pass_on=self._pass_on,
            must_append=True,
        )
        self.role = ControllerRole(
            self.services,
            deciders=Deciders(self.controller, cast("Any", None), cast("Any", contexts)),
            driver=driver,
            publisher=publisher,
            first_records=(),
            session_ms=1000,
            listeners=["CONTROLLER"],
            passes=(),
            watched_listener=None,
        )

    def _pass_on(self, asked: PendingRequest) -> bool:
        self.passed_on.append(asked)
        if self.is_faulty:
            raise RuntimeError("the request cannot be encoded")
        return True

    def lead(self, *, leads: bool) -> None:
        self.driver.leads = self.driver.can_propose = leads

    def take(self, decide: Callable[[Context], Work[Outcome]]) -> LocalRequest:
        asked = LocalRequest(decide)
        self.services.requests.begin(asked)
        self.controller.take(asked)
        return asked

    def turn(self) -> None:
        self.controller.advance(0)
        self.role.end_turn()


def _no_context(*_: object) -> Context:
    return cast("Context", None)


def in_two_slices(_: Context) -> Work[Outcome]:
    yield
    return MetadataWrite([NoOpRecord()], lambda code: BrokerHeartbeatResponse(error_code=code))


def test_request_between_an_election_and_the_next_is_passed_on() -> None:
    """After a pause a node may handle its election, a request and its successor in one turn."""
    node = Node()
    node.lead(leads=True)
    asked = node.take(in_two_slices)
    node.lead(leads=False)
    node.turn()
    assert node.passed_on == [asked]


def test_batch_of_a_resigned_controller_is_passed_on() -> None:
    node = Node()
    node.lead(leads=True)
    asked = node.take(in_two_slices)
    node.controller.advance(0)
    node.lead(leads=False)
    for _ in range(SLICES_MAX):
        node.turn()
    assert node.passed_on == [asked]


def test_controller_keeps_its_requests_while_the_voters_change() -> None:
    """Regression: requests failed with NOT_CONTROLLER at the active controller. If they were the
    first records of a new cluster, nothing wrote them again.
    """
    node = Node()
    node.lead(leads=True)
    node.take(in_two_slices)
    node.controller.advance(0)
    node.driver.can_propose = False
    for _ in range(SLICES_MAX):
        node.turn()
    assert not node.driver.proposed
    node.driver.can_propose = True
    for _ in range(SLICES_MAX):
        node.turn()
    assert not node.passed_on
    ((records, _, _),) = node.driver.proposed
    assert list(records) == [NoOpRecord()]


@pytest.mark.parametrize("is_decided", [False, True])
def test_request_that_cannot_be_passed_on_fails_alone(is_decided: bool) -> None:
    """Regression: the fault ended the control thread of the node."""
    node = Node()
    node.is_faulty = True
    node.lead(leads=True)
    asked = [node.take(in_two_slices) for _ in range(2)]
    if is_decided:
        node.controller.advance(0)
    node.lead(leads=False)
    for _ in range(SLICES_MAX):
        node.turn()
    assert set(node.passed_on) == set(asked)
    assert node.services.faults.count == 2
    assert len(node.services.requests) == 0
