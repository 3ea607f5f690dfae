"""A directory of Apache Kafka with features that this version lacks: the start names them."""

import logging
import re
import shutil
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.errors import ClusterError
from tests.support.processes.ports import free_ports

GOLDEN = Path(__file__).parent / "golden" / "clean" / "data"
PARTITION = re.compile(r"(?!__cluster_metadata).+-\d+")
"""A controller's directory does not contain partitions other than the metadata log."""


@pytest.mark.parametrize("roles", ["broker,controller", "controller"])
def test_a_controller_with_share_groups_is_refused_by_the_name_of_the_feature(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, roles: str
) -> None:
    shutil.copytree(
        GOLDEN,
        tmp_path / "data",
        ignore=lambda _, names: [name for name in names if PARTITION.fullmatch(name)],
        copy_function=shutil.copyfile,
    )
    port = free_ports()
    listeners = {
        "broker": "PLAINTEXT://127.0.0.1:0",
        "controller": f"CONTROLLER://127.0.0.1:{port}",
    }
    settings = {
        "process.roles": roles,
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listeners[role] for role in roles.split(",")),
        "controller.quorum.voters": f"1@127.0.0.1:{port}",
    }
    foreign = r"does not support share\.version=1, streams\.version=1; lower them .* downgrade"
    with caplog.at_level(logging.CRITICAL), pytest.raises(ClusterError, match=foreign):
        Broker(tmp_path / "data", config=settings)
    (line,) = (one for one in caplog.records if one.levelno == logging.CRITICAL)
    assert line.exc_info is None
