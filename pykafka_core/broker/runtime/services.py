"""Services that all parts of a control plane share: the core, open requests, faults."""

from typing import NamedTuple

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completions
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.pending_request import Replies
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.metadata.health import Replicas


class Services(NamedTuple):
    """Services shared by all control-plane components."""

    core: Core
    faults: Faults
    completions: Completions
    timers: Timers
    replies: Replies
    requests: OpenRequests
    replicas: Replicas


def create_services(core: Core) -> Services:
    """Create the services of a node's control plane."""
    faults = Faults(core.now_ns)
    replies: Replies = []
    completions = Completions()
    requests = OpenRequests(core, faults, completions, replies)
    return Services(core, faults, completions, Timers(faults), replies, requests, Replicas())
