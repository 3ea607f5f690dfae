"""The parts of a control plane, put together."""

from typing import NamedTuple

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completions
from pykafka_core.broker.runtime.contexts import Contexts
from pykafka_core.broker.runtime.dispatcher import Dispatcher
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.jobs import Jobs
from pykafka_core.broker.runtime.levels import Levels
from pykafka_core.broker.runtime.maintenance import Maintenance
from pykafka_core.broker.runtime.metadata.controller import Controller
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.metadata.quorum_driver import QuorumDriver
from pykafka_core.broker.runtime.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests import Replies
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.broker.storage.reserve import Reserve
from pykafka_core.handlers.context import Node


class ControlPlane(NamedTuple):
    """What the control loop drives, and what its timers call."""

    dispatcher: Dispatcher
    publisher: Publisher
    maintenance: Maintenance
    timers: Timers
    faults: Faults


def assemble(
    *,
    core: Core,
    node: Node,
    faults: Faults,
    completions: Completions,
    quorum: QuorumDriver,
    publisher: Publisher,
    reserve: Reserve | None,
) -> ControlPlane:
    """Make the parts that requests go through."""
    replies: Replies = []
    requests = OpenRequests(core, faults, replies)
    contexts = Contexts(core, node, quorum, publisher)
    timers = Timers(faults)
    maintenance = Maintenance(
        core=core, completions=completions, requests=requests, timers=timers, faults=faults
    )
    jobs = Jobs(core, contexts, requests, maintenance)
    controller = Controller(
        core=core,
        quorum=quorum,
        publisher=publisher,
        contexts=contexts,
        requests=requests,
        jobs=jobs,
        faults=faults,
        reserve=reserve,
    )
    dispatcher = Dispatcher(
        core=core,
        requests=requests,
        replies=replies,
        completions=completions,
        publisher=publisher,
        controller=controller,
        jobs=jobs,
        levels=Levels(core, publisher, node.log_dir),
        faults=faults,
    )
    return ControlPlane(dispatcher, publisher, maintenance, timers, faults)
