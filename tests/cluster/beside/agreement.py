"""Whether both kinds of nodes agree once nobody writes: by their disks and their answers, and in Kafka's own tools."""

import time
from collections.abc import Iterator

from tests.cluster.beside.stage import PATIENCE_S, AmissError, Stage
from tests.faults.cluster.checker import ClusterHistory, divergent_replicas
from tests.faults.history import Anomaly


def disagreements(stage: Stage) -> Iterator[Anomaly]:
    """Everything in which nodes differ, or that a tool finds wrong; stops a node of each kind at the end."""
    try:
        stage.whole()
    except AmissError as error:
        yield error.anomaly
        return
    yield from _settled(stage)


def _settled(stage: Stage) -> list[Anomaly]:
    """Followers may lack what was written last."""
    deadline = time.monotonic() + PATIENCE_S
    while found := list(divergent_replicas(ClusterHistory(replicas=stage.nodes.replicas()))):
        if time.monotonic() > deadline:
            return found
        time.sleep(0.2)
    return []
