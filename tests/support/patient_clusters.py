"""`Cluster` as the tests use it: a wait without a timeout has the bound of `patience`."""

from pykafka_core.broker.cluster.cluster import Cluster
from tests.support.patience import PATIENCE_S


def install() -> None:
    """Replace the default timeout, which a busy machine may exceed, of the methods of `Cluster`."""
    Cluster.controller.__defaults__ = (PATIENCE_S,)
    for method in (Cluster.create_topic, Cluster.wait_leader, Cluster.wait_isr):
        method.__kwdefaults__ = {**(method.__kwdefaults__ or {}), "timeout": PATIENCE_S}
